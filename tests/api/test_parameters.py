"""choose_parameters against ONNX Runtime's quantization tool, records of TFLite's converter, and PyTorch's formula."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest

import bittrue
from support.narrow_oracle import to_precision
from support.shared import REPOSITORY

F32 = np.float32


def ranges(seed: int, count: int) -> list[tuple[np.float32, np.float32]]:
    """Ranges of all sizes, some on one side of 0, empty, tiny, or with zero points that are ties."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        low, high = sorted(F32(rng.standard_normal(2) * np.exp2(rng.uniform(-12, 12))))
        if number % 7 == 0:
            low, high = abs(low), abs(low) + abs(high)
        elif number % 7 == 1:
            low, high = -abs(low) - abs(high), -abs(high)
        elif number % 7 == 2:
            half = F32(rng.integers(0, 255) + 0.5)
            low, high = -half * F32(0.125), (F32(255) - half) * F32(0.125)
        found.append((low, high))
    return [*found, (F32(0), F32(0)), (F32(0), F32(1e-38)), (F32(-1e-45), F32(1e-45)), (F32(-3e38), F32(3e38))]


def test_as_the_tool_of_onnx_runtime() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnxruntime.quantization.quant_utils import ONNX_INT_TYPE_RANGE, compute_scale_zp, get_qmin_qmax_for_qType

    types = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 21: "uint4", 22: "int4"}
    assert set(types) == set(ONNX_INT_TYPE_RANGE)
    for kind, name in types.items():
        for symmetric in (False, True):
            smallest, largest = get_qmin_qmax_for_qType(kind, symmetric=symmetric)
            for low, high in ranges(kind, 300):
                zero_point, scale = compute_scale_zp(np.array(low), np.array(high), smallest, largest, symmetric)
                ours = bittrue.choose_parameters(low, high, name, symmetric=symmetric)
                assert ours[0].tobytes() == np.asarray(scale, F32).tobytes(), (name, low, high)
                assert ours[1] == int(zero_point), (name, low, high)
        if name.startswith("int"):
            narrow = -np.array(largest, largest.dtype)
            for low, high in ranges(kind, 50):
                zero_point, scale = compute_scale_zp(np.array(low), np.array(high), narrow, largest)
                assert bittrue.choose_parameters(low, high, name, narrow_range=True) == (F32(scale), int(zero_point))


def test_as_the_converter_of_tflite() -> None:
    table = json.loads((REPOSITORY / "tests" / "data" / "recorded" / "tflite_parameters.json").read_text())
    for kind, *numbers, zero_point in table["rows"]:
        low, high, scale = (float.fromhex(text) for text in numbers)
        weights = kind == "weights"
        ours = bittrue.choose_parameters(low, high, "int8" if weights else kind, symmetric=weights, convention="tflite")
        assert (float(ours[0]), ours[1]) == (scale, zero_point), (kind, low, high)
    assert len(table["rows"]) > 200


def by_observer(
    low: float, high: float, smallest: int, largest: int, symmetric: bool, middle: int
) -> tuple[float, int]:
    """PyTorch's text in Fractions."""

    def single(value: Fraction) -> Fraction:
        found = to_precision(value, "f32")
        assert found is not None
        return found

    below, above = min(Fraction(low), Fraction(0)), max(Fraction(high), Fraction(0))
    if symmetric:
        scale = max(single(max(-below, above) / Fraction(largest - smallest, 2)), Fraction(1, 2**23))
        return float(scale), middle
    scale = max(single(single(above - below) / (largest - smallest)), Fraction(1, 2**23))
    return float(scale), min(max(smallest - round(single(below / scale)), smallest), largest)


def test_as_the_observers_of_pytorch() -> None:
    for name, smallest, largest, middle in (
        ("int8", -128, 127, 0),
        ("uint8", 0, 255, 128),
        ("int16", -32768, 32767, 0),
        ("uint16", 0, 65535, 0),
        ("uint4", 0, 15, 0),
    ):
        for low, high in ranges(3, 200)[:-1]:
            for symmetric in (False, True):
                for narrow in (0, 1):
                    wanted = by_observer(float(low), float(high), smallest + narrow, largest, symmetric, middle)
                    ours = bittrue.choose_parameters(
                        low, high, name, symmetric=symmetric, narrow_range=bool(narrow), convention="pytorch"
                    )
                    assert (float(ours[0]), ours[1]) == wanted, (name, low, high, symmetric, narrow)


def test_arrays_are_one_range_per_channel() -> None:
    low, high = np.array([v for v, _ in ranges(9, 50)[:-1]]), np.array([v for _, v in ranges(9, 50)[:-1]])
    for convention in ("onnx", "tflite", "pytorch"):
        scales, zero_points = bittrue.choose_parameters(low, high, convention=convention)
        single = [bittrue.choose_parameters(a, b, convention=convention) for a, b in zip(low, high, strict=True)]
        assert (scales.dtype, zero_points.dtype) == (np.float32, np.int64)
        assert list(zip(scales.tolist(), zero_points.tolist(), strict=True)) == [(float(s), z) for s, z in single]


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [
        ((1, 0), {}, "BT-RANGE"),
        ((0, np.nan), {}, "BT-RANGE"),
        ((0, np.inf), {}, "BT-RANGE"),
        ((-3e38, 3e38), {"convention": "pytorch"}, "BT-RANGE"),
        (([0], [1, 2]), {}, "BT-RANGE"),
        (("low", 1), {}, "BT-DTYPE"),
        (([0, [1]], 1), {}, "BT-SHAPE"),
        ((0, 1, "float8_e5m2"), {}, "BT-DTYPE"),
        ((0, 1, "int32"), {}, "BT-DTYPE"),
        ((0, 1, "nibble"), {}, "BT-DTYPE"),
        ((0, 1), {"convention": "caffe"}, "BT-CONVENTION"),
        ((0, 1, "uint8"), {"narrow_range": True}, "BT-RANGE"),
        ((0, 1, "uint8"), {"symmetric": True, "convention": "tflite"}, "BT-RANGE"),
        ((0, 1, "int4"), {"convention": "pytorch"}, "BT-RANGE"),
    ],
)
def test_what_has_no_parameters(arguments: tuple, options: dict, code: str) -> None:
    with pytest.raises(bittrue.InputError, match=code):
        bittrue.choose_parameters(*arguments, **options)
