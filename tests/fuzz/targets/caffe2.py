"""Caffe2 nets: predict net and init net, changed through their schema, as text and as bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mutate_netdef
from mutate_onnx import spoil
from oracle import tried_model
from packed import join, split


def seeds(folder: Path) -> Iterable[bytes]:
    """A net of each engine, and one small net per operator of the recorded vectors, with the shapes of their inputs."""
    from test_mutated_netdef import RECORDED, SHAPES, pairs

    from bittrue.conformance.recorded import caffe2_case
    from bittrue.conformance.recorded.vectors import read_vectors

    for predict, init in pairs()[:2]:
        yield join({"predict": predict, "init": init, "shapes": json.dumps(SHAPES).encode()})
    met = set()
    for case in read_vectors(RECORDED).cases:
        if case.operator not in met:
            met.add(case.operator)
            predict_net, init_net = caffe2_case.nets(case)
            shapes = {one.name: list(one.value.shape) for one in case.inputs() if one is not None}
            parts = {"predict": predict_net.SerializeToString(), "init": init_net.SerializeToString()}
            yield join({**parts, "shapes": json.dumps(shapes).encode()})


def change(content: bytes, seed: int) -> bytes:
    """One of the nets; one time in eight as bytes."""
    files = split(content)
    predict, init = files["predict"], files["init"]
    if seed % 8 == 0:
        which = ("predict", "init")[seed // 8 % 2]
        return join({**files, which: spoil(files[which], seed)})
    predict, init = mutate_netdef.change((predict, init), seed)
    return join({**files, "predict": predict, "init": init})


def attempt(content: bytes, folder: Path) -> str:
    files = split(content)
    return tried_model(
        content,
        files.get("predict", b""),
        files.get("init") or None,
        numerics=mutate_netdef.NUMERICS,
        shapes=_shapes(files.get("shapes", b"")),
    )


def _shapes(text: bytes) -> dict[str, Any]:
    """What the caller says, which is no part of what is tested."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {name: shape for name, shape in found.items() if isinstance(shape, list)} if isinstance(found, dict) else {}
