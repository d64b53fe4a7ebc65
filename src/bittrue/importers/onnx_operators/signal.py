"""Mappings of what signals and spectra are multiplied by."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from ..onnx_tensors import type_name
from .base import Mapper, Mappers, Source

_F32 = np.float32


def _window(a0: float, a1: float, a2: float) -> Mapper:
    def apply(source: Source) -> None:
        dtype = type_name(source.integer("output_datatype", 1), source.place)
        attributes: dict[str, Attribute] = {
            "a0": a0,
            "a1": a1,
            "a2": a2,
            "periodic": source.flag("periodic", True, True),
        }
        source.emit("cosine_window", dtype, attributes)

    return apply


def _mel_weights(source: Source) -> None:
    source.emit("mel_weights", type_name(source.integer("output_datatype", 1), source.place))


_HAMMING = _F32(25) / _F32(46)
_BLACKMAN = _F32(0.16) / _F32(2)

MAPPERS: Mappers = {
    ("", "BlackmanWindow"): _window(float(_F32(0.5) - _BLACKMAN), 0.5, float(_BLACKMAN)),
    ("", "HammingWindow"): _window(float(_HAMMING), float(_F32(1) - _HAMMING), 0.0),
    ("", "HannWindow"): _window(0.5, 0.5, 0.0),
    ("", "MelWeightMatrix"): _mel_weights,
}
