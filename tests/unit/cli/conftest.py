"""The command line as a user has it: words in, lines and an exit code out."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    def line(self) -> str:
        """The one line on standard error."""
        assert "Traceback" not in self.out + self.err, self.err
        (line,) = self.err.splitlines()
        assert line.startswith("rtopt: ")
        return line


@dataclass(kw_only=True)
class CommandLine:
    """Runs commands in a folder of their own, with a home and a state folder of their own."""

    folder: Path
    server: "subprocess.Popen[str]"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """Where runs are kept."""
        return self.folder / "state" / "rtopt"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PYTHONPATH": str(ROOT),
            "OPENBLAS_NUM_THREADS": "1",
            **self.env,
            **more,
        }

    def __call__(self, *words: str, **env: str) -> Done:
        """Run a command to its end."""
        out, err = self.folder / "out", self.folder / "err"
        asked = {
            "words": words,
            "folder": str(self.folder),
            "env": self.environment(env),
            "out": str(out),
            "err": str(err),
        }
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        return Done(code=code, out=out.read_text(), err=err.read_text())

    def start(self, *words: str, **env: str) -> "subprocess.Popen[str]":
        """Start `python -m rtopt` as it is."""
        return subprocess.Popen(
            [sys.executable, "-m", "rtopt", *words],
            cwd=self.folder,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def ended(process: "subprocess.Popen[str]", timeout_s: float = 60) -> Done:
    """Wait for a started command."""
    out, err = process.communicate(timeout=timeout_s)
    return Done(code=process.returncode, out=out, err=err)


@pytest.fixture(scope="session")
def command_server() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(Path(__file__).parent / "command_server.py")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        yield process


@pytest.fixture
def rtopt(tmp_path: Path, command_server: "subprocess.Popen[str]") -> CommandLine:
    """The command line, with nothing from before."""
    (tmp_path / "home").mkdir()
    return CommandLine(folder=tmp_path, server=command_server)
