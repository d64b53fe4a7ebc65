"""abs: the magnitude of the number, rescaled when the output scale differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import rescale, store
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise
from ..quantization.quantize import rescale_input
from .rounded_table import with_rounded_table


def lower(call: Call) -> Lowered:
    """Zero points and a multiplier. Plain numbers have neither."""
    source = call.input(0)
    if "store" not in call.rules or (source.dtype == "s16" and source.tensor.quantization is None):
        return Lowered()
    # Equal scales give a multiplier of exactly 1.
    return rescale_input(call)


def _of_complex(z: np.ndarray) -> np.ndarray:
    """sqrt(re^2 + im^2) in binary64, rounded once; infinite when a part is, even beside NaN."""
    re, im = z.real, z.imag
    with np.errstate(all="ignore"):
        wide = np.sqrt(re.astype(np.float64) ** 2 + im.astype(np.float64) ** 2).astype(np.float32)
        odd = np.where(np.isinf(re) | np.isinf(im), np.float32(np.inf), re + im)
        return np.where(np.isfinite(re) & np.isfinite(im), wide, odd)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Plain integers wrap, so the smallest one stays negative."""
    if "dtype" not in step.parameters:
        x = inputs[0]
        return [np.asarray(_of_complex(x) if x.dtype.kind == "c" else np.abs(x))]
    finish = store.RULES[step.rules["store"]]
    zero_point, low, high = step["output_zero_point"], step["low"], step["high"]

    def one(block: np.ndarray) -> np.ndarray:
        magnitude = np.abs(block - step["input_zero_point"])
        return finish(rescale.apply(step.rules["rescale"], magnitude, step.arrays), zero_point, low, high)

    return [blockwise(one, [inputs[0]], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = with_rounded_table(
    Operator(
        "abs",
        ("scale_form", "rescale", "shift_count", "store"),
        same_shape,
        lower,
        reference,
        "magnitude",
        elementwise=1,
    )
)
