"""Operators whose steps are native: results are the reference's, on all instruction sets."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from support.native import needs_native
from support.onnx_models import build

_SHAPE = (2, 5, 37)
_ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-39)
_TYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u32": np.uint32,
}


def _check(nodes: list[NodeProto], feeds: dict[str, np.ndarray], constants: dict[str, Any]) -> str:
    """Both executors on all instruction sets; what the last session does. Results beside the first one are places."""
    truth = nodes[-1].op_type in ("Equal", "Greater", "GreaterOrEqual", "Less", "IsNaN", "IsInf")
    kind = TensorProto.BOOL if truth else helper.np_dtype_to_tensor_dtype(next(iter(feeds.values())).dtype)
    first = TensorProto.INT64 if nodes[-1].op_type == "ArgMax" else kind
    results = {name: TensorProto.INT64 if i else first for i, name in enumerate(nodes[-1].output)}
    content, given = build(nodes, feeds, results, constants)
    expected = bittrue.load(content).prepare("onnxruntime", executor="reference").run(*given)
    for isa in bittrue.isas():
        session = bittrue.load(content).prepare("onnxruntime", executor="native", isa=isa)
        assert not session.missing
        for name, found in session.run(*given).items():
            assert found.tobytes() == expected[name].tobytes(), (isa, name)
    return "\n".join(session.plan.execution)


def _numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...], odd: bool) -> np.ndarray:
    if kind[0] != "f":
        info = np.iinfo(_TYPES[kind])
        return rng.integers(info.min, info.max, shape, _TYPES[kind], True)
    x = np.asarray(rng.normal(size=shape)).astype(_TYPES[kind])
    if odd and x.size > 1:
        x.reshape(-1)[rng.integers(0, x.size, x.size // 4)] = rng.choice(_ODD, x.size // 4)
    return x


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("second", [_SHAPE, (), (37,), (5, 1)])
@pytest.mark.parametrize(
    ("operator", "kinds"),
    [
        *((name, "f32 f64 s32 s64") for name in ("Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "Less")),
        ("Add", "u8"),
        ("GreaterOrEqual", "f32 f64 s32 s64"),
        ("Div", "f32 f64"),
        ("Mod", "f32 f64"),
        ("Div", "s32"),
        ("Pow", "f64"),
        ("BitShift", "u8 u32"),
    ],
)
def test_two_numbers(operator: str, kinds: str, second: tuple[int, ...]) -> None:
    """The single operand first, too; NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(len(operator))
    given: dict[str, dict[str, Any]] = {"Mod": {"fmod": 1}, "BitShift": {"direction": "LEFT"}}
    node = helper.make_node(operator, ["a", "b"], ["y"], **given.get(operator, {}))
    for kind in kinds.split():
        for odd in (False, True):
            shapes = (_SHAPE, second) if odd or operator == "Mod" else (second, _SHAPE)
            a, b = (_numbers(rng, kind, shape, odd) for shape in shapes)
            if operator == "BitShift":
                b %= 40
            elif operator == "Div" and kind == "s32":
                b[...] = np.where(rng.random(b.shape) < 0.5, b % 9 + 1, b | 1)
                # The one quotient that does not fit.
                a.reshape(-1)[0], b.reshape(-1)[0] = np.iinfo(np.int32).min, -1
            elif operator == "Pow":
                b[...] = rng.choice([2, 3, 0.5, -1.7], b.shape)
            _check([node], {"a": a, "b": b}, {})


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize(
    ("operator", "kind", "given"),
    [
        *((f"Reduce{name}", "f32", {}) for name in ("Prod", "LogSumExp", "L1", "L2", "SumSquare")),
        *((f"Reduce{name}", "f64", {}) for name in ("Sum", "Mean", "Prod", "L1", "L2", "SumSquare", "Max", "Min")),
        ("ReduceProd", "s32", {}),
        ("ReduceProd", "s64", {}),
        ("LpNormalization", "f32", {"p": 1}),
        ("LpNormalization", "f32", {"p": 2}),
        *(("ArgMax", kind, {"keepdims": 0}) for kind in ("f32", "f64")),
        ("CumSum", "f64", {"reverse": 1}),
    ],
)
def test_along_axes(operator: str, kind: str, given: dict[str, Any]) -> None:
    """Rows, columns, what lies between, and everything; rows of zeros and of numbers that are none."""
    rng = np.random.default_rng(len(operator))
    for axes in ([2], [1], [0], [1, 2], [0, 1, 2]):
        single = operator in ("LpNormalization", "ArgMax", "CumSum")
        if single and len(axes) > 1:
            continue
        for odd in (False, True):
            x, constants, inputs = _numbers(rng, kind, _SHAPE, False), {}, ["x"]
            if odd:
                x[0, 2] = 0
                x[1, 0, ::5] = x.dtype.type(np.inf) if kind[0] == "f" else np.iinfo(x.dtype).max
                x[0, 1, 3] = x.dtype.type(np.nan) if kind[0] == "f" else -1
            if single and operator != "CumSum":
                node = helper.make_node(operator, inputs, ["y"], axis=axes[0], **given)
            else:
                constants = {"axes": np.array(axes[0] if single else axes)}
                node = helper.make_node(operator, ["x", "axes"], ["y"], **given)
            _check([node], {"x": x}, constants)


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_products(kind: str) -> None:
    """Of binary64 numbers in blocks, and by a vector on the right."""
    rng = np.random.default_rng(3)
    for m, k, n in ((1, 5, 3), (7, 130, 1), (33, 300, 70), (4, 600, 16), (2, 600, 32)):
        a, b = _numbers(rng, kind, (2, m, k), False), _numbers(rng, kind, (k, n), False)
        for right in (b, b[:, 0]):
            _check([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": right}, {})
        for c in (_numbers(rng, kind, (n,), False), _numbers(rng, kind, (m, 1), False)):
            gemm = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transB=1, alpha=0.3)
            _check([gemm], {"a": a[0]}, {"b": np.ascontiguousarray(b.T), "c": c})
    a[0, 0, 0] = np.nan
    _check([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b})


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize(
    ("operator", "kind", "given"),
    [
        ("Sign", "f32", {}),
        ("Sign", "f64", {}),
        ("IsNaN", "f32", {}),
        ("IsNaN", "f64", {}),
        ("IsInf", "f64", {}),
        ("IsInf", "f32", {"detect_positive": 0}),
        ("Hardmax", "f32", {"axis": -1}),
        ("Hardmax", "f32", {"axis": 1}),
        ("Clip", "f64", {}),
        *((name, "f64", {}) for name in ("Sqrt", "Floor", "Ceil", "Round", "Sin", "Cos")),
    ],
)
def test_one_tensor(operator: str, kind: str, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    constants = {"low": _TYPES[kind](-0.5), "high": _TYPES[kind](0.7)} if operator == "Clip" else {}
    for odd in (False, True):
        x = _numbers(rng, kind, _SHAPE, odd)
        x[0, 1, 20:] = 3
        if operator in ("Sin", "Cos"):
            # Of pairs, too, of which one number is large.
            x[1] *= 10.0 ** rng.integers(0, 20, x.shape[1:])
        _check([helper.make_node(operator, ["x", *constants], ["y"], **given)], {"x": x}, constants)


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_lengths_of_windows(axes: int) -> None:
    """NaN, infinities and windows over borders, too."""
    rng = np.random.default_rng(axes)
    for odd in (False, True):
        x = _numbers(rng, "f32", (2, 3, *(7, 9, 6)[:axes]), odd)
        for p in (1, 2):
            given: dict[str, Any] = {"kernel_shape": [3] * axes, "strides": [2] * axes, "pads": [1] * 2 * axes, "p": p}
            _check([helper.make_node("LpPool", ["x"], ["y"], **given)], {"x": x}, {})
            _check([helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)], {"x": x}, {})


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("length", [1, 6, 70])
def test_layers_of_doubles(rows: int, length: int) -> None:
    rng = np.random.default_rng(length)
    for odd in (False, True):
        x = _numbers(rng, "f64", (rows, length), False)
        if odd:
            x[rows // 2, ::3] = np.inf
        constants = {name: rng.standard_normal(length) for name in ("scale", "bias")}
        for names in (["scale"], ["scale", "bias"]):
            given = {name: constants[name] for name in names}
            _check([helper.make_node("LayerNormalization", ["x", *names], ["y"])], {"x": x}, given)


@needs_native
@pytest.mark.parametrize("kind", ["f32", "f64", "u8"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_places_of_largest_elements(kind: str, axes: int) -> None:
    """Windows over borders, lines and columns first; what is equal, NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(axes)
    for odd in (False, True):
        x = _numbers(rng, kind, (2, 3, *(7, 9, 6)[:axes]), odd)
        if kind == "u8":
            x %= 3
        for order in (0, 1):
            for windows in ({"strides": [2] * axes}, {"dilations": [2] * axes, "pads": [1] * 2 * axes}):
                given: dict[str, Any] = {"kernel_shape": [3] * axes, "storage_order": order, **windows}
                _check([helper.make_node("MaxPool", ["x"], ["y", "at"], **given)], {"x": x}, {})
                _check([helper.make_node("MaxPool", ["x"], ["y"], **given)], {"x": x}, {})


@needs_native
@pytest.mark.parametrize("kind", ["f32", "u8"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiased_images(kind: str, mode: str) -> None:
    """Lines by many and by few, larger and smaller ones, and one axis alone."""
    rng = np.random.default_rng(5)
    node = helper.make_node("Resize", ["x", "", "", "to"], ["y"], mode=mode, antialias=1)
    for to in ([2, 3, 7, 11], [2, 3, 31, 40], [2, 3, 13, 8]):
        _check([node], {"x": _numbers(rng, kind, (2, 3, 13, 29), False)}, {"to": np.array(to)})


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("turned", [False, True])
def test_gates_are_fused(turned: bool) -> None:
    """x times its logistic function, whichever comes first; not where somebody else reads that."""
    rng = np.random.default_rng(6)
    factors = ["gate", "x"] if turned else ["x", "gate"]
    nodes = [helper.make_node("Sigmoid", ["x"], ["gate"]), helper.make_node("Mul", factors, ["y"])]
    # Of two NaNs that meet either one's payload may stay on aarch64.
    for odd in (False, True)[: 1 if platform.machine() == "aarch64" else 2]:
        x = _numbers(rng, "f32", _SHAPE, odd) * np.float32(9)
        assert "gates fused: Sigmoid #0 into Mul #1" in _check(nodes, {"x": x}, {})
    again = [nodes[0], helper.make_node("Mul", factors, ["z"]), helper.make_node("Sub", ["z", "gate"], ["y"])]
    assert "gates fused" not in _check(again, {"x": x}, {})


@needs_native
def test_gates_whose_products_are_rounded_by_themselves_are_not_fused() -> None:
    """Of 5 the logistic function and then the product are rounded: 4.966536 becomes 4.9665356 when it is done once."""
    nodes = [helper.make_node("Sigmoid", ["x"], ["gate"]), helper.make_node("Mul", ["x", "gate"], ["y"])]
    content, given = build(nodes, {"x": np.arange(-9, 9, dtype=np.float32)}, {"y": TensorProto.FLOAT}, {})
    model = bittrue.load(content)
    native, reference = (model.prepare("onnx", executor=name) for name in ("native", "reference"))
    assert native.run(*given)["y"].tobytes() == reference.run(*given)["y"].tobytes()
