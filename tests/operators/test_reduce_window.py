"""reduce_window against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY, G, T, several
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


BODIES = {
    "add": ("ADD", "STABLEHLO_ADD"),
    "mul": ("MUL", "STABLEHLO_MULTIPLY"),
    "minimum": ("MINIMUM", "STABLEHLO_MINIMUM"),
    "maximum": ("MAXIMUM", "STABLEHLO_MAXIMUM"),
}


def of_body(x: np.ndarray, first: np.ndarray, dtype: str, bodies: list[str], geometry: dict[str, list[int]]) -> Case:
    """The form whose function is a graph of its own."""
    a, b, y = T(dtype, ()), T(dtype, ()), T(dtype, ())
    body = G([(name, None, [a, b], [y]) for name in bodies], [a, b], [y])
    fields = {name: np.array(numbers, np.int64) for name, numbers in geometry.items()}
    options = ("StablehloReduceWindowOptions", {**fields, "bodySubgraphIndex": 1})
    operands = [T(dtype, x.shape), T(dtype, (), data=first)]
    return several(G([("STABLEHLO_REDUCE_WINDOW", options, operands, [T(dtype, ())])]), body), [[x]]


@st.composite
def cases_of_bodies(draw: st.DrawFn) -> Case:
    dtype, function = draw(st.sampled_from(TYPES[:-1])), draw(st.sampled_from(list(BODIES)))
    shape = draw(sizes(1, 4, 6).filter(lambda found: 0 not in found))
    rng = np.random.default_rng(draw(seeds))
    each = {name: [draw(st.integers(1, 3)) for _ in shape] for name in ("windowDimensions", "windowStrides")}
    each |= {
        name: [draw(st.sampled_from([1, 1, 2, 3])) for _ in shape] for name in ("baseDilations", "windowDilations")
    }
    each["padding"] = [draw(st.integers(-1, 3)) for _ in (*shape, *shape)]
    nan = 0x7FC12345 if function in ("minimum", "maximum") else None
    x, first = (plain_values(rng, "f32" if dtype == "f64" else dtype, found, nan) for found in (shape, ()))
    body = draw(st.sampled_from(BODIES[function]))
    return of_body(x.astype(NUMPY[dtype]), first, dtype, [body], each)


@given(cases_of_bodies())
def test_reductions_by_a_graph(case: Case) -> None:
    check(*case, may_refuse=("BT-WINDOW",))


@pytest.mark.parametrize("bodies", [["SUB"], ["ADD", "ADD"]])
def test_graphs_that_are_no_function(bodies: list[str]) -> None:
    geometry = {name: [2] for name in ("windowDimensions", "windowStrides")}
    geometry |= {"baseDilations": [1], "windowDilations": [1], "padding": [0, 0]}
    refused_by_both(of_body(np.float32([1, 2, 3, 4]), np.float32(0), "f32", bodies, geometry), "BT-WINDOW")


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
