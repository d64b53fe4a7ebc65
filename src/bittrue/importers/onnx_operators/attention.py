"""Mappings of attention and of what goes with it in transformers."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source

_LOWEST = float(np.finfo(np.float32).min)
_PLAIN: dict[str, Attribute] = {
    "causal": False,
    "last_sees_all": True,
    "window": -1,
    "mask_value": _LOWEST,
    "cap": 0.0,
    "smooth": False,
    "value_columns": 0,
    "cache": "pair",
    "scores": "none",
    "blocks": "never",
}


def _refuse(source: Source, *names: str) -> None:
    """Attributes that only other processors' kernels know."""
    for name in names:
        if source.integer(name, 0):
            raise source.unsupported("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is not read", "export it without")


def _of_projection(source: Source, qkv: int, mask: int, past: int, added: int | None, heads: int) -> None:
    """Attention over one tensor of queries, keys and values side by side."""
    sizes = source.integers("qkv_hidden_sizes") if source.op_type == "Attention" else None
    if sizes is not None and len(sizes) != 3:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'qkv_hidden_sizes' holds {len(sizes)} numbers, expected 3")
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": heads,
        "scale": source.real("scale", 0.0),
        "causal": source.flag("unidirectional", False, False),
        "mask_value": source.real("mask_filter_value", -10000.0),
        "value_columns": sizes[2] if sizes else 0,
        "cache": "stacked",
    }
    operands = [source.inputs[p] if p is not None and source.present(p) else None for p in (mask, added, past)]
    source.emit("attention", "f32", attributes, inputs=[qkv, None, None, None, *operands])


def _attention(source: Source) -> None:
    """The projection, then attention."""
    _refuse(source, "do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
    if source.present(4) and source.present(5):
        raise source.invalid("BT-NODE-INPUT", "past keys and additions to scores do not go together")
    weights = source.tensor(1)
    if not weights.is_constant:
        raise source.unsupported("BT-DYNAMIC", f"the weights '{weights.name}' are not constant", "export them as such")
    (qkv,) = source.emit(
        "matmul", "f32", inputs=source.ordered(0, 1, 2), outputs=[source.temporary("f32", "projected")]
    )
    _of_projection(source, qkv, 3, 4, 5, source.integer("num_heads", 0))


def _q_attention(source: Source) -> None:
    """The projection by integers, then attention."""
    _refuse(source, "do_rotary", "past_present_share_buffer")
    (qkv,) = source.emit(
        "matmul",
        "f32",
        inputs=source.ordered(0, 1, 2, 3, 6, 4, 7),
        outputs=[source.temporary("f32", "projected")],
    )
    _of_projection(source, qkv, 5, 8, None, source.integer("num_heads", 0))


def _multi_head_attention(source: Source) -> None:
    heads = source.integer("num_heads", 0)
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": heads,
        "scale": source.real("scale", 0.0),
        "causal": source.flag("unidirectional", False, False),
        "mask_value": source.real("mask_filter_value", -10000.0),
        "scores": "masked",
        "blocks": "alone",
    }
    if source.present(8) or source.present(9):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "caches of beams are not read", "export without beam search")
    source.emit("attention", "f32", attributes, inputs=source.ordered(0, 1, 2, 3, 4, 5, 6, 7))


MAPPERS: Mappers = {
    (MICROSOFT, "Attention"): _attention,
    (MICROSOFT, "MultiHeadAttention"): _multi_head_attention,
    (MICROSOFT, "QAttention"): _q_attention,
}
