"""What recurrent operators on real numbers share: checks of states, zero vectors, rows quantized at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import activation
from ...rules.row_product import QuantizedRows, RowProductRule
from ..core.base import Call, Operand, Shape, Step

_ACTIVATIONS = ("relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")


def need_shape(call: Call, operand: Operand, shape: Shape, role: str, code: str) -> None:
    """A typed error unless the operand has this shape."""
    if operand.shape != shape:
        raise call.invalid(code, f"{role} must have shape {list(shape)}, found {list(operand.shape)}")


def check_states(call: Call, positions: Sequence[int], code: str) -> None:
    """Inputs at `positions` are variable tensors, all different, and no other input is one."""
    for position in positions:
        state = call.input(position, "state")
        if not state.tensor.is_variable:
            raise call.invalid(code, f"state '{state.name}' must be a variable tensor")
    others = [o for p, o in enumerate(call.inputs) if p not in positions and o is not None and o.tensor.is_variable]
    if others or len({call.input(p).index for p in positions}) != len(positions):
        raise call.unsupported(code, "a variable tensor is read in two roles")


def check_activation(call: Call, none: bool) -> str:
    """The fused activation; `none` says whether there may be none."""
    name = str(call.attribute("activation"))
    if name not in _ACTIVATIONS and not (none and name == "none"):
        wanted = ", ".join(_ACTIVATIONS) + (" or none" if none else "")
        raise call.unsupported("BT-ACTIVATION", f"fused activation '{name}', expected {wanted}")
    return name


def activate(step: Step, x: np.ndarray) -> np.ndarray:
    """The step's fused activation."""
    name = str(step["activation"])
    return x if name == "none" else activation.apply(name, x, step.rules["activation"])


def as_s8(weights: np.ndarray) -> np.ndarray:
    """8-bit weights as signed numbers: unsigned ones are read as two's complement, whatever their zero point says."""
    return np.asarray(weights).view(np.int8)


def is_zero(x: np.ndarray, by_fours: bool = True) -> bool:
    """Whether kernels count x as all zeros: vectors of four compare |x| > 0, which NaN is not; the rest, and without
    `by_fours` all, x != 0.

    >>> x = np.float32([np.nan, 0, 0, -0.0])
    >>> is_zero(x), is_zero(x, False), is_zero(x[:1])
    (True, False, False)
    """
    if not by_fours:
        return not x.any()
    flat = x.reshape(-1)
    head = flat.size // 4 * 4
    return not (np.abs(flat[:head]) > 0).any() and not (flat[head:] != 0).any()


def within(x: np.ndarray) -> np.ndarray:
    """binary32 infinities become the largest finite numbers."""
    largest = np.finfo(np.float32).max
    return np.where(x > largest, largest, np.where(x < -largest, -largest, x))


def quantize_rows(step: Step, rule: RowProductRule, x: np.ndarray, asymmetric: bool, what: str) -> QuantizedRows:
    """Rows as 8-bit integers; a typed error for values whose conversion to integers is undefined."""
    try:
        return rule.quantize(x, asymmetric)
    except OverflowError as error:
        raise RunError("BT-RUN-RANGE", f"{what}: {error}", place=step.place) from None
