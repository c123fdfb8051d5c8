"""How much slower a decode step is with each kind of tracing, eager and in a CUDA graph."""

import multiprocessing
import queue
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from benchmarks.gpu.decode import Decode, Sizes

SECONDS: Final = 4.0
LIMIT_S: Final = 30.0


def measure(*, is_dry: bool) -> dict[str, Any]:
    """A table: way of tracing to times of a step, or what went wrong with it.

    Each way has a process of its own: graph-level tracing can't be taken back in a process.
    """
    return {name: apart(name, is_dry=is_dry) for name in WAYS}


def apart(name: str, *, is_dry: bool) -> dict[str, Any]:
    """One way in a fresh process."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    child = context.Process(target=_child, args=(name, is_dry, answers))
    child.start()
    try:
        answer: dict[str, Any] = answers.get(timeout=LIMIT_S)
    except queue.Empty:
        answer = {"error": f"no answer in {LIMIT_S:g} s"}
        child.kill()
    child.join()
    return answer


def _child(name: str, is_dry: bool, answers: Any) -> None:
    try:
        answers.put(times(name, is_dry=is_dry))
    except Exception as error:  # noqa: BLE001 # whatever it is, it is this way's result
        answers.put({"error": f"{type(error).__name__}: {error}"})


def times(name: str, *, is_dry: bool) -> dict[str, Any]:
    """Of a step, eager and replayed, within one way of tracing."""
    decode = Decode(Sizes.of(is_dry=is_dry), is_dry=is_dry)
    replay = decode.graph()
    seconds = 0.05 if is_dry else SECONDS
    with WAYS[name](is_dry) as session:
        found: dict[str, Any] = {
            "eager": decode.time_ms(decode.step, seconds=seconds),
            "graph": decode.time_ms(replay, seconds=seconds),
        }
    activity = getattr(session, "activity", None)
    if activity is not None:
        found["events"] = len(activity.device) + len(activity.host)
        found["dropped"] = activity.dropped
    return found


def kineto(is_dry: bool) -> AbstractContextManager[Any]:
    """torch.profiler as vLLM starts it: shapes on, stacks off."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] + ([] if is_dry else [ProfilerActivity.CUDA])
    return profile(activities=kinds, record_shapes=True, acc_events=True)


def cupti(*kinds: Any) -> Callable[[bool], AbstractContextManager[Any]]:
    """Our own session with these kinds of records."""

    def open_session(_is_dry: bool) -> AbstractContextManager[Any]:
        from rtopt.backends.cupti import CuptiSession

        return CuptiSession(kinds)

    return open_session


WAYS: Final[dict[str, Callable[[bool], AbstractContextManager[Any]]]] = {
    "none": lambda _: nullcontext(),
    "kineto": kineto,
    "cupti kernel": cupti("kernel"),
    "cupti kernel, runtime": cupti("kernel", "runtime"),
    "cupti graph": cupti("graph"),
}
