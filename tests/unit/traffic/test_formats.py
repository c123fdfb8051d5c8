"""Workload files of every known format, whole and damaged."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtopt.errors import TraceError
from rtopt.traffic import WRITERS, read_workload
from rtopt.types import Ask, Load, Workload

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:05.9799601,110,27"""
BURST = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.5,GPT-4,1087,230,1317,API log
46,GPT-4,417,0,417,API log
"""
MOONCAKE = """{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 2000, "input_length": 1500, "output_length": 7, "hash_ids": [0, 1, 9]}
"""
BAILIAN = """{"timestamp": 1.25, "input_length": 40, "output_length": 5, "hash_ids": [4, 5, 6]}
{"timestamp": 3.0, "input_length": 33, "output_length": 2, "hash_ids": [4, 5, 7]}
"""
GUIDELLM = json.dumps(
    {
        "metadata": {"version": 1},
        "benchmarks": [
            {
                "requests": {
                    "successful": [
                        {
                            "request_start_time": 1730000000.25,
                            "prompt_tokens": 256,
                            "output_tokens": 128,
                            "output": "secret text",
                        },
                        {
                            "request_start_time": 1730000000.0,
                            "prompt_tokens": 25,
                            "output_tokens": 12,
                        },
                    ],
                    "incomplete": [{"prompt_tokens": 1}],
                    "errored": [],
                }
            }
        ],
    },
    indent=2,
)


def file(folder: Path, text: str) -> Path:
    path = folder / "workload"
    path.write_text(text, encoding="utf-8")
    return path


def rows(workload: Workload) -> list[tuple[int, int, int]]:
    return [(a.arrival_ns, a.prompt_tokens, a.output_tokens) for a in workload.asks]


def test_azure_times_keep_every_digit_and_the_last_line_needs_no_line_break(
    tmp_path: Path,
) -> None:
    found = read_workload(file(tmp_path, AZURE))
    assert rows(found) == [(0, 4808, 10), (52_000_000, 3180, 8), (2_000_000_100, 110, 27)]
    assert found.source == "azure"
    assert found.duration_ns == 3_000_000_150, "one more mean gap than from first to last"
    assert found.notes == ()


def test_azure_times_with_a_zone_are_read(tmp_path: Path) -> None:
    head = AZURE.splitlines()[0]
    lines = "2024-05-10 01:00:00.5+00:00,5,6\n2024-05-10 03:00:01+02:00,7,8\n"
    assert rows(read_workload(file(tmp_path, f"{head}\n{lines}"))) == [
        (0, 5, 6),
        (500_000_000, 7, 8),
    ]


def test_burstgpt_leaves_out_failed_requests_and_says_so(tmp_path: Path) -> None:
    found = read_workload(file(tmp_path, BURST))
    assert rows(found) == [(0, 472, 18), (40_500_000_000, 1087, 230)]
    assert found.missed_frac == pytest.approx(1 / 3)
    assert found.notes == ("1 requests without a whole answer left out",)


def test_mooncake_times_are_milliseconds_and_only_whole_blocks_are_kept(tmp_path: Path) -> None:
    found = read_workload(file(tmp_path, MOONCAKE))
    assert rows(found) == [(0, 1100, 5), (2_000_000_000, 1500, 7)]
    assert found.block_tokens == 512
    assert [a.blocks for a in found.asks] == [(0, 1), (0, 1)]
    assert found.notes == ("timestamps taken as milliseconds, blocks as 512 tokens each",)


def test_traces_with_blocks_of_16_tokens_have_seconds(tmp_path: Path) -> None:
    found = read_workload(file(tmp_path, BAILIAN))
    assert rows(found) == [(0, 40, 5), (1_750_000_000, 33, 2)]
    assert found.block_tokens == 16
    assert [a.blocks for a in found.asks] == [(4, 5), (4, 5)]


def test_guidellm_requests_are_in_order_of_their_start(tmp_path: Path) -> None:
    found = read_workload(file(tmp_path, GUIDELLM))
    assert rows(found) == [(0, 25, 12), (250_000_000, 256, 128)]
    assert found.missed_frac == pytest.approx(1 / 3)
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "line", "kept"),
    [
        (AZURE, "2023-11-16 18:17:05,word,3", 3),
        (AZURE, "2023-13-45 18:17:05,1,3", 3),
        (AZURE, "2023-11-16 18:17:05,-1,3", 3),
        (BURST, "50,GPT-4,1087", 2),
        (MOONCAKE, '{"timestamp": 2000, "input_length": 15', 2),
        (MOONCAKE, '{"timestamp": 2000, "output_length": 15}', 2),
        (MOONCAKE, "[1, 2]", 2),
    ],
)
def test_a_damaged_line_is_left_out_with_its_number(
    tmp_path: Path, text: str, line: str, kept: int
) -> None:
    whole = f"{text.rstrip()}\n{line}"
    found = read_workload(file(tmp_path, whole))
    assert len(found.asks) == kept
    number = len(whole.splitlines())
    assert any(f"1 damaged lines left out, the first line {number}" in n for n in found.notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a workload file; known formats: rtopt, azure, burstgpt, timed_trace, guidellm"),
        ("a,b,c\n1,2,3\n", "not a workload file"),
        (AZURE.splitlines()[0], "no request"),
        (MOONCAKE.replace("1100", "true").replace("1500", "null"), "line 1: prompt tokens"),
        (GUIDELLM[:-40], "not whole JSON"),
        ('{"benchmarks": 3}', "no list of benchmarks"),
        ('{"schema": "rtopt.workload/2", "load": {"kind": "open"}}', "rtopt.workload/2 is not"),
        ('{"schema": "rtopt.workload/1", "load": {"kind": "shut"}}', "line 1 is no header"),
    ],
)
def test_a_file_without_a_workload_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        read_workload(file(tmp_path, text))


def test_a_missing_file_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_workload(tmp_path / "none")


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    size = draw(st.none() | st.integers(1, 64))
    at, asks = 0, []
    for _ in range(draw(st.integers(1, 6))):
        prompt = draw(st.integers(1, 500))
        longest = prompt // size if size else 0
        blocks = draw(st.lists(st.integers(0, 9), max_size=min(4, longest)))
        asks.append(
            Ask(
                arrival_ns=at,
                prompt_tokens=prompt,
                output_tokens=draw(st.integers(1, 500)),
                cached_tokens=draw(st.integers(0, prompt)),
                blocks=tuple(blocks),
            )
        )
        at += draw(st.integers(0, 10**10))
    is_open = draw(st.booleans())
    return Workload(
        load=Load(kind="open") if is_open else Load(kind="closed", clients=3),
        asks=tuple(asks),
        duration_ns=at + 1,
        think_ns=draw(st.integers(0, 10**9)),
        source="made",
        seed=draw(st.none() | st.integers(0, 99)),
        block_tokens=size,
        missed_frac=draw(st.none() | st.floats(0, 1)),
        notes=tuple(draw(st.lists(st.text(max_size=9), max_size=2))),
    )


@given(workloads())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_our_own_format_loses_nothing(tmp_path: Path, workload: Workload) -> None:
    path = tmp_path / "own.jsonl"
    WRITERS["rtopt"](workload, path)
    assert read_workload(path) == workload


@given(workloads())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_timed_trace_keeps_times_lengths_and_enough_blocks_for_each_prompt(
    tmp_path: Path, workload: Workload
) -> None:
    path = tmp_path / "timed.jsonl"
    WRITERS["timed_trace"](workload, path)
    size = workload.block_tokens or 512
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == len(workload.asks)
    fresh: list[int] = []
    for line, ask in zip(lines, workload.asks, strict=True):
        assert line["timestamp"] == pytest.approx(ask.arrival_ns / 1e9, abs=1e-9)
        assert (line["input_length"], line["output_length"]) == (
            ask.prompt_tokens,
            ask.output_tokens,
        )
        assert len(line["hash_ids"]) == -(-ask.prompt_tokens // size), "vLLM's prompt is whole"
        assert tuple(line["hash_ids"][: len(ask.blocks)]) == ask.blocks
        fresh += line["hash_ids"][len(ask.blocks) :]
    assert len(set(fresh)) == len(fresh)
    assert not set(fresh) & {block for ask in workload.asks for block in ask.blocks}


@pytest.mark.parametrize("text", [AZURE, BURST, MOONCAKE, BAILIAN, GUIDELLM])
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_a_file_damaged_anywhere_is_read_in_part_or_refused(
    tmp_path: Path, text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 30)))
    junk = data.draw(st.binary(max_size=10))
    path = tmp_path / "damaged"
    path.write_bytes(text[:at].encode() + junk + text[until:].encode())
    try:
        found = read_workload(path)
    except TraceError:
        return
    assert found.asks
    assert all(
        a.prompt_tokens > 0 and a.output_tokens > 0 and a.arrival_ns >= 0 for a in found.asks
    )


@given(
    content=st.binary(max_size=200),
    head=st.sampled_from(["", AZURE, BURST, MOONCAKE, '{"schema": "rtopt.workload/1", ']),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_any_bytes_are_a_workload_or_an_error_of_the_file(
    tmp_path: Path, content: bytes, head: str
) -> None:
    path = tmp_path / "any"
    path.write_bytes(head.encode() + content)
    try:
        found = read_workload(path)
    except TraceError:
        return
    assert isinstance(found, Workload)
