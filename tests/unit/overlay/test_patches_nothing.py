"""vLLM's classes and functions before and after the overlay is installed, in a real vLLM."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rtopt.engines.launch import overlay_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed: make setup"),
]

LOOK = """
import json, sys
import vllm
import vllm.v1.engine.async_llm, vllm.v1.engine.core, vllm.v1.engine.core_client
import vllm.v1.core.sched.async_scheduler, vllm.v1.core.sched.scheduler, vllm.v1.metrics.loggers
import vllm.entrypoints.openai.api_server
from vllm.platforms import current_platform
from fastapi import FastAPI
from fastapi.routing import APIRoute


def snapshot():
    '''Every class and function that vLLM's loaded modules name, and every attribute of a class.'''
    found = {}
    for module in [m for n, m in sorted(sys.modules.items()) if n.partition(".")[0] == "vllm"]:
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__.partition(".")[0] == "vllm":
                where = f"{value.__module__}.{value.__qualname__}"
                found.update({f"{where}.{k}": v for k, v in vars(value).items()})
                found[f"{module.__name__}.{name}"] = value
            elif callable(value):
                found[f"{module.__name__}.{name}"] = value
    return found


before, modules = snapshot(), set(sys.modules)
from rtopt_overlay.engine import install
from rtopt_overlay.recorder import StepRecorder
from rtopt_overlay.routes import RtoptRoutes

install()
install()  # vLLM loads plug-ins in every process, and forked ones have it already
StepRecorder(None)
app = FastAPI()
RtoptRoutes().attach_router(app)
after = snapshot()
new = {m for m in set(sys.modules) - modules if m.partition(".")[0] == "vllm"}
print(json.dumps({
    "looked_at": len(before),
    "added": sorted(k for k in after.keys() - before.keys()
                    if not any(k.startswith(m) for m in new)),
    "gone": sorted(before.keys() - after.keys()),
    "replaced": sorted(k for k in before.keys() & after.keys() if before[k] is not after[k]),
    "classes": sorted({k.rpartition(".")[0] for k in before}),
    "routes": sorted(f"{m} {r.path}" for r in app.routes
                     if r.path.startswith("/rtopt") for m in r.methods),
}))
"""
LOOKED_AT = (
    "vllm.v1.core.sched.async_scheduler.AsyncScheduler",
    "vllm.v1.core.sched.scheduler.Scheduler",
    "vllm.v1.engine.async_llm.AsyncLLM",
    "vllm.v1.engine.core.EngineCore",
    "vllm.v1.engine.core.EngineCoreProc",
    "vllm.v1.engine.core_client.AsyncMPClient",
    "vllm.v1.metrics.loggers.StatLoggerManager",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the overlay changed in a process that has it on its path."""
    quiet = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, **quiet, "PYTHONPATH": str(overlay_path())},
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_enginecore_gets_two_new_methods_and_no_other_name_appears(found: dict[str, Any]) -> None:
    assert found["added"] == [
        "vllm.v1.engine.core.EngineCore.rtopt_call",
        "vllm.v1.engine.core.EngineCore.rtopt_expire",
    ]


def test_nothing_of_vllm_is_replaced_or_removed(found: dict[str, Any]) -> None:
    assert (found["replaced"], found["gone"]) == ([], [])


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_look_covers_the_classes_that_matter(found: dict[str, Any], name: str) -> None:
    assert name in found["classes"]


def test_the_page_on_the_overlay_names_every_route(found: dict[str, Any]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "overlay.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:GET|POST) /rtopt/\w+)", page, flags=re.MULTILINE)
    assert sorted(rows) == found["routes"]
