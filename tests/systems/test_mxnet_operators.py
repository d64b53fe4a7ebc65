"""MXNet's quantized operators but layers: random calls against an oracle in plain Python, and what is refused.

Calls of tests/support/mxnet_cases.py were run with MXNet 1.9.1, too: 1 500 of every operator, no difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.errors import BittrueError, InvalidModelError, RunError, UnsupportedError
from support.mxnet_cases import ORACLES, Call, expected, random_call, symbol
from support.onnx_models import cases
from support.replays import replays

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "mxnet_pointwise"
I8, U8, F32 = np.int8, np.uint8, np.float32
_DATA = ("data", "lhs", "rhs")
_SLOW = {"_contrib_quantized_batch_norm": 10, "_contrib_quantized_concat": 15}


def _is_data(name: str) -> bool:
    return name in _DATA or (name.startswith("arg") and "_" not in name)


def _load(call: Call, outputs: int, constant: bool) -> bittrue.Model:
    """The call's model; with `constant`, all operands but the data are parameters."""
    content = json.loads(symbol(call, outputs))
    held = {name: array for name, array in call.operands.items() if constant and not _is_data(name)}
    for node in content["nodes"]:
        if node["name"] in held:
            node["attrs"] = {}
    return bittrue.load(json.dumps(content).encode(), params_file({f"arg:{name}": a for name, a in held.items()}))


def _run(call: Call, outputs: int, *, constant: bool = True, **options: Any) -> list[np.ndarray]:
    session = _load(call, outputs, constant).prepare(**options)
    return list(session.run({port.name: call.operands[port.name] for port in session.inputs}).values())


@pytest.mark.parametrize("operator", ORACLES)
def test_random_calls_are_the_oracle(request: pytest.FixtureRequest, operator: str) -> None:
    """Ranges that are parameters, and ranges that every run brings; both executors."""
    for number, rng in enumerate(cases(request, usual=_SLOW.get(operator, 25))):
        call = random_call(operator, rng)
        wanted = expected(call)
        for options in (
            {"executor": "reference"},
            {"executor": "native"},
            {"executor": "reference", "constant": False},
            {"executor": "native", "constant": False},
        ):
            found = _run(call, len(wanted), **options)
            for got, want in zip(found, wanted, strict=True):
                place = f"call {number}, {options}: {call.attributes}"
                assert (got.dtype, got.shape) == (want.dtype, want.shape), place
                assert got.tobytes() == want.tobytes(), place


def test_recorded_calls(record_property: Callable[[str, object], None]) -> None:
    """Calls of MXNet 1.9.1, and conversions of MXNet 1.8.0 without oneDNN."""
    for executor, result in replays(RECORDED, ["auto", "reference"]).items():
        record_property("replayed", f"{executor}: {result.equal} of {len(result.outcomes)} recorded calls")
        assert [str(o.first or o.refusal) for o in result.outcomes if not o.equal] == []
        assert len(result.outcomes) == 206


_NODES = {
    "_contrib_quantized_act": {"clip", "identity"},
    "_contrib_quantized_batch_norm": {"batch_normalization"},
    "_contrib_quantized_concat": {"range_of", "concatenation"},
    "_contrib_quantized_elemwise_add": {"add", "range_of"},
    "_contrib_quantized_elemwise_mul": {"range_of", "mul"},
    "_contrib_quantized_embedding": {"clip", "convert", "identity", "gather"},
    "_contrib_quantized_flatten": {"flatten", "identity"},
    "_contrib_quantized_pooling": {"average_pool", "identity", "max_pool"},
}


@pytest.mark.parametrize("operator", ORACLES)
def test_nodes_of_graphs(operator: str) -> None:
    """Fifty calls make all kinds of nodes."""
    rng = np.random.default_rng(2)
    calls = [random_call(operator, rng) for _ in range(50)]
    assert {node.operator for call in calls for node in _load(call, 1, True).graph.nodes} == _NODES[operator]


def test_large_tensors_run_natively() -> None:
    """Blocks of kernels, several threads, and rows that do not fill vectors."""
    rng = np.random.default_rng(5)
    shape = (2, 19, 37, 41)
    data = {name: rng.integers(-128, 128, shape).astype(I8) for name in ("lhs", "rhs")}
    data["rhs"] = data["rhs"].view(U8)
    ends = {"lhs_min": -1.5, "lhs_max": 2.25, "rhs_min": 0.0, "rhs_max": 3.5}
    operands = {**data, **{name: np.array([value], F32) for name, value in ends.items()}}
    add = Call("_contrib_quantized_elemwise_add", operands, {"min_calib_range": -4.0, "max_calib_range": 3.0})
    signed = {**operands, "rhs": data["rhs"].view(I8)}
    calls = [add, Call(add.operator, operands, {}), Call(add.operator, signed, add.attributes)]
    calls += [Call("_contrib_quantized_elemwise_mul", signed, attributes) for attributes in ({}, add.attributes)]
    pool = {"data": data["rhs"], "min_data": operands["rhs_min"], "max_data": operands["rhs_max"]}
    for kind in ("max", "avg"):
        attributes = {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 0), "pool_type": kind}
        calls.append(Call("_contrib_quantized_pooling", pool, attributes))
    statistics = {name: rng.normal(1, 0.2, 19).astype(F32) for name in ("gamma", "beta", "moving_mean", "moving_var")}
    ranges = {"min_data": pool["min_data"], "max_data": pool["max_data"]}
    normalized = {"data": data["rhs"], **statistics, **ranges}
    calls.append(Call("_contrib_quantized_batch_norm", normalized, add.attributes))
    # Ranges that every run brings, too.
    for call, constant in [(call, constant) for call in calls for constant in (True, False)]:
        model = _load(call, 1, constant)
        session = model.prepare(executor="native", threads=3)
        assert "runs on the reference" not in str(session.plan), f"{call.operator} {call.attributes}"
        feeds = {port.name: call.operands[port.name] for port in session.inputs}
        (found,), (wanted,) = session.run(feeds).values(), model.prepare(executor="reference").run(feeds).values()
        assert found.tobytes() == wanted.tobytes(), f"{call.operator} {call.attributes}"


def test_concatenation_of_two_types_runs_natively() -> None:
    rng = np.random.default_rng(6)
    operands: dict[str, np.ndarray] = {
        "arg0": rng.integers(0, 256, (2, 5, 9, 9)).astype(U8),
        "arg1": rng.integers(-128, 128, (2, 3, 9, 9)).astype(I8),
    }
    operands |= {"arg0_min": np.zeros(1, F32), "arg0_max": np.full(1, 3, F32)}
    operands |= {"arg1_min": np.full(1, -3, F32), "arg1_max": np.full(1, 2, F32)}
    call = Call("_contrib_quantized_concat", operands, {"num_args": 2, "dim": 1})
    for constant in (True, False):
        session = _load(call, 3, constant).prepare(executor="native")
        assert "runs on the reference" not in str(session.plan)
        found = session.run({port.name: operands[port.name] for port in session.inputs})
        assert [a.tobytes() for a in found.values()] == [a.tobytes() for a in expected(call)]


def test_sums_beyond_binary32() -> None:
    """An average over 120 000 elements, whose sum binary32 holds when it is rounded once."""
    x = np.where(np.arange(120_000) % 2, 255, 254).astype(U8).reshape(1, 1, 400, 300)
    ends = {"min_data": np.zeros(1, F32), "max_data": np.ones(1, F32)}
    attributes = {"kernel": (1, 1), "global_pool": True, "pool_type": "avg"}
    call = Call("_contrib_quantized_pooling", {"data": x, **ends}, attributes)
    for executor in ("reference", "native"):
        assert _run(call, 1, executor=executor)[0].reshape(-1).tolist() == [254]


_X = np.arange(-8, 8, dtype=I8).reshape(1, 2, 2, 4)
_ONE = {"min_data": np.full(1, -1, F32), "max_data": np.ones(1, F32)}
_PAIR = {name: np.full(1, 1 if name[-1] == "x" else -1, F32) for name in ("lhs_min", "lhs_max", "rhs_min", "rhs_max")}
_STATISTICS = {name: np.ones(2, F32) for name in ("gamma", "beta", "moving_mean", "moving_var")}
_CALIBRATED = {"min_calib_range": -1.0, "max_calib_range": 1.0}
_WINDOW = {"kernel": (2, 2), "pool_type": "max"}


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "error", "text"),
    [
        ("pooling", {"data": _X, **_ONE}, {**_WINDOW, "kernel": (3, 3)}, InvalidModelError, "does not fit"),
        ("pooling", {"data": _X, **_ONE}, {**_WINDOW, "kernel": (2, 2), "pad": (2, 0)}, InvalidModelError, "at most 1"),
        ("pooling", {"data": _X, **_ONE}, {"kernel": (2, 2), "pool_type": "sum"}, UnsupportedError, "pool_type"),
        ("pooling", {"data": _X, **_ONE}, {**_WINDOW, "layout": "NHWC"}, UnsupportedError, "layout"),
        ("pooling", {"data": _X, **_ONE}, {"pool_type": "avg", "global_pool": True}, UnsupportedError, "kernel"),
        ("pooling", {"data": _X[0], **_ONE}, _WINDOW, InvalidModelError, "rank"),
        (
            "pooling",
            {"data": _X, **_ONE},
            {**_WINDOW, "stride": (1, 3), "pooling_convention": "same"},
            InvalidModelError,
            "do not fill",
        ),
        (
            "pooling",
            {"data": _X, **_ONE},
            {
                "kernel": (1, 1),
                "stride": (1, 2),
                "pool_type": "avg",
                "pooling_convention": "full",
                "count_include_pad": False,
            },
            UnsupportedError,
            "beside the image",
        ),
        ("act", {"data": _X.view(U8), **_ONE}, {"act_type": "relu"}, UnsupportedError, "relabels"),
        ("act", {"data": _X, **_ONE}, {"act_type": "tanh"}, UnsupportedError, "act_type"),
        (
            "embedding",
            {
                "data": np.zeros(3, F32),
                "weight": _X.reshape(4, 4),
                "min_weight": _ONE["min_data"],
                "max_weight": -_X[0, 0, 0, :1].astype(F32),
            },
            {"input_dim": 5, "output_dim": 4},
            InvalidModelError,
            "expected",
        ),
        ("elemwise_add", {"lhs": _X, "rhs": _X[:, :1], **_PAIR}, {}, InvalidModelError, "broadcast"),
        ("elemwise_mul", {"lhs": _X, "rhs": _X.view(U8), **_PAIR}, {}, UnsupportedError, "no row"),
        ("batch_norm", {"data": _X, **_STATISTICS, **_ONE}, {}, InvalidModelError, "min_calib_range"),
        ("batch_norm", {"data": _X, **_STATISTICS, **_ONE}, {**_CALIBRATED, "axis": 3}, UnsupportedError, "axis 1"),
        (
            "batch_norm",
            {"data": _X, **_STATISTICS, **_ONE},
            {"min_calib_range": 0.0, "max_calib_range": 0.0},
            InvalidModelError,
            "no defined result",
        ),
        ("elemwise_add", {"lhs": _X, "rhs": _X, **_PAIR}, {"surprise": 1}, UnsupportedError, "surprise"),
    ],
)
def test_what_is_refused(
    operator: str, operands: dict[str, np.ndarray], attributes: dict[str, Any], error: type, text: str
) -> None:
    call = Call(f"_contrib_quantized_{operator}", operands, attributes)
    with pytest.raises(error, match=text):
        _run(call, 1)


def test_ranges_of_a_run_without_a_meaning() -> None:
    """Both empty, and one that is no number: known while running only."""
    zero = {name: np.zeros(1, F32) for name in _PAIR}
    with pytest.raises(RunError, match="no defined result"):
        _run(Call("_contrib_quantized_elemwise_add", {"lhs": _X, "rhs": _X, **zero}), 1, constant=False)
    odd = {**_PAIR, "lhs_min": np.full(1, np.nan, F32)}
    with pytest.raises(RunError, match="not finite"):
        _run(Call("_contrib_quantized_elemwise_add", {"lhs": _X, "rhs": _X, **odd}), 1, constant=False)


def test_equal_scales_of_two_types_are_refused() -> None:
    """The runtime copies operands whose scale is that of the result, and checks that they are of its type."""
    ends = {f"arg{i}_{end}": np.zeros(1, F32) for i in range(2) for end in ("min", "max")}
    call = Call("_contrib_quantized_concat", {"arg0": _X.view(U8), "arg1": _X, **ends}, {"num_args": 2, "dim": 1})
    with pytest.raises(InvalidModelError, match="is u8 at the scale of the result"):
        _run(call, 1)
    with pytest.raises(RunError, match="is u8 at the scale of the result"):
        _run(call, 1, constant=False)


@pytest.mark.parametrize(
    "operator",
    sorted(
        set(ORACLES) - {"_contrib_quantized_flatten", "_contrib_quantized_embedding", "_contrib_quantized_elemwise_mul"}
    ),
)
def test_the_build_without_layers_refuses(operator: str) -> None:
    call = random_call(operator, np.random.default_rng(1))
    with pytest.raises(BittrueError, match="no kernel of it"):
        _load(call, 1, True).prepare("mxnet-native")


@pytest.mark.parametrize("layer", ["conv", "fully_connected"])
def test_the_build_without_layers_refuses_layers(layer: str) -> None:
    shapes = {"conv": ((1, 2, 4, 4), (3, 2, 1, 1)), "fully_connected": ((2, 5), (3, 5))}[layer]
    data, weight = (np.ones(shape, dtype) for shape, dtype in zip(shapes, (U8, I8), strict=True))
    ends = {f"{end}_{name}": np.ones(1, F32) for name in ("data", "weight") for end in ("min", "max")}
    attributes = {"conv": {"kernel": (1, 1), "num_filter": 3}, "fully_connected": {"num_hidden": 3}}[layer]
    operands = {"data": data, "weight": weight, **ends}
    call = Call(f"_contrib_quantized_{layer}", operands, {**attributes, "no_bias": True})
    assert _run(call, 3)[0].reshape(-1)[0] == (2 if layer == "conv" else 5)
    with pytest.raises(BittrueError, match="no kernel of it"):
        _load(call, 1, True).prepare("mxnet-native")
