"""Real vLLM servers for the whole session: a small model on the CPU, unmodified, overlay on."""

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from rtopt.engines.secret import find_token
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.profile.events.routes import WANTED
from rtopt.traffic import ClosedLoop, LoadProcess

MODEL = "SmolLM2-135M-Instruct"
FLAGS = ("--enforce-eager", "--max-num-seqs", "32", "--max-num-active-seqs", "4")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.engine)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session", autouse=True)
def _vllm_is_here() -> None:
    if find_spec("vllm") is None:
        pytest.skip("no vLLM is installed: make setup")


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs, journals and tokens of the tests, apart from the user's."""
    home = tmp_path_factory.mktemp("state")
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(home)
    yield home
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session")
def fail_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names of the overlay's hooks that shall raise; empty: none."""
    path = tmp_path_factory.mktemp("fail") / "hooks"
    path.write_text("")
    return path


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, state_home: Path, fail_file: Path
) -> Iterator[VllmProcess]:
    """The shared engine: 32 slots, of which 4 may be used."""
    log = tmp_path_factory.mktemp("shared") / "vllm.log"
    process = VllmProcess(
        flags=FLAGS,
        log=log,
        extra_env={"RTOPT_OVERLAY_FAIL": f"@{fail_file}"},
        # The engine spins on every core while it has work; the controllers shall get a word in.
        prefix=("nice", "-n", "10"),
    )
    with process:
        yield process


@pytest.fixture(scope="session")
def api_key() -> str:
    """The key that `guarded` wants."""
    return "canary-api-key-5f3a"


@pytest.fixture(scope="session")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, state_home: Path, api_key: str
) -> Iterator[VllmProcess]:
    """A server behind an API key that has a profiler."""
    folder = tmp_path_factory.mktemp("guarded")
    profiler = WANTED | {"torch_profiler_dir": str(folder)}
    process = VllmProcess(
        flags=("--enforce-eager", "--profiler-config", json.dumps(profiler)),
        log=folder / "vllm.log",
        extra_env={"VLLM_API_KEY": api_key},
        prefix=("nice", "-n", "10"),
    )
    with process:
        yield process


@pytest.fixture
def engine(server: VllmProcess) -> Iterator[VllmServer]:
    """A controller of the shared engine; the engine is back at its start-up values afterwards."""
    made = VllmServer(server.url, token=find_token(server.url), lease_s=10)
    yield made
    made.restore_start(force=True)
    made.close()


@pytest.fixture
def load(server: VllmProcess) -> Iterator[LoadProcess]:
    """32 clients with fresh prompts and short answers; `stop` gives the tally."""
    offered = ClosedLoop(url=server.url, model=MODEL, clients=32, seed=7, duration_s=300)
    with LoadProcess(offered) as process:
        yield process
