"""A run's folder is read once, and every file is checked against the chain."""

from pathlib import Path

import pytest

from rtopt.errors import TraceError
from rtopt.report.run import Run, open_run


def test_every_noun_is_read_by_its_round(opened: Run) -> None:
    assert sorted(opened.trials) == [1, 2]
    assert sorted(opened.attributions) == [1, 2]
    assert sorted(opened.afters) == [1]
    assert opened.broken is None
    assert opened.ended == "2 trials, the most this run may make"
    assert [trial.id for trial in opened.kept] == ["max_num_active_seqs-1"]


def test_a_changed_noun_breaks_the_provenance(two_trials: Path) -> None:
    path = two_trials / "trial-1.json"
    path.write_text(path.read_text().replace('"pairs": 8', '"pairs": 9'))
    run = open_run(two_trials)
    assert run.provenance is None
    assert run.broken == "trial-1.json: no link of the chain holds it as it is now"


def test_a_changed_recording_breaks_the_provenance(two_trials: Path) -> None:
    (two_trials / "baseline.jsonl.gz").write_bytes((two_trials / "after-1.jsonl.gz").read_bytes())
    assert open_run(two_trials).broken == "baseline.jsonl.gz: changed since link 1 was written"


def test_a_recording_that_is_gone_breaks_the_provenance(two_trials: Path) -> None:
    (two_trials / "after-1.jsonl.gz").unlink()
    assert open_run(two_trials).broken == (
        "link 8 speaks of after-1.jsonl.gz, which is not in the folder"
    )


def test_a_run_without_a_chain_has_no_provenance_and_is_not_broken(two_trials: Path) -> None:
    (two_trials / "provenance.jsonl").unlink()
    run = open_run(two_trials)
    assert (run.provenance, run.broken, run.ended) == (None, None, None)


def test_a_damaged_noun_is_an_error_of_its_own(two_trials: Path) -> None:
    (two_trials / "choice-2.json").write_text("{")
    with pytest.raises(TraceError, match=r"choice-2\.json: not JSON"):
        open_run(two_trials)
