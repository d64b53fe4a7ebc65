"""What depends on how many numbers a vector of the processor holds: all lengths around whole vectors, special values.

The delegate's kernels for real numbers are others with AVX-512 than with AVX2: `here` names the numerics. The answers
with AVX2 are recorded (tests/support/elsewhere.py, `keep`), so that other processors check them, too.
"""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.differential import check
from support.runtimes import here
from support.unary import unary

pytestmark = pytest.mark.numerics("xnnpack")
LENGTHS = (1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 95, 127, 129)
_SPECIAL = np.float32([np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 88, -88, 1e-30])
_REDUCTIONS = ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN")


def _numbers(seed: int, shape: tuple[int, ...], share: float, nan: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * rng.choice([0.1, 1, 5, 30])).astype(np.float32)
    special = np.append(_SPECIAL, np.array([0x7FC00000, 0xFFC00000], np.uint32).view(np.float32)[: 2 * nan])
    return np.where(rng.random(shape) < share, rng.choice(special, shape), x)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operator", ["LOGISTIC", "ELU", "LOG", "TANH", "EXP", "GELU"])
def test_functions(operator: str, length: int) -> None:
    x = _numbers(length, (2, length), 0.3, True)
    assert check(unary(operator, T("f32", x.shape), T("f32", ())), [[x]]) == "equal"


@pytest.mark.parametrize("length", LENGTHS)
def test_softmax(length: int) -> None:
    # With AVX-512 not all signs of NaNs are known where several meet.
    nan = here("xnnpack") == "xnnpack-avx2"
    content = single("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [T("f32", (4, length))], [T("f32", ())])
    for seed, share in ((length, 0.0), (length + 1000, 0.1 * nan), (length + 2000, 0.5 * nan)):
        assert check(content, [[_numbers(seed, (4, length), share, True)]]) == "equal"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operator", _REDUCTIONS)
def test_reductions(operator: str, length: int) -> None:
    sums = operator in ("SUM", "MEAN")
    nan = here("xnnpack") == "xnnpack-avx2" or not sums
    shapes: tuple[tuple[tuple[int, ...], list[int]], ...] = (
        ((3, length), [1]),
        ((length, 3), [0]),
        ((2, 3, length), [0, 2]),
        ((9, length), [0]),
    )
    for place, (shape, axes) in enumerate(shapes):
        constant = T("s32", (len(axes),), data=np.array(axes, np.int32))
        content = single(operator, ("ReducerOptions", {}), [T("f32", shape), constant], [T("f32", ())])
        for share in (0.0, 0.2 * nan):
            assert check(content, [[_numbers(length + place, shape, share, True)]]) == "equal"


# Length and value of all elements, and what the runtime gave on x86-64 with AVX2: the mean, in steps of 130 / 120.
_WRAPPED = ((8192, 127, 117), (8320, 127, -115), (9000, 127, -98), (16383, -128, 0), (25000, 127, -38), (70001, 127, 7))


@pytest.mark.parametrize(("length", "value", "expected"), _WRAPPED)
def test_long_rows_of_bytes_wrap_without_avx_512(length: int, value: int, expected: int) -> None:
    x = np.full((2, length), value, np.int8)
    constant = T("s32", (1,), data=np.array([1], np.int32))
    content = single("MEAN", ("ReducerOptions", {}), [T("s8", x.shape, 1.0), constant], [T("s8", (), 130 / 120)])
    for executor in ("reference", "native") if bittrue.isas() else ("reference",):
        session = bittrue.load(content).prepare("xnnpack-avx2", executor=executor)
        (y,) = session.run(x).values()
        assert y.tolist() == [expected] * 2
    if here("xnnpack") == "xnnpack-avx2":
        assert check(content, [[x]]) == "equal"
