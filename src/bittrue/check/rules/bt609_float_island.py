"""BT609: operators that stay in real numbers inside of a quantized graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..linear import dequantizes, quantizes
from ..onnx_operands import readers, writers
from ..rule import Rule, Subject

_REALS = {"f32", "f16", "bf16"}


def _is_real(graph: Graph, node: Node) -> bool:
    """Computes real numbers from real numbers that are no constants."""
    moving = [graph.tensors[i] for i in node.inputs if i is not None and not graph.tensors[i].is_constant]
    return any(t.dtype in _REALS for t in moving) and any(graph.tensors[i].dtype in _REALS for i in node.outputs)


def _dequantizes_constant(graph: Graph, node: Node) -> bool:
    index = node.inputs[0] if node.inputs else None
    return index is not None and graph.tensors[index].is_constant


def _islands(graph: Graph) -> Iterator[tuple[list[Node], list[Node], list[Node]]]:
    """Connected operators in real numbers, the DEQUANTIZE operators before and the QUANTIZE operators behind them."""
    written, read = writers(graph), readers(graph)
    real = {node.index: node for node in graph.nodes if not dequantizes(node) and _is_real(graph, node)}
    seen: set[int] = set()
    for start in real.values():
        if start.index in seen:
            continue
        seen.add(start.index)
        island, todo = [], [start]
        before: dict[int, Node] = {}
        behind: dict[int, Node] = {}
        while todo:
            node = todo.pop()
            island.append(node)
            sources = [written[i] for i in node.inputs if i is not None and i in written]
            targets = [reader for i in node.outputs for reader in read.get(i, ())]
            before.update({n.index: n for n in sources if dequantizes(n)})
            behind.update({n.index: n for n in targets if quantizes(n)})
            for near in (*sources, *targets):
                if near.index in real and near.index not in seen:
                    seen.add(near.index)
                    todo.append(near)
        # Constants that are dequantized are weights kept small in the file.
        before = {k: n for k, n in before.items() if not _dequantizes_constant(graph, n)}
        yield sorted(island, key=lambda n: n.index), list(before.values()), list(behind.values())


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    for graph in subject.graphs:
        for island, before, behind in _islands(graph):
            if not before:
                continue
            counts = Counter(node.source for node in island)
            shown = ", ".join(f"{count} {source}" for source, count in counts.most_common(6))
            inside = bool(behind)
            yield RULE.finding(
                f"{len(island)} operators compute in real numbers"
                + (" between DEQUANTIZE and QUANTIZE" if inside else " behind DEQUANTIZE at the end of the graph")
                + f": {shown}",
                graph=graph,
                node=island[0],
                severity="warning" if inside else "note",
                expected="integers",
                found=graph.tensors[island[0].outputs[0]].dtype,
                advice="use an operator that the converter can quantize, or accept that integer-only devices cannot"
                " run this",
                numbers={"operators": len(island), "first": island[0].index, "last": island[-1].index},
            )


RULE = Rule(
    "BT609",
    "float-island",
    "warning",
    what="A quantized graph has no operators in real numbers between DEQUANTIZE and QUANTIZE. A note where real numbers"
    " follow DEQUANTIZE only at the end of the graph.",
    why="Integer-only accelerators and microcontrollers without these kernels cannot run the model, or hand it back to"
    " the processor twice. Real arithmetic is not the same on every machine: libraries, vector lengths and fused"
    " multiply-adds change the last bit, which the QUANTIZE behind may turn into a quantized value.",
    enforced="Nobody refuses it on processors. Edge TPU and Ethos-U compilers leave the rest of the graph to the"
    " processor.",
    fix="The converter leaves operators in real numbers that have no 8-bit form (ELU, CAST, ...) or whose statistics"
    " it has not seen. Replace them (RELU for ELU), or set supported_ops to TFLITE_BUILTINS_INT8 so that it fails"
    " early.",
    find=find,
    source="LiteRT fact sheet section 3, 'float islands' (run with the TensorFlow 2.21 converter)",
    formats=("tflite",),
)
