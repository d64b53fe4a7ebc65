"""A search that finds nothing comes to an end, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.compare import verdict


@pytest.mark.parametrize("seconds", [0.0, 90.0])
def test_searching_in_vain_is_cut_short_and_told(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "SEARCH_SECONDS", seconds)
    model = tmp_path / "model.tflite"
    model.write_bytes(bittrue.demo_model())
    session = bittrue.load(model).prepare(outputs=None)
    rng = np.random.default_rng(0)
    values = {port.name: rng.integers(-128, 128, port.shape).astype(port.dtype) for port in session.inputs}
    tensors = []
    for i, (name, value) in enumerate({**values, **session.trace(values)}.items()):
        # Only the first layers: the search takes its time.
        noise = rng.integers(-40, 41, value.shape) if i in (1, 2) else 0
        np.save(tmp_path / f"{i}.npy", np.clip(value + noise, -128, 127).astype(value.dtype))
        tensors.append({"name": name, "file": f"{i}.npy"})
    (tmp_path / "trace.json").write_text(json.dumps({"tensors": tensors, "inputs": list(values)}))
    result = bittrue.compare_models(model, f"trace:{tmp_path}")
    verdicts = [pair.verdict for pair in result.pairs if pair.verdict is not None]
    assert len(verdicts) >= 2
    assert all(found.unexplained == found.differing for found in verdicts)
    assert all(("cut short" in found.text) == (seconds == 0) for found in verdicts)
    assert any("of computing in vain" in note for note in result.notes) == (seconds == 0)
