"""Every data-movement operator: results are arrays of their own, and saved plans give the same ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue import numerics
from support.build import T, single
from support.movement import constant

X = (1, 2, 2, 4)
Case = tuple[str, tuple[str, dict[str, object]] | None, list[T], int]


def _inputs(*rest: T, first: bool = True) -> list[T]:
    return [T("u8", X, 0.5, 3), *rest] if first else [*rest, T("u8", X, 0.5, 3)]


CASES: list[Case] = [
    ("RESHAPE", ("ReshapeOptions", {"newShape": list(X)}), _inputs(), 1),
    ("SQUEEZE", ("SqueezeOptions", {"squeezeDims": []}), _inputs(), 1),
    ("EXPAND_DIMS", None, _inputs(constant([0])), 1),
    ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), _inputs(), 1),
    ("SPACE_TO_DEPTH", ("SpaceToDepthOptions", {"blockSize": 1}), _inputs(), 1),
    ("DEPTH_TO_SPACE", ("DepthToSpaceOptions", {"blockSize": 1}), _inputs(), 1),
    ("PAD", None, _inputs(constant([[0, 0]] * 4)), 1),
    ("PADV2", None, _inputs(constant([[0, 0]] * 4), T("u8", (), 0.5, 3, data=np.uint8(9))), 1),
    ("MIRROR_PAD", ("MirrorPadOptions", {"mode": 1}), _inputs(constant([[0, 0]] * 4)), 1),
    ("GATHER", ("GatherOptions", {"axis": 0}), _inputs(constant([0])), 1),
    ("GATHER", ("GatherOptions", {"axis": 2, "batchDims": 2}), _inputs(constant([[[0, 1]] * 2])), 1),
    ("GATHER_ND", None, _inputs(constant([[0, 0], [0, 1]])), 1),
    ("SPACE_TO_BATCH_ND", None, _inputs(constant([1, 1]), constant([[0, 0]] * 2)), 1),
    ("BATCH_TO_SPACE_ND", None, _inputs(constant([1, 1]), constant([[0, 0]] * 2)), 1),
    ("TRANSPOSE", None, _inputs(constant([0, 1, 2, 3])), 1),
    ("SLICE", None, _inputs(constant([0] * 4), constant([-1] * 4)), 1),
    ("STRIDED_SLICE", ("StridedSliceOptions", {"endMask": 15}), _inputs(*[constant(v) for v in ([0], [0], [1])]), 1),
    ("SHAPE", ("ShapeOptions", {"outType": 2}), _inputs(), 1),
    ("SPLIT", ("SplitOptions", {"numSplits": 2}), _inputs(constant([1]), first=False), 2),
    ("SPLIT_V", ("SplitVOptions", {"numSplits": 1}), _inputs(constant([2]), constant([1])), 1),
    ("UNPACK", ("UnpackOptions", {"num": 2, "axis": 1}), _inputs(), 2),
    ("PACK", ("PackOptions", {"valuesCount": 1, "axis": 0}), _inputs(), 1),
    ("TILE", None, _inputs(constant([1] * 4)), 1),
    ("BROADCAST_TO", None, _inputs(constant(X)), 1),
    ("FILL", None, [constant(X), T("u8", (), 0.5, 3)], 1),
    ("REVERSE_V2", None, _inputs(constant([0])), 1),
]


@pytest.mark.parametrize(
    ("operator", "options", "inputs", "count"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_results(operator: str, options: object, inputs: list[T], count: int, tmp_path: Path) -> None:
    dtype = "s32" if operator == "SHAPE" else "u8"
    outputs = [T(dtype, (), *((0.5, 3) if dtype == "u8" else ()), name=f"y{i}") for i in range(count)]
    session = bittrue.load(
        single(
            operator,
            options,
            inputs,
            outputs,
            version=numerics.find("litert").versions.get(operator, (1, 1))[0],
        )
    ).prepare()
    feed = np.arange(16, dtype=np.uint8).reshape(X) if operator != "FILL" else np.array(7, np.uint8)
    values = session.trace(feed)
    sources = [value for name, value in values.items() if not name.startswith("y")]
    sources += [tensor.value for tensor in session.plan.tensors if tensor.kind == "constant"]
    for name in (f"y{i}" for i in range(count)):
        assert values[name].flags.c_contiguous
        assert not any(np.shares_memory(values[name], source) for source in sources)
    assert count == 1 or not np.shares_memory(values["y0"], values["y1"])
    session.plan.save(tmp_path / "step.plan")
    loaded = bittrue.load_plan(tmp_path / "step.plan").run(feed)
    assert all(np.array_equal(loaded[name], values[name]) for name in loaded)
