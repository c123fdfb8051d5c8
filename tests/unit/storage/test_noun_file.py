import json
from pathlib import Path

import pytest

from rtopt.errors import TraceError
from rtopt.storage import from_json, load, save, to_json
from rtopt.types import (
    Attribution,
    Cause,
    Change,
    Choice,
    Estimate,
    Evidence,
    Finding,
    Interval,
    Plan,
    Prediction,
    Slo,
    Trial,
    Verdict,
)

PREDICTION = Prediction(
    method="replay",
    knobs={"max_num_active_seqs": 8, "is_on": True, "share": 1.0, "name": "8"},
    metrics={"itl_mean": Estimate(value=41.0, interval=Interval(low=40, high=42, level=0.9))},
)
CHANGE = Change(lever="l", knobs={"max_num_active_seqs": 16}, reason="from 8 to 16")
TRIAL = Trial(
    id="1",
    plan=Plan(change=CHANGE, objective="throughput", slos=(Slo(metric="itl_p95", limit=200.0),)),
    undo=CHANGE,
    blocks=(),
    verdict=Verdict(decision="keep", reason="better"),
    e_values=(1.0, 2.5),
)
ATTRIBUTION = Attribution(
    method="rules",
    findings=(
        Finding(
            cause=Cause.SLOTS_FULL,
            share=0.9,
            evidence=(Evidence(measure="running", value=8.0, unit="1"),),
        ),
    ),
)


@pytest.mark.parametrize("noun", [PREDICTION, TRIAL, ATTRIBUTION, Choice(change=None, reason="-")])
def test_a_noun_comes_back_as_it_was_saved(tmp_path: Path, noun: object) -> None:
    save(noun, tmp_path / "noun.json")
    read = load(type(noun), tmp_path / "noun.json")
    assert read == noun


def test_kinds_of_values_survive(tmp_path: Path) -> None:
    save(PREDICTION, tmp_path / "p.json")
    knobs = load(Prediction, tmp_path / "p.json").knobs
    assert [type(value) for value in knobs.values()] == [int, bool, float, str]


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save(PREDICTION, path)
    with pytest.raises(TraceError, match="Nothing was written"):
        save(Estimate(value=float("inf")), path)
    assert load(Prediction, path) == PREDICTION
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "wanted a JSON object"),
        ("{}", "not a file of rtopt's"),
        ('{"noun":"Trial","schema":1,"body":{}}', "holds a Trial, wanted a Prediction"),
        ('{"noun":"Prediction","schema":2,"body":{}}', "newer than this rtopt's"),
        ('{"noun":"Prediction","schema":1}', "found NoneType, wanted an object"),
        ('{"noun":"Prediction","schema":1,"body":{}}', "method: .*knobs: "),
    ],
)
def test_a_file_that_is_not_the_noun_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(TraceError, match=message):
        load(Prediction, tmp_path / "p.json")


def test_a_file_that_is_not_there_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        load(Prediction, tmp_path / "p.json")


def test_an_unknown_field_is_refused_with_its_path() -> None:
    data = to_json(PREDICTION)
    data["metrics"]["itl_mean"]["interval"]["width"] = 2
    with pytest.raises(TraceError, match=r"a place: .*metrics\.itl_mean\.interval\.width"):
        from_json(Prediction, data, where="a place")


def test_what_is_given_is_not_in_the_message() -> None:
    with pytest.raises(TraceError) as caught:
        from_json(Slo, {"metric": 5, "limit": "hunter2"}, where="here")
    assert "hunter2" not in str(caught.value)


def test_a_value_without_a_place_in_json_is_an_error() -> None:
    with pytest.raises(TraceError, match=r"Prediction\.knobs\.f: found builtin_function"):
        to_json(Prediction(method="m", knobs={"f": len}))  # type: ignore[dict-item] # on purpose


def test_the_file_is_readable_by_a_person_and_by_any_json_reader(tmp_path: Path) -> None:
    save(PREDICTION, tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    assert text.count("\n") > 5
    assert json.loads(text)["noun"] == "Prediction"
