"""What one isolated difference does further on, everything else being A's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..api import Session
from ..errors import BittrueError
from ..graph import Graph, data_type
from ..plan import make_plan
from .host import Host
from .result import Downstream, Statistics
from .statistics import Collector

if TYPE_CHECKING:
    from .comparison import Comparison


def amplify(comparison: Comparison, index: int, theirs: Sequence[np.ndarray | None]) -> tuple[Downstream, ...]:
    """A's chain from one tensor on, once with A's value there and once with the isolated difference added to it.

    Args:
        comparison: A's graph and arithmetic are its host.
        index: of the matched tensor.
        theirs: per run B's value of it as A has it; None where A's type does not have it.
    """
    host, pair = comparison.host, comparison.matches[index]
    assert host is not None
    name = pair.a.name
    reached: dict[str, list[int]] = {}
    outputs: dict[str, Collector] = {}
    labels: list[tuple[int, int]] = []
    skipped = 0
    try:
        for run, value in enumerate(theirs):
            ours = _trace(comparison, host, run)
            changed = None if value is None else _changed(comparison, host, index, run, ours[name], value)
            if changed is None:
                skipped += 1
                continue
            behind = _behind(host, name, ours, changed)
            for tensor, result in behind.items():
                counts = reached.setdefault(tensor, [0, 0])
                counts[0] += int((_bytes(result) != _bytes(ours[tensor])).any(axis=-1).sum())
                counts[1] += result.size
            for output in comparison.recordings[0][0].outputs:
                if output in behind or output in ours:
                    before, after = ours[output], changed if output == name else behind.get(output, ours[output])
                    collector = outputs.setdefault(output, Collector(before.shape))
                    collector.add(before, after)
                    if len(labels) == run - skipped and before.ndim and before.shape[-1] == before.size > 1:
                        labels.append((int(before.argmax()), int(after.argmax())))
    except BittrueError as error:
        comparison.note(f"nothing is amplified: {error}")
        return ()
    if skipped:
        comparison.note(f"{skipped} runs are not amplified: A's type does not have B's numbers of '{name}'")
    shares = tuple((tensor, counts[0] / max(counts[1], 1)) for tensor, counts in reached.items())
    found: dict[str, Statistics] = {output: collector.result() for output, collector in outputs.items()}
    return (Downstream(name, shares, found, tuple(labels)),)


def _trace(comparison: Comparison, host: Host, run: int) -> dict[str, np.ndarray]:
    """A's tensors in bittrue's arithmetic."""
    recording = comparison.recordings[run][0]
    inputs = {host.plan.tensors[i].name: recording[host.plan.tensors[i].name].load() for i in host.plan.inputs}
    values = host.session().trace(inputs)
    values.update({t.name: t.value for t in host.plan.tensors if t.value is not None and t.name not in values})
    return values


def _changed(
    comparison: Comparison, host: Host, index: int, run: int, ours: np.ndarray, theirs: np.ndarray
) -> np.ndarray | None:
    """A's value with the isolated difference: B's own value where both had the same inputs there."""
    isolated = comparison.isolated_values(index, run)
    if isolated is None:
        return theirs
    kind = data_type(comparison.matches[index].a.dtype)
    if isolated.tobytes() == ours.tobytes():
        return theirs
    if not kind.is_integer:
        with np.errstate(all="ignore"):
            return np.asarray(ours + (theirs - isolated), ours.dtype)
    wide = np.int64 if kind.numpy.itemsize < 8 else object
    moved = ours.astype(wide) + (theirs.astype(wide) - isolated.astype(wide))
    return np.clip(moved, kind.minimum, kind.maximum).astype(ours.dtype)


def _behind(host: Host, name: str, ours: dict[str, np.ndarray], changed: np.ndarray) -> dict[str, np.ndarray]:
    """Every tensor that depends on `name`, in execution order, computed with `changed` in its place."""
    graph = host.graph
    start = next(i for i, t in enumerate(graph.tensors) if t.name == name)
    touched, nodes = {start}, []
    for node in graph.nodes:
        if touched.intersection(i for i in node.inputs if i is not None) and start not in node.outputs:
            nodes.append(node)
            touched.update(node.outputs)
    if not nodes:
        return {}
    read = dict.fromkeys(i for node in nodes for i in node.inputs if i is not None)
    made = {i for node in nodes for i in node.outputs}
    inputs = tuple(i for i in read if i not in made and not graph.tensors[i].is_constant)
    outputs = tuple(i for node in nodes for i in node.outputs)
    part: Graph = replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs, aliases={}, signature="")
    values = {graph.tensors[i].name: ours[graph.tensors[i].name] for i in inputs}
    values[name] = changed
    plan = make_plan(part, host.numerics, shapes={n: v.shape for n, v in values.items()})
    found = Session(plan).run({plan.tensors[i].name: values[plan.tensors[i].name] for i in plan.inputs})
    return {n: v for n, v in found.items() if n in ours and v.shape == ours[n].shape}


def _bytes(values: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(values).reshape(-1, 1)
    return flat.view(np.uint8)
