"""Custom operators of TFLite files that the runtime itself registers, and how their options are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..errors import InvalidModelError
from ..graph import Attribute
from ..records import dataclass
from .flexbuffer import Scalar, read_map

_S32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Custom:
    """One custom operator: its stem, and its options as name -> what an absent one counts as.

    The default's type is the option's type; other numbers are converted as the runtime converts them.
    """

    stem: str
    options: Mapping[str, bool | int | float]

    def attributes(self, content: Sequence[int], place: str) -> dict[str, Attribute]:
        """The options by name, all of them resolved.

        Raises:
            ModelFormatError: the bytes are no map of numbers.
            InvalidModelError: a number cannot be what the option needs.
        """
        found = read_map(bytes(content), self.options, place)
        return {
            name: _as(found.get(name), default, f"{place}, custom option '{name}'")
            for name, default in self.options.items()
        }


def _as(value: Scalar, default: bool | int | float, place: str) -> Attribute:
    if value is None:
        return default
    if isinstance(default, float):
        try:
            return float(value)
        except OverflowError:
            raise _does_not_fit(value, "a number", place) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _does_not_fit(value, "an integer", place)
    whole = int(value)
    if isinstance(default, bool):
        return whole != 0
    if whole not in _S32:
        raise _does_not_fit(value, "a 32-bit integer", place)
    return whole


def _does_not_fit(value: Scalar, wanted: str, place: str) -> InvalidModelError:
    return InvalidModelError("BT-MODEL-OPTIONS", f"expected {wanted}, found {value!r}", place=place)


CUSTOM: Mapping[str, Custom] = MappingProxyType(
    {
        "AudioSpectrogram": Custom("audio_spectrogram", {"window_size": 0, "stride": 0, "magnitude_squared": False}),
        "Mfcc": Custom(
            "mfcc",
            {
                "upper_frequency_limit": 0,
                "lower_frequency_limit": 0,
                "filterbank_channel_count": 0,
                "dct_coefficient_count": 0,
            },
        ),
        "TFLite_Detection_PostProcess": Custom(
            "detection_postprocess",
            {
                "max_detections": 0,
                "max_classes_per_detection": 0,
                "detections_per_class": 100,
                "use_regular_nms": False,
                "nms_score_threshold": 0.0,
                "nms_iou_threshold": 0.0,
                "num_classes": 0,
                "y_scale": 0.0,
                "x_scale": 0.0,
                "h_scale": 0.0,
                "w_scale": 0.0,
            },
        ),
        # Its random_binary_vector is not read by the runtime, either.
        "aeq.hadamard_rotation": Custom("hadamard_rotation", {"hadamard_size": 0}),
    }
)
"""Custom code -> operator."""
