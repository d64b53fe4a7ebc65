"""BT504: operators outside of the specification that copy quantized values and ignore parameters."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Node
from ..finding import Finding
from ..rule import Rule, Subject

# Operator -> positions of the inputs whose values become the outputs'. Those that the 8-bit specification names are
# BT305's.
COPIES: dict[str, tuple[int, ...]] = {
    "BROADCAST_TO": (0,),
    "DEPTH_TO_SPACE": (0,),
    "DYNAMIC_UPDATE_SLICE": (0, 1),
    "GATHER_ND": (0,),
    "RESIZE_NEAREST_NEIGHBOR": (0,),
    "REVERSE_SEQUENCE": (0,),
    "REVERSE_V2": (0,),
    "SELECT": (1, 2),
    "SELECT_V2": (1, 2),
    "SPLIT": (0,),
    "SPLIT_V": (0,),
    "STRIDED_SLICE": (0,),
    "TILE": (0,),
    "TOPK_V2": (0,),
    "WHERE": (1, 2),
}
_FAILING = {"SPLIT", "STRIDED_SLICE", "DEPTH_TO_SPACE"}


def _outputs(node: Node) -> tuple[int, ...]:
    # The second result of TOPK_V2 holds positions.
    return node.outputs[:1] if node.source == "TOPK_V2" else node.outputs


def find(subject: Subject) -> Iterator[Finding]:
    """Each input whose parameters are not those of an output that its quantized values go to."""
    for graph, node in subject.nodes(*COPIES):
        for position in COPIES[node.source]:
            index = node.inputs[position] if position < len(node.inputs) else None
            source = None if index is None else graph.tensors[index]
            if source is None or source.quantization is None or not source.type.is_integer:
                continue
            for target in (graph.tensors[i] for i in _outputs(node)):
                known = target.quantization
                if target.dtype != source.dtype or known is None or source.quantization.same_as(known):
                    continue
                fails = "; XNNPACK fails to load the model" if node.source in _FAILING else ""
                yield RULE.finding(
                    f"{node.source} copies quantized values of '{source.name}' ({source.quantization}) to "
                    f"'{target.name}'"
                    f" ({known}), where they mean other real numbers{fails}",
                    graph=graph,
                    node=node,
                    tensor=target,
                    place=f"input {position}",
                    expected=str(source.quantization),
                    found=str(known),
                    advice="give the output the input's scale and zero point, or requantize with QUANTIZE",
                )
                break


RULE = Rule(
    code="BT504",
    name="copied-values",
    severity="warning",
    what="Operators that only move or choose quantized values give their output the input's scale and zero point: "
    + ", ".join(COPIES)
    + ". The 8-bit specification does not name them (those that it names are BT305's).",
    why="Their kernels copy bytes and look at no parameters. Where output and input differ, every value is multiplied"
    " by the ratio of the scales and moved by the difference of the zero points, without a word.",
    enforced="LiteRT 2.3.0 ignores parameters of these operators (run with different ones: the bytes are the same);"
    " XNNPACK fails to load models with SPLIT, STRIDED_SLICE or DEPTH_TO_SPACE of unequal parameters"
    " (docs/facts/xnnpack.md 1.2, run). PACK, UNPACK, EXPAND_DIMS, MIRROR_PAD and FILL are refused by LiteRT: BT501.",
    fix="Set the output's parameters to the input's, or put a QUANTIZE behind the operator.",
    source="LiteRT fact sheet 2.7 (run); tests/check/test_runtime_rules.py runs each of them",
    find=find,
    formats=("tflite",),
)
