"""What can be chosen about formats."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import InputError

ORDERS = ("low", "high")
ENDIANNESSES = ("little", "big")
_BLOCKED = re.compile(r"nc/(\d+)hw")
_WIDEST = 4096


@dataclass(frozen=True)
class Options:
    """How arrays are laid out in the formats hex and bin.

    Attributes:
        word_width: bits of one word of a hex file; 0: those of an element.
        per_word: elements in one word; 0: as many as fit.
        order: ``"low"``: the first element is in the lowest bits; ``"high"``: in the highest.
        endianness: byte order of each element, in words and in binary files.
        layout: of tensors with four axes in hex files: ``""`` as the model has them, ``"nhwc"``, ``"nchw"``, or
            ``"nc/16hw"``: blocks of 16 channels innermost, padded with the zero point.
        comments: hex lines say which element they begin with.
        split: one folder per case in hex, and in desc and onnx when all formats are written.
    """

    word_width: int = 0
    per_word: int = 0
    order: str = "low"
    endianness: str = "little"
    layout: str = ""
    comments: bool = False
    split: bool = False

    def __post_init__(self) -> None:
        for value, what, allowed in ((self.order, "order", ORDERS), (self.endianness, "endianness", ENDIANNESSES)):
            if value not in allowed:
                raise InputError("BT-VECTORS-OPTION", f"{what} is '{value}'", advice=f"choose one of {allowed}")
        if not 0 <= self.word_width <= _WIDEST or not 0 <= self.per_word <= _WIDEST:
            raise InputError(
                "BT-VECTORS-OPTION", f"word width and elements per word lie between 1 and {_WIDEST}", place="hex"
            )
        if self.layout not in ("", "nhwc", "nchw") and not self.block:
            raise InputError(
                "BT-VECTORS-OPTION", f"layout is '{self.layout}'", advice="choose nhwc, nchw, or nc/16hw with any block"
            )

    @property
    def block(self) -> int:
        """Channels of one block of a blocked layout; 0 for other layouts."""
        found = _BLOCKED.fullmatch(self.layout)
        size = int(found[1]) if found and len(found[1]) < 6 else 0
        return size if size <= _WIDEST else 0
