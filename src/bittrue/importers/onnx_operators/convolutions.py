"""Mappings of convolutions, matrix products and pools of real numbers."""

from __future__ import annotations

from ...graph import Attribute
from .base import Mapper, Mappers, Source, same_type
from .windows import convolution_attributes, sizes, window_attributes


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
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": source.flag("ceil_mode", False, False),
        "storage_order": int(source.flag("storage_order", False)),
    }
    source.emit("max_pool", [source.type(0), "s64"], attributes)


def _average_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": source.flag("ceil_mode", False, False),
        "count_include_pad": source.flag("count_include_pad", False, True),
    }
    source.emit("average_pool", source.type(0), attributes)


def _lp_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": source.flag("ceil_mode", False, False),
        "p": source.integer("p", 2),
    }
    source.emit("lp_pool", source.type(0), attributes)


def _global(stem: str) -> Mapper:
    return same_type(stem)


MAPPERS: Mappers = {
    ("", "AveragePool"): _average_pool,
    ("", "Conv"): _conv,
    ("", "ConvTranspose"): _conv_transpose,
    ("", "Gemm"): _gemm,
    ("", "GlobalAveragePool"): _global("global_average_pool"),
    ("", "GlobalMaxPool"): _global("global_max_pool"),
    ("", "LpPool"): _lp_pool,
    ("", "MatMul"): same_type("matmul"),
    ("", "MaxPool"): _max_pool,
}
