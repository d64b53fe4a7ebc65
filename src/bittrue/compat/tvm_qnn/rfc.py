"""The operators of the RFC in its own spelling: a layer together with its requantization.

Source: "[RFC][Quantization] Support quantized models from TensorflowLite", apache/tvm issue 3252 and its text. What the
RFC leaves open (how the int32 sums are rounded) is that of `requantize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import checks, elementwise, layers, pooling, quantization
from .expr import Tensor

_RESULTS = ("s8", "u8")


def _result(function: str, out_dtype: Any) -> str:
    """int8 or uint8 by its everyday name."""
    return {"s8": "int8", "u8": "uint8"}[checks.element_type(function, "out_dtype", out_dtype, _RESULTS)]


def _product(function: str, input_scale: Any, kernel_scale: Any, channels: int) -> np.ndarray:
    """float32(input_scale * kernel_scale)."""
    first = checks.scale(function, "input_scale", input_scale)
    second = checks.scale(function, "kernel_scale", kernel_scale, (channels,))
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(first * second, np.float32)


def quantized_conv2d(
    quantized_data: Tensor,
    quantized_kernel: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    kernel_scale: Any,
    kernel_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
    # All the old remaining ones from conv2d
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
) -> Any:
    """`conv2d`, then `requantize` from the scale float32(input_scale * kernel_scale).

    Args:
        quantized_data: int8 or uint8 of rank 4 in `data_layout`.
        quantized_kernel: int8 or uint8 in `kernel_layout`.
        input_scale, input_zero_point: scalars.
        kernel_scale, kernel_zero_point: one, or one per output channel.
        output_scale, output_zero_point: scalars.
        out_dtype: ``"int8"`` or ``"uint8"``.
        strides, padding, dilation, groups, channels, kernel_size, data_layout, kernel_layout, out_layout: as `conv2d`;
            None: as the kernel has them.

    Returns:
        An int8 or uint8 tensor of rank 4.

    Raises:
        InputError: other types, layouts and shapes.

    Source: the RFC's signature; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> data, kernel = np.uint8([[[[1, 2], [3, 4]]]]), np.uint8([[[[1, 2], [3, 4]]]])
    >>> quantized_conv2d(data, kernel, 0.5, 1, 0.5, 0, 1.0, 3, "uint8").tolist()
    [[[[8]]]]
    """
    name = "quantized_conv2d"
    dtype = _result(name, out_dtype)
    x = checks.tensor(name, "quantized_data", quantized_data, _RESULTS, 4)
    w = checks.tensor(name, "quantized_kernel", quantized_kernel, _RESULTS, 4)
    checks.choice(name, "data_layout", data_layout, tuple(layers.KERNELS))
    inside = x.shape[3 if data_layout == "NHWC" else 1]
    checks.choice(name, "kernel_layout", kernel_layout, tuple(layers.KERNELS[data_layout]))
    count = checks.whole(name, "groups", groups, 1)
    standard = [w.shape[axis] for axis in layers.KERNELS[data_layout][kernel_layout]]
    found = standard[0] * standard[1] if count == inside and inside > 1 else standard[0]
    acc = layers.conv2d(
        quantized_data,
        quantized_kernel,
        input_zero_point,
        kernel_zero_point,
        input_scale,
        kernel_scale,
        standard[2:] if kernel_size is None else kernel_size,
        channels,
        strides,
        padding,
        dilation,
        groups,
        data_layout,
        kernel_layout,
        out_layout,
    )
    axis = 3 if data_layout == "NHWC" else 1
    scale = _product(name, input_scale, kernel_scale, found)
    return quantization.requantize(acc, scale, 0, output_scale, output_zero_point, axis, out_dtype=dtype)


def quantized_fully_connected(
    quantized_data: Tensor,
    quantized_weight: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    kernel_scale: Any,
    kernel_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
    units: Any = None,
) -> Any:
    """`dense`, then `requantize` from the scale float32(input_scale * kernel_scale).

    Args:
        quantized_data: int8 or uint8, [N, K].
        quantized_weight: int8 or uint8, [units, K].
        input_scale, input_zero_point, output_scale, output_zero_point: scalars.
        kernel_scale, kernel_zero_point: one, or one per unit.
        out_dtype: ``"int8"`` or ``"uint8"``.
        units: None: as the weights have them.

    Returns:
        An int8 or uint8 tensor [N, units].

    Raises:
        InputError: other types, layouts and shapes.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> quantized_fully_connected(np.int8([[1, 2]]), np.int8([[3, 4]]), 0.5, 0, 0.5, 0, 1.0, 0, "int8").tolist()
    [[3]]
    """
    name = "quantized_fully_connected"
    dtype = _result(name, out_dtype)
    w = checks.tensor(name, "quantized_weight", quantized_weight, _RESULTS, 2)
    acc = layers.dense(
        quantized_data, quantized_weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units
    )
    scale = _product(name, input_scale, kernel_scale, w.shape[0])
    return quantization.requantize(acc, scale, 0, output_scale, output_zero_point, 1, out_dtype=dtype)


quantized_dense = quantized_fully_connected


def quantized_relu(
    quantized_data: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
) -> Any:
    """max(data, input_zero_point), then `requantize`.

    Args:
        quantized_data: int8 or uint8, any shape.
        input_scale, input_zero_point, output_scale, output_zero_point: scalars.
        out_dtype: ``"int8"`` or ``"uint8"``.

    Returns:
        An int8 or uint8 tensor of the same shape.

    Raises:
        InputError: other types, scales and zero points.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> quantized_relu(np.int8([-5, 0, 7]), 0.5, 0, 1.0, -128, "int8").tolist()
    [-128, -128, -124]
    """
    dtype = _result("quantized_relu", out_dtype)
    checks.tensor("quantized_relu", "quantized_data", quantized_data, _RESULTS)
    clipped = elementwise.relu(quantized_data, input_zero_point)
    return quantization.requantize(
        clipped, input_scale, input_zero_point, output_scale, output_zero_point, out_dtype=dtype
    )


def quantized_pool2d(
    quantized_data: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
    pool_type: str = "max",
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str = "",
) -> Any:
    """The largest (``"max"``) or average (``"avg"``) quantized value of windows in the output's scale.

    Args:
        quantized_data: int8 or uint8 of rank 4 in `layout`.
        out_dtype: ``"int8"`` or ``"uint8"``; averages keep the type of the data.
        pool_type, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout: as
            `avg_pool2d` and `max_pool2d`.

    Returns:
        An int8 or uint8 tensor of rank 4.

    Raises:
        InputError: other types, layouts and shapes.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> x = np.uint8([[1, 2], [3, 5]]).reshape(1, 1, 2, 2)
    >>> quantized_pool2d(x, 0.5, 0, 1.0, 0, "uint8", "max", (2, 2)).tolist()
    [[[[3]]]]
    """
    name = "quantized_pool2d"
    dtype = _result(name, out_dtype)
    x = checks.tensor(name, "quantized_data", quantized_data, _RESULTS, 4)
    if checks.choice(name, "pool_type", pool_type, ("max", "avg")) == "max":
        largest = pooling.max_pool2d(
            quantized_data, pool_size, strides, dilation, padding, layout, out_layout, ceil_mode
        )
        return quantization.requantize(
            largest, input_scale, input_zero_point, output_scale, output_zero_point, out_dtype=dtype
        )
    if checks.element_type(name, "out_dtype", dtype, _RESULTS) != x.dtype:
        raise checks.wrong(name, "out_dtype", f"averages keep the type of the data, found {out_dtype!r}")
    return pooling.avg_pool2d(
        quantized_data,
        input_scale,
        input_zero_point,
        output_scale,
        output_zero_point,
        pool_size,
        strides,
        padding,
        dilation,
        ceil_mode,
        count_include_pad,
        layout,
        out_layout,
    )


def quantized_concat(
    quantized_data: Sequence[Tensor],
    input_scales: Sequence[Any],
    input_zero_points: Sequence[Any],
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
    axis: int = 0,
) -> Any:
    """`concatenate` of int8 or uint8 tensors.

    Args:
        quantized_data: tensors of the type `out_dtype`, of equal sizes but for those of `axis`.
        input_scales, input_zero_points: scalars, one for each of them.
        output_scale, output_zero_point: scalars.
        out_dtype: ``"int8"`` or ``"uint8"``.
        axis: counts from the end where negative.

    Returns:
        A tensor of the type `out_dtype`.

    Raises:
        InputError: other types and shapes.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> quantized_concat([np.uint8([10]), np.uint8([10])], [1.0, 0.5], [0, 0], 1.0, 0, "uint8").tolist()
    [10, 5]
    """
    name = "quantized_concat"
    dtype = checks.element_type(name, "out_dtype", _result(name, out_dtype), _RESULTS)
    for part in checks.parts(name, "quantized_data", quantized_data):
        checks.tensor(name, "quantized_data", part, (dtype,))
    return elementwise.concatenate(
        quantized_data, input_scales, input_zero_points, output_scale, output_zero_point, axis
    )


def quantized_add(
    quantized_lhs: Tensor,
    quantized_rhs: Tensor,
    lhs_scale: Any,
    lhs_zero_point: Any,
    rhs_scale: Any,
    rhs_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
) -> Any:
    """`add` of int8 or uint8 tensors.

    Args:
        quantized_lhs, quantized_rhs: of the type `out_dtype`, of shapes that broadcast.
        lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point: scalars.
        out_dtype: ``"int8"`` or ``"uint8"``.

    Returns:
        A tensor of the type `out_dtype`.

    Raises:
        InputError: other types and shapes.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> quantized_add(np.uint8([10]), np.uint8([1]), 1.0, 0, 0.5, 0, 2.0, 5, "uint8").tolist()
    [10]
    """
    name = "quantized_add"
    checks.tensor(name, "quantized_lhs", quantized_lhs, (checks.element_type(name, "out_dtype", out_dtype, _RESULTS),))
    parameters = (lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point)
    return elementwise.add(quantized_lhs, quantized_rhs, *parameters)


def quantized_mul(
    quantized_lhs: Tensor,
    quantized_rhs: Tensor,
    lhs_scale: Any,
    lhs_zero_point: Any,
    rhs_scale: Any,
    rhs_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    out_dtype: Any,
) -> Any:
    """`mul` of int8 or uint8 tensors.

    Args:
        quantized_lhs, quantized_rhs: of the type `out_dtype`, of shapes that broadcast.
        lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point: scalars.
        out_dtype: ``"int8"`` or ``"uint8"``.

    Returns:
        A tensor of the type `out_dtype`.

    Raises:
        InputError: other types and shapes.

    Source: on the lines of the RFC, whose text has no signature of it; the arithmetic is that of tvm v0.18.0, read.

    >>> import numpy as np
    >>> quantized_mul(np.uint8([10]), np.uint8([1]), 1.0, 0, 0.5, 0, 1.0, 5, "uint8").tolist()
    [10]
    """
    name = "quantized_mul"
    checks.tensor(name, "quantized_lhs", quantized_lhs, (checks.element_type(name, "out_dtype", out_dtype, _RESULTS),))
    parameters = (lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point)
    return elementwise.mul(quantized_lhs, quantized_rhs, *parameters)
