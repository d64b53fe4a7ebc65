"""Attributes of windows that differ between two files, in the words of files instead of in those of our rules.

One word of a file can be several of our attributes: TFLite's padding is a rule for pads and one for sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..graph import Attribute
from ..operators.core.geometry import PADDINGS, SIZES

Attributes = Mapping[str, Attribute]
_COUNTED = {"inside": "without padding", "padded": "with padding", "taps": "with padding"}


@dataclass(frozen=True)
class Part:
    """One thing that differs.

    Attributes:
        word: what it is.
        one, two: what stands in the one file, and what in the other.
        keys: attributes that say it.
    """

    word: str
    one: Any
    two: Any
    keys: tuple[str, ...]


def window_parts(a: Attributes, b: Attributes, differing: Collection[str]) -> Iterator[Part]:
    """What differs in the windows of two nodes, of the attributes `differing`; those in no part have no other words.

    >>> same = {"padding": "same_upper", "size": "floor", "pads": ()}
    >>> valid = {"padding": "explicit", "size": "truncated_sum", "pads": ()}
    >>> list(window_parts(same, valid, ["padding", "size"]))
    [Part(word='padding', one='same', two='valid', keys=('padding', 'size'))]
    """
    if not all(side.get("padding") in PADDINGS and side.get("size") in SIZES for side in (a, b)):
        return
    left = set(differing)
    padding, size, counted = [(word(a), word(b)) for word in (_padding, _rounding, _counted)]
    rest = left & {"size"} if size[0] == size[1] else set()
    if "whole" in left:
        # Neither of the other two matters to a window that is the image.
        rest = left & ({"padding", "size"} if padding[0] == padding[1] else {"size"})
        yield Part("whole image", a.get("whole"), b.get("whole"), ("whole", *sorted(rest)))
        left, rest = left - rest, set()
    if "padding" in left and padding[0] != padding[1]:
        yield Part("padding", *padding, ("padding", *sorted(left & {"pads"} | rest)))
        left -= rest
    elif "padding" not in left and "pads" in left:
        yield Part("pads", a.get("pads"), b.get("pads"), ("pads", *sorted(rest)))
        left -= rest
    if "size" in left and size[0] != size[1]:
        yield Part("window count rounding", *size, ("size",))
    if "counted" in left and counted[0] != counted[1]:
        yield Part("average", *counted, ("counted",))


def _padding(node: Attributes) -> Any:
    """Pads that a file gives are said as they are; that there are none is `valid` everywhere."""
    name, pads = str(node["padding"]), node.get("pads", ())
    if PADDINGS[name] is not None:
        # ONNX alone has both ends, and windows that do not count their dilation.
        return "same" if name == "same_upper" else name.removesuffix("_of_taps")
    return pads if isinstance(pads, (tuple, list)) and any(pads) else "valid"


def _rounding(node: Attributes) -> str:
    name = str(node["size"])
    return name if name == "exact" else "ceil" if name.startswith("ceil") else "floor"


def _counted(node: Attributes) -> str:
    """Names that are none of ours stay as they are."""
    name = str(node.get("counted"))
    return _COUNTED.get(name, name)
