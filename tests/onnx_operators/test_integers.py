"""add, sub, mul, div, neg, abs, sign, maximum, minimum, remainder, shift,
bitwise_and, bitwise_or, bitwise_xor, bitwise_not, equal, less, greater, less_equal,
greater_equal, not_equal, not_finite, cumsum, cumprod against ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from support.onnx_models import Checks, check, natively, single
from support.onnx_operands import Case, bits, broadcastable, kind, numbers, one_type, shape

INTEGERS = "u1 i1 u2 i2 u4 i4 u8 i8"
SIGNED = "i1 i2 i4 i8"
BOOL = TensorProto.BOOL
Builder = Callable[[np.random.Generator], Case]


def opset(rng: np.random.Generator, oldest: int = 14) -> int:
    return int(rng.integers(oldest, 25))


def binary(op_type: str, types: str, oldest: int = 14, result: int | None = None, any_bits: bool = True) -> Builder:
    def build(rng: np.random.Generator) -> Case:
        dtype, base = one_type(rng, types), shape(rng, 0, 4)
        draw = bits if any_bits and rng.random() < 0.5 else numbers
        inputs = {name: draw(rng, broadcastable(rng, base), dtype) for name in "ab"}
        return op_type, dict(inputs), [result or kind(dtype)], {}, opset(rng, oldest)

    build.__name__ = op_type
    return build


def unary(op_type: str, types: str, oldest: int = 13, result: int | None = None) -> Builder:
    def build(rng: np.random.Generator) -> Case:
        x = bits(rng, shape(rng), one_type(rng, types))
        return op_type, {"x": x}, [result or kind(x.dtype)], {}, opset(rng, oldest)

    build.__name__ = op_type
    return build


def division(op_type: str, types: str, **attributes: Any) -> Builder:
    """Divisors of 0 now and then; never minimum / -1 in 32 or 64 bits, at which the runtime's process ends."""

    def build(rng: np.random.Generator) -> Case:
        dtype, base = one_type(rng, types), shape(rng, 0, 4)
        draw = bits if rng.random() < 0.5 else numbers
        first, second = (draw(rng, broadcastable(rng, base), dtype) for _ in range(2))
        if dtype.kind in "iu" and rng.random() < 0.95:
            second = np.where(second == 0, dtype.type(3), second)
        if dtype.kind == "i" and dtype.itemsize >= 4:
            first = np.where(first == np.iinfo(dtype).min, dtype.type(7), first)
        return op_type, {"a": first, "b": second}, [kind(dtype)], attributes, opset(rng)

    build.__name__ = op_type
    return build


def several(op_type: str) -> Builder:
    def build(rng: np.random.Generator) -> Case:
        dtype, base = one_type(rng, "u1 i1 u4 i4 u8 i8 f4 f8"), shape(rng, 0, 4)
        draw = bits if rng.random() < 0.5 else numbers
        count = int(rng.integers(1, 5))
        inputs = {f"x{i}": draw(rng, broadcastable(rng, base), dtype) for i in range(count)}
        return op_type, dict(inputs), [kind(dtype)], {}, opset(rng, 13)

    build.__name__ = op_type
    return build


def shift(rng: np.random.Generator) -> Case:
    dtype, base = one_type(rng, "u1 u4 u8"), shape(rng, 0, 4)
    first = bits(rng, broadcastable(rng, base), dtype)
    second = rng.integers(0, 8 * dtype.itemsize + 3, broadcastable(rng, base)).astype(dtype)
    return "BitShift", {"a": first, "b": second}, [kind(dtype)], {"direction": str(rng.choice(["LEFT", "RIGHT"]))}, 11


def is_infinite(rng: np.random.Generator) -> Case:
    x = numbers(rng, shape(rng), one_type(rng, "f4 f8"))
    attributes = {f"detect_{sign}": int(rng.integers(2)) for sign in ("positive", "negative") if rng.random() < 0.7}
    return "IsInf", {"x": x}, [BOOL], attributes, opset(rng, 10)


def cumulative(rng: np.random.Generator) -> Case:
    dtype = one_type(rng, "f4 f8 i4 i8")
    x = numbers(rng, shape(rng, 1, 4), dtype)
    if dtype.kind == "f":
        x = np.where(np.isinf(x), dtype.type(-0.0), x)
    axis = np.array(rng.integers(-x.ndim, x.ndim), one_type(rng, "i4 i8"))
    attributes = {name: int(rng.integers(2)) for name in ("exclusive", "reverse")}
    return "CumSum", {"x": x, "axis": axis}, [kind(dtype)], attributes, opset(rng, 11)


def cumulative_product(rng: np.random.Generator) -> Case:
    dtype = one_type(rng, "f4 f8 i4 i8 u4 u8")
    x = numbers(rng, shape(rng, 1, 4), dtype)
    if dtype.kind == "f":
        # Zeros times infinities are NaN, whose sign is open.
        x = np.where(np.isfinite(x), x, dtype.type(-0.0))
    axis = np.array(rng.integers(-x.ndim, x.ndim), one_type(rng, "i4 i8"))
    attributes = {name: int(rng.integers(2)) for name in ("exclusive", "reverse")}
    return "CumProd", {"x": x, "axis": axis}, [kind(dtype)], attributes, 26


BUILDERS: tuple[Builder, ...] = (
    *(binary(name, f"{INTEGERS} f8") for name in ("Add", "Sub", "Mul")),
    division("Div", f"{INTEGERS} f8"),
    division("Mod", INTEGERS),
    division("Mod", f"{INTEGERS} f4 f8", fmod=1),
    unary("Neg", f"{SIGNED} f4 f8"),
    unary("Abs", f"{INTEGERS} f4 f8"),
    unary("Sign", INTEGERS),
    several("Max"),
    several("Min"),
    shift,
    *(binary(f"Bitwise{name}", INTEGERS, 18) for name in ("And", "Or", "Xor")),
    unary("BitwiseNot", INTEGERS, 18),
    binary("Equal", f"{INTEGERS} f4 f8 ?", 13, BOOL),
    *(binary(name, f"{INTEGERS} f4 f8", 13, BOOL) for name in ("Less", "Greater")),
    *(binary(name, f"{INTEGERS} f4 f8", 16, BOOL) for name in ("LessOrEqual", "GreaterOrEqual")),
    *(binary(name, "?", 8) for name in ("And", "Or", "Xor")),
    unary("Not", "?", 8),
    unary("IsNaN", "f4 f8", 13, BOOL),
    is_infinite,
    cumulative,
    cumulative_product,
    unary("Sqrt", "f8"),
)


@pytest.mark.parametrize("number", range(len(BUILDERS)), ids=lambda n: f"{n}-{BUILDERS[n].__name__}")
def test_random_models(request: pytest.FixtureRequest, number: int) -> None:
    checks = Checks(request)
    for rng in checks:
        op_type, inputs, outputs, attributes, version = BUILDERS[number](rng)
        names = list(inputs)[1:]
        constants = names if op_type in ("CumSum", "CumProd") or rng.random() < 0.3 else []
        content, feeds = single(op_type, inputs, outputs, attributes, opset=version, constants=constants)
        checks.add(content, feeds)
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("fmod", [0, 1])
def test_modulo_of_the_specification(request: pytest.FixtureRequest, fmod: int) -> None:
    """floor_mod and remainder under `onnx`: zeros, infinities and signs as the text of version 28 says."""
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        a, b = (numbers(rng, (20,), "f8") for _ in range(2))
        with np.errstate(all="ignore"):
            expected = np.mod(a, b) if fmod == 0 else np.fmod(a, b)
        content, feeds = single("Mod", {"a": a, "b": b}, [kind("f8")], {"fmod": fmod}, opset=28)
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: {"y0": found})


def test_quotients_of_64_bits_are_native() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-1000, 1000, (5, 90)), rng.integers(1, 1000, (5, 90)) * rng.choice([-1, 1], (5, 90))
    a[0, :4], b[0, :4] = (-(2**63), 2**63 - 1, -(2**63), 2**63 - 1), (1, -1, 3, 7)
    model = single("Div", {"a": a, "b": b}, [TensorProto.INT64])
    assert check(*model) == "equal"
    natively(*model)


def test_sums_of_large_integers(request: pytest.FixtureRequest) -> None:
    """Beyond 2^53, where orders of additions show; along axes of every kind, and in Einsum."""
    checks = Checks(request, usual=60, only="equal")
    for rng in checks:
        sizes = [int(n) for n in rng.choice([1, 2, 3, 7, 300], int(rng.integers(1, 4)), p=[0.3, 0.2, 0.2, 0.25, 0.05])]
        largest = 2 ** int(rng.choice([31, 54, 60, 62]))
        if rng.random() < 0.3:
            letters = "ijk"[: len(sizes)]
            result = "".join(letter for letter in letters if rng.random() < 0.5)
            operands = {"x": rng.integers(-largest, largest, sizes[:1]), "y": rng.integers(-largest, largest, sizes)}
            equation = {"equation": f"{letters[0]},{letters}->{result}"}
            checks.add(*single("Einsum", operands, [TensorProto.INT64], equation))
            continue
        op_type = str(rng.choice(["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"]))
        if op_type in ("ReduceL2", "ReduceSumSquare"):
            largest = min(largest, 2**30)
        axes = np.flatnonzero(rng.random(len(sizes)) < 0.6)
        inputs = {"x": rng.integers(-largest, largest, sizes), "axes": axes}
        checks.add(*single(op_type, inputs, [TensorProto.INT64], {"keepdims": 0}, opset=18, constants=["axes"]))
