"""Rescaling in fixed point with other ties, in layers, products and sums; ties of products of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...operators import Step, find
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values
from .common import Array
from .layers import Layer, last_layer
from .roundings import TIES

# v / 2^places, rounded, all s64.
Divide = Callable[[Array, Array], Array]


def _parts(value: Array, places: Array) -> tuple[Array, Array, Array]:
    """The quotient rounded down, the rest, and half of the divisor (0 where nothing is divided)."""
    whole = value >> places
    return whole, value - (whole << places), np.where(places > 0, np.int64(1) << np.maximum(places - 1, 0), 0)


def _nearest(goes_up: Callable[[Array, Array], Array]) -> Divide:
    """To nearest; `goes_up(value, whole)` says which ties go up."""

    def divide(value: Array, places: Array) -> Array:
        whole, rest, half = _parts(value, places)
        return whole + ((rest > half) | ((rest == half) & (half > 0) & goes_up(value, whole)))

    return divide


def _trunc(value: Array, places: Array) -> Array:
    whole, rest, _ = _parts(value, places)
    return whole + ((rest > 0) & (value < 0))


_TOWARD_ZERO = ("ties toward zero", "to nearest, ties toward zero")
_DIVIDE: dict[str, Divide] = {
    "ties up": _nearest(lambda value, whole: np.ones(value.shape, bool)),
    "ties away": _nearest(lambda value, whole: value > 0),
    "ties even": _nearest(lambda value, whole: whole % 2 != 0),
    "ties down": _nearest(lambda value, whole: np.zeros(value.shape, bool)),
    _TOWARD_ZERO[0]: _nearest(lambda value, whole: value < 0),
    "trunc": _trunc,
    "floor": lambda value, places: value >> places,
    "ceiling": lambda value, places: -(-value >> places),
}
_STEP = ("multiplier", "exponent")
# Of sums: each operand is brought to a common scale first.
_STEPS = (("first_multiplier", "first_exponent"), ("second_multiplier", "second_exponent"), _STEP)


def fixed_point(case: Case) -> Iterator[Hypothesis]:
    """Every tie in one step and every pair of ties in two, with the step's own multipliers; ties of real products."""
    step = case.step
    if last_layer(case.plan) is step:
        yield from _layer(case, step)
        return
    operator = find(step.operator)
    if operator is not None and operator.signs and step.parameters.get("form") == "rescaled" and _encoded(step, _STEPS):
        yield from _sum(case, operator.signs)


def _encoded(step: Step, names: Sequence[tuple[str, str]]) -> bool:
    arrays = step.arrays
    return step.rules.get("rescale", "").startswith("q31") and all(
        name in arrays and arrays[name].dtype.kind == "i" for pair in names for name in pair
    )


def _cause(case: Case, name: str, text: str) -> Cause:
    benign = case.largest in (0, 1)
    judged = "another rounding scheme, benign" if benign else "another rounding scheme"
    return Cause(name, f"{text}: {judged}", "rounding", benign)


def _ways(case: Case) -> Iterator[tuple[Cause, Callable[[Array, Array, Array], Array]]]:
    """Causes, and accumulators times multiplier and power of two."""
    for tie in _DIVIDE:
        name = f"product with a 31-bit multiplier, {tie}"
        yield _cause(case, name, f"the product with a 31-bit multiplier rounded once, {tie}"), _in_one_step(tie)
    for first in ("ties up", *(name for name in _DIVIDE if name != "ties up")):
        for second in _DIVIDE:
            text = f"the product rounded twice, high half {first}, power of two {second}"
            yield _cause(case, f"two steps, {first} then {second}", text), _in_two_steps(first, second)


def _in_two_steps(first: str, second: str) -> Callable[[Array, Array, Array], Array]:
    def rescaled(acc: Array, multiplier: Array, exponent: Array) -> Array:
        left = np.clip(acc << np.clip(exponent, 0, 31), -(1 << 31), (1 << 31) - 1)
        return _DIVIDE[second](_DIVIDE[first](left * multiplier, np.asarray(31)), np.maximum(-exponent, 0))

    return rescaled


def _in_one_step(tie: str) -> Callable[[Array, Array, Array], Array]:
    def rescaled(acc: Array, multiplier: Array, exponent: Array) -> Array:
        return _DIVIDE[tie](acc * multiplier, np.clip(31 - exponent, 0, 62))

    return rescaled


def _stored(step: Step, value: Array) -> Array:
    return np.clip(value + int(step["output_zero_point"]), int(step["low"]), int(step["high"]))


def _layer(case: Case, step: Step) -> Iterator[Hypothesis]:
    if _encoded(step, [_STEP]):
        for cause, rescaled in _ways(case):

            def end(layer: Layer, acc: Array, rescaled: Callable[..., Array] = rescaled) -> Array:
                multiplier, exponent = (layer.step.arrays[name].astype(np.int64) for name in _STEP)
                return _stored(layer.step, rescaled(acc, multiplier, exponent)).astype(layer.dtype)

            yield Hypothesis(cause, "rescale store", layer={"end": end})
    factor = step.arrays.get("factor")
    if factor is not None and factor.dtype.kind == "f":
        for tie, text, rounds in (*TIES, (*_TOWARD_ZERO, _toward_zero)):

            def ended(layer: Layer, acc: Array, rounds: Callable[[Array], Array] = rounds) -> Array:
                own = layer.step.arrays["factor"]
                product = acc.astype(own.dtype) * own
                return _stored(layer.step, rounds(product).astype(np.int64)).astype(layer.dtype)

            name = f"the same product, {tie}"
            yield Hypothesis(
                _cause(case, name, f"the same product rounded {text}"), "rescale store", layer={"end": ended}
            )

        def exact(layer: Layer, acc: Array) -> Array:
            product = acc.astype(np.longdouble) * layer.step.arrays["factor"].astype(np.longdouble)
            return _stored(layer.step, _toward_zero(product).astype(np.int64)).astype(layer.dtype)

        tie, text = _TOWARD_ZERO
        cause = _cause(case, f"exact product, {tie}", f"the exact product with the binary32 multiplier rounded {text}")
        yield Hypothesis(cause, "rescale store", layer={"end": exact})


def _toward_zero(value: Array) -> Array:
    whole = np.trunc(value)
    return whole + np.sign(value) * (np.abs(value - whole) > 0.5)


# Operands are shifted left by so many bits before they are rescaled.
_ALIGN = {"left_20": 20, "left_15": 15}


def _sum(case: Case, signs: tuple[int, ...]) -> Iterator[Hypothesis]:
    left = _ALIGN.get(case.step.rules.get("align", ""))
    if left is None:
        return
    for cause, rescaled in _ways(case):
        for last in (False, True):

            def compute(
                plan: Plan, values: Values, rescaled: Callable[..., Array] = rescaled, last: bool = last
            ) -> Array:
                return _added(plan, values, signs, left, rescaled, last)

            where = " where the sum is rescaled" if last else ""
            named = Cause(cause.name + where, cause.text.replace(":", f"{where}:", 1), cause.kind, cause.benign)
            yield Hypothesis(named, "rescale store", compute=compute)


def _added(
    plan: Plan, values: Values, signs: tuple[int, ...], left: int, rescaled: Callable[..., Array], last: bool
) -> Array:
    (step,) = plan.steps
    parts = []
    usual = _in_two_steps("ties up", "ties away")
    for index, point, names in zip(step.inputs, ("first_zero_point", "second_zero_point"), _STEPS, strict=False):
        assert index is not None
        tensor = plan.tensors[index]
        value = tensor.value if tensor.value is not None else values[tensor.name]
        raised = (value.astype(np.int64) - int(step[point])) << left
        parts.append((usual if last else rescaled)(raised, *(step.arrays[name] for name in names)))
    total = signs[0] * parts[0] + signs[1] * parts[1]
    output = plan.tensors[step.outputs[0]]
    result = _stored(step, rescaled(total, *(step.arrays[name] for name in _STEP)))
    return result.astype(output.type.numpy).reshape(output.shape)
