"""conv2d, dense, batch_matmul and bias_add: sums of products in int32, without requantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Attribute
from ...operators.core.geometry import WindowError, transposed_window
from . import checks
from .building import build
from .expr import Expr, Tensor, constant
from .windows import placed

# Layouts of data, and the kernels that CPUs have schedules for beside them; HWOI for a group per channel.
KERNELS = {"NCHW": {"OIHW": (0, 1, 2, 3)}, "NHWC": {"HWIO": (3, 2, 0, 1), "HWOI": (2, 3, 0, 1)}}


def padding_of(function: str, padding: Any) -> tuple[int, int, int, int]:
    """Top, left, bottom, right: from one number, (height, width), or all four."""
    given = checks.wholes(function, "padding", padding, (1, 2, 4), 0) if not isinstance(padding, int) else (padding,)
    if len(given) == 1:
        given = (checks.whole(function, "padding", given[0], 0),) * 2
    return (*given, *given) if len(given) == 2 else given  # type: ignore[return-value]


def moved(given: Expr, axes: tuple[int, ...]) -> Expr:
    """Axes in another order; constants are turned at once."""
    if axes == tuple(range(len(axes))):
        return given
    shape = tuple(given.shape[a] for a in axes)
    if given.value is not None:
        value = np.ascontiguousarray(given.value.transpose(axes))
        return Expr(given.operator, (), shape, given.dtype, name=given.name, value=value)
    return Expr("transpose", (given,), shape, given.dtype, attributes={"axes": axes})


def reshaped(given: Expr, shape: tuple[int, ...]) -> Expr:
    """The same numbers in another shape."""
    if given.shape == shape:
        return given
    if given.value is not None:
        return Expr(given.operator, (), shape, given.dtype, name=given.name, value=given.value.reshape(shape))
    return Expr("reshape", (given,), shape, given.dtype)


def zero_points(function: str, **given: tuple[Any, tuple[int, ...]]) -> tuple[dict[str, np.ndarray], tuple[Expr, ...]]:
    """Zero points of a layer, by argument its value and how long it may be: as parameters, or both as operands where
    one of them is computed.
    """
    constants, computed = checks.points(function, **given)
    if not computed:
        return constants, ()
    every = {name: constant(value, "s32", name) for name, value in constants.items()} | computed
    return {}, tuple(every[name] for name in given)


def conv2d(
    data: Tensor,
    kernel: Tensor,
    input_zero_point: Any,
    kernel_zero_point: Any,
    input_scale: Any,
    kernel_scale: Any,
    kernel_size: Any,
    channels: Any,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: Any = "int32",
) -> Any:
    """sum over the window of (kernel - kernel_zero_point)(data - input_zero_point), modulo 2^32; no bias, no clamp.

    Both differences have 16 bits, but for processors with SSE 4.2 (`tvm-qnn-float32`).

    Padded positions hold the input's zero point. The result's scale is input_scale * kernel_scale, its zero point 0.

    Args:
        data: int8, uint8 or int16 of rank 4 in `data_layout`.
        kernel: int8, uint8 or int16 in `kernel_layout`; depthwise (groups == input channels > 1) its O is the number
            of input channels and its I the number of filters per channel: output channel c * I + j; or O is the number
            of output channels, in the same order, and I is 1.
        input_zero_point: int32 scalar; both may be symbolic tensors.
        kernel_zero_point: int32, one or one per output channel, but for [C, M] filters of more than one per channel.
        input_scale: float32 scalar; plays no part in the sums.
        kernel_scale: float32, one or one per output channel; likewise.
        kernel_size: (height, width), or one number for both.
        channels: number of output channels; None: as the kernel has them.
        strides, dilation: (vertical, horizontal).
        padding: one number, (height, width), or (top, left, bottom, right).
        groups: of channels.
        data_layout: ``"NCHW"`` or ``"NHWC"``.
        kernel_layout: ``"OIHW"`` for NCHW; for NHWC ``"HWIO"``, or ``"HWOI"`` where each channel is a group. The
            system compiles no others for CPUs.
        out_layout: `data_layout`, or empty, which means it.
        out_dtype: ``"int32"``; ``"int64"``, whose sums are 64 bits wide; or ``"int16"``: sums modulo 2^16.

    Returns:
        A tensor of rank 4.

    Raises:
        InputError: other types, layouts, shapes and attributes that do not fit each other.

    Source: tvm v0.18.0, src/relay/qnn/op/convolution.cc and python/tvm/relay/qnn/op/legalizations.py, verified by
    running.

    >>> import numpy as np
    >>> data, kernel = np.uint8([[[[1, 2], [3, 4]]]]), np.uint8([[[[1, 2], [3, 4]]]])
    >>> conv2d(data, kernel, 1, 0, 0.5, 0.5, kernel_size=(2, 2), channels=1).tolist()
    [[[[20]]]]
    """
    name = "conv2d"
    checks.choice(name, "data_layout", data_layout, tuple(KERNELS))
    checks.choice(name, "kernel_layout", kernel_layout, tuple(KERNELS[data_layout]))
    checks.choice(name, "out_layout", out_layout, ("", data_layout))
    x = checks.tensor(name, "data", data, ("s8", "u8", "s16"), 4)
    w = checks.tensor(name, "kernel", kernel, ("s8", "u8", "s16"), 4)
    taps = checks.wholes(name, "kernel_size", kernel_size, 2, 1)
    step, reach = (checks.wholes(name, role, v, 2, 1) for role, v in (("strides", strides), ("dilation", dilation)))
    pads = padding_of(name, padding)
    count = checks.whole(name, "groups", groups, 1)
    dtype = checks.element_type(name, "out_dtype", out_dtype, ("s16", "s32", "s64"))
    last = data_layout == "NHWC"
    batch, inside = x.shape[0], x.shape[3 if last else 1]
    height, width = x.shape[1:3] if last else x.shape[2:4]
    standard = moved(w, KERNELS[data_layout][kernel_layout])
    filters, depth = standard.shape[:2]
    # A group per channel may also have the kernel of any other convolution in groups: [C * M, 1] for [C, M].
    depthwise = count > 1 and count == inside == filters
    if kernel_layout == "HWOI" and count != inside:
        raise checks.wrong(name, "kernel_layout", "the system compiles HWOI only where each channel is a group", "HWIO")
    out = filters * depth if depthwise else filters
    wanted = out if channels is None else checks.whole(name, "channels", channels, 1)
    if wanted != out or standard.shape[2:] != taps:
        raise checks.wrong(
            name,
            "kernel",
            f"shape {list(w.shape)} ({kernel_layout}) is no kernel {list(taps)} for {wanted} output channels"
            f" of {inside} input channels in {count} groups",
            code="BT-QNN-SHAPE",
        )
    if not depthwise and (inside != depth * count or out % count):
        raise checks.wrong(
            name,
            "groups",
            f"{inside} input channels are no {count} groups of the {depth} that a filter reads",
            "depthwise kernels have O = input channels and I = filters per channel, or O = output channels and I = 1",
            "BT-QNN-SHAPE",
        )
    if depthwise:
        standard = reshaped(standard, (out, 1, *taps))
    # The system's types have no several ones for filters that share a channel.
    sizes = () if depthwise and depth > 1 else (out,)
    points, computed = zero_points(
        name, input_zero_point=(input_zero_point, ()), kernel_zero_point=(kernel_zero_point, sizes)
    )
    parameters = {
        **points,
        "input_scale": checks.scale(name, "input_scale", input_scale),
        "kernel_scale": checks.scale(name, "kernel_scale", kernel_scale, (out,)),
    }
    if not holds_something(x, w):
        raise checks.wrong(
            name, "data", f"shapes {list(x.shape)} and {list(w.shape)} hold nothing", code="BT-QNN-SHAPE"
        )
    rows, columns = (one.out for one in placed(name, "kernel_size", (height, width), taps, step, reach, pads))
    attributes: dict[str, Attribute] = {
        "strides": step,
        "padding": pads,
        "dilation": reach,
        "groups": count,
        "data_layout": data_layout,
    }
    shape = (batch, rows, columns, out) if last else (batch, out, rows, columns)
    return build("qnn.conv2d", (x, standard, *computed), shape, dtype, parameters, attributes)


_TRANSPOSED = {"IOHW": (0, 1, 2, 3), "OIHW": (1, 0, 2, 3), "HWIO": (2, 3, 0, 1), "HWOI": (3, 2, 0, 1)}


def conv2d_transpose(
    data: Tensor,
    weight: Tensor,
    input_zero_point: Any,
    kernel_zero_point: Any,
    input_scale: Any,
    kernel_scale: Any,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Any = (0, 0),
    out_dtype: Any = "int32",
) -> Any:
    """Transposed convolution of (data - input_zero_point) with (weight - kernel_zero_point), modulo 2^32.

    Both differences are taken in int16, modulo 2^16.

    Args:
        data: int8, uint8, int16 or uint16 of rank 4 in `data_layout`.
        weight: int8 or uint8 in `kernel_layout`: I input channels, O output channels per group.
        input_zero_point, input_scale: one; both zero points may be symbolic tensors.
        kernel_zero_point: one; with layout IOHW also one per O.
        kernel_scale: one, or one per output channel (I * O with groups).
        strides, output_padding: (vertical, horizontal); the last one adds rows below and columns right.
        dilation: (1, 1); the system compiles no other one.
        padding: as `conv2d`; rows and columns of the result that are left out.
        groups, channels, kernel_size, out_layout, out_dtype: as `conv2d`; None: as the kernel has them.
        data_layout: ``"NCHW"`` or ``"NHWC"``.
        kernel_layout: ``"IOHW"``, ``"OIHW"``, ``"HWIO"`` or ``"HWOI"``.

    Raises:
        InputError: other types, layouts, shapes and attributes that do not fit each other.

    Source: tvm v0.18.0, src/relay/qnn/op/convolution_transpose.cc and python/tvm/relay/qnn/op/legalizations.py, read.

    >>> import numpy as np
    >>> data, weight = np.uint8([[[[2, 3]]]]), np.int8([[[[1, 10]]]])
    >>> conv2d_transpose(data, weight, 1, 0, 0.5, 0.5).tolist()
    [[[[1, 12, 20]]]]
    """
    name = "conv2d_transpose"
    checks.choice(name, "data_layout", data_layout, ("NCHW", "NHWC"))
    checks.choice(name, "kernel_layout", kernel_layout, tuple(_TRANSPOSED))
    checks.choice(name, "out_layout", out_layout, ("", "NCHW", "NHWC"))
    x = checks.tensor(name, "data", data, checks.INTEGERS_16, 4)
    w = checks.tensor(name, "weight", weight, checks.INTEGERS_8, 4)
    step, reach = (checks.wholes(name, role, v, 2, 1) for role, v in (("strides", strides), ("dilation", dilation)))
    if reach != (1, 1):
        raise checks.wrong(name, "dilation", f"found {reach}: the system does not support dilation here")
    more = checks.wholes(name, "output_padding", output_padding, 2, 0)
    pads, count = padding_of(name, padding), checks.whole(name, "groups", groups, 1)
    dtype = checks.element_type(name, "out_dtype", out_dtype, ("s16", "s32", "s64"))
    last = data_layout == "NHWC"
    inside, (height, width) = (x.shape[3], x.shape[1:3]) if last else (x.shape[1], x.shape[2:4])
    standard = moved(w, _TRANSPOSED[kernel_layout])
    deep, per_group, *taps = standard.shape
    out = per_group * count
    wanted = out if channels is None else checks.whole(name, "channels", channels, 1)
    size = tuple(taps) if kernel_size is None else checks.wholes(name, "kernel_size", kernel_size, 2, 1)
    if deep != inside or inside % count or wanted != out or size != tuple(taps) or not holds_something(x, w):
        raise checks.wrong(
            name,
            "weight",
            f"shape {list(w.shape)} ({kernel_layout}) is no kernel {list(size)} from {inside} to {wanted} channels in"
            f" {count} groups",
            code="BT-QNN-SHAPE",
        )
    scales = (out,) if count == 1 else (deep * per_group,)
    points, computed = zero_points(
        name,
        input_zero_point=(input_zero_point, (1,)),
        kernel_zero_point=(kernel_zero_point, (per_group, 1) if kernel_layout == "IOHW" else (1,)),
    )
    parameters = {
        **points,
        "input_scale": checks.scale(name, "input_scale", input_scale, (1,)),
        "kernel_scale": checks.scale(name, "kernel_scale", kernel_scale, scales),
    }
    both = zip(pads[:2], pads[2:], strict=True)
    try:
        found = [transposed_window(*one) for one in zip((height, width), taps, step, reach, both, more, strict=True)]
    except WindowError as error:
        raise checks.wrong(name, "padding", str(error), code="BT-QNN-SHAPE") from None
    sizes = [one.size for one in found]
    attributes: dict[str, Attribute] = {
        "strides": step,
        "padding": pads,
        "dilation": reach,
        "groups": count,
        "output_padding": more,
        "data_layout": data_layout,
    }
    shape = (x.shape[0], *sizes, out) if last else (x.shape[0], out, *sizes)
    made = build("qnn.conv2d_transpose", (x, standard, *computed), shape, dtype, parameters, attributes)
    return laid_out(made, data_layout, out_layout)


def holds_something(x: Expr, w: Expr) -> bool:
    """Whether neither of them is empty."""
    return 0 not in x.shape and 0 not in w.shape


def laid_out(made: Any, layout: str, out_layout: str) -> Any:
    """A result in another layout."""
    if out_layout in ("", layout):
        return made
    axes = (0, 3, 1, 2) if layout == "NHWC" else (0, 2, 3, 1)
    return moved(made, axes) if isinstance(made, Expr) else np.ascontiguousarray(made.transpose(axes))


def dense(
    data: Tensor,
    weight: Tensor,
    input_zero_point: Any,
    kernel_zero_point: Any,
    input_scale: Any,
    kernel_scale: Any,
    units: Any,
    out_dtype: Any = "int32",
) -> Any:
    """sum over k of (data[n, k] - input_zero_point)(weight[u, k] - kernel_zero_point), modulo 2^32.

    Args:
        data: int8, uint8, int16 or uint16, [N, K].
        weight: int8 or uint8, [units, K].
        input_zero_point, input_scale: scalars.
        kernel_zero_point, kernel_scale: one (zero points also as a vector), or one per unit; zero points may be
            symbolic tensors.
        units: rows of `weight`; None: as it has them.
        out_dtype: ``"int32"`` or ``"int64"``.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/dense.cc, read.

    >>> import numpy as np
    >>> dense(np.int8([[1, 2]]), np.int8([[3, 4], [5, 6]]), 1, 0, 0.5, 0.5, units=2).tolist()
    [[4, 6]]
    """
    name = "dense"
    x = checks.tensor(name, "data", data, checks.INTEGERS_16, 2)
    w = checks.tensor(name, "weight", weight, checks.INTEGERS_8, 2)
    rows = w.shape[0] if units is None else checks.whole(name, "units", units, 1)
    if w.shape != (rows, x.shape[1]):
        raise checks.wrong(
            name, "weight", f"expected shape {[rows, x.shape[1]]}, found {list(w.shape)}", code="BT-QNN-SHAPE"
        )
    points, computed = zero_points(
        name, input_zero_point=(input_zero_point, ()), kernel_zero_point=(kernel_zero_point, (rows, 1))
    )
    if points and points["kernel_zero_point"].size == 1:
        points["kernel_zero_point"] = points["kernel_zero_point"].reshape(())
    parameters = {
        **points,
        "input_scale": checks.scale(name, "input_scale", input_scale),
        "kernel_scale": checks.scale(name, "kernel_scale", kernel_scale, (rows,)),
    }
    dtype = checks.element_type(name, "out_dtype", out_dtype, ("s32", "s64"))
    return build("qnn.dense", (x, w, *computed), (x.shape[0], rows), dtype, parameters, {})


def fully_connected(
    data: Tensor,
    weight: Tensor,
    input_zero_point: Any,
    kernel_zero_point: Any,
    input_scale: Any,
    kernel_scale: Any,
    units: Any = None,
    out_dtype: Any = "int32",
) -> Any:
    """`dense` by the name that other systems give it; the number of units may be left out.

    >>> import numpy as np
    >>> fully_connected(np.int8([[1, 2]]), np.int8([[3, 4]]), 0, 0, 0.5, 0.5).tolist()
    [[11]]
    """
    return dense(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype)


def batch_matmul(
    x: Tensor,
    y: Tensor,
    x_zero_point: Any,
    y_zero_point: Any,
    x_scale: Any,
    y_scale: Any,
    out_dtype: Any = "int32",
) -> Any:
    """sum over k of (x[b, m, k] - x_zero_point)(y[b, n, k] - y_zero_point), modulo 2^32: y is transposed.

    Args:
        x, y: int8 or uint8, [B, M, K] and [B, N, K]; one of the batches may be 1.
        x_zero_point, y_zero_point, x_scale, y_scale: scalars; zero points may be symbolic tensors.
        out_dtype: ``"int32"``.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/batch_matmul.cc, read.

    >>> import numpy as np
    >>> batch_matmul(np.int8([[[1, 2]]]), np.int8([[[3, 4], [5, 6]]]), 0, 0, 0.5, 0.5).tolist()
    [[[11, 17]]]
    """
    name = "batch_matmul"
    first = checks.tensor(name, "x", x, checks.INTEGERS_8, 3)
    second = checks.tensor(name, "y", y, checks.INTEGERS_8, 3)
    batches = {first.shape[0], second.shape[0]}
    if first.shape[2] != second.shape[2] or len(batches - {1}) > 1:
        raise checks.wrong(
            name,
            "y",
            f"shape {list(second.shape)} does not go with x of shape {list(first.shape)}",
            code="BT-QNN-SHAPE",
        )
    points, computed = zero_points(name, x_zero_point=(x_zero_point, ()), y_zero_point=(y_zero_point, ()))
    parameters = {
        **points,
        "x_scale": checks.scale(name, "x_scale", x_scale),
        "y_scale": checks.scale(name, "y_scale", y_scale),
    }
    dtype = checks.element_type(name, "out_dtype", out_dtype, ("s32",))
    batch = second.shape[0] if first.shape[0] == 1 else first.shape[0]
    shape, operands = (batch, first.shape[1], second.shape[1]), (first, second, *computed)
    return build("qnn.batch_matmul", operands, shape, dtype, parameters, {}, variable=2)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Any:
    """data + bias along `axis`, modulo 2^32: what frontends put behind conv2d and dense.

    Args:
        data: int32 (or int64).
        bias: the same type, one value per slice of `axis`.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, nn.bias_add, read.

    >>> import numpy as np
    >>> bias_add(np.int32([[1, 2]]), np.int32([10, 20])).tolist()
    [[11, 22]]
    """
    x = checks.tensor("bias_add", "data", data, ("s32", "s64"), (1, 8))
    addend = checks.tensor("bias_add", "bias", bias, (x.dtype,), 1)
    at = checks.axis("bias_add", "axis", axis, x.rank)
    if addend.shape != (x.shape[at],):
        raise checks.wrong(
            "bias_add", "bias", f"expected shape {[x.shape[at]]}, found {list(addend.shape)}", code="BT-QNN-SHAPE"
        )
    return build("nn.bias_add", (x, addend), x.shape, x.dtype, {}, {"axis": at})
