"""Runs that are unknown, kept nothing, or were damaged since."""

import json
from pathlib import Path

import pytest

from rtopt.apply import GateSettings, Journal, make_plan
from rtopt.report import Chain
from rtopt.storage import to_json
from rtopt.types import Change
from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.fakes import KNOB, Overlay, nobody, serving

TOKEN = "canary-token-9f2c"
CHANGE = Change(lever=KNOB, knobs={KNOB: 8}, reason="from 4 to 8")
UNDO = Change(lever="undo", knobs={KNOB: 4}, reason="back to 4")


def a_run(rtopt: CommandLine, id_: str = "20260101-000000-000-apply-abcd", url: str = "") -> Path:
    """The folder of a run that was begun."""
    path = rtopt.state / "runs" / id_
    path.mkdir(parents=True)
    about = {"kind": "apply", "created_unix_ns": 10**18, "settings": {"objective": "throughput"}}
    (path / "run.json").write_text(json.dumps(about))
    if url:
        server = {"noun": "Server", "schema": 1, "body": {"url": url}}
        (path / "server.json").write_text(json.dumps(server))
    Chain(path / "provenance.jsonl").append("run", "apply for throughput", about["settings"])
    return path


def keep(run: Path) -> Journal:
    """A journal of a change that was kept."""
    plan = make_plan(CHANGE, GateSettings(), objective="throughput")
    journal = Journal(run / "journal.jsonl")
    journal.append("plan", "t-1", plan=to_json(plan), undo=to_json(UNDO), boot="b00t")
    journal.append("settle", "t-1", keep=True, knobs={KNOB: 8})
    return journal


@pytest.mark.parametrize(
    "words", [("report",), ("undo",), ("apply", "--resume")], ids=lambda words: words[0]
)
@pytest.mark.parametrize("name", ["yesterday", "", "../..", "x" * 300, "20260101"])
def test_an_unknown_run_lists_the_latest(
    rtopt: CommandLine, words: tuple[str, ...], name: str
) -> None:
    for number in range(7):
        a_run(rtopt, f"2026010{number}-000000-000-tune-abcd")
    done = rtopt(*words, name)
    assert "not found" in done.line()
    assert "Latest: 20260106-000000-000-tune-abcd, 20260105-" in done.line()
    assert "20260101-" not in done.line(), "only the latest"
    assert done.code == 2


def test_where_there_is_no_run_that_is_said(rtopt: CommandLine) -> None:
    done = rtopt("report", "last")
    assert "There are none" in done.line()
    assert done.code == 2


def test_a_run_that_kept_nothing_has_nothing_to_undo(rtopt: CommandLine) -> None:
    with nobody() as url:
        run = a_run(rtopt, url=url)
        done = rtopt("undo", run.name)
        assert "no kept change to take back" in done.line()
        assert done.code == 2


def test_an_undo_where_the_server_is_gone_names_it(rtopt: CommandLine) -> None:
    with nobody() as url:
        run = a_run(rtopt, url=url)
        keep(run)
        done = rtopt("undo", run.name)
    assert f"{url}: nobody listens there" in done.line()
    assert done.code == 5


def test_an_undo_takes_back_once(rtopt: CommandLine) -> None:
    overlay = Overlay(token=TOKEN, value=8, snapshot=8)
    with serving(overlay) as url:
        run = a_run(rtopt, url=url)
        keep(run)
        first = rtopt("undo", run.name, RTOPT_TOKEN=TOKEN)
        again = rtopt("undo", run.name, RTOPT_TOKEN=TOKEN)
    assert (first.code, overlay.value, overlay.snapshot) == (0, 4, 4), first.err
    assert "no kept change" in again.line()
    assert again.code == 2


def test_an_undo_of_an_engine_that_was_moved_since_changes_nothing(rtopt: CommandLine) -> None:
    overlay = Overlay(token=TOKEN, value=16, snapshot=16)
    with serving(overlay) as url:
        run = a_run(rtopt, url=url)
        keep(run)
        done = rtopt("undo", run.name, RTOPT_TOKEN=TOKEN)
    assert "moved or started anew since" in done.line()
    assert (done.code, overlay.value) == (5, 16)


def test_a_run_without_its_server_asks_for_the_url(rtopt: CommandLine) -> None:
    run = a_run(rtopt)
    keep(run)
    done = rtopt("undo", run.name)
    assert "name the URL" in done.line()
    assert done.code == 2


def test_resume_tells_the_story_also_when_the_server_is_gone(rtopt: CommandLine) -> None:
    with nobody() as url:
        run = a_run(rtopt, url=url)
        keep(run)
        done = rtopt("apply", "--resume", run.name)
    assert (done.code, done.err) == (0, "")
    assert f"{KNOB}=8 is committed" in done.out
    assert "The engine now: unknown" in done.out


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"a": 1}', "found act None, wanted one of plan"),
        ('{"act": "sing", "trial": "t", "unix_ns": 1}', "found act 'sing'"),
        ('{"act": "settle", "unix_ns": 1}', "settle has no proper 'trial'"),
        ('{"act": "settle", "trial": "t", "unix_ns": 1, "keep": 1}', "settle has no proper 'keep'"),
        ('{"act": "plan", "trial": "t", "unix_ns": 1}', "plan has no proper 'plan'"),
        ("not JSON", "not JSON"),
        ("[]", "found list, wanted a JSON object"),
    ],
)
def test_a_damaged_journal_names_the_line(rtopt: CommandLine, line: str, text: str) -> None:
    run = a_run(rtopt, url="http://127.0.0.1:9")
    keep(run)
    with (run / "journal.jsonl").open("a") as file:
        file.write(f"{line}\n")
    for words in (("undo", run.name), ("apply", "--resume", run.name)):
        done = rtopt(*words)
        assert f"journal.jsonl:3: {text}" in done.line()
        assert done.code == 4


def test_a_keep_without_its_plan_cannot_be_taken_back(rtopt: CommandLine) -> None:
    run = a_run(rtopt, url="http://127.0.0.1:9")
    Journal(run / "journal.jsonl").append("settle", "t-1", keep=True, knobs={KNOB: 8})
    done = rtopt("undo", run.name)
    assert "plan of t-1: missing" in done.line()
    assert done.code == 4


def test_a_journal_that_was_cut_off_within_a_line_says_so(rtopt: CommandLine) -> None:
    with nobody() as url:
        run = a_run(rtopt, url=url)
        keep(run)
        with (run / "journal.jsonl").open("a") as file:
            file.write('{"act":"undone","tri')
        done = rtopt("apply", "--resume", run.name)
    assert done.code == 0
    assert "cut off while it was being written" in done.out


def test_the_report_of_a_run_that_ended_early_says_what_is_missing(rtopt: CommandLine) -> None:
    run = a_run(rtopt)
    done = rtopt("report", run.name)
    assert (done.code, done.err) == (0, "")
    assert (run / "report.html").is_file()


@pytest.mark.parametrize("damage", ["changed", "taken out", "no JSON"])
def test_a_damaged_provenance_is_rendered_and_told(rtopt: CommandLine, damage: str) -> None:
    run = a_run(rtopt)
    file = run / "provenance.jsonl"
    chain = Chain(file)
    chain.append("evidence", "what was measured", {"throughput": 100})
    chain.append("end", "done", {})
    lines = file.read_text().splitlines(keepends=True)
    match damage:
        case "changed":
            lines[1] = lines[1].replace("100", "900")
        case "taken out":
            del lines[1]
        case _:
            lines[1] = "{\n"
    file.write_text("".join(lines))
    done = rtopt("report", run.name)
    assert "report.html was written and says so at its top" in done.line()
    assert done.code == 7
    page = (run / "report.html").read_text()
    assert "Provenance does not verify" in page
    assert str(rtopt.folder) not in page


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("run.json", "", "run.json: not JSON"),
        ("run.json", '{"kind": 3}', "no proper 'kind'"),
        ("trial-1.json", "{}", "not a file of rtopt's"),
        ("choice-1.json", '{"noun": "Choice", "schema": 9, "body": {}}', "newer than this rtopt"),
        ("baseline.jsonl.gz", "hello\n", "not JSON"),
        ("journal.jsonl", "{\n", "journal.jsonl:1: not JSON"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(
    rtopt: CommandLine, name: str, content: str, text: str
) -> None:
    run = a_run(rtopt)
    (run / name).write_text(content)
    done = rtopt("report", run.name)
    assert text in done.line()
    assert done.code == 4


def test_a_report_that_cannot_be_written_is_named(rtopt: CommandLine) -> None:
    run = a_run(rtopt)
    (run / "report.html").mkdir()
    done = rtopt("report", run.name)
    assert "report.html: cannot be written: Is a directory" in done.line()
    assert done.code == 2
    assert sorted(path.name for path in run.iterdir() if path.name.startswith(".")) == []
