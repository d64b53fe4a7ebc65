"""concatenation: inputs side by side along one axis, each brought to the output's parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import rescale, store
from ..rules.combine import RULES
from .accumulator import multiplier_arrays
from .base import Call, Lowered, Operand, Operator, Shape, Step
from .elementwise import blockwise
from .indexing import bounded, parameters_or_zero


def joined_shape(call: Call, parts: Sequence[Operand]) -> Shape:
    """The shape of `parts` side by side along the attribute `axis`; the extents of all other axes must be equal."""
    first = parts[0]
    axis = call.axis(call.attribute("axis"), first.rank)
    for part in parts[1:]:
        if part.rank != first.rank or any(
            a != b for at, (a, b) in enumerate(zip(part.shape, first.shape, strict=True)) if at != axis
        ):
            raise call.invalid(
                "BT-CONCATENATION",
                f"'{part.name}' of shape {list(part.shape)} does not fit '{first.name}' of shape {list(first.shape)} "
                f"along axis {axis}",
            )
    total = sum(part.shape[axis] for part in parts)
    return bounded(call, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def infer(call: Call) -> list[Shape]:
    """Extents of all axes but one are equal. Scalars are joined to a vector when they are known at plan time."""
    call.expect((1, len(call.inputs)))
    parts = [call.input(position) for position in range(len(call.inputs))]
    first = parts[0]
    if call.attribute("activation") != "none":
        raise call.invalid("BT-CONCATENATION", f"fused activation '{call.attribute('activation')}' is not allowed")
    if first.rank == 0:
        # Source: docs/facts/litert.md 2.7; the kernel joins scalars only while it prepares.
        if call.attribute("axis") != 0 or any(part.rank for part in parts):
            raise call.invalid("BT-CONCATENATION", "scalars can only be joined to scalars, along axis 0")
        for position in range(len(parts)):
            call.constant(position, "scalar")
        return [(len(parts),)]
    return [joined_shape(call, parts)]


def _moved(call: Call, part: Operand, codes: np.ndarray) -> np.ndarray:
    """What the codes of a part become: by the rule of the slot `combine`, else rescaled and stored."""
    low, high = call.output.type.minimum, call.output.type.maximum
    if "combine" in call.rules:
        return RULES[call.rules["combine"]](
            codes, *parameters_or_zero(part), *parameters_or_zero(call.output), low, high
        )
    centered = codes.astype(np.int64) - part.zero_point
    rescaled = rescale.RULES[call.rules["rescale"]].apply(centered, multiplier_arrays(call, part.scale, 1))
    return store.RULES[call.rules["store"]](rescaled, call.output.zero_point, low, high)


def lower(call: Call) -> Lowered:
    """The axis, and one 256-entry table per input whose integers change."""
    parts = [call.input(position) for position in range(len(call.inputs))]
    axis = call.axis(call.attribute("axis"), call.output.rank)
    chosen = [-1] * len(parts)
    tables: list[np.ndarray] = []
    # Scalars are copied while the kernel prepares, whatever their parameters are.
    if call.rules.get("combine") != "copy" and parts[0].rank:
        dtype = call.output.type
        codes = np.arange(dtype.minimum, dtype.maximum + 1)
        for position, part in enumerate(parts):
            moved = _moved(call, part, codes)
            if not np.array_equal(moved, codes):
                chosen[position] = len(tables)
                tables.append(moved.astype(dtype.numpy))
    arrays = {"tables": np.stack(tables)} if tables else {}
    low = call.output.type.minimum if tables else 0
    return Lowered(
        {"axis": axis, "tables": tuple(chosen), "low": low},
        arrays,
        scratch=sum(part.size for part, table in zip(parts, chosen, strict=True) if table >= 0),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Looked up, then joined. A table for an input of another type begins at that type's lowest integer."""
    parts = [x if x.ndim else x.reshape(1) for x in inputs]
    for position, table in enumerate(step["tables"]):
        if table >= 0:
            lookup, low = step.arrays["tables"][table], step["low"]
            if parts[position].dtype != lookup.dtype:
                low = np.iinfo(parts[position].dtype).min
            parts[position] = blockwise(lambda q, t=lookup, low=low: t[q - low], [parts[position]], lookup.dtype)
    return [np.concatenate(parts, axis=step["axis"])]


OPERATOR = Operator(
    "concatenation",
    ("combine", "scale_form", "rescale", "store"),
    infer,
    lower,
    reference,
    "inputs side by side along one axis",
    moves=True,
)
