"""What compiled kernels make of shifts that C++ leaves undefined, against the real runtime.

Scales are drawn so that multipliers ask for left shifts of up to 110 bits, and quotients for right shifts on both sides
of 0..31. What other tests draw reaches neither. tests/data/recorded/litert-as-compiled@aarch64.npz has such models with
the answers of the wheel for aarch64.
"""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import bittrue
from bittrue.compare.comparison import compare_models
from support.build import NUMPY, T, single
from support.differential import check
from support.strategies import seeds

Case = tuple[bytes, list[list[np.ndarray]]]
OURS = "litert-as-compiled"
_WINDOW = {"strideH": 1, "strideW": 1, "padding": 1}
_OPTIONS: dict[str, tuple[str, dict[str, object]] | None] = {
    "QUANTIZE": ("QuantizeOptions", {}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
    "RELU": None,
    "ABS": None,
    "PRELU": None,
    "MUL": ("MulOptions", {}),
    "MEAN": ("ReducerOptions", {"keepDims": True}),
    "SUM": ("ReducerOptions", {"keepDims": True}),
    "CONV_2D": ("Conv2DOptions", _WINDOW),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", {**_WINDOW, "depthMultiplier": 1}),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _WINDOW),
    "BATCH_MATMUL": ("BatchMatMulOptions", {}),
}
_TYPES = {"ABS": ("s8", "s16"), "PRELU": ("s8", "u8"), "SUM": ("u8", "s8")}
_VERSIONS = {"QUANTIZE": 1, "PRELU": 1, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "MUL": 4}
_SHAPE = (1, 3, 4, 2)


class _Draw:
    """Scales, zero points and values from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def scale(self, low: int, high: int) -> float:
        return float(np.float32(self.rng.uniform(0.5, 1) * 2.0 ** int(self.rng.integers(low, high))))

    def zero_point(self, dtype: str) -> int:
        limits = np.iinfo(NUMPY[dtype])
        return 0 if dtype == "s16" else int(self.rng.integers(limits.min, limits.max + 1))

    def values(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        limits = np.iinfo(NUMPY[dtype])
        return self.rng.integers(limits.min, limits.max + 1, shape).astype(NUMPY[dtype])

    def tensor(self, dtype: str, shape: tuple[int, ...], scale: float, data: np.ndarray | None = None) -> T:
        return T(dtype, shape, scale, 0 if data is not None else self.zero_point(dtype), data=data)


def left(operator: str, seed: int) -> Case:
    """A model of one operator whose multiplier is 2^10 to 2^110."""
    draw = _Draw(seed)
    layer = operator in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "BATCH_MATMUL")
    dtype = "s8" if layer else str(draw.rng.choice(_TYPES.get(operator, ("s8", "u8", "s16"))))
    first, second, result = draw.scale(10, 60), draw.scale(-2, 10), draw.scale(-50, 0)
    shape, out = ((3, 4), (3, 2)) if operator == "BATCH_MATMUL" else (_SHAPE, _SHAPE)
    feeds = [draw.values(dtype, shape)]
    inputs = [draw.tensor(dtype, shape, first)]
    if operator == "MUL":
        feeds.append(draw.values(dtype, shape[-1:]))
        inputs.append(draw.tensor(dtype, shape[-1:], second))
    elif operator == "BATCH_MATMUL":
        feeds.append(draw.values(dtype, (4, 2)))
        inputs.append(draw.tensor(dtype, (4, 2), second))
    elif operator == "PRELU":
        inputs.append(T(dtype, (1, 1, 2), second, draw.zero_point(dtype), data=draw.values(dtype, (1, 1, 2))))
    elif operator in ("MEAN", "SUM"):
        inputs.append(T("s32", (2,), data=np.int32([1, 2])))
        out = (1, 1, 1, 2)
    elif layer:
        filters = (1, 1, 1, 2) if operator == "DEPTHWISE_CONV_2D" else (3, 1, 1, 2)
        out = (*_SHAPE[:3], 2 if operator == "DEPTHWISE_CONV_2D" else 3)
        weights = draw.tensor(dtype, filters, second, draw.values(dtype, filters))
        bias = T("s32", out[3:], float(np.float32(first) * np.float32(second)), data=np.int32([1, 2, 3][: out[3]]))
        if operator == "TRANSPOSE_CONV":
            inputs = [T("s32", (4,), data=np.int32(out)), weights, inputs[0]]
        else:
            inputs += [weights, bias]
    to = str(draw.rng.choice(["s8", "u8"])) if operator == "QUANTIZE" and dtype != "s16" else dtype
    output = draw.tensor(to, out, result)
    return single(operator, _OPTIONS[operator], inputs, [output], version=_VERSIONS.get(operator, 2)), [feeds]


def quotient(seed: int) -> Case:
    """A quantized division whose right shifts lie anywhere from -100 to 130, mostly near 0..31."""
    draw = _Draw(seed)
    dtype = str(draw.rng.choice(["s8", "u8", "s16"]))
    power = int(draw.rng.integers(-40, 40)) if draw.rng.integers(4) else int(draw.rng.integers(-110, 110))
    first, second = draw.scale(power - power // 2, power - power // 2 + 1), draw.scale(-(power // 2), 1 - power // 2)
    inputs = [draw.tensor(dtype, (5, 4), first), draw.tensor(dtype, (4,), second)]
    feeds = [draw.values(dtype, (5, 4)), draw.values(dtype, (4,))]
    points = [t.zero_point for t in inputs]
    feeds[0][0] = points[0]
    feeds[1][feeds[1] == points[1]] = points[1] - 1 if points[1] > 0 else points[1] + 1
    output = draw.tensor(dtype, (5, 4), draw.scale(0, 1))
    return single("DIV", ("DivOptions", {}), inputs, [output], version=2), [feeds]


def signed_sum(seed: int) -> Case:
    """A sum of s8 with usual scales."""
    draw = _Draw(seed)
    inputs = [draw.tensor("s8", _SHAPE, draw.scale(-3, 1)), T("s32", (2,), data=np.int32([1, 2]))]
    output = draw.tensor("s8", (1, 1, 1, 2), draw.scale(-2, 4))
    content = single("SUM", _OPTIONS["SUM"], inputs, [output], version=2)
    return content, [[draw.values("s8", _SHAPE)]]


@pytest.mark.numerics(OURS)
@pytest.mark.parametrize("operator", _OPTIONS)
@given(seed=seeds)
def test_left_shifts(operator: str, seed: int) -> None:
    assert check(*left(operator, seed)) == "equal"


@pytest.mark.numerics(OURS)
@given(seeds)
def test_right_shifts_of_quotients(seed: int) -> None:
    assert check(*quotient(seed)) == "equal"


@pytest.mark.numerics(OURS)
@given(seeds)
def test_sums_of_signed_bytes(seed: int) -> None:
    assert check(*signed_sum(seed)) == "equal"


def test_plans_name_the_shift_and_others_refuse_it() -> None:
    x = [T("s8", (2,), 2.0**51), T("s8", (2,), 2.0**50)]
    model = bittrue.load(single("MUL", _OPTIONS["MUL"], x, [T("s8", (2,), 1.0)], version=4))
    with pytest.raises(bittrue.InvalidModelError, match=r"BT-MULTIPLIER.*numerics 'litert-as-compiled' has its bits"):
        model.prepare("litert")
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER") as caught:
        model.prepare("litert-optimized")
    assert OURS not in str(caught.value)
    session = model.prepare(OURS)
    assert "shifts that C++ leaves undefined, with the bits of the builds named above: 1 MUL" in str(session.plan)
    # 1 * 2^101 needs a left shift by 102, which is one by 6.
    assert "undefined_shift 102" in str(session.plan)
    assert "shift_count=modulo_32" in str(session.plan)
    (found,) = session.run(np.int8([1, -2]), np.int8([1, 1])).values()
    assert found.tolist() == [32, -64]


def test_bytes_that_are_read_as_others_are_no_benign_difference(tmp_path: Path) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(signed_sum(1)[0])
    found = compare_models(path, f"{path}@{OURS}")
    assert [(c.name, c.benign) for pair in found.pairs if pair.verdict for c in pair.verdict.causes] == [
        ("read_as=unsigned_bytes", False)
    ]


@pytest.mark.skipif(platform.machine() == "aarch64", reason="the runtime's usual numerics is another one there")
def test_the_graph_of_what_the_runtime_alone_runs_is_known(tmp_path: Path) -> None:
    x = [T("s8", (2,), 2.0**51), T("s8", (2,), 2.0**50)]
    path = tmp_path / "mul.tflite"
    path.write_bytes(single("MUL", _OPTIONS["MUL"], x, [T("s8", (2,), 1.0)], version=4))
    found = compare_models(f"litert:builtin_ref:{path}", f"{path}@{OURS}")
    assert found.equal
    assert [note for note in found.notes if OURS in note]
    assert not [note for note in found.notes if "cannot be cut" in note]


def test_sums_of_16_bits_are_refused_as_half_of_them_is_chance() -> None:
    inputs = [T("s16", (1, 2), 1.0), T("s32", (1,), data=np.int32([1]))]
    model = bittrue.load(single("SUM", _OPTIONS["SUM"], inputs, [T("s16", (1, 1), 1.0)], version=2))
    with pytest.raises(bittrue.UnsupportedError, match="first half of this type's bytes"):
        model.prepare(OURS)
