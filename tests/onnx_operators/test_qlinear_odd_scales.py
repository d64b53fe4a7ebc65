"""Scales that nobody means, in operators on quantized numbers: negative, 0, infinite, NaN, subnormal, huge."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from support.onnx_models import KIND, MICROSOFT, check, integers, single, zero_point

ODD = [np.asarray(np.float32(v)) for v in (0.1, -0.1, 0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38)]
# A global average refuses multipliers out of its range; those that are no number are refused here alone.
UNARY: dict[str, dict[str, Any]] = {
    "QLinearAveragePool": {"kernel_shape": [2, 2]},
    "QLinearGlobalAveragePool": {},
    "QLinearSigmoid": {},
    "QLinearLeakyRelu": {"alpha": 0.3},
}


def _check(operator: str, inputs: dict[str, np.ndarray], dtype: Any, attributes: dict[str, Any]) -> str:
    constants = [name for name in inputs if len(name) > 1]
    content, feeds = single(
        operator, inputs, [KIND[np.dtype(dtype)]], attributes, domain=MICROSOFT, constants=constants
    )
    refused = ("BT-QUANT-OPERAND",) if operator == "QLinearGlobalAveragePool" else ()
    return check(content, feeds, may_refuse=refused)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("operator", UNARY)
def test_unary(operator: str, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for first, second in product(ODD, ODD):
        inputs = {
            "x": integers(rng, (1, 2, 3, 4), dtype),
            "x_scale": first,
            "x_zero": zero_point(rng, dtype),
            "y_scale": second,
            "y_zero": zero_point(rng, dtype),
        }
        found = _check(operator, inputs, dtype, UNARY[operator])
        assert found == "equal" or operator == "QLinearGlobalAveragePool"


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_binary(operator: str, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    for first, second, output in product(ODD[:6], ODD[1:4], ODD[2:]):
        inputs = {
            "a": integers(rng, (3, 4), dtype),
            "a_scale": first,
            "a_zero": zero_point(rng, dtype),
            "b": integers(rng, (3, 4), dtype),
            "b_scale": second,
            "b_zero": zero_point(rng, dtype),
            "y_scale": output,
            "y_zero": zero_point(rng, dtype),
        }
        assert _check(operator, inputs, dtype, {}) == "equal"


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("operator", ["QLinearConcat", "QLinearWhere"])
def test_tables(operator: str, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    for first, output in product(ODD, ODD):
        scales = {"x_scale": first, "y_scale": ODD[0], "z_scale": output}
        zeros = {f"{name}_zero": zero_point(rng, dtype) for name in "xyz"}
        x, y = (integers(rng, (2, 5), dtype) for _ in range(2))
        given: dict[str, np.ndarray] = {**scales, **zeros, "x": x, "y": y, "c": rng.random((2, 5)) < 0.5}
        names = (
            ["z_scale", "z_zero", "x", "x_scale", "x_zero", "y", "y_scale", "y_zero"]
            if operator == "QLinearConcat"
            else ["c", "x", "x_scale", "x_zero", "y", "y_scale", "y_zero", "z_scale", "z_zero"]
        )
        attributes = {"axis": 1} if operator == "QLinearConcat" else {}
        assert _check(operator, {name: given[name] for name in names}, dtype, attributes) == "equal"
