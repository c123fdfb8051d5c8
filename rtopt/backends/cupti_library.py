"""The CUPTI library of this process, with one error for all the ways in which it can fail.

Not yet run on a GPU. Without a driver the first call, not the import, fails, and with a
RuntimeError that is no cuptiError.
"""

import importlib
import importlib.metadata
from typing import Any, Final, NoReturn

from rtopt.errors import UnavailableError

BUSY: Final = 39
"""CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED."""
_EXTRA: Final = "pip install 'rtopt[cupti]'"
_HOLDERS: Final = "torch.profiler (also vLLM's own), nsys, ncu, or cuda-gdb"


class Cupti:
    """Calls by their names."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            UnavailableError: cupti-python is not installed, or does not load here.
        """
        self._module = _load()
        self._error: type[BaseException] = getattr(self._module, "cuptiError", RuntimeError)

    def has(self, name: str) -> bool:
        """Whether this release has the function."""
        return hasattr(self._module, name)

    def call(self, name: str, *of: Any) -> Any:
        """Call it.

        Raises:
            UnavailableError: It is not there, failed, or somebody else has CUPTI.
        """
        if not self.has(name):
            raise UnavailableError(
                f"cupti: {name} is not in cupti-python {version()}; wanted one of 13.0 or later:"
                f" {_EXTRA}",
                tried=name,
                came_back="no such function",
            )
        try:
            return getattr(self._module, name)(*of)
        except (RuntimeError, self._error) as error:
            code = _code(error)
            if code == BUSY:
                busy(error)
            raise UnavailableError(
                f"cupti: {name} failed: {_told(error)}. {_help(error, code)}",
                tried=name,
                came_back=_told(error),
                code=code,
            ) from error


def busy(error: BaseException | None = None) -> NoReturn:
    """Say that somebody else has CUPTI; None: CUPTI itself said so before anything was tried."""
    raise UnavailableError(
        f"cupti: another profiler has it in this process, likely {_HOLDERS}. Two would spoil each"
        " other's events, so nothing was registered. End that one first.",
        tried="is_tracing_session_running" if error is None else "subscribe",
        came_back="a session is running" if error is None else _told(error),
        code=None if error is None else BUSY,
        reason="busy",
    ) from error


def version() -> str | None:
    """Of cupti-python; None when it is not installed as a distribution."""
    try:
        return importlib.metadata.version("cupti-python")
    except importlib.metadata.PackageNotFoundError:
        return None


def _load() -> Any:
    try:
        return importlib.import_module("cupti.cupti")
    except ImportError as error:
        raise UnavailableError(
            f"cupti: import failed: {_told(error)}. {_EXTRA}; with a torch of CUDA 13.0,"
            " 'cupti-python==13.0.*' fits what it brings",
            tried="import cupti.cupti",
            came_back=_told(error),
        ) from error
    except RuntimeError as error:
        raise UnavailableError(
            f"cupti: import failed: {_told(error)}. {_help(error, None)}",
            tried="import cupti.cupti",
            came_back=_told(error),
        ) from error


def _code(error: BaseException) -> int | None:
    """CUPTI's number of the error, when it carries one."""
    status = getattr(error, "status", None)
    try:
        return None if status is None else int(status)
    except (TypeError, ValueError):
        return None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _help(error: BaseException, code: int | None) -> str:
    if "driver is not found" in str(error):
        return "No NVIDIA driver is installed here; it takes one, and a device"
    if code is None:
        return "Is an NVIDIA driver installed, and does its version fit the CUPTI library?"
    return f"CUPTI's code {code}: does the driver's version fit the CUPTI library?"
