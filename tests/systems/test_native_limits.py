"""Where the C++ twins of the systems' rules come to the ends of their registers, and numbers that would leave them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue import qnn
from bittrue.operators import Step
from bittrue.rules import align
from support.caffe2_nets import add, new

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")

BYTES = np.arange(-128, 128, dtype=np.int8)


def with_step(session: bittrue.Session, operator: str, change: Any) -> bittrue.Session:
    """The same plan with another step of that operator, on the native executor."""
    plan = session.plan
    steps = tuple(change(step) if step.operator == operator else step for step in plan.steps)
    assert steps != plan.steps
    return bittrue.Session(replace(plan, steps=steps), executor="native")


def both(session: bittrue.Session, *feeds: np.ndarray) -> list[np.ndarray]:
    """The native executor's results, which must be the reference's."""
    reference = bittrue.Session(session.plan, executor="reference").run(*feeds)
    found = session.run(*feeds)
    for name, value in reference.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    return list(found.values())


def test_largest_sum_of_shared_weights() -> None:
    """Weights of exactly 2^22 and a right shift of 24: the sum with one half added is 2^31."""
    scale = float(np.nextafter(np.float32(0.25), np.float32(0)))
    assert align.shared_weights("shared_22_bits_away", scale, scale, 1.0) == (1 << 22, 1 << 22, 24)
    predict, init = new(), new()
    for name in ("x", "z"):
        add(init, "Int8GivenTensorFill", "", name, shape=[1, 2, 2, 8], Y_scale=scale, Y_zero_point=0)
    add(predict, "Int8Add", "x z", "y", Y_scale=1.0, Y_zero_point=0)
    predict.external_input.extend(["x", "z"])
    session = bittrue.load(predict.SerializeToString(), init.SerializeToString()).prepare(executor="native")
    assert not session.missing
    largest = np.full((1, 2, 2, 8), 255, np.uint8)
    (found,) = both(session, largest, largest)
    # 127.49999... is not a tie; the integer form makes it one.
    assert set(found.reshape(-1).tolist()) == {128}


@pytest.mark.parametrize("numerics", ["tvm-qnn", "tvm-qnn-tonearest", "tvm-qnn-float32", "tvm-qnn-float64-tonearest"])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_requantize_has_a_kernel(numerics: str, dtype: str) -> None:
    x = qnn.var("x", (256,), dtype)
    session = qnn.model(qnn.requantize(x, 0.3, 5, 0.7, -3, out_dtype="int8")).prepare(
        numerics=numerics, executor="native"
    )
    assert dtype == "int32" or not session.missing
    both(session, BYTES.astype(dtype))


def test_rescaling_beyond_64_bits_wraps() -> None:
    """Accumulators are as large as a plan file wants them: products are modulo 2^64, as NumPy has them."""
    acc = np.array([2**63 - 1, -(2**63), 2**62 + 12345, -(2**61) - 7, 2**40], np.int64)
    for rule, right in (("q31_one_step_up", 31), ("q31_one_step_up_wrap", 31)):
        out = np.empty_like(acc)
        native.rescale(rule, acc, 2**31 - 1, 0, 0.0, out)
        for value, result in zip(acc.tolist(), out.tolist(), strict=True):
            product = (value * (2**31 - 1) + (1 << (right - 1)) + 2**63) % 2**64 - 2**63
            wanted = product >> right
            if rule.endswith("wrap"):
                wanted = (wanted + 2**31) % 2**32 - 2**31
            assert result == wanted


@pytest.mark.parametrize(
    "rule", ["binary64_multiply_even", "binary32_multiply_even_wide", "binary64_product_binary32_away"]
)
def test_products_that_no_integer_holds(rule: str) -> None:
    acc = np.array([2**62, -(2**62), 2**40, 3], np.int64)
    out = np.empty_like(acc)
    native.rescale(rule, acc, 0, 0, 2.0**30, out)
    assert out.tolist() == [-(2**63), -(2**63), -(2**63), 3 << 30]
    low = np.empty_like(acc)
    native.requantize(rule, "zero_point_then_clamp", acc, 0, 0, 2.0**30, -5, -128, 127, low)
    # Sums are modulo 2^64 before they are modulo 2^32.
    assert low.tolist() == [-5, -5, -5, -128]


LIES: list[tuple[str, dict[str, Any]]] = [
    ("right_shift", {"right_shift": np.int64([2**32 + 3])}),
    ("multiplier", {"multiplier": np.int64([-(2**63)])}),
]


@pytest.mark.parametrize("arrays", [arrays for _, arrays in LIES], ids=[name for name, _ in LIES])
def test_numbers_that_no_plan_holds_are_declined(arrays: dict[str, np.ndarray]) -> None:
    predict, init = new(), new()
    add(init, "Int8GivenTensorFill", "", "x", shape=[1, 4, 4, 2], Y_scale=0.5, Y_zero_point=3)
    add(predict, "Int8AveragePool", "x", "y", Y_scale=0.7, Y_zero_point=3, kernel=2, stride=1, order="NHWC")
    predict.external_input.append("x")
    session = bittrue.load(predict.SerializeToString(), init.SerializeToString()).prepare(executor="native")
    assert not session.missing

    def change(step: Step) -> Step:
        return replace(step, arrays={**step.arrays, **arrays})

    lying = with_step(session, "average_pool", change)
    assert lying.missing


def test_huge_windows_of_a_lying_plan_end() -> None:
    """Only taps that meet the image are walked."""
    x = qnn.var("x", (1, 4, 4, 2), "int8")
    pooled = qnn.avg_pool2d(x, 1.0, 0, 0.75, 1, (2, 2), (1, 1), (0, 0), (1, 1))
    session = qnn.model(pooled).prepare(numerics="tvm-qnn", executor="native")

    def change(step: Step) -> Step:
        return replace(step, parameters={**step.parameters, "filter_h": 2**31 - 1, "filter_w": 2**31 - 1})

    lying = with_step(session, "average_pool", change)
    assert len(lying.run(np.ones((1, 4, 4, 2), np.int8))) == 1
