"""A small network and a device in plain NumPy that runs it, layer by layer, with a fault where a test plants one.

Convolution (relu, stride 2), depthwise convolution, sum of both, average pool, fully-connected layer. Tensors are
called x, c, d, s, p, y. The device (faulty_device) knows nothing of bittrue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from support import faulty_device as device
from support.build import T, chain

ZEROS = {"x": -3, "c": -128, "d": 7, "s": -20, "p": -20, "y": 11}
SCALES = {"x": 0.043, "c": 0.061, "d": 0.083, "s": 0.11, "p": 0.11, "y": 0.23}
Array = np.ndarray
Fault = Callable[..., Array]


def _same(size: int, taps: int, stride: int) -> tuple[int, int, int]:
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + taps - size)
    return out, total // 2, total - total // 2


class Network:
    """Random weights; `height` x `width` images of `channels`, `filters` features."""

    def __init__(self, height: int = 9, width: int = 8, channels: int = 3, filters: int = 6, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.shape = (1, height, width, channels)
        rows, top, bottom = _same(height, 3, 2)
        columns, left, right = _same(width, 3, 2)
        self.inner = (1, rows, columns, filters)

        def weights(shape: tuple[int, ...]) -> Array:
            return rng.integers(-127, 128, shape).astype(np.int8)

        def bias(count: int, reach: int) -> Array:
            return rng.integers(-reach, reach, count).astype(np.int32)

        def scales(count: int) -> Array:
            return rng.uniform(0.004, 0.012, count).astype(np.float32)

        self.c = device.Layer(
            "conv",
            weights((filters, 3, 3, channels)),
            bias(filters, 2500),
            SCALES["x"],
            ZEROS["x"],
            scales(filters),
            SCALES["c"],
            ZEROS["c"],
            activation="relu",
            stride=(2, 2),
            pads=(top, bottom, left, right),
            out_size=(rows, columns),
        )
        self.d = device.Layer(
            "depthwise",
            weights((1, 3, 3, filters)),
            bias(filters, 1500),
            SCALES["c"],
            ZEROS["c"],
            scales(filters),
            SCALES["d"],
            ZEROS["d"],
            pads=(1, 1, 1, 1),
            out_size=(rows, columns),
        )
        self.y = device.Layer(
            "dense",
            weights((10, rows * columns * filters)),
            bias(10, 1500),
            SCALES["p"],
            ZEROS["p"],
            scales(1).repeat(10),
            SCALES["y"],
            ZEROS["y"],
        )

    def image(self, seed: int = 101) -> Array:
        return np.random.default_rng(seed).integers(-128, 128, self.shape).astype(np.int8)

    def model(self) -> bytes:
        def tensor(name: str, shape: tuple[int, ...]) -> T:
            return T("s8", shape, SCALES[name], ZEROS[name], name=name)

        def operands(layer: device.Layer, axis: int, name: str) -> tuple[T, T]:
            steps = layer.weight_scales if layer.kind != "dense" else layer.weight_scales[:1]
            zeros = [0] * len(steps)
            products = (steps * np.float32(layer.in_scale)).tolist()
            w = T("s8", layer.weights.shape, steps.tolist(), zeros, axis=axis, data=layer.weights, name=f"{name}w")
            b = T("s32", layer.bias.shape, products, zeros, data=layer.bias, name=f"{name}b")
            return w, b

        x, y = tensor("x", self.shape), tensor("y", (1, 10))
        c, d, s, p = (tensor(name, self.inner) for name in "cdsp")
        window = {"padding": 0, "dilationHFactor": 1, "dilationWFactor": 1}
        none = {"fusedActivationFunction": 0}
        conv = {**window, "strideH": 2, "strideW": 2, "fusedActivationFunction": 1}
        depthwise = {**window, "strideH": 1, "strideW": 1, "depthMultiplier": 1, **none}
        pool = {"padding": 0, "strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3, **none}
        nodes = [
            ("CONV_2D", ("Conv2DOptions", conv), [x, *operands(self.c, 0, "c")], [c], 3),
            ("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", depthwise), [c, *operands(self.d, 3, "d")], [d], 3),
            ("ADD", ("AddOptions", none), [c, d], [s], 2),
            ("AVERAGE_POOL_2D", ("Pool2DOptions", pool), [s], [p], 2),
            ("FULLY_CONNECTED", ("FullyConnectedOptions", none), [p, *operands(self.y, 0, "y")], [y], 4),
        ]
        return chain(nodes)

    def run(self, x: Array, at: str = "", fault: Fault | None = None) -> dict[str, Array]:
        """Every tensor; the one called `at` comes from `fault`, and those behind it follow from that.

        A fault takes (layer, input) at c, d and y, (c, d, scales, zero points) at s, (s, keywords of `pool`) at p.
        """

        def made(name: str, usual: Fault, *arguments: Any) -> Array:
            return (fault or usual)(*arguments) if name == at else usual(*arguments)

        def dense(layer: device.Layer, quantized: Array) -> Array:
            return device.run(layer, quantized, rounding=device.one_step)

        found = {"x": x, "c": made("c", device.run, self.c, x)}
        found["d"] = made("d", device.run, self.d, found["c"])
        scales, zeros = (tuple(table[name] for name in "cds") for table in (SCALES, ZEROS))
        found["s"] = made("s", device.add, found["c"], found["d"], scales, zeros)
        ways = {"size": 3, "stride": 1, "pads": (1, 1, 1, 1), "out": self.inner[1:3], "mode": "average"}
        found["p"] = made("p", lambda quantized, keywords: device.pool(quantized, **keywords), found["s"], ways)
        found["y"] = made("y", dense, self.y, found["p"])
        return found


def wrong(**fields: Any) -> Fault:
    """A layer with other parameters: values, or functions of the right ones."""

    def run(layer: device.Layer, quantized: Array) -> Array:
        changed = {k: v(getattr(layer, k)) if callable(v) else v for k, v in fields.items()}
        rounding = device.one_step if layer.kind == "dense" else device.two_step
        return device.run(replace(layer, **changed), quantized, rounding=rounding)

    return run


def way(**ways: Any) -> Fault:
    """A layer computed in another way."""
    return lambda layer, quantized: device.run(layer, quantized, **ways)


def dump(tensors: Mapping[str, Array], folder: Path, types: Mapping[str, str] | None = None) -> Path:
    """A trace of raw files, as a device leaves it; `types` are what the index claims."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, value in tensors.items():
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(value).tobytes())
        entry = {"name": name, "file": f"{name}.bin", "dtype": (types or {}).get(name, str(value.dtype))}
        entries.append({**entry, "shape": list(value.shape), "scale": SCALES[name], "zero_point": ZEROS[name]})
    (folder / "trace.json").write_text(json.dumps({"tensors": entries, "inputs": ["x"], "title": "a device"}))
    return folder
