"""concatenation: inputs side by side along one axis, each brought to the output's parameters.

Attribute `given` says what operands follow the tensors: "scales" (scale and zero point of every tensor, then of the
result) or "ranges" (minimum and maximum of every tensor; the result has the range that holds them all). With constant
ones the step reads the tensors alone. Arrays: `tables` holds 256 entries for every tensor whose integers change;
`tables` among the parameters is the row of each tensor, or -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import DATA_TYPES, Attribute
from ...rules import combine, range_change, rescale, store
from ...rules.affine_sum import Pair
from ...rules.range_levels import HALF
from ..core.accumulator import multiplier_arrays
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from ..core.elementwise import blockwise
from ..core.indexing import bounded, parameters_or_zero
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.scalar_operands import check_scalars, pair
from ..quantization.range_of import joined as joined_ends
from ..quantization.range_operands import check_range, end, span, span_of


def joined_shape(call: Call, parts: Sequence[Operand]) -> Shape:
    """The shape of `parts` side by side along the attribute `axis`; the sizes of all other axes must be equal."""
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


def data_inputs(known: Mapping[str, Any], inputs: int) -> int:
    """How many of a node's inputs are tensors to be joined; `known` are its attributes, or a step's parameters."""
    return {"scales": (inputs - 2) // 3, "ranges": inputs // 3}.get(str(known.get("given")), inputs)


def _infer_with_operands(call: Call, given: str) -> list[Shape]:
    count = len(call.inputs)
    number = data_inputs(call.node.attributes, count)
    if number < 1 or count != (3 * number + 2 if given == "scales" else 3 * number) or len(call.outputs) != 1:
        raise call.invalid("BT-NODE-ARITY", f"{count} inputs: {given} of every tensor must follow the tensors")
    parts = [call.input(position) for position in range(number)]
    if given == "ranges":
        check_range(call, *range(number, count))
    else:
        scales, points = range(number, count, 2), range(number + 1, count, 2)
        check_scalars(call, scales, points)
        for position in points:
            if call.has(position) and call.input(position).dtype != parts[0].dtype:
                raise call.invalid(
                    "BT-NODE-TYPE", f"zero point '{call.input(position).name}' is not of type {parts[0].dtype}"
                )
        for position in scales:
            if call.input(position).dtype != "f32":
                raise call.invalid("BT-NODE-TYPE", f"scale '{call.input(position).name}' is not of type f32")
        for part in parts[1:]:
            if part.dtype != parts[0].dtype:
                raise call.invalid(
                    "BT-NODE-TYPE", f"'{part.name}' is {part.dtype}, '{parts[0].name}' is {parts[0].dtype}"
                )
    call.rank(parts[0], 1, 32)
    return [joined_shape(call, parts)]


def infer(call: Call) -> list[Shape]:
    """Dimensions of all axes but one are equal. Scalars are joined to a vector when they are known at plan time."""
    if "given" in call.node.attributes:
        return _infer_with_operands(call, str(call.attribute("given")))
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


def _moved(call: Call, part: Operand, quantized: np.ndarray) -> np.ndarray:
    """What the quantized values of a part become: by the rule of the slot `combine`, else rescaled and stored."""
    low, high = call.output.type.minimum, call.output.type.maximum
    if "combine" in call.rules:
        return combine.RULES[call.rules["combine"]](
            quantized, *parameters_or_zero(part), *parameters_or_zero(call.output), low, high
        )
    centered = quantized.astype(np.int64) - part.zero_point
    rescaled = rescale.RULES[call.rules["rescale"]].apply(centered, multiplier_arrays(call, part.scale, 1))
    return store.RULES[call.rules["store"]](rescaled, call.output.zero_point, low, high)


def _tabled(dtype: str, types: Sequence[str], moved: Callable[[int, np.ndarray], np.ndarray]) -> Prepared:
    """A table for every tensor whose integers `moved(tensor, all values of its type)` changes."""
    kind = DATA_TYPES[dtype]
    chosen: list[int] = []
    tables: list[np.ndarray] = []
    for position, name in enumerate(types):
        own = DATA_TYPES[name]
        values = np.arange(own.minimum, own.maximum + 1)
        found = moved(position, values)
        same = np.array_equal(found, values)
        if same and name != dtype:
            raise ValueError(f"input {position} is {name} at the scale of the result, which is {dtype}")
        chosen.append(-1 if same else len(tables))
        tables += [] if same else [found.astype(kind.numpy)]
    arrays = {"tables": np.stack(tables)} if tables else {}
    return {"tables": tuple(chosen), "low": kind.minimum if tables else 0}, arrays


def tables_of_scales(rules: Mapping[str, str], dtype: str, given: Sequence[Pair], output: Pair) -> Prepared:
    """The tables of tensors of one type with these scales and zero points."""
    rule, kind = combine.RULES[rules["combine"]], DATA_TYPES[dtype]
    return _tabled(
        dtype, [dtype] * len(given), lambda position, q: rule(q, *given[position], *output, kind.minimum, kind.maximum)
    )


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    types, dtype = str(known["types"]).split(), known["dtype"]
    first = len(types)
    if known["given"] == "scales":
        pairs = [pair(values, position, position + 1) for position in range(first, len(values), 2)]
        return tables_of_scales(rules, dtype, pairs[:first], pairs[first])
    ends = [end(values, position) for position in range(first, 3 * first)]
    total = span_of(*joined_ends(list(zip(ends[::2], ends[1::2], strict=True))))
    rule, kind = range_change.RULES[rules["range_change"]], DATA_TYPES[dtype]
    levels = {name: float(HALF[name]) for name in {*types, dtype}}

    def moved(position: int, q: np.ndarray) -> np.ndarray:
        own = span(values, first + 2 * position)
        return rule(q, levels[types[position]], own, levels[dtype], total, kind.minimum, kind.maximum)

    return _tabled(dtype, types, moved)


def _lower_with_operands(call: Call) -> Lowered:
    given = str(call.attribute("given"))
    number = data_inputs(call.node.attributes, len(call.inputs))
    known: dict[str, Attribute] = {
        "axis": call.axis(call.attribute("axis"), call.output.rank),
        "dtype": call.output.dtype,
        "types": " ".join(call.input(position).dtype for position in range(number)),
        "given": given,
    }
    parameters, arrays = prepare_now(call, range(number, len(call.inputs)), known, _prepare)
    inputs = None if parameters["late"] else tuple(range(number))
    return Lowered(parameters, arrays, scratch=call.output.size, inputs=inputs)


def lower(call: Call) -> Lowered:
    """The axis, and one 256-entry table per input whose integers change."""
    if "given" in call.node.attributes:
        return _lower_with_operands(call)
    parts = [call.input(position) for position in range(len(call.inputs))]
    axis = call.axis(call.attribute("axis"), call.output.rank)
    chosen = [-1] * len(parts)
    tables: list[np.ndarray] = []
    # Scalars are copied while the kernel prepares, whatever their parameters are.
    if call.rules.get("combine") != "copy" and parts[0].rank:
        dtype = call.output.type
        quantized = np.arange(dtype.minimum, dtype.maximum + 1)
        for position, part in enumerate(parts):
            moved = _moved(call, part, quantized)
            if not np.array_equal(moved, quantized):
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
    if step.parameters.get("late"):
        step, inputs = prepare_late(step, inputs, _prepare), inputs[: data_inputs(step.parameters, len(inputs))]
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
    ("combine", "range_change", "scale_form", "rescale", "store"),
    infer,
    lower,
    reference,
    "inputs side by side along one axis",
    moves=True,
    joins=True,
    layout="axis",
    writes_rows=True,
    reads_rows=True,
    unread=("low", "axis"),
)
