"""Which tensors of two recordings stand for the same thing.

Names decide within one model. Across formats names are only a hint: quantization parameters, shapes up to the order of
axes and the order of execution propose, and the values judge. What stays ambiguous stays without a partner.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product

import numpy as np

from ..errors import InputError
from ..graph import data_type
from ..names import did_you_mean
from ..runners.recording import Recorded, Recording
from .alignment import Layout, Meaning, layouts, meaning, real_sample, sample

# Root mean square of the difference over the standard deviation: what counts as the same tensor computed by another
# arithmetic, and by how much the runner-up must be worse. This judges identity of tensors, never equality of values.
_SAME = 0.35
_DOUBTFUL = 0.9
_RUNNER_UP = 2.0
# Roundings leave some of so many elements equal; fewer integers are sizes or indices.
_MANY = 16
# Pairs of tensors of one size that are tried, and how far apart two may stand in the order where there are more.
_MOST_CANDIDATES = 20_000
_WINDOW = 32
_SUFFIX = re.compile(
    r"(:\d+|__\d+|_(de|pre)?quant(ized|ize)?|_(De)?[qQ]uantizeLinear(_Output|_Input)?|_output_\d+|_raw_output|/(De)?QuantizeLinear)$"
)


@dataclass(frozen=True)
class Match:
    """Two tensors that stand for the same thing.

    Attributes:
        a, b: as recorded.
        layout: how B's axes become A's.
        meaning: how B's stored values become comparable with A's.
        how: why they were matched.
    """

    a: Recorded
    b: Recorded
    layout: Layout
    meaning: Meaning
    how: str


@dataclass
class _Side:
    """Tensors of one side by name, and sampled values."""

    tensors: dict[str, Recorded]
    samples: dict[tuple[str, Layout], np.ndarray] = field(default_factory=dict)

    def sample(self, name: str, layout: Layout) -> np.ndarray:
        key = name, layout
        if key not in self.samples:
            self.samples[key] = real_sample(self.tensors[name], layout, sample(layout.shape))
        return self.samples[key]

    @cached_property
    def position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.tensors)}


def match(
    a: Recording,
    b: Recording,
    same_names: bool,
    given: Iterable[tuple[str, str]] = (),
    ports: Iterable[tuple[str, str]] = (),
) -> list[Match]:
    """Matched tensors, in A's execution order.

    Args:
        a, b: recordings of the same inputs.
        same_names: whether a name means the same on both sides (two runs of one model); otherwise values must agree
            wherever more than one tensor fits.
        given: names of A and of B that the user says belong together.
        ports: inputs that were fed with the same numbers.

    Raises:
        InputError: a given name does not exist, occurs twice, or the two tensors hold different numbers of values.
    """
    sides = _Side({t.name: t for t in a}), _Side({t.name: t for t in b})
    found = _Found(sides)
    for one, two in given:
        found.put(_given(sides, found, one, two))
    for one, two in ports:
        found.put(_fit(sides, one, two, "name" if one == two else "order and shape", trusted=True))
    for name in sides[0].tensors:
        if name in sides[1].tensors:
            known = sides[0].tensors[name].quantization is not None
            trusted = same_names or (known and _same_parameters(sides[0].tensors[name], sides[1].tensors[name]))
            found.put(_fit(sides, name, name, "name", trusted))
    if len(a.outputs) == len(b.outputs) == 1 and {*a.outputs} <= {*sides[0].tensors} and b.outputs[0] in b:
        found.put(_fit(sides, a.outputs[0], b.outputs[0], "order and shape", trusted=True))
    if not same_names or len(found.pairs) < min(len(sides[0].tensors), len(sides[1].tensors)):
        for alike in (True, False):
            _by_stem(found, alike)
            _by_values(found, alike)
        _by_order(found)
    return [found.pairs[name] for name in sides[0].tensors if name in found.pairs]


def stem(name: str) -> str:
    """A name without what converters put behind it.

    >>> stem("model/conv/BiasAdd1_prequant__73_DequantizeLinear__235:0")
    'model/conv/BiasAdd1'
    """
    while True:
        shorter = _SUFFIX.sub("", name)
        if shorter in (name, ""):
            return name
        name = shorter


def read_pairs(text: str, place: str) -> list[tuple[str, str]]:
    """Pairs of names from a file: two columns, apart by a tab or by spaces; ``#`` starts a comment line."""
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        columns = [c.strip() for c in line.split("\t") if c.strip()] if "\t" in line else line.split()
        if len(columns) != 2:
            raise InputError(
                "BT-MATCH-FILE",
                f"expected two names, found {len(columns)}",
                place=f"{place} line {number}",
                advice="separate names that hold spaces by a tab",
            )
        pairs.append((columns[0], columns[1]))
    return pairs


class _Found:
    """Pairs found up to now; every tensor has one partner at most."""

    def __init__(self, sides: tuple[_Side, _Side]) -> None:
        self.sides = sides
        self.pairs: dict[str, Match] = {}
        self.taken: set[str] = set()

    def put(self, pair: Match | None) -> None:
        """Keep a pair, unless one of the two has a partner."""
        if pair is not None and pair.a.name not in self.pairs and pair.b.name not in self.taken:
            self.pairs[pair.a.name] = pair
            self.taken.add(pair.b.name)

    def left(self) -> tuple[list[str], list[str]]:
        """Names without a partner."""
        return (
            [name for name in self.sides[0].tensors if name not in self.pairs],
            [name for name in self.sides[1].tensors if name not in self.taken],
        )


def _same_parameters(a: Recorded, b: Recorded) -> bool:
    """Same type, and the same scale and zero point as far as both are known."""
    one, two = a.quantization, b.quantization
    return a.dtype == b.dtype and (one is None or two is None or one.same_as(two))


def _given(sides: tuple[_Side, _Side], found: _Found, one: str, two: str) -> Match:
    for label, side, name in zip("AB", sides, (one, two), strict=True):
        if name not in side.tensors:
            advice = did_you_mean(name, side.tensors, "--tensors lists all")
            raise InputError("BT-MATCH", f"{label} shows no tensor '{name}'", place=f"{one}={two}", advice=advice)
    if one in found.pairs or two in found.taken:
        raise InputError("BT-MATCH", "one of the two is matched twice", place=f"{one}={two}")
    pair = _fit(sides, one, two, "given", trusted=True)
    if pair is None:
        shapes = [list(side.tensors[name].shape) for side, name in zip(sides, (one, two), strict=True)]
        raise InputError("BT-MATCH", f"shapes {shapes[0]} and {shapes[1]} do not fit", place=f"{one}={two}")
    return pair


def _fit(sides: tuple[_Side, _Side], one: str, two: str, how: str, trusted: bool) -> Match | None:
    """The pair with the layout that the values prefer. Of trusted pairs the likeliest layout stays where values do not
    tell; others are refused when the values contradict.
    """
    a, b = sides[0].tensors[one], sides[1].tensors[two]
    ways = _ways(a.shape, b.shape)
    if not ways:
        return None
    how_to = meaning(a, b)
    if how_to.problem and not trusted:
        return None
    if trusted and len(ways) == 1:
        return Match(a, b, ways[0], how_to, how)
    scores = [_apart(sides, one, two, layout) for layout in ways]
    best = int(np.argmin(scores))
    # The first way is the plain one: only clear evidence speaks against it.
    if best and not (scores[best] <= _SAME and scores[best] * _RUNNER_UP < scores[0]):
        best = 0
    # A name without evidence against it stands.
    if not trusted and scores[best] > _DOUBTFUL and (how != "name" or math.isfinite(scores[best])):
        return None
    return Match(a, b, ways[best], how_to, how)


def _apart(sides: tuple[_Side, _Side], one: str, two: str, layout: Layout) -> float:
    """How far apart the values are: root mean square of the difference over the standard deviation of A's. Where the
    real numbers of one side are not known, after the best scale and shift. Infinite where there is no evidence.
    """
    x = sides[0].sample(one, Layout(layout.shape))
    y = sides[1].sample(two, layout)
    known = all(_is_real(side.tensors[name]) for side, name in zip(sides, (one, two), strict=True))
    return apart(x, y, known or _same_kind(sides, one, two))


def _is_real(tensor: Recorded) -> bool:
    return data_type(tensor.dtype).is_float or (tensor.quantization is not None and not tensor.quantization.per_axis)


def _same_kind(sides: tuple[_Side, _Side], one: str, two: str) -> bool:
    a, b = sides[0].tensors[one], sides[1].tensors[two]
    return a.dtype == b.dtype and (a.quantization is None) == (b.quantization is None)


def apart(x: np.ndarray, y: np.ndarray, real: bool) -> float:
    """Distance of two samples: 0 for equal ones, about 1.4 for unrelated ones, infinite for constant ones."""
    with np.errstate(all="ignore"):
        good = np.isfinite(x) & np.isfinite(y)
        if good.sum() < 0.5 * x.size or not good.any():
            return math.inf
        x, y = x[good], y[good]
        spread, other = float(x.std()), float(y.std())
        if not spread or not other:
            return math.inf
        if not real:
            x, y = (x - x.mean()) / spread, (y - y.mean()) / other
            spread = other = 1.0
        return float(np.sqrt(np.mean((x - y) ** 2)) / max(spread, other))


def _by_stem(found: _Found, alike: bool) -> None:
    """Names that are equal without what converters put behind them, where values agree."""
    stems: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for names, by_stem in zip(found.left(), stems, strict=True):
        for name in names:
            by_stem.setdefault(stem(name), []).append(name)
    for key, names in stems[0].items():
        _settle(found, names, stems[1].get(key, ()), "name", alike)


def _by_values(found: _Found, alike: bool) -> None:
    """Tensors without a name in common: those of one size compete."""
    groups: dict[int, tuple[list[str], list[str]]] = {}
    for place, (side, names) in enumerate(zip(found.sides, found.left(), strict=True)):
        for name in names:
            size = math.prod(side.tensors[name].shape)
            if size > 1:
                groups.setdefault(size, ([], []))[place].append(name)
    for ours, theirs in groups.values():
        _settle(found, ours, theirs, "values", alike)


def _settle(found: _Found, ours: Sequence[str], theirs: Sequence[str], how: str, alike: bool) -> None:
    """Pairs among candidates: the values of a pair agree, and nothing else agrees nearly as well. Tensors that hold the
    same values (a reshape and its input) are paired by shape and order of execution.

    `alike` asks for equal types, up to the sign of 8-bit ones: quantized values go before their real numbers.
    """
    good: dict[tuple[str, str], tuple[float, Match]] = {}
    for one, two in _candidates(ours, theirs):
        types = found.sides[0].tensors[one].dtype, found.sides[1].tensors[two].dtype
        if alike and types[0] != types[1] and {*types} != {"u8", "s8"}:
            continue
        if how == "values" and _are_others(found.sides, one, two):
            continue
        pair = _fit(found.sides, one, two, how, trusted=False)
        score = math.inf if pair is None else _apart(found.sides, one, two, pair.layout)
        if pair is not None and score <= _SAME:
            good[one, two] = score, pair
    of_ours: dict[str, list[tuple[str, str]]] = {}
    of_theirs: dict[str, list[tuple[str, str]]] = {}
    for one, two in good:
        of_ours.setdefault(one, []).append((one, two))
        of_theirs.setdefault(two, []).append((one, two))
    ambiguous: set[str] = set()
    for one, two in sorted(good, key=lambda key: (good[key][0], *_unlike(found.sides, *key))):
        if one in ambiguous or one in found.pairs or two in found.taken:
            continue
        score = good[one, two][0]
        others = {*of_ours[one], *of_theirs[two]} - {(one, two)}
        rivals = [good[key][0] for key in others if not _same(found, good, (one, two), key)]
        if min(rivals, default=math.inf) < max(score * _RUNNER_UP, 1e-9):
            ambiguous.add(one)
        else:
            found.put(good[one, two][1])


def _are_others(sides: tuple[_Side, _Side], one: str, two: str) -> bool:
    """Whether values of one type show, however they are laid out, that these are two tensors: many real numbers of
    which none are equal (one is the other before something was added to it), or few 64-bit integers, as sizes and
    indices are, of which not all are equal.
    """
    a, b = sides[0].tensors[one], sides[1].tensors[two]
    if a.dtype != b.dtype:
        return False
    many, is_float = math.prod(a.shape) >= _MANY, data_type(a.dtype).is_float
    if not (many if is_float else a.dtype == "s64" and not many):
        return False
    agree = np.any if is_float else np.all
    return not any(
        agree(sides[0].sample(one, Layout(way.shape)) == sides[1].sample(two, way)) for way in _ways(a.shape, b.shape)
    )


@cache
def _ways(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Layout, ...]:
    return tuple(layouts(a, b))


def _candidates(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every pair; of very many those that stand at about the same place in the order of execution."""
    if len(ours) * len(theirs) <= _MOST_CANDIDATES:
        yield from product(ours, theirs)
        return
    for position, one in enumerate(ours):
        middle = position * len(theirs) // len(ours)
        for two in theirs[max(middle - _WINDOW, 0) : middle + _WINDOW]:
            yield one, two


def _same(
    found: _Found, good: Mapping[tuple[str, str], tuple[float, Match]], key: tuple[str, str], other: tuple[str, str]
) -> bool:
    """Whether the tensors in which two pairs differ hold the same numbers, so that either would do."""
    place = 0 if key[1] == other[1] else 1
    one, two = (
        found.sides[place].sample(k[place], good[k][1].layout if place else Layout(good[k][1].layout.shape))
        for k in (key, other)
    )
    return bool(np.array_equal(one, two))


def _unlike(sides: tuple[_Side, _Side], one: str, two: str) -> tuple[float, ...]:
    """Tells pairs of equal values apart: another rank, the distance in the order of execution."""
    a, b = sides[0].tensors[one], sides[1].tensors[two]
    places = (side.position[name] / len(side.tensors) for side, name in zip(sides, (one, two), strict=True))
    first, second = places
    return float(len(a.shape) != len(b.shape)), abs(first - second)


def _by_order(found: _Found) -> None:
    """What values do not settle: tensors of one size, type, scale and zero point of which either side has just one
    left, and whose neighbours in the order of execution do not speak against it.
    """
    sides = found.sides
    left = tuple(
        [name for name in names if _is_real(side.tensors[name]) and side.tensors[name].quantization is not None]
        for side, names in zip(sides, found.left(), strict=True)
    )
    for one in left[0]:
        a = sides[0].tensors[one]
        fits = [
            two
            for two in left[1]
            if _same_parameters(a, sides[1].tensors[two]) and _same_size(a, sides[1].tensors[two])
        ]
        rivals = [
            o
            for o in left[0]
            if fits and _same_parameters(sides[0].tensors[o], a) and _same_size(sides[0].tensors[o], a)
        ]
        if len(fits) == len(rivals) == 1 and _in_order(found, one, fits[0]):
            found.put(_fit(sides, one, fits[0], "order and shape", trusted=True))


def _same_size(a: Recorded, b: Recorded) -> bool:
    return math.prod(a.shape) == math.prod(b.shape)


def _in_order(found: _Found, one: str, two: str) -> bool:
    """Whether the nearest matched tensors before and behind `one` stand before and behind `two`, too."""
    first, second = (side.position for side in found.sides)
    partners = sorted((first[name], second[pair.b.name]) for name, pair in found.pairs.items())
    before = [b for a, b in partners if a < first[one]]
    behind = [b for a, b in partners if a > first[one]]
    return (not before or before[-1] < second[two]) and (not behind or second[two] < behind[0])
