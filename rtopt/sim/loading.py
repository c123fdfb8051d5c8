"""Importing vLLM late, quietly, and without leaving traces in this process's environment.

vLLM takes seconds to import, is not there on every machine, configures its logging from the
environment while it is imported, and sets environment variables (LD_PRELOAD among them) while a
configuration is built. So it is imported when the first simulator is made, in a copy of the
environment that is put back afterwards.
"""

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from rtopt.errors import UnavailableError

_QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}


@contextmanager
def borrowed_environment() -> Iterator[None]:
    """Quiet and offline inside; what the environment was, outside.

    A process that imported vLLM before keeps the logging it has.
    """
    before = dict(os.environ)
    os.environ.update({k: v for k, v in _QUIET.items() if k not in before})
    try:
        with warnings.catch_warnings():
            # Deprecations inside torch and vLLM: nobody here can act on them.
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def load_scheduler() -> ModuleType:
    """Give `rtopt.sim.vllm_scheduler`, the one file of the replay that imports vLLM.

    Raises:
        UnavailableError: vLLM cannot be imported here.
    """
    if "vllm" not in sys.modules:
        # Some of its messages come before it has read VLLM_LOGGING_LEVEL.
        logging.getLogger("vllm").setLevel(logging.ERROR)
    with borrowed_environment():
        try:
            return importlib.import_module("rtopt.sim.vllm_scheduler")
        except ImportError as error:
            raise UnavailableError(
                f"replay needs vLLM's scheduler, and vLLM cannot be imported here ({error})."
                " Install the engine's version beside rtopt: pip install 'rtopt[cpu]' (or [cuda])."
                " Nothing was predicted.",
            ) from error
