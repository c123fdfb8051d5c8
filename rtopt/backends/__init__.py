"""What the machine is and how it does: one backend per kind of hardware."""

from collections.abc import Callable
from dataclasses import replace

from rtopt.backends.backend import Backend, Reader
from rtopt.errors import UnavailableError
from rtopt.types import Machine

__all__ = ["BACKENDS", "Backend", "Reader", "absences", "machine", "open_readers"]


def _cpu() -> Backend:
    from rtopt.backends.cpu import CpuBackend

    return CpuBackend()


def _nvidia() -> Backend:
    from rtopt.backends.nvidia import NvidiaBackend

    return NvidiaBackend()


BACKENDS: dict[str, Callable[[], Backend]] = {"cpu": _cpu, "nvidia": _nvidia}
"""Every backend by its name; calling one raises UnavailableError where its hardware is not."""


def open_readers() -> list[Reader]:
    """One reader per source of state that this machine has; `absences` says what it has not."""
    return [reader for backend in _present().values() for reader in backend.open_readers()]


def machine() -> Machine:
    """What this machine is, without any host or user name."""
    from rtopt.backends.host import host

    accelerators = tuple(a for backend in _present().values() for a in backend.accelerators())
    return replace(host(), accelerators=accelerators)


def absences() -> dict[str, str]:
    """Each backend that cannot be used here, and why."""
    reasons: dict[str, str] = {}
    for name, make in BACKENDS.items():
        try:
            make()
        except UnavailableError as error:
            reasons[name] = str(error)
    return reasons


def _present() -> dict[str, Backend]:
    found: dict[str, Backend] = {}
    for name, make in BACKENDS.items():
        try:
            found[name] = make()
        except UnavailableError:
            continue  # its reason is what `absences` gives
    return found
