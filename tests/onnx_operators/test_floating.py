"""Operators on real numbers: random one-node models against ONNX Runtime, and under the specification against
fractions.

Stems: acos acosh asin asinh atan atanh cosh sinh tan cos sin elu clip erf hard_sigmoid mish gelu round_to_integer
softplus softsign thresholded_relu power add_n sum mean reduce_max reduce_min reduce_prod softmax log_softmax matmul
conv conv_transpose max_pool average_pool lp_pool batch_normalization batch_training
group_normalization layer_normalization lp_normalization local_response_normalization.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.floating_models import GENERATORS, reals
from support.onnx_models import (
    MICROSOFT,
    Checks,
    Refused,
    build,
    cases,
    check,
    natively,
    needs_measured,
    run_runtime,
    single,
)

# Bits of these belong to processors with fused operations.
FUSED = frozenset(
    "AveragePool BiasGelu Conv ConvTranspose Erf Exp FastGelu FusedConv FusedGemm FusedMatMul Gelu Gemm"
    " GlobalAveragePool LayerNormalization LogSoftmax MatMul Mish QuickGelu Sigmoid SkipLayerNormalization Softmax"
    " Tanh".split()
)
_FLAGS = bittrue.isas()


@pytest.mark.parametrize("operator", GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    if operator in FUSED and "avx2" not in _FLAGS:
        pytest.skip("this machine has other kernels")
    checks = Checks(request)
    for rng in checks:
        content, feeds = GENERATORS[operator](rng)
        checks.add(content, feeds)
    assert "equal" in checks.outcomes


def test_sums_of_negative_zeros() -> None:
    """Sums over the last axes alone keep the sign of zeros, all others begin with 0; a size of 1 counts there, too."""
    for op, shape in itertools.product(("ReduceMean", "ReduceSum"), ((2, 3, 5), (1, 4, 1))):
        for axes in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
            inputs = {"x": np.full(shape, -0.0, np.float32), "axes": np.array(axes)}
            content, feeds = single(op, inputs, [TensorProto.FLOAT], constants=["axes"])
            assert check(content, feeds) == "equal"


@needs_measured
def test_two_filters_of_7_by_7(request: pytest.FixtureRequest) -> None:
    """Their kernel is for steps of 2 and 3 zeros at every side; neighbours of this form have the usual one."""
    checks = Checks(request, usual=16, only="equal")
    for rng in checks:
        groups, each = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 2, 2, 2, 2]))
        taps = int(rng.choice([5, 7, 7, 7, 7]))
        x = reals(rng, (int(rng.integers(1, 3)), groups, *rng.integers(5, 19, 2)))
        operands: dict[str, np.ndarray | None] = {"x": x, "w": reals(rng, (groups * each, 1, taps, taps), 1)}
        attributes = {
            "group": groups,
            "strides": [2, 2],
            "pads": [3, 3, *(int(v) for v in rng.choice([2, 3, 3, 3], 2))],
        }
        if rng.random() < 0.25:
            attributes = {"group": groups, "strides": [2, 2], "auto_pad": str(rng.choice(["SAME_UPPER", "SAME_LOWER"]))}
        if rng.random() < 0.5:
            operands["bias"] = reals(rng, groups * each)
        model = single("Conv", operands, [TensorProto.FLOAT], attributes, constants=["w", "bias"])
        found = run_runtime(*model)
        if isinstance(found, dict) and rng.random() < 0.4:
            operands = {"x": x, "w": operands["w"], "bias": operands.get("bias"), "sum": reals(rng, found["y0"].shape)}
            model = single(
                "FusedConv", operands, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=["w", "bias"]
            )
        checks.add(*model)


@pytest.mark.in_turns(3)
@pytest.mark.parametrize("operator", GENERATORS)
def test_the_specification_is_near_the_runtime(request: pytest.FixtureRequest, operator: str) -> None:
    """The same geometry, so that results agree but for rounding; rules have their own oracles of exact numbers."""
    if operator in ("LayerNormalization", "SkipLayerNormalization", "Pow"):
        pytest.skip("cancellation in the runtime's own sums")
    if operator == "FusedConv":
        pytest.skip("the specification has no sums that begin with another tensor")
    for rng in cases(request, usual=15):
        content, feeds = GENERATORS[operator](rng)
        theirs = run_runtime(content, feeds)
        try:
            ours = bittrue.load(content).prepare("onnx", executor="reference").trace(*feeds)
        except bittrue.BittrueError as error:
            # The specification's table has few rows of f64, and only absolute and Euclidean lengths; it does not say
            # what a BatchNormalization saves for gradients.
            missing = error.code == "BT-LP-POOL" or any(feed.dtype == np.float64 for feed in feeds)
            assert isinstance(theirs, Refused) or missing or (operator == "BatchNormalization" and len(theirs) == 5)
            continue
        if isinstance(theirs, Refused):
            continue
        for name, array in theirs.items():
            assert ours[name].shape == array.shape
            assert ours[name].dtype == array.dtype
            if array.dtype.kind != "f":
                assert_same(name, ours[name], array)


@pytest.mark.parametrize(("channels", "outcome"), [(1, "equal"), (4, "refused")])
def test_batches_of_numbers_have_one_channel(channels: int, outcome: str) -> None:
    names = ("scale", "bias", "mean", "variance")
    statistics = {name: np.arange(1, channels + 1, dtype=np.float32) for name in names}
    content, feeds = single(
        "BatchNormalization", {"x": np.float32([1, -2, 3, 5]), **statistics}, [TensorProto.FLOAT], constants=names
    )
    assert check(content, feeds) == outcome


def test_logistic_function_above_1() -> None:
    """Of all numbers from 17.4 to 18, where it should be 1, 20 give one unit more; on aarch64 it is limited."""
    x = np.arange(*np.float32([17.4, 18]).view(np.int32), dtype=np.int32).view(np.float32)
    for content, feeds in (
        single("Sigmoid", {"x": x}, [TensorProto.FLOAT]),
        single("QuickGelu", {"x": x}, [TensorProto.FLOAT], {"alpha": 1.0}, domain="com.microsoft"),
        single("Swish", {"x": x}, [TensorProto.FLOAT], {"alpha": 1.0}, opset=24),
        build(
            [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["y"])],
            {"x": x},
            {"y": TensorProto.FLOAT},
        ),
    ):
        assert check(content, feeds) == "equal"
    content, feeds = single("Sigmoid", {"x": x}, [TensorProto.FLOAT])
    for numerics, count in (("onnxruntime", 20), ("onnxruntime@aarch64", 0)):
        assert (bittrue.load(content).prepare(numerics).run(*feeds)["y0"] > 1).sum() == count


@pytest.mark.parametrize("operator", ["Cos", "Sin"])
def test_sine_and_cosine_of_all_kinds_of_bits(operator: str) -> None:
    """Every NaN, infinities, and arguments on both sides of where pi / 2 is taken off exactly."""
    rng = np.random.default_rng(6)
    far = np.float32([18838, 25966]).view(np.int32)[:, None] + np.arange(-30, 31)
    bits = np.concatenate([rng.integers(-(2**31), 2**31, 6000), far.reshape(-1), [0x7F800000, -0x800000]])
    x = bits.astype(np.int32).view(np.float32)
    for count in (*range(1, 8), x.size):
        content, feeds = single(operator, {"x": x[-count:]}, [TensorProto.FLOAT])
        assert check(content, feeds) == "equal"


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 4), (3, 4), (2, 1, 1), (2, 3, 1)])
def test_squares_and_cubes_by_rows(shape: tuple[int, ...]) -> None:
    """Products where a row has one exponent, the library's power where every element has its own."""
    rng = np.random.default_rng(5)
    for bases in ((2, 3, 4), (2, 3, 1)):
        exponents = np.asarray(rng.choice(np.float32([2, 3, 3, 2.5]), shape))
        x = np.abs(rng.standard_normal(bases)).astype(np.float32)
        content, feeds = single("Pow", {"x": x, "y": exponents}, [TensorProto.FLOAT])
        assert check(content, feeds) == "equal"


def test_small_weights_of_softmax() -> None:
    """Powers below 2^-126: 0 on processors with AVX2 alone, where the exponent is rounded below -126."""
    x = np.zeros((160, 20), np.float32)
    x[:, 1:] = np.linspace(-104.5, -86.5, 160, dtype=np.float32)[:, None]
    assert check(*single("Softmax", {"x": x}, [TensorProto.FLOAT], {"axis": -1})) == "equal"


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "MultiHeadAttention"])
def test_sums_in_lanes_are_native_for_all_vectors(operator: str) -> None:
    """In 16 lanes and in 8."""
    x, domain = np.random.default_rng(7).standard_normal((1, 5, 24)).astype(np.float32), "com.microsoft"
    if operator == "MultiHeadAttention":
        content, feeds = single(
            operator, {"q": x, "k": x, "v": x}, [TensorProto.FLOAT], {"num_heads": 2}, domain=domain
        )
    else:
        content, feeds = single(operator, {"x": x}, [TensorProto.FLOAT], {"axis": -1}, opset=13)
    for numerics in ("onnxruntime", "onnxruntime-avx2"):
        session = bittrue.load(content).prepare(numerics, executor="native")
        assert "runs on the reference" not in str(session.plan)
        expected = bittrue.load(content).prepare(numerics, executor="reference").run(*feeds)
        assert_same(operator, session.run(*feeds)["y0"], expected["y0"])


@pytest.mark.parametrize(("size", "stride"), [(8, 2), (9, 3), (9, 4)])
def test_strides_that_leave_positions_out_choose_the_order_of_sums(size: int, stride: int) -> None:
    """One position less than the window needs is as good as no padding, two are not."""
    rng = np.random.default_rng(size)
    shapes = {"x": (2, 160, 3, size), "w": (32, 160, 1, 1)}
    operands = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    attributes = {"auto_pad": "SAME_UPPER", "strides": [1, stride]}
    content, feeds = single("Conv", operands, [TensorProto.FLOAT], attributes, constants=["w"])
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("operator", "Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan Det".split())
def test_functions_are_native_for_all_vectors(operator: str) -> None:
    x = np.random.default_rng(9).standard_normal((3, 5, 5)).astype(np.float32)
    natively(*single(operator, {"x": x}, [TensorProto.FLOAT], opset=22))


@pytest.mark.parametrize("size", [3, 11, 64])
def test_zeros_behind_relu_on_aarch64(size: int) -> None:
    """Vectors of four give +0; what is left over keeps -0. Seen on aarch64, natively, too."""
    x = np.where(np.arange(size) % 3, np.float32(-0.0), np.float32(-1))
    content, feeds = single("Relu", {"x": x}, [TensorProto.FLOAT])
    natively(content, feeds, "onnxruntime@aarch64")
    found = bittrue.load(content).prepare("onnxruntime@aarch64").run(*feeds)["y0"]
    left_over = np.arange(size) >= size // 4 * 4
    assert np.signbit(found).tolist() == (np.signbit(x) & (x == 0) & left_over).tolist()


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((6, 2, 5, 2, 3), (1, 3)),
        ((6, 2, 5, 2), (1, 3)),
        ((1, 7, 3, 9), (1, 3)),
        ((7, 1, 9), (0, 2)),
        ((4, 3, 5, 2), (0, 2)),
    ],
)
def test_axes_that_lie_apart(operator: str, dtype: type, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Windows that are averages of unfolded images: sums one element after the other, natively."""
    x = np.random.default_rng(7).standard_normal(shape).astype(dtype)
    x.reshape(-1)[:4] = -0.0
    model = single(
        operator, {"x": x, "axes": np.int64(axes)}, [helper.np_dtype_to_tensor_dtype(x.dtype)], constants=["axes"]
    )
    assert check(*model) == "equal"
    natively(*model)
