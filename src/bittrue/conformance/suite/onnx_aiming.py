"""Chooses, from a pool of candidates, those whose results tell arithmetics apart, and aims sums at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...arithmetic import floats
from ...rules import rescale, scale_form

Codes = np.ndarray
# Of the candidates that tell two arithmetics apart, so many are weighed against each other.
_LOOKED_AT = 200


def separating(
    answers: Sequence[Codes], count: int, random: np.random.Generator, per_pair: int = 3, fill: Codes | None = None
) -> Codes:
    """Indices of `count` candidates that tell every wrong arithmetic from the right one, several times.

    Args:
        answers: one array over all candidates per arithmetic, the right one first.
        count: how many; fewer when the pool is smaller.
        per_pair: so often each is told apart where the pool allows that.
        fill: candidates worth taking where none is needed; by default any.
    """
    size = len(answers[0])
    right, others = np.asarray(answers[0]), [np.asarray(one) for one in answers[1:]]
    # Where each wrong way parts from the right one; ways that agree everywhere are one.
    parts = {one.tobytes(): one != right for one in others if (one != right).any()}
    told = np.sum(list(parts.values()), axis=0) if parts else np.zeros(size, np.int64)
    chosen: list[int] = []
    for part in parts.values():
        missing = per_pair - int(part[chosen].sum())
        if len(chosen) >= count or missing <= 0:
            continue
        order = random.permutation(np.flatnonzero(part))[:_LOOKED_AT]
        # Those that tell most ways apart earn their place best, but not always the same ones.
        order = order[np.argsort(-told[order], kind="stable")]
        wanted = [*order[: missing - missing // 2], *order[::-1][: missing // 2]]
        chosen += [int(index) for index in wanted if index not in chosen]
    chosen = chosen[:count]
    free = np.zeros(size, np.bool_)
    free[slice(None) if fill is None else fill] = True
    free[chosen] = False
    chosen += random.permutation(np.flatnonzero(free))[: count - len(chosen)].tolist()
    return np.array(chosen, np.int64)


@dataclass(frozen=True)
class Scales:
    """What an integer layer of one output channel rescales by: real = acc * x * w / y."""

    x: float
    w: float
    y: float
    zero_point: int
    low: int
    high: int

    @property
    def real(self) -> Fraction:
        return (
            Fraction(float(np.float32(self.x)))
            * Fraction(float(np.float32(self.w)))
            / Fraction(float(np.float32(self.y)))
        )


def accumulators(scales: Scales, low: int, high: int, count: int, random: np.random.Generator) -> Codes:
    """Accumulators from `low` to `high` that tell ways of rescaling apart: ties, neighbours of ties, both ends."""
    real = scales.real
    ends = sorted(((Fraction(low) * real), (Fraction(high) * real)))
    first = max(int(ends[0]) - 1, scales.low - scales.zero_point - 2)
    last = min(int(ends[1]) + 1, scales.high - scales.zero_point + 2)
    pool: set[int] = set()
    above, below = real.numerator, real.denominator
    for number in range(first, last + 1):
        # The accumulator on the tie or just before it, and its neighbours; then one that is near an integer.
        nearest = (2 * number + 1) * below // (2 * above)
        pool.update((nearest - 1, nearest, nearest + 1, nearest + 2, number * below // above))
    # Far beyond both ends, where registers of fewer bits wrap.
    pool.update((low, high))
    chosen = np.array(sorted(acc for acc in pool if low <= acc <= high), np.int64)
    if not chosen.size:
        return np.full(count, (low + high) // 2, np.int64)
    answers = rescalings(scales, chosen)
    index = separating(answers, count, random)
    found = chosen[index]
    return np.append(found, random.choice(chosen, count - found.size)) if found.size < count else found


def rescalings(scales: Scales, acc: Codes) -> list[Codes]:
    """Quantized values of accumulators under the arithmetics of the ONNX numerics and those near to them, the runtime's
    first.
    """
    f32 = np.float32
    x, w, y = f32(scales.x), f32(scales.w), f32(scales.y)
    real, wide = scales.real, acc.astype(np.float64)
    z = scales.zero_point
    with np.errstate(all="ignore"):
        product = f32(x * w)
        factor = f32(product / y)
        narrow = acc.astype(f32)
        single = (narrow * factor).astype(np.float64)
        reals = [
            np.rint(single) + z,
            # Once, from the exact quotient.
            np.array([_round_even(int(a) * real.numerator, real.denominator) for a in acc], np.float64) + z,
            np.rint(wide * (float(x) * float(w) / float(y))) + z,
            np.rint(wide * float(factor)) + z,
            # Zero point before ties.
            np.rint((narrow * factor + f32(z)).astype(np.float64)),
            np.rint(floats.fused_multiply_add(narrow, factor, f32(z)).astype(np.float64)),
            # Other orders of the same three numbers.
            np.rint((narrow * f32(x * f32(w / y))).astype(np.float64)) + z,
            np.rint((narrow * f32(f32(x / y) * w)).astype(np.float64)) + z,
            np.rint((f32(narrow * product) / y).astype(np.float64)) + z,
            np.rint((f32(narrow * product) * f32(f32(1) / y)).astype(np.float64)) + z,
            # Other ties.
            np.trunc(single + np.copysign(0.5, single)) + z,
            np.floor(single + 0.5) + z,
            np.ceil(single - 0.5) + z,
            np.trunc(single) + z,
            np.floor(single) + z,
            *(one + z for one in _integer_forms(real, acc)),
            *(one + z for one in _rules(scales, acc)),
        ]
    return [np.clip(one, scales.low, scales.high).astype(np.int64) for one in reals]


def _bits(real: Fraction) -> int:
    """The smallest number of bits, negative ones too, that all of `real` lies below: 2^(n - 1) <= real < 2^n."""
    bits = real.numerator.bit_length() - real.denominator.bit_length()
    return bits + (real >= Fraction(2) ** bits)


def _round_even(above: int, below: int) -> int:
    """above / below, ties to even."""
    whole, rest = divmod(above, below)
    return whole + (2 * rest > below or (2 * rest == below and whole % 2 == 1))


def _rules(scales: Scales, acc: Codes) -> list[Codes]:
    """Every way to form the multiplier, and every rule of the slot `rescale` with the runtime's multiplier."""
    ways = [(name, "binary32_multiply_even") for name in scale_form.RULES]
    ways += [("binary32", name) for name in rescale.RULES if not name.endswith("multiply")]
    found = []
    for form, rule in ways:
        multiplier = scale_form.form(form, scales.x, scales.w, scales.y)
        try:
            found.append(np.asarray(rescale.apply(rule, acc, rescale.prepare(rule, multiplier)), np.float64))
        except ValueError:
            # A multiplier that the rule does not have.
            continue
    return found


def _integer_forms(real: Fraction, acc: Codes) -> list[Codes]:
    """One multiplication by 31, 24 and 15 bits; ties up, and in two steps."""
    found = []
    for bits in (31, 24, 15):
        exponent = max(bits - _bits(real), 0)
        multiplier = int(real * 2**exponent + Fraction(1, 2))
        if not exponent:
            continue
        half = 1 << (exponent - 1)
        found.append(np.array([(int(a) * multiplier + half) >> exponent for a in acc], np.float64))
        if bits == 31 and exponent > 31:
            high = [(int(a) * multiplier + (1 << 30)) >> 31 for a in acc]
            shift = exponent - 31
            found.append(
                np.array([(abs(h) + (1 << (shift - 1)) >> shift) * (1 if h >= 0 else -1) for h in high], float)
            )
    return found


@dataclass(frozen=True)
class Sums:
    """Rows of activations and weights whose sums of products are chosen.

    Attributes:
        x: activations less their zero point, [rows, terms].
        w: weights less their zero point, [channels, terms].
        bias: [channels].
        acc: what the sums and the bias give, [rows, channels].
    """

    x: Codes
    w: Codes
    bias: Codes
    acc: Codes


def aimed_sums(
    rows: int,
    channels: int,
    terms: int,
    x: tuple[int, int],
    w: tuple[int, int],
    choose: Callable[[int, int, int, int], Codes],
    random: np.random.Generator,
    *,
    middle: Callable[[int], int] | None = None,
    reach: int = 1,
) -> Sums:
    """Sums that hit chosen accumulators exactly.

    Every channel has `terms` products of random numbers, and 1 + `reach` of its own that make up what is missing: one
    by a weight of 1, the others by a large weight.

    Args:
        x, w: the smallest and largest number, zero points taken off.
        choose: channel, lowest and highest accumulator and a count to accumulators.
        middle: channel to the accumulator around which its bias moves the sums; None for no bias.
    """
    large = min(w[1], (x[1] - x[0]))
    own = 1 + reach
    weights = np.zeros((channels, terms + channels * own), np.int64)
    # Small, so that the terms behind can make up for any of their sums.
    small = max(w[1] // 16, 1)
    weights[:, :terms] = random.integers(max(-small, w[0]), small, (channels, terms), endpoint=True)
    activations = np.zeros((rows, weights.shape[1]), np.int64)
    activations[:, :terms] = random.integers(x[0], x[1], (rows, terms), endpoint=True)
    made = activations[:, :terms] @ weights[:, :terms].T
    low, high = (end * (1 + large * reach) for end in x)
    bias = np.zeros(channels, np.int64)
    acc = np.zeros((rows, channels), np.int64)
    for channel in range(channels):
        place = terms + channel * own
        weights[channel, place] = 1
        weights[channel, place + 1 : place + own] = large
        # What every row can reach: from the largest lower end to the smallest upper one.
        floor, roof = int(made[:, channel].max()) + low, int(made[:, channel].min()) + high
        if middle is not None:
            bias[channel] = middle(channel) - (floor + roof) // 2
        floor, roof = floor + int(bias[channel]), roof + int(bias[channel])
        wanted = choose(channel, floor, roof, rows)
        missing = np.clip(wanted, floor, roof) - bias[channel] - made[:, channel]
        for row in range(rows):
            left = int(missing[row])
            for term in range(reach):
                # Split what is left evenly, so that the weight of 1 can give the rest.
                share = (left - x[0]) // (large * (reach - term)) if left else 0
                share = min(max(share, x[0]), x[1])
                activations[row, place + 1 + term] = share
                left -= share * large
            activations[row, place] = min(max(left, x[0]), x[1])
    acc = activations @ weights.T + bias
    return Sums(activations, weights, bias, acc)
