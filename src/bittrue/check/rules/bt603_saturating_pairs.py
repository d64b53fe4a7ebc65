"""BT603: u8 by s8 layers whose results depend on the processor."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan import Plan
from ..finding import Finding
from ..rule import Rule, Subject
from ..saturation import find_saturation
from ..surveys import in_file, survey


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    plan = subject.planned
    if not isinstance(plan, Plan):
        return
    every = find_saturation(plan)
    found = [layer for layer in every if layer.can_saturate]
    if not found:
        return
    known = [layer for layer in found if layer.worst is not None]
    made = survey(subject)
    numbers: dict[str, int | float | str] = {
        "layers": len(found),
        "of": len(every),
        "nodes": ", ".join(f"'{layer.output}'" for layer in found[:16]),
    }
    if not known:
        yield RULE.finding(
            f"{len(found)} of {len(every)} layers multiply u8 by s8 values that are only known at run time: sums of two"
            " neighbouring products can leave 16 bits",
            graph=subject.graphs[0],
            expected="-32768 to 32767",
            advice="quantize one of the factors with one bit less",
            numbers=numbers,
        )
        return
    layer = max(known, key=lambda one: (one.saturable_pairs > 0, one.loss))
    worst = layer.worst
    assert worst is not None
    step = next((s for s in made.steps if layer.output in (made.graph.tensors[i].name for i in s.outputs)), None)
    graph, node = in_file(subject, made, step) if step is not None else (subject.graphs[0], None)
    yield RULE.finding(
        f"{len(found)} of {len(every)} layers of u8 by s8 values can saturate on processors without VNNI, the worst one"
        f" gives '{layer.output}': {layer.saturable_channels} of {layer.channels} channels, {layer.saturable_pairs} of"
        f" {layer.pairs} pairs of neighbouring products; weights {worst.quantized[0]} and {worst.quantized[1]}"
        f" of channel {worst.channel} reach {worst.total}; a sum loses up to {layer.loss}",
        graph=graph,
        node=node,
        place=f"channel {worst.channel}",
        expected="-32768 to 32767",
        found=worst.total,
        advice="quantize the weights to [-64, 63] (reduce_range=True) or the activations to s8",
        numbers={
            **numbers,
            "channel": worst.channel,
            "first_weight": worst.quantized[0],
            "second_weight": worst.quantized[1],
            "low": layer.low,
            "high": layer.high,
            "total": worst.total,
            "pairs": layer.saturable_pairs,
            "loss": layer.loss,
        },
    )


RULE = Rule(
    "BT603",
    "saturating-pairs",
    "warning",
    what="In layers of u8 activations and s8 weights no two neighbouring products add up to more than 16 bits hold:"
    " -32768 <= x0 * w0 + x1 * w1 <= 32767 for all quantized values x that the input can hold. Weights within [-64, "
    "63] always"
    " pass: 255 * 128 = 32640. One warning per model, for the layer that can lose most.",
    why="On x86 processors without VNNI (before Ice Lake, Zen 4) ONNX Runtime multiplies with VPMADDUBSW, which clamps"
    " each sum of two products to 16 bits. The same model gives other bits, and at times another label, on another"
    " machine; tests on a new server do not show it.",
    enforced="Nobody refuses it. ONNX Runtime 1.31 clamps without a word on AVX2 and on AVX-512 without VNNI, and is"
    " exact with VNNI and on Arm (run under an emulated processor: docs/facts/onnxruntime.md, numerics"
    " onnxruntime-avx2). LiteRT and XNNPACK use s8 activations or widen first and are not concerned.",
    fix="Quantize weights with one bit less (reduce_range=True in onnxruntime.quantization), or activations as s8, or"
    " run"
    ' on processors with VNNI only. `numerics="onnxruntime-avx2"` shows what the old processors compute.',
    find=find,
    source="ONNX Runtime 1.31.1 (run); its documentation of quantization, section 'U8S8 saturation' (read)",
    formats=("onnx",),
)
