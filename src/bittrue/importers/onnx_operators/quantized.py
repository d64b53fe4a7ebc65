"""Mappings of element-wise operators, pools and tables on quantized numbers."""

from __future__ import annotations

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source, same_type


def _average_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {name: source.integers(name, ()) or () for name in ("strides", "pads")}
    attributes |= {
        "kernel_shape": source.integers("kernel_shape", ()) or (),
        "dilations": (),
        "auto_pad": source.text("auto_pad", "NOTSET"),
        "ceil_mode": bool(source.integer("ceil_mode", 0)),
        "count_include_pad": bool(source.integer("count_include_pad", 0)),
        "channels_last": bool(source.integer("channels_last", 0)),
    }
    source.emit("qlinear_average_pool", source.type(0), attributes)


def _global_average_pool(source: Source) -> None:
    attributes = {"channels_last": bool(source.integer("channels_last", 0)), "keep_dims": True}
    source.emit("qlinear_global_average_pool", source.type(0), attributes)


def _reduce_mean(source: Source) -> None:
    attributes: dict[str, Attribute] = {"axes": source.integers("axes") or ()}
    attributes["keep_dims"] = bool(source.integer("keepdims", 1))
    source.emit("qlinear_reduce_mean", source.type(0), attributes)


MAPPERS: Mappers = {
    (MICROSOFT, "QLinearAdd"): same_type("qlinear_add"),
    (MICROSOFT, "QLinearAveragePool"): _average_pool,
    (MICROSOFT, "QLinearGlobalAveragePool"): _global_average_pool,
    (MICROSOFT, "QLinearMul"): same_type("qlinear_mul"),
    (MICROSOFT, "QLinearReduceMean"): _reduce_mean,
}
