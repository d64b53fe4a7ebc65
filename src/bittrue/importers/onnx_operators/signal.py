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


def _fourier(source: Source) -> None:
    """From set 20 on the axis is an operand."""
    attributes: dict[str, Attribute] = {
        "axis": source.integer("axis", 1) if source.version < 20 else -2,
        "inverse": source.flag("inverse", False, True),
        "onesided": source.flag("onesided", False, True),
        "framed": False,
    }
    source.emit("discrete_fourier", source.type(0), attributes, inputs=source.ordered(0, 1, 2))


def _short_fourier(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "axis": 1,
        "inverse": False,
        "onesided": source.flag("onesided", True, True),
        "framed": True,
    }
    source.emit("discrete_fourier", source.type(0), attributes, inputs=source.ordered(0, 3, 4, 2, 1))


_HAMMING = _F32(25) / _F32(46)
_BLACKMAN = _F32(0.16) / _F32(2)

MAPPERS: Mappers = {
    ("", "BlackmanWindow"): _window(float(_F32(0.5) - _BLACKMAN), 0.5, float(_BLACKMAN)),
    ("", "DFT"): _fourier,
    ("", "HammingWindow"): _window(float(_HAMMING), float(_F32(1) - _HAMMING), 0.0),
    ("", "HannWindow"): _window(0.5, 0.5, 0.0),
    ("", "MelWeightMatrix"): _mel_weights,
    ("", "STFT"): _short_fourier,
}
