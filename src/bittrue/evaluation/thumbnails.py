"""Small images of samples, for pages: the image itself, or a map of its values."""

from __future__ import annotations

import base64
import importlib
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, UnsupportedError

# Longest side of an image, and of one that keeps its pixels as they are.
SIDE, _FEW = 192, 64
_MOST_PIXELS = 1 << 26
# Points of a curve.
_POINTS = 256
# Others may start programs, as PostScript does.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# From the smallest value to the largest, between two greys of a page in any light.
_COLOURS = np.array([[6, 47, 85], [10, 95, 158], [127, 178, 221], [238, 241, 246]], np.float64)


def pillow() -> Any:
    """The module PIL.Image.

    Raises:
        UnsupportedError: it is not installed.
    """
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise UnsupportedError("BT-PACKAGE", "pillow is not installed", advice="pip install pillow") from None


def thumbnail(
    parts: Sequence[bytes | np.ndarray], holds: str, shape: Sequence[int], dtype: str, side: int = SIDE
) -> dict[str, Any]:
    """What a page shows of a sample: ``image``, a data URL, or ``curve``, heights from 0 to 1; and ``what`` it is. Of
    encoded images ``size``, too: columns and rows of the thumbnail, and ``whole``, those of the image.

    Args:
        parts: of the sample, as its source gives them.
        holds: what they are; see `bittrue.evaluation.sources.Source`.
        shape, dtype: of the model's input, which say how bytes are values.
        side: the longest one of encoded images.

    Raises:
        InputError: it can neither be decoded nor drawn.
    """
    if holds == "image":
        return {**_encoded_image(parts[0], side), "what": "image"}
    values = [_values(part, shape, dtype) for part in parts]
    whole = values[0] if len(values) == 1 else np.stack(values)
    whole = whole.reshape([size for size in whole.shape if size != 1])
    if not whole.size or whole.dtype.kind not in "biuf":
        raise InputError("BT-IMAGE", "there are no numbers to draw")
    if whole.ndim == 3 and whole.shape[2] == 3 and whole.dtype.kind in "iu" and whole.dtype.itemsize == 1:
        return {"image": _url(pillow().fromarray(_bytes(whole))), "what": "values as colours"}
    if whole.ndim >= 2:
        plane = whole if whole.ndim == 2 else whole.reshape(whole.shape[0], -1)
        return {
            "image": _url(pillow().fromarray(_coloured(plane))),
            "what": "values by their order, from dark to light",
        }
    flat = _scaled(whole.reshape(-1))
    step = math.ceil(flat.size / _POINTS)
    return {"curve": [round(float(value), 3) for value in flat[::step]], "what": "values in their order"}


def layer(pixels: np.ndarray) -> str:
    """A data URL of red, green, blue and opacity per pixel."""
    out = io.BytesIO()
    pillow().fromarray(pixels).save(out, "png", optimize=True)
    return _data("png", out)


def _encoded_image(content: bytes | np.ndarray, side: int) -> dict[str, Any]:
    image_module = pillow()
    try:
        with image_module.open(io.BytesIO(bytes(content)), formats=_FORMATS) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise InputError("BT-IMAGE", f"the image has {image.width} x {image.height} pixels")
            whole = image.size
            image.draft("RGB", (2 * side, 2 * side))
            small = image.convert("L" if image.mode in ("1", "L") else "RGB")
            return {"image": _url(small, side), "size": [*small.size], "whole": [*whole]}
    except InputError:
        raise
    except Exception as error:  # what Pillow raises of damaged files is of many types
        raise InputError("BT-IMAGE", f"the image cannot be decoded: {error}") from None


def _url(image: Any, side: int = SIDE) -> str:
    """The image, made smaller if it is larger, as a data URL."""
    small = max(image.size) <= _FEW
    if not small:
        image.thumbnail((side, side))
    out = io.BytesIO()
    kind = "png" if small else "jpeg"
    image.save(out, kind, **({"optimize": True} if small else {"quality": 82}))
    return _data(kind, out)


def _data(kind: str, out: io.BytesIO) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"


def _values(part: bytes | np.ndarray, shape: Sequence[int], dtype: str) -> np.ndarray:
    if not isinstance(part, bytes):
        return part
    kind = np.dtype(dtype).newbyteorder("<")
    if len(part) == math.prod(shape) * kind.itemsize:
        return np.frombuffer(part, kind).reshape(shape)
    return np.frombuffer(part, np.uint8)


def _bytes(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == np.uint8 else (values.astype(np.int16) + 128).astype(np.uint8)


def _scaled(values: np.ndarray) -> np.ndarray:
    """From 0 for the smallest to 1 for the largest; what is no number counts as the smallest."""
    numbers = values.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.any():
        return np.zeros(numbers.shape)
    low, high = numbers[finite].min(), numbers[finite].max()
    with np.errstate(over="ignore", invalid="ignore"):
        found = (numbers - low) / ((high - low) or 1.0)
    return np.where(np.isfinite(found), found, 0.0).clip(0, 1)


def _coloured(plane: np.ndarray) -> np.ndarray:
    """By rank: a few values far from all others would leave one colour for the rest."""
    ranks = np.searchsorted(np.sort(plane, axis=None), plane)
    at = _scaled(ranks) * (len(_COLOURS) - 1)
    channels = [np.interp(at, range(len(_COLOURS)), _COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=2).round().astype(np.uint8)
