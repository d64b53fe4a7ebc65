"""Mappings of convolutions, matrix products and pools of real numbers."""

from __future__ import annotations

from ...graph import Attribute
from .base import Mapper, Mappers, Source, same_type
from .windows import window_attributes


def _conv(source: Source) -> None:
    source.emit("conv", source.type(0), {**window_attributes(source), "groups": source.integer("group", 1)})


def _conv_transpose(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "groups": source.integer("group", 1),
        "output_padding": source.integers("output_padding", ()) or (),
        "output_shape": source.integers("output_shape", ()) or (),
    }
    source.emit("conv_transpose", source.type(0), attributes)


def _gemm(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "alpha": source.real("alpha", 1.0),
        "beta": source.real("beta", 1.0),
        "transpose_a": bool(source.integer("transA", 0)),
        "transpose_b": bool(source.integer("transB", 0)),
    }
    source.emit("gemm", source.type(0), attributes)


def _max_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": bool(source.integer("ceil_mode", 0)),
        "storage_order": source.integer("storage_order", 0),
    }
    source.emit("max_pool", [source.type(0), "s64"], attributes)


def _average_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": bool(source.integer("ceil_mode", 0)),
        "count_include_pad": bool(source.integer("count_include_pad", 0)),
    }
    source.emit("average_pool", source.type(0), attributes)


def _lp_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **window_attributes(source),
        "ceil_mode": bool(source.integer("ceil_mode", 0)),
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
