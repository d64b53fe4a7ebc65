"""What the tests of unary operators share: their models, their types, and floats worth trying."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from . import build
from .build import T, single

# Types that only casts, quantize and dequantize meet.
for _name, _number, _numpy in (
    ("u16", schema.TensorType.UINT16, np.uint16),
    ("bf16", schema.TensorType.BFLOAT16, ml_dtypes.bfloat16),
):
    build.TYPES.setdefault(_name, _number)
    build.NUMPY.setdefault(_name, _numpy)


def unary(
    operator: str,
    source: T,
    target: T,
    options: tuple[str, dict[str, Any]] | None = None,
    version: int = 1,
) -> bytes:
    """A model of one operator with one input and one output."""
    return single(operator, options, [source], [target], version=version)


def reals(seed: int, shape: tuple[int, ...], step: float = 1.0, dtype: type = np.float32) -> np.ndarray:
    """Floats around multiples and half multiples of `step`, with infinities, NaN, zeros and huge and tiny numbers."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(-600, 600, shape) / 2 * np.float64(step)).astype(np.float32)
    with np.errstate(all="ignore"):
        nudged = np.nextafter(values, np.float32(np.inf) * rng.choice([-1, 1], shape).astype(np.float32))
        values = np.where(rng.random(shape) < 0.3, nudged, values)
        values = np.where(rng.random(shape) < 0.3, (rng.standard_normal(shape) * 8).astype(np.float32), values)
        special = [
            np.nan,
            -np.nan,
            np.inf,
            -np.inf,
            0.0,
            -0.0,
            2.0**31,
            -(2.0**31),
            3e38,
            -3e38,
            1e-40,
            0.49999997,
            2.0**63,
        ]
        chosen = rng.choice(np.array(special, np.float32), shape)
        return np.where(rng.random(shape) < 0.2, chosen, values).astype(dtype)
