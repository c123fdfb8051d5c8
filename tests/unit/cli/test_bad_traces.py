"""Traces that are damaged, foreign or too thin: one line, the right exit code, the rest is used."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rtopt.storage import read_trace
from tests.unit.cli.conftest import CommandLine, Done
from tests.unit.cli.fakes import Overlay, plain_vllm, serving

needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
FOREIGN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "holds no line"),
    "blank lines": (b"\n\n  \n", "holds no line"),
    "foreign JSON": (b'{"traceEvents": [], "displayTimeUnit": "ms"}\n', "not an rtopt trace"),
    "a JSON number": (b"42\n", "not an rtopt trace"),
    "foreign text": (b"hello, this is a shopping list\nmilk\n", "not JSON"),
    "binary": (bytes(range(256)) * 40, "not an rtopt trace"),
    "another gzip": (gzip.compress(b"hello\nyou\n"), "not JSON"),
    "a broken gzip": (b"\x1f\x8b" + b"\x00" * 50, "gzip data are damaged"),
    "a cut header": (b'{"kind":"header","schema":"rtopt.tr', "no whole first line"),
}


def header(**other: object) -> bytes:
    """First line of a trace, as `rtopt profile` writes it, with some fields of another kind."""
    line = json.loads(recorded_lines()[0])
    return json.dumps({**line, **other}).encode() + b"\n"


def recorded_lines(seconds: float = 2.0) -> list[bytes]:
    """A sound trace, line by line."""
    overlay = Overlay()
    opened, *rest = overlay.lines(seconds)
    state = opened["state"]
    first = {
        "kind": "header",
        "source": "overlay",
        "engine": {
            "name": "vllm",
            **{name: state[name] for name in ("version", "model", "config", "kv", "model_config")},
        },
        "machine": {"cpu": "made up"},
        "clock": {"mono_ns": state["mono_ns"], "unix_ns": state["unix_ns"]},
        "start_ns": opened["start_ns"],
        "knobs": {"max_num_active_seqs": 4},
        "schema": "rtopt.trace/1",
    }
    closed = rest.pop()
    clock = {"mono_ns": closed["mono_ns"], "unix_ns": closed["unix_ns"]}
    last = {"kind": "end", "end_ns": closed["end_ns"], "clock": clock}
    return [json.dumps(line).encode() + b"\n" for line in (first, *rest, last)]


def both(rtopt: CommandLine, path: str | Path, *words: str) -> list[Done]:
    return [rtopt(command, str(path), *words) for command in ("predict", "attribute")]


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_no_trace_is_refused(rtopt: CommandLine, tmp_path: Path, case: str) -> None:
    content, text = FOREIGN[case]
    path = tmp_path / "trace"
    path.write_bytes(content)
    for done in both(rtopt, path):
        assert text in done.line()
        assert str(path) in done.line()
        assert done.code == 4


def test_a_file_that_cannot_be_read_is_named(rtopt: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path, text in (
        ("missing.jsonl", "No such file"),
        (".", "Is a directory"),
        ("loop", "Too many levels"),
        ("x" * 300, "File name too long"),
        ("/dev/zero", "no rtopt trace"),
    ):
        for done in both(rtopt, path):
            assert text in done.line()
            assert done.code == 4


@pytest.mark.parametrize("number", ["2", "10", "9" * 5000])
def test_a_trace_of_a_newer_rtopt_says_so(rtopt: CommandLine, tmp_path: Path, number: str) -> None:
    (tmp_path / "t").write_bytes(header(schema=f"rtopt.trace/{number}"))
    for done in both(rtopt, "t"):
        assert "newer than this rtopt's 'rtopt.trace/1'" in done.line() or number == "9" * 5000
        assert done.code == 4


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"start_ns": "now"}, "start_ns"),
        ({"engine": None}, "engine"),
        ({"surprise": 1}, "surprise"),
        ({"schema": "perfetto/1"}, "not an rtopt trace"),
    ],
)
def test_a_header_of_another_form_names_the_field(
    rtopt: CommandLine, tmp_path: Path, other: dict[str, Any], text: str
) -> None:
    (tmp_path / "t").write_bytes(header(**other))
    for done in both(rtopt, "t"):
        assert text in done.line()
        assert done.code == 4


def test_damage_in_the_middle_names_the_line(rtopt: CommandLine, tmp_path: Path) -> None:
    lines = recorded_lines()
    lines[40] = lines[40][:20] + b"\n"
    (tmp_path / "t").write_bytes(b"".join(lines))
    for done in both(rtopt, "t"):
        assert "t:41: not JSON" in done.line()
        assert "The 40 lines before it are readable" in done.line()
        assert done.code == 4


def test_a_trace_that_ends_before_it_starts_is_damaged(rtopt: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(header(start_ns=10**15) + recorded_lines()[-1])
    for done in both(rtopt, "t"):
        assert "before it starts" in done.line()
        assert done.code == 4


def noted(done: Done) -> tuple[list[str], str]:
    """The notes, and the line of the error."""
    assert "Traceback" not in done.err
    *notes, last = done.err.splitlines()
    assert last.startswith("rtopt: ")
    return [note for note in notes if "replaying" not in note], last


@needs_vllm
@pytest.mark.parametrize("is_gzip", [False, True])
def test_a_trace_that_was_cut_off_is_read_as_far_as_it_goes(
    rtopt: CommandLine, tmp_path: Path, is_gzip: bool
) -> None:
    whole = b"".join(recorded_lines(0.9))
    # Stored, not squeezed: half of the file is half of the trace.
    data = gzip.compress(whole, 0) if is_gzip else whole
    path = tmp_path / "t"
    path.write_bytes(data[: len(data) // 2])
    kept = read_trace(path)
    assert 5 < len(kept.steps) < 50
    for done in both(rtopt, path):
        notes, line = noted(done)
        assert any("cut off" in note and "the rest is used" in note for note in notes)
        assert f"{len(kept.steps)} steps in the trace" in line
        assert done.code == 6, "readable, and too thin"


@needs_vllm
@pytest.mark.parametrize("steps", [0, 1, 10])
def test_a_trace_with_few_steps_is_too_little_evidence(
    rtopt: CommandLine, tmp_path: Path, steps: int
) -> None:
    first, *rest, last = recorded_lines()
    (tmp_path / "t").write_bytes(b"".join((first, *rest[:steps], last)))
    for done in both(rtopt, "t"):
        _, line = noted(done)
        assert "step" in line
        assert done.code == 6


def test_a_trace_of_metrics_alone_says_what_would_record_steps(rtopt: CommandLine) -> None:
    with serving(plain_vllm()) as url:
        assert rtopt("profile", url, "--duration", "0.1", "-o", "t").code == 0
    for done in both(rtopt, "t"):
        _, line = noted(done)
        assert "source: metrics" in line
        assert "rtopt serve" in line
        assert done.code == 6


@needs_vllm
def test_a_trace_of_another_vllm_is_not_available_here(rtopt: CommandLine, tmp_path: Path) -> None:
    lines = recorded_lines()
    lines[0] = lines[0].replace(b'"version": "0.32.0"', b'"version": "0.8.5"')
    (tmp_path / "t").write_bytes(b"".join(lines))
    for done in both(rtopt, "t"):
        _, line = noted(done)
        assert "vLLM 0.8.5" in line
        assert done.code == 3


@pytest.mark.parametrize(
    "words", [("a",), ("=1",), ("a=",), ("a=1", "a=2")], ids=lambda words: ",".join(words)
)
def test_a_bad_what_if_is_refused_before_anything_is_replayed(
    rtopt: CommandLine, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "t").write_bytes(b"".join(recorded_lines()))
    done = rtopt("predict", "t", *(part for word in words for part in ("--set", word)))
    assert "wanted KNOB=VALUE" in done.line()
    assert done.code == 2


def test_profile_refuses_a_place_that_it_cannot_write_to_before_it_records(
    rtopt: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").write_text("precious")
    overlay = Overlay()
    with serving(overlay) as url:
        for place in ("folder", "nowhere/t.jsonl", "/proc/t.jsonl", "x" * 300, "old/t"):
            done = rtopt("profile", url, "-o", place)
            assert "cannot be written" in done.line()
            assert "Nothing was recorded" in done.line()
            assert done.code == 2
    assert "GET /rtopt/trace" not in overlay.asked
    assert (tmp_path / "old").read_text() == "precious"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_full_disk_is_named(rtopt: CommandLine, tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"t{suffix}").symlink_to("/dev/full")
    with serving(Overlay()) as url:
        done = rtopt("profile", url, "-o", f"t{suffix}", "--duration", "1")
    assert "No space left on device" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert done.code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--duration", "0"),
        ("--duration", "-1"),
        ("--duration", "nan"),
        ("--duration", "inf"),
        ("--requests", "0"),
        ("--max-mb", "0"),
        ("--max-mb", "nan"),
        ("--load", "closed:0"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_recorded_is_a_usage_error(
    rtopt: CommandLine, words: tuple[str, str]
) -> None:
    for site in (Overlay(), plain_vllm()):
        with serving(site) as url:
            done = rtopt("profile", url, *words)
        assert words[1] in done.line()
        assert done.code == 2
    assert not (rtopt.folder / "trace.jsonl.gz").exists()


def test_a_size_cap_below_the_header_keeps_the_header_and_counts_the_rest(
    rtopt: CommandLine,
) -> None:
    with serving(Overlay()) as url:
        done = rtopt("profile", url, "--max-mb", "0.0001", "--duration", "1", "-o", "t")
    assert done.code == 0, done.err
    assert "Not kept: step" in done.out
    for again in both(rtopt, "t"):
        assert again.code == 6
