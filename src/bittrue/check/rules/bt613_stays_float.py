"""BT613: ONNX operators between quantizations that ONNX Runtime does not fuse into integer ones."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject
from ..surveys import survey

_NOTE = "stays float: "


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    for note in made.notes:
        if not note.startswith(_NOTE):
            continue
        for part in note[len(_NOTE) :].split("), "):
            text = part if part.endswith(")") else part + ")"
            yield RULE.finding(
                f"between quantizations, but computed in real numbers: {text}",
                graph=subject.graphs[0],
                expected="an integer operator",
                found="real numbers",
                advice="leave the quantizations around it out, or quantize it as its integer kernel asks for",
                numbers={"operators": int(text.split(" ", 1)[0])},
            )


RULE = Rule(
    "BT613",
    "stays-float",
    "note",
    what="Every operator between DequantizeLinear and QuantizeLinear becomes an operator on integers when the runtime"
    " prepares the graph. What does not is counted by operator, with the reason.",
    why="The operator runs in binary32 between a dequantization and a quantization: slower than in a float model, and"
    " its last bits depend on the processor. Integer-only devices cannot run it.",
    enforced="ONNX Runtime 1.31 says nothing; its optimised graph (SessionOptions.optimized_model_filepath) shows it."
    " The reasons are those of its selectors: types without kernels (16 bits), scales that differ across an operator"
    " that only moves data, biases that are not input scale * weight scale, parameters that are no constants.",
    fix="For 'no integer kernel' nothing can be done but another operator. For the others fix the parameters: the"
    " reason names what is missing.",
    find=find,
    source="docs/facts/onnxruntime.md section 4; tests/onnx_operators/test_fusion.py holds it against the runtime"
    " (run)",
    formats=("onnx",),
)
