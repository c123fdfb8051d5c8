"""Long prompts in the same step hold decoding requests up."""

import numpy as np

from rtopt.attribute.check import Check
from rtopt.attribute.window import Window
from rtopt.errors import EvidenceError
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.1
"""More than 5 % of the tokens must be held up before p95 ITL shows it; in steps at least twice as
long that is about 10 % of the time."""
SLOW_RATIO = 2.0
"""A step this much longer than one that only decodes is a hitch that a reader can see."""
MIN_STEPS = 20
"""Decode-only steps with decoders, so that their median has a relative error of a few per cent."""


def look(w: Window) -> Finding:
    """Share of the busy time in steps with prefill that keep decoders twice as long; else 0.

    Raises:
        EvidenceError: Too few steps that only decode to compare with, or no ITL.
    """
    needs = (w.prefill_tokens_N, w.decode_requests_N)
    known_N = w.known(*needs, what="prefill tokens and decoding requests were")
    decode_N = known_N & (w.prefill_tokens_N == 0) & (w.decode_requests_N > 0)
    mixed_N = known_N & (w.prefill_tokens_N > 0) & (w.decode_requests_N > 0)
    if decode_N.sum() < MIN_STEPS:
        raise EvidenceError(f"{decode_N.sum()} steps only decode, at least {MIN_STEPS} wanted")
    plain_s = float(np.median(w.wall_N[decode_N]))
    slow_N = mixed_N & (w.wall_N > SLOW_RATIO * plain_s)
    slow = w.share(slow_N, *needs, what="prefill tokens and decoding requests were")
    itl_all = [ms for step in w.itl_ms for ms in step]
    itl_plain = [ms for step, plain in zip(w.itl_ms, decode_N, strict=True) if plain for ms in step]
    if not itl_plain:
        raise EvidenceError("no inter-token latencies in steps that only decode")
    p95 = float(np.percentile(itl_all, 95))
    plain_ms = float(np.median(itl_plain))
    if plain_ms <= 0:
        raise EvidenceError(f"inter-token latencies of {plain_ms:g} ms were recorded")
    ratio = p95 / plain_ms
    longest = float(np.max(w.prefill_tokens_N[mixed_N])) if mixed_N.any() else None
    evidence = [
        Evidence(
            measure="slow_prefill_frac",
            value=slow,
            unit="frac",
            threshold=NAMES_FROM,
            supports=slow >= NAMES_FROM,
            text=f"steps with prefill that took over {SLOW_RATIO:.0f} x as long as decode-only "
            f"ones ({plain_s * 1e3:.3g} ms) held decoders up for {slow:.0%} of the busy time",
        ),
        Evidence(
            measure="itl_p95_over_plain",
            value=ratio,
            unit="ratio",
            threshold=SLOW_RATIO,
            supports=ratio >= SLOW_RATIO,
            text=f"p95 ITL was {p95:.3g} ms, {ratio:.2g} x the {plain_ms:.3g} ms of decode-only "
            "steps",
        ),
    ]
    if longest is not None:
        text = f"up to {longest:.5g} prompt tokens were computed in one step beside decoders"
        evidence.append(
            Evidence(measure="prefill_tokens_max", value=longest, unit="tokens", text=text)
        )
    return Finding(
        cause=Cause.LONG_PREFILL,
        share=slow if ratio >= SLOW_RATIO else 0.0,
        evidence=tuple(evidence),
    )


PREFILL = Check(cause=Cause.LONG_PREFILL, names_from=NAMES_FROM, look=look)
