"""reduce_window against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused, refused_by_both
from support.strategies import seeds

FUNCTIONS = {"add": 1, "mul": 2, "minimum": 3, "maximum": 4, "all": 5, "any": 6}
TYPES = ["s8", "u8", "s16", "s32", "s64", "f32", "f64", "bool"]


def window(function: int, x: np.ndarray, first: object, geometry: list[object], dtype: str = "s32") -> Case:
    operands = [(dtype, x), (dtype, np.asarray(first)), *(("s64", np.array(numbers)) for numbers in geometry)]
    options = ("ReduceWindowOptions", {"reduceFunction": function})
    return given_as("REDUCE_WINDOW", options, operands, [dtype], 0x1C)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype, function = draw(st.sampled_from(TYPES)), draw(st.sampled_from(list(FUNCTIONS)))
    if dtype == "bool" and function == "add":
        function = "any"
    shape = draw(sizes(1, 4, 6).filter(lambda found: 0 not in found))
    rng = np.random.default_rng(draw(seeds))
    geometry = [[draw(st.integers(1, 3)) for _ in shape] for _ in range(3)]
    nan = 0x7FC12345 if function in ("minimum", "maximum") else None
    x, first = (plain_values(rng, "f32" if dtype == "f64" else dtype, found, nan) for found in (shape, ()))
    return window(FUNCTIONS[function], x, first, geometry, dtype)


@given(cases())
def test_reduce_window(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    content, (feed,) = window(FUNCTIONS["add"], np.arange(1, 17).reshape(4, 4), 0, [[2, 2], [1, 1], [2, 3]])
    assert outputs_of(content, *feed) == [[1 + 4 + 9 + 12], [5 + 8 + 13 + 16]]
    content, (feed,) = window(FUNCTIONS["maximum"], np.array([1, 5, 2, 9]), 3, [[2], [2], [1]])
    assert outputs_of(content, *feed) == [5, 9]


def test_refusals() -> None:
    x = np.arange(4)
    refused_by_both(window(0, x, 0, [[1], [1], [1]]), "BT-WINDOW")
    refused(window(1, x, 0, [[1], [0], [1]]), "BT-WINDOW")
    refused(window(1, x, 0, [[1, 1], [1], [1]]), "BT-WINDOW")
    refused(window(1, x > 1, False, [[2], [1], [1]], "bool"), "BT-WINDOW")
