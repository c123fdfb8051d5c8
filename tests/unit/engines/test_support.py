"""What the loop cannot handle is refused by name; what an engine does not tell is not guessed."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.engines.support import cards_of, unsupported
from rtopt.types import EngineInfo, Value


def engine(
    config: Mapping[str, Value | None], model_config: Mapping[str, Any] | None = None
) -> EngineInfo:
    return EngineInfo(
        name="vllm", version="0.32.0", model="m", config=config, model_config=model_config or {}
    )


PLAIN = engine({"max_num_seqs": 32, "runner_type": "generate"}, {"model_type": "llama"})
CASES: dict[str, tuple[EngineInfo, str]] = {
    "LoRA adapters": (engine({"enable_lora": True}), "enable_lora"),
    "a multimodal model": (engine({}, {"vision_config": {"depth": 2}}), "vision_config"),
    "a pooling model": (engine({"runner_type": "pooling"}), "runner_type=pooling"),
    "structured output": (engine({"structured_output_backend": "Xgrammar"}), "Xgrammar"),
    "disaggregated prefill": (engine({"kv_role": "kv_producer"}), "kv_role=kv_producer"),
}


def test_a_plain_engine_is_supported() -> None:
    assert unsupported(PLAIN, [{"id": "m", "parent": None}]) is None


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_handled_is_named_with_where_it_was_found(name: str) -> None:
    info, where = CASES[name]
    told = unsupported(info)
    assert told is not None
    assert name in told
    assert where in told


def test_an_adapter_in_the_list_of_models_is_enough() -> None:
    told = unsupported(PLAIN, [{"id": "m"}, {"id": "mine", "parent": "m"}])
    assert told is not None
    assert "LoRA" in told
    assert "mine" not in told, "an adapter's name may be private"


def test_a_multimodal_model_that_is_served_for_text_alone_is_supported() -> None:
    info = engine({"is_multimodal_model": False}, {"vision_config": {"depth": 2}})
    assert unsupported(info) is None


@pytest.mark.parametrize(
    ("connector", "is_handled"), [("OffloadingConnector", True), ("NixlConnector", False)]
)
def test_moving_blocks_to_another_engine_is_refused_and_offloading_is_not(
    connector: str, is_handled: bool
) -> None:
    info = engine({"kv_role": "kv_both", "kv_connector": connector})
    assert (unsupported(info) is None) == is_handled


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_an_answer_that_is_no_list_of_models_gives_no_cards(text: str) -> None:
    assert cards_of(text) == ()


def test_only_objects_are_cards() -> None:
    assert cards_of('{"data": [{"id": "m"}, 3, "x"]}') == ({"id": "m"},)
