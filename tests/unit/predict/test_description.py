"""A prediction in words and numbers."""

from rtopt.predict import describe
from rtopt.types import (
    Clock,
    End,
    EngineInfo,
    Estimate,
    Header,
    Interval,
    Machine,
    Prediction,
    Step,
    Trace,
)

NOW = Clock(mono_ns=0, unix_ns=0)
TRACE = Trace(
    header=Header(
        source="overlay",
        engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
        machine=Machine(cpu="x", num_cpus=2),
        clock=NOW,
        start_ns=0,
        knobs={},
    ),
    end=End(end_ns=10**9, clock=NOW),
    steps=(Step(t_ns=10**8, output_tokens=3, itl_ms=(50.0, 60.0)),),
)


def _prediction(cap: int, tokens: float) -> Prediction:
    return Prediction(
        method="replay",
        knobs={"max_num_active_seqs": cap},
        metrics={
            "throughput": Estimate(
                value=tokens, interval=Interval(low=tokens - 1, high=tokens + 1, level=0.9)
            )
        },
        assumptions=(f"cap {cap} was never tried",),
    )


def test_measured_replayed_and_what_if_stand_side_by_side() -> None:
    text = describe(TRACE, _prediction(8, 3.2), _prediction(16, 6.0))

    (row,) = [line for line in text.splitlines() if line.startswith("Output tokens per second")]
    assert all(cell in row for cell in ("3.0", "3.2 [2.2, 4.2]", "6.0 [5.0, 7.0]"))
    assert "what if: max_num_active_seqs=16" in text
    assert "intervals of 90%" in text
    assert "Assumed: cap 16 was never tried." in text


def test_what_was_not_predicted_is_a_dash() -> None:
    text = describe(TRACE, _prediction(8, 3.2))

    (row,) = [line for line in text.splitlines() if line.startswith("Mean time between tokens")]
    assert row.split()[-2:] == ["55.0", "-"]
