"""avg_pool2d and max_pool2d."""

from __future__ import annotations

from typing import Any

from ...graph import Attribute
from . import checks
from .building import build
from .config import resolved
from .expr import Expr, Tensor
from .layers import padding_of
from .windows import placed


def _window(
    name: str,
    x: Expr,
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: Any,
    layout: Any,
    out_layout: Any,
) -> tuple[dict[str, Attribute], tuple[int, ...]]:
    """Attributes of a window, and the shape of the result in `layout`."""
    checks.choice(name, "layout", layout, ("NHWC", "NCHW"))
    checks.choice(name, "out_layout", out_layout, ("", layout))
    sizes = {
        role: checks.wholes(name, role, given, 2, 1)
        for role, given in (("pool_size", pool_size), ("strides", strides), ("dilation", dilation))
    }
    pads, ceil = padding_of(name, padding), checks.truth(name, "ceil_mode", ceil_mode)
    shape, axes = list(x.shape), (1, 2) if layout == "NHWC" else (2, 3)
    dimensions = [shape[axis] for axis in axes]
    taps, steps, reach = sizes.values()
    found = placed(name, "pool_size", dimensions, taps, steps, reach, pads, "ceil_hanging" if ceil else "floor")
    for axis, one in zip(axes, found, strict=True):
        shape[axis] = one.out
    if 0 in shape and layout == "NHWC":
        raise checks.wrong(name, "data", f"the system compiles no result of shape {shape}", code="BT-QNN-SHAPE")
    attributes: dict[str, Attribute] = {
        **sizes,
        "padding": pads,
        "ceil_mode": ceil,
        "layout": layout,
    }
    return attributes, tuple(shape)


def avg_pool2d(
    data: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
    out_layout: str = "",
) -> Any:
    """Quantized values requantized to the output's scale, added up over windows and divided, cut off toward zero.

    Padded positions hold the quantized value 0, whatever the zero point is: with `count_include_pad` and padding,
    averages at the border are drawn to quantized value 0.

    Args:
        data: int8 or uint8 of rank 4 in `layout`.
        input_scale, input_zero_point, output_scale, output_zero_point: scalars; zero points may be symbolic tensors.
        pool_size, strides, dilation: (vertical, horizontal).
        padding: one number, (height, width), or (top, left, bottom, right).
        ceil_mode: whether a last window that does not fit is made.
        count_include_pad: whether padding counts in the divisor.
        layout: ``"NHWC"`` or ``"NCHW"``.
        out_layout: `layout`, or empty, which means it; the system compiles no other one.

    Raises:
        InputError: other types and layouts, windows that do not fit, results without elements.

    Source: tvm v0.18.0, src/relay/qnn/op/avg_pool2d.cc and include/tvm/topi/nn/pooling.h, read.

    >>> import numpy as np
    >>> x = np.uint8([[1, 2], [3, 5]]).reshape(1, 2, 2, 1)
    >>> avg_pool2d(x, 0.5, 0, 0.5, 0, (2, 2), (1, 1), (0, 0), (1, 1)).tolist()
    [[[[2]]]]
    """
    name = "avg_pool2d"
    x = checks.tensor(name, "data", data, checks.INTEGERS_8, 4)
    attributes, shape = _window(name, x, pool_size, strides, padding, dilation, ceil_mode, layout, out_layout)
    points, computed = checks.points(
        name, input_zero_point=(input_zero_point, ()), output_zero_point=(output_zero_point, ())
    )
    parameters = {
        **points,
        "input_scale": checks.scale(name, "input_scale", input_scale),
        "output_scale": checks.scale(name, "output_scale", output_scale),
    }
    attributes |= {"count_include_pad": checks.truth(name, "count_include_pad", count_include_pad), **resolved(name)}
    return build("qnn.avg_pool2d", (x,), shape, x.dtype, parameters, attributes, computed=computed)


def plain_avg_pool2d(
    data: Tensor,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Any:
    """Sums of int32 over windows, modulo 2^32, divided by the number of summands toward zero: `qnn.nn.avg_pool2d`.

    Args:
        data: int32 of rank 4 in `layout`.
        pool_size, strides, dilation, padding, layout, out_layout, ceil_mode, count_include_pad: as `avg_pool2d`.

    Raises:
        InputError: other types, windows that do not fit.

    Source: tvm v0.18.0, include/tvm/topi/nn/pooling.h, run.

    >>> import numpy as np
    >>> plain_avg_pool2d(np.int32([[-1, 2], [-3, -5]]).reshape(1, 1, 2, 2), (2, 2)).tolist()
    [[[[-1]]]]
    """
    name = "nn.avg_pool2d"
    x = checks.tensor(name, "data", data, ("s32",), 4)
    attributes, shape = _window(name, x, pool_size, strides, padding, dilation, ceil_mode, layout, out_layout)
    attributes["count_include_pad"] = checks.truth(name, "count_include_pad", count_include_pad)
    return build("nn.avg_pool2d", (x,), shape, "s32", {}, attributes)


def max_pool2d(
    data: Tensor,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    dilation: Any = (1, 1),
    padding: Any = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Any:
    """The largest element of every window; padded positions never win.

    Args:
        data: int8, uint8, int16, uint16, int32 or float32 of rank 4 in `layout`.
        pool_size, strides, dilation, padding, layout, out_layout, ceil_mode: as `avg_pool2d`.

    Raises:
        InputError: other types, windows that do not fit, or lie in the padding alone.

    Source: tvm v0.18.0, nn.max_pool2d, read.

    >>> import numpy as np
    >>> max_pool2d(np.uint8([[1, 2], [3, 5]]).reshape(1, 1, 2, 2), (2, 2)).tolist()
    [[[[5]]]]
    """
    name = "max_pool2d"
    x = checks.tensor(name, "data", data, (*checks.CODES, "f32"), 4)
    attributes, shape = _window(name, x, pool_size, strides, padding, dilation, ceil_mode, layout, out_layout)
    return build("nn.max_pool2d", (x,), shape, x.dtype, {}, attributes)


def pool2d(data: Tensor, *arguments: Any, pool_type: str = "max", **named: Any) -> Any:
    """`max_pool2d` or `avg_pool2d`, as `pool_type` (``"max"`` or ``"avg"``) says.

    >>> import numpy as np
    >>> pool2d(np.uint8([[1, 2], [3, 5]]).reshape(1, 1, 2, 2), (2, 2), pool_type="max").tolist()
    [[[[5]]]]
    """
    checks.choice("pool2d", "pool_type", pool_type, ("max", "avg"))
    return (max_pool2d if pool_type == "max" else avg_pool2d)(data, *arguments, **named)
