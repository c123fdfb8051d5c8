"""Nouns to JSON and back; what comes from outside is checked against the noun's types."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, NoReturn, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from rtopt.errors import TraceError

T = TypeVar("T")

CONFIG: Final = ConfigDict(
    extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True, hide_input_in_errors=True
)
"""Unknown fields and values that are no number are refused; field docstrings are descriptions."""


def to_json(noun: object) -> dict[str, Any]:
    """Give a noun as plain JSON values; an optional field that is absent is left out.

    Raises:
        TraceError: A value has no place in JSON: NaN, an infinity, a function.
    """
    assert is_dataclass(noun)
    assert not isinstance(noun, type)
    return _fields(noun, type(noun).__name__)


def from_json(cls: type[T], data: object, *, where: str) -> T:
    """Read a noun back from plain JSON values.

    Args:
        cls: The noun's class.
        data: What `to_json` gave.
        where: File and line, for the message.

    Raises:
        TraceError: A field is missing, unknown, or of another type.
    """
    if not isinstance(data, dict):
        raise TraceError(f"{where}: found {type(data).__name__}, wanted an object ({cls.__name__})")
    try:
        noun = _adapter(cls).validate_python((data,))[0]
    except ValidationError as error:
        raise TraceError(f"{where}: not a valid {cls.__name__}: {_reason(error)}") from error
    assert isinstance(noun, cls)
    return noun


def parse(text: str | bytes, *, where: str) -> Any:
    """Read JSON as the standard has it: no NaN, no infinities.

    Raises:
        TraceError: It is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: not JSON: {error}") from error


def dump(data: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Write plain values as JSON in ASCII; compact, unless indented for a person."""
    separators = (",", ":") if indent is None else None
    return json.dumps(data, allow_nan=False, indent=indent, separators=separators)


_ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {}
_PLANS: Final[dict[type, tuple[tuple[str, bool], ...]]] = {}


def _adapter(cls: type) -> TypeAdapter[Any]:
    """What checks a tuple of one noun, made once: pydantic takes no setting for the noun alone."""
    if cls not in _ADAPTERS:
        one: Any = tuple.__class_getitem__(cls)
        _ADAPTERS[cls] = TypeAdapter(one, config=CONFIG)
    return _ADAPTERS[cls]


def _plan(cls: type) -> tuple[tuple[str, bool], ...]:
    """Each field, and whether it may be left out when it is None."""
    if cls not in _PLANS:
        assert is_dataclass(cls)
        _PLANS[cls] = tuple((field.name, _defaults_to_none(field)) for field in fields(cls))
    return _PLANS[cls]


def _defaults_to_none(field: Field[Any]) -> bool:
    return field.default is None and field.default_factory is MISSING


def _fields(noun: object, where: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, may_be_left_out in _plan(type(noun)):
        value = getattr(noun, name)
        if value is None and may_be_left_out:
            continue
        plain[name] = _plain(value, f"{where}.{name}")
    return plain


def _plain(value: object, where: str) -> Any:
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise TraceError(f"{where}: found {value}, wanted a number. Nothing was written.")
            return float(value)
        case Mapping():
            return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value, where)
    raise TraceError(
        f"{where}: found {type(value).__name__}, wanted a plain value. Nothing was written."
    )


def _reason(error: ValidationError) -> str:
    """The first problems in one line, each with the path of its field."""
    problems = error.errors(include_url=False, include_context=False)
    told = [f"{'.'.join(map(str, p['loc'][1:])) or 'it'}: {p['msg']}" for p in problems[:3]]
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(told) + more


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
