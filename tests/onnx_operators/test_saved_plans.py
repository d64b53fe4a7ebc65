"""Saved plans of layers over channels-first tensors come back: equal text and bytes, on both executors."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.native import same
from support.onnx_models import KIND, MICROSOFT, integers, single

_U8, _S8, _F32 = np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.float32)
_AXES = pytest.mark.parametrize("axes", [1, 2, 3])


def _scale(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


def _layer(operator: str, axes: int) -> tuple[bytes, list[np.ndarray]]:
    """A model of one layer with uneven pads, or pads that leave elements out."""
    rng = np.random.default_rng(axes)
    shape, taps = (2, 4, *(7, 6, 9)[:axes]), (3, 2, 1)[:axes]
    geometry: dict[str, Any] = {"strides": (1, 2, 2)[:axes], "pads": [1, 0, 0][:axes] + [0, 1, 0][:axes]}
    kind = KIND[_U8]
    x, w = integers(rng, shape, _U8), integers(rng, (6, 2, *taps), _S8)
    zero = np.asarray(3, np.uint8)
    pooled = {"kernel_shape": taps, **geometry}
    if operator == "QLinearConv":
        given = {"x": x, "xs": _scale(0.1), "xz": zero, "w": w, "ws": _scale(0.02)}
        given |= {"wz": np.asarray(1, np.int8), "ys": _scale(0.3), "yz": zero}
        return single(operator, given, [kind], {**geometry, "group": 2}, constants=list(given)[1:])
    if operator == "ConvInteger":
        return single(operator, {"x": x, "w": w}, [TensorProto.INT32], {**geometry, "group": 2}, constants=["w"])
    if operator == "QLinearAveragePool":
        given = {"x": x, "xs": _scale(0.1), "xz": zero, "ys": _scale(0.08), "yz": zero}
        return single(operator, given, [kind], pooled, domain=MICROSOFT, constants=list(given)[1:])
    if operator == "MaxPool":
        return single(operator, {"x": x}, [kind], {**pooled, "ceil_mode": 1})
    real = {"x": rng.standard_normal(shape).astype(_F32)}
    if operator == "Conv":
        real["w"] = w.astype(_F32)
        same_pads = {"strides": (4, 4, 4)[:axes], "auto_pad": "SAME_UPPER", "group": 2}
        return single(operator, real, [TensorProto.FLOAT], same_pads, constants=["w"])
    return single(operator, real, [TensorProto.FLOAT], pooled)


_OPERATORS = ("AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearAveragePool", "QLinearConv")


@_AXES
@pytest.mark.parametrize("operator", _OPERATORS)
def test_plan_comes_back(operator: str, axes: int, tmp_path: Path) -> None:
    content, feeds = _layer(operator, axes)
    session = bittrue.load(content).prepare("onnxruntime", executor="reference")
    session.plan.save(tmp_path / "saved.plan")
    expected = session.run(*feeds)
    for executor in ("reference", "native") if bittrue.isas() else ("reference",):
        again = bittrue.load_plan(tmp_path / "saved.plan", executor=executor)
        for name, value in again.run(*feeds).items():
            same(name, value, expected[name])
    assert str(bittrue.load_plan(tmp_path / "saved.plan", executor="reference").plan) == str(session.plan)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(out_w=p["out_w"] + 1),
        lambda p: p.update(stride_h=1 << 30),
        lambda p: p.update(filter_w=0),
        lambda p: p.update(pad_left=1 << 40),
        lambda p: p.update(dilation_h=-1),
        lambda p: p.update(filter_h=p["filter_h"] + 1),
        lambda p: p.update(filter_d=1, stride_d=1, dilation_d=1, pad_front=0, pad_back=0, out_d=1),
    ],
)
@pytest.mark.parametrize("operator", _OPERATORS)
def test_lying_windows(operator: str, change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    path = tmp_path / "lying.plan"
    bittrue.load(_layer(operator, 2)[0]).prepare("onnxruntime", executor="reference").plan.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["plan.json"])
    step = next(s for s in description["steps"] if "filter_h" in s["parameters"])
    change(step["parameters"])
    members["plan.json"] = json.dumps(description, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    with pytest.raises(bittrue.ModelFormatError):
        bittrue.load_plan(path)
