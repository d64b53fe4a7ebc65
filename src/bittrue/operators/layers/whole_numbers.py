"""What layers share whose tensors hold integers, as binary32 or in 8 bits, and whose scales are binary64 operands.

Operands: x, w, bias, x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point. All but x are constant; those
of w and y may be one per output channel.

    acc = f32(sum of (x - z_x)(w - z_w)) + f32(bias), in binary32
    y = clamp(f32(f32(rescale(acc)) + f32(z_y)), low, high)

Sums of integers are exact in any order while no partial sum can leave 2^24. Beyond that, and for other numbers,
the order decides: rows with a rule for real sums go on with it, all others refuse while running. Rows without a rule
for `rescale` leave that out. Where everything has 8 bits and the plan proves the sums, a layer of integers does the
step.
"""

from __future__ import annotations

import numpy as np

from ...arithmetic.fixed_point import S32_MAX
from ...errors import RunError
from ...graph import Attribute, data_type
from ...records import replace
from ...rules import channel_parameters, real_product, rescale, scale_form
from ..core.base import Bound, Call, Step
from .integer_layers import bound, check_channels, check_single, points_of, single, weight_zero_points, zero_points

SLOTS = ("accumulate", "scale_form", "rescale", "store", "real_product", "channel_parameters")
X, W, BIAS, X_SCALE, X_POINT, W_SCALE, W_POINT, Y_SCALE, Y_POINT = range(9)
_ROLES = {
    X_SCALE: "x_scale",
    X_POINT: "x_zero_point",
    W: "weights",
    W_SCALE: "w_scale",
    W_POINT: "w_zero_point",
    Y_SCALE: "y_scale",
    Y_POINT: "y_zero_point",
}
EXACT = 1 << 24
_EIGHT = ("u8", "s8")
# What `rescale` prepares.
_MULTIPLIERS = ("multiplier", "exponent", "factor")


def check_operands(call: Call, channels: int) -> None:
    """What is no tensor of the layer has one value, or one per output channel."""
    call.expect(9)
    for position, role in _ROLES.items():
        call.constant(position, role)
        if position in (X_SCALE, X_POINT):
            check_single(call, position, role)
        elif position != W:
            check_channels(call, position, channels, role)
    if call.has(BIAS) and call.input(BIAS).shape != (channels,):
        raise call.invalid("BT-BIAS-LENGTH", f"bias has shape {list(call.input(BIAS).shape)} for {channels} channels")


def _scales(call: Call) -> list[np.ndarray]:
    """Scales of x, w and y; InvalidModelError unless they are positive and finite."""
    found = [np.reshape(call.constant(position, "scale"), -1) for position in (X_SCALE, W_SCALE, Y_SCALE)]
    for scales, role in zip(found, ("input", "weight", "output"), strict=True):
        if not (np.isfinite(scales) & (scales > 0)).all():
            raise call.invalid(
                "BT-QUANT-SCALE",
                f"{role} scales must be positive numbers, found {scales[:4].tolist()}",
                "quantize the model again",
            )
    return found


def multipliers(call: Call) -> np.ndarray:
    """Real multipliers by the row's form, one or one per channel."""
    return scale_form.form(call.rules["scale_form"], *_scales(call))


def rescaling(call: Call) -> dict[str, np.ndarray]:
    """What the row's rescale needs; nothing without one."""
    if "rescale" not in call.rules:
        return {}
    try:
        return rescale.prepare(call.rules["rescale"], multipliers(call))
    except ValueError as error:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"input scale * weight scale / output scale: {error}",
            "the runtime stops there, or its result is undefined; quantize the model again",
        ) from None


def prepared(call: Call) -> tuple[dict[str, Attribute], dict[str, np.ndarray]]:
    """Parameters and arrays of a step: limits, zero points, multipliers."""
    points = [
        weight_zero_points(call.constant(W_POINT, "w_zero_point")),
        zero_points(call.constant(Y_POINT, "y_zero_point"), "output_zero_point", "output_zero_points"),
    ]
    parameters: dict[str, Attribute] = {
        "low": float(call.attribute("low")),
        "high": float(call.attribute("high")),
        "input_zero_point": int(single(call.constant(X_POINT, "x_zero_point"))),
        "output_dtype": call.output.dtype,
        **points[0][0],
        **points[1][0],
    }
    return parameters, {**points[0][1], **points[1][1], **rescaling(call)}


def _within(call: Call, position: int, points: int) -> bool:
    dtype, value = call.input(position).type, call.constant(points, "zero point")
    return bool(((value >= dtype.minimum) & (value <= dtype.maximum)).all())


def is_8_bit_layer(call: Call) -> bool:
    """Everything has 8 bits, and no sum leaves 2^24 unless its result is then limited to an end of 8 bits by far.

    A layer of integers then gives the same: its sums have 32 bits.
    """
    if "rescale" not in call.rules:
        return False
    types = call.input(X).dtype, call.input(W).dtype, call.output.dtype
    if any(dtype not in _EIGHT for dtype in types) or (call.has(BIAS) and call.input(BIAS).dtype != "s32"):
        return False
    if call.input(Y_SCALE).size > 1 or call.input(Y_POINT).size > 1:
        return False
    if not _within(call, X, X_POINT) or not _within(call, W, W_POINT):
        return False
    proven = bound_8_bit(call).magnitude
    if proven < EXACT or proven > S32_MAX:
        return proven < EXACT
    # Two roundings move a result by less than 2: beyond this it is limited, whatever the sum's last bits are.
    x, w, y = _scales(call)
    reached = float(x.min()) * float(w.min()) / float(y.max()) * EXACT
    return reached > 260 + abs(int(single(call.constant(Y_POINT, "y_zero_point"))))


def bound_8_bit(call: Call) -> Bound:
    """The proven bound of sums of 8-bit operands, with a register of 32 bits."""
    depth = call.input(W).size // max(1, call.input(W).shape[0])
    call = replace(call, rules={"accumulate": "s32_wrap"})
    return bound(call, (X, X_POINT), (W, W_POINT), depth, 0, BIAS)


def centered_reals(step: Step, x: np.ndarray, weights: np.ndarray, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x - z_x and w - z_w in binary32; `axis`: of the output channels in the weights."""
    shape = [1] * weights.ndim
    shape[axis] = -1
    points = np.reshape(np.asarray(points_of(step, "weight_zero_point"), np.float32), shape)
    return x.astype(np.float32) - np.float32(step["input_zero_point"]), weights.astype(np.float32) - points


def is_whole(array: np.ndarray) -> bool:
    """Whether all numbers are finite and whole."""
    return array.dtype.kind in "iu" or bool((np.isfinite(array) & (np.rint(array) == array)).all())


def products(step: Step, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left[M, K] right[K, N] in binary32; RunError for sums that depend on the order of their terms, without a rule."""
    exact = is_whole(left) and is_whole(right)
    if exact:
        widest = float(np.abs(right).max(initial=0))
        sums = float(np.abs(left).sum(axis=1, dtype=np.float64).max(initial=0)) * widest
        if sums >= EXACT:
            # Sums of magnitudes bound partial sums of any order.
            sums = float((np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)).max(initial=0))
        exact = sums < EXACT
    return multiply(step, left, right, exact)


def multiply(step: Step, left: np.ndarray, right: np.ndarray, exact: bool) -> np.ndarray:
    """The same where it is known whether all sums are exact."""
    if exact:
        return np.asarray(left @ right)
    if "real_product" not in step.rules:
        raise RunError(
            "BT-SUM-ORDER",
            "sums of numbers that are not whole, or that can leave 2^24, in binary32: their last bits depend on the"
            " matrix library of the machine",
            place=step.place,
            advice="feed integers, and limit what layers before this one give (saturate)",
        )
    with np.errstate(all="ignore"):
        return real_product.RULES[step.rules["real_product"]].apply(left, right, None, 1.0, 1.0, real_product.Layout())


def finished(step: Step, sums: np.ndarray, bias: np.ndarray | None, axis: int) -> np.ndarray:
    """From sums in binary32 to the stored result; `axis`: of the channels."""
    spread = channel_parameters.RULES[step.rules.get("channel_parameters", "of_axis")]

    def placed(values: np.ndarray) -> np.ndarray:
        return spread(values, sums.shape, axis) if values.size > 1 else values.reshape(-1)

    with np.errstate(all="ignore"):
        acc = sums
        if bias is not None:
            acc = acc + channel_parameters.of_axis(bias.astype(np.float32), sums.shape, axis)
        if "rescale" in step.rules:
            arrays = {name: placed(array) for name, array in step.arrays.items() if name in _MULTIPLIERS}
            acc = rescale.RULES[step.rules["rescale"]].apply(_whole(step, acc), arrays).astype(np.float32)
        if "output_zero_points" in step.arrays:
            acc = acc + placed(step.arrays["output_zero_points"]).astype(np.float32)
        elif step["output_zero_point"]:
            acc = acc + np.float32(step["output_zero_point"])
        low, high = np.float32(step["low"]), np.float32(step["high"])
        acc = np.where(acc > high, high, acc)
        acc = np.where(acc < low, low, acc)
    return np.ascontiguousarray(acc).astype(data_type(step["output_dtype"]).numpy)


def _whole(step: Step, acc: np.ndarray) -> np.ndarray:
    if not is_whole(acc) or (acc.size and float(np.abs(acc).max()) >= 2.0**31):
        raise RunError(
            "BT-ACCUMULATOR",
            "accumulators that are no integers of 32 bits have no defined rescaling",
            place=step.place,
            advice="check the bias of this layer, and what it is fed",
        )
    return acc.astype(np.int64)
