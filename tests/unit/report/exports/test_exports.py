"""A small trace with every kind of record, in the formats of other programs."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.errors import TraceError, UsageError
from rtopt.report.exports import export
from rtopt.types import (
    Clock,
    DeviceEvent,
    End,
    EngineInfo,
    Header,
    HostEvent,
    Machine,
    Mark,
    Request,
    Sample,
    Step,
    Trace,
)

T0 = 5_000_000_000_000


def trace_of(**records: Any) -> Trace:
    return Trace(
        header=Header(
            source="kineto",
            engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
            machine=Machine(cpu="x86"),
            clock=Clock(mono_ns=T0, unix_ns=T0 + 7),
            start_ns=T0,
            knobs={"max_num_active_seqs": 4},
            clock_error_ns=1500,
        ),
        end=End(end_ns=T0 + 10**9, clock=Clock(mono_ns=T0, unix_ns=T0 + 7)),
        **records,
    )


TRACE = trace_of(
    steps=(
        Step(t_ns=T0 + 2_000_123, dur_ns=1_000_001, running=4, itl_ms=(1.5, 2.5)),
        Step(t_ns=T0 + 900_000, index=1),
    ),
    requests=(
        Request(
            id="ab12",
            arrival_ns=T0 - 4_000_000,
            finished_ns=T0 + 6_000_000,
            prompt_tokens=9,
            output_tokens=3,
            e2e_ms=10.0,
            queued_ms=1.0,
            prefill_ms=2.0,
            decode_ms=7.0,
        ),
    ),
    marks=(Mark(t_ns=T0 + 5, what="set", by="rtopt", knobs={"max_num_active_seqs": 8}),),
    samples=(
        Sample(t_ns=T0 + 1, source="cpu", values={"util_frac": 0.5}),
        Sample(t_ns=T0 + 2, source="nvidia:0", values={"power_w": 300.0}),
    ),
    host=(
        HostEvent(t_ns=T0 + 1000, dur_ns=500, name="aten::mm", thread=11, dims=((4, 8), (8, 2))),
        HostEvent(
            t_ns=T0 + 1100, dur_ns=50, name="launch", what="launch", thread=11, correlation=3
        ),
        HostEvent(
            t_ns=T0 + 1200, dur_ns=50, name="launch", what="launch", thread=11, correlation=4
        ),
    ),
    device=(
        DeviceEvent(t_ns=T0 + 1500, dur_ns=700, name="gemm", device=0, stream=7, correlation=3),
        DeviceEvent(t_ns=T0 + 2300, dur_ns=0, name="gemm", device=0, stream=7, correlation=3),
    ),
)


def timeline(trace: Trace, path: Path) -> dict[str, Any]:
    export(trace, "perfetto", path)
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return found


def check_structure(events: list[dict[str, Any]]) -> None:
    """What a viewer needs: order, durations, pairs, and a name for each track."""
    timed = [e for e in events if e["ph"] != "M"]
    assert [e["ts"] for e in timed] == sorted(e["ts"] for e in timed)
    assert all(e["ts"] >= 0 and e.get("dur", 0) >= 0 for e in timed)
    assert all(("dur" in e) == (e["ph"] == "X") for e in timed)
    for begin, end in (("s", "f"), ("b", "e")):
        opened = Counter((e["cat"], e["id"], e["name"]) for e in timed if e["ph"] == begin)
        assert opened == Counter((e["cat"], e["id"], e["name"]) for e in timed if e["ph"] == end)
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    assert {e["pid"] for e in timed} <= processes
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in timed if e["ph"] == "X"} <= threads


def test_a_timeline_is_sorted_paired_and_named(tmp_path: Path) -> None:
    found = timeline(TRACE, tmp_path / "t.json")
    check_structure(found["traceEvents"])
    names = {e["args"]["name"] for e in found["traceEvents"] if e["name"] == "process_name"}
    assert names == {
        "measured: engine",
        "measured: requests",
        "measured: state",
        "measured: host",
        "measured: device 0",
    }
    assert found["otherData"]["clock_error_ns"] == 1500
    assert found["otherData"]["first_event_mono_ns"] == T0 - 4_000_000


def test_times_are_microseconds_with_three_decimals(tmp_path: Path) -> None:
    found = timeline(TRACE, tmp_path / "t.json")
    (step,) = (e for e in found["traceEvents"] if e.get("cat") == "step" and e["ph"] == "X")
    assert (step["ts"], step["dur"]) == (5000.122, 1000.001)
    assert '"ts":5000.122,"dur":1000.001' in (tmp_path / "t.json").read_text()


def test_an_arrow_leads_from_a_launch_to_its_first_kernel_alone(tmp_path: Path) -> None:
    events = timeline(TRACE, tmp_path / "t.json")["traceEvents"]
    assert [(e["ph"], e["ts"]) for e in events if e["ph"] in "sf"] == [("s", 4001.1), ("f", 4001.5)]


def test_a_requests_phases_lie_inside_it(tmp_path: Path) -> None:
    events = timeline(TRACE, tmp_path / "t.json")["traceEvents"]
    assert [(e["ph"], e["name"], e["ts"]) for e in events if e["ph"] in "be"] == [
        ("b", "request", 0),
        ("b", "queued", 0),
        ("e", "queued", 1000),
        ("b", "prefill", 1000),
        ("e", "prefill", 3000),
        ("b", "decode", 3000),
        ("e", "decode", 10000),
        ("e", "request", 10000),
    ]


def test_each_value_of_state_is_a_counter_and_a_lever_an_instant(tmp_path: Path) -> None:
    events = timeline(TRACE, tmp_path / "t.json")["traceEvents"]
    assert [(e["name"], e["args"]) for e in events if e["ph"] == "C"] == [
        ("cpu util_frac", {"util_frac": 0.5}),
        ("nvidia:0 power_w", {"power_w": 300.0}),
    ]
    (mark,) = (e for e in events if e.get("cat") == "lever")
    assert (mark["ph"], mark["args"]) == ("i", {"by": "rtopt", "max_num_active_seqs": 8})


def test_a_compressed_timeline_holds_the_same(tmp_path: Path) -> None:
    plain = timeline(TRACE, tmp_path / "t.json")
    assert timeline(TRACE, tmp_path / "t.json.gz") == plain


def test_an_empty_trace_is_an_empty_timeline(tmp_path: Path) -> None:
    assert timeline(trace_of(), tmp_path / "t.json")["traceEvents"] == []


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(0, 3)), max_size=20
    )
)
def test_any_order_of_records_gives_a_sound_timeline(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[int, int, int]]
) -> None:
    trace = trace_of(
        host=tuple(
            HostEvent(
                t_ns=T0 + at, dur_ns=long, name="l", what="launch", thread=number, correlation=at
            )
            for at, long, number in spans
        ),
        device=tuple(
            DeviceEvent(t_ns=T0 + at + long, dur_ns=long, name="k", stream=number, correlation=at)
            for at, long, number in spans
        ),
        steps=tuple(Step(t_ns=T0 + at, dur_ns=long) for at, long, _ in spans),
    )
    path = tmp_path_factory.mktemp("timeline") / "t.json"
    check_structure(timeline(trace, path)["traceEvents"])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_file_per_kind_that_has_records(tmp_path: Path) -> None:
    export(TRACE, "csv", tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "device.csv",
        "host.csv",
        "marks.csv",
        "requests.csv",
        "samples.csv",
        "steps.csv",
        "trace.json",
    ]
    about = json.loads((tmp_path / "out" / "trace.json").read_text())
    assert about["header"]["knobs"] == {"max_num_active_seqs": 4}


def test_csv_leaves_the_absent_empty_and_names_units(tmp_path: Path) -> None:
    export(TRACE, "csv", tmp_path / "out")
    timed, untimed = rows(tmp_path / "out" / "steps.csv")
    assert (timed["dur_ns"], timed["index"], timed["itl_ms"]) == ("1000001", "", "[1.5,2.5]")
    assert (untimed["dur_ns"], untimed["index"], untimed["itl_ms"]) == ("", "1", "")
    first, second = rows(tmp_path / "out" / "samples.csv")
    assert (first["values.util_frac"], first["values.power_w"]) == ("0.5", "")
    assert (second["values.util_frac"], second["values.power_w"]) == ("", "300.0")
    assert rows(tmp_path / "out" / "marks.csv")[0]["knobs.max_num_active_seqs"] == "8"
    assert rows(tmp_path / "out" / "host.csv")[0]["dims"] == "[[4,8],[8,2]]"


def test_csv_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        export(TRACE, "csv", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--format xml: unknown; known: perfetto, csv"):
        export(TRACE, "xml", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["perfetto", "csv"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        export(TRACE, form, tmp_path / "file" / "out")


def test_steps_that_overlap_are_shown_beside_each_other(tmp_path: Path) -> None:
    steps = tuple(Step(t_ns=T0 + end, dur_ns=1000) for end in (2000, 2500, 3000))
    events = timeline(trace_of(steps=steps), tmp_path / "t.json")["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [(e["ts"], names[e["tid"]]) for e in events if e["ph"] == "X"] == [
        (0, "steps of engine 0"),
        (0.5, "steps of engine 0, beside 1"),
        (1, "steps of engine 0"),
    ]


def test_a_negative_duration_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    damaged = trace_of(device=(DeviceEvent(t_ns=T0, dur_ns=-5, name="gemm"),))
    with pytest.raises(TraceError, match="gemm: found a duration of -5 ns"):
        export(damaged, "perfetto", tmp_path / "t.json")
    assert not list(tmp_path.iterdir())
