"""convert (Cast and CastLike) between all numeric types against ONNX Runtime, values beyond the target's range too."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.onnx_models import build, cases, check, single
from support.onnx_operands import TYPES, bits, kind, one_type, shape

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


@pytest.mark.parametrize("part", range(2))
def test_random_models(request: pytest.FixtureRequest, part: int) -> None:
    for rng in cases(request, part, 2, usual=1000):
        x = values(rng, shape(rng, 0, 3) if rng.random() < 0.8 else (int(rng.integers(1, 40)),), one_type(rng))
        target = kind(TYPES[rng.integers(len(TYPES))])
        opset = int(rng.integers(9, 25))
        if opset >= 15 and rng.random() < 0.2:
            like = np.zeros((2,), helper.tensor_dtype_to_np_dtype(target))
            content, feeds = single("CastLike", {"x": x, "like": like}, [target], opset=opset)
        else:
            content, feeds = single("Cast", {"x": x}, [target], {"to": target}, opset=opset)
        assert check(content, feeds) == "equal"


def test_by_way_of_bfloat16(request: pytest.FixtureRequest) -> None:
    """NumPy cannot take bfloat16 from the runtime, so it is narrowed to and widened again."""
    for rng in cases(request, usual=300):
        x = values(rng, shape(rng, 0, 3), one_type(rng))
        # To 8 bits, the runtime leaves the step over bfloat16 out.
        target = kind(one_type(rng, "f4 f8 f2 u2 i2 u4 i4 u8 i8"))
        nodes = [helper.make_node("Cast", ["x"], ["b"], to=BRAIN), helper.make_node("Cast", ["b"], ["y"], to=target)]
        content, feeds = build(nodes, {"x": x}, {"y": target})
        assert check(content, feeds) == "equal"
