"""The JSON schema of one line of a trace, made from the nouns; docstrings are its descriptions.

`python -m rtopt.storage.schema` writes it to traces/trace.schema.json.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from rtopt.storage.codec import CONFIG
from rtopt.storage.trace_line import KINDS
from rtopt.types import SCHEMA

DEFAULT_PATH: Final = Path("traces", "trace.schema.json")


def trace_schema() -> dict[str, Any]:
    """Schema of one line: the fields of a noun, and `kind`, which says of which."""
    definitions: dict[str, Any] = {}
    lines: list[dict[str, Any]] = []
    for kind, cls in KINDS.items():
        one: Any = tuple.__class_getitem__(cls)
        made = TypeAdapter(one, config=CONFIG).json_schema(mode="validation")
        definitions.update(made["$defs"])
        definitions[cls.__name__] = _with_kind(definitions[cls.__name__], kind)
        lines.append({"$ref": f"#/$defs/{cls.__name__}"})
    plain: dict[str, Any] = _plainer(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of a trace ({SCHEMA})",
        "description": "A trace is a file of JSON lines, plain or gzip: one header, then records,"
        " then one end. A field without a default of its own may be left out: then it was not"
        " read; it never stands for 0.",
        "oneOf": lines,
        "$defs": dict(sorted(plain.items())),
    }


def text() -> str:
    """The schema as it stands in the file."""
    return json.dumps(trace_schema(), indent=2) + "\n"


def _with_kind(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        **schema,
        "properties": {"kind": {"const": kind}, **schema["properties"]},
        "required": ["kind", *schema["required"]],
    }


def _plainer(node: Any) -> Any:
    """Without the titles that only repeat a field's name, and without null: absent is absent."""
    match node:
        case {"properties": dict(properties)}:
            rest = {key: _plainer(value) for key, value in node.items() if key != "properties"}
            return {**rest, "properties": {k: _field(v) for k, v in properties.items()}}
        case dict():
            return {key: _plainer(value) for key, value in node.items()}
        case list():
            return [_plainer(value) for value in node]
    return node


def _field(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: _plainer(value) for key, value in schema.items() if key != "title"}
    if "default" in kept and kept["default"] is None:
        del kept["default"]
        kinds = [kind for kind in kept.pop("anyOf") if kind != {"type": "null"}]
        return {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **kept}
    return kept


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_PATH
    path.write_text(text(), encoding="ascii")
