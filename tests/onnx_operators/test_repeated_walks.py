"""Rewriting walks over a graph again only where that can tell something else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.graph import Graph
from bittrue.numerics import find
from bittrue.plan.declared import Declared
from bittrue.rewrites.editing import Editor
from bittrue.rewrites.onnxruntime_optimizer import free_dimensions


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes that walks try for free ones."""
    tried: list[int] = []
    walk = Declared._walk

    def counted(self: Declared, size: int, fits: bool = False) -> object:
        tried.append(size)
        return walk(self, size, fits)

    monkeypatch.setattr(Declared, "_walk", counted)
    return tried


def _graph(shape: tuple[int | str, ...]) -> Graph:
    """Where something is, which is as long as values say, and what is there. The order of axes is a constant, too."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["n"]),
        helper.make_node("Transpose", ["n"], ["t"], perm=[1, 0]),
        helper.make_node("GatherND", ["r", "t"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)] for name, sizes in (("x", shape), ("y", None))
    ]
    model = helper.make_model(helper.make_graph(nodes, "graph", *ends), opset_imports=[helper.make_opsetid("", 17)])
    return bittrue.load(model.SerializeToString()).graph


@pytest.mark.parametrize(("shape", "tried"), [((2, 3), [2]), (("rows", 2), [2, 3])])
def test_other_sizes_tell_nothing_of_what_values_decide(
    sizes: list[int], shape: tuple[int | str, ...], tried: list[int]
) -> None:
    """Of a node that reads what has no shape there is nothing to try, though it reads a size of 2 beside."""
    found = Declared(find("onnxruntime"), 1 << 28, _graph(shape))()
    assert sizes == tried
    assert len(found.shapes) == 3


def test_sizes_are_found_once_until_the_graph_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[object] = []
    walk = free_dimensions._Walk._find

    def counted(self: free_dimensions._Walk) -> object:
        walks.append(self)
        return walk(self)

    monkeypatch.setattr(free_dimensions._Walk, "_find", counted)
    graph = _graph(("rows", 2))
    shapes = Declared(find("onnxruntime"), 1 << 28, graph)
    for editor in (Editor(graph, shapes), Editor(graph, shapes)):
        assert free_dimensions.known_sizes(editor, shapes)(graph.nodes[0].outputs[0]) == ("rows", 2)
        assert free_dimensions.folded_values(editor, shapes)(graph.nodes[0].outputs[0]) is None
    assert len(walks) == 1
    editor.change(graph.nodes[0], operator="hardmax")
    assert free_dimensions.known_sizes(editor, shapes)(graph.nodes[0].outputs[0]) == ("rows", 2)
    assert len(walks) == 2
