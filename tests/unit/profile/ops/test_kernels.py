"""From work on a device to its op: correlation, sequence, reference, and what stays unknown."""

from dataclasses import replace

import pytest

from rtopt.errors import EvidenceError
from rtopt.profile.ops import (
    by_correlation,
    by_node,
    by_reference,
    by_sequence,
    check_known,
    dictionary,
    name_ops,
    unknown_frac,
)
from rtopt.types import (
    Clock,
    DeviceEvent,
    End,
    EngineInfo,
    Header,
    HostEvent,
    Machine,
    Trace,
)

STEP = "execute_context_0(0)_generation_4(4)"
LAYER = (("gemm", 8, "aten::mm"), ("attend", 4, "vllm::attention"), ("gemm", 2, "aten::linear"))


def kernel(name: str, t_ns: int, grid: int = 1, **more: object) -> DeviceEvent:
    made = DeviceEvent(t_ns=t_ns, dur_ns=10, name=name, grid=(grid, 1, 1), block=(128, 1, 1))
    return replace(made, **more)  # type: ignore[arg-type]  # fields of the noun


def launch(correlation: int, t_ns: int, thread: int = 1) -> HostEvent:
    return HostEvent(
        t_ns=t_ns,
        dur_ns=2,
        name="cudaLaunchKernel",
        what="launch",
        thread=thread,
        correlation=correlation,
    )


def op(name: str, t_ns: int, dur_ns: int, thread: int = 1) -> HostEvent:
    return HostEvent(t_ns=t_ns, dur_ns=dur_ns, name=name, thread=thread)


HOST = (
    HostEvent(t_ns=0, dur_ns=100, name=STEP, what="range", thread=1),
    op("aten::linear", 10, 40),
    op("aten::mm", 20, 20),
    launch(7, 25),
    op("aten::silu", 60, 20),
    launch(8, 65),
    HostEvent(t_ns=200, dur_ns=100, name=STEP, what="range", thread=1),
    op("aten::mm", 210, 20),
    launch(9, 215),
    op("aten::other", 0, 400, thread=2),
)


def test_a_kernel_belongs_to_the_innermost_op_around_its_launch_and_to_its_step() -> None:
    found = by_correlation(
        [kernel("k", 300 + n, correlation=n) for n in (7, 8, 9)],
        HOST,
    )
    assert [(e.op, e.op_by, e.step) for e in found] == [
        ("aten::mm", "correlation", 0),
        ("aten::silu", "correlation", 0),
        ("aten::mm", "correlation", 1),
    ]


def test_a_kernel_without_a_known_launch_keeps_no_op() -> None:
    lonely = [kernel("k", 1, correlation=70), kernel("k", 2)]
    assert by_correlation(lonely, HOST) == tuple(lonely)


def test_two_launches_with_one_correlation_tell_nothing() -> None:
    (found,) = by_correlation([kernel("k", 1, correlation=7)], (*HOST, launch(7, 66)))
    assert found.op is None


def test_a_launch_outside_every_op_gives_the_step_alone() -> None:
    (found,) = by_correlation([kernel("k", 1, correlation=5)], (*HOST, launch(5, 90)))
    assert (found.op, found.op_by, found.step) == (None, None, 0)


def test_work_of_a_graph_gets_its_launches_step_and_not_the_op_around_it() -> None:
    node = kernel("k", 300, correlation=7, graph=2, node=5)
    unnamed = [kernel("k", 300, correlation=8), kernel("l", 320, correlation=8)]
    found = by_correlation([node, *unnamed], HOST)
    assert [(e.op, e.step) for e in found] == [(None, 0)] * 3


def test_the_same_correlation_on_another_rank_is_another_launch() -> None:
    (found,) = by_correlation([kernel("k", 1, correlation=7, rank=1)], HOST)
    assert found.op is None


def layers(count: int, *, known: bool, graph: bool = False) -> list[DeviceEvent]:
    """A step of so many layers; on a graph without ops."""
    rows = [("embed", 1, "aten::embedding"), *LAYER * count, ("gemm", 9, "aten::logits")]
    return [
        kernel(
            name,
            20 * at,
            grid,
            op=op_name if known else None,
            graph=3 if graph else None,
            node=at if graph else None,
        )
        for at, (name, grid, op_name) in enumerate(rows)
    ]


def test_a_graphs_step_gets_its_ops_from_an_eager_step_of_the_same_model() -> None:
    found = by_sequence(layers(12, known=False), layers(12, known=True))
    assert [e.op for e in found] == [e.op for e in layers(12, known=True)]
    assert {e.op_by for e in found} == {"sequence"}


def test_a_reference_with_fewer_layers_serves_layer_by_layer() -> None:
    found = by_sequence(layers(12, known=False), layers(5, known=True))
    assert [e.op for e in found] == [e.op for e in layers(12, known=True)]


def test_a_kernel_that_the_reference_lacks_stays_unknown_and_moves_nothing() -> None:
    step = layers(12, known=False)
    step.insert(17, kernel("new", step[17].t_ns - 5))
    found = by_sequence(step, layers(12, known=True))
    assert [at for at, e in enumerate(found) if e.op is None] == [17]


def test_an_op_found_before_is_not_found_again() -> None:
    step = [replace(e, op="mine", op_by="correlation") for e in layers(4, known=False)]
    assert by_sequence(step, layers(4, known=True)) == tuple(step)


def test_a_replay_of_a_graph_has_the_ops_of_its_nodes() -> None:
    known = layers(3, known=True, graph=True)
    found = by_node([*known, *layers(3, known=False, graph=True)])
    assert [e.op for e in found[len(known) :]] == [e.op for e in known]


def test_a_node_of_another_rank_is_another_node() -> None:
    known = kernel("k", 0, graph=1, node=2, rank=0, op="aten::mm")
    *_, found = by_node([known, replace(known, rank=1, op=None)])
    assert found.op is None


def test_a_dictionary_leaves_out_a_kernel_of_two_ops() -> None:
    known = dictionary([*layers(2, known=True), kernel("attend", 900, 4, op="aten::other")])
    found = by_reference(layers(1, known=False), known)
    assert [e.op for e in found] == [
        "aten::embedding",
        "aten::mm",
        None,
        "aten::linear",
        "aten::logits",
    ]
    assert {e.op_by for e in found if e.op} == {"reference"}


def trace_of(device: list[DeviceEvent], host: tuple[HostEvent, ...] = ()) -> Trace:
    clock = Clock(mono_ns=0, unix_ns=0)
    header = Header(
        source="kineto",
        engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
        machine=Machine(cpu="x86"),
        clock=clock,
        start_ns=0,
        knobs={},
    )
    return Trace(header=header, end=End(end_ns=10**6, clock=clock), device=tuple(device), host=host)


def eager(count: int) -> Trace:
    """An eager step of so many layers, with a launch in an op for each kernel."""
    device, host = [], [HostEvent(t_ns=0, dur_ns=10**5, name=STEP, what="range", thread=1)]
    for at, event in enumerate(layers(count, known=True)):
        host += [op(str(event.op), 20 * at, 15), launch(at, 20 * at + 5)]
        device.append(replace(event, op=None, correlation=at, stream=7))
    return trace_of(device, tuple(host))


def test_every_rung_is_tried_in_turn_on_a_whole_trace() -> None:
    replayed = [replace(e, stream=7, step=0) for e in layers(12, known=False, graph=True)]
    replayed.append(kernel("attend", 9000, 4, stream=8, step=0))
    named = name_ops(trace_of(replayed), eager(12))
    assert [e.op for e in named.device[:-1]] == [e.op for e in layers(12, known=True)]
    assert [e.op_by for e in named.device] == ["sequence"] * 38 + ["reference"]
    assert named.device[-1].op == "vllm::attention"


def test_an_eager_trace_needs_no_reference() -> None:
    named = name_ops(eager(3))
    assert {(e.op_by, e.step) for e in named.device} == {("correlation", 0)}


def test_a_graphs_trace_without_a_reference_stays_unknown() -> None:
    named = name_ops(trace_of(layers(3, known=False, graph=True)))
    assert unknown_frac(named.device) == 1.0


def test_the_unknown_share_is_of_time_and_above_a_tenth_there_is_no_verdict() -> None:
    known = kernel("k", 0, op="aten::mm", dur_ns=90)
    assert check_known([known, kernel("x", 100)]) == pytest.approx(0.1)
    with pytest.raises(EvidenceError, match="25% of the time is not matched"):
        check_known([replace(known, dur_ns=30), kernel("x", 100)])


def test_no_work_gives_no_share_and_no_verdict() -> None:
    assert unknown_frac([]) is None
    with pytest.raises(EvidenceError, match="0 records"):
        check_known([])
