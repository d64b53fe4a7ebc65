"""What explanations say, line by line: texts that a person can follow on paper."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import bittrue
from bittrue.explain import explain_element
from support.build import T, single


def _text(
    content: bytes, numerics: str, values: Mapping[str, np.ndarray] | np.ndarray, element: tuple[int, ...]
) -> str:
    session = bittrue.load(content).prepare(numerics)
    traced = session.trace(values)
    found = explain_element(session, traced, session.outputs[0].name, element)
    return "\n".join(f"{line.label} | {line.value} | {line.remark}" for line in found.lines)


def _convolution() -> bytes:
    """2x2 pixels of 1, filters 3 and 5, same padding; multiplier 1/4."""
    x = T("s8", (1, 2, 2, 1), 0.5, -1, name="image")
    w = T("s8", (2, 2, 2, 1), [0.5, 0.25], 0, 0, np.repeat(np.int8([3, 5]), 4), name="filters")
    b = T("s32", (2,), [0.25, 0.125], 0, 0, np.array([2, -2]), name="bias")
    options = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    return single("CONV_2D", ("Conv2DOptions", options), [x, w, b], [T("s8", (), 1.0, 3, name="out")], version=3)


def test_a_convolution_with_padding_and_a_tie() -> None:
    x = np.int8([[[[0], [1]], [[2], [3]]]])
    assert (
        _text(_convolution(), "litert", x, (0, 1, 0, 0))
        == """\
inputs | [0, 1..2, 0..1, 0] | of 'image' s8[1, 2, 2, 1], 2 positions of padding; zero point -1
weights | [0, 0..1, 0..1, 0] | of 'filters' s8[2, 2, 2, 1]; zero point 0
product | 12 | (3 + 1) * 3: input [0, 1, 1, 0], weight [0, 0, 1, 0]
product | 9 | (2 + 1) * 3: input [0, 1, 0, 0], weight [0, 0, 0, 0]
... and 2 more | 0 | their sum
sum | 21 | 4 products, exact
bias | 2 | 'bias' [0]
accumulator | 23 | sum + 2; |accumulator| <= 2,562 is proven
real multiplier | 0.25 | 0.5 * 0.5 / 1.0: scales of input, weights and output (binary64)
multiplier, exponent | 1,073,741,824, -1 | the same as multiplier * 2^(exponent - 31) = 0.25
exact product | 5.75 | accumulator * multiplier: what real numbers would give
first rounding | 12 | 23 * 1,073,741,824 / 2^31 = 11.5; exactly a tie: ties up
second rounding | 6 | 12 / 2^1 = 6; ties away from zero; the nearest tie is 0.5 away
zero point | 9 | 6 + 3
clamp | 9 | inside [-128, 127]
stored | 9 | s8, 'out' [0, 1, 0, 0]"""
    )


def test_the_same_with_one_rounding() -> None:
    x = np.int8([[[[0], [1]], [[2], [3]]]])
    text = _text(_convolution(), "single-rounding", x, (0, 1, 0, 0))
    assert text.endswith("""\
multiplier, exponent | 1,073,741,824, -1 | the same as multiplier * 2^(exponent - 31) = 0.25
exact product | 5.75 | accumulator * multiplier: what real numbers would give
one rounding | 6 | 23 * 1,073,741,824 / 2^32 = 5.75; ties up; the nearest tie is 0.25 away
zero point | 9 | 6 + 3
clamp | 9 | inside [-128, 127]
stored | 9 | s8, 'out' [0, 1, 0, 0]""")


def test_a_sum() -> None:
    a, b = T("s8", (1, 2), 0.5, 1, name="a"), T("s8", (1, 2), 0.25, 0, name="b")
    content = single("ADD", ("AddOptions", {}), [a, b], [T("s8", (), 1.0, -2, name="out")], version=2)
    text = _text(content, "litert", {"a": np.int8([[4, 0]]), "b": np.int8([[6, 0]])}, (0, 0))
    assert (
        text
        == """\
first | 4 | 'a' [0, 0], zero point 1; real value 0.5 * 3 = 1.5
second | 6 | 'b' [0, 0], zero point 0; real value 0.25 * 6 = 1.5
exact result | 3 | the two real values / 1.0: what real numbers would give
first * 2^20 | 3,145,728 | 3 * 1,048,576
first: multiplier, exponent | 1,073,741,824, 0 | the same as multiplier * 2^(exponent - 31) = 0.5
first: exact product | 1,572,864 | first * 2^20 * multiplier: what real numbers would give
first: first rounding | 1,572,864 | 3,145,728 * 1,073,741,824 / 2^31 = 1,572,864; ties up; the nearest tie is 0.5 away
first: second rounding | 1,572,864 | nothing to divide by: the exponent is not < 0
second * 2^20 | 6,291,456 | 6 * 1,048,576
second: multiplier, exponent | 1,073,741,824, -1 | the same as multiplier * 2^(exponent - 31) = 0.25
second: exact product | 1,572,864 | second * 2^20 * multiplier: what real numbers would give
second: first rounding | 3,145,728 | 6,291,456 * 1,073,741,824 / 2^31 = 3,145,728; ties up; the nearest tie is 0.5 away
second: second rounding | 1,572,864 | 3,145,728 / 2^1 = 1,572,864; ties away from zero; the nearest tie is 0.5 away
sum | 3,145,728 | 1,572,864 + 1,572,864
multiplier, exponent | 1,073,741,824, -19 | the same as multiplier * 2^(exponent - 31) = 9.5367431640625e-07
exact product | 3 | sum * multiplier: what real numbers would give
first rounding | 1,572,864 | 3,145,728 * 1,073,741,824 / 2^31 = 1,572,864; ties up; the nearest tie is 0.5 away
second rounding | 3 | 1,572,864 / 2^19 = 3; ties away from zero; the nearest tie is 0.5 away
zero point | 1 | 3 - 2
clamp | 1 | inside [-128, 127]
stored | 1 | s8, 'out' [0, 0]"""
    )


def test_a_quantized_real_number() -> None:
    content = single("QUANTIZE", None, [T("f32", (3,), name="x")], [T("s8", (), 0.5, 3, name="out")], version=1)
    assert (
        _text(content, "litert", np.float32([1.25, 0, 0]), (0,))
        == """\
input | 1.25 | 'x' [0]
exact quotient | 2.5 | 1.25 / 0.5; exactly a tie: for ties see the rule
quotient | 2.5 | the quotient in binary32
rounding | 3 | exactly a tie: ties away from zero
zero point, clamp | 6 | + 3, into [-128, 127]: clamp(wrap32(to_s32(round_away(f32(x / scale))) + zero_point)), ties \
away from zero.
stored | 6 | s8, 'out' [0]"""
    )


def test_an_average() -> None:
    options = {"padding": 1, "strideH": 1, "strideW": 1, "filterHeight": 2, "filterWidth": 2}
    x, y = T("s8", (1, 2, 2, 1), 0.5, 3, name="x"), T("s8", (), 0.5, 3, name="out")
    content = single("AVERAGE_POOL_2D", ("Pool2DOptions", options), [x], [y], version=2)
    text = _text(content, "litert", np.int8([[[[-3], [-4]], [[-2], [-1]]]]), (0, 0, 0, 0))
    assert text.startswith("""\
values | -3, -4, -2, -1 | 4 of 'x' [0, 0..1, 0..1, 0]
sum | -10 | of the integers as stored: zero points play no part
exact average | -2.5 | -10 / 4; exactly a tie: ties away from zero
average | -3 |""")
