"""What every file in levers/ must do; it knows no lever."""

import ast
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from rtopt import Cause, Context, Lever
from rtopt.apply import load_levers

FOLDER = Path(__file__).parents[2] / "levers"
FILES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
LEVERS = load_levers()


def contexts(lever: Lever) -> Iterator[Context]:
    """Engines of several sizes, at several settings, with each cause and with none."""
    causes = [frozenset[Cause](), *(frozenset({cause}) for cause in Cause)]
    sizes = [(1, 64, True), (16, 256, True), (256, 2048, True), (128, 8192, False)]
    for (seqs, tokens, chunked), share, named in product(sizes, (0.05, 0.3, 1.0), causes):
        yield Context(
            knobs={
                "max_num_seqs": seqs,
                "max_num_active_seqs": max(1, int(seqs * share)),
                "max_num_batched_tokens": tokens,
                "max_num_scheduled_tokens": max(seqs, int(tokens * share)),
                "max_model_len": 4096,
                "enable_chunked_prefill": chunked,
            },
            causes=named,
            lever=lever.id,
        )


def usable(lever: Lever) -> Iterator[Context]:
    return (context for context in contexts(lever) if lever.applies(context) is None)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found = request.param
    assert isinstance(found, Path)
    return found


@pytest.fixture
def lever(path: Path) -> Lever:
    return LEVERS[path.stem]


def test_every_file_gives_a_lever_named_like_it() -> None:
    assert sorted(LEVERS) == [path.stem for path in FILES]


def test_it_imports_only_rtopt_and_the_standard_library(path: Path) -> None:
    allowed = {"rtopt", *sys.stdlib_module_names}
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                assert {alias.name for alias in node.names} <= allowed
            case ast.ImportFrom():
                assert node.level == 0
                assert node.module in allowed
            case _:
                pass


def test_it_says_where_its_knob_is_documented(lever: Lever) -> None:
    assert lever.source.strip()
    assert lever.title.strip()
    assert lever.knobs
    assert lever.flag.startswith("--")


def test_it_targets_something_and_nothing_that_it_makes_worse(lever: Lever) -> None:
    assert lever.targets
    assert set(lever.targets).isdisjoint(lever.never_for)


def test_it_says_why_an_engine_without_its_knobs_is_no_place_for_it(lever: Lever) -> None:
    assert lever.applies(Context(knobs={}, lever=lever.id))


def test_the_same_context_gives_the_same_proposals(lever: Lever) -> None:
    for context in usable(lever):
        assert lever.propose(context) == lever.propose(context)


def test_it_proposes_something_for_an_engine_that_it_applies_to(lever: Lever) -> None:
    assert sum(len(lever.propose(context)) for context in usable(lever)) > 0


def test_proposals_stay_inside_the_envelope_and_move_something(lever: Lever) -> None:
    for context in usable(lever):
        limits = lever.envelope(context)
        assert limits.low <= limits.high
        proposals = lever.propose(context)
        assert len({tuple(change.knobs.items()) for change in proposals}) == len(proposals)
        for change in proposals:
            assert change.lever == lever.id
            assert change.reason
            assert set(change.knobs) <= set(lever.knobs)
            assert any(context.knobs[name] != value for name, value in change.knobs.items())
            for value in change.knobs.values():
                assert isinstance(value, int | float)
                assert limits.low <= value <= limits.high
