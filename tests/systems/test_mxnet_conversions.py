"""Conversions between real numbers, quantized values and sums run natively: the bits of the reference, and no fallback.

Their rules have oracles in tests/rules/test_range_rules.py. 1 500 calls were run with MXNet 1.9.1, and 1 500 with
MXNet 1.8.0 without oneDNN.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.errors import RunError
from support.mxnet_cases import Call, symbol

F32 = np.float32
_RNG = np.random.default_rng(11)
_SHAPE = (3, 7, 29, 31)
_REAL = _RNG.normal(0, 1, _SHAPE).astype(F32)
_REAL.reshape(-1)[:4] = [np.inf, -np.inf, 3e38, -3e38]
_SUMS = (_RNG.normal(0, 1, _SHAPE) * 2.0**20).astype(np.int32)
_CALIBRATED = {"min_calib_range": -1.25, "max_calib_range": 2.5}
_SMALL = {"min_calib_range": -0.0007, "max_calib_range": 0.0005}
_ENDS = {"min_range": np.full(1, -1.25, F32), "max_range": np.full(1, 2.5, F32)}
_FINITE = np.nan_to_num(_REAL, posinf=2, neginf=-2)
_CASES: list[tuple[str, dict[str, np.ndarray], dict[str, Any]]] = [
    ("_contrib_quantize", {"data": _REAL, **_ENDS}, {"out_type": "int8"}),
    ("_contrib_quantize", {"data": _REAL, **_ENDS}, {"out_type": "uint8"}),
    ("_contrib_quantize_v2", {"data": _REAL}, {"out_type": "int8", **_CALIBRATED}),
    ("_contrib_quantize_v2", {"data": _REAL}, {"out_type": "uint8", **_CALIBRATED}),
    ("_contrib_quantize_v2", {"data": _FINITE}, {"out_type": "int8"}),
    ("_contrib_dequantize", {"data": _SUMS.astype(np.int8), **_ENDS}, {}),
    ("_contrib_dequantize", {"data": _SUMS.astype(np.uint8), **_ENDS}, {}),
    ("_contrib_requantize", {"data": _SUMS, **_ENDS}, {"out_type": "int8", **_SMALL}),
    ("_contrib_requantize", {"data": _SUMS, **_ENDS}, {"out_type": "uint8", **_SMALL}),
    ("_contrib_requantize", {"data": _SUMS, **_ENDS}, {"out_type": "int8"}),
    ("_contrib_requantize", {"data": _SUMS, **_ENDS}, {"out_type": "uint8"}),
]


def _session(call: Call, outputs: int, constant: bool, **options: Any) -> bittrue.Session:
    content = json.loads(symbol(call, outputs))
    held = {name: array for name, array in call.operands.items() if constant and name != "data"}
    for node in content["nodes"]:
        if node["name"] in held:
            node["attrs"] = {}
    weights = params_file({f"arg:{name}": array for name, array in held.items()})
    return bittrue.load(json.dumps(content).encode(), weights).prepare(**options)


# The build without oneDNN has no requantize to uint8.
_BUILDS = [
    (number, numerics)
    for numerics in ("mxnet", "mxnet-native")
    for number, (operator, _, attributes) in enumerate(_CASES)
    if numerics == "mxnet" or (operator, attributes.get("out_type")) != ("_contrib_requantize", "uint8")
]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("number", "numerics"), _BUILDS)
def test_native_is_the_reference(number: int, numerics: str, constant: bool) -> None:
    call = Call(*_CASES[number])
    outputs = 1 if call.operator == "_contrib_dequantize" else 3
    native = _session(call, outputs, constant, numerics=numerics, executor="native", threads=2)
    assert "runs on the reference" not in str(native.plan)
    feeds = {port.name: call.operands[port.name] for port in native.inputs}
    wanted = _session(call, outputs, constant, numerics=numerics, executor="reference").run(feeds)
    for name, found in native.run(feeds).items():
        assert found.dtype == wanted[name].dtype
        assert found.tobytes() == wanted[name].tobytes(), name


def test_nodes_of_graphs() -> None:
    """What the calls are mapped to: a node for the data, and one for the range of the result."""
    found = set()
    for case in _CASES:
        call = Call(*case)
        outputs = 1 if call.operator == "_contrib_dequantize" else 3
        found |= {node.operator for node in bittrue.load(symbol(call, outputs)).graph.nodes}
    assert found == {
        "dequantize",
        "identity",
        "quantize",
        "range_of",
    }


def test_zeros_and_the_lowest_sum() -> None:
    """Ranges that end in a zero are left to the reference, and so is what it refuses."""
    x = np.array([-0.0, 0.0, 1.0, np.nan], F32)
    call = Call("_contrib_quantize_v2", {"data": x}, {"out_type": "int8"})
    for found in (_session(call, 3, False, executor=executor).run(x) for executor in ("native", "reference")):
        assert found["node_output1"].tolist() == [-1]
        assert found["node_output2"].tolist() == [1]
    lowest = Call("_contrib_requantize", {"data": np.full(3, -(2**31), np.int32), **_ENDS}, {"out_type": "int8"})
    for executor in ("native", "reference"):
        with pytest.raises(RunError, match="not defined"):
            _session(lowest, 3, True, executor=executor).run(lowest.operands["data"])


def test_ranges_of_sums_and_of_concatenations() -> None:
    """The union and the sum of ranges that every run brings."""
    pairs = {name: np.array([value], F32) for name, value in (("min", -1.5), ("max", 0.75))}
    operands = {"lhs": _SUMS.astype(np.int8), "rhs": _SUMS.astype(np.uint8).view(np.int8)}
    ends = {f"{side}_{end}": pairs[end] * F32(scale) for side, scale in (("lhs", 1), ("rhs", 3)) for end in pairs}
    add = Call("_contrib_quantized_elemwise_add", {**operands, **ends}, {})
    arguments = {f"arg{i}": array for i, array in enumerate(operands.values())}
    joined = {f"arg{i}_{end}": pairs[end] * F32(i + 1) for i in range(2) for end in pairs}
    concat = Call("_contrib_quantized_concat", {**arguments, **joined}, {"num_args": 2, "dim": 1})
    multiply = Call("_contrib_quantized_elemwise_mul", {**operands, **ends}, {})
    for call, wanted in ((add, [-6.0, 6.0]), (concat, [-3.0, 1.5]), (multiply, None)):
        found = {
            executor: list(_session(call, 3, False, executor=executor).run(call.operands).values())
            for executor in ("native", "reference")
        }
        assert [a.tobytes() for a in found["native"]] == [a.tobytes() for a in found["reference"]]
        if wanted is not None:
            assert [float(a[0]) for a in found["native"][1:]] == wanted
