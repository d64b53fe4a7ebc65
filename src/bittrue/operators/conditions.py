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


def equal_extents(call: Call, first: int, first_axis: int, second: int, second_axis: int) -> bool:
    """Two inputs have the same extent along one axis each."""
    return call.input(first).shape[first_axis] == call.input(second).shape[second_axis]


def last_extent_below(call: Call, position: int, limit: int) -> bool:
    """The last axis of the input at `position` is shorter than `limit`."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] < limit


def last_extent_in_blocks(call: Call, position: int, block: int) -> bool:
    """The last axis of the input at `position` holds whole blocks of `block` elements."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] % block == 0


def zero_point_is_zero(call: Call, position: int) -> bool:
    """The input at `position` has the zero point 0; those of per-axis parameters are not looked at."""
    quantization = call.input(position).tensor.quantization
    return quantization is None or quantization.per_axis or not quantization.zero_points.any()


def per_tensor(call: Call) -> bool:
    """No operand has a scale per slice of an axis."""
    operands = (*(o for o in call.inputs if o is not None), *call.outputs)
    return not any(o.tensor.quantization is not None and o.tensor.quantization.per_axis for o in operands)


CONDITIONS: dict[str, Callable[..., bool]] = {
    "attribute_is": attribute_is,
    "constant_inputs": constant_inputs,
    "equal_extents": equal_extents,
    "input_per_axis": input_per_axis,
    "input_rank": input_rank,
    "last_extent_below": last_extent_below,
    "last_extent_in_blocks": last_extent_in_blocks,
    "per_tensor": per_tensor,
    "zero_point_is_zero": zero_point_is_zero,
    **PARTITION,
}
