"""BT509: fused activations that kernels do not carry out."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject

# Their activation belongs to the cell, where kernels do carry it out.
_RECURRENT = ("LSTM", "RNN", "GRU")
_DONE = ("none", "relu", "relu6", "relu_n1_to_1")


def find(subject: Subject) -> Iterator[Finding]:
    """Activations of nodes with integer results that are no clamp, and RELU of SVDF."""
    for graph, node in subject.nodes():
        activation = node.attributes.get("activation", "none")
        output = graph.tensors[node.outputs[0]] if node.outputs else None
        if output is None or not output.type.is_integer or not isinstance(activation, str):
            continue
        known = output.quantization
        if any(word in node.source for word in _RECURRENT):
            continue
        if node.source == "SVDF":
            # The clamp of the type does the same where its smallest quantized value is real zero.
            ignored = activation != "none" and (
                known is None or known.per_axis or int(known.zero_points[0]) > output.type.minimum
            )
        else:
            ignored = activation not in _DONE
        if ignored:
            yield RULE.finding(
                f"the fused activation {activation} of {node.source} is not carried out for {output.type.title}"
                " results",
                graph=graph,
                node=node,
                tensor=output,
                expected=", ".join(_DONE) if node.source != "SVDF" else "an output zero point of -128",
                found=activation,
                advice="write the activation as an operator of its own",
            )


RULE = Rule(
    code="BT509",
    name="ignored-activation",
    severity="error",
    what="Operators with integer results have no fused activation but NONE, RELU, RELU6 and RELU_N1_TO_1, which (but"
    " for recurrent cells) are clamps; SVDF has RELU only with an output zero point of -128.",
    why="TANH and SIGN_BIT would need a table; the kernels clamp to the type instead and say nothing. int8 SVDF asks"
    " for RELU and then stores negative values, too, unless no quantized value is below its zero point.",
    enforced="LiteRT ignores it (run: a fused TANH on ADD changes nothing); XNNPACK does not take the node.",
    fix="Put TANH or LOGISTIC behind the operator.",
    source="LiteRT fact sheet 1.6 and 2.1 (run)",
    find=find,
    formats=("tflite",),
)
