"""Faults of comparisons and of the search for an extreme."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...operators import find
from ...plan import Plan
from .case import Case, Hypothesis, Values
from .common import Array, of_computation


def comparisons(case: Case) -> Iterator[Hypothesis]:
    """Numbers compared in other forms, ties and order of positions."""
    operator = find(case.step.operator)
    if operator is None or len(case.plan.steps) != 1:
        return
    if operator.truth is not None:
        for title, text, form in _FORMS:
            yield of_computation(title, text, _compared(operator.truth, form))
    if operator.largest is not None and operator.elementwise:
        yield of_computation(
            "quantized values compared unsigned",
            "quantized values are compared as unsigned numbers",
            _unsigned(np.maximum if operator.largest else np.minimum),
        )
    if operator.largest is not None and operator.positions:
        for title, text, position in _positions(operator.largest):
            yield of_computation(title, text, _found(position))


_Form = Callable[[Array, np.float32, int], Array]


def _shifted(bits: int) -> _Form:
    """(q - zero point) * 2^bits * scale in fixed point, rounded up at ties."""

    def form(code: Array, scale: np.float32, point: int) -> Array:
        fraction, exponent = np.frexp(np.float64(scale))
        multiplier = int(np.floor(np.ldexp(fraction, 31) + 0.5))
        right = 31 - int(exponent)
        product = ((code - point) << bits).astype(object) * multiplier
        return np.asarray((product + (1 << (right - 1))) >> right, np.int64)

    return form


def _quantized(code: Array, scale: np.float32, point: int) -> Array:
    return code


def _centred(code: Array, scale: np.float32, point: int) -> Array:
    return code - point


def _real(dtype: type) -> _Form:
    return lambda code, scale, point: (code - point).astype(dtype) * dtype(scale)


def _whole(code: Array, scale: np.float32, point: int) -> Array:
    return np.rint((code - point).astype(np.float64) * np.float64(scale))


_FORMS: tuple[tuple[str, str, _Form], ...] = (
    (
        "quantized values compared",
        "quantized values are compared as they are, whatever scales and zero points",
        _quantized,
    ),
    (
        "quantized values without zero points compared",
        "quantized values are compared without regard to scales",
        _centred,
    ),
    ("compared in binary32", "real numbers in binary32 are compared", _real(np.float32)),
    ("compared in binary64", "real numbers in binary64 are compared", _real(np.float64)),
    ("compared in binary16", "real numbers in binary16 are compared", _real(np.float16)),
    ("compared as integers", "real numbers are rounded before they are compared", _whole),
    *(
        (f"compared with a left shift of {bits}", f"numbers are compared with {bits} more bits", _shifted(bits))
        for bits in (0, 4, 6, 7, 8, 9, 10, 12, 16, 20)
    ),
)


def _compared(truth: Callable[[Array, Array], Array], form: _Form) -> Callable[[Plan, Values], Array]:
    def compute(plan: Plan, values: Values) -> Array:
        made = []
        for index in plan.steps[0].inputs:
            assert index is not None
            tensor = plan.tensors[index]
            assert tensor.quantization is not None
            code = (tensor.value if tensor.value is not None else values[tensor.name]).astype(np.int64)
            point = int(tensor.quantization.zero_points[0])
            made.append(form(code, np.float32(tensor.quantization.scales[0]), point))
        return truth(*made)

    return compute


def _unsigned(choose: Callable[..., Array]) -> Callable[[Plan, Values], Array]:
    def compute(plan: Plan, values: Values) -> Array:
        found = []
        for index in plan.steps[0].inputs:
            assert index is not None
            tensor = plan.tensors[index]
            found.append(tensor.value if tensor.value is not None else values[tensor.name])
        if found[0].dtype.kind != "i":
            raise ValueError("quantized values are unsigned")
        unsigned = np.dtype(f"u{found[0].dtype.itemsize}")
        return choose(*(f.view(unsigned) for f in found)).view(found[0].dtype)

    return compute


def _positions(largest: bool) -> Iterator[tuple[str, str, Callable[[Array, int], Array]]]:
    best: Callable[..., Array] = np.argmax if largest else np.argmin
    worst: Callable[..., Array] = np.argmin if largest else np.argmax

    def last(x: Array, axis: int) -> Array:
        return x.shape[axis] - 1 - best(np.flip(x, axis), axis)

    yield "last of several extremes", "of equal ones the last is taken", last
    yield "other extreme", "the position of the other extreme is found", lambda x, axis: worst(x, axis)
    yield "positions counted from 1", "positions are counted from 1", lambda x, axis: best(x, axis) + 1
    yield (
        "last position left out",
        "the last position is not looked at",
        lambda x, axis: best(x.take(range(x.shape[axis] - 1), axis), axis),
    )
    yield (
        "first position left out",
        "the first position is not looked at",
        lambda x, axis: 1 + best(x.take(range(1, x.shape[axis]), axis), axis),
    )
    yield (
        "quantized values taken as unsigned",
        "quantized values are compared as unsigned numbers",
        lambda x, axis: best(x.view(np.dtype(f"u{x.dtype.itemsize}")), axis),
    )
    yield (
        "magnitudes compared",
        "quantized values are compared without their signs",
        lambda x, axis: best(np.abs(x.astype(np.int64)), axis),
    )
    yield (
        "search begins at 0",
        "only what exceeds quantized value 0 is found",
        lambda x, axis: best(np.maximum(x, 0) if largest else np.minimum(x, 0), axis),
    )
    for bits in (1, 2, 4):
        name = f"lowest {bits} bits not compared"
        yield name, f"quantized values are compared without their lowest {bits} bits", _cut(best, bits)
    yield "position in 4 lanes", "four lanes are searched, the first lane with the extreme wins", _lanes(best, 4)
    yield "position in 16 lanes", "sixteen lanes are searched, the first lane with the extreme wins", _lanes(best, 16)
    yield "positions cut to 4 bits", "positions are cut to 4 bits", lambda x, axis: best(x, axis) & 15
    yield "positions cut to 8 bits", "positions are cut to 8 bits", lambda x, axis: best(x, axis) & 255
    yield (
        "positions signed in 8 bits",
        "positions are cut to 8 bits with a sign",
        lambda x, axis: best(x, axis).astype(np.int8),
    )
    yield (
        "highest quantized value never wins",
        "the highest quantized value counts as the one before",
        lambda x, axis: best(np.minimum(x, np.iinfo(x.dtype).max - 1), axis),
    )
    yield (
        "lowest quantized value is the next",
        "the lowest quantized value counts as the next",
        lambda x, axis: best(np.maximum(x, np.iinfo(x.dtype).min + 1), axis),
    )


def _cut(best: Callable[..., Array], bits: int) -> Callable[[Array, int], Array]:
    return lambda x, axis: best(x >> bits, axis)


def _lanes(best: Callable[..., Array], count: int) -> Callable[[Array, int], Array]:
    """Of equal extremes the one in the lowest lane is taken, not the one that comes first."""

    def position(x: Array, axis: int) -> Array:
        rows = np.moveaxis(x, axis, -1)
        order = np.array(sorted(range(rows.shape[-1]), key=lambda k: (k % count, k)))
        return np.asarray(order[best(rows[..., order], -1)])

    return position


def _found(position: Callable[[Array, int], Array]) -> Callable[[Plan, Values], Array]:
    def compute(plan: Plan, values: Values) -> Array:
        step = plan.steps[0]
        (index, *_) = step.inputs
        assert index is not None
        x = values[plan.tensors[index].name]
        wanted = plan.tensors[step.outputs[0]]
        return position(x, int(step["axis"])).astype(wanted.type.numpy).reshape(wanted.shape)

    return compute
