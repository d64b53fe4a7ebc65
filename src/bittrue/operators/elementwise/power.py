"""power: first ^ second, with NumPy broadcasting, by a rule; without one, 32-bit integers exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...errors import RunError
from ...rules import beyond_32_bits, power
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise


def lower(call: Call) -> Lowered:
    """Whether an only exponent, or one for every row, is treated on its own; of integers an only one of another shape
    than the bases.
    """
    shapes = call.input(0).shape, call.input(1).shape, call.output.shape
    rule = power.RULES[call.rules.get("power", "finite_products_or_library")]
    return Lowered(parameters={"one_exponent": rule.alone(*shapes)})


def _by_squaring(
    base: np.ndarray, exponent: np.ndarray, multiply: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    result = np.ones_like(base)
    bits = int(exponent.max()).bit_length() if exponent.size else 0
    for bit in range(bits):
        result = np.where((exponent >> bit) & 1, multiply(result, base), result)
        base = multiply(base, base)
    return result


def _of_integers(step: Step, base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Powers outside 32 bits become what the rule makes of binary64 numbers, or wrap when there is one exponent >= 1.

    In binary64 every power below 2^53 is exact, and no larger one comes back below it: no math library is needed.
    """
    if (exponent < 0).any():
        raise RunError("BT-POW-EXPONENT", "an integer cannot be raised to a negative power", place=step.place)
    convert = beyond_32_bits.RULES[step.rules["beyond_32_bits"]]
    wraps = step["one_exponent"] and bool((exponent > 0).all())

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if wraps:
            return _by_squaring(a, b, lambda x, y: fixed_point.wrap_s32(x * y))
        with np.errstate(over="ignore", invalid="ignore"):
            return convert(_by_squaring(a.astype(np.float64), b, np.multiply))

    return blockwise(block, [base, exponent], base.dtype)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's power; exponents of real numbers are converted to the type of the base."""
    base, exponent = inputs
    if "power" not in step.rules:
        return [_of_integers(step, base, exponent)]
    rule, alone, real = power.RULES[step.rules["power"]], step["one_exponent"], np.dtype(np.float32)
    apply = rule.apply
    if rule.as_stored:
        return [np.asarray(apply(base, exponent, alone), order="C")]
    return [blockwise(lambda x, y: apply(x, y, alone), [base, np.asarray(exponent, np.float32)], real, real)]


OPERATOR = Operator(
    "power",
    ("power", "beyond_32_bits"),
    broadcast_shape,
    lower,
    reference,
    "first to the power of second",
    elementwise=2,
)
