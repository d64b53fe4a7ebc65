"""Mutated Caffe networks and weights: typed errors or results only; no crash, no more than 5 s and 1 GiB."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.caffe_models import Files

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
from oracle import compared
from packed import join
from targets import caffe
from watch import changes, seeds


def every_layer() -> Files:
    """A network with every kind of layer that is read."""
    rng = np.random.default_rng(2)
    files = Files({"x": (2, 4, 8, 8)})
    eight = {"input_scale": 0.5, "output_scale": 0.75, "input_zero_point": 3, "output_zero_point": 5}

    def whole(*shape: int) -> np.ndarray:
        return rng.integers(-20, 20, shape)

    files.add("Power", "quantize", ["x"], ["q"], scale=0.5, shift=3.0, saturate="Unsigned_8bit")
    files.add(
        "Convolution", "c", ["q"], ["c"],
        [whole(4, 2, 3, 3), whole(4), rng.uniform(0.01, 0.02, 4), whole(4), rng.uniform(0.5, 1, 4), whole(4)],
        num_output=4, kernel_size=3, group=2, pad=[1, 1], stride=[1], per_channel_scale_weight=True,
        per_channel_scale_output=True, saturate="Signed_8bit", quantize_method="ONNX", **eight,
    )  # fmt: skip
    files.add(
        "Convolution", "d", ["c"], ["d"], [whole(4, 4, 2, 2), whole(4)], num_output=4, kernel_h=2, kernel_w=2, pad_l=1,
        pad_t=1, weight_scale=0.01, weight_zero_point=2, dilation=1, saturate="Unsigned_8bit", **eight,
    )  # fmt: skip
    files.add("ReLU", "r", ["d"], ["r"], saturate="Unsigned_8bit", **eight)
    files.add("ReLU", "l", ["d"], ["l"], negative_slope=0.25, saturate="Unsigned_8bit", **eight)
    files.add(
        "Eltwise", "e", ["r", "l"], ["e"], operation="SUM", input_scale=[0.5, 0.25], input_zero_point=[3, 4],
        output_scale=0.6, output_zero_point=1, saturate="Unsigned_8bit",
    )  # fmt: skip
    files.add("Pooling", "p", ["e"], ["p"], pool="AVE", kernel_size=2, stride=2, saturate="Unsigned_8bit", **eight)
    files.add("Pooling", "m", ["e"], ["m"], pool="MAX", kernel_h=2, kernel_w=2, stride=2)
    files.add(
        "Concat", "k", ["p", "m"], ["k"], axis=1, input_scale=[0.5, 0.25], input_zero_point=[1, 2], output_scale=0.75,
        saturate="Unsigned_8bit",
    )  # fmt: skip
    files.add(
        "Deconvolution", "t", ["k"], ["t"], [whole(8, 2, 2, 2), whole(4)], num_output=4, kernel_size=2, stride=2,
        group=2, weight_scale=0.01, saturate="Signed_8bit", **eight,
    )  # fmt: skip
    files.add("ConvolutionDepthwise", "w", ["t"], ["w"], [whole(4, 1, 2, 2), whole(4)], num_output=4, kernel_size=2)
    files.add("Bias", "b", ["t"], ["b"], [whole(4)], bias_scale=0.5, saturate="Unsigned_8bit", **eight)
    files.add(
        "ResizeBilinear", "z", ["b"], ["z"], output_height=10, output_width=9, data_format='"NCHW"',
        saturate="Unsigned_8bit", **eight,
    )  # fmt: skip
    files.add(
        "SpatialBatchingPooling", "g", ["z"], ["g"], pool="MAX", kernel_size=2, stride_h=2, stride_w=1,
        ceil_mode=False, pad_t=1, pad_b=1, pad_l=1, pad_r=1, spatial_batching_h=2, spatial_batching_w=2, batch_h=4,
        batch_w=4,
    )  # fmt: skip
    files.add("Sigmoid", "s", ["g"], ["s"], saturate="Unsigned_8bit", **(eight | {"output_scale": 0.00390625}))
    files.add("Dropout", "o", ["s"], ["s"], dropout_ratio=0.5)
    files.add("Flatten", "f", ["s"], ["f"], axis=1)
    files.add("Reshape", "h", ["f"], ["h"], axis=1, num_axes=1)
    files.text = files.text.replace("num_axes: 1", "num_axes: 1 shape { dim: 8 dim: -1 }")
    files.add(
        "InnerProduct", "i", ["h"], ["i"], [whole(6, 240), whole(6)], num_output=6, weight_scale=0.001,
        saturate="Signed_8bit", transpose=False, **eight,
    )  # fmt: skip
    files.add("Softmax", "y", ["i"], ["y"], axis=1, saturate="Unsigned_8bit", **(eight | {"output_scale": 0.00390625}))
    return files


def test_the_network_runs() -> None:
    files = every_layer()
    for numerics in ("snps_caffe", "snps_caffe-document"):
        assert compared(bittrue.load(files.network, files.learned).prepare(numerics)) == "result"


def test_mutations(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    files = every_layer()
    content = join({"network": files.network, "weights": files.learned})
    tried = seeds(request, 120, 20_000)
    result = changes(caffe.change, caffe.attempt, [content], tried, tmp_path)
    counts = result["counts"]
    kinds = len([outcome for outcome in counts if outcome.startswith("BT-")])
    record_property(
        "mutated",
        f"a Caffe network with every layer: {len(tried)} files, {counts['result']} results, typed errors of {kinds} "
        f"kinds, slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 20
    assert kinds > 12


def test_truncations() -> None:
    files = every_layer()
    for length in range(0, len(files.network), 41):
        with pytest.raises(bittrue.BittrueError):
            bittrue.load(files.network[:length], weights=files.learned).prepare("snps_caffe")
    for length in range(0, len(files.learned), 97):
        with pytest.raises(bittrue.BittrueError):
            bittrue.load(files.network, weights=files.learned[:length]).prepare("snps_caffe")
