from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from rtopt.backends.nvidia import NvidiaBackend
from rtopt.errors import UnavailableError


def failing(code: int) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(code)

    return call


ANSWERS: dict[str, Any] = {
    "nvmlInit": lambda: None,
    "nvmlDeviceGetCount": lambda: 1,
    "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
    "nvmlSystemGetDriverVersion": lambda: "580.1",
    "nvmlDeviceGetName": lambda _: "NVIDIA Test",
    "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=50, memory=25),
    "nvmlDeviceGetMemoryInfo": lambda _, version=None: SimpleNamespace(
        used=10, reserved=2, total=100
    ),
    "nvmlDeviceGetPowerUsage": lambda _: 300_500,
    "nvmlDeviceGetTotalEnergyConsumption": lambda _: 7_000,
    "nvmlDeviceGetClockInfo": lambda _, kind: 1500 if kind == pynvml.NVML_CLOCK_SM else 2600,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 4,
    "nvmlDeviceGetViolationStatus": lambda _, policy: SimpleNamespace(
        violationTime=2_000_000_000 + policy
    ),
    "nvmlDeviceGetTemperature": lambda _, sensor: 61,
}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The driver's library with one device."""
    for name, answer in ANSWERS.items():
        monkeypatch.setattr(pynvml, name, answer)
    return monkeypatch


@pytest.mark.usefixtures("driver")
def test_a_device_is_read_in_si_units() -> None:
    (reader,) = NvidiaBackend().open_readers()
    assert reader.source == "nvidia:0"
    assert reader.read() == pytest.approx(
        {
            "util_frac": 0.5,
            "mem_util_frac": 0.25,
            "mem_used_bytes": 10,
            "mem_reserved_bytes": 2,
            "mem_total_bytes": 100,
            "power_w": 300.5,
            "energy_j": 7.0,
            "sm_clock_hz": 1.5e9,
            "mem_clock_hz": 2.6e9,
            "throttle_mask": 4,
            "is_power_capped": 1.0,
            "is_thermal_capped": 0.0,
            "limited_by_power_s": 2.0,
            "limited_by_heat_s": 2.0,
            "temperature_c": 61,
        }
    )
    assert reader.failures == 0


def test_a_failed_reading_is_absent_and_counted_each_time(driver: pytest.MonkeyPatch) -> None:
    driver.setattr(pynvml, "nvmlDeviceGetPowerUsage", failing(pynvml.NVML_ERROR_UNKNOWN))
    (reader,) = NvidiaBackend().open_readers()
    assert "power_w" not in reader.read()
    assert "temperature_c" in reader.read()
    assert reader.failures == 2


def test_an_unsupported_reading_is_absent_and_no_failure(driver: pytest.MonkeyPatch) -> None:
    driver.setattr(
        pynvml, "nvmlDeviceGetUtilizationRates", failing(pynvml.NVML_ERROR_NOT_SUPPORTED)
    )
    (reader,) = NvidiaBackend().open_readers()
    assert "util_frac" not in reader.read()
    assert reader.failures == 0


def test_an_old_driver_says_used_and_reserved_together(driver: pytest.MonkeyPatch) -> None:
    def memory(_: Any, version: int | None = None) -> Any:
        if version is not None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(used=12, total=100)

    driver.setattr(pynvml, "nvmlDeviceGetMemoryInfo", memory)
    (reader,) = NvidiaBackend().open_readers()
    values = reader.read()
    assert values["mem_used_or_reserved_bytes"] == 12
    assert "mem_used_bytes" not in values


def test_a_lost_device_fails_every_reading(driver: pytest.MonkeyPatch) -> None:
    (reader,) = NvidiaBackend().open_readers()
    for name in ANSWERS:
        driver.setattr(pynvml, name, failing(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert reader.read() == {}
    assert reader.failures == 10


def test_devices_are_told_with_what_is_known(driver: pytest.MonkeyPatch) -> None:
    driver.setattr(pynvml, "nvmlSystemGetDriverVersion", failing(pynvml.NVML_ERROR_UNKNOWN))
    (device,) = NvidiaBackend().accelerators()
    assert (device.name, device.memory_bytes, device.driver) == ("NVIDIA Test", 100, None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver is installed"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "refuses this user"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "reboot"),
        (pynvml.NVML_ERROR_UNKNOWN, "NVML says"),
    ],
)
def test_a_missing_driver_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", failing(code))
    with pytest.raises(UnavailableError, match=message):
        NvidiaBackend()


def test_a_driver_without_devices_is_a_reason(driver: pytest.MonkeyPatch) -> None:
    driver.setattr(pynvml, "nvmlDeviceGetCount", lambda: 0)
    with pytest.raises(UnavailableError, match="no device"):
        NvidiaBackend()
