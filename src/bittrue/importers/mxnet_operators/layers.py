"""Mappings of convolutions and fully-connected layers that stand alone, and what fused ones share with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...graph import Attribute
from .base import Mappers, Source

# What changes no result: hints for other devices' libraries.
_HINTS = ("workspace", "cudnn_tune", "cudnn_off")
LAYER_NAMES = ("_output", "_min_output", "_max_output")
_MOST_CHANNELS = 1 << 20


def convolution_attributes(source: Source) -> dict[str, Attribute]:
    """Windows and groups, as `conv` names them; where products are added in pairs, these begin anew at every tap."""
    kernel = source.integers("kernel")
    count = len(kernel)
    if not count:
        raise source.invalid("BT-MXNET-ATTRIBUTE", "attribute 'kernel' is missing")
    pads = source.integers("pad", (0,) * count) or (0,) * count
    source.text("layout", "NCHW" if count == 2 else "NCW" if count == 1 else "NCDHW", ("NCHW", "NCW", "NCDHW"))
    source.integer("num_filter")
    source.ignore(*_HINTS)
    return {
        "kernel_shape": kernel,
        "strides": source.integers("stride", (1,) * count) or (1,) * count,
        "dilations": source.integers("dilate", (1,) * count) or (1,) * count,
        "pads": (*pads, *pads),
        "groups": source.integer("num_group", 1),
        "auto_pad": "NOTSET",
        "channels_last": False,
        "pairs_by_tap": True,
    }


def check_outputs(source: Source, attribute: str, position: int) -> None:
    """Attribute num_filter or num_hidden says what the weights say."""
    shape, wanted = source.known(position), source.integer(attribute)
    if shape is not None and (not shape or shape[0] != wanted):
        raise source.invalid("BT-MXNET-WEIGHTS", f"{attribute} is {wanted}, the weights have shape {list(shape)}")


def filter_count(source: Source) -> int:
    """Output channels of a convolution, as it says itself."""
    found = source.integer("num_filter")
    if not 0 < found <= _MOST_CHANNELS:
        raise source.invalid("BT-MXNET-WEIGHTS", f"num_filter is {found}, 1 to {_MOST_CHANNELS:,} can be meant")
    return found


def expect_images(source: Source, groups: int, weights: int) -> None:
    """Declares the channels of the layer's input."""
    shape = source.known(weights)
    if shape is not None and len(shape) > 2:
        source.expects(0, (-1, shape[1] * groups, *(-1,) * (len(shape) - 2)))


def rows(source: Source, flatten: bool, dtype: str) -> int:
    """The layer's input as a matrix."""
    weights = source.known(1)
    if weights is not None and len(weights) == 2:
        source.expects(0, (-1, weights[1]))
    if not flatten:
        # Other axes than the last one are rows of their own only for two of them.
        return source.inputs[0]
    (result,) = source.emit("flatten", [source.inputs[0]], [dtype], ["_rows"], {"axis": 1})
    return result


def turned(source: Source, weights: int, dtype: str) -> int:
    """Weights [O, K] as [K, O]."""
    order = source.builder.constant(np.array([1, 0], np.int64), f"{source.label}_order")
    (result,) = source.emit("transpose", [weights, order], [dtype], ["_turned"])
    return result


def add_bias(source: Source, acc: int, bias: int, data: str, relu: bool = False, biased: bool = True) -> int:
    """acc + bias as s32; `data`: the type of the layer's data; `biased`: whether the layer adds or limits at all."""
    flags: dict[str, Attribute] = {"relu_last": relu, "data_type": data, "biased": biased}
    (result,) = source.emit("finish_sums", [acc, bias], ["s32"], ["_output"], flags)
    return result


def range_of(
    what: str,
    source: Source,
    operands: Sequence[int | None],
    names: Sequence[str],
    attributes: Mapping[str, Attribute] | None = None,
) -> list[int]:
    """Both ends of a range that follows from numbers or ranges."""
    return source.emit("range_of", operands, ["f32"] * 2, names, {"of": what, **(attributes or {})})


def product_range(source: Source, ends: Sequence[int], levels: tuple[int, int], names: Sequence[str]) -> list[int]:
    """The range of sums of products of two factors."""
    return range_of("product", source, ends, names, {"first_level": levels[0], "second_level": levels[1]})


def _convolution(source: Source) -> None:
    bias = not source.flag("no_bias")
    attributes = convolution_attributes(source)
    source.expect(9 if bias else 6)
    data, weights = source.type(0, "u8"), source.type(1, "s8")
    if attributes["groups"] != 1 or (data, weights) != ("u8", "s8") or len(source.integers("kernel")) not in (2, 3):
        raise source.unsupported(
            "BT-MXNET-CONVOLUTION",
            f"data {data}, weights {weights}, {attributes['groups']} groups, {len(source.integers('kernel'))} axes",
            "the runtime takes uint8 data, int8 weights, one group and two or three axes",
        )
    check_outputs(source, "num_filter", 1)
    expect_images(source, 1, 1)
    first = 3 if bias else 2
    ends = source.ranges(*range(first, first + (6 if bias else 4)))
    (sums,) = source.emit("conv", source.inputs[:2], ["s32"], ["_sums"], {**attributes, "fused": False})
    if bias and source.type(2, "s8") != "s8":
        raise source.invalid("BT-NODE-TYPE", "the bias must be int8")
    filters = filter_count(source)
    # On some processors sums become binary32 numbers, whether something is added or not.
    addend = source.inputs[2] if bias else source.builder.constant(np.zeros(filters, np.int8), f"{source.label}_bias")
    output = add_bias(source, sums, addend, data, biased=bias)
    source.give(output, *product_range(source, ends[:4], (127, 127), LAYER_NAMES[1:]))


def _fully_connected(source: Source) -> None:
    bias, flatten = not source.flag("no_bias"), source.flag("flatten", True)
    source.expect(9 if bias else 6)
    data, weights = source.type(0, "s8"), source.type(1, "s8")
    if data not in ("s8", "u8") or weights != "s8":
        raise source.unsupported("BT-MXNET-LAYER", f"data {data} and weights {weights}, int8 or uint8 and int8 are run")
    check_outputs(source, "num_hidden", 1)
    first = 3 if bias else 2
    ends = source.ranges(*range(first, first + (6 if bias else 4)))
    matrix = turned(source, source.inputs[1], "s8")
    x = rows(source, flatten, data)
    (output,) = source.emit("matmul", [x, matrix], ["s32"], ["_sums"] if bias else ["_output"])
    if bias:
        if source.type(2, "s8") != "s8":
            raise source.invalid("BT-NODE-TYPE", "the bias must be int8")
        prepared = [source.inputs[1], source.inputs[2], *ends]
        attributes: dict[str, Attribute] = {"data_type": data, "fused": False}
        names = ["_weights", "_bias", "_scales"]
        _, wide, _ = source.emit("range_weights", prepared, ["s8", "f32", "f32"], names, attributes)
        output = add_bias(source, output, wide, data)
    levels = (127, 255) if data == "u8" else (127, 127)
    source.give(output, *product_range(source, ends[:4], levels, LAYER_NAMES[1:]))


MAPPERS: Mappers = {
    "_contrib_quantized_conv": _convolution,
    "_contrib_quantized_fully_connected": _fully_connected,
}
