"""State of NVIDIA devices through the driver's library (NVML).

Names follow NVML's meaning: `util_frac` is the share of time in which at least one kernel ran, and
says nothing about efficiency; `mem_util_frac` the share in which memory was touched, not bandwidth.
`energy_j` and the `limited_..._s` are raw counters: use differences.

Source:
    NVML API reference, vR580, sections "Device Queries" and "Field Value Queries".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml

from rtopt.backends.backend import PiecewiseReader, Reader, Values
from rtopt.errors import UnavailableError
from rtopt.types import Accelerator

NO_DRIVER: Final = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver is installed here",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    pynvml.NVML_ERROR_NO_PERMISSION: "the NVIDIA driver refuses this user",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the NVIDIA driver and its library are of different"
    " versions: reboot, or load the new driver",
}
UNSUPPORTED: Final = frozenset(
    {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}
)
"""This device or driver does not have the reading at all: absent, and not tried again."""


class NvidiaBackend:
    """The NVIDIA devices that this process sees."""

    def __init__(self) -> None:
        """Load the driver's library.

        Raises:
            UnavailableError: There is no driver, no device, or it refuses.
        """
        try:
            pynvml.nvmlInit()
            self._handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
        except pynvml.NVMLError as error:
            reason = NO_DRIVER.get(error.value, f"NVML says: {error}")
            raise UnavailableError(f"nvidia: {reason}", code=error.value) from error
        if not self._handles:
            raise UnavailableError("nvidia: the driver shows no device to this process")

    def accelerators(self) -> tuple[Accelerator, ...]:
        """Each device with its memory and driver; what is not told is absent."""
        driver = _told(pynvml.nvmlSystemGetDriverVersion)
        return tuple(
            Accelerator(
                name=_told(pynvml.nvmlDeviceGetName, handle) or "NVIDIA device",
                memory_bytes=_told(lambda h: int(pynvml.nvmlDeviceGetMemoryInfo(h).total), handle),
                driver=driver,
            )
            for handle in self._handles
        )

    def open_readers(self) -> Sequence[Reader]:
        """One reader per device, "nvidia:0" and so on."""
        return [
            PiecewiseReader(f"nvidia:{index}", _pieces(handle), (pynvml.NVMLError,))
            for index, handle in enumerate(self._handles)
        ]


@dataclass(slots=True)
class _Piece:
    """One call; retired for good when the device does not support it."""

    read: Callable[[], Values]
    is_retired: bool = field(default=False)

    def __call__(self) -> Values:
        if self.is_retired:
            return {}
        try:
            return self.read()
        except pynvml.NVMLError as error:
            if error.value not in UNSUPPORTED:
                raise
            self.is_retired = True
            return {}


def _pieces(handle: Any) -> dict[str, Callable[[], Values]]:
    return {
        "utilisation": _Piece(lambda: _utilisation(handle)),
        "memory": _Piece(lambda: _memory(handle)),
        "power": _Piece(lambda: {"power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3}),
        "energy": _Piece(
            lambda: {"energy_j": pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3}
        ),
        "sm_clock": _Piece(lambda: {"sm_clock_hz": _clock(handle, pynvml.NVML_CLOCK_SM)}),
        "mem_clock": _Piece(lambda: {"mem_clock_hz": _clock(handle, pynvml.NVML_CLOCK_MEM)}),
        "throttle": _Piece(lambda: _throttle(handle)),
        "power_limited": _Piece(
            lambda: _limited(handle, pynvml.NVML_PERF_POLICY_POWER, "limited_by_power_s")
        ),
        "heat_limited": _Piece(
            lambda: _limited(handle, pynvml.NVML_PERF_POLICY_THERMAL, "limited_by_heat_s")
        ),
        "temperature": _Piece(
            lambda: {
                "temperature_c": pynvml.nvmlDeviceGetTemperature(
                    handle, pynvml.NVML_TEMPERATURE_GPU
                )
            }
        ),
    }


def _utilisation(handle: Any) -> Values:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"util_frac": rates.gpu / 100, "mem_util_frac": rates.memory / 100}


def _memory(handle: Any) -> Values:
    """Version 2 tells what the driver reserves from what is used; an old driver adds them up."""
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        old = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return {"mem_used_or_reserved_bytes": old.used, "mem_total_bytes": old.total}
    return {
        "mem_used_bytes": info.used,
        "mem_reserved_bytes": info.reserved,
        "mem_total_bytes": info.total,
    }


def _clock(handle: Any, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetClockInfo(handle, kind) * 1e6)


def _throttle(handle: Any) -> Values:
    """Bit mask of the reasons why clocks are down now, and the two that cost speed."""
    mask = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    power = pynvml.nvmlClocksThrottleReasonSwPowerCap
    heat = (
        pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
        | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    )
    return {
        "throttle_mask": mask,
        "is_power_capped": float(bool(mask & power)),
        "is_thermal_capped": float(bool(mask & heat)),
    }


def _limited(handle: Any, policy: int, name: str) -> Values:
    return {name: pynvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime / 1e9}


def _told(ask: Callable[..., Any], *of: Any) -> Any:
    """The answer, or None when the driver has none."""
    try:
        return ask(*of)
    except pynvml.NVMLError:
        return None
