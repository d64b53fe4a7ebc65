"""Quantized models from end to end: the graph, every exact node and the outputs are ONNX Runtime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.numerics import find
from bittrue.plan.declared import Declared
from bittrue.rewrites.onnxruntime_optimizer.fuse_quantized import rewrite
from support.float_models import MODELS, forms, quantize
from support.fused_models import Tally, all_values, compare_outputs, compare_steps, optimised, structure
from support.native import check_native
from support.onnx_models import HERE, run_runtime

# Models of which every node has exact bits in forms with integers throughout.
_EXACT = ("branches",)


@pytest.mark.in_turns(6)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", forms())
def test_quantized_model(name: str, form: str, tmp_path: Path) -> None:
    content = quantize(MODELS[name](np.random.default_rng(0)), forms()[form], tmp_path)
    graph = bittrue.load(content).graph
    feeds = [np.random.default_rng(2).standard_normal(graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]
    model = optimised(content)
    ours = rewrite(graph, Declared(find("onnxruntime"), 1 << 28, graph))[0]
    if not form.startswith("dynamic"):
        assert structure(ours) == structure(bittrue.load(model).graph)
    session = bittrue.load(content).prepare(HERE, executor="reference")
    names = [graph.tensors[i].name for i in graph.inputs]
    tally, theirs = Tally(), run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    # Fused dynamic products give the bits of their parts, which only the file's own graph has.
    parts = all_values(content, feeds) if form.startswith("dynamic") else {}
    values = {**parts, **all_values(model, feeds)}
    compare_steps(session, {**values, **dict(zip(names, feeds, strict=True))}, tally)
    assert tally.tensors > 2
    exact = compare_outputs(session, feeds, theirs)
    if name in _EXACT and not form.startswith("dynamic") and "16" not in form:
        assert tally.inexact == 0
        assert exact == 1
    check_native(session, [feeds], session.trace(*feeds))


@pytest.mark.parametrize(
    ("name", "form", "note"),
    [
        ("branches", "pairs_u8s8", ""),
        ("branches", "pairs_symmetric", "4 Relu (its quantization does not cover it)"),
        ("dense", "pairs_u16", "Gemm (there is no integer kernel for u16)"),
        ("attention", "pairs_u8s8", "2 LayerNormalization (no integer kernel)"),
    ],
)
def test_plans_say_what_stays_float(name: str, form: str, note: str, tmp_path: Path) -> None:
    content = quantize(MODELS[name](np.random.default_rng(0)), forms()[form], tmp_path)
    notes = bittrue.load(content).prepare(HERE, executor="reference").plan.notes
    if note:
        assert any(text.startswith("stays float: ") and note in text for text in notes)
    else:
        assert not notes
