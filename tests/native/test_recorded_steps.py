"""Steps of recorded vectors that are left to the reference executor: those of docs/numerics.md, no others."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bittrue
from bittrue.errors import UnsupportedError
from bittrue.plan import Plan
from bittrue.runtime import NativeExecutor
from support import recorded
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
# Operators of numerics of other processors some of whose steps are left.
_LITERT = set("conv_transpose dequantize gather_nd gelu lp_pool lstm pad reduce_window rnn svdf".split())
_OPTIMIZED = _LITERT | set("fully_connected log_softmax logistic mul tanh".split())
ELSEWHERE: dict[str, set[str]] = {
    "litert@aarch64": _LITERT | {"fully_connected", "matmul", "reduce_prod"},
    "litert-optimized@aarch64": _OPTIMIZED | {"matmul", "sum"},
    "xnnpack@aarch64": _OPTIMIZED | set("cos elu exp matmul max_pool neg resize_linear sin softmax".split()),
    "xnnpack-avx2": set(),
}


@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_others_of_another_processor(name: str) -> None:
    prepared, left = 0, set[str]()
    for case in recorded.read(recorded.FOLDER / f"{name}.npz"):
        model = bittrue.load(case.content)
        names = (model.graph.tensors[i].name for i in model.graph.inputs)
        shapes = {key: value.shape for key, value in zip(names, case.feeds[-1], strict=True)}
        try:
            session = model.prepare(name, executor="native", shapes=shapes)
        except bittrue.BittrueError:
            continue
        prepared += len(session.plan.steps)
        reasons = session.missing.items()
        left |= {session.plan.steps[p].operator for p, why in reasons if why != "its results hold no elements"}
    assert prepared > 100
    assert left <= ELSEWHERE[name]


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
