"""Windows along the axes of an image: where padding lies, how many windows there are, which taps lie inside.

How runtimes count differs, and is data: a name of `PADDINGS` and one of `SIZES`. With reach = (taps - 1) * dilation + 1
and span = dimension + before + after - reach, the windows along an axis are those of `SIZES[size]` for this span.
Source: docs/facts/litert.md 1.7, docs/facts/caffe2.md 0, docs/facts/onnxruntime.md 2.6, verified by running.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce

import numpy as np

from ...graph import Attribute
from ...records import dataclass
from .base import Call, Shape, Step

# Kernels keep strides, dilations and the padding before an image in 16 bits and refuse more.
LARGEST = 32767
_MOST = 2**31 - 1
_LETTERS = "dhw"
_NAMES = ("depth", "height", "width")
# Names of the padding before and after an image, by axis.
SIDES = {"d": ("pad_front", "pad_back"), "h": ("pad_top", "pad_bottom"), "w": ("pad_left", "pad_right")}


class WindowError(ValueError):
    """Numbers that make no windows."""


@dataclass(frozen=True)
class Window:
    """One spatial axis: `taps` positions `dilation` apart, moved by `stride`, after `before` padded positions."""

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    @property
    def reach(self) -> int:
        """Positions from the first to the last tap, both included."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def reached(self) -> int:
        """Positions from the first tap of the first window to the last tap of the last one, both included."""
        return (self.out - 1) * self.stride + self.reach if self.out else self.reach

    @property
    def behind(self) -> bool:
        """Whether the last window begins behind the image."""
        return (self.out - 1) * self.stride >= self.size + self.before

    def taps_met(self) -> range:
        """Taps that may lie inside the image; the others only ever meet padding."""
        first = -(((self.out - 1) * self.stride - self.before) // self.dilation)
        last = (self.size + self.before - 1) // self.dilation
        return range(max(0, first), min(self.taps, last + 1))

    def met(self, tap: int, low: int = 0, high: int | None = None) -> tuple[slice, slice]:
        """Windows from `low` to `high`, counted from `low`, whose tap lies inside, and the positions where it lies."""
        count = (self.out if high is None else high) - low
        return meeting(count, self.size, self.stride, low * self.stride + tap * self.dilation - self.before)

    def counts(self, counted: str = "inside") -> np.ndarray:
        """How many taps of every window count.

        `counted` is ``inside`` (taps inside the image), ``padded`` (or in the padding around it) or ``taps`` (all, as
        one number).
        """
        if counted == "taps":
            return np.array([self.taps], np.int64)
        padded = counted == "padded"
        start = np.arange(self.out, dtype=np.int64) * self.stride - self.before
        end = self.size + (self.after if padded else 0)
        first = 0 if padded else np.maximum(-(start // self.dilation), 0)
        return np.maximum(np.minimum((end - 1 - start) // self.dilation + 1, self.taps) - first, 0)


ONE = Window(1, 1, 1, 1, 0, 0, 1)


def lacking(size: int, reach: int, stride: int) -> int:
    """What windows at every `stride`-th position of an axis lack; negative where they leave positions out."""
    return (-(-size // stride) - 1) * stride + reach - size


@dataclass(frozen=True)
class Padding:
    """Padding that follows from the dimension: a window for every `stride`-th position.

    The odd position comes after the image, or before it (`lower`). Where windows leave positions out, these are cut
    off: ``none``, ``half`` of them before, or one less than that (``late``). `dilated`: a window reaches over its
    dilated taps; else over as many positions as it has taps. `ahead`: what comes before the image is ``half`` of all,
    half of what windows of undilated ``taps`` would need, or ``nothing``; the rest comes after it.
    """

    lower: bool = False
    crops: str = "none"
    dilated: bool = True
    ahead: str = "half"

    def __call__(self, total: int, of_taps: int = 0) -> tuple[int, int]:
        """Positions before and after, of `total` that are lacking (`of_taps`: of undilated taps)."""
        if self.crops == "none":
            total = max(0, total)
        if self.ahead != "half":
            before = max(0, of_taps) // 2 if self.ahead == "taps" else 0
            return before, total - before
        before = _toward_zero(total + self.lower + (total < 0 and self.crops == "late"), 2)
        return before, total - before


# Numbers that a file gives (from 0 on, below the number of taps, of any sign), or padding that follows.
PADDINGS: dict[str, Padding | None] = {
    "explicit": None,
    "explicit_below_taps": None,
    "explicit_or_cropping": None,
    "same_upper": Padding(),
    "same_lower": Padding(lower=True),
    "same_upper_as_undilated": Padding(ahead="taps"),
    "same_after": Padding(ahead="nothing"),
    "same_upper_cropping": Padding(crops="late"),
    "same_lower_cropping": Padding(crops="late", lower=True),
    "same_upper_of_taps": Padding(crops="half", dilated=False),
    "same_lower_of_taps": Padding(crops="half", dilated=False, lower=True),
}


def _toward_zero(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def _binary32(rounded: Callable[[np.float32], np.float32]) -> Callable[[int, int], int]:
    return lambda span, stride: int(rounded(np.float32(span) / np.float32(stride))) + 1


def _exactly(span: int, stride: int) -> int:
    if span % stride:
        raise WindowError(f"windows {stride} apart do not fill the padded positions, {span % stride} are left over")
    return span // stride + 1


@dataclass(frozen=True)
class Size:
    """How many windows there are: `count` of span and stride, at least `least`.

    `fits`: a window fits into the padded image; `clipped`: a last window that begins behind the image and the padding
    before it is left out; `empty`: an axis without positions has no windows, and is no error.
    """

    count: Callable[[int, int], int]
    least: int = 1
    fits: bool = False
    clipped: bool = False
    empty: bool = False


def _ceil(span: int, stride: int) -> int:
    return -(-span // stride) + 1


# A quotient that is cut off toward zero gives one window where it just does not fit.
SIZES: dict[str, Size] = {
    "floor": Size(lambda span, stride: span // stride + 1, fits=True),
    "floor_or_none": Size(lambda span, stride: max(0, span // stride + 1), 0, empty=True),
    "truncated": Size(lambda span, stride: _toward_zero(span, stride) + 1),
    "truncated_or_none": Size(lambda span, stride: _toward_zero(span, stride) + 1, 0),
    "truncated_sum": Size(lambda span, stride: _toward_zero(span + stride, stride), 0),
    "exact": Size(_exactly, fits=True),
    "ceil": Size(_ceil, fits=True),
    "ceil_hanging": Size(_ceil, 0),
    "ceil_clipped": Size(_ceil, 0, clipped=True),
    "floor_binary32": Size(_binary32(np.floor)),
    "ceil_binary32": Size(_binary32(np.ceil)),
    "floor_binary32_clipped": Size(_binary32(np.floor), clipped=True),
    "ceil_binary32_clipped": Size(_binary32(np.ceil), clipped=True),
}


def _check_whole(*numbers: object) -> None:
    """WindowError unless all are integers: attributes of plan files may be anything."""
    for number in numbers:
        if number.__class__ is not int and not isinstance(number, (int, np.integer)):
            raise WindowError(f"{list(numbers)} are not all integers")


def window(
    dimension: int,
    taps: int,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (0, 0),
    padding: str = "explicit",
    size: str = "floor",
    most: int = LARGEST,
) -> Window:
    """Padding and number of windows along one axis, by the rules `padding` and `size`; WindowError if there are none.

    Strides and dilations are 1 to `most`; `pads` are the positions before and after, where the rule does not find them.

    >>> window(5, 3, 2, padding="same_upper")
    Window(size=5, taps=3, stride=2, dilation=1, before=1, after=1, out=3)
    """
    if padding not in PADDINGS or size not in SIZES:
        raise WindowError(f"padding '{padding}' and size '{size}' are no rules")
    _check_whole(dimension, taps, stride, dilation, *pads)
    return _window(dimension, taps, stride, dilation, *pads, padding, size, most)


# Networks repeat few windows, and shapes and steps ask for the same ones.
@lru_cache(1 << 10, typed=True)
def _window(
    dimension: int, taps: int, stride: int, dilation: int, before: int, after: int, padding: str, size: str, most: int
) -> Window:
    rule, counted = PADDINGS[padding], SIZES[size]
    for name, value, low, high in (
        ("size", dimension, 1 - counted.empty, _MOST),
        ("filter dimension", taps, 1, max(most, _MOST)),
        ("stride", stride, 1, most),
        ("dilation", dilation, 1, most),
    ):
        if not low <= value <= high:
            raise WindowError(f"{name} must be {low} to {high}, found {value}")
    reach = (taps - 1) * dilation + 1
    if rule is not None:
        undilated = lacking(dimension, taps, stride)
        before, after = rule(lacking(dimension, reach, stride) if rule.dilated else undilated, undilated)
    low = -_MOST if padding == "explicit_or_cropping" else 0
    high = min(LARGEST, taps - 1) if padding == "explicit_below_taps" else LARGEST
    if before > LARGEST or (rule is None and not low <= min(before, after) <= max(before, after) <= high):
        raise WindowError(f"padded by {before} and {after}, from {low} to at most {high} is possible")
    span = dimension + before + after - reach
    fits = span >= 0 or not counted.fits
    found = Window(dimension, taps, stride, dilation, before, after, counted.count(span, stride) if fits else -1)
    if counted.clipped and found.behind:
        found = Window(dimension, taps, stride, dilation, before, after, found.out - 1)
        if found.behind:
            raise WindowError(f"two windows begin behind {dimension} positions padded by {before}")
    if found.out < counted.least:
        raise WindowError(
            f"a window that reaches over {reach} does not fit {dimension} positions and {before + after} of padding"
        )
    return found


def transposed_window(
    size: int,
    taps: int,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (0, 0),
    more: int = 0,
    padding: str = "explicit",
    wanted: int | None = None,
    least: int = 1,
) -> Window:
    """The window of the convolution that would turn the result of a transposed one into its input of `size`.

    The result is (dimension - 1) * stride + reach + `more` less the pads. ``same_upper`` and ``same_lower`` find the
    pads, for a result of size * stride or of `wanted` positions; windows that leave gaps are not padded.
    Raises WindowError for results of less than `least`, and where `wanted` positions belong to another input.
    """
    rule = PADDINGS[padding]
    _check_whole(size, taps, stride, dilation, *pads, more, wanted or 0)
    if not (0 <= size <= _MOST and all(1 <= value <= _MOST for value in (taps, stride, dilation))):
        raise WindowError(f"{taps} taps {dilation} apart, stride {stride} and {size} positions are out of range")
    full = (size - 1) * stride + (taps - 1) * dilation + 1 + more
    before, after = rule(full - (size * stride if wanted is None else wanted)) if rule else pads
    result = full - before - after if wanted is None else wanted
    if wanted is not None and not 0 <= result + before + after - full < stride:
        raise WindowError(f"{wanted} positions of the result do not belong to {size} of the input")
    if not least <= result <= _MOST:
        raise WindowError(f"{result} positions would be left of the result")
    return Window(result, taps, stride, dilation, before, after, size)


def windows(
    call: Call,
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    padding: str = "explicit",
    size: str = "floor",
    most: int = LARGEST,
) -> tuple[Window, ...]:
    """`window` for every axis; `pads` are all that come before, then all that come after. Empty lists mean 1, 1, 0.

    Raises InvalidModelError for lists of other lengths and where there are no windows.
    """
    count = len(sizes)
    lists = _lists(call, count, taps, strides, dilations, pads)
    return _each(call, [partial(window, e, *one, padding, size, most) for e, one in zip(sizes, lists, strict=True)])


def transposed_windows(
    call: Call,
    dimensions: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    more: Sequence[int] = (),
    padding: str = "explicit",
    wanted: Sequence[int] = (),
    least: int = 1,
) -> tuple[Window, ...]:
    """`transposed_window` for every axis, with lists as `windows` takes them. Raises InvalidModelError."""
    count = len(dimensions)
    lists = _lists(call, count, taps, strides, dilations, pads)
    extra, sizes = more or (0,) * count, wanted or (None,) * count
    _check_length(call, "output_padding", extra, count)
    _check_length(call, "output_shape", sizes, count)
    axes = zip(dimensions, lists, extra, sizes, strict=True)
    return _each(call, [partial(transposed_window, e, *one, more, padding, size, least) for e, one, more, size in axes])


_Axis = tuple[int, int, int, tuple[int, int]]


def _lists(call: Call, count: int, taps: Sequence[int], *others: Sequence[int]) -> list[_Axis]:
    """Taps, stride, dilation and both pads, axis by axis."""
    defaults = (1,) * count, (1,) * count, (0,) * (2 * count)
    strides, dilations, pads = (given or default for given, default in zip(others, defaults, strict=True))
    for name, given in (("kernel", taps), ("strides", strides), ("dilations", dilations), ("pads", pads)):
        _check_length(call, name, given, count)
    return list(zip(taps, strides, dilations, zip(pads[:count], pads[count:], strict=True), strict=True))


def _check_length(call: Call, name: str, given: Sequence[object], axes: int) -> None:
    if len(given) != (2 * axes if name == "pads" else axes):
        raise call.invalid("BT-WINDOW", f"'{name}' has {len(given)} numbers for {axes} axes")


def _each(call: Call, axes: Sequence[Callable[[], Window]]) -> tuple[Window, ...]:
    """What `axes` make, or an error that says of which axis."""
    found = []
    for axis, make in enumerate(axes):
        try:
            found.append(make())
        except WindowError as error:
            name = _NAMES[axis - len(axes)] if len(axes) <= len(_NAMES) else f"axis {axis}"
            raise call.invalid("BT-WINDOW", f"{name}: {error}") from None
    return tuple(found)


def spatial_parameters(found: Sequence[Window]) -> dict[str, Attribute]:
    """The geometry as step parameters: of height and width, and of depth where there are three axes.

    A 1-D tensor is worked on as an image of height 1. Pads are the declared ones; what windows reach beyond them
    (ceil) is for the operator to fill.
    """
    axes = dict(zip(_LETTERS[-len(found) :], found, strict=True))
    axes.setdefault("h", ONE)
    parameters: dict[str, Attribute] = {}
    for letter, one in axes.items():
        before, after = SIDES[letter]
        parameters |= {
            f"filter_{letter}": one.taps,
            f"stride_{letter}": one.stride,
            f"dilation_{letter}": one.dilation,
            before: one.before,
            after: one.after,
            f"out_{letter}": one.out,
        }
    return parameters


def step_windows(step: Step, sizes: Sequence[int]) -> tuple[Window, ...]:
    """Depth, height and width of a step's windows over axes of `sizes`; axes that it has not are of size 1."""
    found = []
    for letter, size in zip(_LETTERS, (1,) * (3 - len(sizes)) + tuple(sizes), strict=True):
        if f"filter_{letter}" not in step.parameters:
            found.append(ONE)
            continue
        before, after = SIDES[letter]
        taps, stride, dilation = (step[f"{what}_{letter}"] for what in ("filter", "stride", "dilation"))
        found.append(Window(size, taps, stride, dilation, step[before], step[after], step[f"out_{letter}"]))
    return tuple(found)


def spatial_shape(found: Sequence[Window]) -> Shape:
    """Numbers of windows, axis by axis."""
    return tuple(one.out for one in found)


def counts(found: Sequence[Window], counted: str = "inside") -> np.ndarray:
    """How many taps of every window count, of shape [windows of every axis] or one that broadcasts to it."""
    return reduce(np.multiply.outer, (one.counts(counted) for one in found))


def tap_count(found: Sequence[Window]) -> int:
    """Taps of one window."""
    return math.prod(one.taps for one in found)


def spatial_bytes(found: Sequence[Window], planes: int, item: int) -> int:
    """Bytes of `planes` padded images with `item` bytes per element."""
    return planes * item * math.prod(max(one.size + one.before + one.after, one.reached) for one in found)


def numbers(call: Call, name: str, count: int, low: int) -> tuple[int, ...]:
    """Attribute `name`: `count` numbers from `low` to the largest one that kernels accept."""
    given = tuple(int(v) for v in call.attribute(name))
    if len(given) != count or any(not low <= v <= LARGEST for v in given):
        raise call.invalid(
            "BT-WINDOW", f"attribute '{name}' is {list(given)[:8]}, expected {count} numbers from {low} to {LARGEST}"
        )
    return given


def meeting(stepped: int, other: int, stride: int, shift: int) -> tuple[slice, slice]:
    """Positions p < `stepped` with 0 <= p * stride + shift < `other`, and where those are; two empty slices for none.

    >>> meeting(4, 5, 2, -1)  # -1, 1, 3, 5
    (slice(1, 3, None), slice(1, 4, 2))
    """
    first = max(0, -(shift // stride))
    last = min(stepped, (other - 1 - shift) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(first * stride + shift, (last - 1) * stride + shift + 1, stride)
