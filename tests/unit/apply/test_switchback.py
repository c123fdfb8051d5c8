"""The order of the arms."""

from rtopt.apply.switchback import arms, order


def test_every_pair_has_both_arms() -> None:
    blocks = list(arms(seed=3, max_pairs=50))
    for pair in range(50):
        assert {arm for number, arm in blocks if number == pair} == {"base", "candidate"}


def test_the_coin_is_fair_and_comes_from_the_seed() -> None:
    heads = sum(order(seed, pair)[0] == "candidate" for seed in range(20) for pair in range(50))
    assert 430 < heads < 570
    assert list(arms(seed=1, max_pairs=20)) == list(arms(seed=1, max_pairs=20))
    assert list(arms(seed=1, max_pairs=20)) != list(arms(seed=2, max_pairs=20))
