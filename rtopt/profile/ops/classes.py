"""What kind of work an op does, by its whole name.

A name that is not here has no class: its time counts as unmatched, and is never guessed from a
part of the name.
"""

from enum import StrEnum
from typing import Final


class OpClass(StrEnum):
    """Kinds of work in a step."""

    MATMUL = "matrix product"
    ATTENTION = "attention"
    KV_WRITE = "KV cache write"
    ROTARY = "rotary embedding"
    NORM = "norm"
    ACTIVATION = "activation"
    EMBEDDING = "token embedding"
    SAMPLING = "sampling"
    ELEMENTWISE = "elementwise"
    COPY = "copy and layout"


_NAMES: Final[dict[OpClass, tuple[str, ...]]] = {
    OpClass.MATMUL: (
        "_C::onednn_mm",
        "_C::weight_packed_linear",
        "aten::addmm",
        "aten::bmm",
        "aten::linear",
        "aten::matmul",
        "aten::mm",
    ),
    OpClass.ATTENTION: (
        "_C::cpu_attention_with_kv_cache",
        "aten::scaled_dot_product_attention",
        "vllm::unified_attention",
        "vllm::unified_attention_with_output",
    ),
    OpClass.KV_WRITE: ("_C::cpu_attn_reshape_and_cache", "vllm::unified_kv_cache_update"),
    OpClass.ROTARY: ("_C::rotary_embedding",),
    OpClass.NORM: (
        "_C::fused_add_rms_norm",
        "_C::rms_norm",
        "aten::layer_norm",
        "aten::rms_norm",
    ),
    OpClass.ACTIVATION: (
        "_C::gelu_and_mul",
        "_C::gelu_fast",
        "_C::gelu_new",
        "_C::gelu_tanh_and_mul",
        "_C::silu_and_mul",
        "aten::gelu",
        "aten::relu",
        "aten::sigmoid",
        "aten::silu",
    ),
    OpClass.EMBEDDING: ("aten::embedding",),
    OpClass.SAMPLING: (
        "_C::greedy_argmax",
        "aten::argmax",
        "aten::exponential_",
        "aten::log_softmax",
        "aten::multinomial",
        "aten::softmax",
        "aten::sort",
        "aten::topk",
    ),
    OpClass.ELEMENTWISE: (
        "aten::add",
        "aten::add_",
        "aten::bitwise_and",
        "aten::clamp",
        "aten::cos",
        "aten::cumsum",
        "aten::div",
        "aten::div_",
        "aten::eq",
        "aten::floor_divide",
        "aten::ge",
        "aten::gt",
        "aten::le",
        "aten::lt",
        "aten::masked_fill_",
        "aten::max",
        "aten::mean",
        "aten::min",
        "aten::mul",
        "aten::mul_",
        "aten::ne",
        "aten::neg",
        "aten::pow",
        "aten::remainder",
        "aten::rsqrt",
        "aten::rsub",
        "aten::sin",
        "aten::sub",
        "aten::sum",
        "aten::where",
    ),
    OpClass.COPY: (
        "aten::_to_copy",
        "aten::_unsafe_view",
        "aten::alias",
        "aten::arange",
        "aten::as_strided",
        "aten::cat",
        "aten::chunk",
        "aten::clone",
        "aten::contiguous",
        "aten::copy_",
        "aten::detach",
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::expand",
        "aten::fill_",
        "aten::flatten",
        "aten::full",
        "aten::gather",
        "aten::index",
        "aten::index_put_",
        "aten::index_select",
        "aten::item",
        "aten::narrow",
        "aten::new_empty",
        "aten::numpy_T",
        "aten::ones",
        "aten::permute",
        "aten::repeat_interleave",
        "aten::reshape",
        "aten::resize_",
        "aten::scatter_",
        "aten::select",
        "aten::slice",
        "aten::split",
        "aten::split_with_sizes",
        "aten::squeeze",
        "aten::stack",
        "aten::t",
        "aten::to",
        "aten::transpose",
        "aten::unbind",
        "aten::unflatten",
        "aten::unsqueeze",
        "aten::view",
        "aten::zero_",
        "aten::zeros",
        "aten::zeros_like",
    ),
}
_CLASS_OF: Final = {name: op_class for op_class, names in _NAMES.items() for name in names}


def class_of(name: str) -> OpClass | None:
    """Kind of work of an op; None when its name is not known."""
    return _CLASS_OF.get(name)
