import gzip
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtopt.errors import TraceError, UsageError
from rtopt.storage import TraceWriter, read_trace, write_trace
from rtopt.types import (
    Clock,
    End,
    EngineInfo,
    Header,
    InFlight,
    Load,
    Machine,
    Mark,
    Request,
    Sample,
    Step,
    Trace,
)

T = TypeVar("T")

SMALL_NS = st.integers(0, 10**15)
COUNT = st.none() | st.integers(0, 10**6)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
NAME = st.text(max_size=8)
VALUE = st.booleans() | st.integers(-(2**60), 2**60) | NUMBER | st.text(max_size=8)
PLAIN = st.recursive(
    st.none() | VALUE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME, inner, max_size=3),
    max_leaves=6,
)
STEP = st.builds(
    Step,
    t_ns=SMALL_NS,
    engine=st.integers(0, 3),
    index=COUNT,
    dur_ns=COUNT,
    waiting=COUNT,
    kv_frac=st.none() | NUMBER,
    output_tokens=COUNT,
    ttft_ms=st.lists(NUMBER, max_size=3).map(tuple),
    itl_ms=st.lists(NUMBER, max_size=3).map(tuple),
)
REQUEST = st.builds(
    Request,
    id=NAME,
    arrival_ns=SMALL_NS,
    finished_ns=SMALL_NS,
    prompt_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    e2e_ms=NUMBER,
    queued_ms=st.none() | NUMBER,
    cached_tokens=COUNT,
    finish=st.sampled_from(["stop", "length", "abort", "error"]),
)
IN_FLIGHT = st.builds(
    InFlight,
    edge=st.sampled_from(["start", "end"]),
    id=NAME,
    prompt_tokens=st.integers(0, 10),
    computed_tokens=st.integers(0, 10),
    output_tokens=st.integers(0, 10),
    arrival_ns=COUNT,
    is_waiting=st.booleans(),
)
MARK = st.builds(
    Mark,
    t_ns=SMALL_NS,
    what=st.sampled_from(["set", "commit", "restore", "expire"]),
    by=NAME,
    knobs=st.dictionaries(NAME, VALUE, max_size=3),
)
SAMPLE = st.builds(
    Sample, t_ns=SMALL_NS, source=NAME, values=st.dictionaries(NAME, NUMBER, max_size=3)
)
CLOCK = st.builds(Clock, mono_ns=SMALL_NS, unix_ns=SMALL_NS)
HEADER = st.builds(
    Header,
    source=st.sampled_from(["overlay", "metrics", "replay"]),
    engine=st.builds(
        EngineInfo,
        name=NAME,
        version=NAME,
        model=NAME,
        config=st.dictionaries(NAME, st.none() | VALUE, max_size=3),
        kv=st.dictionaries(NAME, PLAIN, max_size=2),
        model_config=st.dictionaries(NAME, PLAIN, max_size=3),
    ),
    machine=st.builds(Machine, cpu=NAME, num_cpus=COUNT, memory_bytes=COUNT),
    clock=CLOCK,
    start_ns=SMALL_NS,
    knobs=st.dictionaries(NAME, VALUE, max_size=3),
    load=st.none() | st.builds(Load, kind=st.just("closed"), clients=COUNT),
)
TRACE = st.builds(
    Trace,
    header=HEADER,
    end=st.builds(
        End,
        end_ns=SMALL_NS,
        clock=CLOCK,
        failed_reads=st.dictionaries(NAME, st.integers(0, 9), max_size=2),
    ),
    steps=st.lists(STEP, max_size=4).map(lambda steps: by_time(steps, "t_ns")),
    requests=st.lists(REQUEST, max_size=3).map(lambda items: by_time(items, "finished_ns")),
    in_flight=st.lists(IN_FLIGHT, max_size=3).map(
        lambda items: tuple(sorted(items, key=lambda item: item.edge == "end"))
    ),
    marks=st.lists(MARK, max_size=2).map(lambda items: by_time(items, "t_ns")),
    samples=st.lists(SAMPLE, max_size=3).map(lambda items: by_time(items, "t_ns")),
).filter(lambda trace: trace.end_ns >= trace.start_ns)


def by_time(items: list[T], field: str) -> tuple[T, ...]:
    return tuple(sorted(items, key=lambda item: int(getattr(item, field))))


def small_trace(num_steps: int = 5) -> Trace:
    header = Header(
        source="overlay",
        engine=EngineInfo(name="vllm", version="0.32.0", model="m", config={"a": None}),
        machine=Machine(cpu="test", num_cpus=2),
        clock=Clock(mono_ns=100, unix_ns=10**18),
        start_ns=1000,
        knobs={"max_num_active_seqs": 4},
    )
    steps = tuple(
        Step(t_ns=2000 + i, output_tokens=1, itl_ms=(float(i), 1 / (i + 3)))
        for i in range(num_steps)
    )
    return Trace(
        header=header, end=End(end_ns=10**6, clock=Clock(mono_ns=1, unix_ns=2)), steps=steps
    )


@settings(max_examples=60, deadline=None)
@given(trace=TRACE, name=st.sampled_from(["t.jsonl", "t.jsonl.gz"]))
def test_a_trace_comes_back_as_it_was_written(trace: Trace, name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        assert write_trace(trace, path) == trace.end
        assert read_trace(path) == trace


def test_gzip_is_told_by_its_first_bytes_not_by_the_name(tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "a.jsonl.gz")
    (tmp_path / "a.jsonl.gz").rename(tmp_path / "b.txt")
    assert read_trace(tmp_path / "b.txt") == small_trace()


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_trace(small_trace(), tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_gzip_files_put_one_behind_the_other_read_as_one(tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_bytes()
    half = len(text) // 2
    (tmp_path / "b.gz").write_bytes(gzip.compress(text[:half]) + gzip.compress(text[half:]))
    assert read_trace(tmp_path / "b.gz") == small_trace()


def test_absent_values_are_left_out_and_absent_settings_are_kept(tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "a.jsonl")
    header, step, *_ = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert header["engine"]["config"] == {"a": None}
    assert "waiting" not in step


def test_a_file_cut_at_any_byte_keeps_every_whole_line(tmp_path: Path) -> None:
    trace = small_trace()
    write_trace(trace, tmp_path / "whole.jsonl")
    text = (tmp_path / "whole.jsonl").read_bytes()
    header_end = text.index(b"\n")
    for size in range(len(text)):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(text[:size])
        if size < header_end:
            with pytest.raises(TraceError):
                read_trace(path)
            continue
        read = read_trace(path)
        whole = max(0, text[:size].count(b"\n") - 1)
        assert read.steps[:whole] == trace.steps[:whole]
        # A line of which only the line break is missing is whole.
        assert len(read.steps) in (whole, whole + 1)
        if size < len(text) - 1:
            assert any("end is missing" in note for note in read.notes)
            assert read.end.reason == "cut"
            assert read.end_ns == max((s.t_ns for s in read.steps), default=1000)


def test_a_gzip_cut_at_any_byte_never_crashes_and_keeps_a_beginning(tmp_path: Path) -> None:
    trace = small_trace(40)
    write_trace(trace, tmp_path / "whole.gz")
    data = (tmp_path / "whole.gz").read_bytes()
    kept = 0
    for size in range(len(data)):
        path = tmp_path / "cut.gz"
        path.write_bytes(data[:size])
        try:
            read = read_trace(path)
        except TraceError:
            assert kept == 0
            continue
        assert read.steps == trace.steps[: len(read.steps)]
        assert len(read.steps) >= kept
        assert "the gzip file is cut off" in read.notes
        kept = len(read.steps)
    assert kept == 40


def test_a_writer_that_is_killed_leaves_a_readable_beginning(tmp_path: Path) -> None:
    trace = small_trace(3000)
    path = tmp_path / "t.jsonl.gz"
    writer = TraceWriter(path, trace.header)
    for step in trace.steps:
        writer.add(step)
    read = read_trace(path)  # as it is on the disk now, with the writer still open
    assert len(read.steps) > 1000
    assert read.steps == trace.steps[: len(read.steps)]
    writer.close(trace.end)
    assert read_trace(path) == trace


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_the_size_cap_holds_and_counts_what_it_dropped(tmp_path: Path, name: str) -> None:
    trace = small_trace(2000)
    trace = replace(
        trace,
        samples=tuple(Sample(t_ns=2000 + 10 * i, source="cpu", values={}) for i in range(200)),
    )
    whole = tmp_path / f"whole-{name}"
    write_trace(trace, whole)
    cap = whole.stat().st_size // 2
    path = tmp_path / name
    end = write_trace(trace, path, max_bytes=cap)
    read = read_trace(path)
    assert path.stat().st_size <= cap + 500, "the end is written in any case"
    assert path.stat().st_size > cap * 0.8
    assert read.end == end
    assert end.reason == "size"
    assert len(read.steps) + end.dropped["step"] == 2000
    assert len(read.samples) + end.dropped["sample"] == 200
    assert end.end_ns == max(read.steps[-1].t_ns, read.samples[-1].t_ns)
    assert read.steps == trace.steps[: len(read.steps)], "a beginning, without holes"


def test_a_value_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    bad = replace(small_trace(), steps=(Step(t_ns=1, kv_frac=float("nan")),))
    with pytest.raises(TraceError, match=r"Step\.kv_frac: found nan"):
        write_trace(bad, tmp_path / "t.jsonl")


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_trace(small_trace(), tmp_path / "no" / "t.jsonl")


def damaged(tmp_path: Path, number: int, line: str) -> Path:
    """A trace file in which one line, counted from 1, is another."""
    path = tmp_path / "t.jsonl"
    write_trace(small_trace(), path)
    lines = path.read_text().splitlines()
    lines[number - 1] = line
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"t\.jsonl:3: not JSON.*The 2 lines before it are readable"),
        ('{"kind":"kernel"}', "found kind 'kernel', wanted one of header, step"),
        ('{"kind":["step"]}', "found kind"),
        ("[1]", "found kind None"),
        ('{"kind":"step","t_ns":1,"warp":9}', "Step: warp: Unexpected"),
        ('{"kind":"step"}', "t_ns: "),
        ('{"kind":"step","t_ns":"soon"}', "t_ns: .*integer"),
        ('{"kind":"step","t_ns":1,"kv_frac":NaN}', "NaN is not a JSON number"),
        ('{"kind":"step","t_ns":1,"kv_frac":1e999}', "finite"),
        ('{"kind":"end","end_ns":1,"clock":{"mono_ns":1,"unix_ns":1}}', "after the end"),
        ("[" * 100_000, "not JSON"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "not JSON"),
    ],
)
def test_a_damaged_line_is_named_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        read_trace(damaged(tmp_path, 3, line))
    assert caught.value.exit_code == 4


def test_a_second_header_is_refused(tmp_path: Path) -> None:
    path = damaged(tmp_path, 3, "{}")
    first = path.read_text().splitlines()[0]
    with pytest.raises(TraceError, match="a second header"):
        read_trace(damaged(tmp_path, 3, first))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no line"),
        (b"\n\n", "holds no line"),
        (b"\x1f\x8b", "holds no line"),
        (b"\x1f\x8b\x08garbage-garbage", "damaged|holds no line"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\n", "not an rtopt trace"),
        (b'{"traceEvents": []}\n', "not an rtopt trace"),
        (b'{"kind":"step","t_ns":1}\n', "found no header"),
        (b'{"kind":"header","schema":"rtopt.trace/2","new":1}\n', "newer than this rtopt's"),
        (b'{"kind":"header","schema":"other/1"}\n', "not an rtopt trace"),
        (b'{"kind":"header"}\n', "not an rtopt trace"),
        (b'{"kind":"header","schema":"rtopt.tr', "no whole first line"),
    ],
)
def test_what_is_empty_foreign_or_too_new_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path / "t.jsonl")


def test_a_file_that_is_not_there_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_trace(tmp_path / "t.jsonl")


def test_a_gzip_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    write_trace(small_trace(), tmp_path / "t.gz")
    data = bytearray((tmp_path / "t.gz").read_bytes())
    data[-6] ^= 0xFF
    (tmp_path / "t.gz").write_bytes(data)
    with pytest.raises(TraceError, match="gzip data are damaged"):
        read_trace(tmp_path / "t.gz")


def test_a_line_without_end_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"x" * (1 << 25)))
    with pytest.raises(TraceError, match="a line of more than"):
        read_trace(tmp_path / "t.gz")
