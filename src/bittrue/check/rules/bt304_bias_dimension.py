"""quantized_dimension of a tensor of one dimension."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Tensors of one dimension that declare their scales to belong to another one."""
    for graph in subject.graphs:
        readers: dict[int, tuple[Node, int]] = {}
        for node in graph.nodes:
            for position, index in enumerate(node.inputs):
                if index is not None:
                    readers.setdefault(index, (node, position))
        for index, tensor in enumerate(graph.tensors):
            declared = tensor.quantization.declared_axis if tensor.quantization is not None else None
            if declared is not None:
                yield _finding(graph, index, declared, readers.get(index))


def _finding(graph: Graph, index: int, declared: int, reader: tuple[Node, int] | None) -> Finding:
    tensor = graph.tensors[index]
    role = f"input {reader[1]} of {reader[0].source}" if reader is not None else "a tensor that nobody reads"
    return RULE.finding(
        f"quantized_dimension is {declared}, but {role} has shape {list(tensor.shape)} and so no dimension {declared}; "
        "expected 0. LiteRT 2.3 refuses to load the file",
        graph=graph,
        node=reader[0] if reader is not None else None,
        tensor=tensor,
        place="quantized_dimension",
        expected=0,
        found=declared,
        advice="set quantized_dimension of this tensor to 0 with the schema's classes; kernels never read it for a "
        "bias, so no bit changes",
        numbers={"tensor": index},
    )


RULE = Rule(
    code="BT304",
    name="bias-dimension",
    severity="error",
    what="The dimension that the scales of a tensor belong to exists: for a bias, which has one dimension, "
    "quantized_dimension is 0.",
    why="Converters of 2019 to 2021 copied quantized_dimension from the weights (3 for a depthwise convolution) to the "
    "bias. Newer runtimes check it when a model is loaded.",
    enforced="LiteRT 2.3 refuses to load such a file (ValueError; run); older ones, TFLM and bittrue take it: no "
    "kernel reads the dimension of a bias, and with it corrected every tensor has the same bits (run).",
    fix="Write the file again with quantized_dimension = 0 on its tensors of one dimension (schema_py_generated: "
    "tensor.quantization.quantizedDimension = 0), or convert it with a current converter.",
    source="LiteRT 2.3.0 (run, tflm_person_detect); schema of TFLite (read); " + SOURCE,
    find=find,
    formats=("tflite",),
)
