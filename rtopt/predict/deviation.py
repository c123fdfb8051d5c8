"""How far what was measured is from what was predicted, and when."""

# ruff: noqa: N803, N806 - the suffix of an array is its shape
# Shapes: N steps, B stretches of a second.

from collections.abc import Mapping
from itertools import groupby

import numpy as np

from rtopt.cost import StepTime
from rtopt.metrics import measure
from rtopt.predict.busy import BusySteps, Vector, busy_steps
from rtopt.predict.step_fit import STRETCH_NS
from rtopt.types import Deviation, Estimate, Gap, OddWindow, Prediction, Trace

ODD_FRAC = 0.25
"""A stretch is odd when its step time is off by this, and by 3 standard deviations."""
_COEFFICIENTS = (
    "step_base_ms",
    "step_decode_ms",
    "step_prefill_token_ms",
    "step_prefill_request_ms",
)
_NO_EVENTS = "no event plane in this trace"


def compare(trace: Trace, prediction: Prediction) -> Deviation:
    """Set the metrics and the step times of a trace against a prediction.

    Step times are compared with the prediction's coefficients, not with a new fit, so an earlier
    prediction can be held against a later trace.
    """
    absent = dict.fromkeys(("kernel_time", "memory_traffic", "stream_concurrency"), _NO_EVENTS)
    if prediction.refusal is not None:
        return Deviation(absent={**absent, "metrics": f"no prediction: {prediction.refusal}"})
    measured = measure(trace)
    gaps, missing = _gaps(measured, prediction.metrics)
    absent.update(missing)
    step_time = _step_time(prediction)
    busy = busy_steps(trace)
    if step_time is None or not busy.steps:
        absent["step_time"] = (
            "the prediction has no step-time coefficients"
            if step_time is None
            else "no step of the trace has both its work and a wall time"
        )
        return Deviation(metrics=gaps, absent=absent)
    fitted_N = np.array([step_time.mean_ms(step.load) for step in busy.steps])
    ratio_N = busy.wall_N / fitted_N
    matched_ms = float(np.sum(busy.wall_N))
    return Deviation(
        metrics=gaps,
        step_residual_sd_frac=float(np.std(ratio_N)),
        windows=_odd_windows(busy, fitted_N),
        unmatched_frac=busy.unusable_ms / (busy.unusable_ms + matched_ms),
        absent=absent,
    )


def _gaps(
    measured: Mapping[str, float], predicted: Mapping[str, Estimate]
) -> tuple[dict[str, Gap], dict[str, str]]:
    gaps, absent = {}, {}
    for name, estimate in predicted.items():
        if name not in measured:
            absent[name] = "not measured in this trace"
        elif estimate.value == 0 and measured[name] != 0:
            absent[name] = f"predicted 0, measured {measured[name]:g}: no ratio"
        else:
            rel = measured[name] / estimate.value - 1 if estimate.value else 0.0
            gaps[name] = Gap(measured=measured[name], predicted=estimate.value, rel=rel)
    return gaps, absent


def _step_time(prediction: Prediction) -> StepTime | None:
    terms = prediction.terms
    if not all(name in terms for name in _COEFFICIENTS):
        return None
    base, decode, token, request = (terms[name].value for name in _COEFFICIENTS)
    return StepTime(
        base_ms=base, decode_ms=decode, prefill_token_ms=token, prefill_request_ms=request
    )


def _odd_windows(busy: BusySteps, fitted_N: Vector) -> tuple[OddWindow, ...]:
    """Two or more seconds in a row whose steps were all much slower, or all much faster."""
    second_N = np.array([step.t_ns // STRETCH_NS for step in busy.steps])
    second_B, index_N = np.unique(second_N, return_inverse=True)
    wall_B = np.bincount(index_N, weights=busy.wall_N)
    expected_B = np.bincount(index_N, weights=fitted_N)
    rel_B = wall_B / expected_B - 1
    # Robust, so that the odd stretches do not hide themselves.
    spread = 1.4826 * float(np.median(np.abs(rel_B - np.median(rel_B))))
    limit = max(ODD_FRAC, 3 * spread)
    sign_B = np.where(np.abs(rel_B) > limit, np.sign(rel_B), 0)
    windows = []
    # Neighbours have the same difference of second and position.
    keys = zip(second_B - np.arange(len(second_B)), sign_B, strict=True)
    for (_, sign), group in groupby(enumerate(keys), key=lambda item: item[1]):
        at = [position for position, _ in group]
        if sign and len(at) >= 2:
            windows.append(
                OddWindow(
                    start_ns=int(second_B[at[0]]) * STRETCH_NS,
                    end_ns=(int(second_B[at[-1]]) + 1) * STRETCH_NS,
                    rel=float(np.sum(wall_B[at]) / np.sum(expected_B[at]) - 1),
                )
            )
    return tuple(windows)
