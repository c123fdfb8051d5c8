"""The chain shows every change, and names the first link that was changed."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rtopt.errors import ProvenanceError, TraceError
from rtopt.report import Chain, fingerprint
from rtopt.report.chain import FIRST_PREV
from rtopt.types import Change

Record = dict[str, Any]


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    ticks = iter(range(100))
    made = Chain(tmp_path / "provenance.jsonl", unix_ns=lambda: next(ticks))
    made.append("run", "begun", {"objective": "throughput"})
    made.append("claim", "slots", Change(lever="x", knobs={"x": 8}, reason="why"))
    made.append("end", "done", {"share": 0.1, "whole": 1.0, "text": "\u00e9"})
    return made


def _rewrite(chain: Chain, change: Callable[[list[Record]], list[Record]]) -> None:
    lines = [json.loads(line) for line in chain.path.read_text().splitlines()]
    chain.path.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))


def test_each_link_holds_the_digest_of_the_one_before(chain: Chain) -> None:
    first, second, third = chain.verify().entries
    assert first.prev == FIRST_PREV
    assert (second.prev, third.prev) == (first.digest, second.digest)
    assert [link.seq for link in (first, second, third)] == [0, 1, 2]
    assert second.body == {
        "noun": "Change",
        "body": {"lever": "x", "knobs": {"x": 8}, "reason": "why"},
    }


def test_the_same_links_always_have_the_same_digest(chain: Chain) -> None:
    text = (
        '{"body":{"objective":"throughput"},"kind":"run","prev":"%s","seq":0,"title":"begun",'
        '"unix_ns":0}'
    )
    expected = hashlib.sha256((text % FIRST_PREV).encode("ascii")).hexdigest()
    assert chain.verify().entries[0].digest == expected


def test_no_file_is_no_links(tmp_path: Path) -> None:
    assert Chain(tmp_path / "none.jsonl").verify().entries == ()


def _edit(lines: list[Record]) -> list[Record]:
    lines[1]["body"]["body"]["knobs"]["x"] = 9
    return lines


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_edit, r"link 1 \('slots'\): its content gives"),
        (lambda lines: [lines[0], lines[2]], "link 1 .*numbered 2"),
        (lambda lines: [lines[0], lines[2], lines[1]], "link 1 .*numbered 2"),
        (lambda lines: [{**lines[0], "prev": "f" * 64}, *lines[1:]], "link 0 .*it follows ffff"),
        (lambda lines: [lines[0], {"seq": 1}], "link 1: not a valid Entry"),
    ],
    ids=["edited", "removed", "swapped", "foreign_start", "no_link"],
)
def test_the_first_broken_link_is_named_with_the_reason(
    chain: Chain, change: Callable[[list[Record]], list[Record]], told: str
) -> None:
    _rewrite(chain, change)
    with pytest.raises(ProvenanceError, match=told):
        chain.verify()


def test_a_line_that_is_no_json_breaks_the_chain(chain: Chain) -> None:
    chain.path.write_text("{}x\n" + chain.path.read_text())
    with pytest.raises(ProvenanceError, match=r"provenance\.jsonl:1: not JSON"):
        chain.verify()


def test_nothing_is_added_to_a_broken_chain(chain: Chain) -> None:
    _rewrite(chain, _edit)
    before = chain.path.read_bytes()
    with pytest.raises(ProvenanceError):
        chain.append("claim", "more", {})
    assert chain.path.read_bytes() == before


def test_an_append_that_was_cut_off_was_never_a_link(chain: Chain) -> None:
    chain.path.write_bytes(chain.path.read_bytes() + b'{"seq": 3, "ki')
    assert len(chain.verify().entries) == 3
    assert chain.append("delta", "after the crash", {}).seq == 3
    assert len(chain.verify().entries) == 4


def test_a_value_without_a_place_in_json_is_refused(chain: Chain) -> None:
    with pytest.raises(TraceError, match="Nothing was added"):
        chain.append("claim", "nan", {"x": float("nan")})
    assert len(chain.verify().entries) == 3


def test_a_fingerprint_names_the_file_and_not_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    assert fingerprint(tmp_path / "a.txt") == {
        "file": "a.txt",
        "bytes": 3,
        # FIPS 180-4, the example message "abc".
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    }
