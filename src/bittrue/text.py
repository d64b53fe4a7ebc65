"""The printable form of a model file: what comes in, what goes out, which operators, which quantization."""

from __future__ import annotations

from collections import Counter

from .graph import Graph, ModelFile, Tensor
from .visible import visible

# Files of these formats say the shapes of weights and inputs at most.
_WITHOUT_SHAPES = frozenset(("caffe", "caffe2", "mxnet"))


def shown_shapes(graph: Graph, file_format: str) -> list[str]:
    """The shape of every tensor as the file says it; "?" where it says none."""
    silent: set[int] = set()
    if file_format in _WITHOUT_SHAPES:
        # An input of one open dimension may be of any rank.
        silent.update(i for i in graph.inputs if graph.tensors[i].shape_signature == (-1,))
        silent.update(i for node in graph.nodes for i in node.outputs if not graph.tensors[i].shape)
    elif file_format == "onnx":
        silent.update(i for i, tensor in enumerate(graph.tensors) if tensor.is_unranked and not tensor.is_constant)
    return ["?" if index in silent else _shape(tensor) for index, tensor in enumerate(graph.tensors)]


def _shape(tensor: Tensor) -> str:
    """Sizes; of those that are open the names that the file gives them, or "?"."""
    shape = tensor.shape_signature or tensor.shape
    names = tensor.symbols or ("",) * len(shape)
    told = (visible(name) or "?" if size == -1 else str(size) for size, name in zip(shape, names, strict=True))
    return f"[{', '.join(told)}]"


def tensor_line(tensor: Tensor, shape: str) -> str:
    """Name, type, shape and quantization of one tensor on one line."""
    quantization = f"  {tensor.quantization}" if tensor.quantization is not None else ""
    return f"{tensor.name}  {tensor.type.title}{'' if shape.startswith('[') else ' '}{shape}{quantization}"


def graph_lines(graph: Graph, file_format: str) -> list[str]:
    """Inputs, outputs and the operator census of one graph."""
    lines, shapes = [], shown_shapes(graph, file_format)
    aliases = {index: name for name, index in graph.aliases.items()}
    for title, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            alias = f"  (signature name '{aliases[index]}')" if index in aliases else ""
            lines.append(f"  {title:7} {tensor_line(graph.tensors[index], shapes[index])}{alias}")
    census = Counter(
        (node.source, ", ".join("-" if i is None else graph.tensors[i].type.title for i in node.inputs))
        for node in graph.nodes
    )
    lines.append(f"  {len(graph.nodes)} operators:")
    lines += [f"    {count:4} x {source} ({types})" for (source, types), count in census.most_common()]
    weights = sum(t.data.nbytes for t in graph.tensors if t.data is not None)
    lines.append(f"  {len(graph.tensors)} tensors, {weights:,} bytes of constants")
    return lines


def model_text(file: ModelFile) -> str:
    """What `print(model)` shows."""
    producer = f", {file.producer}" if file.producer else ""
    lines = [f"{file.format} model, {file.size:,} bytes{producer}"]
    for position, graph in enumerate(file.graphs):
        signature = f", signature '{graph.signature}'" if graph.signature else ""
        lines.append(f"graph {position} '{graph.name}'{signature}")
        lines += graph_lines(graph, file.format)
    lines += [f"note: {note}" for note in file.notes]
    return "\n".join(map(visible, lines))
