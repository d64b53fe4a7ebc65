"""Mutated Caffe2 networks: typed errors or results only; no crash, no more than 5 s and 1 GiB."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.conformance.recorded import caffe2_case
from bittrue.conformance.recorded.vectors import read_vectors
from bittrue.importers.caffe2 import read_caffe2
from support.caffe2_nets import classifier

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
from mutate_netdef import Pair
from packed import join
from targets import caffe2
from watch import changes, seeds

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "caffe2"
SHAPES = {"data": (1, 8, 8, 3)}


def pairs() -> list[Pair]:
    """A net of each engine, and one small net per operator of the recorded vectors."""
    found = []
    for engine in ("", "DNNLOWP"):
        predict, init = classifier(engine)
        found.append((predict.SerializeToString(), init.SerializeToString()))
    seen = set()
    for case in read_vectors(RECORDED).cases:
        if case.operator not in seen:
            seen.add(case.operator)
            predict, init = caffe2_case.nets(case)
            found.append((predict.SerializeToString(), init.SerializeToString()))
    return found


def test_mutations(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    for pair in pairs()[:2]:
        bittrue.load(*pair).prepare(shapes=SHAPES)
    shapes = json.dumps(SHAPES).encode()
    contents = [join({"predict": predict, "init": init, "shapes": shapes}) for predict, init in pairs()]
    tried = seeds(request, 375, 60_000)
    result = changes(caffe2.change, caffe2.attempt, contents, tried, tmp_path)
    counts = result["counts"]
    kinds = len([outcome for outcome in counts if outcome.startswith("BT-")])
    record_property(
        "mutated",
        f"{len(contents)} Caffe2 networks: {len(tried)} files, {counts['result']} results, errors of {kinds} kinds, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 20
    assert kinds > 15


def test_every_truncation() -> None:
    predict, init = (net.SerializeToString() for net in classifier())
    codes: dict[str, int] = {}
    for which, content in enumerate((predict, init)):
        for length in range(0, len(content), 1 + 4 * which):
            parts = [predict, init]
            parts[which] = content[:length]
            try:
                read_caffe2(*(np.frombuffer(part, np.uint8) for part in parts))
            except bittrue.BittrueError as error:
                codes[error.code] = codes.get(error.code, 0) + 1
    assert codes["BT-PROTOBUF-FORMAT"] > 500
    assert len(codes) > 2
