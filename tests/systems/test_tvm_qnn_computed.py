"""Parameters that runs compute: the bytes of the same call with constants, in both executors.

Stems: quantize, dequantize, add, sub, mul, concatenation, conv_transpose, leaky_relu, softmax, average_pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bittrue import qnn

F32 = np.float32
CHOICES = tuple({"rounding": r, "compute_dtype": c} for r in ("UPWARD", "TONEAREST") for c in ("int64", "float32"))
Call = tuple[Callable[..., Any], dict[str, Any], dict[str, Any], dict[str, Any]]


def codes(random: np.random.Generator, *shape: int, dtype: str = "int8") -> np.ndarray:
    ends = np.iinfo(dtype)
    return random.integers(ends.min, ends.max, shape, dtype, endpoint=True)


def point(random: np.random.Generator, *size: int) -> np.ndarray:
    return np.asarray(random.integers(-40, 40, size), np.int32)


def scale(random: np.random.Generator, *size: int) -> np.ndarray:
    return np.asarray(random.choice([0.25, 0.5, 0.7, 0.3, 0.011], size), F32)


def of_two(function: Callable[..., Any], several: bool) -> Callable[[np.random.Generator], Call]:
    def drawn(r: np.random.Generator) -> Call:
        size = (3,) if several else ()
        data = {"lhs": codes(r, 2, 3), "rhs": codes(r, 2, 3)}
        given = {f"{p}_scale": scale(r, *size) for p in ("lhs", "rhs")} | {"output_scale": scale(r)}
        given |= {f"{p}_zero_point": point(r) for p in ("lhs", "output")} | {"rhs_zero_point": point(r, *size)}
        return function, {"lhs_axis": 1, "rhs_axis": 1}, data, given

    return drawn


def requantized(r: np.random.Generator) -> Call:
    source, target = str(r.choice(["int8", "uint8", "int16", "int32"])), str(r.choice(["int8", "uint8", "int16"]))
    sizes = [(4,) if r.random() < 0.5 else () for _ in "sz"]
    given = {"input_scale": scale(r, *sizes[0]), "input_zero_point": point(r, *sizes[1])}
    given |= {"output_scale": scale(r), "output_zero_point": point(r)}
    return qnn.requantize, {"axis": 1, "out_dtype": target}, {"data": codes(r, 3, 4, 2, dtype=source)}, given


def joined(r: np.random.Generator) -> Call:
    dtype, count = str(r.choice(["int8", "uint8", "int16", "uint16"])), 2
    data = {"data": [codes(r, 2, 3, dtype=dtype) for _ in range(count)]}
    given: dict[str, Any] = {"input_scales": [scale(r) for _ in range(count)], "output_scale": scale(r)}
    given |= {"input_zero_points": [point(r) for _ in range(count)], "output_zero_point": point(r)}
    return qnn.concatenate, {"axis": 1}, data, given


def transposed(r: np.random.Generator) -> Call:
    given = {"input_zero_point": point(r), "kernel_zero_point": point(r)}
    data = {"data": codes(r, 1, 4, 3, 2), "weight": codes(r, 4, 3, 2, 2)}
    fixed = {"groups": 2, "strides": (2, 1), "input_scale": 0.5, "kernel_scale": 0.5}
    return qnn.conv2d_transpose, fixed, data, given


def averaged(r: np.random.Generator) -> Call:
    given = {"input_scale": scale(r), "output_scale": scale(r)}
    given |= {"input_zero_point": point(r), "output_zero_point": point(r)}
    fixed = {"pool_size": (2, 2), "strides": (1, 1), "padding": (1, 0), "dilation": (1, 1)}
    return qnn.avg_pool2d, fixed, {"data": codes(r, 1, 3, 3, 2)}, given


def bent(r: np.random.Generator) -> Call:
    given = {"input_scale": scale(r), "output_scale": scale(r)}
    given |= {"input_zero_point": point(r), "output_zero_point": point(r)}
    return qnn.leaky_relu, {"alpha": 0.3}, {"x": codes(r, 5, 7)}, given


def shares(r: np.random.Generator) -> Call:
    given = {"scale": scale(r), "zero_point": point(r), "output_scale": F32(1 / 256), "output_zero_point": point(r)}
    return qnn.softmax, {}, {"x": codes(r, 2, 5)}, given


def simulated(function: Callable[..., Any], kind: str) -> Callable[[np.random.Generator], Call]:
    def drawn(r: np.random.Generator) -> Call:
        size = (3,) if r.random() < 0.5 else ()
        given = {f"{kind}_scale": scale(r, *size), f"{kind}_zero_point": point(r, *size)}
        return function, {"axis": 1}, {"data": np.asarray(r.uniform(-40, 40, (2, 3)), F32)}, given

    return drawn


CASES = {
    **{f.__name__: of_two(f, False) for f in (qnn.add, qnn.subtract, qnn.mul)},
    **{f"{f.__name__} per channel": of_two(f, True) for f in (qnn.add, qnn.subtract, qnn.mul)},
    "requantize": requantized,
    "concatenate": joined,
    "conv2d_transpose": transposed,
    "avg_pool2d": averaged,
    "leaky_relu": bent,
    "softmax": shares,
    "simulated_quantize": simulated(qnn.simulated_quantize, "output"),
    "simulated_dequantize": simulated(qnn.simulated_dequantize, "input"),
}


def symbolic(values: dict[str, Any], feeds: dict[str, np.ndarray]) -> dict[str, Any]:
    """Variables in place of arrays; `feeds` gets what they hold."""

    def one(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [one(f"{name}_{i}", entry) for i, entry in enumerate(value)]
        feeds[name] = value
        return qnn.var(name, value.shape, value.dtype)

    return {name: one(name, value) for name, value in values.items()}


@pytest.mark.parametrize("name", CASES)
def test_computed_parameters_give_the_bytes_of_constants(name: str, request: pytest.FixtureRequest) -> None:
    random = np.random.default_rng([request.config.option.seed, list(CASES).index(name)])
    for choice in CHOICES:
        function, fixed, data, given = CASES[name](random)
        wanted = "simulated" if name.startswith("simulated") else "point"
        late = [key for key in given if wanted in key or wanted == "simulated"]
        some = [key for key in late if random.random() < 0.6] or late[-1:]
        feeds: dict[str, np.ndarray] = {}
        with qnn.requantize_config(**choice):
            tensors = symbolic(data, feeds)
            known = qnn.model(function(**tensors, **fixed, **given))
            (expected,) = known.prepare(executor="reference").run(feeds).values()
            computed = symbolic({key: given[key] for key in some}, feeds)
            model = qnn.model(function(**tensors, **fixed, **{**given, **computed}))
        for executor in ("reference", "native"):
            (found,) = model.prepare(executor=executor).run(feeds).values()
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes(), (choice, some, executor)
