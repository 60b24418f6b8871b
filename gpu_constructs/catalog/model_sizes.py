"""The least memory that the weights of a language model take, by the model's name."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIZE = re.compile(r"(?<![a-z0-9.])(?:([0-9]{1,3})x)?([0-9]{1,4}(?:\.[0-9]{1,2})?)b(?![a-z0-9])")
_LEAST_OF_ROUNDED = 0.93
"""A name rounds: what is called 7B may have 6.6 billion weights."""
_EXPERTS_SHARE = 0.8
"""Experts have layers in common: 8x7B has 46.7 billion weights, and 8x22B 141."""
_MOST_EXPERTS_COUNTED = 8
"""Above, as in Llama 4 of 16x17B, the second number counts the weights that are in use at once."""

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
"""Least bytes of a weight by what a name or a flag says of its format.

Source: vllm-project/vllm:docs/features/quantization; ggml-org/llama.cpp:tools/quantize/README.md
"""
_LEAST_UNSAID = 0.5
"""Least bytes of a weight if the name states no format: some publishers do not name a format of 4 bits."""
_UNSAID = 2.0
"""Usual bytes of a weight if the name states no format: checkpoints have 16 bits a weight."""


def least_weights(model: str, quantization: str | None = None) -> tuple[float, float] | None:
    """Return the gigabytes that a model's weights take for certain, and those that they take as a rule.

    Args:
        model: Name of the model, as a repository of Hugging Face or of Ollama.
        quantization: Format that a server is told to use.

    Returns:
        Both numbers; None where the name tells no size.
    """
    name = model.casefold()
    counts = [_billions(*found.groups()) for found in _SIZE.finditer(name)]
    if not counts:
        return None
    billions = min(counts) * _LEAST_OF_ROUNDED
    said = [amount for text in (name, (quantization or "").casefold()) for form, amount in _BYTES if _has(form, text)]
    if quantization and not said:
        said = [_BYTES[0][1]]
    least = min(said, default=_LEAST_UNSAID)
    return billions * least, billions * min(said, default=_UNSAID)


def _billions(experts: str | None, number: str) -> float:
    if experts is None or int(experts) > _MOST_EXPERTS_COUNTED:
        return float(number)
    return int(experts) * float(number) * _EXPERTS_SHARE


def _has(form: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9])(?:{form})", text) is not None
