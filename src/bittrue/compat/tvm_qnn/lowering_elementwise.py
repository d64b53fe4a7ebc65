"""add, subtract, mul, concatenate and functions of quantized values as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from .expr import Expr
from .requantization import EXACT, Pair, described, operands_of, pair, requantized, rounding_of
from .writer import Writer

_ONE = np.asarray(1, np.float32)
_ZERO = np.asarray(0, np.int32)
# Zero points beyond this are rounded when they become binary32 numbers.
_LARGEST_POINT = 1 << 23
# Types for which other formats have the operators, too.
_NARROW = ("s8", "u8", "s16")
_PLAIN: dict[str, Attribute] = {"activation": "none", "pot_scale_int16": False}


def _simple(*pairs: Pair) -> bool:
    """Whether scales and zero points are those of whole tensors, and small enough for tables."""
    return all(not isinstance(z, int) and not s.ndim and not z.ndim and abs(int(z)) <= _LARGEST_POINT for s, z in pairs)


def _joined(writer: Writer, stem: str, expr: Expr, operands: Sequence[int]) -> int:
    """A plain operator on 32-bit integers."""
    return writer.node(stem, expr.operator, operands, "s32", expr.shape, _PLAIN)


def _stored(writer: Writer, expr: Expr, index: int, output: Pair) -> int:
    """32-bit integers clamped to the type of the result."""
    unit = (_ONE, _ZERO)
    stored = requantized(writer, index, unit, unit, expr.dtype, EXACT, source=expr.operator, name=expr.name)
    return writer.reshape(stored, expr.shape, expr.operator, described(output))


def _same(one: Pair, other: Pair) -> bool:
    sides = zip(one, other, strict=True)
    return all(not isinstance(a, int) and not isinstance(b, int) and a.ndim == b.ndim == 0 and a == b for a, b in sides)


def _wide(writer: Writer, expr: Expr, prefix: str, index: int, given: Pair, wanted: Pair) -> int:
    """An operand in the output's scale and zero point, as 32-bit integers."""
    if _same(given, wanted):
        return requantized(writer, index, (_ONE, _ZERO), (_ONE, _ZERO), "s32", EXACT, source=expr.operator)
    axis = expr.attributes[f"{prefix}_axis"]
    assert isinstance(axis, int)
    return requantized(writer, index, given, wanted, "s32", rounding_of(expr), axis, source=expr.operator)


def _pairs(writer: Writer, inputs: Sequence[int], pairs: Sequence[Pair]) -> list[int]:
    """Operands that carry their scales and zero points, which are constants."""
    given = [described(one) for one in pairs]
    return [index if one is None else writer.quantized(index, one) for index, one in zip(inputs, given, strict=False)]


def _sum(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    first, second, output = (pair(expr, prefix, inputs) for prefix in ("lhs", "rhs", "output"))
    minus = expr.operator == "qnn.subtract"
    if expr.dtype in _NARROW and _simple(first, second, output):
        operands = _pairs(writer, inputs, (first, second))
        attributes = {**_PLAIN, **rounding_of(expr)}
        stem = "sub" if minus else "add"
        return writer.node(
            stem, expr.operator, operands, expr.dtype, expr.shape, attributes, described(output), expr.name
        )
    sides = [
        _wide(writer, expr, prefix, index, given, output)
        for prefix, index, given in zip(("lhs", "rhs"), inputs, (first, second), strict=False)
    ]
    total = _joined(writer, "sub" if minus else "add", expr, sides)
    point, ones = output[1], (1,) * len(expr.shape)
    if isinstance(point, int):
        point = writer.reshape(point, ones, expr.operator)
    else:
        point = writer.constant(point.reshape(ones), "s32", "output_zero_point")
    return _stored(writer, expr, _joined(writer, "add" if minus else "sub", expr, (total, point)), output)


def _product(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    first, second, output = (pair(expr, prefix, inputs) for prefix in ("lhs", "rhs", "output"))
    if expr.dtype in _NARROW and _simple(first, second, output):
        operands = _pairs(writer, inputs, (first, second))
        attributes = {**_PLAIN, **rounding_of(expr)}
        return writer.node(
            "mul", expr.operator, operands, expr.dtype, expr.shape, attributes, described(output), expr.name
        )
    centered = []
    for prefix, index, (_, point) in zip(("lhs", "rhs"), inputs, (first, second), strict=False):
        axis = expr.attributes[f"{prefix}_axis"]
        assert isinstance(axis, int)
        centered.append(
            requantized(writer, index, (_ONE, point), (_ONE, _ZERO), "s32", EXACT, axis, source=expr.operator)
        )
    product = _joined(writer, "mul", expr, centered)
    scales = (first[0], second[0])
    if any(scale.ndim for scale in scales):
        # Vectors are multiplied in binary64, scalars in binary32.
        scale = np.multiply(*(s.astype(np.float64) for s in scales)).astype(np.float32)
    else:
        scale = np.asarray(first[0] * second[0], np.float32)
    axis = expr.attributes["lhs_axis"]
    assert isinstance(axis, int)
    # The operands' axis counts from the end where the shorter one of them lacks leading axes.
    at = axis - len(expr.inputs[0].shape) + len(expr.shape) if scale.ndim else -1
    if scale.size == 1 and scale.ndim:
        # A vector of one serves all slices, with the arithmetic of vectors.
        scale = np.full(expr.shape[at], scale)
    return requantized(
        writer, product, (scale, _ZERO), output, expr.dtype, rounding_of(expr), at, expr.name, expr.operator
    )


def _concatenate(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    parts, output = inputs[: len(inputs) - len(expr.computed)], pair(expr, "output", inputs)
    pairs = [pair(expr, f"input_{i}", inputs) for i in range(len(parts))]
    attributes: dict[str, Attribute] = {"axis": expr.attributes["axis"], "activation": "none"}
    given = described(output)
    if expr.dtype in ("s8", "u8") and _simple(*pairs, output):
        operands = _pairs(writer, parts, pairs)
        attributes |= rounding_of(expr)
    else:
        operands = [
            writer.quantized(index, given)
            if given is not None and _same(own, output)
            else requantized(writer, index, own, output, expr.dtype, rounding_of(expr), source=expr.operator)
            for index, own in zip(parts, pairs, strict=True)
        ]
        if expr.computed:
            attributes["requantized"] = True
    return writer.node("concatenation", expr.operator, operands, expr.dtype, expr.shape, attributes, given, expr.name)


def _on_quantized(stem: str, **more: Attribute) -> Callable[[Writer, Expr, Sequence[int]], int]:
    def lowering(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
        source, output = pair(expr, "input", inputs), pair(expr, "output", inputs)
        rounding = rounding_of(expr) if "rounding" in expr.attributes else {}
        unused = ("rounding", "compute_dtype", "function")
        rest = {name: value for name, value in expr.attributes.items() if name not in unused}
        carried, given = described(source), described(output)
        if carried is None or given is None:
            operands = [inputs[0], *operands_of(writer, source, output)]
            given = None
        else:
            operands = [writer.quantized(inputs[0], carried)]
        attributes = {**rest, **rounding, **more}
        return writer.node(stem, expr.operator, operands, expr.dtype, expr.shape, attributes, given, expr.name)

    return lowering


ELEMENTWISE: dict[str, Callable[[Writer, Expr, Sequence[int]], int]] = {
    "qnn.add": _sum,
    "qnn.concatenate": _concatenate,
    "qnn.leaky_relu": _on_quantized("leaky_relu", requantized=True),
    "qnn.mul": _product,
    "qnn.softmax": _on_quantized("softmax", by_shifts=True),
    "qnn.subtract": _sum,
    **{
        f"qnn.{name}": _on_quantized({"hardswish": "hard_swish", "sigmoid": "logistic"}.get(name, name), in_steps=True)
        for name in ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh")
    },
}
