"""Arrays as words of a memory: layout, packing, byte order, and the text that $readmemh reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from .entry import Part
from .options import Options


@dataclass(frozen=True, eq=False)
class Words:
    """An array as it lies in a memory.

    Attributes:
        bits: one row per word, the lowest bit first.
        element_width: bits of an element.
        per_word: elements in one word; 0 where an element takes several words.
        shape: of the elements as they are stored, after the change of layout.
        layout: their order: ``"nhwc"``, ``"nchw"``, ``"nc/16hw"``, or empty for the order of the model.
    """

    bits: np.ndarray
    element_width: int
    per_word: int
    shape: tuple[int, ...]
    layout: str

    @property
    def count(self) -> int:
        """Number of words."""
        return int(self.bits.shape[0])

    @property
    def width(self) -> int:
        """Bits of a word."""
        return int(self.bits.shape[1])

    def lines(self, comments: bool = False) -> str:
        """One word per line, as two's complement in hexadecimal digits."""
        count, digits = self.count, -(-self.width // 4)
        if not count:
            return ""
        rows = np.zeros((count, 4 * digits), np.uint8)
        rows[:, : self.width] = self.bits
        nibbles = rows.reshape(count, digits, 4) @ np.array([1, 2, 4, 8], np.uint8)
        text = np.full((count, digits + 1), ord("\n"), np.uint8)
        text[:, :digits] = np.frombuffer(b"0123456789abcdef", np.uint8)[nibbles[:, ::-1]]
        plain = text.tobytes().decode()
        if not comments:
            return plain
        return "".join(f"{line}  // {i:x}: {self._first(i)}\n" for i, line in enumerate(plain.split()))

    def _first(self, word: int) -> str:
        """The element that a word begins with."""
        parts = -(-self.element_width // self.width)
        element = word * self.per_word if self.per_word else word // parts
        return str([int(i) for i in np.unravel_index(element, self.shape)]) if self.shape else "[]"


def words_of(part: Part, options: Options, channels_last: bool) -> Words:
    """An array in the words that the options describe.

    Args:
        part: numbers of at most 64 bits each, or complex ones.
        options: word width, packing, order, endianness, layout.
        channels_last: whether tensors with four axes have their channels last in the model.

    An element of more bits than a word takes several of them: the low part comes first in little-endian order, the high
    part in big-endian order. Else the bytes of each element are swapped in big-endian order. What words have left
    over is zero, and so are missing elements of the last word.

    Raises:
        InputError: more elements per word than fit.
    """
    value, layout = laid_out(part, options, channels_last)
    kind = part.type
    width = kind.bits or 8 * value.dtype.itemsize
    if kind.name == "bool":
        width = 8
    word = options.word_width or width
    quantized = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8).reshape(-1, value.dtype.itemsize)
    swapped = options.endianness == "big"
    if word >= width and swapped and width % 8 == 0:
        quantized = quantized[:, ::-1]
    bits = np.unpackbits(quantized, axis=1, bitorder="little")[:, :width]
    if word < width:
        if options.per_word > 1:
            raise InputError("BT-VECTORS-OPTION", f"{options.per_word} elements of {width} bits in words of {word}")
        parts = -(-width // word)
        wide = np.zeros((bits.shape[0], parts * word), np.uint8)
        wide[:, :width] = bits
        pieces = wide.reshape(-1, parts, word)
        rows = (pieces[:, ::-1] if swapped else pieces).reshape(-1, word)
        return Words(rows, width, 0, value.shape, layout)
    per_word = options.per_word or word // width
    if per_word * width > word:
        raise InputError(
            "BT-VECTORS-OPTION",
            f"{per_word} elements of {width} bits do not fit a word of {word}",
            place=f"'{part.name}'",
            advice="choose wider words or fewer elements per word",
        )
    count = -(-bits.shape[0] // per_word)
    filled = np.zeros((count * per_word, width), np.uint8)
    filled[: bits.shape[0]] = bits
    groups = filled.reshape(count, per_word, width)
    if options.order == "high":
        groups = groups[:, ::-1]
    rows = np.zeros((count, word), np.uint8)
    rows[:, : per_word * width] = groups.reshape(count, per_word * width)
    return Words(rows, width, per_word, value.shape, layout)


def laid_out(part: Part, options: Options, channels_last: bool) -> tuple[np.ndarray, str]:
    """The array in the layout asked for, and that layout; arrays without four axes stay as they are."""
    value = part.value
    if not options.layout or value.ndim != 4 or part.role in ("multiplier", "exponent", "factor"):
        return value, ""
    if options.layout == "nhwc":
        return (value if channels_last else value.transpose(0, 2, 3, 1)), "nhwc"
    first = value.transpose(0, 3, 1, 2) if channels_last else value
    block = options.block
    if not block:
        return first, "nchw"
    n, channels, height, width = first.shape
    points = part.quantization.zero_points if part.quantization is not None else np.zeros(1, np.int64)
    padded = np.zeros((n, -(-channels // block) * block, height, width), value.dtype)
    if part.role != "accumulator" and points.size == 1 and part.type.is_integer:
        padded[...] = int(points[0])
    padded[:, :channels] = first
    blocks = padded.reshape(n, -1, block, height, width).transpose(0, 1, 3, 4, 2)
    return np.ascontiguousarray(blocks), options.layout
