"""BT606: scales that are no positive numbers, or so small or large that nothing useful is left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...graph import Graph, Tensor
from ..finding import Finding
from ..onnx_operands import scale_operands
from ..rule import Rule, Subject

# The real values that all quantized values of a tensor of up to 16 bits span.
NARROWEST, WIDEST = 1e-9, 1e9
_TINY = float(np.finfo(np.float32).tiny)


def _constant_zero(tensor: Tensor, scales: np.ndarray) -> np.ndarray:
    """Which slices hold nothing but the zero point: their scale means nothing."""
    quantization = tensor.quantization
    if quantization is None or not tensor.is_constant:
        return np.zeros(scales.size, bool)
    quantized = tensor.values()
    axis = quantization.axis
    if axis is not None and axis < quantized.ndim and quantized.shape[axis] == scales.size and scales.size > 1:
        rows = np.moveaxis(quantized, axis, 0).reshape(scales.size, -1)
    elif scales.size == 1:
        rows = quantized.reshape(1, -1)
    else:
        return np.zeros(scales.size, bool)
    return np.asarray((rows == quantization.zero_points.reshape(-1)[:, None]).all(axis=1))


def _problem(scale: float, span: int, looked: bool) -> tuple[str, str]:
    """Severity and words; empty for a scale that is fine."""
    if not np.isfinite(scale) or scale <= 0:
        return "error", "a scale is a positive finite number"
    if scale < _TINY:
        return "warning", "it is a subnormal number, which runtimes that flush them take for 0"
    if looked and span and scale * span < NARROWEST:
        return "warning", f"all quantized values together span {scale * span:.3g}, less than {NARROWEST:g}"
    if looked and span and scale * span > WIDEST:
        return "warning", f"all quantized values together span {scale * span:.3g}, more than {WIDEST:g}"
    return "", ""


def _judged(graph: Graph, tensor: Tensor, scales: np.ndarray, span: int, idle: np.ndarray) -> Iterator[Finding]:
    words: dict[tuple[str, str], list[int]] = {}
    for number, scale in enumerate(scales.reshape(-1).astype(np.float64)):
        severity, _ = found = _problem(float(scale), span, not idle[number])
        if severity and not (idle[number] and np.isfinite(scale) and scale >= 0):
            words.setdefault((severity, "" if severity == "warning" and "span" in found[1] else found[1]), []).append(
                number
            )
    for (severity, _), numbers in words.items():
        first = numbers[0]
        value = float(scales.reshape(-1)[first])
        several = f" ({len(numbers)} of {scales.size} scales)" if scales.size > 1 else ""
        yield RULE.finding(
            f"scale {value!r} of '{tensor.name}'{several}: {_problem(value, span, True)[1]}",
            graph=graph,
            tensor=tensor,
            severity=severity,
            place=f"scale {first}" if scales.size > 1 else "",
            expected="a positive finite number of ordinary size",
            found=repr(value),
            advice="calibrate with real data: such a scale comes from a tensor that was always zero, or from an"
            " overflow",
            numbers={"scales": len(numbers), "first": first},
        )


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    for graph in subject.graphs:
        for tensor in graph.tensors:
            quantization = tensor.quantization
            if quantization is not None and tensor.type.is_integer:
                narrow = tensor.type.bits <= 16
                span = tensor.type.maximum - tensor.type.minimum if narrow else 0
                idle = _constant_zero(tensor, quantization.scales)
                yield from _judged(graph, tensor, quantization.scales, span, idle)
    seen = set()
    for graph, scale, span in scale_operands(subject):
        if scale.name not in seen:
            seen.add(scale.name)
            values = np.asarray(scale.values())
            if values.dtype.kind == "f":
                yield from _judged(graph, scale, values, span, np.zeros(values.size, bool))


RULE = Rule(
    "BT606",
    "degenerate-scale",
    "error",
    what="Scales are positive finite binary32 numbers. A warning for subnormal ones (below 1.18e-38) and for tensors"
    " of up to 16 bits whose quantized values span less than 1e-9 or more than 1e9 altogether. Scales of slices whose"
    " quantized values are all zero mean nothing and are left out, unless they are negative or not finite.",
    why="Zero, negative and non-finite scales have no meaning: multipliers become zero, infinite or NaN, and what an"
    " integer conversion makes of those differs between processors. Ranges as extreme as these come from tensors that"
    " were constant while calibrating; everything that real data brings saturates or vanishes.",
    enforced="bittrue refuses .tflite files with such scales when it reads them (BT-QUANT-SCALE). LiteRT's builder"
    " takes any scale; its multiplier encoding turns 0 into 0 and aborts or is undefined for NaN. XNNPACK refuses"
    " zero, subnormal and non-finite scales and with them the whole model (docs/facts/xnnpack.md 1.2, run). ONNX"
    " Runtime divides by whatever it finds: 0 gives infinities that saturate (run).",
    fix="Calibrate again with data that moves the tensor. A tensor that really is constant needs scale 1 and any zero"
    " point, or should be folded away.",
    find=find,
    source="docs/facts/litert.md 1.1, docs/facts/xnnpack.md 1.2 (run)",
)
