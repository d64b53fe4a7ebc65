"""MXNet's operators on real numbers: those that are exact in every bit, and sums of integers, which are exact anyhow.

The same calls were run with MXNet 1.9.1; what it sums and what it takes from libraries differs from ours by some units
in the last place, so the plan calls those steps inexact.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.errors import InvalidModelError, UnsupportedError
from support.mxnet_cases import Call, symbol

F32 = np.float32
_SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 1.5, -2.25, 3e38, -3e38, 0.3], F32)
_X = np.resize(_SPECIAL, (2, 3, 2, 4)).astype(F32)
_Y = np.resize(_SPECIAL[::-1], (2, 3, 2, 4)).astype(F32)


def _run(operator: str, arrays: list[np.ndarray], numerics: str = "mxnet", **attributes: Any) -> np.ndarray:
    call = Call(operator, {f"in{i}": array for i, array in enumerate(arrays)}, attributes)
    session = bittrue.load(symbol(call, 1)).prepare(numerics, executor="reference")
    (found,) = session.run({port.name: call.operands[port.name] for port in session.inputs}).values()
    return found


def _equal(found: np.ndarray, wanted: np.ndarray) -> None:
    """The same bits; NaN is NaN."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    missing = np.isnan(wanted)
    assert np.array_equal(np.isnan(found), missing)
    assert np.array_equal(found.view(np.int32)[~missing], wanted.view(np.int32)[~missing])


def _leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, x * F32(0.1))


_UNARY: list[tuple[str, dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = [
    ("Activation", {"act_type": "relu"}, lambda x: np.where(x > 0, x, F32(0))),
    ("BlockGrad", {}, lambda x: x),
    ("Dropout", {"p": 0.5}, lambda x: x),
    ("Flatten", {}, lambda x: x.reshape(2, 24)),
    ("LeakyReLU", {"act_type": "leaky", "slope": 0.1}, _leaky),
    ("Reshape", {"shape": (0, -1, 4)}, lambda x: x.reshape(2, 6, 4)),
    ("_div_scalar", {"scalar": 0.3}, lambda x: x / F32(0.3)),
    ("_minus_scalar", {"scalar": 0.3}, lambda x: x - F32(0.3)),
    ("_mul_scalar", {"scalar": 0.3}, lambda x: x * F32(0.3)),
    ("_plus_scalar", {"scalar": 0.3}, lambda x: x + F32(0.3)),
    ("_rdiv_scalar", {"scalar": 0.3}, lambda x: F32(0.3) / x),
    ("_rminus_scalar", {"scalar": 0.3}, lambda x: F32(0.3) - x),
    ("abs", {}, np.abs),
    ("clip", {"a_min": -0.5, "a_max": 1.25}, lambda x: np.where(x < -0.5, F32(-0.5), np.where(x > 1.25, F32(1.25), x))),
    ("expand_dims", {"axis": 2}, lambda x: x[:, :, None]),
    ("negative", {}, lambda x: -x),
    ("relu", {}, lambda x: np.where(np.isnan(x), x, np.where(x > 0, x, F32(0)))),
    ("slice_axis", {"axis": -1, "begin": 1, "end": -1}, lambda x: np.ascontiguousarray(x[..., 1:-1])),
    ("slice_axis", {"axis": 1, "begin": -2, "end": None}, lambda x: np.ascontiguousarray(x[:, -2:])),
    ("sqrt", {}, np.sqrt),
    ("transpose", {"axes": (0, 2, 3, 1)}, lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1))),
]


@pytest.mark.parametrize(
    ("operator", "attributes", "oracle"), _UNARY, ids=[f"{one[0]}-{i}" for i, one in enumerate(_UNARY)]
)
def test_exact_functions(operator: str, attributes: dict[str, Any], oracle: Callable[..., np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        _equal(_run(operator, [_X], **attributes), oracle(_X).astype(F32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_exact_sums_and_products(name: str) -> None:
    """Element-wise ones do not broadcast."""
    oracle = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    row = np.ascontiguousarray(_Y[:1, :, :1])
    with np.errstate(all="ignore"):
        _equal(_run(f"elemwise_{name}", [_X, _Y]), oracle(_X, _Y))
        _equal(_run(f"broadcast_{name}", [_X, row]), oracle(_X, row))
    with pytest.raises(UnsupportedError, match="does not broadcast"):
        _run(f"elemwise_{name}", [_X, row])


def test_concatenation() -> None:
    found = _run("Concat", [_X, _Y[:, :1]], num_args=2, dim=1)
    _equal(found, np.concatenate([_X, _Y[:, :1]], axis=1))


_RNG = np.random.default_rng(3)
_WHOLE = _RNG.integers(-9, 10, (2, 4, 6, 5)).astype(F32)


def _windows(x: np.ndarray, kernel: int, stride: int, pad: int) -> np.ndarray:
    """[N, C, H', W', taps] of windows, all of them inside of the padded image."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=np.nan)
    view = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    return view.reshape(*view.shape[:4], -1)


def test_pools_of_integers() -> None:
    """Maxima and sums of small integers; a window of 2 x 2 divides by a power of two."""
    taps = _windows(_WHOLE, 2, 2, 1)
    attributes = {"kernel": (2, 2), "stride": (2, 2), "pad": (1, 1)}
    _equal(_run("Pooling", [_WHOLE], **attributes, pool_type="max"), np.nanmax(taps, axis=-1))
    _equal(_run("Pooling", [_WHOLE], **attributes, pool_type="avg"), np.nansum(taps, axis=-1) / F32(4))
    inside = np.nanmean(taps.astype(np.float64), axis=-1).astype(F32)
    _equal(_run("Pooling", [_WHOLE], **attributes, pool_type="avg", count_include_pad=False), inside)
    whole = _WHOLE.max(axis=(2, 3), keepdims=True)
    _equal(_run("Pooling", [_WHOLE], pool_type="max", global_pool=True), whole)
    full = _run("Pooling", [_WHOLE], kernel=(2, 2), stride=(3, 4), pool_type="max", pooling_convention="full")
    assert full.shape == (2, 4, 3, 2)
    assert full[0, 0, 2, 1] == np.finfo(F32).min == full[1, 3, 2, 0], "windows behind the image"


def test_means_and_squeezed_axes() -> None:
    """Means of four integers; axes of size 1 are dropped by name, or all of them."""
    four = np.ascontiguousarray(_WHOLE[:, :, :, :4])
    _equal(_run("mean", [four], axis=(1, 3)), four.sum(axis=(1, 3)) / F32(16))
    kept = _run("mean", [four], axis=3, keepdims=True)
    _equal(kept, four.sum(axis=3, keepdims=True) / F32(4))
    _equal(_run("mean", [four[:, :, :4]]), four[:, :, :4].sum().reshape(1) / F32(128))
    _equal(_run("squeeze", [kept], axis=3), kept[..., 0])
    _equal(_run("squeeze", [kept[:1]]), kept[0, ..., 0])


def test_layers_of_integers() -> None:
    """Sums of products of small integers."""
    weights, bias = _RNG.integers(-5, 6, (6, 2, 3, 3)).astype(F32), _RNG.integers(-5, 6, 6).astype(F32)
    found = _run("Convolution", [_WHOLE, weights, bias], kernel=(3, 3), num_filter=6, num_group=2, pad=(1, 1))
    padded = np.pad(_WHOLE, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    halves = [np.einsum("nchwij,ocij->nohw", view[:, 2 * g : 2 * g + 2], weights[3 * g : 3 * g + 3]) for g in range(2)]
    _equal(found, (np.concatenate(halves, axis=1) + bias[:, None, None]).astype(F32))

    dense, bias = _RNG.integers(-5, 6, (7, 120)).astype(F32), _RNG.integers(-5, 6, 7).astype(F32)
    found = _run("FullyConnected", [_WHOLE, dense, bias], num_hidden=7)
    _equal(found, _WHOLE.reshape(2, -1) @ dense.T + bias)
    last = _RNG.integers(-5, 6, (3, 5)).astype(F32)
    found = _run("FullyConnected", [_WHOLE, last], num_hidden=3, no_bias=True, flatten=False)
    _equal(found, _WHOLE @ last.T)

    gamma, beta, mean = (_RNG.integers(-3, 4, 4).astype(F32) for _ in range(3))
    variance = np.full(4, 3, F32)
    found = _run("BatchNorm", [_WHOLE, gamma, beta, mean, variance], fix_gamma=False, eps=1.0)
    shape = (4, 1, 1)
    _equal(found, (_WHOLE - mean.reshape(shape)) / 2 * gamma.reshape(shape) + beta.reshape(shape))


def _chain(nodes: list[tuple[str, dict[str, str], int]], parameters: dict[str, np.ndarray]) -> bittrue.Model:
    """A symbol whose nodes read the one before them, and as many parameters as they say, in order."""
    found: list[dict[str, Any]] = [{"op": "null", "name": "data", "inputs": []}]
    names, before = iter(parameters), 0
    for number, (operator, attributes, count) in enumerate(nodes):
        inputs = [[before, 0, 0]]
        for _ in range(count):
            found.append({"op": "null", "name": next(names), "inputs": []})
            inputs.append([len(found) - 1, 0, 0])
        if operator.startswith("_contrib_") and operator != "_contrib_quantize_v2":
            inputs += [[before, 1, 0], [before, 2, 0]]
        found.append({"op": operator, "name": f"n{number}", "attrs": attributes, "inputs": inputs})
        before = len(found) - 1
    heads = [[before, 0, 0]]
    arguments = [i for i, node in enumerate(found) if node["op"] == "null"]
    content = json.dumps({"nodes": found, "arg_nodes": arguments, "heads": heads}).encode()
    return bittrue.load(content, params_file({f"arg:{name}": array for name, array in parameters.items()}))


def test_a_model_with_real_numbers_at_both_ends() -> None:
    """Steps whose bits are not the runtime's are marked, the others are not; fix_gamma needs no gamma."""
    parameters = {
        "w": _RNG.integers(-3, 4, (4, 4, 1, 1)).astype(F32),
        "gamma": np.full(4, 7, F32),
        "beta": np.zeros(4, F32),
        "mean": np.zeros(4, F32),
        "variance": np.ones(4, F32),
        "dense": _RNG.integers(-3, 4, (3, 24)).astype(F32),
    }
    model = _chain(
        [
            ("Convolution", {"kernel": "(1, 1)", "num_filter": "4", "no_bias": "True"}, 1),
            ("BatchNorm", {"eps": "0"}, 4),
            ("Activation", {"act_type": "relu"}, 0),
            ("_contrib_quantize_v2", {"out_type": "int8", "min_calib_range": "-64", "max_calib_range": "63.75"}, 0),
            ("_contrib_quantized_act", {"act_type": "relu"}, 0),
            ("_contrib_quantized_pooling", {"kernel": "(1, 5)", "pool_type": "max"}, 0),
            ("_contrib_dequantize", {}, 0),
            ("FullyConnected", {"num_hidden": "3", "no_bias": "True"}, 1),
            ("SoftmaxOutput", {}, 0),
        ],
        parameters,
    )
    session = model.prepare(shapes={"data": (2, 4, 6, 5)}, executor="reference")
    marked = {step.source for step in session.plan.steps if step.inexact}
    assert marked == {"Convolution", "FullyConnected", "SoftmaxOutput"}
    trace = session.trace({"data": _WHOLE})
    sums = np.einsum("nchw,oc->nohw", _WHOLE, parameters["w"][:, :, 0, 0])
    quantized = np.rint(np.maximum(sums, 0).astype(F32) * (F32(127.5) / F32(64))).clip(-128, 127).astype(np.int8)
    assert trace["n5_output"].tobytes() == quantized.max(axis=3, keepdims=True).tobytes()
    rows = trace["n8_output"]
    assert rows.shape == (2, 3)


@pytest.mark.parametrize(
    ("operator", "arrays", "attributes", "error", "text"),
    [
        ("Activation", [_X], {"act_type": "sine"}, UnsupportedError, "act_type"),
        ("BatchNorm", [_X, *[np.ones(3, F32)] * 4], {}, UnsupportedError, "gamma is no parameter"),
        ("BatchNorm", [_X, *[np.ones(4, F32)] * 4], {"axis": 3, "fix_gamma": False}, UnsupportedError, "axis 1"),
        ("Dropout", [_X], {"mode": "always"}, UnsupportedError, "random"),
        ("LeakyReLU", [_X, np.ones(3, F32)], {"act_type": "prelu"}, UnsupportedError, "prelu"),
        ("Pooling", [_X], {"kernel": (2, 2), "pool_type": "lp"}, UnsupportedError, "pool_type"),
        ("Pooling", [_X], {"kernel": (3, 3), "pool_type": "max"}, InvalidModelError, "does not fit"),
        ("Pooling", [_X], {"pool_type": "max"}, InvalidModelError, "kernel"),
        ("Reshape", [_X], {"shape": (-3, 0)}, UnsupportedError, "dimensions"),
        ("SoftmaxOutput", [_X[0], np.zeros((3, 2), F32)], {}, UnsupportedError, "of this rank"),
        ("softmax", [_X], {"temperature": 2.0}, UnsupportedError, "temperature"),
    ],
)
def test_what_is_refused(
    operator: str, arrays: list[np.ndarray], attributes: dict[str, Any], error: type, text: str
) -> None:
    with pytest.raises(error, match=text):
        _run(operator, arrays, **attributes)
