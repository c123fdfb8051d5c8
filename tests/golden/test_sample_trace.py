"""The recordings in traces/: readable, private, and understood as they were recorded."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import pytest

from rtopt.attribute import rank
from rtopt.metrics import measure
from rtopt.predict import compare, run
from rtopt.storage import read_trace
from rtopt.types import Cause

TRACES = sorted((Path(__file__).parents[2] / "traces").glob("*.jsonl.gz"))
CAP4 = next(path for path in TRACES if path.name == "smollm2_cpu_cap4.jsonl.gz")


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_sample_reads_without_a_note(path: Path) -> None:
    trace = read_trace(path)
    assert trace.notes == ()
    assert trace.steps
    assert trace.requests


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_sample_names_no_path(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    for private in ("/root", "/home", "/tmp", "/work"):
        assert private not in text


@pytest.mark.skipif(find_spec("vllm") is None, reason="replay needs vLLM: make setup")
def test_a_cap_of_four_is_replayed_and_named() -> None:
    trace = read_trace(CAP4)
    prediction = run(trace)
    measured = measure(trace)
    # The recorded knobs on the recorded traffic; 5 % is the drift of a shared CPU over 25 s.
    for name in ("throughput", "itl_mean", "ttft_mean"):
        assert prediction.metrics[name].value == pytest.approx(measured[name], rel=0.05)
    attribution = rank(trace, compare(trace, prediction))
    assert attribution.causes == {Cause.SLOTS_FULL}
