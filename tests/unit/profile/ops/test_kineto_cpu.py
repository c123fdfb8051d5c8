"""One real trace of the CPU engine: SmolLM2-135M, 30 layers, three decode steps at batch 4."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from rtopt.errors import EvidenceError
from rtopt.profile.ops import Account, account, check_matched, describe, split
from rtopt.profile.ops.classes import OpClass
from rtopt.types import HostEvent

FIXTURE = Path(__file__).parents[1] / "fixtures" / "kineto_cpu.json.gz"
LAYERS = 30


@pytest.fixture(scope="module")
def host() -> tuple[HostEvent, ...]:
    document = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    base_ns = int(document.get("baseTimeNanoseconds", 0))
    return tuple(
        HostEvent(
            t_ns=base_ns + round(event["ts"] * 1000),
            dur_ns=round(event["dur"] * 1000),
            name=event["name"],
            what="range" if event["cat"] == "user_annotation" else "op",
            thread=event["tid"],
            dims=tuple(
                tuple(dims) if all(isinstance(d, int) for d in dims) else ()
                for dims in event["args"].get("Input Dims", ())
            ),
        )
        for event in document["traceEvents"]
    )


@pytest.fixture(scope="module")
def accounts(host: tuple[HostEvent, ...]) -> tuple[Account, ...]:
    return tuple(account(step) for step in split(host))


def test_the_fixture_names_no_path_and_is_small() -> None:
    data = FIXTURE.read_bytes()
    assert len(data) <= 200_000
    text = gzip.decompress(data).decode()
    assert not any(word in text for word in ("/home", "/root", "/work", "/tmp", "hostname"))


def test_three_steps_are_split_in_order(accounts: tuple[Account, ...]) -> None:
    windows = [a.step.window for a in accounts]
    assert [a.step.index for a in accounts] == [0, 1, 2]
    assert all(a.t_ns + a.dur_ns <= b.t_ns for a, b in pairwise(windows))


def test_the_thirty_layers_are_recovered_in_each_step(accounts: tuple[Account, ...]) -> None:
    assert [a.period.layers if a.period else 0 for a in accounts] == [LAYERS] * 3


def test_a_layer_holds_four_matrix_products_one_attention_and_one_cache_write(
    accounts: tuple[Account, ...],
) -> None:
    for done in accounts:
        in_layers = [p.op_class for p in done.ops if p.part == "layer"]
        assert in_layers.count(OpClass.MATMUL) == 4 * LAYERS
        assert in_layers.count(OpClass.ATTENTION) == LAYERS
        assert in_layers.count(OpClass.KV_WRITE) == LAYERS


def test_at_most_a_tenth_of_the_ops_time_is_unmatched(accounts: tuple[Account, ...]) -> None:
    assert check_matched(accounts) <= 0.10


def test_ops_and_the_gap_of_the_host_add_up_to_the_step(accounts: tuple[Account, ...]) -> None:
    for done in accounts:
        assert done.gap_ns > 0
        assert done.op_ns + done.gap_ns == pytest.approx(done.step.window.dur_ns, rel=0.03)


def test_the_table_names_classes_the_gap_the_step_and_the_layers(
    accounts: tuple[Account, ...],
) -> None:
    rows = {row[0]: row for row in describe(accounts)}
    assert rows["layers found"][3] == "30"
    assert rows["step"][2] == "100.0%"
    assert float(rows["matrix product"][1]) > float(rows["rotary embedding"][1])
    assert "host gap (Python, dispatch)" in rows


def test_steps_without_ops_get_no_verdict(host: tuple[HostEvent, ...]) -> None:
    empty = tuple(account(step) for step in split(e for e in host if e.what == "range"))
    with pytest.raises(EvidenceError, match="3 annotated steps with no op"):
        describe(empty)


def test_ops_of_unknown_names_are_never_guessed(host: tuple[HostEvent, ...]) -> None:
    renamed = tuple(
        HostEvent(
            t_ns=e.t_ns,
            dur_ns=e.dur_ns,
            name=e.name if e.what == "range" else f"my_{e.name}",
            what=e.what,
            thread=e.thread,
            dims=e.dims,
        )
        for e in host
    )
    with pytest.raises(EvidenceError, match="100% of the time is not matched"):
        describe([account(step) for step in split(renamed)])
