"""Whole networks of several layers: executors, batches, and what parameters per channel do to batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from support.caffe_models import Files

EIGHT: dict[str, Any] = {"saturate": "Unsigned_8bit", "output_zero_point": 7}


def network(method: str, several: bool) -> Files:
    """A real image, quantized; convolutions in groups, depthwise and of one tap; a sum; a pool; a product."""
    rng = np.random.default_rng(11)
    files = Files({"image": (1, 3, 12, 10)})
    scales = {"input_scale": 0.02, "input_zero_point": 7, "output_scale": 0.02, **EIGHT}

    def convolution(name: str, source: str, outputs: int, channels: int, group: int, taps: int, **more: Any) -> None:
        shape = (outputs, channels // group, taps, taps)
        blobs = [rng.integers(-100, 100, shape), rng.integers(-2000, 2000, outputs)]
        if several:
            blobs += [rng.uniform(0.004, 0.006, outputs), rng.integers(-3, 4, outputs)]
        files.add(
            "Convolution", name, [source], [name], blobs, num_output=outputs, kernel_size=taps, group=group,
            weight_scale=0.005, per_channel_scale_weight=several, quantize_method=method, **(scales | more),
        )  # fmt: skip

    files.add("Power", "q", ["image"], ["q"], scale=50.0, shift=7.0, saturate="Unsigned_8bit", quantize_method=method)
    convolution("a", "q", 8, 3, 1, 3, pad_t=1, pad_b=0, pad_l=0, pad_r=1, stride=1)
    convolution("b", "a", 8, 8, 8, 3, pad=1)
    convolution("c", "b", 8, 8, 1, 1)
    convolution("d", "c", 8, 8, 2, 3, pad=1, dilation=1)
    files.add(
        "Eltwise", "e", ["c", "d"], ["e"], operation="SUM", input_scale=[0.02, 0.02], input_zero_point=[7, 7],
        output_scale=0.03, quantize_method=method, **EIGHT,
    )  # fmt: skip
    files.add("ReLU", "r", ["e"], ["r"], input_scale=0.03, input_zero_point=7, output_scale=0.02, **EIGHT)
    files.add(
        "Pooling", "p", ["r"], ["p"], pool="AVE_EXC_PAD", kernel_size=3, stride=2, pad=1, input_scale=0.02,
        input_zero_point=7, output_scale=0.02, quantize_method=method, **EIGHT,
    )  # fmt: skip
    files.add(
        "InnerProduct", "f", ["p"], ["f"], [rng.integers(-100, 100, (5, 240)), rng.integers(-2000, 2000, 5)],
        num_output=5, input_scale=0.02, input_zero_point=7, weight_scale=0.002, output_scale=0.05,
        saturate="Signed_8bit", quantize_method=method,
    )  # fmt: skip
    return files


def results(files: Files, images: np.ndarray, numerics: str, executor: str) -> np.ndarray:
    session = bittrue.load(files.network, weights=files.learned).prepare(
        numerics, executor=executor, shapes={"image": images.shape}
    )
    found: np.ndarray = session.run({"image": images})["f"]
    return found


IMAGES = np.random.default_rng(3).uniform(-2.5, 2.5, (3, 3, 12, 10)).astype(np.float32)


@pytest.mark.parametrize("method", ["tflite", "ONNX", "Caffe2"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("numerics", ["snps_caffe", "snps_caffe-ev", "snps_caffe-sr", "snps_caffe-document"])
def test_executors_agree_and_batches_are_images(numerics: str, several: bool, method: str) -> None:
    files = network(method, several)
    together = results(files, IMAGES, numerics, "reference")
    np.testing.assert_array_equal(results(files, IMAGES, numerics, "auto"), together)
    apart = np.concatenate([results(files, IMAGES[n : n + 1], numerics, "auto") for n in range(3)])
    # The system deals parameters per channel out over the whole batch; Caffe2's scales are the layer's own.
    dealt = several and numerics != "snps_caffe-document" and method != "Caffe2"
    assert (together == apart).all() != dealt
    assert len(set(together.reshape(-1).tolist())) > 5


def test_plans_come_back_from_files(tmp_path: Path) -> None:
    files = network("tflite", True)
    session = bittrue.load(files.network, weights=files.learned).prepare(shapes={"image": IMAGES.shape})
    session.plan.save(tmp_path / "network.plan")
    expected = session.run({"image": IMAGES})["f"]
    for executor in ("reference", "auto"):
        again = bittrue.load_plan(tmp_path / "network.plan", executor=executor)
        np.testing.assert_array_equal(again.run({"image": IMAGES})["f"], expected)


def test_methods_and_numerics_differ() -> None:
    """Otherwise the network would show nothing."""
    found = {
        (method, numerics): results(network(method, True), IMAGES, numerics, "auto").tobytes()
        for method in ("tflite", "ONNX", "Caffe2")
        for numerics in ("snps_caffe", "snps_caffe-document")
    }
    assert len(set(found.values())) >= 5
