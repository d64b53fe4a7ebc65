"""Rows that refuse need no implementation of their operator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bittrue
from bittrue import numerics
from bittrue.numerics import Numerics, Row
from support.build import T, single
from support.shared import SHARED, needs_shared


def svdf(time: str, state: str) -> bytes:
    inputs = [
        T("s8", (1, 4), 0.1, -128),
        T("s8", (3, 4), 0.01, 0, 0, np.zeros((3, 4))),
        T(time, (3, 2), 0.01, 0, 0, np.zeros((3, 2))),
        T("s32", (3,), 0.01, 0, 0, np.zeros(3)),
        T(state, (1, 6), 0.5, 0, variable=True),
    ]
    options = ("SVDFOptions", {"rank": 1, "fusedActivationFunction": 1})
    return single("SVDF", options, inputs, [T("s8", (1, 3), 0.2, -128)], version=3)


@pytest.mark.parametrize(("time", "state"), [("s8", "s8"), ("s16", "s8"), ("s8", "s16")])
def test_svdf_with_an_int8_state_is_undefined(time: str, state: str) -> None:
    with pytest.raises(bittrue.UnsupportedError, match="int8 state") as caught:
        bittrue.load(svdf(time, state)).prepare()
    assert caught.value.code == "BT-UNDEFINED"
    assert "SVDF" in caught.value.place


@needs_shared
def test_keyword_model_is_refused_with_the_reason() -> None:
    model = bittrue.load(SHARED / "models" / "tflm_keyword_scrambled_8bit.tflite")
    with pytest.raises(bittrue.UnsupportedError, match=r"BT-UNDEFINED.*int8 state"):
        model.prepare()


def test_rows_with_conditions_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows for the same types: a condition that fails, one that holds, and none."""
    litert = numerics.find("litert")
    row = litert.find("squeeze", ("s8",), ("s8",))
    assert row is not None

    def plan_with(*rows: Row, rank: int) -> bittrue.plan.Plan:
        table = Numerics("conditions", "nothing", "", rows)
        monkeypatch.setattr(numerics, "find", lambda name: table)
        x = T("s8", (1,) * rank, 0.5)
        return bittrue.load(single("SQUEEZE", None, [x], [T("s8", (), 0.5)])).prepare("conditions").plan

    flat = replace(row, when=(("input_rank", 0, 1, 2),))
    refusing = replace(row, when=(("input_rank", 0, 3),), refuses="cubes have no defined result here")
    assert len(plan_with(flat, row, rank=3).steps) == 1
    assert len(plan_with(flat, refusing, rank=2).steps) == 1
    with pytest.raises(bittrue.UnsupportedError, match=r"BT-UNDEFINED.*cubes"):
        plan_with(flat, refusing, row, rank=3)
    with pytest.raises(bittrue.UnsupportedError, match=r"BT-OPERATOR.*none for what this node asks for"):
        plan_with(flat, refusing, rank=4)
