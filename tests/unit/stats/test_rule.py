"""Operating characteristics of the gate's rule (the design's settings: 60 pairs, sd 6.7 %)."""

import math
import time

import numpy as np
import pytest

from rtopt.stats import Rule, Stop, simulate

RULE = Rule(alpha=0.01, prior=0.3, min_pairs=4, max_pairs=60)
LIVE_SD = 0.067


def test_a_change_without_effect_is_kept_in_at_most_one_of_a_hundred_trials() -> None:
    assert simulate(RULE, effect=0.0, sd=LIVE_SD).keep <= 0.01


def test_a_change_two_percent_worse_is_kept_in_at_most_one_of_a_thousand() -> None:
    assert simulate(RULE, effect=math.log(0.98), sd=LIVE_SD).keep <= 0.001


def test_a_five_percent_gain_is_kept_and_soon() -> None:
    found = simulate(RULE, effect=math.log(1.05), sd=LIVE_SD)
    assert found.keep >= 0.94
    assert found.pairs_mean <= 30


def test_a_change_twenty_percent_worse_is_stopped_within_nine_pairs() -> None:
    found = simulate(RULE, effect=math.log(0.8), sd=LIVE_SD)
    assert found.harm == 1.0
    assert found.pairs_mean <= 9


def test_ten_thousand_trials_take_less_than_two_seconds() -> None:
    start = time.perf_counter()
    simulate(RULE, effect=0.0, sd=LIVE_SD, trials=10_000)
    assert time.perf_counter() - start < 2


def test_the_false_keep_at_no_effect_does_not_depend_on_the_noise() -> None:
    assert simulate(RULE, effect=0.0, sd=1.0).keep == simulate(RULE, effect=0.0, sd=0.01).keep


def test_the_same_seed_gives_the_same_figures() -> None:
    assert simulate(RULE, effect=0.01, sd=0.05) == simulate(RULE, effect=0.01, sd=0.05)


@pytest.mark.parametrize(("gain", "stop"), [(0.1, Stop.KEEP), (-0.1, Stop.HARM), (0.0, Stop.GO_ON)])
def test_without_noise_the_rule_still_wants_its_fewest_pairs(gain: float, stop: Stop) -> None:
    stops = RULE.stops(np.full(60, gain))
    assert stops[-1] == stop
    if stop is Stop.KEEP:
        assert int(np.argmax(stops == Stop.KEEP)) + 1 == RULE.fewest_pairs == 8


def test_a_proven_gain_below_the_smallest_wanted_is_not_kept() -> None:
    rule = Rule(alpha=0.01, prior=0.3, min_pairs=4, max_pairs=60, min_gain=0.05)
    assert not (rule.stops(np.full(60, 0.04)) == Stop.KEEP).any()
    assert (rule.stops(np.full(60, 0.06)) == Stop.KEEP).any()
