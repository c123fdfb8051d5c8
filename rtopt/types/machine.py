"""What the engine runs on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device, as its vendor's library names it."""

    name: str
    memory_bytes: int | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Hardware and operating system, without any host or user name."""

    cpu: str
    num_cpus: int | None = None
    """Processors that the process may use; absent when only its metrics page was seen."""
    memory_bytes: int | None = None
    accelerators: tuple[Accelerator, ...] = ()
    kernel: str | None = None
    python: str | None = None
