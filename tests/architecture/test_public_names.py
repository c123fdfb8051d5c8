"""What `from rtopt import ...` may rely on, and the tree of errors with its exit codes."""

import re

import pytest

import rtopt
from rtopt import errors
from rtopt.errors import RtoptError

NAMES = [
    "Attribution",
    "Cause",
    "Change",
    "Choice",
    "Context",
    "Deviation",
    "Envelope",
    "Lever",
    "Load",
    "Prediction",
    "RtoptError",
    "Session",
    "Slo",
    "Trace",
    "Trial",
    "Verdict",
    "attach",
]
# in:   |- EngineError       5   engine missing, refused or died
#       |  `- KnobError      5   a knob is unknown or its value is outside its limits
LINE = re.compile(r"(?P<bars>[|` ]*- )(?P<name>\w+Error) +(?P<code>\d+)   \S")


def leaves(tree: type[RtoptError] = RtoptError) -> list[type[RtoptError]]:
    return [found for sub in tree.__subclasses__() for found in (sub, *leaves(sub))]


def test_the_public_names_are_these() -> None:
    assert rtopt.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(rtopt, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tune_everything'"):
        getattr(rtopt, "tune_everything")  # noqa: B009 - mypy knows that the name is not there


def test_the_tree_of_errors_is_the_one_drawn_at_its_top() -> None:
    lines = (errors.__doc__ or "").splitlines()
    drawn = {m["name"]: (int(m["code"]), m["bars"]) for m in map(LINE.match, lines) if m}
    assert {leaf.__name__: leaf.exit_code for leaf in leaves()} == {
        name: code for name, (code, _) in drawn.items()
    }
    nested = {name for name, (_, bars) in drawn.items() if len(bars) > len("|- ")}
    assert nested == {leaf.__name__ for leaf in leaves() if leaf.__base__ is not RtoptError}


def test_every_error_of_the_module_is_in_the_tree() -> None:
    classes = {c for c in vars(errors).values() if isinstance(c, type) and c is not RtoptError}
    assert {c for c in classes if issubclass(c, BaseException)} == set(leaves())
