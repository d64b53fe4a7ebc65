"""Operators without kernels, which the specification defines by others, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.floating_models import numbers, reals
from support.onnx_models import MICROSOFT, Checks, build, check, needs_measured, single

Model = tuple[bytes, list[np.ndarray]]


def swish(rng: np.random.Generator) -> Model:
    half = rng.random() < 0.3
    x = reals(rng, rng.integers(1, 40, int(rng.integers(1, 4)))).astype(np.float16 if half else np.float32)
    attributes = {"alpha": float(np.float32(rng.choice([1, 1.702, -2, 0.3])))} if rng.random() < 0.7 else {}
    return single("Swish", {"x": x}, [TensorProto.FLOAT16 if half else TensorProto.FLOAT], attributes, opset=24)


def center_crop_pad(rng: np.random.Generator) -> Model:
    rank = int(rng.integers(1, 5))
    x = numbers(rng, rng.integers(1, 7, rank))
    axes = [int(v) for v in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
    attributes = {}
    if rng.random() < 0.5:
        attributes["axes"] = [axis - rank if rng.random() < 0.5 else axis for axis in axes]
    sizes = rng.integers(1, 9, len(axes) if attributes else rank)
    constants = ["sizes"] if rng.random() < 0.8 else []
    operands = {"x": x, "sizes": sizes}
    return single(
        "CenterCropPad",
        operands,
        [TensorProto.FLOAT],
        attributes,
        opset=int(rng.choice([18, 22, 24])),
        constants=constants,
    )


def loss(rng: np.random.Generator) -> Model:
    batch, classes = (int(v) for v in rng.integers(1, 7, 2))
    inner = [int(v) for v in rng.integers(1, 5, int(rng.integers(0, 3)))]
    name = str(rng.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]))
    operands = {"x": reals(rng, (batch, classes, *inner)), "labels": rng.integers(0, classes, (batch, *inner))}
    if rng.random() < 0.5:
        operands["weights"] = np.abs(reals(rng, classes))
    attributes = {"reduction": str(rng.choice(["none", "sum", "mean"]))}
    if rng.random() < 0.3:
        attributes["ignore_index"] = int(rng.integers(-1, classes))
    return single(name, operands, [TensorProto.FLOAT], attributes, opset=int(rng.choice([13, 22])))


def gate_of_halves(rng: np.random.Generator) -> Model:
    """Operators of com.microsoft, whose constants are binary16 numbers then."""
    shape = (*rng.integers(1, 5, int(rng.integers(0, 3))), int(rng.integers(1, 40)))
    operands = {"x": reals(rng, shape).astype(np.float16)}
    attributes = {}
    operator = str(rng.choice(["FastGelu", "Gelu", "QuickGelu"]))
    if operator == "FastGelu" and rng.random() < 0.5:
        operands["bias"] = reals(rng, shape[-1:]).astype(np.float16)
    if operator == "QuickGelu" and rng.random() < 0.5:
        attributes["alpha"] = float(np.float32(rng.choice([1, 1.3, -2])))
    constants = ["bias"] if "bias" in operands and rng.random() < 0.5 else []
    return single(operator, operands, [TensorProto.FLOAT16], attributes, domain=MICROSOFT, constants=constants)


_OF_DOUBLES = "Elu HardSigmoid HardSwish LeakyRelu Mish PRelu Selu Softplus Softsign ThresholdedRelu".split()


def slope_of_integers(rng: np.random.Generator) -> Model:
    kind = np.dtype(rng.choice(["i4", "i8", "u4", "u8"]))
    x, slope = rng.integers(0 if kind.kind == "u" else -99, 99, (2, 3, int(rng.integers(1, 20)))).astype(kind)
    return single(
        "PRelu", {"x": x, "slope": slope}, [helper.np_dtype_to_tensor_dtype(kind)], opset=int(rng.choice([16, 18]))
    )


def window_of_halves(rng: np.random.Generator) -> Model:
    operator = str(rng.choice(["BlackmanWindow", "HammingWindow", "HannWindow"]))
    attributes = {"output_datatype": TensorProto.FLOAT16, "periodic": int(rng.integers(2))}
    size = {"size": np.array(int(rng.integers(2, 70)))}
    return single(operator, size, [TensorProto.FLOAT16], attributes, opset=17, constants=["size"][rng.integers(2) :])


def of_doubles(rng: np.random.Generator) -> Model:
    way = rng.random()
    x = reals(rng, rng.integers(1, 30, 2)).astype(np.float64)
    if way < 0.5:
        operator = str(rng.choice(_OF_DOUBLES))
        operands = {"x": x, "slope": reals(rng, x.shape[1]).astype(np.float64)}
        return single(
            operator,
            operands if operator == "PRelu" else {"x": x},
            [TensorProto.DOUBLE],
            opset=int(rng.choice([16, 18])),
        )
    if way < 0.75:
        return single("Gelu", {"x": x}, [TensorProto.DOUBLE], {"approximate": str(rng.choice(["none", "tanh"]))})
    groups, opset = int(rng.integers(1, 4)), int(rng.choice([18, 21]))
    channels = groups * int(rng.integers(1, 4))
    x = reals(rng, (2, channels, int(rng.integers(1, 9)))).astype(np.float64)
    rows = {name: reals(rng, channels if opset > 18 else groups).astype(np.float64) for name in ("scale", "bias")}
    return single("GroupNormalization", {"x": x, **rows}, [TensorProto.DOUBLE], {"num_groups": groups}, opset=opset)


def grid_of_halves(rng: np.random.Generator) -> Model:
    """A definition that calls graphs."""
    axes = int(rng.integers(2, 4))
    theta = reals(rng, (2, axes, axes + 1)).astype(np.float16)
    size = np.array([2, 1, *rng.integers(1, 5, axes)])
    return single("AffineGrid", {"theta": theta, "size": size}, [TensorProto.FLOAT16], opset=20)


def normalization_of_two_types(rng: np.random.Generator) -> Model:
    """Before set 17 LayerNormalization is the runtime's own operator, and its result has the type of the scale."""
    given, made = [("f2", "f4"), ("f4", "f2"), ("f8", "f4")][int(rng.integers(3))]
    shape = tuple(int(n) for n in rng.integers(1, 12, int(rng.integers(1, 4))))
    axis = int(rng.integers(-len(shape), len(shape)))
    parts = {name: reals(rng, shape[axis:]).astype(made) for name in ("scale", "bias")[: int(rng.integers(1, 3))]}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(made))
    further = [TensorProto.FLOAT] * int(rng.integers(0, 3))
    operands = {"x": reals(rng, shape).astype(given), **parts}
    constants = list(parts) if rng.random() < 0.6 else []
    attributes = {"axis": axis, **({"epsilon": 0.01} if rng.random() < 0.3 else {})}
    return single(
        "LayerNormalization",
        operands,
        [kind, *further],
        attributes,
        opset=int(rng.integers(11, 17)),
        constants=constants,
    )


@needs_measured
@pytest.mark.parametrize(
    "draw",
    [
        normalization_of_two_types,
        grid_of_halves,
        swish,
        center_crop_pad,
        loss,
        gate_of_halves,
        of_doubles,
        slope_of_integers,
        window_of_halves,
    ],
)
def test_random_models(request: pytest.FixtureRequest, draw: Callable[[np.random.Generator], Model]) -> None:
    checks = Checks(request, 30)
    for rng in checks:
        checks.add(*draw(rng))
    assert "equal" in checks.outcomes


@needs_measured
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("like", ["q", "w"])
def test_casts_like_a_tensor_give_no_constant(kind: type, like: str) -> None:
    """A factor that is such a cast of a constant does not go into the product behind it, as exporters scale queries."""
    rng = np.random.default_rng(9)
    nodes = [
        helper.make_node("Neg", ["x"], ["q"]),
        helper.make_node("CastLike", ["number", like], ["cast"]),
        helper.make_node("Sqrt", ["cast"], ["root"]),
        helper.make_node("Mul", ["q", "root"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "w"], ["y"]),
    ]
    constants = {"number": np.asarray(0.4, kind), "w": reals(rng, (32, 16))}
    content, feeds = build(nodes, {"x": reals(rng, (2, 6, 32))}, {"y": TensorProto.FLOAT}, constants, opset=18)
    assert check(content, feeds) == "equal"
