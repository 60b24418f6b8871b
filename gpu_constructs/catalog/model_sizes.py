"""Estimates of the memory for the weights of a language model, from a model name such as ``Qwen/Qwen3-8B-AWQ``."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIZE = re.compile(r"(?<![a-z0-9.])(?:([0-9]{1,3})x)?([0-9]{1,4}(?:\.[0-9]{1,2})?)b(?![a-z0-9])")
_LEAST_OF_ROUNDED = 0.93
"""Smallest ratio between the real number of weights and the rounded number in the name of a model.

For example, a 7B model can have 6.6 billion weights.
"""
_EXPERTS_SHARE = 0.8
"""Ratio between the real number of weights and the product in a model name such as 8x7B.

The experts of a model share some weights. Mixtral 8x7B therefore has 46.7 billion weights instead of 56 billion, and
8x22B has 141 billion instead of 176 billion.
"""
_MOST_EXPERTS_COUNTED = 8
"""Largest number of experts for which the product in a model name such as 8x7B estimates the number of weights.

For more experts, for example in the name 16x17B of Llama 4, the second number is the number of active weights.
"""

_BYTES: Sequence[tuple[str, float]] = (
    (r"aqlm|quip|bitnet|1\.58|exl[23]|[12][-_]?bits?|w[12]a|iq[12]|q2|tq[12]", 0.19),
    (r"gguf|iq3|q3|3[-_]?bits?|int3|w3a", 0.3),
    (r"awq|gptq|auto-?round|hqq|4[-_]?bits?|int4|(?:nv|mx)?fp4|nf4|w4a|bnb|bitsandbytes|q4|iq4|gpt-oss|torchao", 0.5),
    (r"compressed-tensors|quantized|quark|modelopt_mixed", 0.5),
    (r"q5", 0.62),
    (r"q6|fp6", 0.75),
    (r"fp8|8[-_]?bits?|int8|w8a|q8|f8|modelopt", 1.0),
    (r"bf16|fp16|f16", 2.0),
    (r"fp32|f32|float32", 4.0),
)
"""Smallest number of bytes for a weight in each quantization format.

Each item is a pair of a pattern and the number. The pattern matches the format in a model name or a command-line flag.

Source: vllm-project/vllm:docs/features/quantization; ggml-org/llama.cpp:tools/quantize/README.md
"""
_LEAST_BYTES = 0.5
"""Smallest number of bytes for a weight if the model name contains no quantization format, because it can be 4-bit."""
_USUAL_BYTES = 2.0
"""Usual number of bytes for a weight if the model name contains no quantization format: most checkpoints use 16 bits.
"""


def least_weights(model: str, quantization: str | None = None) -> tuple[float, float] | None:
    """Return the smallest and the usual amount of memory for the weights of a language model, in GB.

    Args:
        model: Name of the model in the registry of Hugging Face or Ollama, such as ``Qwen/Qwen3-8B``.
        quantization: Quantization format in the arguments of the model server, such as ``awq``; None if the arguments
            contain no format.

    Returns:
        A pair of the two amounts. None if the name contains no number of parameters, such as ``8B``.
    """
    name = model.casefold()
    counts = [_billions(*found.groups()) for found in _SIZE.finditer(name)]
    if not counts:
        return None
    billions = min(counts) * _LEAST_OF_ROUNDED
    sizes = [amount for text in (name, (quantization or "").casefold()) for form, amount in _BYTES if _has(form, text)]
    if quantization and not sizes:
        sizes = [_BYTES[0][1]]
    least = min(sizes, default=_LEAST_BYTES)
    return billions * least, billions * min(sizes, default=_USUAL_BYTES)


def _billions(experts: str | None, number: str) -> float:
    if experts is None or int(experts) > _MOST_EXPERTS_COUNTED:
        return float(number)
    return int(experts) * float(number) * _EXPERTS_SHARE


def _has(form: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9])(?:{form})", text) is not None
