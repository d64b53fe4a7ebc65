"""Operators of com.microsoft with kernels of their own, and rare types: random one-node models against ONNX Runtime.

Stems: linear_attention causal_conv reduce_streams mix_streams root_mean_square unfold ban_repeats crop_and_resize
inverse hashed_groups append_verified warped_path masked_maxima conv_transpose attending_lstm word_convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from support import contributed_models, wide_models
from support.onnx_models import MICROSOFT, Checks, check, natively, single

_GENERATORS = {**contributed_models.GENERATORS, **wide_models.GENERATORS}


@pytest.mark.parametrize("operator", _GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, usual=6)
    for rng in checks:
        checks.add(*_GENERATORS[operator](rng))
    assert "equal" in checks.outcomes


_IMAGE, _ROWS = (1, 2, 3, 3), (2, 3)


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "outcome"),
    [
        ("Sum", (_ROWS, _ROWS), {}, "equal"),
        ("Sum", (_ROWS, (3,)), {}, "refused"),
        ("Mean", (_ROWS, (1, 3)), {}, "refused"),
        ("Max", (_ROWS, _ROWS), {}, "equal"),
        ("Min", (_ROWS, (3,)), {}, "refused"),
        ("Add", (_ROWS, (3,)), {}, "equal"),
        ("Gemm", (_ROWS, (3, 4), (2, 1)), {}, "equal"),
        ("BatchNormalization", (_IMAGE, (2,), (2,), (2,), (2,)), {"spatial": 1}, "equal"),
        ("Upsample", (_IMAGE,), {"scales": [1.0, 1.0, 2.0, 2.0]}, "equal"),
        ("MaxPool", (_IMAGE,), {"kernel_shape": [2, 2], "storage_order": 0}, "refused"),
    ],
)
def test_operator_set_7(
    operator: str, shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], outcome: str
) -> None:
    """Operands of Sum, Mean, Max and Min have one shape there."""
    rng = np.random.default_rng(7)
    inputs = {f"x{i}": np.abs(rng.standard_normal(shape)).astype(np.float32) for i, shape in enumerate(shapes)}
    assert check(*single(operator, inputs, [TensorProto.FLOAT], attributes, opset=7)) == outcome


def test_words_of_no_characters_are_refused() -> None:
    """The runtime writes nothing there."""
    shapes = {"filters": (3, 1, 2, 4), "bias": (3,), "table": (5, 4)}
    operands = {"words": np.int32([[1, 2], [0, 2]]), **{n: np.ones(s, np.float32) for n, s in shapes.items()}}
    content, feeds = single("WordConvEmbedding", operands, [TensorProto.FLOAT], domain=MICROSOFT)
    assert check(content, feeds, may_refuse={"BT-WORDS"}) == "refused"


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_cut_regions_are_native(mode: str) -> None:
    rng = np.random.default_rng(3)
    inputs = {
        "x": rng.standard_normal((2, 3, 7, 5)).astype(np.float32),
        "regions": rng.uniform(-0.2, 1.2, (4, 4)).astype(np.float32),
        "images": rng.integers(0, 2, 4).astype(np.int32),
        "size": np.array([4, 6], np.int32),
    }
    attributes = {"mode": mode, "extrapolation_value": 2.5}
    natively(*single("CropAndResize", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=["size"]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_unfolded_windows_are_native(axis: int) -> None:
    x = np.arange(6 * 7 * 8, dtype=np.float32).reshape(6, 7, 8)
    attributes = {"dim": axis, "size": 3, "step": 2}
    natively(*single("UnfoldTensor", {"x": x}, [TensorProto.FLOAT], attributes, domain=MICROSOFT))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_are_native(dtype: type[np.floating[Any]]) -> None:
    x = np.random.default_rng(5).standard_normal((3, 11, 11)).astype(dtype)
    natively(*single("Inverse", {"x": x}, [helper.np_dtype_to_tensor_dtype(np.dtype(dtype))], domain=MICROSOFT))


@pytest.mark.parametrize("shape", [(2, 3), (3,), ()])
def test_inverses_of_what_is_not_square(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    assert check(*single("Inverse", {"x": x}, [TensorProto.FLOAT], domain=MICROSOFT)) == "refused"


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_are_native(metric: str) -> None:
    rng = np.random.default_rng(6)
    inputs = {name: rng.standard_normal((rows, 21)).astype(np.float32) for name, rows in (("a", 7), ("b", 9))}
    natively(*single("CDist", inputs, [TensorProto.FLOAT], {"metric": metric}, domain=MICROSOFT))


@pytest.mark.parametrize("shapes", [((2, 3), (4, 2)), ((3,), (4, 3)), ((2, 3), (1, 4, 3))])
def test_distances_of_what_does_not_fit(shapes: tuple[tuple[int, ...], ...]) -> None:
    inputs = {name: np.ones(shape, np.float32) for name, shape in zip("ab", shapes, strict=True)}
    attributes = {"metric": "euclidean"}
    assert check(*single("CDist", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT)) == "refused"


@pytest.mark.parametrize(("attributes", "outcome"), [({"metric": "cosine"}, "refused"), ({}, "equal")])
def test_other_metrics(attributes: dict[str, str], outcome: str) -> None:
    inputs = {"a": np.ones((2, 3), np.float32), "b": np.zeros((4, 3), np.float32)}
    assert check(*single("CDist", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT)) == outcome


@pytest.mark.parametrize("spatial", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2,), _IMAGE[1:]])
def test_old_batch_normalizations(spatial: int, shape: tuple[int, ...]) -> None:
    """Every other value than 1 means parameters of whole samples."""
    rng = np.random.default_rng(4)
    inputs = {"x": rng.standard_normal(_IMAGE).astype(np.float32)}
    inputs |= {name: rng.uniform(0.5, 2, shape).astype(np.float32) for name in "sbmv"}
    content, feeds = single("BatchNormalization", inputs, [TensorProto.FLOAT], {"spatial": spatial}, opset=8)
    assert check(content, feeds) == ("equal" if (spatial == 1) == (len(shape) == 1) else "refused")
