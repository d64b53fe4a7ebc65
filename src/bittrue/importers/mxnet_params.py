"""Files of named arrays (``.params``): a list of dense arrays, each with its own header, then the list of their names.

Everything is little-endian: u64 0x112, u64 0, u64 count, arrays, u64 count, names (u64 length, bytes). An array starts
with u32 0xF993FAC9 (or ...CA, where rank 0 is a scalar): s32 storage, s32 rank, s64 dimensions, s32 device, s32 number,
s32 type, elements. 0xF993FAC8 is the same without storage; the oldest form starts with u32 rank and has u32 dimensions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np

from ..errors import ModelFormatError, UnsupportedError
from ..graph import Tensor, data_type

_MAGIC = 0x112
_FIRST, _SECOND, _SCALARS = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_MOST_ARRAYS, _MOST_DIMENSIONS, _LONGEST_NAME = 1 << 20, 32, 1 << 12
# Element types by their number.
TYPES = ("f32", "f64", "f16", "u8", "s32", "s8", "s64", "bool", "s16", "u16", "u32", "u64", "bf16")
_ADVICE = "the file is truncated or damaged; fetch or save it again"


class _Bytes:
    """A place in the file."""

    def __init__(self, content: np.ndarray) -> None:
        self.content, self.at = content, 0

    def damaged(self, message: str) -> ModelFormatError:
        return ModelFormatError("BT-MXNET-PARAMS", message, place=f"weights, byte {self.at}", advice=_ADVICE)

    def take(self, size: int, what: str) -> np.ndarray:
        """The next `size` bytes."""
        if not 0 <= size <= self.content.size - self.at:
            left = self.content.size - self.at
            raise self.damaged(f"{what} takes {size:,} bytes, {left:,} are left")
        found = self.content[self.at : self.at + size]
        self.at += size
        return found

    def numbers(self, form: str, what: str) -> tuple[int, ...]:
        """Numbers of a form of `struct`."""
        form = f"<{form}"
        return struct.unpack(form, self.take(struct.calcsize(form), what).tobytes())

    def count(self, most: int, what: str) -> int:
        (found,) = self.numbers("Q", what)
        if found > most:
            raise self.damaged(f"{what} is {found:,}, at most {most:,} can be meant")
        return int(found)


def read_params(content: np.ndarray) -> dict[str, Tensor]:
    """Constant tensors by the names of the file, views of its bytes; arrays without content are left out.

    Raises:
        ModelFormatError: a length, count, shape or type that does not fit.
        UnsupportedError: sparse arrays.
    """
    file = _Bytes(content)
    magic, _ = file.numbers("QQ", "the header")
    if magic != _MAGIC:
        file.at = 0
        raise file.damaged(f"no parameters of MXNet: the file starts with {magic:#x}, lists of arrays with {_MAGIC:#x}")
    arrays = list(_arrays(file))
    count = file.count(_MOST_ARRAYS, "the number of names")
    if count not in (0, len(arrays)):
        raise file.damaged(f"{count} names for {len(arrays)} arrays")
    found: dict[str, Tensor] = {}
    for position in range(count):
        raw = file.take(file.count(_LONGEST_NAME, "the length of a name"), "a name")
        try:
            name = raw.tobytes().decode()
        except UnicodeDecodeError:
            raise file.damaged("a name is no UTF-8 text") from None
        if name in found:
            raise file.damaged(f"two arrays are called '{name}'")
        array = arrays[position]
        if array is not None:
            found[name] = Tensor(name, array.dtype, array.shape, data=array.data)
    if file.at != content.size:
        raise file.damaged(f"{content.size - file.at:,} bytes follow the last name")
    return found


def _arrays(file: _Bytes) -> Iterator[Tensor | None]:
    for _ in range(file.count(_MOST_ARRAYS, "the number of arrays")):
        yield _array(file)


def _array(file: _Bytes) -> Tensor | None:
    (magic,) = file.numbers("I", "an array")
    scalars = magic == _SCALARS
    if magic in (_SECOND, _SCALARS):
        (storage,) = file.numbers("i", "an array's storage")
        if storage in (1, 2):
            raise UnsupportedError(
                "BT-MXNET-SPARSE",
                "a sparse array, only dense ones are read",
                place=f"weights, byte {file.at}",
                advice="convert it with tostype('default') and save it again",
            )
        if storage != 0:
            raise file.damaged(f"storage type {storage} is not known")
    if magic in (_FIRST, _SECOND, _SCALARS):
        (rank,) = file.numbers("i", "an array's rank")
        wide = True
    else:
        rank, wide = magic, False
    if (scalars and rank == -1) or (not scalars and rank == 0):
        return None
    if not 0 <= rank <= _MOST_DIMENSIONS:
        raise file.damaged(f"rank {rank} is no rank")
    shape = file.numbers(f"{rank}{'q' if wide else 'I'}", "an array's shape")
    if min(shape, default=0) < 0:
        raise file.damaged(f"shape {list(shape)} is no shape")
    if 0 in shape:
        # NumPy refuses dimensions whose product is too large even where another size is 0.
        if math.prod(size or 1 for size in shape) >= 1 << 59:
            raise file.damaged(f"shape {list(shape)} is no shape")
        if not scalars:
            # Before scalars, a dimension of 0 was one that is not known yet.
            raise file.damaged(f"shape {list(shape)} is not known")
    _, _, kind = file.numbers("iii", "an array's device and type")
    if not 0 <= kind < len(TYPES):
        raise file.damaged(f"element type {kind} is not known")
    dtype = data_type(TYPES[kind])
    raw = file.take(math.prod(shape) * dtype.numpy.itemsize, f"an array of shape {list(shape)}")
    if dtype.name == "bool":
        return Tensor("", dtype.name, shape, data=raw != 0)
    # Headers and names have any length: elements are not aligned, and copied where they must be.
    data = raw if raw.ctypes.data % dtype.numpy.itemsize == 0 else raw.copy()
    return Tensor("", dtype.name, shape, data=data.view(dtype.numpy))
