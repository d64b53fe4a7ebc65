"""Mappings of matrix products and convolutions on integers."""

from __future__ import annotations

from collections.abc import Mapping

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source
from .windows import convolution_attributes


def _product(
    source: Source, positions: tuple[int | None, ...], needed: int, kind: str, attributes: Mapping[str, Attribute]
) -> None:
    """A product whose operands, in the order of `matmul`, are these inputs of the node; the first ones are `needed`."""
    for position in range(needed):
        source.tensor(position)
    most = len(positions) - positions.count(None)
    if len(source.inputs) > most:
        raise source.invalid("BT-NODE-ARITY", f"expected at most {most} inputs, found {len(source.inputs)}")
    found = [None if p is None or not source.present(p) else source.inputs[p] for p in positions]
    source.emit("matmul", kind, attributes, inputs=found)


def _qlinear_matmul(source: Source) -> None:
    _product(source, (0, 3, None, 1, 2, 4, 5, 6, 7), 8, source.type(7), {})


def _matmul_integer(source: Source) -> None:
    _product(source, (0, 1, None, None, 2, None, 3), 2, "s32", {})


def _matmul_integer_to_float(source: Source) -> None:
    _product(source, (0, 1, 6, 2, 4, 3, 5), 4, "f32", {})


def _convolution(source: Source) -> dict[str, Attribute]:
    last = source.flag("channels_last", False, True) if source.domain == MICROSOFT else False
    return {**convolution_attributes(source), "channels_last": last}


def _qlinear_conv(source: Source) -> None:
    source.emit("conv", source.type(7), _convolution(source), inputs=source.ordered(0, 3, 8, 1, 2, 4, 5, 6, 7))


def _conv_integer(source: Source) -> None:
    absent = len(source.inputs)
    operands = source.ordered(0, 1, absent, absent, 2, absent, 3)
    source.emit("conv", "s32", _convolution(source), inputs=operands)


def _qgemm(source: Source) -> None:
    attributes = {
        "alpha": source.real("alpha", 1.0),
        "beta": 1.0,
        "transpose_a": source.flag("transA", False, True),
        "transpose_b": source.flag("transB", False, True),
        "matrices": True,
    }
    kind = source.type(8) if source.present(8) else "f32"
    _product(source, (0, 3, 6, 1, 2, 4, 5, 7, 8), 6, kind, attributes)


def _dynamic_quantize_matmul(source: Source) -> None:
    """Two nodes: what is quantized, and the product."""
    names = [source.temporary("u8", "a"), source.temporary("f32", "a_scale"), source.temporary("u8", "a_zero_point")]
    a, scale, point = source.emit(
        "dynamic_quantize_linear", ("u8", "f32", "u8"), inputs=source.inputs[:1], outputs=names
    )
    b, b_scale, b_point, bias = (*source.inputs[1:], None, None)[:4]
    source.emit("matmul", "f32", inputs=(a, b, bias, scale, point, b_scale, b_point))


def _matmul_n_bits(source: Source) -> None:
    """A prepacked layout is another processor's; g_idx is deprecated."""
    names = {"n": "N", "k": "K", "block_size": "block_size"}
    attributes: dict[str, Attribute] = {ours: source.integer(theirs, 0) for ours, theirs in names.items()}
    attributes |= {"bits": source.integer("bits", 4), "accuracy_level": source.integer("accuracy_level", 0)}
    attributes["from_dequantization"] = False
    if source.integer("weight_prepacked", 0):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "weights are packed for one processor", "export them unpacked")
    a, quantized, scale, point, order, bias = (*source.inputs, *[None] * 6)[:6]
    if order is not None:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "g_idx gives weights in another order", "export them in order")
    source.emit("matmul", source.type(0), attributes, inputs=(a, quantized, bias, None, None, scale, point))


MAPPERS: Mappers = {
    ("", "ConvInteger"): _conv_integer,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_quantize_matmul,
    (MICROSOFT, "MatMulNBits"): _matmul_n_bits,
    (MICROSOFT, "MatMulIntegerToFloat"): _matmul_integer_to_float,
    (MICROSOFT, "QGemm"): _qgemm,
    (MICROSOFT, "QLinearConv"): _qlinear_conv,
}
