"""What the page says, word by word, for a run whose numbers are known."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtopt.report.number import THIN
from rtopt.report.run import Run, open_run
from rtopt.report.section import Section
from rtopt.report.story.appendix import appendix_sections, flat
from rtopt.report.story.diagnosis import diagnosis_section
from rtopt.report.story.forecast import forecast_section
from rtopt.report.story.headline import because, combined, facts, headline, promise
from rtopt.report.story.kept import flag, kept_section, undo_section
from rtopt.report.story.measured import measured_section
from rtopt.report.story.options import options_section
from rtopt.report.story.tried import tried_section
from rtopt.report.story.words import sentence
from rtopt.storage import AppendLog


def _plain(text: str) -> str:
    return text.replace(THIN, " ").replace("\u2212", "-").replace("\u2264", "<=")


def _rows(section: Section, table: int = 0) -> dict[str, tuple[str, ...]]:
    found = section.tables[table]
    return {row[0]: tuple(_plain(cell) for cell in row[1:]) for row in found.rows}


def test_the_headline_is_the_verdict_in_one_sentence(opened: Run) -> None:
    assert _plain(headline(opened)) == (
        "rtopt raised output tokens per second from 76.3 to 296: +288 % (99 % interval "
        "+262 % to +317 %) by letting 32 requests run at once instead of 4."
    )
    assert because(opened) == ""


def test_the_promise_names_its_bound_and_its_price(opened: Run) -> None:
    assert _plain(promise(opened)) == (
        "The promise: P(any kept lever is worse than baseline) <= 1 %, however often the gate "
        "looked. To find out, 782 of 1215 measured requests were served with a change on "
        "trial; the rest saw the engine as it was."
    )


def test_four_numbers_stand_at_the_top(opened: Run) -> None:
    told = [(f.label, _plain(f.value), _plain(f.note), f.tone) for f in facts(opened)]
    assert told[1:] == [
        ("Limits (SLO)", "all held", "itl_p95 141 ms <= 200 ms", "good"),
        (
            "Risk of keeping a change that is worse",
            "<= 1 %",
            "782 of 1215 measured requests were exposed",
            "plain",
        ),
        (
            "Make it permanent with",
            "--max-num-active-seqs 32",
            "a restart without it loses the gain",
            "plain",
        ),
    ]
    assert told[0][0] == "Output tokens per second"
    assert told[0][2:] == ("+288 %", "good")


def test_what_was_measured_stands_beside_its_limit(opened: Run) -> None:
    section = measured_section(opened)
    assert section.lead[0].startswith("vllm 0.32.0 serving SmolLM2-135M-Instruct was recorded for")
    assert section.tables[0].head == ("", "Before", "After", "Change", "Limit (SLO)")
    rows = _rows(section)
    assert rows["Output tokens per second"][2].endswith("% better")
    assert rows["Mean time between tokens"][2].endswith("% worse")
    assert rows["95th percentile of time between tokens"][3] == "<= 200 ms: \u2713 held"
    assert rows["Mean time to first token"][3] == "\u2013"


def test_a_metric_without_data_is_not_zero(opened: Run) -> None:
    trial = opened.trials[1]
    blind = tuple(
        replace(b, metrics={n: v for n, v in b.metrics.items() if n != "ttft_mean"})
        for b in trial.blocks
    )
    rows = _rows(measured_section(replace(opened, trials={1: replace(trial, blocks=blind)})))
    assert rows["Mean time to first token"] == ("no data", "no data", "unknown", "\u2013")


def test_causes_stand_with_their_numbers_and_those_ruled_out(opened: Run) -> None:
    section = diagnosis_section(opened)
    assert _plain(section.lead[0]) == (
        "Every slot is taken (100 %): every one of the 4 slots was taken while requests waited "
        "for 100 % of the busy time."
    )
    assert _rows(section, 1) == {
        "Time is lost between steps": (
            "2.4 %",
            "2 % of the busy time passed between the model's runs although work was left.",
        ),
        "The queue is growing": (
            "not known",
            "Not checked: closed loop: clients wait for answers.",
        ),
    }
    assert _plain(section.parts[0].lead[0]).startswith("No cause is named: none of 7 checks")


def test_every_candidate_is_listed_with_its_fate(opened: Run) -> None:
    rows = _rows(options_section(opened))
    assert rows["max_num_active_seqs = 32"][0].endswith("extrapolated")
    assert rows["max_num_active_seqs = 32"][1:] == ("+310 %", "\u2713 tried")
    assert rows["max_num_active_seqs = 8"][2].startswith("Ranked behind from 4 to 32")
    assert rows["max_num_scheduled_tokens"] == (
        "\u2013",
        "\u2013",
        "It targets token_budget_full, and the named causes are: slots_full.",
    )


def test_each_trial_has_its_verdict_and_reason(opened: Run) -> None:
    first, second = tried_section(opened).parts
    assert first.title == "Trial 1: letting 32 requests run at once instead of 4"
    assert first.badge is not None
    assert first.badge.text == "\u2713 kept"
    assert _plain(first.lead[1]) == (
        "Decision: keep. Throughput +288 % after 8 pairs, e=243 (needs 100), every guard held."
    )
    assert "A keep needed evidence (e-value) of 100, and it reached 243." in _plain(first.lead[2])
    assert second.badge is not None
    assert second.badge.text == "\u21ba restored"
    assert "-6.6 % (99 % interval -12 % to -1 %)" in _plain(second.lead[0])


def test_predictions_stand_beside_measurements(opened: Run) -> None:
    section = forecast_section(opened)
    now, then = section.tables
    assert now.caption == "As it was; measured over the baseline recording."
    assert "Extrapolated" in then.caption
    assert _rows(section, 1)["95th percentile of time to first token"][3:] == ("-10 %", "outside")
    assert "Not compared: kernel_time (no event plane)." in section.lead


def test_a_kept_change_comes_with_every_form_of_its_flag(opened: Run) -> None:
    section = kept_section(opened)
    flagged, helm, compose = (code.text for code in section.codes)
    assert flagged == "vllm serve MODEL --max-num-active-seqs 32"
    assert helm.endswith('extraArgs:\n          - "--max-num-active-seqs"\n          - "32"')
    assert compose.endswith('- "--max-num-active-seqs"\n      - "32"')
    assert [code.text for code in undo_section(opened).codes] == [
        f"rtopt undo {opened.id}",
        "rtopt restore URL",
    ]


def test_a_switch_has_no_value() -> None:
    assert flag("scheduler_reserve_full_isl", True) == ("--scheduler-reserve-full-isl",)
    assert flag("scheduler_reserve_full_isl", False) == ("--no-scheduler-reserve-full-isl",)


def test_nothing_kept_is_said_as_plainly_with_its_reason(one_restored: Path) -> None:
    run = open_run(one_restored)
    assert headline(run) == "rtopt tried 1 change and kept none: the engine runs as it did before."
    assert _plain(because(run)) == (
        "Computing at most 512 tokens per step instead of 2048: restored (harm: throughput -7 % "
        "after 5 pairs, e=13.4 (stops at 10))."
    )
    assert kept_section(run).lead[0].startswith("Nothing.")
    assert kept_section(run).codes == ()
    assert facts(run)[1].value == "not proven"


def test_nothing_tried_is_said_too(baseline_only: Path) -> None:
    run = open_run(baseline_only)
    assert headline(run).startswith("rtopt found a change worth trying and did not try it")
    assert promise(run) == "No request was exposed to any change."
    assert facts(run) == ()
    assert tried_section(run).lead == (
        "Nothing was tried, and the engine was not touched. "
        "The plan was not confirmed; nothing was changed.",
    )
    assert _rows(options_section(run))["max_num_active_seqs = 32"][2] == "chosen, not tried"


def test_a_change_that_was_taken_back_is_no_longer_claimed(two_trials: Path) -> None:
    journal = AppendLog(two_trials / "journal.jsonl")
    journal.append({"act": "undone", "trial": "max_num_active_seqs-1", "unix_ns": 1})
    run = open_run(two_trials)
    assert headline(run) == (
        "Nothing stands: rtopt had kept a change (letting 32 requests run at once instead of 4), "
        "and it was taken back later."
    )
    badge = tried_section(run).parts[0].badge
    assert badge is not None
    assert badge.text == "\u21ba kept, taken back later"


def test_two_kept_changes_multiply_and_their_doubts_add_up(opened: Run) -> None:
    trial = opened.trials[1]
    found = combined((trial, trial))
    assert found is not None
    assert found.interval is not None
    assert found.value == pytest.approx(3.88**2 - 1)
    assert found.interval.low == pytest.approx(3.62**2 - 1)
    assert found.interval.level == pytest.approx(0.98)


def test_the_appendix_holds_what_checkers_ask_for(opened: Run) -> None:
    parts = {part.id: part for part in appendix_sections(opened)}
    assert len(parts["provenance"].tables[0].rows) == 17
    assert parts["provenance"].lead[1] == (
        "Recordings whose SHA-256 matches: baseline.jsonl.gz, after-1.jsonl.gz."
    )
    assert _rows(parts["gate-1"])["Simulated: kept at a true effect of 0"] == ("0.31 %",)
    assert _rows(parts["recordings"])["baseline"][3] == "cpu 1"
    assert _plain(parts["cost"].lead[0]).startswith(
        "Recording took 40 microseconds per step inside the engine's processes, 0.0"
    )
    assert _rows(parts["engine"])["Wall clock against monotonic clock over it"] == ("0.4 ms",)


def test_a_recording_without_a_digest_is_said_to_be_unchecked(opened: Run) -> None:
    assert opened.provenance is not None
    link = replace(opened.provenance.entries[1], body={"file": "baseline.jsonl.gz"})
    run = replace(opened, provenance=replace(opened.provenance, entries=(link,)))
    lead = appendix_sections(run)[0].lead
    assert lead[1] == "Recordings named without a digest, so not checked: baseline.jsonl.gz."


def test_settings_that_may_name_somebody_are_not_shown() -> None:
    assert flat(
        {
            "url": "engine:8000",
            "levers": "/home/a/levers",
            "max_num_batched_tokens": 2048,
            "admin_token": "x",
            "gate": {"alpha": 0.01, "kept": None},
            "contact": "a@b.example",
        }
    ) == {
        "url": "(not shown)",
        "levers": "(not shown)",
        "max_num_batched_tokens": "2048",
        "admin_token": "(not shown)",
        "gate.alpha": "0.01",
        "gate.kept": "not set",
        "contact": "(not shown)",
    }


def test_a_name_keeps_its_letters_at_the_start_of_a_sentence() -> None:
    assert sentence("max_num_active_seqs from 4 to 32") == "max_num_active_seqs from 4 to 32."
    assert sentence("  harm at 7%") == f"Harm at 7{THIN}%."
    assert sentence("") == ""
