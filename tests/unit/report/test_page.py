"""One file that loads nothing, says everything, and tells nobody's name."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rtopt.errors import ProvenanceError
from rtopt.report import render
from rtopt.report.page import page_of, to_html
from rtopt.report.run import Run
from rtopt.types import Change, Choice

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Checks nesting, and collects ids, links, images and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tags: set[str] = set()
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if (name := given.get("id")) is not None:
            self.ids.append(name)
        self.targets += [v for k in ("href", "src") if (v := given.get(k)) is not None]
        if given.get("role") == "img":
            self.labels.append(given.get("aria-label") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_is_whole_and_loads_nothing(html: str) -> None:
    found = _read(html)
    assert not found.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert "@font-face" not in html
    assert all(target.startswith("#") for target in found.targets)
    assert {target[1:] for target in found.targets} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert all(url in found.ids for url in re.findall(r"url\(#([^)]+)\)", html))
    # wide and narrow: timeline, TTFT, ITL, two pictures per trial, two forecasts
    assert len(found.labels) == 2 * (3 + 4 + 2)
    assert all(found.labels)
    assert html.count("<h1>") == 1


def test_figures_keep_their_text_and_take_the_page_s_colours(html: str) -> None:
    svgs = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert any("max_num_active_seqs</text>" in svg for svg in svgs)
    assert not re.search(r"#[0-9a-f]{6}", "".join(svgs))


def test_nobody_is_named(html: str) -> None:
    for private in ("somebody", "/home", "engine.example", "t0p-s3cret", "/tmp"):
        assert private not in html


def test_a_run_is_drawn_the_same_each_time(opened: Run) -> None:
    few = replace(opened, baseline=None, afters={}, predictions={}, choices={})
    assert to_html(page_of(few)) == to_html(page_of(few))


def test_everything_from_outside_is_escaped(opened: Run) -> None:
    evil = Choice(change=None, reason="<script>alert(1)</script> & more")
    html = to_html(page_of(Run(id=opened.id, kind="<b>", created_unix_ns=0, choices={1: evil})))
    assert "script" not in _read(html).tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html


def test_a_knob_s_name_cannot_break_a_figure(opened: Run) -> None:
    trial = opened.trials[1]
    name = "</svg><script>x"
    change = Change(lever="x", knobs={name: 2}, reason="")
    undo = Change(lever="undo", knobs={name: 1}, reason="")
    odd = replace(trial, plan=replace(trial.plan, change=change), undo=undo)
    run = Run(id=opened.id, kind="apply", created_unix_ns=0, trials={1: odd})
    assert "script" not in _read(to_html(page_of(run))).tags


@pytest.mark.parametrize("kind", ["baseline_only", "one_restored"])
def test_a_part_of_a_run_is_a_page_too(kind: str, request: pytest.FixtureRequest) -> None:
    html = render(request.getfixturevalue(kind)).read_text(encoding="utf-8")
    _read(html)
    assert "Provenance verified" in html


def test_an_empty_run_says_what_is_missing(tmp_path: Path) -> None:
    about = {"kind": "tune", "created_unix_ns": 0}
    (tmp_path / "run.json").write_text(json.dumps(about))
    html = render(tmp_path).read_text(encoding="utf-8")
    _read(html)
    for missing in (
        "holds no measured throughput",
        "No provenance record",
        "There is no baseline recording in this run.",
        "This run holds no diagnosis.",
        "Nothing was tried",
        "no prediction that can be set beside a measurement",
    ):
        assert missing in html


def test_a_broken_chain_is_told_at_the_top_and_by_the_exit_code(baseline_only: Path) -> None:
    path = baseline_only / "provenance.jsonl"
    path.write_text(path.read_text().replace("recorded: baseline", "recorded: another"))
    with pytest.raises(ProvenanceError, match="link 1") as caught:
        render(baseline_only)
    assert caught.value.exit_code == 7
    html = (baseline_only / "report.html").read_text(encoding="utf-8")
    assert "Provenance does not verify: provenance.jsonl: link 1" in html
    assert "Provenance verified" not in html
    assert str(baseline_only) not in html
