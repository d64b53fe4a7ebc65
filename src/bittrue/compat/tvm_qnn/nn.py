"""The plain operators of Relay that stand between those of `bittrue.qnn`: they know no scales.

>>> import numpy as np
>>> from bittrue.qnn import nn
>>> nn.reshape(np.int8([1, 2, 3, 4]), (2, -1)).tolist()
[[1, 2], [3, 4]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute
from . import checks
from .building import build
from .expr import Expr, Tensor
from .pooling import plain_avg_pool2d as avg_pool2d

_MOVED = ("s8", "u8", "s16", "s32", "f32")


def softmax(data: Tensor, axis: int = -1) -> Any:
    """exp(x - max) over the sum of these along the last axis, in binary32, added up from the first to the last.

    Args:
        data: float32 of rank 1 or more.
        axis: the last one.

    Raises:
        InputError: other types and axes.

    Source: tvm v0.18.0, topi/nn/softmax.py, read.

    >>> softmax(np.float32([[0, 0]])).tolist()
    [[0.5, 0.5]]
    """
    return _along_rows("softmax", data, axis)


def log_softmax(data: Tensor, axis: int = -1) -> Any:
    """(x - max) - ln(sum of exp(x - max)) along the last axis, in binary32, added up from the first to the last.

    Args:
        data: float32 of rank 1 or more.
        axis: the last one.

    Raises:
        InputError: other types and axes.

    Source: tvm 0.17.dev0 (docs/facts/tvm_qnn.md 13), topi/nn/softmax.py, verified by running.

    >>> log_softmax(np.float32([[0, 0]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996]]
    """
    return _along_rows("log_softmax", data, axis)


def _along_rows(name: str, data: Tensor, axis: int) -> Any:
    x = checks.tensor(f"nn.{name}", "data", data, ("f32",), (1, 8))
    if checks.axis(f"nn.{name}", "axis", axis, x.rank) != x.rank - 1:
        raise checks.wrong(f"nn.{name}", "axis", f"found {axis!r}", "only the last axis is known; transpose before")
    return build(f"nn.{name}", (x,), x.shape, "f32", {}, {})


def cast(data: Tensor, dtype: Any) -> Any:
    """The same integers in another integer type, modulo its width.

    >>> cast(np.int8([-1]), "int32").tolist()
    [-1]
    """
    x = checks.tensor("nn.cast", "data", data, ("s8", "u8", "s16", "s32"))
    wanted = checks.element_type("nn.cast", "dtype", dtype, ("s8", "u8", "s16", "s32"))
    return build("cast", (x,), x.shape, wanted, {}, {})


def mean(data: Tensor, axis: Any, keepdims: bool = False) -> Any:
    """Sums of int32 along axes, divided by the number of summands toward zero.

    Args:
        data: int32.
        axis: one axis, or several.
        keepdims: whether reduced axes stay with a dimension of 1.

    Raises:
        InputError: other types, axes outside of the tensor.

    Source: tvm v0.18.0, src/relay/op/tensor/reduce.cc, read.

    >>> mean(np.int32([[3, -6], [-3, 1]]), 1).tolist()
    [-1, -1]
    """
    return _reduced("mean", data, axis, keepdims)


def sum(data: Tensor, axis: Any, keepdims: bool = False) -> Any:  # the name that the system has
    """Sums of int32 along axes, modulo 2^32.

    Args:
        data: int32.
        axis, keepdims: as `mean`.

    Raises:
        InputError: other types, axes outside of the tensor.

    >>> sum(np.int32([[3, -6], [-3, 1]]), 1).tolist()
    [-3, -2]
    """
    return _reduced("sum", data, axis, keepdims)


def _reduced(name: str, data: Tensor, axis: Any, keepdims: bool) -> Any:
    x = checks.tensor(f"nn.{name}", "data", data, ("s32",), (1, 8))
    given = [axis] if isinstance(axis, int | np.integer) else list(axis)
    axes = tuple(sorted({checks.axis(f"nn.{name}", "axis", int(a), x.rank) for a in given}))
    if not axes or not all(x.shape):
        raise checks.wrong(f"nn.{name}", "axis", f"nothing is reduced: axes {axes} of shape {list(x.shape)}")
    shape = [1 if a in axes else e for a, e in enumerate(x.shape) if keepdims or a not in axes]
    return build(name, (x,), shape, "s32", {}, {"axes": axes, "keep_dims": bool(keepdims)})


def take(data: Tensor, indices: Tensor, axis: int) -> Any:
    """The slices of `axis` that `indices` name.

    Args:
        indices: int32 or int64; from 0 to the size of `axis`.

    Raises:
        InputError: other types, axes outside of the tensor.

    >>> take(np.int8([[1, 2, 3]]), np.int32([2, 0]), 1).tolist()
    [[3, 1]]
    """
    x = checks.tensor("nn.take", "data", data, _MOVED, (1, 8))
    places = checks.tensor("nn.take", "indices", indices, ("s32", "s64"), (0, 8))
    at = checks.axis("nn.take", "axis", axis, x.rank)
    shape = (*x.shape[:at], *places.shape, *x.shape[at + 1 :])
    return build("take", (x, places), shape, x.dtype, {}, {"axis": at}, variable=2)


def reshape(data: Tensor, newshape: Sequence[int]) -> Any:
    """The same elements in another shape; one dimension may be -1.

    >>> reshape(np.int8([[1, 2]]), (-1,)).tolist()
    [1, 2]
    """
    x = checks.tensor("nn.reshape", "data", data, _MOVED)
    wanted = [int(e) for e in newshape]
    size = int(np.prod(x.shape, dtype=np.int64))
    known = int(np.prod([e for e in wanted if e != -1], dtype=np.int64))
    if wanted.count(-1) == 1 and known > 0 and size % known == 0:
        wanted[wanted.index(-1)] = size // known
    if min(wanted, default=0) < 0 or int(np.prod(wanted, dtype=np.int64)) != size:
        raise checks.wrong(
            "nn.reshape", "newshape", f"{list(newshape)} does not hold {list(x.shape)}", code="BT-QNN-SHAPE"
        )
    return build("reshape", (x,), wanted, x.dtype, {}, {})


def transpose(data: Tensor, axes: Sequence[int]) -> Any:
    """Axes in another order.

    >>> transpose(np.int8([[1, 2]]), (1, 0)).tolist()
    [[1], [2]]
    """
    x = checks.tensor("nn.transpose", "data", data, _MOVED)
    order = tuple(int(a) for a in axes)
    if sorted(order) != list(range(x.rank)):
        raise checks.wrong("nn.transpose", "axes", f"{order} is no order of {x.rank} axes")
    return build("transpose", (x,), [x.shape[a] for a in order], x.dtype, {}, {"axes": order})


def pad(data: Tensor, pad_width: Sequence[Sequence[int]], pad_value: int) -> Any:
    """A border of `pad_value` around a tensor of quantized values; use the zero point where it shall mean 0.

    Args:
        data: int8, uint8 or int16 of rank 5 or less.
        pad_width: (before, after) for every axis.
        pad_value: a quantized value.

    Raises:
        InputError: other types, negative widths, a value outside of the type.

    >>> pad(np.int8([1]), [(1, 2)], 7).tolist()
    [7, 1, 7, 7]
    """
    x = checks.tensor("nn.pad", "data", data, ("s8", "u8", "s16"), (1, 5))
    widths = [tuple(int(w) for w in pair) for pair in pad_width]
    if len(widths) != x.rank or any(len(pair) != 2 or min(pair) < 0 for pair in widths):
        raise checks.wrong("nn.pad", "pad_width", f"{widths} are no widths for shape {list(x.shape)}")
    kind = np.iinfo(np.dtype({"s8": "i1", "u8": "u1", "s16": "i2"}[x.dtype]))
    if not kind.min <= int(pad_value) <= kind.max:
        raise checks.wrong("nn.pad", "pad_value", f"{pad_value} lies outside {kind.min}..{kind.max}")
    shape = [before + size + after for size, (before, after) in zip(x.shape, widths, strict=True)]
    flat: Attribute = tuple(width for pair in widths for width in pair)
    return build("nn.pad", (x,), shape, x.dtype, {}, {"widths": flat, "value": int(pad_value)})


def strided_slice(data: Tensor, begin: Sequence[int], end: Sequence[int]) -> Any:
    """The elements from `begin` up to `end` of every axis.

    >>> strided_slice(np.int8([1, 2, 3]), [1], [3]).tolist()
    [2, 3]
    """
    x = checks.tensor("nn.strided_slice", "data", data, _MOVED, (1, 5))
    first, last = [int(v) for v in begin], [int(v) for v in end]
    if (
        len(first) != x.rank
        or len(last) != x.rank
        or any(not 0 <= a <= b <= e for a, b, e in zip(first, last, x.shape, strict=True))
    ):
        raise checks.wrong("nn.strided_slice", "begin", f"{first} to {last} is no part of shape {list(x.shape)}")
    shape = [b - a for a, b in zip(first, last, strict=True)]
    return build("strided_slice", (x,), shape, x.dtype, {}, {"begin": tuple(first)})


def _blocks(name: str, data: Tensor, block_shape: Any, borders: Any, forward: bool) -> Any:
    x = checks.tensor(f"nn.{name}", "data", data, _MOVED, (3, 4))
    axes = x.rank - 2
    sizes = checks.wholes(f"nn.{name}", "block_shape", block_shape, axes, 1)
    pairs = [checks.wholes(f"nn.{name}", "paddings" if forward else "crops", pair, 2, 0) for pair in borders]
    count, inside = math.prod(sizes), x.shape[1:-1]
    if forward:
        padded = [n + pair[0] + pair[1] for n, pair in zip(inside, pairs, strict=True)]
        fits = not any(n % size for n, size in zip(padded, sizes, strict=True))
        batch, found = x.shape[0] * count, [n // size for n, size in zip(padded, sizes, strict=True)]
    else:
        fits = x.shape[0] % count == 0
        batch = x.shape[0] // count
        found = [n * size - pair[0] - pair[1] for n, size, pair in zip(inside, sizes, pairs, strict=True)]
    if not fits or min(found) < 0:
        raise checks.wrong(f"nn.{name}", "block_shape", f"{list(sizes)} and {pairs} do not fit {list(x.shape)}")
    attributes: dict[str, Attribute] = {"block": sizes, "borders": tuple(n for pair in pairs for n in pair)}
    return build(f"nn.{name}", (x,), (batch, *found, x.shape[-1]), x.dtype, {}, attributes)


def space_to_batch_nd(data: Tensor, block_shape: Any, paddings: Any) -> Any:
    """Blocks of positions, padded with 0, become batches; channels are last.

    Args:
        data: rank 3 or 4.
        block_shape: a size per spatial axis.
        paddings: two widths per spatial axis.

    Raises:
        InputError: padded sizes that the blocks do not divide.

    >>> space_to_batch_nd(np.int8([[[1], [2]]]), (2,), [(0, 0)]).tolist()
    [[[1]], [[2]]]
    """
    return _blocks("space_to_batch_nd", data, block_shape, paddings, True)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Any:
    """Blocks of positions become channels: those of a block's first position, then those of the one to the right of it.

    Args:
        data: rank 4 in `layout`.
        block_size: height and width of blocks.
        layout: ``"NHWC"`` or ``"NCHW"``.

    Raises:
        InputError: other layouts, sizes that blocks do not divide.

    >>> space_to_depth(np.int8([[[[1], [2]], [[3], [4]]]]), 2, "NHWC").tolist()
    [[[[1, 2, 3, 4]]]]
    """
    name = "nn.space_to_depth"
    x = checks.tensor(name, "data", data, _MOVED, 4)
    size = checks.whole(name, "block_size", block_size, 1)
    if checks.choice(name, "layout", layout, ("NHWC", "NCHW")) == "NCHW":
        return transpose(space_to_depth(transpose(data, (0, 2, 3, 1)), size, "NHWC"), (0, 3, 1, 2))
    if x.shape[1] % size or x.shape[2] % size:
        raise checks.wrong(name, "block_size", f"{size} does not divide {list(x.shape)}")
    shape = (x.shape[0], x.shape[1] // size, x.shape[2] // size, x.shape[3] * size * size)
    return build(name, (x,), shape, x.dtype, {}, {"block_size": size})


def batch_to_space_nd(data: Tensor, block_shape: Any, crops: Any) -> Any:
    """Batches become blocks of positions, less what `crops` leave out.

    Args:
        data: rank 3 or 4.
        block_shape: a size per spatial axis.
        crops: two widths per spatial axis.

    Raises:
        InputError: batches that are no blocks.

    >>> batch_to_space_nd(np.int8([[[1]], [[2]]]), (2,), [(0, 0)]).tolist()
    [[[1], [2]]]
    """
    return _blocks("batch_to_space_nd", data, block_shape, crops, False)


def argmax(data: Tensor, axis: int) -> Any:
    """Where the largest number along `axis` is, the first one of several: int32 without that axis.

    Args:
        data: int8, uint8 or int16.

    Raises:
        InputError: other types, axes outside of the tensor.

    Source: tvm v0.18.0, python/tvm/topi/reduction.py, read.

    >>> argmax(np.int8([[3, 7, 7]]), 1).tolist()
    [1]
    """
    x = checks.tensor("nn.argmax", "data", data, ("s8", "u8", "s16"), (1, 8))
    at = checks.axis("nn.argmax", "axis", axis, x.rank)
    return build("argmax", (x,), (*x.shape[:at], *x.shape[at + 1 :]), "s32", {}, {"axis": at})


def resize2d(data: Tensor, size: Any, layout: str = "NCHW", coordinate_transformation_mode: str = "half_pixel") -> Any:
    """An image of another size, interpolated linearly along x, then along y: a (1 - t) + b t in binary32.

    Args:
        data: float32 of rank 4 in `layout`.
        size: height and width.
        layout: ``"NHWC"`` or ``"NCHW"``.
        coordinate_transformation_mode: ``"half_pixel"``, ``"align_corners"`` or ``"asymmetric"``.

    Raises:
        InputError: other types, layouts, sizes and modes.

    Source: tvm v0.18.0, python/tvm/topi/image/resize.py (method "linear"), read.

    >>> resize2d(np.float32([0, 1]).reshape(1, 1, 1, 2), (1, 4)).tolist()
    [[[[0.0, 0.25, 0.75, 1.0]]]]
    """
    name = "nn.resize2d"
    x = checks.tensor(name, "data", data, ("f32",), 4)
    wanted = checks.wholes(name, "size", size, 2, 1)
    checks.choice(name, "layout", layout, ("NHWC", "NCHW"))
    modes = ("half_pixel", "align_corners", "asymmetric")
    mode = checks.choice(name, "coordinate_transformation_mode", coordinate_transformation_mode, modes)
    attributes: dict[str, Attribute] = {"size": wanted, "layout": layout, "mode": mode}
    shape = (x.shape[0], *wanted, x.shape[3]) if layout == "NHWC" else (*x.shape[:2], *wanted)
    return build("image.resize2d", (x,), shape, "f32", {}, attributes)


def _of_two(name: str, first: Tensor, second: Tensor, types: Sequence[str] = ("f32",), result: str = "") -> Any:
    x = checks.tensor(f"nn.{name}", "lhs", first, types)
    y = checks.tensor(f"nn.{name}", "rhs", second, (x.dtype,))
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        shown = f"shape {list(y.shape)} does not broadcast with {list(x.shape)}"
        raise checks.wrong(f"nn.{name}", "rhs", shown, code="BT-QNN-SHAPE") from None
    return build(name, (x, y), shape, result or x.dtype, {}, {}, variable=2)


def add(lhs: Tensor, rhs: Tensor) -> Any:
    """lhs + rhs of float32 numbers, or of int32 modulo 2^32, whose shapes broadcast.

    >>> add(np.float32([1, 2]), np.float32([0.5])).tolist()
    [1.5, 2.5]
    """
    return _of_two("add", lhs, rhs, ("f32", "s32"))


def _stored(name: str, what: str, example: str, result: str = "") -> Callable[[Tensor, Tensor], Any]:
    types = ("s8", "u8", "s16", "s32", *(("f32",) if result else ()))

    def function(lhs: Tensor, rhs: Tensor) -> Any:
        return _of_two(name, lhs, rhs, types, result)

    shown = "int8, uint8, int16 or int32" if not result else "int8, uint8, int16 or int32, or of float32 numbers"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what} of quantized values as they are stored, {shown}; shapes broadcast.

    >>> {name}(np.int8([1, 2]), np.int8([2])).tolist()
    {example}
    """
    return function


maximum = _stored("maximum", "The larger one", "[2, 2]")
minimum = _stored("minimum", "The smaller one", "[1, 2]")
equal = _stored("equal", "lhs == rhs", "[False, True]", "bool")
not_equal = _stored("not_equal", "lhs != rhs", "[True, False]", "bool")
less = _stored("less", "lhs < rhs", "[True, False]", "bool")
less_equal = _stored("less_equal", "lhs <= rhs", "[True, True]", "bool")
greater = _stored("greater", "lhs > rhs", "[False, False]", "bool")
greater_equal = _stored("greater_equal", "lhs >= rhs", "[False, True]", "bool")


def multiply(lhs: Tensor, rhs: Tensor) -> Any:
    """lhs * rhs of float32 numbers, or of int32 modulo 2^32, whose shapes broadcast.

    >>> multiply(np.float32([1, 2]), np.float32([0.5])).tolist()
    [0.5, 1.0]
    """
    return _of_two("multiply", lhs, rhs, ("f32", "s32"))


def _function(name: str, data: Tensor, **attributes: float) -> Any:
    x = checks.tensor(f"nn.{name}", "data", data, ("f32",), (0, 8))
    return build(f"nn.{name}", (x,), x.shape, "f32", {}, dict(attributes))


def sigmoid(data: Tensor) -> Any:
    """1 / (1 + e^-x) of float32 numbers, every operation rounded to binary32.

    Source: tvm v0.18.0, src/target/llvm/intrin_rule_llvm.cc, read.

    >>> sigmoid(np.float32([0])).tolist()
    [0.5]
    """
    return _function("sigmoid", data)


def tanh(data: Tensor) -> Any:
    """(1 - e) / (1 + e) of float32 numbers with e = e^-2x where x >= 0, else (e - 1) / (e + 1) with e = e^2x.

    Source: tvm v0.18.0, src/target/llvm/intrin_rule_llvm.cc, read.

    >>> tanh(np.float32([0])).tolist()
    [0.0]
    """
    return _function("tanh", data)


def _plain(name: str, formula: str, example: str) -> Callable[[Tensor], Any]:
    def function(data: Tensor) -> Any:
        return _function(name, data)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{formula} of float32 numbers; functions are those of glibc.

    Source: tvm 0.17.dev0 (docs/facts/tvm_qnn.md 13), verified by running.

    >>> {name}(np.float32([1])).tolist()
    {example}
    """
    return function


abs = _plain("abs", "|x|", "[1.0]")  # the name that the system has
exp = _plain("exp", "e^x", "[2.7182817459106445]")
log = _plain("log", "ln(x)", "[0.0]")
sqrt = _plain("sqrt", "The square root", "[1.0]")
rsqrt = _plain("rsqrt", "1 / sqrt(x), both operations rounded to binary32,", "[1.0]")


def hard_swish(data: Tensor) -> Any:
    """x * clip(x + 3, 0, 6) * f32(1 / 6) of float32 numbers, from left to right, every operation rounded to binary32.

    Source: tvm v0.18.0, python/tvm/relay/frontend/tflite.py, read; src/arith/rewrite_simplify.cc makes x / 6 a product,
    which a run showed.

    >>> hard_swish(np.float32([3, -1])).tolist()
    [3.0, -0.3333333432674408]
    """
    return _function("hard_swish", data)


def relu(data: Tensor) -> Any:
    """The larger one of x and 0, of float32 numbers.

    Source: tvm v0.18.0, include/tvm/topi/nn.h, read.

    >>> relu(np.float32([3, -1])).tolist()
    [3.0, 0.0]
    """
    return _function("relu", data)


def leaky_relu(data: Tensor, alpha: float = 0.01) -> Any:
    """x where x > 0, else x * alpha of float32 numbers, with alpha as binary32.

    Raises:
        InputError: other types, an alpha that is no finite number.

    Source: tvm v0.18.0, include/tvm/topi/nn.h, read.

    >>> leaky_relu(np.float32([3, -1]), 0.5).tolist()
    [3.0, -0.5]
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating) or not np.isfinite(alpha):
        raise checks.wrong("nn.leaky_relu", "alpha", f"expected a finite number, found {alpha!r}")
    return _function("leaky_relu", data, alpha=float(np.float32(alpha)))


__all__ = [
    "Expr",
    "abs",
    "add",
    "argmax",
    "avg_pool2d",
    "batch_to_space_nd",
    "cast",
    "equal",
    "exp",
    "greater",
    "greater_equal",
    "hard_swish",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log_softmax",
    "maximum",
    "mean",
    "minimum",
    "multiply",
    "not_equal",
    "pad",
    "relu",
    "reshape",
    "resize2d",
    "rsqrt",
    "sigmoid",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sqrt",
    "strided_slice",
    "sum",
    "take",
    "tanh",
    "transpose",
]
