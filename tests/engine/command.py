"""Runs the command line as a user does: in a process of its own."""

import subprocess
import sys


def rtopt(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """The finished command, with its output."""
    return subprocess.run(
        [sys.executable, "-m", "rtopt", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
