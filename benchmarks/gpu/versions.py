"""What is installed, what the device is, and which readings NVML has."""

import importlib.metadata
import platform
from typing import Any, Final

PACKAGES: Final = (
    "torch",
    "triton",
    "numpy",
    "cuda-bindings",
    "cupti-python",
    "nvidia-cuda-cupti",
    "nvidia-cuda-cupti-cu12",
    "nvidia-ml-py",
)


def measure(*, is_dry: bool) -> dict[str, Any]:
    """Versions by package, the device, and NVML's answers; dry: no driver is asked."""
    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "device": None if is_dry else device(),
        "nvml": None if is_dry else nvml(),
    }


def version(name: str) -> str | None:
    """Of a distribution; None when it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def device() -> dict[str, Any]:
    """What torch says about the device."""
    import torch

    about = torch.cuda.get_device_properties(0)
    return {
        "name": about.name,
        "memory_bytes": about.total_memory,
        "multiprocessors": about.multi_processor_count,
        "capability": [about.major, about.minor],
        "cuda": torch.version.cuda,
    }


def nvml() -> dict[str, Any]:
    """Each field value with its reading or the code of its error."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    fields = {
        name: number
        for name, number in vars(pynvml).items()
        if name.startswith("NVML_FI_DEV_") and isinstance(number, int)
    }
    answers: dict[str, Any] = {}
    for name, number in fields.items():
        try:
            (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [number])
        except pynvml.NVMLError as error:
            answers[name] = {"code": error.value}
            continue
        if value.nvmlReturn != pynvml.NVML_SUCCESS:
            answers[name] = {"code": value.nvmlReturn}
        else:
            answers[name] = {"type": value.valueType, "value": int(value.value.ullVal)}
    return {"driver": str(pynvml.nvmlSystemGetDriverVersion()), "fields": answers}
