"""arg_max and arg_min against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, TYPES, T, single
from support.differential import check, feeds_for, only_output
from support.strategies import seeds


def model(name: str, x: T, axis: int, out: str = "s32", axis_type: str = "s32", declared: str = "") -> bytes:
    table = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions"}[name]
    axes = T(axis_type, (), data=np.array(axis, NUMPY[axis_type]))
    return single(name, (table, {"outputType": TYPES[declared or out]}), [x, axes], [T(out, ())], version=2)


@st.composite
def position(draw: st.DrawFn, name: str) -> tuple[bytes, list[list[np.ndarray]]]:
    dtype = draw(st.sampled_from(["s8", "u8", "f32", "s32", "bool"]))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=0 if draw(st.integers(0, 19)) == 0 else 1, max_size=4)))
    if draw(st.booleans()) and shape:
        shape = (*shape[:-1], draw(st.integers(1, 70)))
    if draw(st.integers(0, 19)) == 0 and shape:
        shape = (*shape[:-1], 0)
    out, axis_type = draw(st.sampled_from(["s32", "s64"])), draw(st.sampled_from(["s32", "s64"]))
    limit = max(1, len(shape)) + (draw(st.integers(0, 15)) == 0)
    scale = 0.5 if dtype in ("s8", "u8") else None
    axis = draw(st.integers(-limit, limit - 1))
    content = model(name, T(dtype, shape, scale), axis, out, axis_type)
    seed = draw(seeds)
    if dtype in ("f32", "s32") and draw(st.booleans()):
        # Few different values, so that there are ties, signed zeros, infinities and NaN.
        values = [0, 1, -1] if dtype == "s32" else [0.0, -0.0, 1.0, np.inf, -np.inf, -np.inf]
        if dtype == "f32" and shape and -limit < axis and np.prod(shape[axis:][1:]) > 1:
            # Along neighbours in memory the runtime's answer depends on its vector lanes (see the row's limit).
            values += [np.nan, np.nan]
        kept = draw(st.integers(1, len(values)))
        rng = np.random.default_rng(seed)
        return content, [[rng.choice(np.array(rng.permutation(values)[:kept], NUMPY[dtype]), shape)]]
    return content, feeds_for(content, seed)


@given(position("ARG_MAX"))
def test_arg_max(case: tuple[bytes, list[list[np.ndarray]]]) -> None:
    check(*case)


@given(position("ARG_MIN"))
def test_arg_min(case: tuple[bytes, list[list[np.ndarray]]]) -> None:
    check(*case)


@given(
    st.sampled_from(["ARG_MAX", "ARG_MIN"]),
    st.sampled_from(["s8", "u8"]),
    st.integers(1, 40),
    st.integers(1, 300),
    seeds,
)
def test_bytes_in_rows(name: str, dtype: str, rows: int, length: int, seed: int) -> None:
    """Many rows at a time, whose chunks overlap, with ties."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 256, rng.integers(1, 200)).astype(np.uint8).view(NUMPY[dtype])
    assert check(model(name, T(dtype, (rows, length), 0.5), 1), [[rng.choice(values, (rows, length))]]) == "equal"


def test_nan_is_worse_than_every_number() -> None:
    x = np.float32([[np.nan, -np.inf, 3], [np.nan, np.nan, np.nan], [np.nan, np.nan, -np.inf]])
    content = model("ARG_MAX", T("f32", (3, 3, 1)), 1)
    assert only_output(content, x[..., None]).reshape(-1).tolist() == [2, 0, 2]
    # Two columns, so that neighbours in memory do not belong to one answer.
    content = model("ARG_MAX", T("f32", (3, 3, 2)), 1)
    assert check(content, [[np.repeat(x[..., None], 2, axis=2)]]) == "equal"


def test_the_first_of_equals_wins() -> None:
    x = np.int8([[3, 7, 7], [-1, -1, -2]])
    assert only_output(model("ARG_MAX", T("s8", (2, 3), 1.0), 1), x).tolist() == [1, 0]
    assert only_output(model("ARG_MIN", T("s8", (2, 3), 1.0), -2), x).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (model("ARG_MAX", T("s8", (2, 3), 1.0), 2), "BT-SHAPE-AXIS"),
        (model("ARG_MAX", T("s8", (2, 0), 1.0), 1), "BT-ARG-EMPTY"),
        (model("ARG_MAX", T("s8", (), 1.0), 0), "BT-SHAPE-RANK"),
        (model("ARG_MAX", T("s8", (2,), 1.0), 0, declared="f32"), "BT-ARG-TYPE"),
        (model("ARG_MAX", T("s8", (2,), 1.0), 0, declared="s64"), "BT-ARG-TYPE"),
    ],
)
def test_refused(content: bytes, code: str) -> None:
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()
    # The runtime overrides the output tensor's type with the declared one where it can.
    check(content, feeds_for(content, 0), may_refuse={"BT-ARG-TYPE"})
