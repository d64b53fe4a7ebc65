"""Mappings of operators on images in blocks of channels, which the runtime writes when it saves what it has optimised.

How many channels a block has depends on the processor that wrote the file, so the stems of what depends on it have no
rows: a rewrite of the numerics whose processor it is gives them a meaning, and others refuse them.
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import Mapper, Mappers, Source
from .convolutions import average_pool_attributes, emit_finished_convolution
from .windows import WHOLE, pool_attributes

_DOMAIN = "com.microsoft.nchwc"


def _from_images(source: Source) -> None:
    attributes: dict[str, Attribute] = {"channels_last": source.flag("channels_last", False, True)}
    source.emit("blocks_of_channels", source.type(0), attributes)


def _to_images(source: Source) -> None:
    channels = source.integer("channels", 0)
    if channels < 1:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"there are {channels} channels")
    attributes: dict[str, Attribute] = {
        "channels": channels,
        "channels_last": source.flag("channels_last", False, True),
    }
    source.emit("channels_of_blocks", source.type(0), attributes)


def _conv(source: Source) -> None:
    emit_finished_convolution(source, "conv_of_blocks", ("nchwc.Conv", 1))


def _max_pool(source: Source) -> None:
    attributes = {**pool_attributes(source), "storage_order": int(source.flag("storage_order", False))}
    source.emit("max_pool_of_blocks", source.type(0), attributes)


def _average_pool(source: Source) -> None:
    source.emit("average_pool_of_blocks", source.type(0), average_pool_attributes(source))


def _global(stem: str) -> Mapper:
    def apply(source: Source) -> None:
        source.emit(f"{stem}_of_blocks", source.type(0), {**WHOLE, "planes": False})

    return apply


def _upsample(source: Source) -> None:
    """Images enlarged by integer factors: pixels repeated, or interpolated."""
    mode, places = source.text("mode", "nearest"), source.text("coordinate_transformation_mode", "asymmetric")
    known = {"nearest": ("asymmetric",), "linear": ("asymmetric", "half_pixel", "align_corners")}
    if places not in known.get(mode, ()):
        raise source.unsupported("BT-RESIZE-MODE", f"mode '{mode}' with '{places}' is not made")
    scales = source.constant(np.array(source.integers("scales", ()), np.float32), "scales")
    attributes: dict[str, Attribute] = {"policy": "stretch", "transformation": places, "blocks": True}
    if mode == "nearest":
        attributes |= {"nearest": "floor"}
    source.emit(f"resize_{mode}_of_blocks", source.type(0), attributes, inputs=[source.inputs[0], None, scales])


MAPPERS: Mappers = {
    (_DOMAIN, "AveragePool"): _average_pool,
    (_DOMAIN, "Conv"): _conv,
    (_DOMAIN, "GlobalAveragePool"): _global("average_pool"),
    (_DOMAIN, "GlobalMaxPool"): _global("max_pool"),
    (_DOMAIN, "MaxPool"): _max_pool,
    (_DOMAIN, "ReorderInput"): _from_images,
    (_DOMAIN, "ReorderOutput"): _to_images,
    (_DOMAIN, "Upsample"): _upsample,
}
