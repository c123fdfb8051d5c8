"""Which planes of telemetry this machine can give, and which levers there are."""

from collections.abc import Iterator
from importlib.util import find_spec

from rtopt.apply import load_levers
from rtopt.backends import BACKENDS, absences
from rtopt.doctor.check import Check

PROFILER_FLAG = '--profiler-config \'{"profiler": "torch", "torch_profiler_dir": "FOLDER"}\''


def planes() -> Iterator[Check]:
    """Steps, state and events: what gives each of them here."""
    if find_spec("vllm") is None:
        yield _plane("step", None, fix="pip install 'rtopt[cuda]', or 'rtopt[cpu]' without a GPU")
        yield _plane("event", None, fix="pip install 'rtopt[cuda]', or 'rtopt[cpu]' without a GPU")
    else:
        yield _plane("step", "from a server that runs with the overlay: rtopt serve")
        yield _plane("event", f"from a server that was started with {PROFILER_FLAG}")
    absent = absences()
    there = ", ".join(name for name in BACKENDS if name not in absent)
    yield _plane("state", there or None, fix="; ".join(absent.values()) if not there else "")
    for name, reason in absent.items():
        yield Check(name=f"state of {name}", found=reason, is_ok=False, is_needed=False)


def levers() -> Iterator[Check]:
    """Every lever that is installed here; whether a server has its knob, the server says."""
    for lever in load_levers().values():
        found = f"{lever.title}, {lever.scope}"
        yield Check(name=f"lever {lever.id}", found=found, is_ok=True, is_needed=False)


def _plane(plane: str, found: str | None, *, fix: str = "") -> Check:
    return Check(
        name=f"plane {plane}",
        found=found or "nothing here gives it",
        is_ok=found is not None,
        is_needed=False,
        fix=fix,
    )
