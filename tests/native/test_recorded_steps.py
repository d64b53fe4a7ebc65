"""Steps of recorded vectors that are left to the reference executor: those of docs/numerics.md, no others."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bittrue.errors import UnsupportedError
from bittrue.plan import Plan
from bittrue.runtime import NativeExecutor
from support.native import needs_native
from support.shared import SHARED

pytestmark = [needs_native, pytest.mark.long]

GOLDEN, RECORDED = SHARED / "golden", Path(__file__).parents[1] / "data" / "recorded"
# Steps by folder and operator. Those without elements are none.
LEFT: dict[Path, dict[str, int]] = {
    GOLDEN / "caffe2": {},
    GOLDEN / "mxnet": {},
    GOLDEN / "onnx_node": {},
    GOLDEN / "onnxruntime": {},
    GOLDEN / "snps_caffe": {},
    GOLDEN / "tvm_qnn": {},
    GOLDEN / "tvm_qnn_run": {},
    RECORDED / "caffe2": {},
    RECORDED / "caffe2-avx2": {"conv": 9},
    RECORDED / "caffe2-dnnlowp": {},
    RECORDED / "mxnet": {},
    RECORDED / "mxnet-avx2": {"conv": 23},
    RECORDED / "mxnet_asymmetric": {},
    RECORDED / "mxnet_models": {},
    RECORDED / "mxnet_pointwise": {},
    RECORDED / "snps_caffe_convolutions": {},
    RECORDED / "snps_caffe_layers": {},
    RECORDED / "tvm_qnn": {},
    RECORDED / "tvm_qnn_computed": {},
}


@pytest.mark.parametrize("folder", LEFT, ids=lambda folder: folder.name)
def test_no_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    # Its package has the function under the module's name.
    module = import_module("bittrue.conformance.recorded.replay")
    left: Counter[str] = Counter()
    prepared = 0

    class Counting(NativeExecutor):
        def __init__(self, plan: Plan) -> None:
            nonlocal prepared
            super().__init__(plan)
            prepared += 1
            empty = [p for p, reason in self.missing.items() if reason == "its results hold no elements"]
            left.update(plan.steps[p].operator for p in self.missing if p not in empty)

        def run(self, *given: Any, **how: Any) -> Any:
            raise UnsupportedError("BT-EXECUTOR", "only steps are counted")

    monkeypatch.setattr(module, "NativeExecutor", Counting)
    module.replay(folder, executor="native")
    assert prepared
    assert dict(left) == LEFT[folder]
