"""Recording of the random models, for other processors to answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import onnx_models, recorded


@pytest.fixture(scope="session", autouse=True)
def recorder() -> Iterator[None]:
    """With BITTRUE_RECORD=folder: models and answers of the runtime here are written to folder/onnxruntime.npz."""
    folder = os.environ.get("BITTRUE_RECORD", "")
    if not folder:
        yield
        return
    onnx_models.RECORDER = recorded.Recorder()
    yield
    onnx_models.RECORDER.write(Path(folder) / "onnxruntime.npz")
