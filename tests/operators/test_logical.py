"""bitwise_and, bitwise_or and bitwise_not of truth values against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, outputs_of, plain_values, refusal
from support.strategies import seeds

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    operator = draw(st.sampled_from(["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"]))
    shapes = draw(broadcast_shapes(1 if operator == "LOGICAL_NOT" else 2))
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, "bool", shape) for shape in shapes]
    inputs = [T("bool", shape) for shape in shapes]
    return binary(operator, None, {}, inputs, T("bool", ()), values, draw(constants) if len(shapes) == 2 else 0)


@given(cases())
def test_logical(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    four = T("bool", (4,))
    feeds = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    model = single("LOGICAL_AND", None, [four, T("bool", (4,))], [T("bool", (4,))])
    assert outputs_of(model, *feeds) == [False, False, False, True]
    model = single("LOGICAL_OR", None, [four, T("bool", (4,))], [T("bool", (4,))])
    assert outputs_of(model, *feeds) == [False, True, True, True]
    assert outputs_of(single("LOGICAL_NOT", None, [four], [T("bool", (4,))]), feeds[1]) == [True, False, True, False]


def test_refusals() -> None:
    model = single("LOGICAL_AND", None, [T("bool", (2,)), T("bool", (3,))], [T("bool", ())])
    assert refusal(model) == "BT-SHAPE-BROADCAST"
    model = single("LOGICAL_OR", None, [T("s32", (2,)), T("s32", (2,))], [T("s32", ())])
    assert refusal(model) == "BT-OPERATOR"
