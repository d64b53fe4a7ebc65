"""Random calls of MXNet's quantized operators but layers, and what they give, in plain Python on fractions.

A call is (operator, operands by name, attributes). The oracle shares nothing with the rules: numbers are fractions,
rounded to binary32 after every operation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from support.rounding import f32

_TYPES = {"float32": 0, "float64": 1, "uint8": 3, "int32": 4, "int8": 5, "int64": 6}
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
_HALF = {"int8": Fraction(255, 2), "uint8": Fraction(511, 2)}


@dataclass
class Call:
    """One operator with its operands."""

    operator: str
    operands: dict[str, np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)


def symbol(call: Call, outputs: int) -> bytes:
    """A symbol JSON of the call; all operands are inputs."""
    nodes: list[dict[str, Any]] = []
    for name, array in call.operands.items():
        hints = {"__dtype__": str(_TYPES[array.dtype.name]), "__shape__": str(tuple(array.shape))}
        nodes.append({"op": "null", "name": name, "attrs": hints, "inputs": []})
    attributes = {
        name: repr(value) if isinstance(value, float) else str(value) for name, value in call.attributes.items()
    }
    inputs = [[i, 0, 0] for i in range(len(nodes))]
    nodes.append({"op": call.operator, "name": "node", "attrs": attributes, "inputs": inputs})
    heads = [[len(inputs), i, 0] for i in range(outputs)]
    return json.dumps({"nodes": nodes, "arg_nodes": list(range(len(inputs))), "heads": heads}).encode()


# -- binary32 on fractions ---------------------------------------------------------------------------------------------
def real(x: Any) -> Fraction:
    """A binary32 number."""
    return Fraction(float(np.float32(x)))


def saturate(x: Fraction, dtype: str) -> int:
    """Nearest, ties to even, within the type."""
    low, high = _LIMITS[dtype]
    return min(max(round(x), low), high)


def span(operands: Mapping[str, np.ndarray], name: str) -> Fraction:
    """The larger magnitude of both ends of an operand's range."""
    low, high = f"min_{name}", f"max_{name}"
    if low not in operands:
        low, high = f"{name}_min", f"{name}_max"
    return max(abs(real(operands[low][0])), abs(real(operands[high][0])))


# -- oracles -----------------------------------------------------------------------------------------------------------
def pooling(call: Call) -> np.ndarray:
    """Windows one by one."""
    x, attributes = call.operands["data"], call.attributes
    sizes, count = x.shape[2:], x.ndim - 2
    kernel, stride = attributes["kernel"], attributes.get("stride", (1,) * count)
    pad = attributes.get("pad", (0,) * count)
    average = attributes["pool_type"] == "avg"
    inside_only = attributes.get("count_include_pad", True) is False
    if attributes.get("global_pool"):
        kernel, stride, pad, outs = sizes, (1,) * count, (0,) * count, (1,) * count
    else:
        rooms = [e + 2 * p - k for e, p, k in zip(sizes, pad, kernel, strict=True)]
        up = attributes.get("pooling_convention") == "full"
        outs = tuple(1 + (-(-r // s) if up else r // s) for r, s in zip(rooms, stride, strict=True))
    result = np.zeros((*x.shape[:2], *outs), x.dtype)
    low = _LIMITS[x.dtype.name][0]
    for at in np.ndindex(*result.shape):
        places = product(
            *(range(o * s - p, o * s - p + k) for o, s, p, k in zip(at[2:], stride, pad, kernel, strict=True))
        )
        taps = [
            int(x[(*at[:2], *place)]) for place in places if all(0 <= i < e for i, e in zip(place, sizes, strict=True))
        ]
        size = len(taps) if inside_only else math.prod(kernel)
        quotient = f32(f32(Fraction(sum(taps))) / size) if average else None
        result[at] = max(taps, default=low) if quotient is None else saturate(quotient, x.dtype.name)
    return result


def concat(call: Call) -> np.ndarray:
    """Every part moved to the joined range."""
    names = [name for name in call.operands if name.startswith("arg") and "_" not in name]
    parts = [call.operands[name] for name in names]
    dtype = "int8" if any(part.dtype == np.int8 for part in parts) else "uint8"
    lows = [real(call.operands[f"{name}_min"][0]) for name in names]
    highs = [real(call.operands[f"{name}_max"][0]) for name in names]
    joined = max(abs(min(0, *lows)), abs(max(0, *highs)))
    out, moved = f32(_HALF[dtype] / joined), []
    for name, part in zip(names, parts, strict=True):
        own = f32(_HALF[part.dtype.name] / span(call.operands, name))
        table = {q: q if own == out else saturate(f32(q * f32(out / own)), dtype) for q in range(-128, 256)}
        moved.append(np.array([table[int(q)] for q in part.reshape(-1)], dtype).reshape(part.shape))
    return np.concatenate(moved, axis=call.attributes.get("dim", 1))


def add(call: Call) -> np.ndarray:
    """Element by element."""
    a, b = call.operands["lhs"], call.operands["rhs"]
    spans, types = [span(call.operands, name) for name in ("lhs", "rhs")], [a.dtype.name, b.dtype.name]
    calibrated = "min_calib_range" in call.attributes
    output = "int32" if not calibrated else types[0] if types[0] == types[1] else "int8"
    if calibrated:
        wanted = max(abs(real(call.attributes[f"{end}_calib_range"])) for end in ("min", "max"))
        scale = f32(_HALF[output] / wanted)
        factors = [f32(scale / f32(_HALF[t] / s)) for t, s in zip(types, spans, strict=True)]
    else:
        total = f32(spans[0] + spans[1])
        factors = [f32(f32(s * 2**31) / f32(total * _HALF[t])) for t, s in zip(types, spans, strict=True)]
    tables = []
    for dtype, factor in zip(types, factors, strict=True):
        narrows = types[0] != types[1] and dtype == "uint8"
        table = {q: f32(q * factor) for q in range(-128, 256)}
        tables.append({q: Fraction(saturate(v, "int8")) for q, v in table.items()} if narrows else table)
    found = []
    for p, q in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True):
        value = f32(tables[0][p] + tables[1][q])
        found.append(saturate(value, output) if calibrated else min(max(round(value), -(2**31)), 2147483520))
    return np.array(found, output).reshape(a.shape)


def multiply(call: Call) -> np.ndarray:
    """Element by element."""
    a, b = call.operands["lhs"], call.operands["rhs"]
    scales = [f32(_HALF["int8"] / span(call.operands, name)) for name in ("lhs", "rhs")]
    products = [p * q for p, q in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)]
    if call.attributes.get("enable_float_output"):
        factor = f32(Fraction(1 / float(scales[0]) / float(scales[1])))
        return np.array([float(f32(p * factor)) for p in products], np.float32).reshape(a.shape)
    if "min_calib_range" not in call.attributes:
        return np.array(products, np.int32).reshape(a.shape)
    wanted = max(abs(real(call.attributes[f"{end}_calib_range"])) for end in ("min", "max"))
    factor = f32(f32(f32(_HALF["int8"] / wanted) / scales[0]) / scales[1])
    found = []
    for p in products:
        whole = int(f32(p * factor))
        bits = (whole if abs(whole) < 2**31 else 0) % 256
        found.append(bits - 256 if bits > 127 else bits)
    return np.array(found, np.int8).reshape(a.shape)


def batch_norm(call: Call) -> np.ndarray:
    """Channel by channel."""
    x, names = call.operands["data"], ("gamma", "beta", "moving_mean", "moving_var")
    given, wanted = (
        span(call.operands, "data"),
        max(abs(real(call.attributes[f"{end}_calib_range"])) for end in ("min", "max")),
    )
    epsilon = float(call.attributes.get("eps", 1e-3))
    root = Fraction(float(np.sqrt(np.float32(1) + np.float32(epsilon))))
    result = np.zeros(x.shape, np.int8)
    for channel in range(x.shape[1]):
        gamma, beta, mean, variance = (real(call.operands[name][channel]) for name in names)
        inverse = f32(Fraction(1 / math.sqrt(float(variance) + epsilon)))
        weight = f32(f32(f32(f32(gamma * inverse) * given) / wanted) / root)
        moved = f32(f32(f32(beta - f32(f32(mean * gamma) * inverse)) * _HALF["int8"]) / wanted)
        table = {}
        for q in range(-128, 256):
            code = saturate(f32(q * f32(_HALF["int8"] / _HALF["uint8"])), "int8") if x.dtype == np.uint8 else q
            table[q] = saturate(f32(f32(code * weight) + moved), "int8")
        plane = x[:, channel]
        result[:, channel] = np.array([table[int(q)] for q in plane.reshape(-1)], np.int8).reshape(plane.shape)
    return result


def act(call: Call) -> np.ndarray:
    """What is below 0 becomes 0."""
    return np.array([max(0, q) for q in call.operands["data"].reshape(-1).tolist()], np.int8).reshape(
        call.operands["data"].shape
    )


def flatten(call: Call) -> np.ndarray:
    """The same elements."""
    x = call.operands["data"]
    return np.array(x.reshape(-1).tolist(), x.dtype).reshape(x.shape[0], math.prod(x.shape[1:]))


def embedding(call: Call) -> np.ndarray:
    """Rows; positions lose their fraction and stay within the table, unless 64 bits cannot hold them: those are 0."""
    table, rows = call.operands["weight"], []
    for position in call.operands["data"].reshape(-1).tolist():
        whole = int(position) if math.isfinite(position) and abs(position) < 2**63 else 0
        rows.append(table[min(max(whole, 0), len(table) - 1)].tolist())
    return np.array(rows, np.int8).reshape(*call.operands["data"].shape, table.shape[1])


def joined_ends(call: Call) -> list[float]:
    names = [name for name in call.operands if name.startswith("arg") and "_" not in name]
    low = min(0.0, *(float(call.operands[f"{name}_min"][0]) for name in names))
    return [low, max(0.0, *(float(call.operands[f"{name}_max"][0]) for name in names))]


def ends(call: Call) -> list[float]:
    """The range of the result."""
    if call.operator == "_contrib_quantized_concat":
        return joined_ends(call)
    if call.attributes.get("enable_float_output"):
        return []
    if "min_calib_range" in call.attributes:
        return [float(np.float32(call.attributes[f"{end}_calib_range"])) for end in ("min", "max")]
    if call.operator == "_contrib_quantized_elemwise_add":
        total = float(f32(span(call.operands, "lhs") + span(call.operands, "rhs")))
        return [-total, total]
    if call.operator == "_contrib_quantized_elemwise_mul":
        factors = [f32(span(call.operands, name) / 127) for name in ("lhs", "rhs")]
        largest = float(f32(f32(factors[0] * factors[1]) * 2**31))
        return [-largest, largest]
    return [float(array[0]) for name, array in call.operands.items() if name[:4] in ("min_", "max_")]


ORACLES = {
    "_contrib_quantized_act": act,
    "_contrib_quantized_batch_norm": batch_norm,
    "_contrib_quantized_concat": concat,
    "_contrib_quantized_elemwise_add": add,
    "_contrib_quantized_elemwise_mul": multiply,
    "_contrib_quantized_embedding": embedding,
    "_contrib_quantized_flatten": flatten,
    "_contrib_quantized_pooling": pooling,
}


def expected(call: Call) -> list[np.ndarray]:
    """The result and the ends of its range."""
    return [ORACLES[call.operator](call), *(np.array([end], np.float32) for end in ends(call))]


# -- random calls ------------------------------------------------------------------------------------------------------
def _quantized(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> np.ndarray:
    low, high = _LIMITS[dtype]
    x = rng.integers(low, high + 1, shape).astype(dtype)
    extremes = rng.random(shape) < 0.05
    return np.where(extremes, rng.choice([low, high], shape), x).astype(dtype)


def _range(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    top = np.float32(rng.choice([1.0, 0.5, 2.0, 127.5, rng.uniform(0.01, 20), 2.0 ** rng.uniform(-15, 15)]))
    low = np.float32(rng.choice([-top, 0.0, -rng.uniform(0, 1) * top, -2 * top]))
    return np.array([low], np.float32), np.array([top], np.float32)


def _calibration(rng: np.random.Generator, attributes: dict[str, Any], scale: float = 1.0) -> None:
    low, high = _range(rng)
    attributes["min_calib_range"] = float(np.float32(low[0] * np.float32(scale)))
    attributes["max_calib_range"] = float(np.float32(high[0] * np.float32(scale)))


def _shape(rng: np.random.Generator, rank: int, most: int = 6) -> tuple[int, ...]:
    return tuple(int(e) for e in rng.integers(1, most, rank))


def random_call(operator: str, rng: np.random.Generator) -> Call:
    """A call that the runtime accepts."""
    name = operator.removeprefix("_contrib_quantized_")
    dtype = str(rng.choice(["int8", "uint8"]))
    operands: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}
    if name == "pooling":
        return _pooling_call(rng, dtype)
    if name in ("act", "flatten"):
        operands["data"] = _quantized(rng, "int8" if name == "act" else dtype, _shape(rng, int(rng.integers(2, 5))))
        operands["min_data"], operands["max_data"] = _range(rng)
        if name == "act":
            attributes["act_type"] = "relu"
    elif name == "embedding":
        rows, width = _shape(rng, 2, 9)
        positions = rng.uniform(-2, rows + 2, _shape(rng, int(rng.integers(1, 4)))).astype(np.float32)
        kind = rng.choice(["float32", "float64", "int32", "int8", "uint8", "int64"])
        operands["data"] = np.maximum(positions, 0).astype(kind) if kind == "uint8" else positions.astype(kind)
        operands["weight"] = _quantized(rng, "int8", (rows, width))
        operands["min_weight"], operands["max_weight"] = _range(rng)
        attributes = {"input_dim": rows, "output_dim": width}
    elif name == "concat":
        count, rank = int(rng.integers(1, 5)), int(rng.integers(2, 5))
        axis, shape = int(rng.integers(0, rank)), list(_shape(rng, rank))
        mixed, shared = rng.random() < 0.5, _range(rng)
        for number in range(count):
            shape[axis] = int(rng.integers(1, 5))
            own = str(rng.choice(["int8", "uint8"])) if mixed else dtype
            operands[f"arg{number}"] = _quantized(rng, own, shape)
        for number in range(count):
            low, high = shared if rng.random() < 0.3 else _range(rng)
            operands[f"arg{number}_min"], operands[f"arg{number}_max"] = low, high
        attributes = {"num_args": count, "dim": axis}
    elif name in ("elemwise_add", "elemwise_mul"):
        shape = _shape(rng, int(rng.integers(1, 5)))
        other = dtype if rng.random() < 0.5 else str(rng.choice(["int8", "uint8"]))
        types = ("int8", "int8") if name == "elemwise_mul" else (dtype, other)
        operands["lhs"], operands["rhs"] = (_quantized(rng, one, shape) for one in types)
        operands["lhs_min"], operands["lhs_max"] = _range(rng)
        operands["rhs_min"], operands["rhs_max"] = _range(rng)
        if rng.random() < 0.6:
            spans = [float(span(operands, one)) for one in ("lhs", "rhs")]
            _calibration(rng, attributes, sum(spans) if name == "elemwise_add" else spans[0] * spans[1])
        if name == "elemwise_mul" and rng.random() < 0.3:
            attributes["enable_float_output"] = True
    else:
        shape = _shape(rng, int(rng.integers(2, 5)))
        operands["data"] = _quantized(rng, dtype, shape)
        for one in ("gamma", "beta", "moving_mean"):
            operands[one] = rng.normal(0, 1, shape[1]).astype(np.float32)
        operands["moving_var"] = rng.uniform(0.01, 3, shape[1]).astype(np.float32)
        operands["min_data"], operands["max_data"] = _range(rng)
        _calibration(rng, attributes, float(span(operands, "data")))
        attributes["eps"] = float(rng.choice([1e-3, 1e-5, 2e-5, 0.1]))
        attributes["fix_gamma"] = bool(rng.random() < 0.5)
    return Call(operator, operands, attributes)


def _pooling_call(rng: np.random.Generator, dtype: str) -> Call:
    count = 2 if rng.random() < 0.85 else 3
    while True:
        sizes = _shape(rng, count, 10 if count == 2 else 6)
        kernel, stride = _shape(rng, count, 5), _shape(rng, count, 5)
        pad = tuple(int(rng.integers(0, k)) for k in kernel)
        rooms = [e + 2 * p - k for e, p, k in zip(sizes, pad, kernel, strict=True)]
        if min(rooms) >= 0:
            break
    attributes: dict[str, Any] = {"kernel": kernel, "pool_type": str(rng.choice(["max", "avg"]))}
    if rng.random() < 0.15:
        attributes |= {"global_pool": True, "pad": pad}
    else:
        attributes |= {"stride": stride, "pad": pad}
        attributes["pooling_convention"] = str(rng.choice(["valid", "full"]))
        # Averages of nothing are refused.
        starts = [-(-r // s) * s - p for r, s, p in zip(rooms, stride, pad, strict=True)]
        empty = attributes["pooling_convention"] == "full" and any(
            start >= e for start, e in zip(starts, sizes, strict=True)
        )
        if attributes["pool_type"] == "avg" and not empty and rng.random() < 0.5:
            attributes["count_include_pad"] = False
    x = _quantized(rng, dtype, (int(rng.integers(1, 3)), int(rng.integers(1, 5)), *sizes))
    low, high = _range(rng)
    return Call("_contrib_quantized_pooling", {"data": x, "min_data": low, "max_data": high}, attributes)
