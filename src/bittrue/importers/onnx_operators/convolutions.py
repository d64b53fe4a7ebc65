"""Mappings of convolutions, matrix products and pools of real numbers."""

from __future__ import annotations

from ...graph import Attribute
from .base import Mappers, Source, same_type
from .windows import WHOLE, convolution_attributes, pool_attributes, sizes


def _conv(source: Source) -> None:
    source.emit("conv", source.type(0), {**convolution_attributes(source), "channels_last": False})


def _conv_transpose(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **convolution_attributes(source),
        "output_padding": sizes(source, "output_padding"),
        "output_shape": sizes(source, "output_shape"),
        "channels_last": False,
    }
    source.emit("conv_transpose", source.type(0), attributes)


def _gemm(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "alpha": source.real("alpha", 1.0),
        "beta": source.real("beta", 1.0),
        "transpose_a": source.flag("transA", False, True),
        "transpose_b": source.flag("transB", False, True),
        "matrices": True,
    }
    source.emit("matmul", source.type(0), attributes)


def _max_pool(source: Source) -> None:
    attributes = {**pool_attributes(source), "storage_order": int(source.flag("storage_order", False))}
    source.emit("max_pool", [source.type(0), "s64"], attributes)


def _average_pool(source: Source) -> None:
    counted = "padded" if source.flag("count_include_pad", False, True) else "inside"
    source.emit("average_pool", source.type(0), {**pool_attributes(source), "counted": counted})


def _lp_pool(source: Source) -> None:
    source.emit("lp_pool", source.type(0), {**pool_attributes(source), "p": source.integer("p", 2)})


MAPPERS: Mappers = {
    ("", "AveragePool"): _average_pool,
    ("", "Conv"): _conv,
    ("", "ConvTranspose"): _conv_transpose,
    ("", "Gemm"): _gemm,
    ("", "GlobalAveragePool"): same_type("average_pool", **WHOLE),
    ("", "GlobalMaxPool"): same_type("max_pool", **WHOLE),
    ("", "LpPool"): _lp_pool,
    ("", "MatMul"): same_type("matmul"),
    ("", "MaxPool"): _max_pool,
}
