"""What is true of all elements in which two tensors differ, where nothing is known that gives B's bits.

A relation (``B - zp = 2 (A - zp)``) holds for every element. A place or a condition (one channel, exact ties) holds for
every differing element, and is said only where as many elements picked at random would hardly share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log

import numpy as np

Array = np.ndarray
# A property that a share p of all elements has is that of n differing ones by chance once in p^-n times.
_CHANCE = 1e-4
# Factors of values are fractions of numbers up to here, else real numbers.
_LARGEST_TERM = 8
# Values on each side of a factor, and elements, from which it means something.
_LEAST_REACH, _LEAST = 8, 8
# So many places of single elements are told.
_MOST_PLACES = 4
# Shifts of the elements in memory that are looked for.
_SHIFTS = 64


@dataclass(frozen=True, eq=False)
class Sample:
    """One tensor of one run on both sides, of the same type and shape.

    Attributes:
        a, b: the values.
        zero_point: of quantized values; None where there is none, or several.
        low, high: the clamp of quantized values.
        padded: elements whose windows reach into padding; None for operators without windows.
        distance: of the exact value to the nearest tie, 0 to 1/2; None where it is not known.
        channel: the axis of the channels; None where it is not known.
    """

    a: Array
    b: Array
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None
    padded: Array | None = None
    distance: Array | None = None
    channel: int | None = None

    @cached_property
    def differs(self) -> Array:
        """Per element: other bytes."""
        return np.asarray(_bits(self.a) != _bits(self.b))

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """Both without the zero point, s64; only for integers of up to 32 bits."""
        point = self.zero_point or 0
        return self.a.astype(np.int64) - point, self.b.astype(np.int64) - point


def describe(samples: Sequence[Sample], one: str = "A", two: str = "B") -> tuple[str, ...]:
    """Statements that hold for all samples, the strongest first; none where nothing differs.

    Args:
        samples: all runs of one tensor, or of several tensors of which the same is to be said. Relations are those of
            samples that differ; how rare a place or a condition is, all of them tell.
        one, two: what the sides are called.
    """
    known = [sample for sample in samples if sample.a.size]
    if not any(sample.differs.any() for sample in known):
        return ()
    found: list[str] = []
    with np.errstate(all="ignore"):
        relation = next(_relations([sample for sample in known if sample.differs.any()], one, two), "")
        found += [relation] if relation else []
        found += [text for text in (place(known) for place in _PLACES) if text]
        found += [text for text in (condition(known, one, two) for condition in _CONDITIONS) if text]
    return tuple(found)


def _bits(values: Array) -> Array:
    """The bytes of every element as one unsigned number."""
    width = values.dtype.itemsize
    if width not in (1, 2, 4, 8):
        raise TypeError(f"elements of {width} bytes")
    return np.ascontiguousarray(values).view(f"u{width}").reshape(values.shape)


def _differing(samples: Sequence[Sample], of: Callable[[Sample], Array]) -> Array:
    return np.concatenate([of(sample)[sample.differs] for sample in samples])


def _hardly(samples: Sequence[Sample], has: Sequence[Array]) -> bool:
    """Whether all differing elements have a property, and as many picked at random would hardly."""
    differing = sum(int(s.differs.sum()) for s in samples)
    if any((s.differs & ~h).any() for s, h in zip(samples, has, strict=True)):
        return False
    share = sum(int(h.sum()) for h in has) / sum(s.a.size for s in samples)
    return share < 1 and differing * log(share) < log(_CHANCE)


# Relations.


def _relations(samples: Sequence[Sample], one: str, two: str) -> Iterator[str]:
    """The simplest first."""
    wide = samples[0].a.dtype.itemsize > 1
    if wide and all(np.array_equal(_bits(s.a).byteswap(), _bits(s.b)) for s in samples):
        yield f"the bytes of every value of {two} are in the other order"
    integers = samples[0].a.dtype.kind in "iu" and samples[0].a.dtype.itemsize <= 4
    yield from _of_bits(samples, one, two, single=True)
    if integers:
        yield from _sums(samples, one, two)
        yield from _factors(samples, one, two)
    yield from _moved(samples, one, two)
    yield from _of_bits(samples, one, two, single=False)
    if integers:
        yield from _differences(samples, one, two)


def _of_bits(samples: Sequence[Sample], one: str, two: str, single: bool) -> Iterator[str]:
    """The same bits turned over in all differing elements; one bit of one element is damage in memory."""
    turned = np.unique(_differing(samples, lambda s: _bits(s.a) ^ _bits(s.b)))
    count = sum(int(s.differs.sum()) for s in samples)
    mask = int(turned[0])
    # Of few small numbers a bit is turned over in many ways that are no damage.
    if len(turned) > 1 or single != (mask.bit_count() == 1 and (count == 1 or mask > 1)):
        if not single and samples[0].a.dtype.kind == "f":
            yield from _short(samples, one, two, int(np.bitwise_or.reduce(turned)))
        return
    if mask.bit_count() == 1:
        what = f"bit {mask.bit_length() - 1} (0x{mask:02x})"
        yield f"one bit is flipped: {what}" if count == 1 else f"one bit is flipped in every differing element: {what}"
    elif count >= _LEAST:
        yield f"{two} is {one} XOR 0x{mask:02x} in every differing element"


def _short(samples: Sequence[Sample], one: str, two: str, turned: int) -> Iterator[str]:
    """Real numbers that lost their lowest bits."""
    bits = turned.bit_length()
    low = samples[0].a.dtype.type(0).view(f"u{samples[0].a.dtype.itemsize}").dtype.type((1 << bits) - 1)
    if 1 < bits <= 8 * samples[0].a.dtype.itemsize - 9 and all(((_bits(s.b) & low) == 0).all() for s in samples):
        cut = all(np.array_equal(_bits(s.a) & ~low, _bits(s.b)) for s in samples)
        how = f"is {one} with its lowest {bits} bits cut off" if cut else f"has its lowest {bits} bits 0 everywhere"
        yield f"{two} {how}"


def _ends(sample: Sample) -> tuple[int, int]:
    limits = np.iinfo(sample.a.dtype)
    return (
        int(limits.min) if sample.low is None else sample.low,
        int(limits.max) if sample.high is None else sample.high,
    )


def _inside(sample: Sample) -> Array:
    """Elements of which neither side is at an end of the clamp."""
    low, high = _ends(sample)
    return (sample.a > low) & (sample.a < high) & (sample.b > low) & (sample.b < high)


def _sums(samples: Sequence[Sample], one: str, two: str) -> Iterator[str]:
    """B = A + c everywhere, up to the clamp."""
    apart = np.concatenate([(s.centred[1] - s.centred[0])[_inside(s)] for s in samples])
    if apart.size < _LEAST or apart[0] == 0 or (apart != apart[0]).any():
        return
    by = int(apart[0])
    if all(np.array_equal(np.clip(s.a.astype(np.int64) + by, *_ends(s)), s.b) for s in samples):
        clamped = any((~_inside(s)).any() for s in samples)
        yield f"{two} = {one} {'+' if by > 0 else '-'} {abs(by)} everywhere{', up to the clamp' if clamped else ''}"


def _factors(samples: Sequence[Sample], one: str, two: str) -> Iterator[str]:
    """B - zp = k (A - zp) everywhere, to within the rounding of both sides and up to the clamp."""
    if any(s.zero_point is None for s in samples):
        return
    a, b = (np.concatenate([s.centred[k][_inside(s)] for s in samples]) for k in (0, 1))
    if a.size < _LEAST:
        return
    squares = float((a.astype(np.float64) ** 2).sum())
    real = float((a.astype(np.float64) * b).sum()) / squares if squares else 0.0
    reach = int(np.abs(a).max())
    if not reach or reach < _LEAST_REACH or not a.any():
        return
    # Rounded itself, A is up to 1/2 away from the exact value, and so is B.
    candidates = [Fraction(real).limit_denominator(n) for n in range(1, _LARGEST_TERM + 1)]
    chosen = next((k for k in candidates if abs(k.numerator) <= _LARGEST_TERM and _fits(a, b, float(k))), None)
    factor = real if chosen is None else float(chosen)
    if not _fits(a, b, factor) or reach * abs(factor - 1) <= 2 * _slack(factor) or len(np.unique(b)) < 3:
        return
    if not all(_clamped(s, factor) for s in samples):
        return
    exact = chosen is not None and (a * chosen.numerator == b * chosen.denominator).all()
    k = f"{factor:.4g}" if chosen is None else str(chosen)
    left = f"-({one} - zp)" if k == "-1" else f"{k} ({one} - zp)"
    points = {s.zero_point for s in samples}
    text = f"{two} - zp = {left}".replace(" - zp", "") if points == {0} else f"{two} - zp = {left}"
    text = text.replace(f"({one})", one)
    yield f"{text} everywhere{'' if exact else ', to within rounding'}" + (
        f" (zp is the zero point {points.pop()})" if len(points) == 1 and points != {0} else ""
    )


def _slack(factor: float) -> float:
    return (abs(factor) + 1) / 2


def _fits(a: Array, b: Array, factor: float) -> bool:
    return bool((np.abs(b - factor * a) <= _slack(factor) + 1e-9).all())


def _clamped(sample: Sample, factor: float) -> bool:
    """Whether elements at ends of the clamp are there because of the factor."""
    low, high = (end - (sample.zero_point or 0) for end in _ends(sample))
    a, b = sample.centred
    wanted, slack = factor * a, _slack(factor)
    fits = np.abs(b - wanted) <= slack
    fits |= (b == low) & (wanted <= low + slack)
    fits |= (b == high) & (wanted >= high - slack)
    # What A's own clamp has cut off is unknown, but lies on that side.
    fits |= (a == low) & (b * factor <= wanted * factor + slack * abs(factor))
    fits |= (a == high) & (b * factor >= wanted * factor - slack * abs(factor))
    return bool(fits.all())


def _moved(samples: Sequence[Sample], one: str, two: str) -> Iterator[str]:
    """The same values at other places."""
    # Of few different values an order says nothing.
    if all(s.a.size < _LEAST or len(np.unique(_bits(s.a))) < 4 for s in samples):
        return
    shape = samples[0].a.shape
    if all(s.a.ndim == len(shape) for s in samples):
        for axis in range(len(shape)):
            for by in (1, -1, 2, -2):
                told = any(s.a.shape[axis] > 2 * abs(by) for s in samples)
                if told and all(_shifted(_bits(s.a), _bits(s.b), axis, by) for s in samples):
                    much = "index" if abs(by) == 1 else "indices"
                    yield f"{two} is {one} moved by {by:+d} {much} along axis {axis}"
    flat = [(_bits(s.a).reshape(-1), _bits(s.b).reshape(-1)) for s in samples]
    for by in (k * sign for k in range(1, _SHIFTS + 1) for sign in (1, -1)):
        if any(len(a) > _LEAST + abs(by) for a, _ in flat) and all(_shifted(a, b, 0, by) for a, b in flat):
            yield f"{two} is {one} moved by {by:+d} element{'' if abs(by) == 1 else 's'} in memory"
    if all(np.array_equal(a[::-1], b) for a, b in flat):
        yield f"{two} is {one} in reversed order"
    if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in flat):
        axes = [axis for axis in range(len(shape)) if all(_sorted_alike(s, axis) for s in samples)] if shape else []
        where = f", within each index of axis {axes[-1]}" if len(shape) > 1 and axes else ""
        yield f"{two} holds the values of {one} in another order{where}"


def _shifted(a: Array, b: Array, axis: int, by: int) -> bool:
    """Whether b[i] is a[i - by] wherever there is such an element."""
    size = a.shape[axis]
    kept = slice(0, max(size - by, 0)) if by > 0 else slice(-by, size)
    held = slice(by, size) if by > 0 else slice(0, max(size + by, 0))
    source, target = (np.moveaxis(x, axis, 0)[k] for x, k in ((a, kept), (b, held)))
    return bool((source == target).all())


def _sorted_alike(sample: Sample, axis: int) -> bool:
    if sample.a.ndim <= axis or sample.a.shape[axis] < 2:
        return False
    rows = [np.moveaxis(_bits(x), axis, 0).reshape(sample.a.shape[axis], -1) for x in (sample.a, sample.b)]
    return bool((np.sort(rows[0], axis=1) == np.sort(rows[1], axis=1)).all())


def _differences(samples: Sequence[Sample], one: str, two: str) -> Iterator[str]:
    """The one difference, or its sign, where they differ."""
    apart = _differing(samples, lambda s: s.b.astype(np.int64) - s.a.astype(np.int64))
    held = np.unique(_differing(samples, lambda s: s.b))
    if len(held) == 1 and apart.size >= _LEAST and len(np.unique(apart)) > 1:
        yield f"{two} holds {held[0]} wherever they differ"
    if (apart == apart[0]).all():
        by = int(apart[0])
        yield f"{two} = {one} {'+' if by > 0 else '-'} {abs(by)} wherever they differ"
    elif apart.size * log(0.5) < log(_CHANCE) and ((apart > 0).all() or (apart < 0).all()):
        yield f"{two} is always the {'larger' if apart[0] > 0 else 'smaller'} one"
    elif apart.size >= _LEAST and (apart % 2 == 0).all():
        step = int(np.gcd.reduce(apart))
        yield f"every difference is a multiple of {step}"


# Places.


def _few(samples: Sequence[Sample]) -> str:
    """Single elements."""
    places = [tuple(int(i) for i in index) for s in samples for index in np.argwhere(s.differs)[: _MOST_PLACES + 1]]
    if len(places) > _MOST_PLACES or len(samples) > 1 or samples[0].a.size <= _MOST_PLACES or places == [()]:
        return ""
    return f"at {' and '.join(str(list(place)) for place in places)}"


def _axis(samples: Sequence[Sample]) -> str:
    """Few indices of an axis: of the one that says most."""
    shape = samples[0].a.shape
    if any(s.a.ndim != len(shape) for s in samples):
        return ""
    best: tuple[float, str] | None = None
    for axis in range(len(shape)):
        text = ""
        for indices, words in _indices(samples, axis):
            has = [_at(s.a.shape, axis, indices(s.a.shape[axis])) for s in samples]
            if _hardly(samples, has):
                share = sum(int(h.sum()) for h in has) / sum(s.a.size for s in samples)
                whole = all(s.differs[h].all() for s, h in zip(samples, has, strict=True))
                name = "the channel axis" if samples[0].channel == axis else f"axis {axis}"
                text = f"all at {words} of {name}" + (", and every element there" if whole else "")
                if best is None or share < best[0]:
                    best = share, text
                break
    return "" if best is None else best[1]


def _indices(samples: Sequence[Sample], axis: int) -> Iterator[tuple[Callable[[int], Array], str]]:
    """Sets of indices of an axis that hold all differing elements, the smallest first; given the dimension."""
    found = [np.flatnonzero(np.moveaxis(s.differs, axis, 0).reshape(s.a.shape[axis], -1).any(axis=1)) for s in samples]
    every = np.unique(np.concatenate(found))
    sizes = {s.a.shape[axis] for s in samples}
    if not every.size or sizes == {1}:
        return
    low, high = int(every[0]), int(every[-1])
    if all(f.size == 0 or (f.size == 1 and f[0] == n - 1) for f, n in zip(found, _sizes(samples, axis), strict=True)):
        exact = f"index {low}, the last," if len(sizes) == 1 else "the last index"
        yield lambda n: np.array([n - 1]), exact
    if low == high:
        yield lambda n: np.array([low]), f"index {low}"
        return
    steps = np.unique(np.diff(every))
    if every.size > 2 and len(steps) == 1 and steps[0] > 1:
        step = int(steps[0])
        yield lambda n: np.arange(low, n, step), f"every {_ordinal(step)} index from {low} on"
    if every.size <= 4 and len(sizes) == 1 and (every.size == 2 or steps.max() > 1):
        words = ", ".join(str(int(i)) for i in every[:-1]) + f" and {high}"
        yield lambda n: every, f"indices {words}"
    if len(sizes) == 1:
        (size,) = sizes
        words = f"indices from {low} on" if high == size - 1 else f"indices {low} to {high}"
        yield lambda n: np.arange(low, high + 1), words


def _sizes(samples: Sequence[Sample], axis: int) -> list[int]:
    return [s.a.shape[axis] for s in samples]


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def _at(shape: tuple[int, ...], axis: int, indices: Array) -> Array:
    found = np.zeros(shape, bool)
    np.moveaxis(found, axis, 0)[indices[indices < shape[axis]]] = True
    return found


def _border(samples: Sequence[Sample]) -> str:
    """Where windows reach into the padding, or where none does."""
    if any(s.padded is None for s in samples):
        return ""
    padded = [np.asarray(s.padded) for s in samples]
    if _hardly(samples, padded):
        return "all where the window reaches into the padding"
    if _hardly(samples, [~p for p in padded]):
        return "all where the window lies inside the input, none where it reaches into the padding"
    return ""


def _tail(samples: Sequence[Sample]) -> str:
    """A part of memory that ends or begins somewhere."""
    if len(samples) > 1 or _axis(samples):
        return ""
    places = np.flatnonzero(samples[0].differs.reshape(-1))
    size = samples[0].a.size
    first, last = int(places[0]), int(places[-1])
    numbers = np.arange(size).reshape(samples[0].a.shape)
    if first and _hardly(samples, [numbers >= first]):
        return f"all from element {first} of {size} on (in memory order)"
    if last < size - 1 and _hardly(samples, [numbers <= last]):
        return f"all up to element {last} of {size} (in memory order)"
    return ""


_PLACES: tuple[Callable[[Sequence[Sample]], str], ...] = (_few, _axis, _border, _tail)


# Conditions.


def _ties(samples: Sequence[Sample], one: str, two: str) -> str:
    """At exact ties, or close to them."""
    if any(s.distance is None for s in samples):
        return ""
    distances = [np.asarray(s.distance) for s in samples]
    exact = [d == 0 for d in distances]
    if _hardly(samples, exact):
        sign = _signs(samples)
        own = [e & p for e, p in zip(exact, (_sign(s, sign) for s in samples), strict=True)] if sign else exact
        every = all(s.differs[e].all() for s, e in zip(samples, own, strict=True))
        return f"all at exact ties{f' of {sign} values' if sign else ''}" + (", and at every such tie" if every else "")
    largest = max(float(d[s.differs].max(initial=0)) for s, d in zip(samples, distances, strict=True))
    if largest < 0.1 and _hardly(samples, [d <= largest for d in distances]):
        return f"all within {largest:.3g} of a tie"
    return ""


def _sign(sample: Sample, sign: str) -> Array:
    a = sample.a if sample.a.dtype.kind == "f" else sample.centred[0]
    return a <= 0 if sign == "negative" else a >= 0


def _signs(samples: Sequence[Sample]) -> str:
    """Whether all differing elements are on one side of the zero point; 0 itself is on both."""
    if samples[0].a.dtype.kind not in "iuf" or samples[0].a.dtype.itemsize > 4:
        return ""
    if samples[0].a.dtype.kind != "f" and any(s.zero_point is None for s in samples):
        return ""
    for sign in ("negative", "positive"):
        if _hardly(samples, [_sign(s, sign) for s in samples]):
            return sign
    return ""


def _one_sign(samples: Sequence[Sample], one: str, two: str) -> str:
    if _ties(samples, one, two):
        return ""
    sign = _signs(samples)
    side = {"negative": "at or below", "positive": "at or above"}.get(sign, "")
    if not sign:
        return ""
    return f"all where {one} is {side} {'zero' if samples[0].a.dtype.kind == 'f' else 'the zero point'}"


def _saturated(samples: Sequence[Sample], one: str, two: str) -> str:
    """At an end of the clamp on one of the sides."""
    if samples[0].a.dtype.kind not in "iu":
        return ""
    for name, which in ((one, 0), (two, 1)):
        values = [(s.a, s.b)[which] for s in samples]
        for end, word in ((0, "lower"), (1, "upper")):
            if _hardly(samples, [v == _ends(s)[end] for v, s in zip(values, samples, strict=True)]):
                return f"all where {name} is at the {word} end of its range"
        both = [(v == _ends(s)[0]) | (v == _ends(s)[1]) for v, s in zip(values, samples, strict=True)]
        if _hardly(samples, both):
            return f"all where {name} is at an end of its range"
    return ""


def _magnitude(samples: Sequence[Sample], one: str, two: str) -> str:
    """Beyond some magnitude."""
    if _saturated(samples, one, two) or any(s.zero_point is None for s in samples):
        return ""
    sizes = [np.abs(s.centred[0]) for s in samples]
    least = min(int(v[s.differs].min(initial=1 << 40)) for s, v in zip(samples, sizes, strict=True))
    if least > 1 and _hardly(samples, [v >= least for v in sizes]):
        every = all(s.differs[v >= least].all() for s, v in zip(samples, sizes, strict=True))
        size = f"|{one}|" if {s.zero_point for s in samples} == {0} else f"|{one} - zp|"
        return f"all where {size} is {least} or more" + (", and wherever it is" if every else "")
    return ""


def _parity(samples: Sequence[Sample], one: str, two: str) -> str:
    """Odd or even values."""
    if samples[0].a.dtype.kind not in "iu" or _ties(samples, one, two):
        return ""
    for rest, word in ((0, "even"), (1, "odd")):
        if _hardly(samples, [(s.a.astype(np.int64) - (s.zero_point or 0)) % 2 == rest for s in samples]):
            less = "" if not any(s.zero_point for s in samples) else " - zp"
            return f"all where {one}{less} is {word}"
    return ""


_CONDITIONS: tuple[Callable[[Sequence[Sample], str, str], str], ...] = (
    _ties,
    _one_sign,
    _saturated,
    _magnitude,
    _parity,
)
