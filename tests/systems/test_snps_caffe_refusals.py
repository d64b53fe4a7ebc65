"""SNPS Caffe's layers on numbers and images: what is refused, what runs natively, and which operators they become."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bittrue.errors import InvalidModelError, RunError, UnsupportedError
from bittrue.importers import read_model
from bittrue.importers.caffe_schema import messages
from bittrue.runtime import NativeExecutor, native_module
from support import caffe_layers as caffe
from support.caffe_layers import network, numbers, run


@pytest.mark.parametrize(
    ("kind", "parameter", "fields", "error"),
    [
        ("Pooling", "pooling_param", {}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 2, "kernel_h": 2, "kernel_w": 2}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 2, "pad": 2}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 2, "pad": 0, "pad_l": 1}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 2, "stride": 0}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 2, "pool": "STOCHASTIC"}, UnsupportedError),
        ("Pooling", "pooling_param", {"global_pooling": True, "kernel_size": 2}, InvalidModelError),
        ("Pooling", "pooling_param", {"kernel_size": 9, "ceil_mode": False}, InvalidModelError),
        ("ResizeBilinear", "resize_bilinear_param", {"output_height": 0, "output_width": 2}, InvalidModelError),
        ("ResizeBilinear", "resize_bilinear_param", {"data_format": "NCHWD"}, UnsupportedError),
        (
            "ResizeBilinear",
            "resize_bilinear_param",
            {"align_corners": True, "half_pixel_centers": True},
            InvalidModelError,
        ),
        ("Eltwise", "eltwise_param", {"output_scale": 0.5}, InvalidModelError),
        ("Eltwise", "eltwise_param", {"operation": "DIV"}, InvalidModelError),
        ("Eltwise", "eltwise_param", {"operation": "MAX"}, InvalidModelError),
        ("Eltwise", "eltwise_param", {"coeff": [0.3]}, UnsupportedError),
        ("Eltwise", "eltwise_param", {"coeff": [1.0, 2.0]}, InvalidModelError),
        ("Softmax", "softmax_param", {"axis": 4}, InvalidModelError),
        ("Concat", "concat_param", {"axis": 1, "concat_dim": 1}, InvalidModelError),
        ("Bias", "bias_param", {}, InvalidModelError),
        ("ReLU", "relu_param", {"negative_slope": 0.1, "input_scale": 0.5, "output_scale": 0.0}, InvalidModelError),
        ("SpatialBatchingPooling", "spatial_batching_pooling_param", {"kernel_size": 2}, UnsupportedError),
        (
            "SpatialBatchingPooling",
            "spatial_batching_pooling_param",
            {"kernel_size": 2, "input_scale": 0.5},
            InvalidModelError,
        ),
    ],
)
def test_what_the_system_refuses(kind: str, parameter: str, fields: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        run(network(kind, parameter, [(1, 2, 4, 4)], fields), [np.zeros((1, 2, 4, 4))])


def test_quantized_sums_do_not_broadcast() -> None:
    shapes = [(1, 2, 4), (2, 4)]
    model = network("Eltwise", "eltwise_param", shapes, {"output_scale": 0.5})
    assert run(model, [np.zeros(shape) for shape in shapes]).shape == (1, 2, 4)
    shapes = [(3, 2, 4), (2, 4)]
    with pytest.raises(UnsupportedError, match="does not broadcast"):
        run(network("Eltwise", "eltwise_param", shapes, {"output_scale": 0.5}), [np.zeros(shape) for shape in shapes])


def test_limits_of_a_quotient_that_broadcasts_are_refused() -> None:
    """The system limits what lies behind the result in memory."""
    fields = {"operation": "DIV", "axis": 1, "saturate": "Signed_8bit"}
    model = network("Eltwise", "eltwise_param", [(1, 2, 4), (2,)], fields)
    with pytest.raises(UnsupportedError, match="behind its result"):
        run(model, [np.ones((1, 2, 4)), np.ones(2)])


@pytest.mark.parametrize("kind", ["ReLU", "Sigmoid", "Bias", "Softmax"])
def test_quantized_layers_in_place_are_refused(kind: str) -> None:
    head = 'input: "y"\ninput_shape { dim: 1 dim: 3 }\n'
    text = head + caffe.layer(kind, f"{kind.lower()}_param", ["y"], {})
    quantized = caffe.layer(kind, f"{kind.lower()}_param", ["y"], {"input_scale": 0.5})
    with pytest.raises(UnsupportedError, match="in place"):
        caffe.read_model((head + quantized).encode())
    if kind != "Bias":
        run(caffe.read_model(text.encode()), [np.zeros((1, 3))])


@pytest.mark.parametrize(
    ("kind", "parameter", "fields", "number"),
    [
        ("Power", "power_param", {"saturate": "Signed_8bit"}, math.nan),
        ("Eltwise", "eltwise_param", {"output_scale": 0.5}, math.nan),
        ("Eltwise", "eltwise_param", {"output_scale": 0.5}, 5000.0),
        ("ReLU", "relu_param", {"negative_slope": 0.5, "input_scale": 0.5, "output_scale": 0.1}, math.inf),
        ("ReLU", "relu_param", {"negative_slope": 0.5, "input_scale": 0.5, "output_scale": 2.0**-12}, 2.0**30),
        ("Pooling", "pooling_param", {"kernel_size": 1, "pool": "AVE", "output_scale": 0.5}, math.nan),
    ],
)
def test_numbers_without_a_defined_result(kind: str, parameter: str, fields: dict[str, Any], number: float) -> None:
    shapes = [(1, 1, 2, 2)] * (2 if kind == "Eltwise" else 1)
    with pytest.raises(RunError, match="BT-LEVEL"):
        run(network(kind, parameter, shapes, fields), [np.full(shape, number) for shape in shapes])


_LIMITED = {"output_scale": 0.3, "saturate": "Unsigned_8bit"}


@pytest.mark.skipif(native_module() is None, reason="the native module is not built")
@pytest.mark.parametrize(
    ("kind", "parameter", "fields", "count"),
    [
        ("Pooling", "pooling_param", {**_LIMITED, "kernel_size": 3, "pool": "AVE"}, 1),
        ("Pooling", "pooling_param", {**_LIMITED, "kernel_size": 3, "pool": "AVE", "input_scale": 0.3}, 1),
        ("Pooling", "pooling_param", {**_LIMITED, "kernel_size": 3, "pool": "AVE", "quantize_method": "ONNX"}, 1),
        (
            "Pooling",
            "pooling_param",
            {**_LIMITED, "kernel_size": 3, "pool": "AVE_EXC_PAD", "quantize_method": "Caffe2"},
            1,
        ),
        ("Pooling", "pooling_param", {"kernel_size": 3, "pad": 1, "saturate": "Unsigned_8bit"}, 1),
        ("Eltwise", "eltwise_param", _LIMITED, 2),
        ("Eltwise", "eltwise_param", {**_LIMITED, "quantize_method": "Caffe2"}, 2),
        ("ReLU", "relu_param", {}, 1),
        ("ReLU", "relu_param", {**_LIMITED, "input_scale": 0.2}, 1),
        ("ReLU", "relu_param", {**_LIMITED, "input_scale": 0.2, "negative_slope": 0.1}, 1),
        ("Sigmoid", "sigmoid_param", {**_LIMITED, "input_scale": 0.2}, 1),
        ("Concat", "concat_param", {**_LIMITED, "input_scale": [0.2, 0.3]}, 2),
        ("Power", "power_param", {"scale": 0.1, "shift": 0.25}, 1),
        ("ResizeBilinear", "resize_bilinear_param", {**_LIMITED, "output_height": 50, "output_width": 31}, 1),
        (
            "ResizeBilinear",
            "resize_bilinear_param",
            {"output_height": 20, "output_width": 90, "align_corners": True},
            1,
        ),
        (
            "SpatialBatchingPooling",
            "spatial_batching_pooling_param",
            {"kernel_size": 3, "pad_t": 1, "pad_l": 1, "pad_b": 0, "pad_r": 1, "spatial_batching_h": 2, "batch_h": 15}
            | {"spatial_batching_w": 3, "batch_w": 11, "ceil_mode": False},
            1,
        ),
    ],
)
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_layers_of_8_bits_are_native(kind: str, parameter: str, fields: dict[str, Any], count: int, dtype: str) -> None:
    """The networks begin with what quantizes their inputs, which is native, too; images are large enough to share."""
    shapes = [(2, 19, 33, 37)] * count
    model = network(kind, parameter, shapes, fields, [dtype] * count)
    plan = caffe.make_plan(model.graphs[0], caffe.find("snps_caffe"), graphs=model.graphs)
    lines = NativeExecutor(plan, threads=2).execution
    assert not [line for line in lines if "reference" in line], lines
    run(model, [numbers(position, dtype, shape) for position, shape in enumerate(shapes)])


def test_stems_of_these_layers() -> None:
    """Every operator of this file is reached by a layer."""
    fields = {"input_scale": 0.5, "output_scale": 0.25, "saturate": "Signed_8bit"}
    reached = set()
    for kind, more in (
        ("Bias", {}), ("Concat", {"input_scale": [0.5, 0.5]}), ("Power", {}), ("ReLU", {}), ("Sigmoid", {}),
        ("ReLU", {"negative_slope": 0.5}), ("Softmax", {}), ("Eltwise", {"input_scale": [0.5, 0.5]}),
        ("Eltwise", {"operation": "PROD", "input_scale": [0.5, 0.5]}), ("Power", {"power": 2.0}),
        ("Pooling", {"kernel_size": 2, "pool": "AVE"}), ("Pooling", {"kernel_size": 2}), ("ResizeBilinear", {}),
        (
            "SpatialBatchingPooling",
            {
                "output_scale": 0.5, "kernel_size": 2, "pad_t": 1, "ceil_mode": False, "spatial_batching_h": 2,
                "spatial_batching_w": 2, "batch_h": 2, "batch_w": 2,
            },
        ),
    ):  # fmt: skip
        parameter = {"ResizeBilinear": "resize_bilinear", "SpatialBatchingPooling": "spatial_batching_pooling"}
        given_fields: dict[str, Any] = {**fields, **more}
        if kind == "Power":
            given_fields = {"saturate": "Signed_8bit", **more}
        shapes = [(1, 1, 4, 4)] * (2 if kind in ("Bias", "Concat", "Eltwise") else 1)
        model = network(kind, f"{parameter.get(kind, kind.lower())}_param", shapes, given_fields)
        reached |= {node.operator for node in model.graphs[0].nodes}
    assert reached == set(
        "add average_pool clip concatenation leaky_relu logistic max_pool mul power quantize relu reshape "
        "resize_linear softmax".split()
    )


def test_a_network_of_8_bits_runs_natively() -> None:
    """From numbers to shares: convolutions, both kinds of ReLU, sums, pools and Concat, equal on both executors."""
    rng = np.random.default_rng(5)
    weights = messages()["NetParameter"]()
    text = ['layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 30 dim: 26 } } }']
    scales = {"input_scale": 0.06, "input_zero_point": -5, "output_scale": 0.05, "output_zero_point": 3}
    limited = {**scales, "saturate": "Signed_8bit"}

    def add(kind: str, bottoms: list[str], top: str, fields: dict[str, Any]) -> None:
        text.append(caffe.layer(kind, f"{kind.lower()}_param", bottoms, fields, top))

    def convolve(bottom: str, top: str, channels: int, kernel: int, group: int = 1) -> None:
        fields = {"num_output": 16, "kernel_size": kernel, "pad": kernel // 2, "group": group, "weight_scale": 0.002}
        add("Convolution", [bottom], top, {**limited, **fields})
        blobs = weights.layer.add(name=f"Convolution {top}", type="Convolution").blobs
        for shape, most in (((16, channels // group, kernel, kernel), 127), ((16,), 5000)):
            blob = blobs.add()
            blob.shape.dim.extend(shape)
            blob.data.extend(rng.integers(-most, most + 1, shape).astype(float).reshape(-1).tolist())

    add("Power", ["x"], "q", {"scale": 4.0, "shift": -10.0, "saturate": "Signed_8bit"})
    convolve("q", "c1", 3, 3)
    add("ReLU", ["c1"], "r1", {**limited, "negative_slope": 0.1})
    convolve("r1", "c2", 16, 3, 16)
    add("ReLU", ["c2"], "r2", limited)
    convolve("r2", "c3", 16, 1)
    two = {"input_scale": [0.06, 0.05], "input_zero_point": [-5, 3], "output_scale": 0.05, "saturate": "Signed_8bit"}
    add("Eltwise", ["c3", "r1"], "e", two)
    add("Pooling", ["e"], "p", {"kernel_size": 3, "stride": 2})
    add("Pooling", ["p"], "a", {**limited, "kernel_size": 3, "stride": 2, "pad": 1, "pool": "AVE"})
    add("Concat", ["a", "a"], "cc", two)
    add("Pooling", ["cc"], "y", {**limited, "global_pooling": True, "pool": "AVE", "quantize_method": "ONNX"})
    model = read_model("\n".join(text).encode(), weights.SerializeToString())
    if native_module() is not None:
        plan = caffe.make_plan(model.graphs[0], caffe.find("snps_caffe"), graphs=model.graphs)
        lines = NativeExecutor(plan, threads=2).execution
        assert not [line for line in lines if "reference" in line], lines
    found = run(model, [rng.normal(0, 12, (2, 3, 30, 26))])
    assert found.dtype == np.int8
    assert found.shape == (2, 32, 1, 1)
    assert len(set(found.reshape(-1).tolist())) > 5
