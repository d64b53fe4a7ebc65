"""Options of TFLite operators in the form in which our operators have them, whatever file they are from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..graph import Attribute

Attributes = Mapping[str, Attribute]


def _pool(given: Attributes) -> dict[str, Attribute]:
    """Windows that do not fit are no error there."""
    same = given["padding"] == "same"
    return {
        "kernel": (given["filter_h"], given["filter_w"]),  # type: ignore[dict-item]
        "strides": (given["stride_h"], given["stride_w"]),  # type: ignore[dict-item]
        "dilations": (),
        "pads": (),
        "padding": "same_upper" if same else "explicit",
        "size": "floor" if same else "truncated_sum",
        "unfit": "empty",
        "channels_last": True,
        "activation": given["activation"],
    }


# Options table to what makes its fields our attributes; the others are as they should be.
FORMS: Mapping[str, Callable[[Attributes], dict[str, Attribute]]] = {"Pool2DOptions": _pool}
