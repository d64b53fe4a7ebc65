"""What `matmul` does with quantized values: scales and zero points are operands, known at plan time or while running.

Those of a are one value, or one per row where a row of numerics allows it; those of b one value, or one per column.
Where the result is real, scales may have any shape that broadcasts to it; what goes into no multiplier is multiplied
last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from ...rules import accumulate, scale_back, scale_form
from ..core.base import Call, Lowered, Operand, Shape, Step
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..quantization.range_operands import range_multiplier
from .integer_layers import (
    bound,
    centered_product,
    check_channels,
    check_columns,
    check_rows,
    check_single,
    fits_columns,
    of_columns,
    of_rows,
    prepare_multiplier,
    requantized,
    single,
    weight_zero_points,
    zero_point_of,
    zero_points,
)

A, B, C, A_SCALE, A_POINT, B_SCALE, B_POINT, Y_SCALE, Y_POINT = range(9)
# Ranges have no zero points.
_NOWHERE = 9
_PARAMETERS = (A_SCALE, A_POINT, B_SCALE, B_POINT, Y_SCALE, Y_POINT)


def check_parameters(call: Call, shape: Shape) -> None:
    """Shapes of scales and zero points, where they are present, for a result of this shape."""
    for position, role in ((Y_SCALE, "y_scale"), (Y_POINT, "y_zero_point")):
        check_single(call, position, role)
    if call.node.attributes.get("matrices"):
        _check_matrices(call, shape[-1])
        return
    check_rows(call, A_POINT, A, "a_zero_point")
    check_columns(call, B_POINT, B, "b_zero_point")
    if call.output.dtype != "f32":
        check_rows(call, A_SCALE, A, "a_scale")
        check_columns(call, B_SCALE, B, "b_scale")
        return
    for operand, inside in _order(call)[1:]:
        fits = operand.rank <= len(shape) and all(
            p in (1, q) for p, q in zip(operand.shape[::-1], shape[::-1], strict=False)
        )
        if not inside and not fits:
            raise call.invalid(
                "BT-SHAPE-BROADCAST", f"'{operand.name}' {list(operand.shape)} does not broadcast to {list(shape)}"
            )


def _check_matrices(call: Call, columns: int) -> None:
    for position, role in ((A_SCALE, "a_scale"), (A_POINT, "a_zero_point")):
        check_single(call, position, role)
    for position, role in ((B_SCALE, "b_scale"), (B_POINT, "b_zero_point")):
        check_channels(call, position, columns, role)
    if call.has(B_SCALE) and call.has(B_POINT) and call.input(B_SCALE).shape != call.input(B_POINT).shape:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"b_scale has shape {list(call.input(B_SCALE).shape)}, b_zero_point has {list(call.input(B_POINT).shape)}",
            "both must have the same shape",
        )


def _order(call: Call) -> tuple[bool, tuple[Operand, bool], tuple[Operand, bool]]:
    """Whether s_b comes first, and both scales in order with whether they go into the multiplier."""
    scales = [call.input(A_SCALE, "a_scale"), call.input(B_SCALE, "b_scale")]
    swapped = scales[0].shape[-1:] not in ((), (1,))
    first, second = scales[::-1] if swapped else scales
    columns = call.input(B).shape
    if call.node.attributes.get("transpose_b"):
        columns = columns[::-1]
    return swapped, (first, first.shape in ((), (1,))), (second, fits_columns(second.shape, columns))


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    """Zero points, and what becomes of the sums."""
    a_scale, a_point, b_scale, b_point, y_scale, y_point = (
        values[position] if position < len(values) else None for position in _PARAMETERS
    )
    if known["ranged"]:
        none = {"input_zero_point": 0, "weight_zero_point": 0, "output_zero_point": 0}
        ends = (a_scale, a_point), (y_scale, y_point)
        return none, range_multiplier(rules, known, ends[0], np.asarray(b_scale).reshape(-1), ends[1], values[C])
    rows, row_arrays = zero_points(
        None if a_point is None else of_rows(a_point), "input_zero_point", "input_zero_points"
    )
    columns, column_arrays = weight_zero_points(None if b_point is None else of_columns(b_point))
    parameters, arrays = {**rows, **columns}, {**row_arrays, **column_arrays}
    if a_scale is None:
        return parameters, arrays
    if "scale_back" in rules:
        return parameters, {**arrays, **_factors(rules, known, a_scale, b_scale, y_scale)}
    with np.errstate(all="ignore"):
        first = np.float32(known["alpha"]) * of_rows(a_scale) if known["alpha"] != 1 else of_rows(a_scale)
    output = np.float32(1) if y_scale is None else single(y_scale)
    multipliers = prepare_multiplier(rules, first, of_columns(b_scale), output)
    return {**parameters, "output_zero_point": zero_point_of(y_point)}, {**arrays, **multipliers}


def _factors(rules: Mapping[str, str], known: Mapping[str, Any], a_scale: Any, b_scale: Any, y_scale: Any) -> Any:
    """Two factors of the sums, one value or one per column.

    The first scale is s_a times alpha, or s_b if s_a varies along the last axis; the second one is the other. The first
    one is a factor if it is one value, the second one if it is one value or one per column.
    """
    with np.errstate(all="ignore"):
        first = np.float32(known["alpha"]) * np.asarray(a_scale, np.float32)
        if y_scale is not None:
            form = scale_form.form(rules["scale_form"], single(first), of_columns(b_scale), single(y_scale))
            return {"first_scale": np.asarray(form, np.float32).reshape(-1), "second_scale": np.ones(1, np.float32)}
    scales = [first, np.asarray(b_scale, np.float32)]
    if known["b_scale_first"]:
        scales.reverse()
    inside = known["first_in_multiplier"], known["second_in_multiplier"]
    return {
        name: of_columns(scale) if fits else np.ones(1, np.float32)
        for name, scale, fits in zip(("first_scale", "second_scale"), scales, inside, strict=True)
    }


def lower(call: Call) -> Lowered:
    """Multipliers per column, zero points and the accumulator bound.

    With `ranged`, operands hold the ends of ranges in place of scales and zero points, and `rescale` adds c.
    """
    given, dtype = call.node.attributes, data_type(call.output.dtype)
    turned = {name: bool(given.get(name, False)) for name in ("transpose_a", "transpose_b")}
    ranged = bool(given.get("ranged", False))
    known: dict[str, Attribute] = {**turned, "dtype": dtype.name, "ranged": ranged}
    if "scale_back" in call.rules:
        swapped, (_, first), (_, second) = _order(call)
        known |= {"b_scale_first": swapped, "first_in_multiplier": first, "second_in_multiplier": second}
    if call.has(A_SCALE):
        known["alpha"] = float(np.float32(given.get("alpha", 1.0)))  # type: ignore[arg-type]
    if "store" in call.rules:
        known |= {"low": dtype.minimum, "high": dtype.maximum}
    if ranged:
        known["data_type"] = call.input(A).dtype
    parameters, arrays = prepare_now(call, (C, *_PARAMETERS) if ranged else _PARAMETERS, known, _prepare)
    a, b = call.input(A), call.input(B)
    depth = a.shape[-2 if a.rank > 1 and turned["transpose_a"] else -1]
    axis = 0 if turned["transpose_b"] else -1
    points = (_NOWHERE, _NOWHERE) if ranged else (A_POINT, B_POINT)
    addend = C if not ranged and call.has(C) and call.input(C).dtype == "s32" else None
    return Lowered(
        {**parameters, "output_shape": call.output.shape},
        arrays,
        bound(call, (A, points[0]), (B, points[1]), depth, axis, addend),
        call.output.size * depth,
        8 * (a.size + b.computed_size) + 24 * call.output.size,
        inputs=(A, B) if ranged and not parameters["late"] else None,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product of the centred operands."""
    step = prepare_late(step, inputs, _prepare)
    a, b = (
        operand.swapaxes(-1, -2) if operand.ndim > 1 and step[f"transpose_{side}"] else operand
        for operand, side in zip(inputs[:2], "ab", strict=True)
    )
    acc, c = centered_product(step, a, b), inputs[C] if len(inputs) > C else None
    if c is not None and c.dtype.kind == "i" and not step["ranged"]:
        acc = accumulate.RULES[step.rules["accumulate"]].finish(acc + c.astype(np.int64))
    dtype, shape = data_type(step["dtype"]).numpy, step["output_shape"]
    if "store" in step.rules:
        return [requantized(step, acc, dtype).reshape(shape)]
    if "scale_back" in step.rules:
        return [_real(step, acc, c, inputs).reshape(shape)]
    return [acc.astype(dtype).reshape(shape)]


def _real(step: Step, acc: np.ndarray, c: np.ndarray | None, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """f32(f32(f32(acc) * multiplier) + c), then times every scale that is not in the multiplier; rules `WITH_START` add
    c themselves.
    """
    name = step.rules["scale_back"]
    addends = () if c is None or c.dtype.kind != "f" else (c.reshape(-1),)
    start = addends if name in scale_back.WITH_START else ()
    total = scale_back.RULES[name](acc, step.arrays["first_scale"], step.arrays["second_scale"], *start)
    scales = [inputs[A_SCALE], inputs[B_SCALE]]
    if step["b_scale_first"]:
        scales.reverse()
    with np.errstate(all="ignore"):
        if addends and not start:
            total = total + addends[0]
        total = total.reshape(step["output_shape"])
        for scale, fits in zip(scales, (step["first_in_multiplier"], step["second_in_multiplier"]), strict=True):
            if not fits:
                total = total * scale
    return np.asarray(total, np.float32)
