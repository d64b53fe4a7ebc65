"""conv and pools of real numbers with channels first: native results are the reference's, on all instruction sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from support.native import needs_native
from support.onnx_models import build, cases


def _windows(rng: np.random.Generator, axes: int, pooling: bool) -> dict[str, Any]:
    taps = [int(v) for v in rng.integers(1, 5, axes)]
    kept: dict[str, Any] = {"kernel_shape": taps, "strides": [int(v) for v in rng.integers(1, 4, axes)]}
    if rng.random() < 0.2:
        kept["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        most = taps if pooling else [3] * axes
        kept["pads"] = [int(rng.integers(most[i % axes])) for i in range(2 * axes)]
    return kept


def _agree(
    nodes: NodeProto | list[NodeProto],
    given: dict[str, np.ndarray],
    constants: dict[str, np.ndarray],
    number: int,
    numerics: str = "onnxruntime",
) -> bool:
    """Whether native kernels did it."""
    nodes = nodes if isinstance(nodes, list) else [nodes]
    content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, constants)
    try:
        expected = bittrue.load(content).prepare(numerics, executor="reference").run(*feeds)["y"]
    except bittrue.BittrueError:
        return False
    done = True
    for isa in bittrue.isas():
        session = bittrue.load(content).prepare(numerics, executor="native", isa=isa, threads=1 + number % 2)
        done &= not session.missing
        assert session.run(*feeds)["y"].tobytes() == expected.tobytes(), (isa, nodes)
    return done


def _image(rng: np.random.Generator, channels: int, axes: int) -> np.ndarray:
    shape = (int(rng.integers(1, 3)), channels, *(int(v) for v in rng.integers(1, 14, axes)))
    x = rng.normal(size=shape).astype(np.float32)
    x[rng.random(shape) < 0.1] = -0.0
    return x


@needs_native
def test_random_convolutions(request: pytest.FixtureRequest) -> None:
    native = 0
    for number, rng in enumerate(cases(request, usual=30)):
        axes = 1 + int(rng.random() < 0.8)
        groups = int(rng.choice([1, 1, 2, 3, 8]))
        depth, filters = (int(rng.choice([1, 2, 3, 4, 7, 16, 20, 32])) for _ in range(2))
        if rng.random() < 0.3:
            depth = filters = 1
        attributes = _windows(rng, axes, False)
        if rng.random() < 0.2:
            attributes["dilations"] = [int(v) for v in rng.integers(1, 3, axes)]
        w = rng.normal(size=(filters * groups, depth, *attributes["kernel_shape"])).astype(np.float32)
        operands = {"x": _image(rng, depth * groups, axes), "w": w}
        if rng.random() < 0.1:
            attributes["pads"] = [0] * (2 * axes)
            attributes.pop("auto_pad", None)
            operands["x"] = rng.normal(size=(1, depth * groups, *attributes["kernel_shape"])).astype(np.float32)
        if rng.random() < 0.5:
            operands["b"] = rng.normal(size=filters * groups).astype(np.float32)
        if rng.random() < 0.1:
            operands["x"].reshape(-1)[0] = rng.choice([np.nan, np.inf])
        constants = {name: operands[name] for name in operands if name != "x" and rng.random() < 0.8}
        given = {name: array for name, array in operands.items() if name not in constants}
        node = helper.make_node("Conv", list(operands), ["y"], group=groups, **attributes)
        native += _agree(node, given, constants, number)
    assert native


@needs_native
def test_windows_over_padding(request: pytest.FixtureRequest) -> None:
    """Lines whose windows meet few taps, and more filters than are worked on together."""
    for number, rng in enumerate(cases(request, usual=12)):
        depth, filters = int(rng.choice([8, 16, 20])), int(rng.integers(30, 90))
        taps, dilation = [int(v) for v in rng.integers(2, 6, 2)], [int(v) for v in rng.integers(1, 8, 2)]
        shape = (1, depth, *(int(v) for v in rng.integers(5, 40, 2)))
        pads = [int(rng.integers((t - 1) * d + 1)) for t, d in zip(taps, dilation, strict=True)] * 2
        if any(s + 2 * p <= (t - 1) * d for s, p, t, d in zip(shape[2:], pads, taps, dilation, strict=False)):
            continue
        constants = {
            "w": rng.normal(size=(filters, depth, *taps)).astype(np.float32),
            "b": rng.normal(size=filters).astype(np.float32),
        }
        given = {"x": rng.normal(size=shape).astype(np.float32)}
        if rng.random() < 0.2:
            constants["w"][0, 0, 0, 0] = np.inf
        if rng.random() < 0.2:
            given["w"] = constants.pop("w")
        node = helper.make_node(
            "Conv", ["x", "w", "b"], ["y"], pads=pads, dilations=dilation, strides=[1, 1 + number % 2]
        )
        assert _agree(node, given, constants, number)


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("numerics", ["onnxruntime", "onnxruntime-avx2"])
def test_filters_in_lanes(request: pytest.FixtureRequest, numerics: str) -> None:
    """Blocks of channels, the last one of fewer, with sums that begin with another tensor."""
    in_lanes = 0
    for number, rng in enumerate(cases(request, usual=15)):
        groups, taps = int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2, 3]))
        depth = int(rng.choice([16, 48] if groups > 1 else [3, 16, 20, 128, 132, 260]))
        filters = int(rng.choice([16, 48] if groups > 1 else [12, 16, 20, 44, 100]))
        w = rng.normal(size=(filters * groups, depth, taps, taps)).astype(np.float32)
        x = rng.normal(size=(int(rng.integers(1, 4)), depth * groups, *rng.integers(taps, 25, 2))).astype(np.float32)
        attributes: dict[str, Any] = {
            "strides": [int(v) for v in rng.integers(1, 3, 2)],
            "pads": [int(v) for v in rng.integers(taps, size=4)],
            "group": groups,
        }
        constants = {"w": w, "b": rng.normal(size=filters * groups).astype(np.float32)}
        nodes = [helper.make_node("Conv", ["x", "w", "b"][: 2 + number % 2], ["c"], **attributes)]
        content, feeds = build(nodes, {"x": x}, {"c": TensorProto.FLOAT}, constants)
        session = bittrue.load(content).prepare(numerics)
        in_lanes += session.profile(*feeds, rounds=1).steps[0].note.endswith("filters in lanes")
        given = {"x": x}
        if rng.random() < 0.5:
            given["z"] = rng.normal(size=session.run(*feeds)["c"].shape).astype(np.float32)
            nodes.append(helper.make_node("Add", ["c", "z"], ["s"]))
        nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
        if rng.random() < 0.1:
            x.reshape(-1)[-1] = rng.choice([np.nan, np.inf])
        assert _agree(nodes, given, constants, number, numerics)
    assert in_lanes


@needs_native
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
def test_random_pools(request: pytest.FixtureRequest, operator: str) -> None:
    native = 0
    for number, rng in enumerate(cases(request, usual=25)):
        axes = 1 + int(rng.random() < 0.8)
        attributes: dict[str, Any] = {}
        if not operator.startswith("Global"):
            attributes = _windows(rng, axes, True) | {"ceil_mode": int(rng.integers(2))}
        x = _image(rng, int(rng.choice([1, 3, 8, 16, 32])), axes)
        if operator == "AveragePool":
            attributes["count_include_pad"] = int(rng.integers(2))
            if rng.random() < 0.2:
                attributes = {"kernel_shape": list(x.shape[2:])}
        if rng.random() < 0.1:
            x.reshape(-1)[-1] = rng.choice([np.nan, np.inf])
        native += _agree(helper.make_node(operator, ["x"], ["y"], **attributes), {"x": x}, {}, number)
    assert native


@needs_native
@pytest.mark.parametrize(
    ("ends", "groups", "fused"),
    [((0.0, 6.0), 1, True), ((-0.5, 0.5), 4, True), ((0.5, -0.5), 1, False), ((float("nan"), 1.0), 1, False)],
)
def test_limits_are_fused(ends: tuple[float, float], groups: int, fused: bool) -> None:
    """Inside of a convolution, over wide images and narrow ones; sums that are no numbers are the reference's."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(8, 4 // groups, 3, 3)).astype(np.float32)
    constants = {"w": weights, "low": np.float32(ends[0]), "high": np.float32(ends[1])}
    convolution = helper.make_node("Conv", ["x", "w"], ["sums"], group=groups)
    clip = helper.make_node("Clip", ["sums", "low", "high"], ["y"])
    for width, special in ((57, 1.0), (7, 1.0), (7, np.nan), (57, np.inf)):
        x = rng.normal(size=(1, 4, 9, width)).astype(np.float32)
        x[0, 0, 4, 4] *= np.float32(special)
        content, feeds = build([convolution, clip], {"x": x}, {"y": TensorProto.FLOAT}, constants)
        expected = bittrue.load(content).prepare("onnxruntime", executor="reference").run(*feeds)["y"]
        for isa in bittrue.isas():
            session = bittrue.load(content).prepare("onnxruntime", isa=isa)
            assert any("limits fused" in line for line in session.plan.execution) == fused
            assert not session.missing
            assert session.run(*feeds)["y"].tobytes() == expected.tobytes(), (isa, width, special)
