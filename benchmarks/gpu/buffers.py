"""How many records per second CUPTI hands over, and how many it drops, by size of its buffers."""

import time
from typing import Any, Final

from benchmarks.gpu.decode import Decode, Sizes
from rtopt.backends.cupti import CuptiSession

MEGABYTES: Final = (1, 8, 32)
SECONDS: Final = 10.0


def measure(*, is_dry: bool) -> dict[str, Any]:
    """Replay the step for some seconds with each size."""
    decode = Decode(Sizes.of(is_dry=is_dry), is_dry=is_dry)
    replay = decode.graph()
    found: dict[str, Any] = {}
    for size in MEGABYTES:
        with CuptiSession(["kernel"], buffer_bytes=size << 20) as session:
            began_s, num_calls = time.perf_counter(), 0
            while time.perf_counter() - began_s < (0.05 if is_dry else SECONDS):
                replay()
                num_calls += 1
            decode.wait()
            took_s = time.perf_counter() - began_s
        assert session.activity is not None
        events = len(session.activity.device)
        found[f"{size} MB"] = {
            "calls": num_calls,
            "events": events,
            "events_per_s": events / took_s,
            "dropped": session.activity.dropped,
        }
    return found
