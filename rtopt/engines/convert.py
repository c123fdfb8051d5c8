"""Turns a GGUF file into a Hugging Face folder; runs as a process of its own, once."""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def convert(gguf: Path, out: Path) -> None:
    """Write bfloat16 weights, config.json and the tokenizer of `gguf` into the folder `out`."""
    where, name = str(gguf.parent), gguf.name
    model = AutoModelForCausalLM.from_pretrained(
        where,
        gguf_file=name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    AutoTokenizer.from_pretrained(where, gguf_file=name).save_pretrained(out)
    model.save_pretrained(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
