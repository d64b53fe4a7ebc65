"""Mappings of what networks with several streams of features have: gates, normalizations of branches, hashed groups of
tokens.
"""

from __future__ import annotations

from ...graph import Attribute
from .base import CAST, MICROSOFT, PLAIN, Mappers, Parts, Source

# A position that no operator has.
_ABSENT = 1 << 10


def _reduced_streams(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "branches": source.integer("num_branches", 0),
        "scale": source.real("reduction_scale", 1.0),
    }
    source.emit("reduce_streams", source.type(0), attributes)


def _mixed_streams(source: Source) -> None:
    source.emit("mix_streams", source.type(0), {"branches": source.integer("num_branches", 0)})


def _scaled_silu(source: Source) -> None:
    """z sigmoid(z), z the input times a number; each of the three is rounded to the input's type."""
    parts, dtype, alpha = Parts(source), source.type(0), source.real("alpha", 1.0)
    scale = source.inputs[1] if source.present(1) else parts.number(alpha, "alpha")

    scaled = parts.step("mul", "f32", [parts.single(source.inputs[0]), parts.single(scale)], **PLAIN)
    scaled = parts.narrow(scaled, dtype)
    gate = parts.narrow(parts.step("logistic", "f32", [parts.single(scaled)], by_library=True), dtype)
    if dtype == "f32":
        parts.last("mul", dtype, [scaled, gate], source.outputs[0], **PLAIN)
        return
    product = parts.step("mul", "f32", [parts.single(scaled), parts.single(gate)], **PLAIN)
    parts.last("convert", dtype, [product], source.outputs[0], **CAST)


def _branchwise_rms_norm(source: Source) -> None:
    """Rows of every branch. With one row of scales of the input's type this is a simplified layer normalization."""
    parts, dtype, branches = Parts(source), source.type(0), source.integer("num_branches", 0)
    epsilon: dict[str, Attribute] = {"epsilon": source.real("epsilon", 1e-5)}
    x: int | None = source.inputs[0]
    if branches < 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'num_branches' is {branches}")
    if branches:
        lead = parts.sizes(x, 0, -1)
        x = parts.shaped(x, lead, parts.list(branches, -1))
    result = source.outputs[0]
    inside = source.temporary(dtype, "normalized") if branches else result
    scale = None
    if source.present(1):
        # One row for all branches, or one for each.
        scale = parts.shaped(source.inputs[1], parts.list(-1), parts.sizes(x, -1, None))
    if scale is not None and source.type(1) == dtype:
        simple: dict[str, Attribute] = {"axis": -1, "centred": False, "summed": False, "branches": True}
        found = parts.last("layer_normalization", dtype, [x, scale], inside, **simple, **epsilon)
    else:
        row = parts.step("root_mean_square", "f32", [parts.single(x)], **epsilon)
        if scale is not None:
            row = parts.step("mul", "f32", [row, parts.single(scale)], **PLAIN)
        found = parts.last("convert", dtype, [row], inside, **CAST)
    if branches:
        parts.last("reshape", dtype, [found, parts.sizes(source.inputs[0], 0, None)], result, zeros="copied")


def _engram_gate(source: Source) -> None:
    """A value for all streams times the sigmoid of how well each stream's key fits its query, perhaps normalized."""
    parts, dtype = Parts(source), source.type(0)
    epsilon: dict[str, Attribute] = {"epsilon": source.real("epsilon", 1e-5)}
    for position in range(5):
        source.tensor(position)
    keys, queries, values, *scales = (parts.single(index) for index in source.ordered(0, 1, 2, 3, 4, 5))

    def step(operator: str, *inputs: int | None, **attributes: Attribute) -> int:
        return parts.step(operator, "f32", [*inputs], **attributes)

    def mul(*inputs: int | None) -> int:
        return step("mul", *inputs, **PLAIN)

    def added_up(x: int | None, y: int | None) -> int:
        """Products of the numbers of rows, in order: [..., 1]."""
        weights = step("broadcast_to", y, parts.sizes(queries, 0, None), both_ways=True)
        streams = step("expand_dims", x, parts.list(-1))
        return step("reduce_streams", streams, weights, branches=0, scale=1.0, in_fours=dtype == "f32")

    count = step("convert", parts.sizes(queries, -1, None), **CAST)
    least = parts.number(source.real("epsilon", 1e-5), "epsilon")

    def inverse(x: int | None) -> int:
        mean = step("div", added_up(x, x), count, **PLAIN)
        return step("div", parts.number(1, "unit"), step("sqrt", step("add", mean, least, **PLAIN)), **PLAIN)

    fit = added_up(mul(mul(keys, scales[0]), queries), scales[1])
    fit = step("div", mul(mul(fit, inverse(keys)), inverse(queries)), step("sqrt", count), **PLAIN)
    size = step("sqrt", step("maximum", step("abs", fit), parts.number(1e-6, "least")))
    gate = step("logistic", mul(step("sign", fit), size), by_library=True)
    gated = mul(gate, step("expand_dims", values, parts.list(-2)))
    result = parts.last("convert", dtype, [gated], source.outputs[0], **CAST)
    if len(source.outputs) < 2 or not source.outputs[1]:
        return
    if scales[2] is None:
        raise source.invalid("BT-NODE-INPUT", "the normalized result needs its scales")
    # What is rounded already is normalized.
    again = mul(step("root_mean_square", parts.single(result), in_fours=dtype == "f32", **epsilon), scales[2])
    parts.last("convert", dtype, [again], source.outputs[1], **CAST)


def _hashed_groups(source: Source) -> None:
    """Sequences lie side by side in one row, or are rows."""
    packed = source.op_type.startswith("Varlen")
    attributes: dict[str, Attribute] = {
        "size": source.integer("max_ngram_size", 0),
        "heads": source.integer("n_head_per_ngram", 0),
        "missing": source.integer("pad_id", 0),
        "ends": source.flag("reset_on_eos", False, True),
        "states": source.integer("state_update_capacity", 0) if packed else 0,
    }
    for name in ("max_ngram_size", "n_head_per_ngram", "pad_id"):
        if not source.has(name):
            raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is missing")
    order = range(10) if packed else (0, 1, 2, _ABSENT, 3, 4, 5, 6)
    dtype = source.type(0)
    source.emit("hashed_groups", (dtype, dtype, "s32", dtype), attributes, inputs=source.ordered(*order))


MAPPERS: Mappers = {
    (MICROSOFT, "BranchwiseRMSNorm"): _branchwise_rms_norm,
    (MICROSOFT, "EngramGate"): _engram_gate,
    (MICROSOFT, "HyperConnectionPostMix"): _mixed_streams,
    (MICROSOFT, "HyperConnectionPreMix"): _reduced_streams,
    (MICROSOFT, "NGramHashMapping"): _hashed_groups,
    (MICROSOFT, "ScaledSiLU"): _scaled_silu,
    (MICROSOFT, "VarlenNGramHashMapping"): _hashed_groups,
}
