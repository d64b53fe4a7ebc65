"""Functions computed on real numbers and rounded once, where the specified arithmetic works on integers; and the same
with the approximations that devices make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...operators import Step, find
from ...operators.core.functions import (
    BILINEAR,
    LENGTH_ONE,
    LOG_SOFTMAX,
    LOGISTIC,
    SOFTMAX,
    SUM,
    TANH,
    Function,
    blended,
    log_shares,
    of_length_one,
    shares,
)
from ...operators.core.role_quantization import at, of_node
from ...plan import Plan
from .case import Case, Hypothesis, Values
from .common import Array, of_computation
from .roundings import TIES

# From centred real inputs (each in its dtype) and the step to the real result.
Formula = Callable[[Step, "list[Array]"], Array]
_Change = Callable[[Array], Array]


def exact_results(case: Case) -> Iterator[Hypothesis]:
    """Every tie on the exact and on the binary32 result; approximations rounded to nearest."""
    operator = find(case.step.operator)
    if operator is None or len(case.plan.steps) != 1 or case.theirs[0].dtype.kind not in "iu":
        return
    function = operator.function
    if function is not None and (function in _APPROXIMATIONS or function is SUM):
        exact = function

        def formula(step: Step, x: list[Array]) -> Array:
            return exact.of(step, x[0])

        for title, dtype in (("exact", np.longdouble), ("binary32", np.float32)):
            for tie, words, rounds in TIES:
                text = f"the {title} result is rounded {words}"
                computed = _rounded(case, formula, dtype, rounds)
                yield of_computation(f"{title} function, {tie}", text, computed, "rounding")
    for title, text, other in _APPROXIMATIONS.get(function, ()):
        yield of_computation(title, text, _rounded(case, other, np.float64, _half_up))


def _half_up(value: Array) -> Array:
    return np.floor(value + value.dtype.type(0.5))


def _pairs(case: Case) -> dict[str, tuple[Any, int]]:
    """Scale and zero point by tensor: of tensors that carry them, and of roles that have them as constant operands."""
    graph, node = case.segment.graph, case.segment.node
    found = {t.name: t.quantization for t in graph.tensors if t.quantization is not None}
    pairs = {name: (given.scales[0], int(given.zero_points[0])) for name, given in found.items()}
    for role in getattr(find(node.operator), "roles", ()):
        given = of_node(graph.tensors, node, role)
        index = node.outputs[0] if role.position < 0 else at(node.inputs, role.position)
        if index is not None and given.scale_at is not None and given.scales is not None:
            point = 0 if given.zero_points is None else int(np.asarray(given.zero_points).flat[0])
            pairs[graph.tensors[index].name] = np.asarray(given.scales).flat[0], point
    return pairs


def _rounded(
    case: Case, formula: Formula, dtype: type, rounds: Callable[[Array], Array]
) -> Callable[[Plan, Values], Array]:
    pairs = _pairs(case)

    def compute(plan: Plan, values: Values) -> Array:
        step = plan.steps[0]
        reals = []
        for index in step.inputs:
            if index is None:
                continue
            tensor = plan.tensors[index]
            value = tensor.value if tensor.value is not None else values[tensor.name]
            if tensor.name in pairs:
                scale, point = pairs[tensor.name]
                reals.append((value.astype(np.int64) - point).astype(dtype) * dtype(scale))
        out = plan.tensors[step.outputs[0]]
        if out.name not in pairs or not reals:
            raise ValueError("scales are not known")
        with np.errstate(all="ignore"):
            real = np.asarray(formula(step, reals), dtype) / dtype(pairs[out.name][0])
        if not np.isfinite(real).all():
            raise ValueError("no finite number")
        kind = np.iinfo(out.type.numpy)
        whole = rounds(real) + dtype(pairs[out.name][1])
        return np.clip(whole, kind.min, kind.max).astype(out.type.numpy).reshape(out.shape)

    return compute


def _bits(bits: int) -> Callable[[Array], Array]:
    return lambda share: np.floor(share * 2**bits + 0.5) / 2**bits


def _cut(bits: int) -> Callable[[Array], Array]:
    return lambda share: np.floor(share * 2**bits) / 2**bits


def _pieces(function: Callable[[Array], Array], width: float) -> Formula:
    """Straight lines between points `width` apart."""

    def formula(step: Step, x: list[Array]) -> Array:
        below = np.floor(x[0] / width) * width
        share = (x[0] - below) / width
        return function(below) * (1 - share) + function(below + width) * share

    return formula


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _base_two(step: Step, x: list[Array]) -> Array:
    powers = np.exp2(x[0] - x[0].max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _narrow_sum(bits: int) -> Formula:
    """Exponentials of a few bits, summed up so."""

    def formula(step: Step, x: list[Array]) -> Array:
        powers = _bits(bits)(np.exp(x[0] - x[0].max(-1, keepdims=True)))
        return np.asarray(powers / powers.sum(-1, keepdims=True))

    return formula


def _other_axis(function: Callable[[Array], Array]) -> Formula:
    """The function along the axis before the last one."""

    def formula(step: Step, x: list[Array]) -> Array:
        if x[0].ndim < 2:
            raise ValueError("one axis")
        return function(x[0].swapaxes(-1, -2)).swapaxes(-1, -2)

    return formula


def _all_axes(function: Callable[[Array], Array]) -> Formula:
    return lambda step, x: function(x[0].reshape(1, -1)).reshape(x[0].shape)


def _without_maximum(step: Step, x: list[Array]) -> Array:
    """Exponentials in 16 bits below a fixed largest number instead of below the row's own."""
    powers = np.floor(np.exp(np.minimum(x[0], 8.0)) * 16) / 16
    total = powers.sum(-1, keepdims=True)
    return np.asarray(powers / np.where(total > 0, total, 1))


def _cut_off(least: float) -> Formula:
    """What lies further than so much below the maximum counts as nothing."""

    def formula(step: Step, x: list[Array]) -> Array:
        apart = x[0] - x[0].max(-1, keepdims=True)
        powers = np.where(apart < least, 0, np.exp(apart))
        return np.asarray(powers / powers.sum(-1, keepdims=True))

    return formula


def _inverse_root(bits: int) -> Formula:
    """The inverse root in so many bits."""

    def formula(step: Step, x: list[Array]) -> Array:
        squares = (x[0] * x[0]).sum(-1, keepdims=True)
        fraction, exponent = np.frexp(1 / np.sqrt(np.where(squares > 0, squares, 1)))
        return np.asarray(x[0] * np.ldexp(_bits(bits)(fraction), exponent))

    return formula


def _largest_norm(step: Step, x: list[Array]) -> Array:
    largest = np.abs(x[0]).max(-1, keepdims=True)
    return np.asarray(x[0] / np.where(largest > 0, largest, 1))


def _l1(step: Step, x: list[Array]) -> Array:
    total = np.abs(x[0]).sum(-1, keepdims=True)
    return np.asarray(x[0] / np.where(total > 0, total, 1))


def _squares(step: Step, x: list[Array]) -> Array:
    squares = (x[0] * x[0]).sum(-1, keepdims=True)
    return np.asarray(x[0] / np.where(squares > 0, squares, 1))


def _only_maximum(step: Step, x: list[Array]) -> Array:
    return np.asarray(x[0] - x[0].max(-1, keepdims=True))


def _narrow_logarithm(bits: int) -> Formula:
    def formula(step: Step, x: list[Array]) -> Array:
        apart = x[0] - x[0].max(-1, keepdims=True)
        total = _bits(bits)(np.log(np.exp(apart).sum(-1, keepdims=True)))
        return np.asarray(apart - total)

    return formula


def _weighted(whole: Callable[[Array], Array]) -> Formula:
    return lambda step, x: blended(step, x[0], whole)


def _nearest(step: Step, x: list[Array]) -> Array:
    return blended(step, x[0], np.rint)


def _twice(step: Step, x: list[Array]) -> Array:
    """Rounded after the rows, and again after the columns."""
    quantum = np.abs(x[0][np.abs(x[0]) > 0]).min(initial=1.0)
    return blended(step, x[0], between=lambda line: np.floor(line / quantum + 0.5) * quantum)


_Named = tuple[str, str, Formula]
_APPROXIMATIONS: dict[Function | None, tuple[_Named, ...]] = {
    LOGISTIC: (
        *(
            (f"straight lines {w} wide", f"between points {w} apart it is a straight line", _pieces(_sigmoid, w))
            for w in (0.0625, 0.125, 0.25, 0.5, 1.0)
        ),
        ("hard sigmoid", "clamp(x / 6 + 1 / 2) instead", lambda s, x: np.clip(x[0] / 6 + 0.5, 0, 1)),
        ("hard sigmoid of slope 1/5", "clamp(x / 5 + 1 / 2) instead", lambda s, x: np.clip(x[0] / 5 + 0.5, 0, 1)),
        (
            "saturates beyond 4",
            "beyond 4 it is 0 or 1",
            lambda s, x: np.where(np.abs(x[0]) > 4, x[0] > 0, _sigmoid(x[0])),
        ),
        (
            "saturates beyond 8",
            "beyond 8 it is 0 or 1",
            lambda s, x: np.where(np.abs(x[0]) > 8, x[0] > 0, _sigmoid(x[0])),
        ),
        ("base two", "2^x instead of e^x", lambda s, x: 1 / (1 + np.exp2(-x[0]))),
    ),
    TANH: (
        *(
            (f"straight lines {w} wide", f"between points {w} apart it is a straight line", _pieces(np.tanh, w))
            for w in (0.0625, 0.125, 0.25, 0.5, 1.0)
        ),
        ("hard tanh", "clamp(x, -1, 1) instead", lambda s, x: np.clip(x[0], -1, 1)),
        (
            "saturates beyond 2",
            "beyond 2 it is -1 or 1",
            lambda s, x: np.where(np.abs(x[0]) > 2, np.sign(x[0]), np.tanh(x[0])),
        ),
        (
            "saturates beyond 4",
            "beyond 4 it is -1 or 1",
            lambda s, x: np.where(np.abs(x[0]) > 4, np.sign(x[0]), np.tanh(x[0])),
        ),
        ("logistic of the same input", "2 logistic(x) - 1 instead", lambda s, x: 2 * _sigmoid(x[0]) - 1),
    ),
    SOFTMAX: (
        ("base two", "2^x instead of e^x", _base_two),
        *(
            (f"exponentials of {b} bits", f"exponentials are kept in {b} bits", _narrow_sum(b))
            for b in (7, 8, 10, 12, 15)
        ),
        ("along the axis before", "it works along the axis before the last one", _other_axis(shares)),
        ("over all axes", "it works on all elements at once", _all_axes(shares)),
        ("maximum not subtracted", "the largest number of a row is not subtracted", _without_maximum),
        ("cut off at 4", "what lies 4 below the maximum counts as nothing", _cut_off(-4.0)),
        ("cut off at 8", "what lies 8 below the maximum counts as nothing", _cut_off(-8.0)),
        (
            "not divided by the sum",
            "exponentials are not divided by their sum",
            lambda s, x: np.exp(x[0] - x[0].max(-1, keepdims=True)),
        ),
        ("hard maximum", "the largest number alone is 1", lambda s, x: (x[0] == x[0].max(-1, keepdims=True)) * 1.0),
    ),
    LOG_SOFTMAX: (
        ("along the axis before", "it works along the axis before the last one", _other_axis(log_shares)),
        ("over all axes", "it works on all elements at once", _all_axes(log_shares)),
        ("logarithm of the sum left out", "only the maximum is subtracted", _only_maximum),
        *(
            (f"logarithm of {b} bits", f"the logarithm has {b} bits behind the point", _narrow_logarithm(b))
            for b in (1, 2, 3, 4, 6)
        ),
    ),
    LENGTH_ONE: (
        *(
            (f"inverse root of {b} bits", f"the inverse root has {b} bits", _inverse_root(b))
            for b in (6, 8, 10, 12, 15)
        ),
        ("largest magnitude as norm", "it is divided by the largest magnitude", _largest_norm),
        ("sum of magnitudes as norm", "it is divided by the sum of magnitudes", _l1),
        ("root left out", "it is divided by the sum of squares", _squares),
        ("along the axis before", "it works along the axis before the last one", _other_axis(of_length_one)),
        ("over all axes", "it works on all elements at once", _all_axes(of_length_one)),
    ),
    BILINEAR: (
        ("nearest instead of bilinear", "the nearest pixel is taken", _nearest),
        ("rounded twice", "it is rounded after rows and after columns", _twice),
        *(
            (f"weights of {b} bits", f"weights have {b} bits, rounded", _weighted(_bits(b)))
            for b in (1, 2, 3, 4, 5, 6, 7, 8, 9)
        ),
        *(
            (
                f"weights of {b} bits, cut off",
                f"weights have {b} bits, cut off",
                _weighted(_cut(b)),
            )
            for b in (4, 6, 7, 8, 9)
        ),
    ),
}
