"""Nodes that the default delegate takes over: declared shapes are true here, as a delegate looks at nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import bittrue
from support.build import T, single
from support.differential import check
from support.runtimes import RUNTIMES
from support.strategies import seeds

pytestmark = pytest.mark.numerics("xnnpack")

Case = tuple[bytes, list[np.ndarray]]
ENDS = {"s8": (-128, 127), "u8": (0, 255)}


class Draw:
    """Random numbers for one model; `dtype` is that of its activations."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def scale(self, low: float = 1e-3, high: float = 0.5) -> float:
        return float(np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def zero_point(self) -> int:
        return self.integer(*ENDS[self.dtype])

    def values(self, shape: tuple[int, ...], dtype: str = "") -> np.ndarray:
        dtype = dtype or self.dtype
        if dtype == "f32":
            return (self.rng.standard_normal(shape) * self.rng.choice([0.01, 1.0, 30.0])).astype(np.float32)
        low, high = ENDS[dtype]
        return self.rng.integers(low, high + 1, shape).astype(np.int8 if dtype == "s8" else np.uint8)

    def tensor(self, shape: tuple[int, ...], low: float = 1e-3, high: float = 0.5) -> T:
        if self.dtype == "f32":
            return T("f32", shape)
        return T(self.dtype, shape, self.scale(low, high), self.zero_point())

    def activation(self) -> int:
        return self.integer(0, 3)

    def window(self) -> tuple[int, int, int, int, int, int, int, int]:
        """Height, width, filter, stride, padding (0 same, 1 valid) and the output's height and width."""
        height, width, taps_h, taps_w = (self.integer(1, high) for high in (9, 9, 4, 4))
        stride, padding = self.integer(1, 2), self.integer(0, 1)
        if padding:
            taps_h, taps_w = min(taps_h, height), min(taps_w, width)
            out = (height - taps_h) // stride + 1, (width - taps_w) // stride + 1
        else:
            out = -(-height // stride), -(-width // stride)
        return height, width, taps_h, taps_w, stride, padding, *out

    def weights(self, shape: tuple[int, ...], axis: int, source: T, dynamic: bool = False) -> list[T]:
        """Weights and bias of a layer, per channel or not."""
        channels = shape[axis]
        if self.dtype == "f32" and not dynamic:
            return [T("f32", shape, data=self.values(shape)), T("f32", (channels,), data=self.values((channels,)))]
        dtype = "s8" if dynamic else self.dtype
        per_channel = dtype == "s8" and channels > 1 and self.rng.random() < 0.7
        scales = [self.scale(1e-3, 0.1) for _ in range(channels if per_channel else 1)]
        point = 0 if dtype == "s8" else self.zero_point()
        weights = T(dtype, shape, scales, point, axis if per_channel else 0, self.values(shape, dtype))
        if dynamic:
            return [weights, T("f32", (channels,), data=self.values((channels,)))]
        assert isinstance(source.scale, float)
        bias = self.rng.integers(-5000, 5000, channels).astype(np.int32)
        return [weights, T("s32", (channels,), [float(np.float32(s * source.scale)) for s in scales], 0, 0, bias)]


def conv2d(draw: Draw, dynamic: bool = False) -> Case:
    height, width, taps_h, taps_w, stride, padding, out_h, out_w = draw.window()
    groups = int(draw.rng.choice([1, 1, 2, 3]))
    depth, channels = draw.integer(1, 8), groups * draw.integer(1, 18)
    x = draw.tensor((1, height, width, depth * groups))
    weights = draw.weights((channels, taps_h, taps_w, depth), 0, x, dynamic)
    options = {"strideH": stride, "strideW": stride, "padding": padding, "fusedActivationFunction": draw.activation()}
    y = draw.tensor((1, out_h, out_w, channels), 1e-2)
    model = single("CONV_2D", ("Conv2DOptions", options), [x, *weights], [y], version=5)
    return model, [draw.values(tuple(x.shape))]


def dynamic_conv2d(draw: Draw) -> Case:
    return conv2d(draw, True)


def depthwise_conv2d(draw: Draw) -> Case:
    height, width, taps_h, taps_w, stride, padding, out_h, out_w = draw.window()
    depth, multiplier = draw.integer(1, 20), draw.integer(1, 2)
    x = draw.tensor((1, height, width, depth))
    weights = draw.weights((1, taps_h, taps_w, depth * multiplier), 3, x)
    options = {"strideH": stride, "strideW": stride, "padding": padding, "fusedActivationFunction": draw.activation()}
    options["depthMultiplier"] = multiplier
    y = draw.tensor((1, out_h, out_w, depth * multiplier), 1e-2)
    model = single("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", options), [x, *weights], [y], version=3)
    return model, [draw.values(tuple(x.shape))]


def fully_connected(draw: Draw, dynamic: bool = False) -> Case:
    rows, depth, units = draw.integer(1, 6), draw.integer(1, 90), draw.integer(1, 40)
    x = draw.tensor((rows, depth))
    weights: list[T | None] = [*draw.weights((units, depth), 0, x, dynamic)]
    if draw.integer(0, 3) == 0:
        weights[1] = None
    options = {"fusedActivationFunction": draw.activation(), "keepNumDims": bool(draw.integer(0, 1))}
    options["asymmetricQuantizeInputs"] = bool(draw.integer(0, 1))
    y = draw.tensor((rows, units), 1e-2)
    model = single("FULLY_CONNECTED", ("FullyConnectedOptions", options), [x, *weights], [y], version=9)
    values = draw.values((rows, depth))
    if draw.integer(0, 9) == 0:
        values[0] = 0
    return model, [values]


def dynamic_fully_connected(draw: Draw) -> Case:
    return fully_connected(draw, True)


def packed_fully_connected(dtype: str) -> Callable[[Draw], Case]:
    def build(draw: Draw) -> Case:
        rows, depth, units = draw.integer(1, 6), 4 * draw.integer(1, 25), draw.integer(1, 30)
        high = 7 if dtype == "s4" else 1
        scales = [draw.scale(1e-2, 0.1) for _ in range(units)]
        values = draw.rng.integers(-high - 1, high + 1, (units, depth)).astype(np.int8)
        weights = T(dtype, (units, depth), scales, 0, 0, values)
        options = {"fusedActivationFunction": draw.activation()}
        x, y = draw.tensor((rows, depth)), draw.tensor((rows, units), 1e-2)
        model = single("FULLY_CONNECTED", ("FullyConnectedOptions", options), [x, weights, None], [y], version=12)
        return model, [draw.values((rows, depth))]

    return build


def transpose_conv(draw: Draw) -> Case:
    height, width, taps_h, taps_w = (draw.integer(1, high) for high in (6, 6, 4, 4))
    stride_h, stride_w, padding = draw.integer(1, 3), draw.integer(1, 3), draw.integer(0, 1)
    depth, channels = draw.integer(1, 8), draw.integer(1, 8)
    if padding:
        out = (height - 1) * stride_h + taps_h, (width - 1) * stride_w + taps_w
    else:
        out = height * stride_h - draw.integer(0, stride_h - 1), width * stride_w - draw.integer(0, stride_w - 1)
    # Smaller filters are left to the built-in kernel.
    assume(padding or (taps_h >= stride_h and taps_w >= stride_w))
    x = draw.tensor((1, height, width, depth))
    weights, bias = draw.weights((channels, taps_h, taps_w, depth), 0, x)
    shape = T("s32", (4,), data=np.int32([1, *out, channels]))
    options = {"strideH": stride_h, "strideW": stride_w, "padding": padding}
    options["fusedActivationFunction"] = draw.activation()
    inputs = [shape, weights, x, *([bias] if draw.integer(0, 2) else [])]
    y = draw.tensor((1, *out, channels), 1e-2)
    model = single("TRANSPOSE_CONV", ("TransposeConvOptions", options), inputs, [y], version=4)
    return model, [draw.values(tuple(x.shape))]


def batch_matmul(draw: Draw) -> Case:
    batch, rows, depth, columns = (draw.integer(1, high) for high in (3, 8, 8, 8))
    adj_x, adj_y = bool(draw.integer(0, 1)), bool(draw.integer(0, 1))
    x = draw.tensor((batch, depth, rows) if adj_x else (batch, rows, depth))
    y = draw.tensor((batch, columns, depth) if adj_y else (batch, depth, columns))
    y.zero_point = 0
    values = [draw.values(tuple(x.shape)), draw.values(tuple(y.shape))]
    if draw.integer(0, 1):
        y.data = values.pop()
    result = draw.tensor((batch, rows, columns), 5e-2)
    options = {"adjX": adj_x, "adjY": adj_y}
    return single("BATCH_MATMUL", ("BatchMatMulOptions", options), [x, y], [result], version=4), values


def elementwise(operator: str, table: str) -> Callable[[Draw], Case]:
    def build(draw: Draw) -> Case:
        shape = [draw.integer(1, 6) for _ in range(draw.integer(0, 4))]
        shapes = [tuple(1 if draw.rng.random() < 0.2 else n for n in shape) for _ in range(2)]
        shapes[1] = shapes[1][draw.integer(0, len(shape)) :]
        out = draw.tensor(np.broadcast_shapes(*shapes), 2e-3)
        low = 2e-3 if operator != "MUL" else 2e-2
        inputs = [draw.tensor(one, low) for one in shapes]
        options = {"fusedActivationFunction": draw.activation()}
        return single(operator, (table, options), inputs, [out], version=2), [draw.values(one) for one in shapes]

    return build


def every_value(operator: str, table: str = "", **options: Any) -> Callable[[Draw], Case]:
    def build(draw: Draw) -> Case:
        filled = {key: value(draw) for key, value in options.items()}
        x, y = draw.tensor((256,), 2e-3, 0.3), draw.tensor((256,), 2e-3, 0.3)
        model = single(operator, (table, filled) if table else None, [x], [y], version=2)
        low, high = ENDS[draw.dtype]
        return model, [np.arange(low, high + 1).astype(np.int8 if draw.dtype == "s8" else np.uint8)]

    return build


def quantize(draw: Draw) -> Case:
    y = draw.tensor((200,))
    special = np.float32([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0])
    ties = (draw.rng.integers(-300, 300, 93) + 0.5).astype(np.float32) * np.float32(y.scale)
    return single("QUANTIZE", None, [T("f32", (200,))], [y]), [
        np.concatenate([draw.values((100,), "f32"), ties, special])
    ]


def reduction(operator: str) -> Callable[[Draw], Case]:
    def build(draw: Draw) -> Case:
        shape = [draw.integer(1, 8) for _ in range(draw.integer(1, 4))]
        axes = draw.rng.permutation(len(shape))[: draw.integer(1, len(shape))]
        keep = bool(draw.integer(0, 1))
        out = np.zeros(shape).sum(axis=tuple(axes), keepdims=keep).shape
        inputs = [draw.tensor(tuple(shape), 1e-2), T("s32", axes.shape, data=axes.astype(np.int32))]
        model = single(operator, ("ReducerOptions", {"keepDims": keep}), inputs, [draw.tensor(out, 1e-2)], version=2)
        return model, [draw.values(tuple(shape))]

    return build


def max_pool2d(draw: Draw) -> Case:
    height, width, taps_h, taps_w, stride, padding, out_h, out_w = draw.window()
    assume(stride <= min(taps_h, taps_w))
    x = draw.tensor((1, height, width, draw.integer(1, 5)))
    options = {"strideH": stride, "strideW": stride, "filterHeight": taps_h, "filterWidth": taps_w, "padding": padding}
    options["fusedActivationFunction"] = draw.activation()
    y = T(draw.dtype, (1, out_h, out_w, x.shape[3]), x.scale, x.zero_point)
    return single("MAX_POOL_2D", ("Pool2DOptions", options), [x], [y], version=2), [draw.values(tuple(x.shape))]


def resize_bilinear(draw: Draw) -> Case:
    x = draw.tensor((1, *(draw.integer(1, 8) for _ in range(3))))
    size = draw.integer(1, 20), draw.integer(1, 20)
    mode = draw.integer(0, 2)
    y = T(draw.dtype, (1, *size, x.shape[3]), x.scale, x.zero_point)
    options = {"alignCorners": mode == 1, "halfPixelCenters": mode == 2}
    inputs = [x, T("s32", (2,), data=np.int32(size))]
    model = single("RESIZE_BILINEAR", ("ResizeBilinearOptions", options), inputs, [y], version=3)
    return model, [draw.values(tuple(x.shape))]


def alpha(draw: Draw) -> float:
    return float(np.float32(draw.rng.uniform(-1, 1)))


BYTES = ("s8", "u8")
# builder, types, slot and rule that show the delegate's row
CASES: list[tuple[Callable[[Draw], Case], tuple[str, ...], str, str]] = [
    *((build, BYTES, "activation_range", "binary32_sum_even") for build in (conv2d, depthwise_conv2d, fully_connected)),
    (transpose_conv, BYTES, "activation_range", "binary32_sum_even"),
    (batch_matmul, ("s8",), "rescale", "binary32_multiply_even"),
    *((build, ("f32",), "plain_range", "unlimited") for build in (conv2d, depthwise_conv2d, fully_connected)),
    (transpose_conv, ("f32",), "plain_range", "unlimited"),
    (batch_matmul, ("f32",), "sum_of_products", "binary32_fused_from_bias"),
    (dynamic_conv2d, ("f32",), "quantize_asymmetric", "binary32_range_even"),
    (dynamic_fully_connected, ("f32",), "quantize_asymmetric", "binary32_range_even"),
    *((packed_fully_connected(t), ("s8",), "activation_range", "binary32_sum_even") for t in ("s4", "s2")),
    *((packed_fully_connected(t), ("f32",), "quantize_asymmetric", "binary32_range_even") for t in ("s4", "s2")),
    (resize_bilinear, ("f32",), "interpolate", "binary32_differences"),
    (elementwise("ADD", "AddOptions"), BYTES, "align", "shared_21_bits_even"),
    (elementwise("SUB", "SubOptions"), BYTES, "align", "shared_21_bits_even"),
    (elementwise("MUL", "MulOptions"), BYTES, "rescale", "binary32_multiply_even"),
    (elementwise("ADD", "AddOptions"), ("f32",), "plain_range", "unlimited"),
    (elementwise("DIV", "DivOptions"), ("f32",), "plain_range", "unlimited"),
    (every_value("LOGISTIC"), BYTES, "table", "binary32_reciprocal_sum_256_even"),
    (every_value("TANH"), BYTES, "table", "binary32_reciprocal_sum_256_even"),
    (every_value("LEAKY_RELU", "LeakyReluOptions", alpha=alpha), BYTES, "rescale", "q8_one_step_up"),
    (every_value("QUANTIZE"), BYTES, "rescale", "q8_one_step_up"),
    (quantize, BYTES, "quantize", "binary32_reciprocal_even"),
    (reduction("MEAN"), BYTES, "mean", "binary32_affine_even"),
    (reduction("SUM"), BYTES, "mean", "binary32_affine_even"),
    (max_pool2d, BYTES, "activation_range", "binary32_sum_even"),
    (resize_bilinear, BYTES, "interpolate", "eleven_bits_half_up"),
]


@pytest.mark.in_turns(2)
@pytest.mark.parametrize(
    ("build", "dtype", "slot", "rule"),
    [(build, dtype, slot, rule) for build, dtypes, slot, rule in CASES for dtype in dtypes],
)
@given(seed=seeds)
def test_delegated(build: Callable[[Draw], Case], dtype: str, slot: str, rule: str, seed: int) -> None:
    content, feeds = build(Draw(seed, dtype))
    (step,) = bittrue.load(content).prepare("xnnpack").plan.steps
    # Scales that lie too far apart, and slopes near 0, are left to the built-in kernels.
    assume(step.rules.get(slot) == rule)
    assert check(content, [feeds]) == "equal"


def test_dynamic_filters_of_one_pixel() -> None:
    """Each pixel is quantized on its own; the seeds of `test_delegated` seldom draw such filters."""
    rng = np.random.default_rng(1)
    x, y = T("f32", (1, 3, 4, 5)), T("f32", (1, 3, 4, 6))
    weights = T(
        "s8", (6, 1, 1, 5), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0] * 6, data=rng.integers(-127, 128, (6, 1, 1, 5), np.int8)
    )
    bias = T("f32", (6,), data=rng.normal(size=6).astype(np.float32))
    model = single("CONV_2D", ("Conv2DOptions", {"strideH": 1, "strideW": 1}), [x, weights, bias], [y], version=5)
    (step,) = bittrue.load(model).prepare("xnnpack").plan.steps
    assert step.rules["rows"] == "per_pixel"
    assert check(model, [[rng.normal(size=(1, 3, 4, 5)).astype(np.float32)]]) == "equal"


def test_a_node_whose_output_has_no_declared_shape_is_left_alone() -> None:
    """The same layer, but its file does not say that the result has rank 4."""
    x, w = T("s8", (1, 2, 2, 1), 0.1), T("s8", (1, 1, 1, 1), 0.1, data=np.int8([[[[3]]]]))
    bias = T("s32", (1,), 0.01, data=np.int32([0]))
    options = ("Conv2DOptions", {"strideH": 1, "strideW": 1})
    ranges = []
    for shape in ((1, 2, 2, 1), ()):
        content = single("CONV_2D", options, [x, w, bias], [T("s8", shape, 0.1)], version=3)
        (step,) = bittrue.load(content).prepare("xnnpack").plan.steps
        ranges.append(step.rules["activation_range"])
    assert ranges == ["binary32_sum_even", "binary32_quotient_away"]


@pytest.mark.parametrize(
    ("weights", "bias", "code"),
    [
        ((0.1, 3), 0.01, "BT-QUANT-ZERO-POINT"),
        (([0.1, 0.2], 0), 0.01, "BT-QUANT-BIAS"),
        ((200.0, 0), 0.01, "BT-MULTIPLIER"),
    ],
)
def test_what_makes_the_delegate_give_up_is_refused(weights: tuple[Any, int], bias: float, code: str) -> None:
    w = T("s8", (2, 1, 1, 1), *weights, data=np.zeros((2, 1, 1, 1), np.int8))
    b = T("s32", (2,), bias, data=np.zeros(2, np.int32))
    x, y = T("s8", (1, 2, 2, 1), 0.1), T("s8", (1, 2, 2, 2), 0.05)
    content = single("CONV_2D", ("Conv2DOptions", {"strideH": 1, "strideW": 1}), [x, w, b], [y], version=3)
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare("xnnpack")
    assert check(content, [[np.zeros((1, 2, 2, 1), np.int8)]]) == "refused"


@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("first", [False, True])
def test_a_limited_constant_of_more_axes_is_refused(operator: str, first: bool) -> None:
    """The delegate's result has lost the axes that only the constant has; without limits it keeps them."""
    x, y = T("s8", (3,), 0.1), T("s8", (), 0.1)
    for activation in (0, 1):
        for shape in ((1, 1), (1, 3)):
            number = T("s8", shape, 0.1, data=np.ones(shape, np.int8))
            options = (f"{operator.title()}Options", {"fusedActivationFunction": activation})
            operands = [number, x] if first else [x, number]
            content = single(operator, options, operands, [y], version=4 if operator == "MUL" else 2)
            if activation and shape == (1, 1):
                answer = RUNTIMES["xnnpack"].run(content, [[np.int8([1, 2, 3])]], [2])
                assert answer.values[2].shape == (3,)
                with pytest.raises(bittrue.BittrueError, match="BT-UNDEFINED"):
                    bittrue.load(content).prepare("xnnpack")
            else:
                assert check(content, [[np.int8([1, 2, 3])]]) == "equal"
