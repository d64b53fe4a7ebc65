"""loop, as Scan asks for it: slices of operands, axes and directions, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.onnx_models import Checks, build, check

S32 = TensorProto.INT32


def draw(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Two scanned operands, up to two states; one of the results is a state that the body passes on."""
    # Without rounds the runtime may end the process.
    rounds, inner = int(rng.integers(1, 5)), [int(v) for v in rng.integers(1, 4, 2)]
    axes = [int(v) for v in rng.integers(-3, 3, 2)]
    scanned = {}
    for name, axis in zip(("p", "q"), axes, strict=True):
        shape = list(inner)
        shape.insert(axis % 3, rounds)
        scanned[name] = rng.integers(-9, 10, shape).astype(np.int32)
    states = {name: rng.integers(-9, 10, inner).astype(np.int32) for name in ("s", "t")[: int(rng.integers(0, 3))]}
    shadowed = rng.random() < 0.3
    a, b = ("p", "q") if shadowed and rng.random() < 0.1 else ("a", "b")
    nodes = [helper.make_node("Sub", [a, b], ["d"]), helper.make_node("Mul", ["d", "w"], ["first"])]
    given, results = [], []
    # Inference knows what the body does not declare.
    said = inner if rng.random() < 0.5 else None
    for name in states:
        nodes.append(helper.make_node("Add", [f"{name}_in", a if name == "s" else "d"], [f"{name}_out"]))
        given.append(helper.make_tensor_value_info(f"{name}_in", S32, said))
        results.append(helper.make_tensor_value_info(f"{name}_out", S32, said))
    if states:
        nodes.append(helper.make_node("Identity", ["s_in"], ["second"]))
    else:
        nodes.append(helper.make_node("Identity", [b], ["second"]))
    given += [helper.make_tensor_value_info(name, S32, said) for name in (a, b)]
    results += [helper.make_tensor_value_info(name, S32, said) for name in ("first", "second")]
    attributes: dict[str, Any] = {"num_scan_inputs": 2, "scan_input_axes": axes}
    if not any(axes) and rng.random() < 0.5:
        del attributes["scan_input_axes"]
    if rng.random() < 0.5:
        attributes["scan_input_directions"] = [int(v) for v in rng.integers(0, 2, 2)]
    if rng.random() < 0.5:
        attributes["scan_output_directions"] = [int(v) for v in rng.integers(0, 2, 2)]
    if rng.random() < 0.5:
        attributes["scan_output_axes"] = [int(v) for v in rng.integers(-3, 3, 2)]
    body = helper.make_graph(nodes, "body", given, results)
    outputs = [*(f"{name}_last" for name in states), "y", "z"]
    scan = helper.make_node("Scan", [*states, *scanned], outputs, "scan", body=body, **attributes)
    weights = {"w": rng.integers(-3, 4, inner[-1]).astype(np.int32)}
    opset = int(rng.choice([9, 11, 16, 21, 24]))
    return build([scan], {**states, **scanned}, dict.fromkeys(outputs, S32), weights, opset=opset)


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, 30)
    for rng in checks:
        checks.add(*draw(rng))
    assert checks.outcomes.count("equal") > len(checks.outcomes) / 2


@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ({"num_scan_inputs": 3}, (3, 3)),
        ({"num_scan_inputs": 0}, (3, 3)),
        ({"num_scan_inputs": 2, "scan_input_axes": [0]}, (3, 3)),
        ({"num_scan_inputs": 2, "scan_input_axes": [0, 2]}, (3, 3)),
        ({"num_scan_inputs": 2, "scan_input_directions": [0, 2]}, (3, 3)),
        ({"num_scan_inputs": 2, "scan_output_axes": [2]}, (3, 3)),
        ({"num_scan_inputs": 2}, (3, 4)),
        ({"num_scan_inputs": 2}, (4, 3)),
    ],
)
def test_what_does_not_fit(attributes: dict[str, Any], sizes: tuple[int, int]) -> None:
    info = [helper.make_tensor_value_info(name, S32, [2]) for name in ("a", "b", "c")]
    body = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "body", info[:2], info[2:])
    scan = helper.make_node("Scan", ["p", "q"], ["y"], body=body, **attributes)
    operands = {name: np.zeros((size, 2), np.int32) for name, size in zip(("p", "q"), sizes, strict=True)}
    assert check(*build([scan], operands, {"y": S32})) == "refused"
