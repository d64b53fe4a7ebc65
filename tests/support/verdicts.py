"""One segment of a model, and the verdict on what a device made of its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

import bittrue
from bittrue import numerics
from bittrue.compare.result import Verdict
from bittrue.compare.segments import Segment, segments
from bittrue.compare.verdict import Explainer
from bittrue.plan.declared import rewritten_graph

Values = dict[str, np.ndarray]


def segment_of(content: bytes, name: str = "litert") -> tuple[Segment, list[Any]]:
    """The only segment of a one-operator model, and its inputs."""
    own = numerics.find(name)
    model = bittrue.load(content)
    session = model.prepare(name)
    graph, _ = rewritten_graph(model.graph, own)
    names = [session.plan.tensors[i].name for i in session.plan.results]
    (part,) = segments(graph, session.plan, own, names)
    return part, session.inputs


def random_inputs(ports: list[Any], seed: int, sets: int = 1) -> list[Values]:
    rng = np.random.default_rng(seed)
    return [
        {p.name: rng.integers(np.iinfo(p.dtype).min, np.iinfo(p.dtype).max + 1, p.shape).astype(p.dtype) for p in ports}
        for _ in range(sets)
    ]


def verdict(part: Segment, values: list[Values], theirs: list[np.ndarray], other: str = "") -> Verdict:
    explainer = Explainer(part.numerics, numerics.find(other) if other else None)
    return explainer.explain(part, values, theirs, "bittrue explain m.tflite")
