"""What rules know of a model beyond its file: its survey under a numerics, made once, and what its tensors can hold."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from ..graph import Graph, Node, data_type
from ..numerics import Numerics
from ..operators import Step
from ..plan import Plan
from ..plan.survey import Survey, survey_graph
from .rule import Subject

_SURVEYS: WeakKeyDictionary[Subject, dict[str, Survey]] = WeakKeyDictionary()

# Results of these hold quantized values of their first input, or the zero point that pads it, and nothing else.
_COPIES = (
    "reshape transpose squeeze expand_dims slice strided_slice gather gather_nd split reverse_v2 tile space_to_depth"
    " depth_to_space batch_to_space_nd flatten max_pool unpack"
).split()
_LONGEST_WAY = 64
# Nodes from the end of a group to the operator that it is about: a quantization, an activation, the operator.
_LONGEST_GROUP = 5


def survey(subject: Subject, numerics: Numerics | None = None) -> Survey:
    """The survey of the main graph under the subject's numerics, or under another one."""
    numerics = numerics or subject.numerics
    made = _SURVEYS.setdefault(subject, {})
    if numerics.name not in made:
        graph = subject.graphs[0]
        # What the file leaves open has sizes that fit, or counts as 1, as far as nobody says more.
        planned = subject.planned
        shapes = {
            tensor.name: planned.tensors[index].shape
            if isinstance(planned, Plan)
            else tuple(max(size, 1) for size in tensor.shape)
            for index, tensor in ((index, graph.tensors[index]) for index in graph.inputs)
            if tensor.is_open or isinstance(planned, Plan)
        }
        made[numerics.name] = survey_graph(graph, numerics, subject.graphs, {**shapes, **subject.shapes})
    return made[numerics.name]


def in_file(subject: Subject, made: Survey, node: Node | Step) -> tuple[Graph, Node | None]:
    """The main graph and the node of the file that a node or step of a survey stands for.

    What leaves a group of nodes keeps its name when rewrites make one of them; the operator that gave the group its
    name is looked for among the nodes before.
    """
    graph = subject.graphs[0]
    if made.graph is graph and 0 <= node.index < len(graph.nodes) and graph.nodes[node.index].index == node.index:
        return graph, graph.nodes[node.index]
    names, written = _of_file(graph)
    outputs = (names.get(made.graph.tensors[i].name) for i in node.outputs)
    last = next((written[i] for i in outputs if i is not None and i in written), None)
    found = last
    for _ in range(_LONGEST_GROUP):
        if found is None or found.source == node.source:
            return graph, found or last
        found = next((written[i] for i in found.inputs[:1] if i is not None and i in written), None)
    return graph, last


_OF_FILES: WeakKeyDictionary[Graph, tuple[dict[str, int], dict[int, Node]]] = WeakKeyDictionary()


def _of_file(graph: Graph) -> tuple[dict[str, int], dict[int, Node]]:
    """Tensors by name, and the node that writes each tensor."""
    if graph not in _OF_FILES:
        names = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
        _OF_FILES[graph] = names, {index: node for node in graph.nodes for index in node.outputs}
    return _OF_FILES[graph]


def code_range(made: Survey, index: int) -> tuple[int, int]:
    """Smallest and largest quantized value that an integer tensor can hold: of its value, of its producer's clamp, or
    of its type.

    It is followed through operators that only copy quantized values.
    """
    producers = _producers(made)
    for _ in range(_LONGEST_WAY):
        value = made.values.get(index)
        if value is not None and value.size:
            return int(value.min()), int(value.max())
        step = producers.get(index)
        if step is not None and step.operator in _COPIES and step.inputs and step.inputs[0] is not None:
            index = step.inputs[0]
            continue
        kind = data_type(made.graph.tensors[index].dtype)
        low, high = kind.minimum, kind.maximum
        if step is not None and "store" in step.rules:
            least, most = step.parameters.get("low"), step.parameters.get("high")
            if isinstance(least, int) and isinstance(most, int) and least <= most:
                return max(low, least), min(high, most)
        return low, high
    kind = data_type(made.graph.tensors[index].dtype)
    return kind.minimum, kind.maximum


_PRODUCERS: WeakKeyDictionary[Survey, dict[int, Step]] = WeakKeyDictionary()


def _producers(made: Survey) -> dict[int, Step]:
    if made not in _PRODUCERS:
        _PRODUCERS[made] = {index: step for step in made.steps for index in step.outputs}
    return _PRODUCERS[made]


def steps_with_sums(made: Survey) -> Iterator[Step]:
    """Steps with a proven bound of their accumulators."""
    return (step for step in made.steps if step.accumulator is not None)
