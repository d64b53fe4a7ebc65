"""The embedded digits and their model, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.tflite and samples.npz: the digits as the model's int8 input takes them, and their labels."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "model.tflite").write_bytes(bittrue.demo_model())
    images, labels = bittrue.demo_digits()
    (port,) = bittrue.load(bittrue.demo_model()).prepare("litert").inputs
    assert port.scale is not None
    x = bittrue.quantize(images.astype(np.float32) / 16, port.scale, port.zero_point or 0, dtype="int8")
    np.savez(folder / "samples.npz", images=x, labels=labels)
    return folder
