"""convert (Cast and CastLike) between all numeric types against ONNX Runtime, values beyond the target's range too."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from support.onnx_models import Checks, build, check, single
from support.onnx_narrow import run_memory
from support.onnx_operands import TYPES, bits, kind, one_type, shape
from support.onnx_vectors import check_vector, vectors

BRAIN = TensorProto.BFLOAT16


def values(rng: np.random.Generator, size: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Any bits, or real numbers around the ends of every integer type."""
    if dtype.kind != "f" or rng.random() < 0.4:
        return bits(rng, size, dtype)
    ends = rng.choice([0, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**63, 2**64], size).astype(np.float64)
    near = ends + rng.choice([-1, -0.5, 0, 0.5, 1], size)
    drawn = np.where(rng.random(size) < 0.5, near, rng.normal(size=size) * np.exp2(rng.uniform(-3, 66, size)))
    with np.errstate(all="ignore"):
        return np.asarray(np.where(rng.random(size) < 0.5, drawn, -drawn), dtype)


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=150, only="equal")
    for rng in checks:
        x = values(rng, shape(rng, 0, 3) if rng.random() < 0.8 else (int(rng.integers(1, 40)),), one_type(rng))
        target = kind(TYPES[rng.integers(len(TYPES))])
        opset = int(rng.integers(9, 25))
        if opset >= 15 and rng.random() < 0.2:
            like = np.zeros((2,), helper.tensor_dtype_to_np_dtype(target))
            content, feeds = single("CastLike", {"x": x, "like": like}, [target], opset=opset)
        else:
            content, feeds = single("Cast", {"x": x}, [target], {"to": target}, opset=opset)
        checks.add(content, feeds)


def test_by_way_of_bfloat16(request: pytest.FixtureRequest) -> None:
    """NumPy cannot take bfloat16 from the runtime, so it is narrowed to and widened again."""
    checks = Checks(request, usual=50, only="equal")
    for rng in checks:
        x = values(rng, shape(rng, 0, 3), one_type(rng))
        # To 8 bits, the runtime leaves the step over bfloat16 out.
        target = kind(one_type(rng, "f4 f8 f2 u2 i2 u4 i4 u8 i8"))
        nodes = [helper.make_node("Cast", ["x"], ["b"], to=BRAIN), helper.make_node("Cast", ["b"], ["y"], to=target)]
        content, feeds = build(nodes, {"x": x}, {"y": target})
        checks.add(content, feeds)


@pytest.mark.parametrize("folder", vectors("cast.*"))
def test_vectors(folder: Path) -> None:
    check_vector(folder)


# float8 e4m3fn, e4m3fnuz, e5m2, e5m2fnuz; uint4, int4, uint2, int2.
NUMBERS = (17, 18, 19, 20, 21, 22, 25, 26)


def test_to_narrow_types(request: pytest.FixtureRequest) -> None:
    """Results are read from the runtime's memory."""
    checks = Checks(request, only="equal")
    for rng in checks:
        x = values(rng, shape(rng, 0, 3), one_type(rng))
        attributes = {"to": NUMBERS[rng.integers(8)]}
        if 17 <= attributes["to"] <= 20 and rng.random() < 0.5:
            attributes["saturate"] = int(rng.integers(2))
        content, feeds = single("Cast", {"x": x}, [attributes["to"]], attributes, opset=25)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))


def test_from_narrow_types(request: pytest.FixtureRequest) -> None:
    """Every code of a type, as a constant."""
    checks = Checks(request, usual=30, only="equal")
    for rng in checks:
        number = int(rng.integers(8))
        target = kind(TYPES[rng.integers(len(TYPES))]) if rng.random() < 0.8 else NUMBERS[rng.integers(8)]
        count = 256 if number < 4 else 16 if number < 6 else 4
        # The runtime takes -0 for true.
        target = TensorProto.FLOAT if target == TensorProto.BOOL and number < 4 else target
        codes = rng.integers(0, 256, count * (8, 4, 2)[(number >= 4) + (number >= 6)] // 8, np.uint8)
        tensor = helper.make_tensor("c", NUMBERS[number], (count,), codes.tobytes(), raw=True)
        node = helper.make_node("Cast", ["c"], ["y"], to=target)
        info = helper.make_tensor_value_info("y", target, None)
        graph = helper.make_graph([node], "graph", [], [info], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
        content = model.SerializeToString()
        checks.add(content, [], expected=lambda c=content: run_memory(c, []))


POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)


def test_powers_of_two(request: pytest.FixtureRequest) -> None:
    """Casts to and from numbers of 8 exponent bits alone, every rounding."""
    checks = Checks(request, usual=40, only="equal")
    narrow = [np.dtype(one) for one in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz)]
    for rng in checks:
        others = [*map(np.dtype, "f4 f8 f2 u1 i1 u2 i2 u4 i4 u8 i8 ?".split()), *narrow, POWERS]
        other = others[rng.integers(len(others))]
        if rng.random() < 0.6 and other != POWERS:
            x = np.asarray(values(rng, (40,), np.dtype("f4" if other in narrow else other)), other)
            attributes = {"round_mode": str(rng.choice(["up", "down", "nearest"])), "saturate": int(rng.integers(2))}
            target = TensorProto.FLOAT8E8M0
        else:
            # The runtime takes the smallest number for false.
            x = np.arange(other.kind == "b", 256).astype(np.uint8).view(POWERS)
            attributes, target = {}, helper.np_dtype_to_tensor_dtype(other)
        content, feeds = single("Cast", {"x": x}, [target], {"to": target, **attributes}, opset=24)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))


@pytest.mark.parametrize("count", [15, 16, 17, 40])
def test_signalling_halves(count: int) -> None:
    """Whole vectors of 16 become quiet, what is left does not."""
    x = np.full(count, 0x7C34, np.uint16).view(np.float16)
    assert check(*single("Cast", {"x": x}, [TensorProto.FLOAT], {"to": TensorProto.FLOAT})) == "equal"


@pytest.mark.parametrize("count", [7, 8, 9, 20])
def test_halves_of_nans(count: int) -> None:
    """Whole groups of 8 keep the upper bits of payloads, what is left does not."""
    x = np.resize(np.array([0xFFFFFFFF, 0x7F802000, 0x7F800001, 0x3F800000], np.uint32), count).view(np.float32)
    assert check(*single("Cast", {"x": x}, [TensorProto.FLOAT16], {"to": TensorProto.FLOAT16})) == "equal"
