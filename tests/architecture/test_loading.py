"""What is loaded when: rtopt is imported into other people's processes, and help must be quick."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "econml",
    "httpx",
    "jinja2",
    "matplotlib",
    "numpy",
    "pandas",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pynvml",
    "scipy",
    "sklearn",
    "statsmodels",
    "torch",
    "transformers",
    "vllm",
)
CONSOLE = ("rich", "typer")
HELP_S = 0.5

LOADED = """
import json, os, sys
{code}
names = sorted(sys.modules)
used = os.times()
print(json.dumps({{"modules": names, "cpu_s": used.user + used.system}}))
"""
HELP = """
import contextlib, io
from rtopt.cli import main
sys.argv = ["rtopt", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""


def after(code: str) -> tuple[set[str], float]:
    """Modules that are loaded after this code, in a process of its own, and its CPU seconds."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code=code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = json.loads(done.stdout)
    return set(found["modules"]), found["cpu_s"]


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_import_rtopt_loads_nothing_heavy() -> None:
    modules, _ = after("import rtopt")
    assert roots(modules) & {*HEAVY, *CONSOLE} == set()
    assert {name for name in modules if name.startswith("rtopt.")} == {"rtopt.version"}


def test_a_levers_file_loads_the_nouns_and_nothing_heavy() -> None:
    modules, _ = after("from rtopt import Cause, Change, Context, Envelope, Lever")
    assert roots(modules) & {*HEAVY, *CONSOLE} == set()


def test_help_loads_no_stage_and_nothing_heavy_and_is_quick() -> None:
    runs = [after(HELP) for _ in range(3)]
    modules, _ = runs[0]
    assert roots(modules) & set(HEAVY) == set()
    ours = {name.split(".")[1] for name in modules if name.startswith("rtopt.")}
    assert ours == {"cli", "errors", "types", "version"}
    assert min(cpu_s for _, cpu_s in runs) < HELP_S, "CPU seconds, the best of three"


@pytest.mark.parametrize("stage", ["profile", "predict", "attribute", "apply", "report"])
def test_no_stage_loads_vllm_or_draws_when_it_is_imported(stage: str) -> None:
    modules, _ = after(f"import rtopt.{stage}")
    assert roots(modules) & {"vllm", "torch", "matplotlib", "econml", "statsmodels"} == set()
