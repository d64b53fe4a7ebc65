"""Inputs and outputs of sessions, and whether arrays fit them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import InputError, UnsupportedError
from .graph import Quantization
from .names import brief


class Port:
    """One input or output of a session.

    Attributes:
        name: tensor name.
        dtype: NumPy dtype of the array.
        shape: tuple of dimensions, -1 for those that only running tells (the rank is then what the file declares).
        free: the axes of an input that may have other sizes in a run; `shape` has one size for each.
        scale, zero_point: quantization (None when the tensor has none or has it per axis).
    """

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        shape: tuple[int, ...],
        quantization: Quantization | None,
        free: frozenset[int] = frozenset(),
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.free = free
        self.quantization = quantization
        single = quantization is not None and not quantization.per_axis
        self.scale = float(quantization.scales[0]) if single and quantization else None
        self.zero_point = int(quantization.zero_points[0]) if single and quantization else None

    def __repr__(self) -> str:
        quantization = f", {self.quantization}" if self.quantization is not None else ""
        return f"Port({brief(self.name)}, {self.dtype}{self.shape_text()}{quantization})"

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether `shape` differs from the port's in free axes at most."""
        return len(shape) == len(self.shape) and all(
            a == b or axis in self.free for axis, (a, b) in enumerate(zip(shape, self.shape, strict=True))
        )

    def shape_text(self) -> str:
        """The shape, with "?" for free sizes.

        >>> Port("x", np.dtype(np.int8), (1, 3, 8), None, free=frozenset({0})).shape_text()
        '[?, 3, 8]'
        """
        return f"[{', '.join('?' if axis in self.free else str(size) for axis, size in enumerate(self.shape))}]"


def _shape_advice(port: Port, shape: tuple[int, ...]) -> str:
    """What to do with an array of another shape than the input's."""
    for axes, where in (((0, 2, 3, 1), "first"), ((0, 3, 1, 2), "last")):
        for whole, text in ((shape, "array"), ((1, *shape), "array[None]")):
            if len(whole) == 4 and tuple(whole[axis] for axis in axes) == port.shape:
                return f"the axes look transposed (channels {where}): use {text}.transpose{axes}"
    if (1, *shape) == port.shape:
        return "the batch axis is missing: use array[None]"
    if [n for n in shape if n != 1] == [n for n in port.shape if n != 1]:
        return f"axes of size 1 are elsewhere: use array.reshape{port.shape}"
    if math.prod(shape) == math.prod(port.shape):
        return "it has as many values in another order of axes: transpose or reshape it as the input needs them"
    if len(shape) == len(port.shape):
        advice = f"prepare the model for it: model.prepare(shapes={{{port.name!r}: {shape}}})"
        if port.shape[1:] == shape[1:] and port.shape[0] and shape[0] % port.shape[0] == 0:
            advice = f"session.run_batch(...) runs the samples one after the other; or {advice}"
        return advice
    return f"the input has {len(port.shape)} axes, the array {len(shape)}"


def checked(port: Port, value: Any) -> np.ndarray:
    """`value` as an array of the port's type and shape, in C order.

    Raises:
        InputError: it is none.
    """
    if (
        type(value) is np.ndarray
        and value.dtype == port.dtype
        and value.shape == port.shape
        and value.flags.c_contiguous
    ):
        return value
    place = f"input '{port.name}'"
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError("BT-INPUT-TYPE", f"no array: {error}", place=place) from None
    if array.dtype != port.dtype:
        advice = f"convert it yourself: array.astype(np.{port.dtype})"
        if array.dtype.kind == "f" and port.scale is not None:
            advice = (
                f"quantize it: bittrue.quantize(x, scale={port.scale!r}, zero_point={port.zero_point}, "
                f"dtype='{port.dtype}')"
            )
        raise InputError("BT-INPUT-TYPE", f"expected {port.dtype}, found {array.dtype}", place=place, advice=advice)
    if array.shape != port.shape:
        advice = _shape_advice(port, array.shape)
        raise InputError(
            "BT-INPUT-SHAPE",
            f"expected shape {port.shape_text()}, found {list(array.shape)}",
            place=place,
            advice=advice,
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def pair(ours: Sequence[str], theirs: Sequence[str | list[str]], what: str) -> list[int]:
    """For each of our names the position among theirs: by name where all are found, else in order."""
    known = {name: i for i, names in enumerate(theirs) for name in ([names] if isinstance(names, str) else names)}
    if len(set(ours)) == len(ours) and all(name in known for name in ours):
        return [known[name] for name in ours]
    if len(ours) != len(theirs):
        raise UnsupportedError("BT-PEER-PORTS", f"its model has {len(theirs)} {what}, ours {len(ours)}")
    return list(range(len(ours)))
