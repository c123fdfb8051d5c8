"""Zeros against random data: a step on zeros draws less power, so clocks stay higher."""

import threading
from statistics import fmean
from typing import Any, Final

from benchmarks.gpu.decode import Decode, Sizes

SECONDS: Final = 8.0


def measure(*, is_dry: bool) -> dict[str, Any]:
    """Step time, power and clock by what the tensors hold."""
    return {fill: one(fill, is_dry=is_dry) for fill in ("zeros", "random")}


def one(fill: str, *, is_dry: bool) -> dict[str, Any]:
    """A graph of the step for some seconds; dry: without the device's readings."""
    decode = Decode(Sizes.of(is_dry=is_dry), is_dry=is_dry, fill=fill)
    step = decode.graph()
    if is_dry:
        return {"step": decode.time_ms(step, seconds=0.05)}
    with DeviceState() as state:
        times = decode.time_ms(step, seconds=SECONDS)
    return {"step": times, "power_w": fmean(state.power_w), "sm_clock_hz": fmean(state.clock_hz)}


class DeviceState:
    """Power and clock, ten times a second, from a thread."""

    def __init__(self) -> None:
        self.power_w: list[float] = []
        self.clock_hz: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "DeviceState":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        while not self._stop.wait(0.1):
            self.power_w.append(pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3)
            self.clock_hz.append(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM) * 1e6)
