"""reshape, squeeze and expand_dims against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T, single
from support.differential import check
from support.movement import EVERY, constant, feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.runtimes import RUNTIMES
from support.strategies import seeds

TYPES = st.sampled_from((*EVERY, "s4", "u4", "c128"))


@st.composite
def reshape(draw: st.DrawFn) -> tuple[bytes, bool]:
    """A model, and whether XNNPACK would take a 0 in its shape for the input's size there."""
    dtype, shape = draw(TYPES), draw(sizes())
    split = list(shape)
    if draw(st.booleans()):
        split = draw(st.permutations(split))
    if split and draw(st.booleans()):
        at = draw(st.integers(0, len(split) - 1))
        split[at : at + 2] = [int(np.prod(split[at : at + 2]))]
    if draw(st.booleans()):
        split.insert(draw(st.integers(0, len(split))), 1)
    if split and draw(st.booleans()):
        split[draw(st.integers(0, len(split) - 1))] = draw(st.sampled_from([-1, -1, -1, -2, 0, 7]))
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    attribute = split if draw(st.booleans()) else draw(st.sampled_from([None, [3, 5], [0]]))
    inputs = [x]
    if attribute is not split or draw(st.booleans()):
        inputs.append(constant(split, shape=(len(split),)))
    options = None if attribute is None else ("ReshapeOptions", {"newShape": attribute})
    wanted = split if len(inputs) > 1 else attribute or []
    return single("RESHAPE", options, inputs, [y]), dtype in ("f16", "f32") and 0 in wanted


@st.composite
def squeeze(draw: st.DrawFn) -> bytes:
    dtype = draw(TYPES)
    shape = draw(st.lists(st.sampled_from([1, 1, 2, 3, 0]), max_size=6).map(tuple))
    axes = [i for i, size in enumerate(shape) if size == 1 and draw(st.booleans())]
    axes = [axis - len(shape) if draw(st.booleans()) else axis for axis in axes]
    if draw(st.integers(0, 4)) == 0:
        axes.append(draw(st.integers(-4, 4)))
    options = ("SqueezeOptions", {"squeezeDims": axes}) if draw(st.booleans()) else None
    return single("SQUEEZE", options, [tensor(dtype, shape, draw(parameters(dtype)))], [tensor(dtype, ())])


@st.composite
def expand_dims(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(TYPES), draw(sizes())
    given_parameters = draw(parameters(dtype))
    axis = constant(
        [draw(st.integers(-len(shape) - 2, len(shape) + 1))],
        draw(st.sampled_from(["s32", "s64"])),
        draw(st.sampled_from([(), (1,)])),
    )
    y = tensor(dtype, (), draw(nearly(dtype, given_parameters)))
    return single("EXPAND_DIMS", None, [tensor(dtype, shape, given_parameters), axis], [y])


@given(case=reshape(), seed=seeds)
def test_reshape(case: tuple[bytes, bool], seed: int) -> None:
    content, copies = case
    refused = {"BT-RESHAPE"} if copies and differential.COMPARED == "xnnpack" else ()
    check(content, feeds(content, seed), may_refuse=refused)


@pytest.mark.numerics("xnnpack")
@pytest.mark.parametrize(("shape", "wanted"), [((1,), [0, 1]), ((2, 3), [0, 3])])
def test_xnnpack_copies_sizes_and_bittrue_refuses_them(shape: tuple[int, ...], wanted: list[int]) -> None:
    content = single("RESHAPE", None, [T("f32", shape), constant(wanted, shape=(2,))], [T("f32", ())])
    assert RUNTIMES["xnnpack"].run(content, feeds(content, 0), [2]).ran
    assert check(content, feeds(content, 0), may_refuse={"BT-RESHAPE"}) == "refused"


@given(squeeze(), seeds)
def test_squeeze(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(expand_dims(), seeds)
def test_expand_dims(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_the_runtime_aborts_on_an_absent_new_shape() -> None:
    content = single("RESHAPE", ("ReshapeOptions", {"newShape": [6]}), [T("s8", (2, 3)), None], [T("s8", ())])
    assert not runs_in_runtime(content, [np.zeros((2, 3), np.int8)])
    with pytest.raises(bittrue.InvalidModelError, match="BT-NODE-INPUT"):
        bittrue.load(content).prepare()


def test_results_are_new_arrays() -> None:
    x = T("s8", (2, 3))
    content = single("RESHAPE", ("ReshapeOptions", {"newShape": [3, 2]}), [x], [T("s8", (), name="y")])
    given_array = np.arange(6, dtype=np.int8).reshape(2, 3)
    values = bittrue.load(content).prepare().trace(given_array)
    assert values["y"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert not np.shares_memory(values["y"], values["t0"])


@pytest.mark.parametrize(
    ("operator", "options", "inputs", "code"),
    [
        ("RESHAPE", ("ReshapeOptions", {"newShape": [4, 2]}), [T("s8", (2, 3))], "BT-RESHAPE"),
        ("RESHAPE", ("ReshapeOptions", {"newShape": [-1, -1]}), [T("s8", (2, 3))], "BT-RESHAPE"),
        ("SQUEEZE", ("SqueezeOptions", {"squeezeDims": [0]}), [T("s8", (2, 3))], "BT-SQUEEZE"),
        ("SQUEEZE", ("SqueezeOptions", {"squeezeDims": [2]}), [T("s8", (2, 3))], "BT-SHAPE-AXIS"),
        ("EXPAND_DIMS", None, [T("s8", (2, 3)), constant([4])], "BT-SHAPE-AXIS"),
        ("EXPAND_DIMS", None, [T("s8", (2, 3)), constant([1, 2])], "BT-OPERAND-SIZE"),
        ("EXPAND_DIMS", None, [T("s8", (2, 3), 0.5, 1), constant([1])], "BT-QUANT-SAME"),
    ],
)
def test_errors(operator: str, options: object, inputs: list[T], code: str) -> None:
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(single(operator, options, inputs, [T("s8", ())])).prepare()
    assert caught.value.code == code
