"""Estimates of processors, square roots from them, and functions of binary16: what instructions and the runtime gave.

Digests of their answers (CRC-32), of all arguments that tell them apart: of x86-64 recorded on an AMD processor with
AVX-512, whose runtime was made to take the kernels of AVX2, too; of aarch64 under emulation.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest

from bittrue.arithmetic import processor_estimates
from bittrue.rules import real_function, real_gelu

_OF_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def _digest(values: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(values).tobytes())


def _numbers(first: int, step: int) -> np.ndarray:
    """Of two exponents, from 1/2 on."""
    return np.arange(0x3F000000 + first, 0x40000000, step, dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("estimate", "numbers", "expected"),
    [
        (processor_estimates.inverse_root_of_lines, _numbers(1, 256), 0x6A887455),
        (processor_estimates.inverse_root_of_tables, _numbers(0, 2048), 0xD8603E87),
        (processor_estimates.inverse_of_tables, _numbers(1 << 23, 2048), 0xEBD6B180),
    ],
)
def test_estimates(estimate: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray, expected: int) -> None:
    """Of every number that the instruction tells from its neighbour."""
    assert _digest(estimate(numbers)) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("binary32_refined_lines", {"sqrt": 0xC7301207, "rsqrt": 0x609161A0}),
        ("binary32_refined_tables", {"sqrt": 0x1047FA35, "rsqrt": 0x4D168C33}),
    ],
)
def test_square_roots(rule: str, expected: dict[str, int]) -> None:
    functions = real_function.RULES[rule].functions
    assert {name: _digest(function(_numbers(0, 257))) for name, function in functions.items()} == expected


def test_special_square_roots() -> None:
    x = np.array([0, 0x80000000, 1, 0x807FFFFF, 0xBF800000, 0x7F800000, 0x7F800001, 0xFFC12345], np.uint32)
    for rule in ("binary32_refined_lines", "binary32_refined_tables"):
        functions = real_function.RULES[rule].functions
        roots, inverse = (functions[name](x.view(np.float32)).view(np.uint32).tolist() for name in ("sqrt", "rsqrt"))
        nan, quiet = 0xFFC00000, [0x7FC00001, 0xFFC12345]
        assert roots == [0, 0x80000000, 0, 0x80000000, nan, 0x7F800000, *quiet]
        assert inverse == [nan, nan, nan, nan, nan, 0, *quiet]


# Of the runtime's answers to all numbers of binary16, NaN included.
_DIGESTS = {
    "binary32_short": {
        "cos": 0x670EF0A1,
        "logistic": 0x3BC4872C,
        "sin": 0xBE120538,
        "tanh": 0xEAA942E8,
        "gelu": 0x26B83062,
        "gelu_tanh": 0x1BC55737,
    },
    "binary32_short_apart": {"cos": 0x5CD095D6, "sin": 0xDDB6B635, "gelu": 0x26B83062, "gelu_tanh": 0x5CEC9B39},
    "binary16_fused_flushed": {
        "cos": 0x49C86D0A,
        "logistic": 0xD3D2E285,
        "sin": 0x2E3E041A,
        "tanh": 0xFE7D58DB,
        "gelu": 0x8103374F,
        "gelu_tanh": 0xF7EF506D,
    },
}


@pytest.mark.parametrize("rule", [*_DIGESTS])
def test_every_binary16_number(rule: str) -> None:
    function, gelu = real_function.RULES[rule].functions, real_gelu.RULES[rule].apply
    with np.errstate(all="ignore"):
        found = {name: _digest(of(_OF_HALVES.astype(np.float32)).astype(np.float16)) for name, of in function.items()}
    found.update({name: _digest(gelu(_OF_HALVES, name == "gelu_tanh")) for name in ("gelu", "gelu_tanh")})
    assert found == _DIGESTS[rule]
