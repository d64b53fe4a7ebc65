"""Operators whose kernels take many elements at a time: rows longer than those of random models, against ONNX Runtime.

Stems: abs acos asin atan exp log logistic tanh local_response_normalization max_pool pad power reduce_max reduce_min
strided_slice softmax log_softmax space_to_depth topk_v2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from support.onnx_models import check, natively, single

F32 = np.dtype(np.float32)


def _both(operator: str, inputs: dict[str, np.ndarray | None], kinds: list[Any], **attributes: Any) -> None:
    """The runtime's bytes, by kernels of every instruction set; operands that are named in capitals are constants."""
    constants = [name for name in inputs if name.isupper()]
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in kinds]
    content, feeds = single(operator, inputs, types, attributes, opset=18, constants=constants)
    assert check(content, feeds) == "equal"
    natively(content, feeds)


def _numbers(shape: tuple[int, ...], *special: float) -> np.ndarray:
    rng = np.random.default_rng(len(special) + sum(shape))
    x = rng.standard_normal(shape).astype(np.float32)
    chosen = rng.random(shape) < (0.1 if special else 0)
    return np.where(chosen, rng.choice(np.float32(special or (0,)), shape), x)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extreme_integers(operator: str, dtype: type[np.generic]) -> None:
    info = np.iinfo(dtype)  # type: ignore[type-var]
    x = np.random.default_rng(1).integers(info.min, info.max, (7, 203), dtype, endpoint=True)
    for axes in ([1], [0], [0, 1]):
        _both(operator, {"x": x, "AXES": np.array(axes)}, [dtype])


@pytest.mark.parametrize("special", [(), (0.0, -0.0), (-np.inf,), (np.nan, np.inf)])
def test_extremes_of_planes(special: tuple[float, ...]) -> None:
    x = _numbers((2, 3, 9, 13), *special)
    _both("GlobalMaxPool", {"x": x}, [F32])
    _both("GlobalMaxPool", {"x": np.where(x > 0, np.float32(-0.0), x)}, [F32])


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_best_elements(dtype: type[np.generic], largest: int) -> None:
    special = (0.0, -0.0, np.inf, -np.inf) if np.issubdtype(dtype, np.floating) else ()
    x = (_numbers((6, 3, 301), *special) * 9).astype(dtype)
    x[0, :, 40:90] = x[0, 0, 7]
    for axis, count in ((2, 1), (2, 20), (0, 2), (1, 3)):
        operands = {"x": x, "COUNT": np.array([count])}
        _both("TopK", operands, [dtype, np.int64], axis=axis, largest=largest)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_borders(mode: str, dtype: type[np.generic]) -> None:
    x = np.arange(3 * 5 * 41).reshape(3, 5, 41).astype(dtype)
    for pads in ([0, 0, 3, 0, 0, 2], [1, 2, 0, 0, 1, 5], [0, 0, -3, 0, 0, 4], [0, 1, 0, 0, 1, 0]):
        _both("Pad", {"x": x, "PADS": np.array(pads)}, [dtype], mode=mode)


@pytest.mark.parametrize("operator", ["Acos", "Asin", "Atan"])
def test_inverse_circle_functions(operator: str) -> None:
    x = _numbers((3, 333), 0.0, -0.0, 1.0, -1.0, 0.5, 1.0000001, np.inf, -np.inf, np.nan, -np.nan, 1e-40)
    _both(operator, {"x": x}, [F32])


@pytest.mark.parametrize("special", [(), (0.0, -0.0, -1.0, 1.0, np.inf, -np.inf, np.nan, 1e-42, 3e38)])
def test_powers(special: tuple[float, ...]) -> None:
    x, y = np.abs(_numbers((5, 700), *special[:1])), _numbers((5, 700), *special) * np.float32(20)
    _both("Pow", {"x": x, "y": y}, [F32])
    _both("Pow", {"x": y, "y": x}, [F32])
    for exponent in (-0.5, 0.3, 2.5):
        _both("Pow", {"x": x, "Y": np.float32([exponent])}, [F32])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_absolute_integers(dtype: type[np.generic]) -> None:
    info = np.iinfo(dtype)  # type: ignore[type-var]
    _both("Abs", {"x": np.array([info.min, info.max, -1, 0, 5] * 9, dtype)}, [dtype])


@pytest.mark.parametrize("operator", ["Exp", "Log", "Tanh", "Sigmoid", "Softmax", "LogSoftmax"])
def test_functions_of_doubles(operator: str) -> None:
    for shape in ((3, 5), (1, 9), (1, 2), (4, 1), (3, 1301)):
        x = _numbers(shape).astype(np.float64) * np.exp(_numbers(shape))
        x.reshape(-1)[::7] = -np.inf if operator.endswith("max") and shape[1] > 1 else 700.0
        _both(operator, {"x": np.abs(x) if operator == "Log" else x}, [np.float64])


@pytest.mark.parametrize("size", [1, 3, 5, 41])
@pytest.mark.parametrize("beta", [0.75, 0.5, 1.0, 1.3])
def test_neighbouring_channels(size: int, beta: float) -> None:
    for shape in ((2, 7, 5, 3), (1, 3, 1, 1), (1, 33, 40, 29)):
        x = _numbers(shape, 1e3)
        _both("LRN", {"x": x}, [F32], size=size, beta=beta, alpha=0.01, bias=0.7)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_every_second_element(dtype: type[np.generic]) -> None:
    """Slices of each length up to three vectors, and images whose pixels become channels."""
    for size in range(1, 26):
        x = np.arange(3 * size).reshape(3, size).astype(dtype)
        for first in range(min(2, size)):
            numbers = {"FIRST": first, "LAST": size, "AXES": 1, "STEP": 2}
            _both("Slice", {"x": x, **{name: np.array([n]) for name, n in numbers.items()}}, [dtype])
    if dtype is np.float32:
        _both("SpaceToDepth", {"x": _numbers((1, 3, 8, 28))}, [dtype], blocksize=2)
