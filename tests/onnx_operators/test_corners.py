"""Corners of single operators: nothing to reduce, no axes, exponents of other types, rows of zeros, floats of 8 bits.

Stems: sum, mean, reduce_prod, arg_max, arg_min, topk_v2, power, lp_normalization, dequantize,
average_pool, group_normalization, mean_variance_normalization, matmul, shrink, cosine_window, inference,
reverse_sequence.
"""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.operators.reduction.searches import first_by_partition
from support.onnx_models import HERE, MICROSOFT, Checks, check, natively, run_runtime, single
from support.onnx_narrow import run_memory

KINDS = (np.float32, np.float64, np.int32, np.int64)
REDUCTIONS = ("ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")


def _reduction(
    operator: str, x: np.ndarray, axes: list[int], opset: int, constant: bool, **attributes: int
) -> tuple[bytes, list[np.ndarray]]:
    """Axes are an operand, or the attribute of older sets."""
    operand = opset >= (13 if operator == "ReduceSum" else 18)
    inputs = {"x": x, **({"axes": np.array(axes, np.int64)} if operand else {})}
    given: dict[str, Any] = {**attributes, **({} if operand else {"axes": axes})}
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return single(operator, inputs, [kind], given, opset=opset, constants=["axes"] if constant else [])


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions_of_nothing(operator: str) -> None:
    """The runtime keeps the axes that are counted from the back, and the mean of nothing is 0."""
    for axes, kept in product(([-1], [1], [2, -2], [-3, 1]), (0, 1)):
        for kind, (opset, constant) in zip(KINDS, ((12, True), (20, True), (20, False), (20, True)), strict=True):
            x = np.zeros((3, 0, 4), kind)
            content, feeds = _reduction(operator, x, axes, opset, constant, keepdims=kept)
            assert check(content, feeds) == "equal", (axes, kept, kind)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_positions_in_nothing(operator: str) -> None:
    """The same of positions; an axis without elements that is counted from the front is an error if there are any."""
    for axis, kept in product(range(-3, 3), (0, 1)):
        content, feeds = single(operator, {"x": np.zeros((3, 0, 4), np.float32)}, [7], {"axis": axis, "keepdims": kept})
        assert check(content, feeds) == ("refused" if axis == 1 else "equal"), (axis, kept)
    assert check(*single(operator, {"x": np.zeros((0, 0), np.float32)}, [7], {"axis": 0})) == "equal"


@pytest.mark.parametrize("shape", [(), (2, 2)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceProd", "ReduceSum"])
def test_reductions_along_no_axes(operator: str, kind: type[Any], shape: tuple[int, ...]) -> None:
    """They copy: zeros keep their sign, and integers beyond 2^53 all of their digits."""
    x = np.array([0, 2**30 + 1, -7, 2**60 + 1 if kind is np.int64 else 3]).astype(kind)
    x = -x.reshape(shape) if shape else x[3]
    content, feeds = single(
        operator, {"x": x}, [helper.np_dtype_to_tensor_dtype(x.dtype)], {"noop_with_empty_axes": 1}, opset=20
    )
    assert check(content, feeds) == "equal"


def test_integer_exponents(request: pytest.FixtureRequest) -> None:
    """Powers of binary32 numbers are taken in binary64 then; 2^24 + 1 stays odd."""
    checks = Checks(request, usual=10, only="equal")
    for rng in checks:
        kind = [np.int32, np.int64, np.float64][rng.integers(3)]
        x = rng.standard_normal((5, 4, 9)).astype(np.float32)
        y = rng.integers(-9, 10, ((5, 4, 9), (5, 4, 1), (1,), ())[rng.integers(4)]).astype(kind)
        if rng.random() < 0.3:
            x, y = np.copysign(np.float32(1) + np.float32(2**-20), x), y + np.asarray(2**24, kind)
        constants = ["y"] if rng.random() < 0.5 else []
        checks.add(*single("Pow", {"x": x, "y": y}, [1], opset=15, constants=constants))


@pytest.mark.parametrize("shape", [(), (7,), (3, 7)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_integer_exponents_are_native(kind: type[Any], shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    inputs = {"x": rng.standard_normal((3, 7)).astype(np.float32), "y": rng.integers(-5, 6, shape).astype(kind)}
    natively(*single("Pow", inputs, [1], opset=15))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_power_of_one_number_by_another(kind: type[Any]) -> None:
    inputs = {"x": np.asarray(3, kind), "y": np.asarray(2, np.int32)}
    content, feeds = single("Pow", inputs, [helper.np_dtype_to_tensor_dtype(np.dtype(kind))], opset=15)
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_zeros_by_their_length(p: int) -> None:
    """They become zeros without a sign."""
    x = np.float32([[0.0, -0.0], [3.0, -4.0]])
    assert check(*single("LpNormalization", {"x": x}, [1], {"p": p})) == "equal"


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_floats_of_8_bits_by_constant_scales(kind: str, shape: tuple[int, ...]) -> None:
    """Without a zero point they are no integers to the native executor, either."""
    x = np.arange(30, dtype=np.uint8).reshape(10, 3).view(getattr(ml_dtypes, kind))
    inputs = {"x": x, "scale": np.full(shape, 0.3, np.float32)}
    content, feeds = single("DequantizeLinear", inputs, [1], {"axis": 1}, opset=19, constants=["scale"])
    assert check(content, feeds, expected=lambda: run_memory(content, feeds)) == "equal"


@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize(
    ("kernel", "pads"), [([2, 2], [0] * 4), ([3, 3], [1] * 4), ([3, 1], [1, 0, 1, 0]), ([1, 4], [0, 2, 0, 1])]
)
def test_averages_of_negative_zeros(channels: int, kernel: list[int], pads: list[int]) -> None:
    """In planes they stay negative but where the padding's columns of 0 come in."""
    x = np.full((1, channels, 5, 7), -0.0, np.float32)
    attributes = {"kernel_shape": kernel, "pads": pads}
    assert check(*single("AveragePool", {"x": x}, [1], attributes, opset=13)) == "equal"


def test_averages_of_negative_zeros_in_volumes() -> None:
    x = np.full((1, 3, 4, 5, 3), -0.0, np.float32)
    attributes = {"kernel_shape": [2, 2, 2], "pads": [1] * 6}
    assert check(*single("AveragePool", {"x": x}, [1], attributes, opset=13)) == "equal"


_DILATED = {"x": (2, 32, 4, 4), "w": (32, 32, 3, 3)}


@pytest.mark.parametrize(("dilation", "pads"), [(12, [12] * 4), (5, [10, 1, 1, 10]), (3, [9, 2, 0, 4])])
def test_taps_that_meet_padding_alone(dilation: int, pads: list[int]) -> None:
    """Widely dilated filters pass over some at one side, or at both."""
    rng = np.random.default_rng(dilation)
    operands = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in _DILATED.items()}
    attributes = {"dilations": [dilation] * 2, "pads": pads}
    natively(*single("Conv", operands, [1], attributes, opset=13, constants=["w"]))


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize(("shape", "groups"), [((16, 16), 1), ((10, 16), 1), ((16, 1), 16), ((8, 3), 1), ((6, 1), 6)])
def test_endless_taps_that_meet_padding(value: float, shape: tuple[int, int], groups: int) -> None:
    """In blocks of channels they count where they meet the image alone; in planes padding is a number like others."""
    rng = np.random.default_rng(shape[0])
    w = rng.standard_normal((*shape, 3, 3)).astype(np.float32)
    w[::3, 0, 0, ::2] = value
    operands = {"x": rng.standard_normal((2, shape[1] * groups, 4, 5)).astype(np.float32), "w": w}
    operands["b"] = rng.standard_normal(shape[0]).astype(np.float32)
    for dilation, stride in ((1, 1), (2, 1), (1, 2)):
        attributes = {"pads": [1, 2, 2, 1], "group": groups, "dilations": [dilation] * 2, "strides": [stride] * 2}
        content, feeds = single("Conv", operands, [1], attributes, opset=13, constants=["w", "b"])
        theirs, ours = run_runtime(content, feeds), bittrue.load(content).prepare(HERE).run(*feeds)
        assert isinstance(theirs, dict)
        # The sign of a NaN is not compared.
        given, found = (np.where(np.isnan(y), np.float32(np.nan), y) for y in (theirs["y0"], ours["y0"]))
        assert given.tobytes() == found.tobytes()


def _unsorted(x: np.ndarray, count: int, largest: bool = True) -> tuple[bytes, list[np.ndarray]]:
    inputs = {"x": x, "k": np.array([count])}
    attributes = {"axis": 1, "sorted": 0, "largest": int(largest)}
    kinds = [helper.np_dtype_to_tensor_dtype(x.dtype), 7]
    return single("TopK", inputs, kinds, attributes, opset=11, constants=["k"])


def test_largest_elements_in_no_order(request: pytest.FixtureRequest) -> None:
    """They stand as a heap, or the C++ library's `nth_element`, leaves them; equal elements among them."""
    checks = Checks(request, usual=16, only="equal")
    for rng in checks:
        size = int(rng.choice([1, 3, 5, 8, 13, 30, 70, 200]))
        shape = (2, size, int(rng.integers(1, 4)))
        x = rng.integers(0, 9, shape) if rng.random() < 0.4 else rng.standard_normal(shape).astype(np.float32)
        count = int(rng.integers(0, size + 1)) if rng.random() < 0.7 else min(size, int(rng.integers(1, 6)))
        checks.add(*_unsorted(np.sort(x, axis=1) if rng.random() < 0.2 else x, count, rng.random() < 0.5))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_training_that_a_run_tells(kind: type) -> None:
    """Dropout whose training_mode is an input drops nothing where that is false; else results are random."""
    operands = {"x": np.arange(6).reshape(2, 3).astype(kind), "ratio": None, "training": np.array(False)}
    content, feeds = single("Dropout", operands, [helper.np_dtype_to_tensor_dtype(np.dtype(kind)), 9], opset=13)
    assert check(content, feeds) == "equal"
    with pytest.raises(bittrue.UnsupportedError, match="BT-TRAINING"):
        bittrue.load(content).prepare(HERE).run(feeds[0], np.array(True))


def test_sequences_of_no_batch() -> None:
    operands = {"x": np.zeros((0, 2, 3), np.float32), "lengths": np.zeros(0, np.int64)}
    assert check(*single("ReverseSequence", operands, [1], {"batch_axis": 0, "time_axis": 1}, opset=13)) == "equal"


def test_sequences_by_axes_that_do_not_fit() -> None:
    """A time axis other than 0 is axis 1 to the runtime, and the batch axis the other one."""
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    outcomes = set()
    for batch, time, count in product(range(-4, 3), range(-4, 3), (3, 4)):
        operands = {"x": x, "lengths": np.array([2, 1, 3, 3][:count])}
        attributes = {"batch_axis": batch, "time_axis": time}
        outcomes.add(check(*single("ReverseSequence", operands, [1], attributes), native=False))
    assert outcomes == {"equal", "refused"}


def test_elements_of_nothing_in_no_order() -> None:
    assert check(*_unsorted(np.zeros((0, 9, 2), np.float32), 4)) == "equal"


@pytest.mark.parametrize("count", [9, 60])
def test_some_in_no_order_are_native(count: int) -> None:
    natively(*_unsorted(np.random.default_rng(5).standard_normal((3, 90, 2)).astype(np.float32), count))


def test_first_of_rows_with_nan(request: pytest.FixtureRequest) -> None:
    """NaN comes before and behind nothing, so that the search decides; natively that is the reference's to tell."""
    checks = Checks(request, usual=24, only="equal")
    for rng in checks:
        size, kind = int(rng.integers(1, 12 if rng.random() < 0.5 else 90)), rng.choice(["f4", "f8"])
        x = np.where(rng.random((2, size)) < rng.choice([0.03, 0.2, 0.6]), np.nan, rng.integers(-6, 6, (2, size)))
        operands = {"x": x.astype(kind), "k": np.array([rng.integers(0, size + 1)])}
        attributes = {"largest": int(rng.integers(2)), "sorted": int(rng.integers(2))}
        types = [TensorProto.FLOAT if kind == "f4" else TensorProto.DOUBLE, TensorProto.INT64]
        checks.add(*single("TopK", operands, types, attributes, constants=["k"] * int(rng.integers(2))))


class _Evasive:
    """An element whose value is chosen when it is compared, so that the median of three is always a bad one."""

    def __init__(self, place: int, values: list[int], chosen: list[int]) -> None:
        self.place, self.values, self.chosen = place, values, chosen

    def __lt__(self, other: _Evasive) -> bool:
        one, two, values, open_value = self.place, other.place, self.values, 10 * len(self.values)
        if one == two:
            return False
        if values[one] == values[two] == open_value:
            values[one if one == self.chosen[1] else two] = self.chosen[0]
            self.chosen[0] += 1
        if open_value in (values[one], values[two]):
            self.chosen[1] = one if values[one] == open_value else two
        return (values[one], one) < (values[two], two)


@pytest.mark.parametrize(("size", "count"), [(60, 45), (100, 98)])
def test_parts_that_stay_large(size: int, count: int) -> None:
    """The library goes on with a heap then."""
    values, chosen = [10 * size] * size, [0, 0]
    elements = [_Evasive(place, values, chosen) for place in range(size)]
    first_by_partition(elements, count, operator.lt, False)
    assert check(*_unsorted(np.float32([values]), count, largest=False)) == "equal"


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (0, 3, 4, 2)])
def test_normalizations_of_nothing(shape: tuple[int, ...]) -> None:
    """They are empty, whichever axis is."""
    x, parts = np.zeros(shape, np.float32), {name: np.ones(3, np.float32) for name in ("scale", "bias")}
    assert check(*single("InstanceNormalization", {"x": x, **parts}, [TensorProto.FLOAT])) == "equal"
    for axes in ([0], [0, 2], [1]):
        assert check(*single("MeanVarianceNormalization", {"x": x}, [TensorProto.FLOAT], {"axes": axes})) == "equal"


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
@pytest.mark.parametrize(("operator", "domain"), [("Det", ""), ("Inverse", MICROSOFT)])
def test_matrices_of_nothing(operator: str, domain: str, shape: tuple[int, ...]) -> None:
    assert check(*single(operator, {"x": np.zeros(shape, np.float32)}, [TensorProto.FLOAT], domain=domain)) == "equal"


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "MaxRoiPool"])
def test_images_without_channels(operator: str) -> None:
    """What is added to nothing is left."""
    x, bias = np.zeros((1, 0, 4, 4), np.float32), np.float32([1.5, -2])
    operands: dict[str, np.ndarray] = {"x": x, "regions": np.float32([[0, 0, 0, 2, 3]])}
    if operator != "MaxRoiPool":
        operands = {"x": x, "w": np.zeros((2, 0, 2, 2) if operator == "Conv" else (0, 2, 2, 2), np.float32), "b": bias}
    attributes = {} if operator != "MaxRoiPool" else {"pooled_shape": [2, 2]}
    assert check(*single(operator, operands, [TensorProto.FLOAT], attributes)) == "equal"


@pytest.mark.parametrize("results", [1, 2, 3])
def test_past_keys_need_their_outputs(results: int) -> None:
    """Without these the runtime reads as many keys as there are with the past ones, but beyond the new ones' memory."""
    rng = np.random.default_rng(results)
    shapes = {"q": (1, 3, 8), "k": (1, 4, 8), "v": (1, 4, 8), "pk": (1, 2, 5, 4), "pv": (1, 2, 5, 4)}
    operands: dict[str, Any] = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    ordered = {name: operands.get(name) for name in ("q", "k", "v", "bias", "mask", "added", "pk", "pv")}
    content, feeds = single("MultiHeadAttention", ordered, [1] * results, {"num_heads": 2}, domain=MICROSOFT)
    outcome = "equal" if results == 3 else "refused"
    assert check(content, feeds, may_refuse={"BT-NODE-OUTPUT"}, native=False) == outcome


@pytest.mark.parametrize(("batch", "results", "outcome"), [(0, 1, "equal"), (1, 1, "equal"), (1, 2, "refused")])
def test_attention_with_values_of_another_size(batch: int, results: int, outcome: str) -> None:
    """The runtime lays keys out with the size of values in what holds both."""
    operands = {
        "x": np.ones((batch, 3, 4), np.float32),
        "w": np.ones((4, 10), np.float32),
        "b": np.ones(10, np.float32),
    }
    attributes = {"num_heads": 2, "qkv_hidden_sizes": [2, 2, 6]}
    content, feeds = single("Attention", operands, [TensorProto.FLOAT] * results, attributes, domain=MICROSOFT)
    assert check(content, feeds, may_refuse={"BT-NODE-OUTPUT"}) == outcome


@pytest.mark.parametrize("shapes", [((1, 0), (0,)), ((0,), (0,)), ((0,), (0, 3)), ((1, 0), (0, 2))])
def test_products_of_nothing(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Sums over no products are 0."""
    a, b = (np.zeros(shape, np.float32) for shape in shapes)
    assert check(*single("MatMul", {"a": a, "b": b}, [TensorProto.FLOAT])) == "equal"


@pytest.mark.parametrize("bias", [1.5, 1e10, -3.0])
def test_shrink_of_wide_integers(bias: float) -> None:
    """From 2^63 on integers without a sign are halves of their range away."""
    x = np.array([0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 2**40, 2**64 - 2**41, 2**64 - 1], np.uint64)
    assert check(*single("Shrink", {"x": x}, [TensorProto.UINT64], {"bias": bias, "lambd": 0.5})) == "equal"


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.UINT8])
@pytest.mark.parametrize("operator", ["BlackmanWindow", "HammingWindow", "HannWindow"])
def test_windows_of_one_sample(operator: str, kind: int) -> None:
    """Divided by 0 samples, the angle is no number."""
    for periodic in (0, 1):
        attributes = {"output_datatype": kind, "periodic": periodic}
        assert check(*single(operator, {"size": np.array(1, np.int64)}, [kind], attributes)) == "equal"


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("beta", [0.0, -2.0])
def test_what_is_added_to_nothing(kind: type, beta: float) -> None:
    """Without products beta counts only where it is 0."""
    operands = {"a": np.zeros((2, 0), kind), "b": np.zeros((0, 3), kind), "c": np.array([1, -2, 3], kind)}
    result = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    assert check(*single("Gemm", operands, [result], {"beta": beta, "alpha": 1.5}, opset=13)) == "equal"


@pytest.mark.parametrize("limited", [False, True])
def test_boxes_whose_scores_are_no_numbers(limited: bool) -> None:
    """They stand where a heap leaves them, unless there is a least score."""
    rng = np.random.default_rng(int(limited))
    scores = rng.choice(np.float32([np.nan, 1, 2, 3, 3, 0.5]), (1, 30, 9))
    boxes = rng.uniform(0, 10, (1, 9, 4)).astype(np.float32)
    operands = {"boxes": boxes, "scores": scores, "most": np.array(5), "overlap": np.float32(0.4)}
    operands |= {"least": np.float32(0.7)} if limited else {}
    assert check(*single("NonMaxSuppression", operands, [TensorProto.INT64], opset=11, constants=["most"])) == "equal"


def test_limits_of_several_numbers() -> None:
    """The first one counts."""
    rng = np.random.default_rng(4)
    operands = {"boxes": rng.random((1, 9, 4)).astype(np.float32), "scores": rng.random((1, 2, 9)).astype(np.float32)}
    operands |= {"most": np.array([4, 1]), "overlap": np.float32([0.2, 0.9]), "least": np.float32([[0.3, 0.8]])}
    for constants in ([], ["most", "overlap", "least"]):
        content, feeds = single("NonMaxSuppression", operands, [TensorProto.INT64], constants=constants)
        assert check(content, feeds) == "equal"
