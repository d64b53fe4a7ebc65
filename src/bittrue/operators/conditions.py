"""Conditions under which a numerics row holds for a node, by name: which way its runtime takes there.

Each takes the call, whose output shapes are inferred, and the row's arguments, and says whether it holds. Unlike the
checks in `requirements`, a condition that does not hold is no error: the next row has its turn.
"""

from __future__ import annotations

from collections.abc import Callable

from .base import Call
from .partition import PARTITION


def constant_inputs(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are known at plan time (absent ones count as known)."""
    return all(not call.has(p) or call.input(p).value is not None for p in positions)


def input_rank(call: Call, position: int, *ranks: int) -> bool:
    """The input at `position` has one of these ranks."""
    return call.has(position) and call.input(position).rank in ranks


def attribute_is(call: Call, name: str, *values: object) -> bool:
    """Attribute `name` has one of these values."""
    return call.node.attributes.get(name) in values


def input_per_axis(call: Call, position: int) -> bool:
    """The input at `position` has a scale per slice of an axis."""
    quantization = call.input(position).tensor.quantization if call.has(position) else None
    return quantization is not None and quantization.per_axis


CONDITIONS: dict[str, Callable[..., bool]] = {
    "attribute_is": attribute_is,
    "constant_inputs": constant_inputs,
    "input_per_axis": input_per_axis,
    "input_rank": input_rank,
    **PARTITION,
}
