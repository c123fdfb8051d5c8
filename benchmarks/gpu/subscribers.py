"""What a second user of CUPTI is told while Kineto has it."""

from typing import Any

from benchmarks.gpu.decode import Decode, Sizes
from benchmarks.gpu.overhead import kineto
from rtopt.backends.cupti import CuptiSession
from rtopt.errors import UnavailableError


def measure(*, is_dry: bool) -> dict[str, Any]:
    """Ours within Kineto, and Kineto within ours."""
    decode = Decode(Sizes.of(is_dry=is_dry), is_dry=is_dry)
    with kineto(is_dry) as profiler:
        decode.step()
        decode.wait()
        ours = attempt(decode)
        decode.step()
        decode.wait()
    kept = sum(event.count for event in profiler.key_averages())
    return {"ours_within_kineto": ours, "kineto_events_after": kept, "ours_alone": attempt(decode)}


def attempt(decode: Decode) -> dict[str, Any]:
    """One session of ours around a step."""
    try:
        with CuptiSession() as session:
            decode.step()
            decode.wait()
    except UnavailableError as error:
        return {"message": str(error), "facts": {k: str(v) for k, v in error.facts.items()}}
    assert session.activity is not None
    return {"events": len(session.activity.device), "dropped": session.activity.dropped}
