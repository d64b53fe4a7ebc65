"""Largest elements of windows where NaN, infinities or zeros of both signs meet: in which order elements are compared.

The way of a step is one of

- ``vectors``: in the order of the taps, in vectors, from the least finite number on, those outside left out (images in
  blocks of channels)
- ``in_order``: the same, not in vectors
- ``from_first``: the same, not in vectors, from the first element on
- ``columns``: down each column of the image, in vectors in whole groups of four columns; then along the row of
  these, in vectors, where columns outside of the image are the least finite number
- ``columns_of_volumes``: the same, columns from the least finite number on
- ``pixels``: in the order of the taps, from the least finite number on, those outside left out; in vectors the channels
  of a pixel of the output that fill vectors from a boundary of 16 bytes on
- ``lanes``: a whole image in four lanes, in vectors; then lanes 0 and 2, 1 and 3, both, and the elements that are left,
  not in vectors

Source: a runtime's own kernels; verified by running (docs/facts/onnxruntime.md 5.24).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ...rules import extreme
from ..core.base import Call, Step
from ..core.geometry import Window
from ..core.stopping import check_stop
from .average_reals import CHANNELS, fits_vectors, is_plain_whole
from .pooling import Images, met

_Join = Callable[[np.ndarray, np.ndarray], np.ndarray]


def way(call: Call, windows: Sequence[Window]) -> str:
    """The way of a step."""
    rule = extreme.RULES[call.rules["extreme"]]
    if not rule.in_windows:
        raise call.unsupported("BT-POOL-EXTREME", f"windows by '{call.rules['extreme']}'", "choose other numerics")
    if rule.in_pixels:
        return "pixels"
    if rule.from_first:
        return "from_first"
    x, attributes = call.input(0), call.node.attributes
    block = attributes.get("block", CHANNELS)
    assert isinstance(block, int)
    alone = len(call.outputs) == 1 and x.dtype == "f32"
    if alone and x.rank == 4 and block and x.shape[1] % block == 0 and not attributes.get("planes"):
        return "vectors"
    if not alone or attributes.get("storage_order") or any(one.dilation > 1 for one in windows):
        return "from_first"
    if is_plain_whole(windows):
        return "lanes"
    if fits_vectors(windows):
        return "columns" if len(windows) == 2 else "columns_of_volumes"
    return "in_order"


def matters(image: np.ndarray) -> bool:
    """Whether the order of comparisons may show: it does not where all are numbers and no zero is negative."""
    return bool((np.isnan(image) | (image == -np.inf) | ((image == 0) & np.signbit(image))).any())


def largest(step: Step, images: Images, image: np.ndarray, number: int) -> np.ndarray:
    """One value per window of an image, the `number`-th, in the step's way."""
    rule, how = extreme.RULES[step.rules["extreme"]], step["way"]

    def join(vectors: bool) -> _Join:
        return lambda kept, x: rule.apply(kept, x, 1, vectors)

    if how == "lanes":
        return _in_lanes(image, join(True), join(False))
    if how == "pixels":
        in_vectors, single = (_in_order(images, image, join(vectors), False) for vectors in (True, False))
        places = number * single.size + np.arange(single.size).reshape(single.shape)
        first, channels = places[..., :1], single.shape[-1]
        begin = -first % 4
        place = places - first - begin
        return np.where((place >= 0) & (place < (channels - begin) // 4 * 4), in_vectors, single)
    if how.startswith("columns"):
        return _in_columns(images, image, join(True), join(False), how == "columns")
    return _in_order(images, image, join(how == "vectors"), how == "from_first")


def _least(image: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.full(shape, np.finfo(image.dtype).min, image.dtype)


def _in_order(images: Images, image: np.ndarray, join: _Join, from_first: bool) -> np.ndarray:
    kept = _least(image, images.empty(image.dtype).shape[1:])
    begun = np.full(kept.shape, not from_first)
    for taps in product(*([*met(one)] for one in images.windows)):
        check_stop()
        to, of = (images.place(*(tap[side] for tap in taps)) for side in (0, 1))
        kept[to] = np.where(begun[to], join(kept[to], image[of]), image[of])
        begun[to] = True
    return kept


def _in_columns(images: Images, image: np.ndarray, vectors: _Join, single: _Join, from_first: bool) -> np.ndarray:
    """Channels lie first."""
    deep, tall, wide = images.windows
    whole = wide.size // 4 * 4
    columns = _least(image, (len(image), deep.out, tall.out, wide.before + wide.size + max(wide.after, wide.reached)))
    seen = columns[..., wide.before : wide.before + wide.size]
    begun = np.full(seen.shape[1:3], not from_first)
    for (to, of), (to_row, of_row) in product(met(deep), met(tall)):
        check_stop()
        kept, rows = seen[:, to, to_row], image[:, of, of_row]
        joined = np.concatenate(
            [vectors(kept[..., :whole], rows[..., :whole]), single(kept[..., whole:], rows[..., whole:])], axis=-1
        )
        seen[:, to, to_row] = np.where(begun[to, to_row, None], joined, rows)
        begun[to, to_row] = True
    starts = np.arange(wide.out) * wide.stride
    kept = columns[..., starts]
    for tap in range(1, wide.taps):
        check_stop()
        kept = vectors(kept, columns[..., starts + tap])
    return kept


def _in_lanes(image: np.ndarray, vectors: _Join, single: _Join) -> np.ndarray:
    """Channels lie first."""
    flat = image.reshape(len(image), -1)
    whole = flat.shape[1] // 4 * 4
    lanes = _least(image, (len(image), 4))
    for begin in range(0, whole, 4):
        lanes = vectors(lanes, flat[:, begin : begin + 4])
    pairs = vectors(lanes[:, :2], lanes[:, 2:])
    kept = vectors(pairs[:, 0], pairs[:, 1])
    for place in range(whole, flat.shape[1]):
        kept = single(kept, flat[:, place])
    return kept.reshape(-1, 1, 1, 1)
