"""BT601: sums of products that do not fit into the 32 bits of their accumulator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers
from ..surveys import in_file, steps_with_sums, survey

S32_MAX = 2**31 - 1
_REGISTERS = {"s32_wrap", "s16_pairs_s32_wrap"}


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    looked = set()
    for layer in layers(made):
        looked.add(layer.step.index)
        if layer.step.rules["accumulate"] not in _REGISTERS:
            continue
        least, most = layer.reached
        wrong = (most > S32_MAX) | (least < -S32_MAX - 1)
        if not wrong.any():
            continue
        beyond = np.maximum(most - S32_MAX, -S32_MAX - 1 - least)
        channel = int(np.argmax(beyond))
        high = bool(most[channel] - S32_MAX >= -S32_MAX - 1 - least[channel])
        total = int((most if high else least)[channel])
        held = (total + 2**31) % 2**32 - 2**31
        graph, node = in_file(subject, made, layer.step)
        source = made.graph.tensors[layer.input]
        from_outside = layer.input in made.graph.inputs
        where = "the model's input" if from_outside else f"quantized values that '{source.name}' can hold"
        yield RULE.finding(
            f"{int(wrong.sum())} of {layer.channels} channels can leave 32 bits: channel {channel} sums up to {total},"
            f" which wraps to {held}, for {where} ({layer.pattern(channel, high)})",
            graph=graph,
            node=node,
            tensor=made.graph.tensors[layer.step.outputs[0]],
            severity="error" if from_outside else "warning",
            place=f"channel {channel}",
            expected=f"-2147483648 to {S32_MAX}",
            found=total,
            advice="quantize the bias or the weights of this channel again: a bias this large usually means that its"
            " weight scale is far too small"
            if abs(int(layer.bias[channel])) > abs(total) // 2
            else "split the sum: fewer channels or taps in this layer, or smaller weights",
            numbers={
                "channel": channel,
                "channels": int(wrong.sum()),
                "accumulator": total,
                "wraps_to": held,
                "bias": int(layer.bias[channel]),
                "taps": int(layer.rows.shape[1]),
                "end": "high" if high else "low",
            },
        )
    for step in steps_with_sums(made):
        if step.index in looked or step.accumulator is None or not step.accumulator.wraps:
            continue
        graph, node = in_file(subject, made, step)
        yield RULE.finding(
            f"the bound of the accumulator, {step.accumulator.magnitude}, does not fit into its register; whether an"
            f" input reaches it is not known for {step.source}",
            graph=graph,
            node=node,
            tensor=made.graph.tensors[step.outputs[0]],
            severity="note",
            expected=f"-2147483648 to {S32_MAX}",
            found=step.accumulator.magnitude,
            advice="quantize the bias or the weights again",
            numbers={"magnitude": step.accumulator.magnitude},
        )


RULE = Rule(
    "BT601",
    "accumulator-overflow",
    "warning",
    what="The accumulator of every output channel, sum over taps of (q - z) * w + bias, stays within 32 bits for every"
    " input of the layer: -2^31 <= acc <= 2^31 - 1. It is proven with the model's own weights: each tap takes the end"
    " of the range of quantized values that drives the sum further. The quantized values are those of the input's"
    " type, narrowed by the clamp of the operator before; the position in the image is the one with the most taps"
    " inside. An input that reaches the sum is named, so the finding is no estimate. For other operators that add"
    " products (transposed convolutions, products of two computed tensors, recurrent cells) a note says so when their"
    " bound leaves the register.",
    why="The accumulator wraps around: one unit too much turns the largest positive sum into the smallest negative one,"
    " and the layer's output jumps from one end to the other. Random tests hardly ever find it.",
    enforced="Nobody checks it. LiteRT's reference and optimised kernels, XNNPACK, ONNX Runtime and CMSIS-NN wrap"
    " modulo 2^32 (fact sheet LiteRT 1.3, run: a bias of 2^31 - 1 plus a positive sum changes sign); C compilers may"
    " take it for undefined. Hardware with narrower or saturating accumulators differs from all of them.",
    fix="Quantize again. With 8-bit weights and activations it takes more than 65 000 taps, or a bias that is far"
    " larger than any sum of products: weights near zero give a tiny scale, and bias / (input scale * weight scale)"
    " explodes. Give such channels a larger weight scale, or fold the constant channel away (BT607). Integer biases of"
    " 16-bit activations should be 64-bit. It is an error when the layer reads the model's input, since that can hold"
    " anything, and a warning elsewhere, since the layers before might never produce the quantized values.",
    find=find,
    source="LiteRT 2.3.0 (run); tests/check/test_hazards.py runs the witness and sees the wrap",
)
