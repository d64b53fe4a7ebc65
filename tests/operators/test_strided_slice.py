"""strided_slice against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.movement import EVERY, check_defined, constant, feeds, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeds

UNDEFINED = {"BT-STRIDED-SLICE-RANGE", "BT-STRIDED-SLICE"}


def strided(x: T, begin: T, end: T, strides: T, y: T, **options: object) -> bytes:
    return single("STRIDED_SLICE", ("StridedSliceOptions", options), [x, begin, end, strides], [y], version=4)


@st.composite
def masked(draw: st.DrawFn, wild: bool) -> bytes:
    """Indices of one tensor, with masks that make sense or (wild) any bits."""
    dtype, shape = draw(st.sampled_from(EVERY)), draw(sizes(0, 5, 4))
    count = draw(st.integers(0, len(shape) + 2)) if wild else draw(st.integers(0, len(shape)))
    begin = [draw(st.integers(-6, 6)) for _ in range(count)]
    end = [draw(st.integers(-6, 6)) for _ in range(count)]
    strides = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -1, -2])) for _ in range(count)]
    bits = st.integers(0, 2 ** (count + 1) - 1)
    masks = {"beginMask": draw(bits), "endMask": draw(bits)}
    if draw(st.booleans()):
        masks["shrinkAxisMask"] = draw(bits)
        for axis in range(count):
            if masks["shrinkAxisMask"] >> axis & 1 and draw(st.integers(0, 9)):
                strides[axis] = 1
                dimension = shape[axis] if axis < len(shape) else 1
                begin[axis] = draw(st.integers(-dimension, max(0, dimension - 1)))
    if wild:
        masks["ellipsisMask"], masks["newAxisMask"] = draw(bits), draw(bits)
    elif count and draw(st.booleans()):
        masks["ellipsisMask"] = 1 << draw(st.integers(0, count - 1))
    if draw(st.integers(0, 2)) == 0:
        masks["newAxisMask"] = draw(bits)
    if draw(st.integers(0, 20)) == 0 and count:
        strides[0] = 0
    size = (count,)
    arrays = [constant(values, shape=size) for values in (begin, end, strides)]
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return strided(x, *arrays, y, **masks)


@st.composite
def offset(draw: st.DrawFn) -> tuple[bytes, np.ndarray | None]:
    """End counts from begin, which may be an input."""
    dtype, shape = draw(st.sampled_from(EVERY)), draw(sizes(1, 4, 4))
    begin, end, strides = [], [], []
    for size in shape:
        start = draw(st.integers(0, size))
        begin.append(start - size if size and start < size and draw(st.booleans()) else start)
        end.append(draw(st.integers(0, size - start)))
        strides.append(draw(st.sampled_from([1, 1, 2])))
    shrink = draw(st.integers(0, 2 ** len(shape) - 1)) if draw(st.booleans()) else 0
    if draw(st.integers(0, 9)) == 0:
        end[0] += 2
    fixed = draw(st.booleans())
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, ())
    first = constant(begin) if fixed else T("s32", (len(shape),))
    content = strided(x, first, constant(end), constant(strides), y, offset=True, shrinkAxisMask=shrink)
    return content, None if fixed else np.int32(begin)


@given(masked(wild=False), seeds)
def test_strided_slice(content: bytes, seed: int) -> None:
    check_defined(content, feeds(content, seed), UNDEFINED)


@given(masked(wild=True), seeds)
def test_masks_of_any_bits(content: bytes, seed: int) -> None:
    check_defined(content, feeds(content, seed), UNDEFINED)


@given(offset(), seeds)
def test_offset(case: tuple[bytes, np.ndarray | None], seed: int) -> None:
    content, begin = case
    (inputs,) = feeds(content, seed)
    if begin is not None:
        inputs[1] = begin
    check_defined(content, [inputs], UNDEFINED)


@pytest.mark.numerics("xnnpack")
@pytest.mark.parametrize(
    ("shape", "count", "outcome"), [((2, 3), 0, "equal"), ((2, 3), 1, "equal"), ((3,), 1, "refused")]
)
def test_xnnpack_leaves_slices_of_some_axes_to_other_kernels(shape: tuple[int, ...], count: int, outcome: str) -> None:
    """Found by a new example: those run although the parameters differ."""
    arrays = [constant([value] * count, shape=(count,)) for value in (0, 1, 1)]
    content = strided(T("s8", shape, 0.001, -128), *arrays, T("s8", (), 1.0, -128))
    assert check_defined(content, feeds(content, 0), UNDEFINED) == outcome


def test_it_means_what_python_slices_mean() -> None:
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    # x[..., None, ::-2] and x[1, :2]
    arrays = [constant([0, 0, 0]), constant([0, 0, 0]), constant([1, 1, -2])]
    content = strided(
        T("s8", x.shape), *arrays, T("s8", (), name="y"), ellipsisMask=1, newAxisMask=2, beginMask=4, endMask=4
    )
    assert np.array_equal(bittrue.load(content).prepare().run(x)["y"], x[..., None, ::-2])
    arrays = [constant([1, 0]), constant([0, 2]), constant([1, 1])]
    content = strided(T("s8", x.shape), *arrays, T("s8", (), name="y"), shrinkAxisMask=1)
    assert np.array_equal(bittrue.load(content).prepare().run(x)["y"], x[1, :2])


@pytest.mark.parametrize(
    ("begin", "end", "strides", "options", "code", "runtime_refuses"),
    [
        ([0], [2], [0], {}, "BT-STRIDED-SLICE", True),
        ([0], [2, 2], [1], {}, "BT-STRIDED-SLICE", True),
        ([0] * 32, [1] * 32, [1] * 32, {}, "BT-STRIDED-SLICE", True),
        # Undefined in the kernel: it reads beyond the strides.
        ([0, 0], [1, 1], [1], {}, "BT-STRIDED-SLICE", False),
        # Recorded limits: the kernel would leave the output unwritten, or write outside it.
        ([2], [3], [1], {"shrinkAxisMask": 1}, "BT-STRIDED-SLICE-RANGE", False),
        ([1], [0], [-1], {"shrinkAxisMask": 1}, "BT-STRIDED-SLICE-RANGE", False),
        ([1, 0], [2, 2], [1, 1], {"offset": True}, "BT-STRIDED-SLICE-RANGE", False),
        ([0], [1], [1], {"offset": True}, "BT-STRIDED-SLICE", False),
    ],
)
def test_errors(
    begin: list[int], end: list[int], strides: list[int], options: dict[str, object], code: str, runtime_refuses: bool
) -> None:
    arrays = [constant(values) for values in (begin, end, strides)]
    content = strided(T("s8", (2, 3)), *arrays, T("s8", ()), **options)
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    if runtime_refuses:
        assert not runs_in_runtime(content, feeds(content, 0)[0])


def test_an_offset_outside_is_an_error_of_the_run() -> None:
    content = strided(T("s8", (4,)), T("s32", (1,)), constant([2]), constant([1]), T("s8", (), name="y"), offset=True)
    session = bittrue.load(content).prepare()
    x = np.int8([1, 2, 3, 4])
    assert session.run(x, np.int32([2]))["y"].tolist() == [3, 4]
    with pytest.raises(bittrue.RunError, match="BT-STRIDED-SLICE-RANGE"):
        session.run(x, np.int32([3]))
