"""The models of onnx's own backend tests under `onnxruntime`: what the runtime gives for them, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401 (NumPy knows its types by name)
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

import bittrue
from support.official_onnx import official_cases
from support.onnx_models import HERE, options

# The newest that the runtime reads; newer ones say nothing more about these nodes.
_IR_VERSION = 11
# Convolutions in blocks of channels, and wide products of s8 and u8, belong to the processor.
# One of so many, without --deep.
_SHARE = 5


def _runtime(model: bytes, feeds: list[Any]) -> list[Any] | None:
    """The runtime's results; None where it refuses."""
    try:
        session = onnxruntime.InferenceSession(model, options(), ["CPUExecutionProvider"])
        return list(session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds, strict=True))))
    except Exception:
        # The package raises many types of its own.
        return None


def _ours(model: bytes, feeds: list[Any]) -> tuple[list[Any], bool] | None:
    """Results, and whether some step is marked inexact; None where the model is refused."""
    try:
        session = bittrue.load(model).prepare(HERE)
        results = list(session.run(*feeds).values())
    except bittrue.BittrueError:
        return None
    plan = session.plan
    return results, plan.later is not None or any(step.inexact for step in plan.steps)


def _content(value: Any) -> tuple[object, ...]:
    array = np.asarray(value)
    return array.dtype, array.shape, array.tolist() if array.dtype == object else array.tobytes()


@pytest.mark.skipif("avx2" not in bittrue.isas(), reason="this machine has other kernels")
def test_nothing_differs_without_a_mark(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    different = []
    cases = official_cases()[:: 1 if request.config.getoption("--deep") else _SHARE]
    for case in cases:
        proto = onnx.ModelProto()
        proto.CopyFrom(case.model)
        proto.ir_version = min(proto.ir_version, _IR_VERSION)
        model = proto.SerializeToString()
        for inputs, _ in case.data_sets:
            feeds = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for v in inputs]
            ours = _ours(model, feeds)
            theirs = None if ours is None else _runtime(model, feeds)
            if ours is None or theirs is None:
                counts["refused" if ours is None else "refused by the runtime"] += 1
            elif list(map(_content, ours[0])) == list(map(_content, theirs)):
                counts["equal"] += 1
            elif ours[1]:
                counts["marked"] += 1
            else:
                different.append(case.name)
    assert not different
    assert counts["equal"] > 0.4 * len(cases)
    assert counts["marked"] < 0.02 * len(cases)
    record_property("compared", f"{len(cases)} official ONNX models with the runtime: {dict(counts)}")
