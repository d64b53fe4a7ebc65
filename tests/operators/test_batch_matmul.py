"""matmul of tensors with scales of their own (BATCH_MATMUL) against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.strategies import scales, seeded, seeds, zero_points

KINDS = {
    "s8": ("s8", "s8", "s8"),
    "s32": ("s8", "s8", "s32"),
    "s16": ("s16", "s16", "s16"),
    "s16xs8": ("s16", "s8", "s16"),
    "f32": ("f32", "f32", "f32"),
    "hybrid": ("f32", "s8", "f32"),
}


def product(
    kind: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    adj: tuple[bool, bool] = (False, False),
    constant: str = "",
    parameters: tuple[tuple[float, int], ...] = ((0.05, 0), (0.02, 0), (0.5, 0)),
    seed: int = 1,
    asymmetric: bool = False,
) -> bytes:
    """`left` and `right` as they are meant; they are stored exchanged where `adj` says so."""
    tensors = []
    for i, (shape, dtype, exchanged) in enumerate(zip((left, right), KINDS[kind], (*adj,), strict=False)):
        stored = (*shape[:-2], shape[-1], shape[-2]) if exchanged else shape
        data = seeded(dtype, stored, seed + i) if "xy"[i] in constant else None
        scale, zero_point = (None, 0) if dtype == "f32" else parameters[i]
        tensors.append(T(dtype, stored, scale, zero_point, data=data))
    scale, zero_point = (None, 0) if kind in ("f32", "s32", "hybrid") else parameters[2]
    options = {"adjX": adj[0], "adjY": adj[1], "asymmetricQuantizeInputs": asymmetric}
    return single(
        "BATCH_MATMUL",
        ("BatchMatMulOptions", options),
        tensors,
        [T(KINDS[kind][2], (), scale, zero_point)],
        version=4,
    )


@st.composite
def products(draw: st.DrawFn) -> tuple[bytes, int]:
    kind = draw(st.sampled_from([*KINDS, "s8"]))
    rows, depth, columns = (draw(st.integers(1, 9)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=3))
    batches = []
    for _ in "xy":
        some = [draw(st.sampled_from([size, size, 1])) for size in batch]
        batches.append(tuple(some[draw(st.integers(0, len(some))) :]))
    types = KINDS[kind]
    points = [draw(zero_points(t)) if t == "s8" and "s16" not in types else 0 for t in types]
    limits = [(1e-3, 0.1), (1e-3, 0.1), (1e-3, 4.0)]
    parameters = tuple((draw(scales(*limit)), point) for limit, point in zip(limits, points, strict=True))
    seed = draw(seeds)
    adj = (draw(st.booleans()), draw(st.booleans()))
    constant = draw(st.sampled_from(["", "", "y", "x"]))
    content = product(
        kind, (*batches[0], rows, depth), (*batches[1], depth, columns), adj, constant, parameters, seed % 1000
    )
    return content, seed


@given(products())
def test_batch_matmul(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("left", "right", "adj", "constant"),
    [
        ((2, 3, 37, 64), (2, 3, 64, 41), (False, True), ""),
        ((4, 50, 33), (4, 33, 70), (False, False), ""),
        ((1, 17, 200), (200, 129), (False, False), "y"),
        ((3, 17, 200), (1, 200, 31), (True, True), "y"),
        ((2, 1, 5, 9), (3, 9, 4), (True, False), ""),
        ((40, 3), (2, 2, 2, 3, 5), (False, False), "x"),
    ],
)
def test_layers_of_models(
    kind: str, left: tuple[int, ...], right: tuple[int, ...], adj: tuple[bool, bool], constant: str
) -> None:
    """Attention and dense layers; binary32 sums are long enough to show their order."""
    content = product(kind, left, right, adj, constant)
    assert check(content, feeds_for(content, 5)) == "equal"


@st.composite
def hybrids(draw: st.DrawFn) -> tuple[bytes, list[np.ndarray]]:
    rows, depth, columns = draw(st.integers(1, 6)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
    batch = draw(st.lists(st.integers(1, 3), max_size=3))
    batches = []
    for _ in "xy":
        some = [draw(st.sampled_from([size, size, 1])) for size in batch]
        batches.append(tuple(some[draw(st.integers(0, len(some))) :]))
    adj, seed = (draw(st.booleans()), draw(st.booleans())), draw(seeds)
    left, right = (*batches[0], rows, depth), (*batches[1], depth, columns)
    stored = [(*s[:-2], s[-1], s[-2]) if a else s for s, a in zip((left, right), adj, strict=True)]
    per_axis = columns > 1 and draw(st.booleans())
    scale = [draw(scales(1e-3, 1.0)) for _ in range(columns)] if per_axis else draw(scales(1e-3, 1.0))
    axis = len(right) - 1 - adj[1] if per_axis else 0
    x = T("f32", stored[0])
    y = T("s8", stored[1], scale, draw(st.sampled_from([0, 0, 5])), axis, seeded("s8", stored[1], seed))
    options = {"adjX": adj[0], "adjY": adj[1], "asymmetricQuantizeInputs": draw(st.booleans())}
    content = single("BATCH_MATMUL", ("BatchMatMulOptions", options), [x, y], [T("f32", ())], version=4)
    feed = np.random.default_rng(seed).standard_normal(stored[0]).astype(np.float32)
    feed += np.float32(draw(st.sampled_from([0, 3, -100])))
    return content, [feed * (np.random.default_rng(seed).random(feed.shape[:-1])[..., None] < 0.9).astype(np.float32)]


@given(hybrids())
def test_hybrid(case: tuple[bytes, list[np.ndarray]]) -> None:
    content, feed = case
    check(content, [feed, feed], may_refuse=("BT-MATMUL-SUMS",))


@pytest.mark.parametrize("asymmetric", [False, True])
def test_hybrid_sums_beyond_24_bits(asymmetric: bool) -> None:
    """Sums pass through binary32 on their way."""
    content = product("hybrid", (3, 5000), (5000, 4), constant="y", asymmetric=asymmetric)
    feed = np.abs(np.random.default_rng(1).standard_normal((3, 5000))).astype(np.float32)
    assert check(content, [[feed]]) == "equal"


def test_hybrid_columns_computed_at_run_time() -> None:
    """Asymmetric kernels would use the column sums of the first run in all others."""
    content = product("hybrid", (3, 5), (5, 4), asymmetric=True)
    assert check(content, feeds_for(content, 1), may_refuse=("BT-MATMUL-SUMS",)) == "refused"


def test_by_hand() -> None:
    """(1 - 1, 3 - 1) . (5 + 1, 7 + 1) / 4 = 16 / 4; without scales the zero points do not exist."""
    content = product("s8", (1, 2), (2, 1), parameters=((1.0, 1), (1.0, -1), (4.0, 10)))
    x, y = np.int8([[1, 3]]), np.int8([[5], [7]])
    assert only_output(content, x, y).tolist() == [[14]]
    content = product("s32", (1, 2), (2, 1), parameters=((1.0, 1), (1.0, -1), (4.0, 10)))
    assert only_output(content, x, y).tolist() == [[26]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values(value: float) -> None:
    content = product("f32", (3, 4), (4, 9))
    feeds = feeds_for(content, 1)
    feeds[0][0][1, 2] = value
    feeds[0][1][2, 5] = 0
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        ((2, 3), (4, 2), "BT-MATMUL-DEPTH"),
        ((2, 2, 3), (3, 3, 2), "BT-SHAPE-BROADCAST"),
        ((3,), (3, 2), "BT-SHAPE-RANK"),
        ((1, 1, 1, 1, 2, 3), (3, 2), "BT-SHAPE-RANK"),
    ],
)
def test_contradictions_are_refused(left: tuple[int, ...], right: tuple[int, ...], code: str) -> None:
    content = product("s8", left, right)
    assert check(content, feeds_for(content, 1)) == "refused"
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code


# The delegate of xnnpack gives up on empty tensors.
@pytest.mark.numerics("litert", "litert@1.2", "litert-optimized")
@pytest.mark.parametrize(("left", "right"), [((0, 3), (3, 2)), ((2, 0), (0, 2)), ((0, 2, 3), (1, 3, 2))])
@pytest.mark.parametrize("kind", KINDS)
def test_empty_operands(kind: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    content = product(kind, left, right)
    # Rows without elements have no range that a hybrid product could quantize them by.
    undefined = kind == "hybrid" and not left[-1]
    answer = check(content, feeds_for(content, 1), may_refuse=("BT-MATMUL-DEPTH",) if undefined else ())
    assert answer == ("refused" if undefined else "equal")


def test_parameters_per_axis_are_refused() -> None:
    x, y = T("s8", (2, 3), 0.5), T("s8", (3, 2), [0.5, 0.25], 0, 1, seeded("s8", (3, 2), 1))
    content = single("BATCH_MATMUL", ("BatchMatMulOptions", {}), [x, y], [T("s8", (), 0.5)])
    assert check(content, feeds_for(content, 1), may_refuse=("BT-QUANT-PER-AXIS",)) == "refused"


def test_operands_that_the_delegate_packs_before_they_are_computed_are_refused() -> None:
    """The runtime's results are zeros."""
    model = bittrue.load(product("hybrid", (3, 5), (5, 4)))
    with pytest.raises(bittrue.UnsupportedError, match="packs the second operand before"):
        model.prepare("xnnpack")
    assert model.prepare("litert-optimized")
