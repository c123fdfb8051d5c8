"""A recorded engine: SmolLM2-135M on vLLM's CPU platform."""

import importlib.util

import pytest

from rtopt.types import EngineInfo


@pytest.fixture(scope="session")
def info() -> EngineInfo:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed: its scheduler cannot be replayed")
    return EngineInfo(
        name="vllm",
        version="0.32.0",
        model="SmolLM2-135M",
        config={
            "max_num_seqs": 64,
            "max_num_active_seqs": None,
            "max_num_batched_tokens": 2048,
            "max_num_scheduled_tokens": None,
            "block_size": 128,
            "enable_prefix_caching": True,
            "enable_chunked_prefill": True,
            "long_prefill_token_threshold": 0,
            "policy": "fcfs",
            "max_model_len": 8192,
            "async_scheduling": False,
        },
        kv={
            "num_blocks": 364,
            "block_size": 128,
            "groups": [
                {
                    "kind": "FullAttentionSpec",
                    "block_size": 128,
                    "num_kv_heads": 3,
                    "head_size": 64,
                    "dtype": "bfloat16",
                    "layers": 30,
                }
            ],
        },
        model_config={
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 576,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "head_dim": 64,
            "intermediate_size": 1536,
            "vocab_size": 49152,
            "max_position_embeddings": 8192,
            "torch_dtype": "bfloat16",
            "tie_word_embeddings": True,
        },
    )
