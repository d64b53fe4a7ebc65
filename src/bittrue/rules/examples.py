"""Numbers for which two rules of one slot give different results: the shortest answer to "what is the difference?".

Every finder walks a fixed list of candidates from small to large and keeps the first one that tells its two rules
apart, so examples are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from ..arithmetic import elementary, multiplier, tables
from ..records import dataclass
from . import (
    accumulate,
    activation_range,
    affine_average,
    affine_product,
    affine_softmax,
    affine_sum,
    align,
    average,
    cast,
    center,
    channel_parameters,
    combine,
    compare,
    divide,
    dynamic_range,
    half_nan,
    interpolate,
    level_sum,
    levels,
    mean,
    modulo,
    narrow,
    normalize,
    power,
    power_code,
    quantize,
    quotient,
    real_function,
    remainder,
    rescale,
    scale_form,
    shift,
    sigmoid,
    sign,
    softmax,
    store,
    table,
    to_integer,
    widen,
    window_average,
    window_levels,
)
from .range_levels import Ends
from .range_quantize import DEQUANTIZE, QUANTIZE, REQUANTIZE

# Real multipliers of the kind that models have, simple ones first: ties of powers of two are the easiest to follow.
_REALS = (0.25, 0.5, 0.0625, 0.0078125, 0.75, 0.3, 0.1, 0.0123, 0.00321, 0.000457, 1.7, 5000.0)
_ACCUMULATORS = np.array([sign * value for value in range(4097) for sign in (1, -1)], np.int64)
_LARGE = np.array([sign * (2**k + d) for k in range(12, 31) for d in (-1, 0, 1) for sign in (1, -1)], np.int64)


@dataclass(frozen=True)
class Example:
    """Inputs in words, and what each of the two rules makes of them."""

    given: str
    results: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.given}: {self.results[0]} and {self.results[1]}"


def example(slot: str, first: str, second: str) -> Example | None:
    """An example for which the rules `first` and `second` of `slot` differ; None when the list of candidates has none,
    or for slots whose rules say enough by their formulas.
    """
    if first == second:
        return None
    finder = _FINDERS.get(slot)
    return None if finder is None else next(finder(first, second), None)


# What rules read that have more than a multiplier.
_OPERANDS = {
    "addend": (np.array([3], np.int32), "addend 3"),
    "second": (np.array([0.75], np.float32), "then times 0.75"),
}


def _rescale(first: str, second: str) -> Iterator[Example]:
    rules = [rescale.RULES[name] for name in (first, second)]
    more = dict.fromkeys(name for rule in rules for name in rule.operands)
    operands = {name: _OPERANDS[name][0] for name in more}
    words = "".join(f", {_OPERANDS[name][1]}" for name in more)
    for accumulators in (_ACCUMULATORS, _LARGE):
        for real in _REALS:
            try:
                prepared = [{**rule.prepare(real), **operands} for rule in rules]
            except ValueError:
                # Not every rule knows every multiplier.
                continue
            one, other = (rule.apply(accumulators, arrays) for rule, arrays in zip(rules, prepared, strict=True))
            for place in np.flatnonzero(one != other)[:1]:
                # Some rules give real numbers.
                texts = [
                    f"{value[place]:.9g}" if value.dtype.kind == "f" else f"{value[place]}" for value in (one, other)
                ]
                yield Example(f"accumulator {accumulators[place]} times {real}{words}", (texts[0], texts[1]))


def _center(first: str, second: str) -> Iterator[Example]:
    for q, zero_point in ((2**24 + 1, 1), (-(2**31), 1)):
        one, other = (center.RULES[name](np.array([q]), np.int64(zero_point))[0] for name in (first, second))
        if one != other:
            yield Example(f"q {q}, zero point {zero_point}", (f"{one:.10g}", f"{other:.10g}"))


def _compare(first: str, second: str) -> Iterator[Example]:
    arrays = rescale.prepare("q31_two_step_up_away", [2.0**-9], "a_")
    for q in range(1, 10):
        one, other = (
            compare.RULES[name](np.array([q], np.int64), 0, "q31_two_step_up_away", arrays, "a_")[0]
            for name in (first, second)
        )
        if one != other:
            yield Example(f"q {q} of scale 1/512, as it is compared", (f"{one}", f"{other}"))


_BINARY32_SCALES = (np.float32(0.0173), np.float32(0.0371))


def _scale_form(first: str, second: str) -> Iterator[Example]:
    for a in range(1, 80):
        # Numbers that are none of binary32 come last: some forms take them as they are.
        others = _BINARY32_SCALES if a < 40 else (0.0173, 0.0371)
        scales = np.float32(0.001) * np.float32(a), *others
        real = [float(scale_form.form(name, *scales)) for name in (first, second)]
        encoded = [tuple(int(v) for v in multiplier.encode_q31(value)) for value in real]
        if real[0] != real[1]:
            texts = [f"{value!r} (Q31 {q} * 2^{e - 31})" for value, (q, e) in zip(real, encoded, strict=True)]
            yield Example(f"scales {scales[0]!s} * {scales[1]!s} / {scales[2]!s}", (texts[0], texts[1]))


def _accumulate(first: str, second: str) -> Iterator[Example]:
    for total in (2**31, 2**33 + 5):
        one, other = (int(accumulate.RULES[name].finish(np.array([total]))[0]) for name in (first, second))
        if one != other:
            yield Example(f"sum {total}", (str(one), str(other)))
    quantized, weights = np.array([[255, 255]]), np.array([[127], [127]])
    exact = int((quantized @ weights)[0, 0])
    losses = [accumulate.RULES[name].lost for name in (first, second)]
    one, other = (exact if lost is None else exact - int(lost(quantized, weights)[0, 0]) for lost in losses)
    if one != other:
        yield Example("255 * 127 + 255 * 127", (str(one), str(other)))


def _channel_parameters(first: str, second: str) -> Iterator[Example]:
    """Two images of two channels."""
    one, other = (
        np.broadcast_to(channel_parameters.RULES[name](np.array([0, 1]), (2, 2, 1), 1), (2, 2, 1)).reshape(-1).tolist()
        for name in (first, second)
    )
    if one != other:
        yield Example("channel that each of [2, 2, 1] elements takes its scale from", (str(one), str(other)))


def _store(first: str, second: str) -> Iterator[Example]:
    for rescaled in (5, 127, 300, -300, 32767, 40000, -40000, 2**31 - 1, -(2**31)):
        for zero_point in (1, -1, 127, -128):
            one, other = (
                int(store.RULES[name](np.array([rescaled]), zero_point, -128, 127)[0]) for name in (first, second)
            )
            if one != other:
                yield Example(f"rescaled {rescaled}, zero point {zero_point}, int8", (str(one), str(other)))


def _average(first: str, second: str) -> Iterator[Example]:
    for count in range(2, 10):
        for total in (value for magnitude in range(60) for value in (magnitude, -magnitude)):
            results = [
                average.RULES[name](
                    np.array([total], np.float32 if name.startswith("binary32") else np.int64), np.array([count])
                )[0]
                for name in (first, second)
            ]
            if results[0] != results[1]:
                yield Example(f"sum {total} of {count} values", (f"{results[0]}", f"{results[1]}"))


def _mean(first: str, second: str) -> Iterator[Example]:
    for count in (2, 3, 4, 9, 49):
        for scale in (1.0, 0.5, 0.3, 0.0123):
            for totals in (_ACCUMULATORS, _LARGE):
                one, other = (_mean_of(name, totals, scale, count) for name in (first, second))
                for place in np.flatnonzero(np.asarray(one != other))[:1]:
                    given = f"sum {totals[place]} of {count} values, input scale {scale}, output scale 0.5"
                    yield Example(given, (f"{one[place]}", f"{other[place]}"))
    prepare = [rule.prepare_affine for rule in map(mean.RULES.__getitem__, (first, second))]
    if prepare[0] is not None and prepare[1] is not None:
        # Zero points are part of these.
        totals, arguments = np.arange(-3000, 3000), (1.804147481918335, 3, 55, -11)
        one = mean.RULES[first].apply(totals, prepare[0](*arguments))
        other = mean.RULES[second].apply(totals, prepare[1](*arguments))
        for place in np.flatnonzero(one != other)[:1]:
            given = f"sum {totals[place]} of 3 values, ratio of scales {arguments[0]}, zero points 55 and -11"
            yield Example(given, (f"{one[place]}", f"{other[place]}"))


def _mean_of(name: str, totals: np.ndarray, scale: float, count: int) -> np.ndarray:
    """Zero points are 0."""
    rule = mean.RULES[name]
    if rule.prepare_scales is not None:
        prepared = rule.prepare_scales(scale, 0.5, count, 0, 0)
    elif rule.prepare_affine is not None:
        prepared = rule.prepare_affine(scale / 0.5, count, 0, 0)
    else:
        prepared = rule.prepare(scale / 0.5, count)
    real = name == "binary32_divide"
    return rule.apply(totals.astype(np.float32) if real else totals, prepared)


def _align(first: str, second: str) -> Iterator[Example]:
    """The inputs are those of an addition whose first scale is the smaller one."""
    q = np.arange(-255, 256)
    for scale in (0.5, 0.25, 0.1, 0.0123, 0.003, 0.0001):
        one, other = (_aligned(name, q, scale) for name in (first, second))
        for place in np.flatnonzero(one != other)[:1]:
            given = f"q - zero point {q[place]} of scale {scale}, other scale 1, in steps of the output's scale 1"
            yield Example(given, (f"{one[place]:.10g}", f"{other[place]:.10g}"))


def _aligned(name: str, q: np.ndarray, scale: float) -> np.ndarray:
    """What the output's step is worth of an aligned input, before the sum is rounded."""
    rule = align.RULES[name]
    if rule.shared_bits:
        weights = align.shared_weights(name, scale, 1.0, 1.0)
        return q * weights[0] / 2.0 ** weights[2]
    arrays = rescale.prepare("q31_two_step_up_away", scale / align.unit(scale, 1.0))
    aligned = align.apply(name, q, 0, "q31_two_step_up_away", arrays, "")
    return aligned * float(align.unit(scale, 1.0)) / 2.0**rule.left


def _sigmoid(first: str, second: str) -> Iterator[Example]:
    q = np.arange(-32768, 32768)
    for scale in (2.0**-12, 0.001, 0.0003):
        answers = []
        for name in (first, second):
            rule = sigmoid.RULES[name]
            answers.append(rule.logistic(q, *rule.prepare(scale, 0), rule.table()))
        for place in np.flatnonzero(answers[0] != answers[1])[:1]:
            given = f"logistic of q {q[place]}, scale {scale:.6g}, in 2^-15"
            yield Example(given, (str(int(answers[0][place])), str(int(answers[1][place]))))


def _table(first: str, second: str) -> Iterator[Example]:
    functions: tuple[tuple[str, Callable[..., object], float, int], ...]
    functions = (("tanh", elementary.tanh, 1 / 128, 0), ("logistic", tables.logistic, 1 / 256, -128))
    functions += (("tanh in steps of 0.0085", elementary.tanh, 0.008500000461935997, 0),)
    if table.RULES[first].exact or table.RULES[second].exact:
        # A function that binary64 and fractions know alike.
        functions = (("x / 3", lambda x: x / 3, 0.1, 1),)
    for text, function, output_scale, zero_point in functions:
        # Tables differ in few places; these scales have some.
        for scale in np.array(
            [0.10095943, 0.25669166, 0.20278528, 0.069595955, *np.linspace(0.01, 0.3, 200)], np.float32
        ):
            built = [
                table.RULES[name].build(function, float(scale), 0, output_scale, zero_point, -128, 127)
                for name in (first, second)
            ]
            if built[0].shape != built[1].shape:
                return
            for place in np.flatnonzero(built[0] != built[1])[:1]:
                given = f"{text} of q {place - 128}, scale {scale!s}"
                yield Example(given, (str(int(built[0][place])), str(int(built[1][place]))))


def _softmax(first: str, second: str) -> Iterator[Example]:
    rng = np.random.default_rng(1)
    for scale in (1 / 16, 0.1, 0.3):
        rows = np.sort(rng.integers(-128, 128, (4000, 4)), axis=1)
        answers = []
        for name in (first, second):
            rule = softmax.RULES[name]
            length = (rows.shape[1],) if rule.counted else ()
            prepared = {**rule.prepare(scale, 1.0, *length), "output_scale": np.asarray(1 / 256, np.float32)}
            prepared["input_zero_point"] = np.asarray(0)
            answers.append(np.minimum(rule.apply(rows, prepared, 8), 255))
        for place in np.argwhere(answers[0] != answers[1])[:1]:
            given = f"row {rows[place[0]].tolist()} of scale {scale}, place {place[1]}, in 1/256"
            yield Example(given, (str(int(answers[0][tuple(place)])), str(int(answers[1][tuple(place)]))))


def _interpolate(first: str, second: str) -> Iterator[Example]:
    """A row of two pixels, resized, without and with half-pixel centres."""
    for half_pixel, pixels, out in product((False, True), ((-3, -2), (0, 200), (17, 100), (1, 7)), (4, 6, 7, 11, 13)):
        answers = []
        for name in (first, second):
            rule = interpolate.RULES[name]
            axis = rule.prepare(2, out, False, half_pixel)
            whole = name.endswith("_up") or "bits" in name
            row = np.array(pixels, np.int64 if whole else np.float32)
            low, high = row[axis["low"]], row[axis["high"]]
            none = np.zeros(1, axis["weight"].dtype)
            answers.append(np.asarray(rule.apply((low, low, high, high), none, axis["weight"])))
        for place in np.flatnonzero(answers[0] != answers[1])[:1]:
            given = f"pixels {pixels[0]} and {pixels[1]} resized to {out}, place {place}"
            if half_pixel:
                given += ", half-pixel centres"
            yield Example(given, (f"{answers[0][place]}", f"{answers[1][place]}"))
    if first.startswith("binary32") and second.startswith("binary32"):
        rng = np.random.default_rng(1)
        whole = first.endswith("_up")
        corners = rng.integers(0, 256, (4, 5000)) if whole else rng.standard_normal((4, 5000)).astype(np.float32)
        weights = rng.random((2, 5000), np.float32)
        if whole:
            # Fortieths bring sums near to halves.
            weights = np.ceil(weights * np.float32(39)) / np.float32(40)
        one, other = (interpolate.RULES[name].apply(tuple(corners), *weights) for name in (first, second))
        for place in np.flatnonzero(one != other)[:1]:
            given = f"corners {corners[:, place].tolist()}, weights {weights[:, place].tolist()}"
            yield Example(given, (f"{one[place]}", f"{other[place]}"))


# Parameters of functions that have some.
_PARAMETERS = {
    "celu": {"alpha": 0.75},
    "hard_sigmoid": {"alpha": 0.2, "beta": 0.5},
    "parametric_elu": {"alpha": 1.0},
    "quick_gelu": {"alpha": 1.702},
    "selu": {"alpha": 1.6732632, "gamma": 1.050701},
}


def _real_function(first: str, second: str) -> Iterator[Example]:
    rules = [real_function.RULES[name] for name in (first, second)]
    x = np.linspace(-4, 4, 2001, dtype=np.float32)
    for stem in sorted({*rules[0].functions} & {*rules[1].functions}):
        one, other = (
            rule.functions[stem](x.astype(rule.type or np.float16), **_PARAMETERS.get(stem, {})) for rule in rules
        )
        for place in np.flatnonzero((one != other) & ~(np.isnan(one) & np.isnan(other)))[:1]:
            yield Example(f"{stem} of {x[place]!s}", (f"{one[place]!s}", f"{other[place]!s}"))


def _normalize(first: str, second: str) -> Iterator[Example]:
    for length in (2, 20, 200, 1000):
        for value in range(1, 256, 2):
            row = np.array([[-value] + [150] * (length - 1)])
            one, other = (normalize.RULES[name](row)[0, 0] for name in (first, second))
            if one != other:
                yield Example(f"{-value} beside {length - 1} times 150, in 1/128", (f"{one}", f"{other}"))


def _activation_range(first: str, second: str) -> Iterator[Example]:
    for zero_point in (0, -128, 3):
        for scale in (0.5, 0.8, 0.0235, 0.1, 12 / 5, 4.0, 12.0):
            one, other = (
                activation_range.RULES[name]("relu6", scale, zero_point, -128, 127) for name in (first, second)
            )
            if one != other:
                yield Example(f"RELU6, scale {scale}, zero point {zero_point}, int8", (f"{one}", f"{other}"))


def _array(scale: float) -> np.ndarray:
    return np.array([scale], np.float32)


def _quantize(first: str, second: str) -> Iterator[Example]:
    for scale in (0.5, 0.1, 0.0173, 0.3):
        x = np.append(np.arange(-400, 400) * np.float32(scale / 2), [1e30, -1e30, np.inf, np.nan]).astype(np.float32)
        stored = [
            quantize.QUANTIZE[name](x, _array(scale), np.array([3]), -128, 127).astype(np.int64)
            for name in (first, second)
        ]
        for place in np.flatnonzero(stored[0] != stored[1])[:1]:
            yield Example(
                f"x {x[place]} by scale {np.float32(scale)}, zero point 3",
                (str(stored[0][place]), str(stored[1][place])),
            )


def _dequantize(first: str, second: str) -> Iterator[Example]:
    for q in (np.arange(-128, 128), np.arange(2**24, 2**24 + 256)):
        for scale in (0.1, 0.0173, 0.3, 0.0077):
            real = [
                quantize.DEQUANTIZE[name](q, _array(scale), np.array([3])).astype(np.float32)
                for name in (first, second)
            ]
            for place in np.flatnonzero(real[0] != real[1])[:1]:
                yield Example(
                    f"q {q[place]}, scale {np.float32(scale)}, zero point 3",
                    (repr(real[0][place]), repr(real[1][place])),
                )


def _quotient(first: str, second: str) -> Iterator[Example]:
    for x in (1.0, 2.0, 2049.0):
        for scale in (3.0, 10.0):
            one, other = (
                float(quotient.RULES[name].divide(np.array([x]), np.array([scale]))[0]) for name in (first, second)
            )
            if one != other:
                yield Example(f"{x} / {scale}", (f"{one!r}", f"{other!r}"))


def _to_integer(first: str, second: str) -> Iterator[Example]:
    for value in (0.5, 300.0, 3e9, np.inf):
        one, other = (
            int(to_integer.RULES[name](_array(value), np.array([0]), -128, 127)[0]) for name in (first, second)
        )
        if one != other:
            yield Example(f"quotient {value}, zero point 0, int8", (str(one), str(other)))


def _narrow(first: str, second: str) -> Iterator[Example]:
    """Special numbers last: they say least about the rules."""
    for value in (17.0, 465.0, 480.0, 1e6, np.inf, np.nan):
        for dtype in ("f8e4m3fn", "f8e5m2"):
            one, other = (int(narrow.RULES[name](_array(value), dtype)[0]) for name in (first, second))
            if one != other:
                yield Example(f"{value} to {dtype}", (f"bits {one:#04x}", f"bits {other:#04x}"))


def _dynamic_range(first: str, second: str) -> Iterator[Example]:
    for values in ((-1.0, 1.55), (0.0, 0.0)):
        answers = []
        for name in (first, second):
            try:
                scale, zero_point = dynamic_range.RULES[name](np.array(values, np.float32))
                answers.append(f"scale {scale}, zero point {zero_point}")
            except OverflowError:
                answers.append("no defined result")
        if answers[0] != answers[1]:
            yield Example(f"values between {values[0]} and {values[1]}", (answers[0], answers[1]))


def _cast(first: str, second: str) -> Iterator[Example]:
    for value in (0.5, 1.5, -0.5, 2.5, 300.0, -1.0, 3e9, 5e9, 1e19, np.inf, np.nan):
        one, other = (int(cast.RULES[name](np.array([value]), -128, 127)[0]) for name in (first, second))
        if one != other:
            yield Example(f"{value} to int8", (str(one), str(other)))


def _power_code(first: str, second: str) -> Iterator[Example]:
    for value, saturate in ((1.5, True), (-1.5, True), (1.8e38, False)):
        one, other = (int(power_code.RULES[name](np.array([value]), "down", saturate)[0]) for name in (first, second))
        if one != other:
            yield Example(f"{value} to a power of two below", (f"code {one}", f"code {other}"))


def _widen(first: str, second: str) -> Iterator[Example]:
    for count in (16, 15):
        x = np.full(count, 0x7C34, np.uint16).view(np.float16)
        one, other = (int(widen.RULES[name](x).view(np.uint32)[0]) for name in (first, second))
        if one != other:
            yield Example(f"{count} signalling NaNs", (f"bits {one:#010x}", f"bits {other:#010x}"))


def _half_nan(first: str, second: str) -> Iterator[Example]:
    x, places = np.full(9, 0xFFFFFFFF, np.uint32), np.arange(9)
    one, other = (half_nan.RULES[name](x, places, 9).tolist() for name in (first, second))
    place = next(i for i in range(9) if one[i] != other[i])
    yield Example(f"NaN {place + 1} of 9", (f"bits {one[place]:#06x}", f"bits {other[place]:#06x}"))


def _divide(first: str, second: str) -> Iterator[Example]:
    for a, b in ((5, 2), (0, 4), (-3, 64)):
        found = []
        for name in (first, second):
            rule = divide.RULES[name]
            values, defined = rule.apply(np.array([a]), np.array([b]), rule.prepare(1.0, 1.0, 1.0))
            found.append(str(int(values[0])) if defined[0] else "no defined result")
        if found[0] != found[1]:
            yield Example(f"{a} / {b}, scales of 1", (found[0], found[1]))


def _remainder(first: str, second: str) -> Iterator[Example]:
    a, b = np.array([2**62 + 1]), np.array([2])
    one, other = (int(remainder.RULES[name](a, b)[0]) for name in (first, second))
    if one != other:
        yield Example("2^62 + 1 modulo 2", (str(one), str(other)))


def _modulo(first: str, second: str) -> Iterator[Example]:
    one, other = (modulo.RULES[name](np.array([-6.0]), np.array([3.0]))[0] for name in (first, second))
    if np.signbit(one) != np.signbit(other):
        yield Example("-6 modulo 3", (str(one), str(other)))


def _shift(first: str, second: str) -> Iterator[Example]:
    x, places = np.array([200], np.uint8), np.array([9], np.uint8)
    one, other = (int(shift.RULES[name](x, places, False)[0]) for name in (first, second))
    if one != other:
        yield Example("200 in 8 bits, 9 places to the right", (str(one), str(other)))


def _power(first: str, second: str) -> Iterator[Example]:
    """Squares and cubes by an only exponent, small bases first; the square of a number near the largest one."""
    for base, exponent in product((0.1, 0.3, 0.7, 1.1, 1.3, 1e30), (2.0, 3.0, 5.0, 2.000001)):
        x, y = np.array([base], np.float32), np.array([exponent], np.float32)
        one, other = (float(power.RULES[name].apply(x, y, True)[0]) for name in (first, second))
        if one != other:
            yield Example(f"{base} to the power of {exponent}", (repr(one), repr(other)))


def _sign(first: str, second: str) -> Iterator[Example]:
    """Small negative numbers times a negative factor."""
    x, rule = np.arange(-1, -9, -1), "q31_two_step_up_away"
    for real in _REALS:
        rescaled = partial(rescale.apply, rule, arrays=rescale.prepare(rule, real))
        one, other = (sign.RULES[name](rescaled, x) for name in (first, second))
        for place in np.flatnonzero(one != other)[:1]:
            yield Example(f"{x[place]} * -{real:g}", (str(one[place]), str(other[place])))


# Of rules between quantized tensors, of rules with binary64 scales, and of ranges.
_BYTES = np.arange(-128, 128, dtype=np.int64)
_SOME_SCALES = (0.5, 1.0, 0.1, 0.3, 0.0123)
_BINARY64_SCALES = (0.5, 2.0, 1.0, 0.1, 0.3, 0.0123)
_LOW, _HIGH = -128, 127


def _scale(value: float) -> float:
    return float(np.float32(value))


def _different(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[int, ...]]:
    for place in np.argwhere(one != other)[:1]:
        yield tuple(int(i) for i in place)


def _affine_two(slot: str, first: str, second: str) -> Iterator[Example]:
    """`affine_sum` and `affine_product`: every pair of quantized values."""
    rules = {"affine_sum": affine_sum.RULES, "affine_product": affine_product.RULES}[slot]
    a, b = _BYTES[:, None], _BYTES[None, :]
    for scales in product(_SOME_SCALES, repeat=3):
        for points in ((0, 0, 0), (0, 0, 1), (3, -5, 7)):
            x, y, z = ((_scale(scale), point) for scale, point in zip(scales, points, strict=True))
            one, other = (
                rules[name].apply(a, b, rules[name].prepare(x, y, z), _LOW, _HIGH) for name in (first, second)
            )
            for i, j in _different(one, other):
                given = (
                    f"q {_BYTES[i]} of scale {scales[0]}, q {_BYTES[j]} of scale {scales[1]}, "
                    f"to scale {scales[2]}, zero points {points}"
                )
                yield Example(given, (str(one[i, j]), str(other[i, j])))


def _affine_average(first: str, second: str) -> Iterator[Example]:
    """Two quantized values and their average."""
    for scale, output, zero_point in product(_SOME_SCALES, _SOME_SCALES, (0, 1)):
        results = []
        for name in (first, second):
            rule = affine_average.RULES[name]
            prepared = rule.prepare((_scale(scale), 0), (_scale(output), zero_point), _LOW, _HIGH)
            total = prepared["values"][:, None] + prepared["values"][None, :]
            results.append(rule.finish(total, np.array(2), prepared, _LOW, _HIGH))
        for i, j in _different(*results):
            given = (
                f"q {_BYTES[i]} and {_BYTES[j]} of scale {scale}, averaged to scale {output}, zero point {zero_point}"
            )
            yield Example(given, (str(results[0][i, j]), str(results[1][i, j])))


def _affine_softmax(first: str, second: str) -> Iterator[Example]:
    """Rows of two quantized values."""
    rows = np.stack(np.meshgrid(_BYTES, _BYTES, indexing="ij"), -1).reshape(-1, 2)[::7]
    for scale, output in product(_SOME_SCALES, (1 / 256, 0.0039, 0.3)):
        one, other = (
            affine_softmax.RULES[name].apply(
                rows,
                affine_softmax.RULES[name].prepare((_scale(scale), 0), (_scale(output), -128), 2),
                _LOW,
                _HIGH,
            )
            for name in (first, second)
        )
        for i, j in _different(one, other):
            given = f"row {rows[i].tolist()} of scale {scale}, place {j}, to scale {output}, zero point -128"
            yield Example(given, (str(one[i, j]), str(other[i, j])))


def _combine(first: str, second: str) -> Iterator[Example]:
    """`combine`: every quantized value at another scale."""
    for scale, output in product(_SOME_SCALES, (1.0, *_SOME_SCALES, 0.7)):
        one, other = (
            np.asarray(combine.RULES[name](_BYTES, _scale(scale), 0, _scale(output), 1, _LOW, _HIGH))
            for name in (first, second)
        )
        for (i,) in _different(one, other):
            yield Example(
                f"q {_BYTES[i]} of scale {scale}, to scale {output}, zero point 1", (str(one[i]), str(other[i]))
            )


def _window_average(first: str, second: str) -> Iterator[Example]:
    """`window_average`: four elements inside the image, of a window of four taps."""
    for scale, output, zero_point in product(_SOME_SCALES, _SOME_SCALES, (0, 1)):
        one, other = (
            rule.apply(_BYTES, np.array(4), rule.prepare(_scale(scale), _scale(output), 4), zero_point, _LOW, _HIGH)
            for rule in (window_average.RULES[first], window_average.RULES[second])
        )
        for (i,) in _different(one, other):
            given = f"four elements of sum {_BYTES[i]} and scale {scale}, to scale {output}, zero point {zero_point}"
            yield Example(given, (str(one[i]), str(other[i])))


def _levels(first: str, second: str) -> Iterator[Example]:
    """`levels`: quarters, as real or quantized values."""
    x = (np.arange(-400, 401) / 4).astype(np.float32)
    for scale in _BINARY64_SCALES:
        for zero_point in (0, 3):
            one, other = (levels.RULES[name].apply(x, scale, zero_point) for name in (first, second))
            for place in np.flatnonzero(one != other)[:1]:
                given = f"{x[place]}, scale {scale}, zero point {zero_point}"
                yield Example(given, (f"{one[place]:g}", f"{other[place]:g}"))


def _level_sum(first: str, second: str) -> Iterator[Example]:
    """`level_sum`: every pair of 8-bit quantized values."""
    a, b = _BYTES[:, None], _BYTES[None, :]
    for scale in _BINARY64_SCALES:
        for output in _BINARY64_SCALES:
            pairs = (scale, 0), (0.1, 0), (output, 0)
            one, other = (
                level_sum.RULES[name].apply(a, b, level_sum.RULES[name].prepare(*pairs)) for name in (first, second)
            )
            for i, j in zip(*np.nonzero(one != other), strict=True):
                given = f"{_BYTES[i]} of scale {scale} and {_BYTES[j]} of scale 0.1, to scale {output}"
                yield Example(given, (str(one[i, j]), str(other[i, j])))


def _window_levels(first: str, second: str) -> Iterator[Example]:
    """`window_levels`: sums of a few quantized values."""
    total = np.arange(-400, 401).astype(np.float32)
    for scale, output in ((1.0, 1.0), *((one, two) for one in _BINARY64_SCALES for two in _BINARY64_SCALES)):
        for count in (2, 3, 4, 6, 9):
            source, result = (scale, 0), (output, 0)
            one, other = (
                window_levels.RULES[name].apply(total, np.array([count]), source, result) for name in (first, second)
            )
            for place in np.flatnonzero(one != other)[:1]:
                given = f"sum {total[place]:g} of {count} numbers, scale {scale} to {output}"
                yield Example(given, (f"{one[place]:g}", f"{other[place]:g}"))


_RANGES = ((-127.0, 127.0), (-1.0, 1.0), (0.0, 255.0), (-0.3, 0.7), (-1.5, 6.0))


def _ends(given: tuple[float, float]) -> Ends:
    return np.float32(given[0]), np.float32(given[1])


def _first(one: np.ndarray, other: np.ndarray) -> int | None:
    places = np.flatnonzero(one != other)
    return int(places[0]) if places.size else None


def _range_quantize(first: str, second: str) -> Iterator[Example]:
    """Multiples of 1/512 of the range, as s8 and as u8."""
    for given, dtype in product(_RANGES, ("s8", "u8")):
        numbers = np.arange(-512, 513).astype(np.float32) * np.float32(max(map(abs, given)) / 512)
        one, other = (QUANTIZE[name](numbers, _ends(given), dtype) for name in (first, second))
        place = _first(one, other)
        if place is not None:
            yield Example(f"{numbers[place]} of the range {given}, as {dtype}", (str(one[place]), str(other[place])))


def _range_dequantize(first: str, second: str) -> Iterator[Example]:
    """Every quantized value."""
    for given, (dtype, low) in product(_RANGES, (("s8", -128), ("u8", 0))):
        values = np.arange(low, low + 256)
        one, other = (DEQUANTIZE[name](values, _ends(given), dtype) for name in (first, second))
        place = _first(one, other)
        if place is not None:
            results = str(float(one[place])), str(float(other[place]))
            yield Example(f"{dtype} value {values[place]} of the range {given}", results)


def _range_requantize(first: str, second: str) -> Iterator[Example]:
    """Small sums, whose range is 2^31 units."""
    sums = np.arange(-2000, 2001)
    for unit, given in product((1.0, 2.0**-10, 0.003), _RANGES):
        reach = np.float32(2.0**31 * unit)
        one, other = (REQUANTIZE[name](sums, (-reach, reach), _ends(given), "s8") for name in (first, second))
        place = _first(one, other)
        if place is not None:
            yield Example(
                f"sum {sums[place]} of units of {unit}, to the range {given}", (str(one[place]), str(other[place]))
            )


_FINDERS: dict[str, Callable[[str, str], Iterator[Example]]] = {
    "accumulate": _accumulate,
    "activation_range": _activation_range,
    "affine_average": _affine_average,
    "affine_product": partial(_affine_two, "affine_product"),
    "affine_softmax": _affine_softmax,
    "affine_sum": partial(_affine_two, "affine_sum"),
    "align": _align,
    "average": _average,
    "cast": _cast,
    "channel_parameters": _channel_parameters,
    "center": _center,
    "compare": _compare,
    "combine": _combine,
    "dequantize": _dequantize,
    "divide": _divide,
    "dynamic_range": _dynamic_range,
    "interpolate": _interpolate,
    "level_sum": _level_sum,
    "levels": _levels,
    "mean": _mean,
    "modulo": _modulo,
    "narrow": _narrow,
    "normalize": _normalize,
    "power": _power,
    "power_code": _power_code,
    "half_nan": _half_nan,
    "widen": _widen,
    "quantize": _quantize,
    "quotient": _quotient,
    "range_dequantize": _range_dequantize,
    "range_quantize": _range_quantize,
    "range_requantize": _range_requantize,
    "real_function": _real_function,
    "remainder": _remainder,
    "rescale": _rescale,
    "scale_form": _scale_form,
    "scale_form_per_axis": _scale_form,
    "shift": _shift,
    "sigmoid": _sigmoid,
    "sign": _sign,
    "softmax": _softmax,
    "store": _store,
    "table": _table,
    "to_integer": _to_integer,
    "window_average": _window_average,
    "window_levels": _window_levels,
}
