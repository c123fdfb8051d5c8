import json
from pathlib import Path
from typing import Any

import pytest

from rtopt.storage.schema import text, trace_schema
from rtopt.storage.trace_line import KINDS

COMMITTED = Path(__file__).parents[3] / "traces" / "trace.schema.json"


def test_the_committed_schema_is_the_one_of_the_nouns() -> None:
    assert COMMITTED.read_text() == text(), "run: python -m rtopt.storage.schema"


@pytest.mark.parametrize(("kind", "cls"), KINDS.items())
def test_every_kind_is_in_it_with_its_fields_and_refuses_others(kind: str, cls: type) -> None:
    schema = trace_schema()["$defs"][cls.__name__]
    assert schema["properties"]["kind"] == {"const": kind}
    assert set(schema["properties"]) == {"kind", *cls.__dataclass_fields__}  # type: ignore[attr-defined] # a noun
    assert schema["additionalProperties"] is False


def test_field_docstrings_are_the_descriptions() -> None:
    step: dict[str, Any] = trace_schema()["$defs"]["Step"]
    assert step["properties"]["kv_frac"]["description"] == "KV blocks in use, 0..1."
    assert step["properties"]["kv_frac"]["type"] == "number"


def test_null_is_no_value_of_a_field_that_may_be_absent() -> None:
    assert '"null"' not in json.dumps(trace_schema()["$defs"]["Step"])
    assert '"null"' in json.dumps(trace_schema()["$defs"]["EngineInfo"]["properties"]["config"])
