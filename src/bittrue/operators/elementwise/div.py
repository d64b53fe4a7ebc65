"""div: first / second, with NumPy broadcasting; slot `real_divide`: how real numbers are divided, if not at once.

The attribute `rounding` may ask for the quotient rounded ``down``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import beyond_32_bits, divide, plain_range, store
from ..core.accumulator import fused_range
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise
from .add import plain, plain_parameters


def lower(call: Call) -> Lowered:
    """Multiplier and clamps; plain integers may carry a zero point, which then must not occur as a divisor either."""
    first, second = call.input(0), call.input(1)
    if call.node.attributes.get("rounding") == "down":
        if "divide" in call.rules:
            raise call.unsupported("BT-DIVIDE-ROUNDING", "quotients of quantized values are not rounded down")
        return Lowered({"form": "floored"})
    if "divide" not in call.rules:
        carried = second.type.is_integer and second.tensor.quantization is not None
        return Lowered(parameters={**plain_parameters(call), "refused_divisor": second.zero_point if carried else 0})
    scales = [float(o.scale) for o in (first, second, call.output)]
    try:
        arrays = divide.RULES[call.rules["divide"]].prepare(*scales)
    except ValueError as error:
        raise call.invalid("BT-MULTIPLIER", f"the scales give no usable multiplier: {error}") from None
    return Lowered(
        parameters={
            **fused_range(call),
            "form": "quantized",
            "first_zero_point": first.zero_point,
            "second_zero_point": second.zero_point,
        },
        arrays=arrays,
    )


def refuse_divisor(step: Step, divisors: np.ndarray, value: int, meaning: str) -> None:
    """RunError when any element of `divisors` is `value`."""
    if (divisors == value).any():
        where = [int(i) for i in np.argwhere(divisors == value)[0]]
        raise RunError(
            "BT-DIVIDE-ZERO",
            f"the divisor is {meaning} at {where}",
            place=step.place,
            advice="there is no result for it; keep zero out of the divisor",
        )


def refuse_overflow(step: Step, lowest: int, a: np.ndarray, b: np.ndarray) -> None:
    """RunError for `lowest` over -1, whose quotient does not fit its type."""
    if ((a == lowest) & (b == -1)).any():
        raise RunError(
            "BT-DIVIDE-RANGE",
            f"{lowest} over -1 has no defined result in the kernels",
            place=step.place,
            advice="the quotient does not fit the type; keep one of the two values out",
        )


def _floor_of_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """f32(floor(f64(a) / f64(b)))."""
    with np.errstate(all="ignore"):
        quotient = np.floor(a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
    return plain_range.with_first_nan(quotient, a, b)


def _floored(step: Step, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Toward minus infinity, exact for up to 32 bits.

    The one quotient that does not fit, minimum / -1, becomes what the rule makes of it in 32 bits.

    In 8 and 16 bits it stops the run: the kernels convert from binary64, which gives the minimum in some of their
    loops and the maximum in others.
    """
    refuse_divisor(step, second, 0, "0")
    if first.dtype.kind == "f":
        return blockwise(_floor_of_quotient, [first, second], first.dtype, first.dtype)
    lowest = int(np.iinfo(first.dtype).min)

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if first.dtype.itemsize < 4:
            refuse_overflow(step, lowest, a, b)
            return np.floor_divide(a, b)
        beyond = beyond_32_bits.RULES[step.rules["beyond_32_bits"]](np.array(-float(lowest)))
        return np.where((a == lowest) & (b == -1), beyond, np.floor_divide(a, b))

    return blockwise(block, [first, second], first.dtype)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotient toward zero in the type; the one quotient that does not fit, 2^31 in 32 bits, saturates."""
    if a.dtype != np.int32:
        # Other widths wrap, which gives their lowest value.
        whole = a // b
        return whole if a.dtype.kind == "u" else whole + ((whole < 0) & (whole * b != a)).astype(a.dtype)
    quotient = a.astype(np.int64) // b
    quotient += (quotient < 0) & (quotient * b != a)
    return np.minimum(quotient, np.iinfo(np.int32).max).astype(np.int32)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Fixed-point reciprocal, product, rescale and store; or plain division with the fused clamp."""
    first, second = inputs
    if step["form"] == "floored":
        return [_floored(step, first, second)]
    if step["form"] == "plain":
        if first.dtype.kind == "f":
            function = divide.REAL[step.rules["real_divide"]] if "real_divide" in step.rules else np.divide
            return [plain(step, function, first, second)]
        refuse_divisor(step, second, 0, "0")
        refuse_divisor(step, second, step["refused_divisor"], "the zero point")
        return [plain(step, _truncated, first, second)]
    refuse_divisor(step, second, step["second_zero_point"], "the zero point, which stands for 0,")
    rule = divide.RULES[step.rules["divide"]]
    finish = store.RULES[step.rules["store"]]
    zero_points = step["first_zero_point"], step["second_zero_point"]
    low, high, zero_point = step["low"], step["high"], step["output_zero_point"]

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        quotient, defined = rule.apply(a - zero_points[0], b - zero_points[1], step.arrays)
        if not defined.all():
            at = int(np.argmin(defined))
            raise RunError(
                "BT-DIVIDE-RANGE",
                f"{int(a[at])} / {int(b[at])} (quantized values) needs a right shift outside 0..31, "
                "which the kernels leave undefined: the numerator is too small beside the divisor",
                place=step.place,
                advice="dequantize ahead of the division, or choose a smaller output scale",
            )
        return finish(quotient, zero_point, low, high)

    return [blockwise(block, [first, second], first.dtype)]


OPERATOR = Operator(
    "div",
    ("divide", "store", "activation_range", "plain_range", "real_divide", "beyond_32_bits"),
    broadcast_shape,
    lower,
    reference,
    "element-wise quotient",
    elementwise=2,
)
