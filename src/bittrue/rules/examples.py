"""Numbers for which two rules of one slot give different results: the shortest answer to "what is the difference?".

Every finder walks a fixed list of candidates from small to large and keeps the first one that tells its two rules
apart, so examples are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..arithmetic import multiplier
from . import accumulate, average, mean, quantize, rescale, scale_form, store

# Real multipliers of the kind that models have, simple ones first: ties of powers of two are the easiest to follow.
_REALS = (0.25, 0.5, 0.0625, 0.0078125, 0.75, 0.3, 0.1, 0.0123, 0.00321, 0.000457, 1.7)
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
    finder = _FINDERS.get(slot)
    return None if finder is None else next(finder(first, second), None)


def _rescale(first: str, second: str) -> Iterator[Example]:
    for accumulators in (_ACCUMULATORS, _LARGE):
        for real in _REALS:
            one, other = (
                rescale.RULES[name].apply(accumulators, rescale.RULES[name].prepare(real)) for name in (first, second)
            )
            for place in np.flatnonzero(one != other)[:1]:
                yield Example(
                    f"accumulator {accumulators[place]} times {real}", (str(int(one[place])), str(int(other[place])))
                )


def _scale_form(first: str, second: str) -> Iterator[Example]:
    for a in range(1, 40):
        scales = np.float32(0.001) * np.float32(a), np.float32(0.0173), np.float32(0.0371)
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
        for real in _REALS:
            for totals in (_ACCUMULATORS, _LARGE):
                one, other = (
                    mean.RULES[name].apply(
                        totals.astype(np.float32) if name.startswith("binary32") else totals,
                        mean.RULES[name].prepare(real, count),
                    )
                    for name in (first, second)
                )
                for place in np.flatnonzero(np.asarray(one != other))[:1]:
                    yield Example(
                        f"sum {totals[place]} of {count} values times {real}", (f"{one[place]}", f"{other[place]}")
                    )


def _array(scale: float) -> np.ndarray:
    return np.array([scale], np.float32)


def _quantize(first: str, second: str) -> Iterator[Example]:
    for scale in (0.5, 0.1, 0.0173, 0.3):
        x = np.arange(-400, 400, dtype=np.float32) * np.float32(scale / 2)
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
    q = np.arange(-128, 128, dtype=np.int8)
    for scale in (0.1, 0.0173, 0.3, 0.0077):
        real = [quantize.DEQUANTIZE[name](q, _array(scale), np.array([3])) for name in (first, second)]
        for place in np.flatnonzero(real[0] != real[1])[:1]:
            yield Example(
                f"q {q[place]}, scale {np.float32(scale)}, zero point 3", (repr(real[0][place]), repr(real[1][place]))
            )


_FINDERS: dict[str, Callable[[str, str], Iterator[Example]]] = {
    "accumulate": _accumulate,
    "average": _average,
    "dequantize": _dequantize,
    "mean": _mean,
    "quantize": _quantize,
    "rescale": _rescale,
    "scale_form": _scale_form,
    "scale_form_per_axis": _scale_form,
    "store": _store,
}
