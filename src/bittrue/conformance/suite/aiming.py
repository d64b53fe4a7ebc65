"""Chooses accumulators that tell rescaling rules apart: ties, neighbours of ties, places where two roundings part.

A rescaling takes an accumulator to an integer: acc * first * second / output, rounded. `answers` computes it in every
way that a rule of bittrue or a near miss would; `choose` picks, for every channel, the accumulators on which most
ways that are still alike part. Everything is integers and binary64, so choices are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...rules import rescale, scale_form

Array = np.ndarray
FORMS = ("binary64", "binary32_product", "binary32", "binary32_quotient_first")
TIES = ("even", "away", "up", "down", "trunc", "floor", "ceiling")
_FAR = 1 << 40


@dataclass(frozen=True, eq=False)
class Rescaling:
    """Where accumulators go.

    Attributes:
        first: binary32 scale of the input.
        second: binary32 scales per channel (of the weights; 1 where there are none).
        output: binary32 scale of the output.
        zero_point: of the output.
        low, high: ends of the output's clamp, as quantized values.
        base: the rule of slot `rescale` that near misses start from.
        wide: accumulators have more than 32 bits.
        further: other ways, from accumulators to rescaled values without the zero point.
    """

    first: float
    second: Array
    output: float
    zero_point: int = 0
    low: int = -128
    high: int = 127
    base: str = "q31_two_step_up_away"
    wide: bool = False
    further: Callable[[Array], Mapping[str, Array]] | None = None

    @property
    def real(self) -> Array:
        """first * second / output per channel, in binary64."""
        return scale_form.form("binary64", self.first, self.second, self.output)


def answers(to: Rescaling, acc: Array) -> dict[str, Array]:
    """Quantized values per way: `acc` is s64 [..., channels], and so is every answer, clamped.

    A way that a channel's multiplier is outside of gives the base rule's answer there.
    """
    acc = np.asarray(acc, np.int64)
    base = _by_rule(to.base, to.real, acc, None)
    assert base is not None
    found: dict[str, Array] = {"base": base}
    seen: list[Array] = []
    for form in FORMS:
        real = scale_form.form(form, to.first, to.second, to.output)
        if any(np.array_equal(real, other) for other in seen):
            continue
        seen.append(real)
        for name, rule in rescale.RULES.items():
            if rule.signed or (to.wide and rule.largest_exponent >= 30 and "q31" in name and name != to.base):
                continue
            value = _by_rule(name, real, acc, base)
            if value is None:
                continue
            if rule.integral:
                found[f"{form} {name}"] = value
            else:
                found.update({f"{form} {name} {tie}": rounded(value, tie) for tie in TIES[:4]})
    found.update(_products(to, acc))
    if not to.wide:
        found.update(_two_steps(to, acc))
    found.update(_multipliers(to, acc, base))
    found.update(_registers(to, acc))
    if to.further is not None:
        found.update(to.further(acc))
    # The zero point behind the clamp, where it cannot overflow.
    point, low, high = to.zero_point, to.low - to.zero_point, to.high - to.zero_point
    return {name: np.minimum(np.maximum(value, low), high) + point for name, value in found.items()}


def _by_rule(name: str, real: Array, acc: Array, base: Array | None) -> Array | None:
    """One rule; where it refuses a channel's multiplier, `base`."""
    try:
        with np.errstate(all="ignore"):
            return rescale.apply(name, acc, rescale.prepare(name, real))
    except ValueError:
        if base is None:
            raise
    kept = np.array([_takes(name, value) for value in real.reshape(-1)]).reshape(real.shape)
    if not kept.any():
        return None
    safe = np.where(kept, real, real[kept][0])
    with np.errstate(all="ignore"):
        return np.where(kept, rescale.apply(name, acc, rescale.prepare(name, safe)), base)


def _takes(name: str, real: float) -> bool:
    try:
        rescale.prepare(name, real)
    except ValueError:
        return False
    return True


def rounded(value: Array, tie: str) -> Array:
    """Real numbers to integers; int64 stays."""
    value = np.asarray(value, np.float64)
    whole = np.trunc(value)
    below = np.floor(value)
    part = value - below
    way: dict[str, Callable[[], Array]] = {
        "even": lambda: np.rint(value),
        "away": lambda: whole + np.sign(value) * (np.abs(value - whole) >= 0.5),
        "up": lambda: below + (part >= 0.5),
        "down": lambda: below + (part > 0.5),
        "trunc": lambda: whole,
        "floor": lambda: below,
        "ceiling": lambda: np.ceil(value),
    }
    return np.asarray(np.clip(way[tie](), -_FAR, _FAR)).astype(np.int64)


def divide(value: Array, right: Array, tie: str) -> Array:
    """value / 2^right rounded; a right shift below 0 is a left shift. |value| < 2^62, right < 62."""
    left = np.minimum(np.maximum(-right, 0), 62)
    right = np.minimum(np.maximum(right, 0), 62)
    value = np.left_shift(value, left)
    floor = value >> right
    rest = value - np.left_shift(floor, right)
    half = np.left_shift(np.int64(1), np.maximum(right, 1) - 1)
    return floor + _carry(floor, rest, np.where(right > 0, half, 1 << 62), rest != 0, tie)


def _carry(floor: Array, rest: Array, half: Array, inexact: Array, tie: str) -> Array:
    """Whether what is left over the floor counts as one more."""
    if tie == "even":
        return (rest > half) | ((rest == half) & (floor % 2 == 1))
    if tie == "away":
        return (rest > half) | ((rest == half) & (floor >= 0))
    if tie == "up":
        return np.asarray(rest >= half)
    if tie == "down":
        return np.asarray(rest > half)
    if tie == "trunc":
        return inexact & (floor < 0)
    return inexact if tie == "ceiling" else np.zeros_like(inexact)


def _fixed(real: Array, bits: int) -> tuple[Array, Array]:
    """Multipliers of so many bits, and their exponents: M * 2^(e - bits)."""
    fraction, exponent = np.frexp(real)
    return np.floor(np.ldexp(fraction, bits) + 0.5).astype(np.int64), exponent.astype(np.int64)


def _products(to: Rescaling, acc: Array) -> Iterator[tuple[str, Array]]:
    """Every tie of the product in several precisions, and with the zero point added before rounding."""
    point = to.zero_point
    for bits in (8, 15, 16) if to.wide else (8, 15, 16, 24, 31):
        multiplier, exponent = _fixed(to.real, bits)
        right = bits - exponent
        product = acc * multiplier
        for tie in TIES:
            yield f"{bits} bits {tie}", divide(product, right, tie)
            if point and tie in ("even", "away", "trunc") and (right > 0).all() and (right < 45).all():
                moved = divide(product + np.left_shift(np.int64(point), right), right, tie) - point
                yield f"{bits} bits {tie} behind the zero point", moved
    for name, product in (
        ("binary64", acc.astype(np.float64) * to.real),
        ("binary32", acc.astype(np.float32) * to.real.astype(np.float32)),
    ):
        for tie in TIES:
            yield f"{name} {tie}", rounded(product, tie)
            if point and tie in ("even", "away", "trunc"):
                yield f"{name} {tie} behind the zero point", rounded(product + product.dtype.type(point), tie) - point
    ratios = [Fraction(float(to.first)) * Fraction(float(s)) / Fraction(float(to.output)) for s in to.second]
    top = np.array([r.numerator for r in ratios], object)
    bottom = np.array([r.denominator for r in ratios], object)
    twice = acc.astype(object) * top * 2
    floor = twice // (bottom * 2)
    rest = twice - floor * (bottom * 2)
    whole = np.clip(floor, -_FAR, _FAR).astype(np.int64)
    beside = (rest > bottom).astype(np.int64) + (rest >= bottom)
    for tie in TIES:
        yield f"exact {tie}", whole + _carry(whole, beside, np.ones_like(beside), (rest != 0).astype(bool), tie)


def _two_steps(to: Rescaling, acc: Array) -> Iterator[tuple[str, Array]]:
    """Every pair of ties of the doubling high product and the power of two."""
    multiplier, exponent = _fixed(to.real, 31)
    product = np.left_shift(acc, np.clip(exponent, 0, 30)) * multiplier
    for one in TIES:
        high = divide(product, np.int64(31) + 0 * exponent, one)
        for two in TIES:
            yield f"{one} then {two}", divide(high, np.maximum(-exponent, 0), two)


def _multipliers(to: Rescaling, acc: Array, base: Array) -> Iterator[tuple[str, Array]]:
    """The base rule with neighbouring multipliers."""
    fraction, exponent = np.frexp(to.real)
    for bits in (8, 15, 16, 23, 24, 31):
        steps = np.ldexp(fraction, bits)
        for name, kept in (("cut", np.trunc(steps)), ("rounded", np.floor(steps + 0.5))):
            value = _by_rule(to.base, np.ldexp(kept, exponent - bits), acc, base)
            if value is not None:
                yield f"multiplier {name} to {bits} bits", value
    for by in (1, -1):
        value = _by_rule(to.base, to.real + by * np.ldexp(1.0, exponent - 31), acc, base)
        if value is not None:
            yield f"multiplier {by:+d}", value


def _registers(to: Rescaling, acc: Array) -> Iterator[tuple[str, Array]]:
    """The base rule on accumulators that lost something."""
    changed: dict[str, Array] = {}
    for bits in (16, 18, 20, 24, 28):
        half = 1 << (bits - 1)
        changed[f"wraps at {bits} bits"] = ((acc + half) & (2 * half - 1)) - half
        changed[f"saturates at {bits} bits"] = np.clip(acc, -half, half - 1)
    changed["binary32"] = acc.astype(np.float32).astype(np.int64)
    for bits in range(1, 9):
        changed[f"without {bits} bits"] = (acc >> bits) << bits
        changed[f"without {bits} bits toward zero"] = np.sign(acc) * ((np.abs(acc) >> bits) << bits)
    for by in (1, -1):
        changed[f"{by:+d}"] = acc + by
    prepared = rescale.prepare(to.base, to.real)
    with np.errstate(all="ignore"):
        for name, value in changed.items():
            yield f"accumulator {name}", rescale.apply(to.base, value, prepared)


def candidates(to: Rescaling, count: int, steps: Array, limit: int, random: np.random.Generator) -> Array:
    """Accumulators [count, channels] from which `steps` lead across a tie, or beside one.

    Args:
        to: where they go.
        count: how many per channel.
        steps: offsets of the elements that share a channel's candidate.
        limit: no accumulator may lie beyond it on either side.
        random: draws quantized values and places.
    """
    channels = len(to.second)
    quantized = random.integers(to.low - to.zero_point, to.high - to.zero_point + 1, (count, channels))
    # Ties, and the places around them, near and far; a few quantized values beyond both ends.
    tie = np.round((quantized + 0.5) / to.real)
    place = random.integers(0, len(steps), (count, channels))
    beside = random.integers(-1, 2, (count, channels)) * random.integers(0, 3, (count, channels))
    reach = int(np.abs(steps).max()) + 4
    # Where ties lie too far off, what is there: products below one half, and large accumulators.
    far = random.integers(-limit + reach, limit - reach + 1, (count, channels))
    near = np.where(np.abs(tie) < limit - reach, tie, far.astype(np.float64)).astype(np.int64)
    within = np.minimum(2.0**30 / to.real, 2.0**46).astype(np.int64)
    largest = np.minimum(limit, within if to.wide else np.minimum(within, _left_limit(to.real))) - reach
    return np.clip(near - steps[place] + beside, -largest, largest)


def _left_limit(real: Array) -> Array:
    """Accumulators that a left shift does not push out of 32 bits."""
    exponent = np.frexp(real)[1].astype(np.int64)
    return np.right_shift(np.int64(2**31 - 1), np.clip(exponent + 1, 0, 31))


def choose(to: Rescaling, centres: Array, steps: Array) -> Array:
    """One of the candidates `centres` [count, channels] per channel, [channels]; elements are centre + steps."""
    count, channels = centres.shape
    acc = (centres[:, None, :] + steps[None, :, None]).reshape(-1, channels)
    distinct = {value.tobytes(): value for value in answers(to, acc).values()}
    found = np.stack(list(distinct.values())).reshape(-1, count, len(steps), channels)
    places = pick(np.moveaxis(found, 2, 3))
    return np.asarray(centres[places, np.arange(channels)])


def pick(found: Array) -> Array:
    """Of the candidates of every channel one, [channels]; `found` holds quantized values [ways, candidates, channels,
    elements].

    Greedy: channel by channel the candidate on which most pairs of ways part that few channels have parted yet.
    """
    keys = _keys(found)
    ways, _, channels = keys.shape
    need = _Need(ways)
    chosen = np.empty(channels, np.int64)
    for channel in range(channels):
        chosen[channel] = np.argmax(need.worths(keys[:, :, channel]))
        need.met(keys[:, chosen[channel], channel])
    return chosen


def cover(found: Array, count: int) -> list[int]:
    """At most `count` candidates, best first, that part as many pairs of ways as all do; `found` holds quantized values
    [ways, candidates, elements].
    """
    keys = _keys(found)
    need = _Need(len(keys))
    chosen: list[int] = []
    while len(chosen) < min(count, keys.shape[1]):
        worths = need.worths(keys)
        worths[chosen] = 0
        if not worths.any():
            break
        chosen.append(int(np.argmax(worths)))
        need.met(keys[:, chosen[-1]])
    return chosen


class _Need:
    """Which pairs of ways are still to be parted, twice or once."""

    def __init__(self, ways: int) -> None:
        self._twice = np.triu_indices(ways, 1)
        self._once = (self._twice[0][:0], self._twice[1][:0])

    def worths(self, rows: Array) -> Array:
        """What candidates would help, `rows` is [ways, candidates]; pairs that nothing has parted count most."""
        twice, once = (np.count_nonzero(rows[one] != rows[two], axis=0) for one, two in (self._twice, self._once))
        return np.asarray(4 * twice + once)

    def met(self, row: Array) -> None:
        """The candidate was taken."""
        (one, two), (three, four) = self._twice, self._once
        now, then = row[one] != row[two], row[three] == row[four]
        self._twice = one[~now], two[~now]
        self._once = np.concatenate([three[then], one[now]]), np.concatenate([four[then], two[now]])


def uncommon(found: Array, each: int = 3) -> Array:
    """Of many elements those on which some way parts from the first one: of every way a few; `found` is [ways,
    elements].
    """
    chosen: set[int] = set()
    for row in {value.tobytes(): value for value in found[1:]}.values():
        places = np.flatnonzero(row != found[0])
        chosen.update(places[np.arange(min(each, len(places))) * len(places) // each].tolist())
    return np.array(sorted(chosen), np.int64)


def _keys(found: Array) -> Array:
    """One number for all elements: equal quantized values are equal numbers. Ways that never part are one.

    Of 32 bits, which is faster; that two other quantized values meet only makes a choice a little worse.
    """
    weights = np.random.Generator(np.random.PCG64(1)).integers(1, 1 << 40, found.shape[-1])
    keys = (found.astype(np.int64) @ weights).astype(np.int32)
    return np.stack(list({row.tobytes(): row for row in keys}.values()))


def generic_scales(random: np.random.Generator, count: int) -> Array:
    """Binary32 numbers from 1 to 2 with all bits in use."""
    return (1 + random.integers(1, 1 << 23, count) / 2**23).astype(np.float32)


def spread(low: int, high: int, count: int) -> Array:
    """`count` exponents from `low` to `high`, both included, evenly."""
    return low + (np.arange(count) * (high - low + 1)) // count


def apart(to: Rescaling, acc: Array) -> Sequence[tuple[str, str]]:
    """Pairs of ways that `acc` does not tell apart, for tests and reports."""
    found = answers(to, acc)
    names = list(found)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if np.array_equal(found[a], found[b])]
