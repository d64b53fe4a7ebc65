"""Mappings of matrix products and convolutions on integers."""

from __future__ import annotations

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source, fixed_type
from .windows import convolution_attributes


def _qlinear_matmul(source: Source) -> None:
    source.emit("qlinear_matmul", source.type(7))


def _convolution(source: Source) -> dict[str, Attribute]:
    last = source.flag("channels_last", False, True) if source.domain == MICROSOFT else False
    return {**convolution_attributes(source), "channels_last": last}


def _qlinear_conv(source: Source) -> None:
    source.emit("qlinear_conv", source.type(7), _convolution(source))


def _conv_integer(source: Source) -> None:
    source.emit("conv_integer", "s32", _convolution(source))


def _qgemm(source: Source) -> None:
    attributes = {
        "alpha": source.real("alpha", 1.0),
        "trans_a": source.flag("transA", False, True),
        "trans_b": source.flag("transB", False, True),
    }
    source.emit("qgemm", source.type(8) if source.present(8) else "f32", attributes)


def _dynamic_quantize_matmul(source: Source) -> None:
    """Two nodes: what is quantized, and the product."""
    names = [source.temporary("u8", "a"), source.temporary("f32", "a_scale"), source.temporary("u8", "a_zero_point")]
    a, scale, point = source.emit(
        "dynamic_quantize_linear", ("u8", "f32", "u8"), inputs=source.inputs[:1], outputs=names
    )
    b, b_scale, b_point, bias = (*source.inputs[1:], None, None)[:4]
    source.emit("matmul_integer_to_float", "f32", inputs=(a, b, scale, b_scale, point, b_point, bias))


def _matmul_n_bits(source: Source) -> None:
    """A prepacked layout is another processor's; g_idx is deprecated."""
    names = {"n": "N", "k": "K", "block_size": "block_size"}
    attributes: dict[str, Attribute] = {ours: source.integer(theirs, 0) for ours, theirs in names.items()}
    attributes |= {"bits": source.integer("bits", 4), "accuracy_level": source.integer("accuracy_level", 0)}
    attributes["from_dequantization"] = False
    if source.integer("weight_prepacked", 0):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "weights are packed for one processor", "export them unpacked")
    source.emit("matmul_n_bits", source.type(0), attributes)


MAPPERS: Mappers = {
    ("", "ConvInteger"): _conv_integer,
    ("", "MatMulInteger"): fixed_type("matmul_integer", "s32"),
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_quantize_matmul,
    (MICROSOFT, "MatMulNBits"): _matmul_n_bits,
    (MICROSOFT, "MatMulIntegerToFloat"): fixed_type("matmul_integer_to_float", "f32"),
    (MICROSOFT, "QGemm"): _qgemm,
    (MICROSOFT, "QLinearConv"): _qlinear_conv,
}
