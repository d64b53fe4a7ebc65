"""Mappings of reductions and normalizations of real numbers."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, Mapper, Mappers, Source

# Version from which the axes of a reduction are an operand.
_OPERAND = {"ReduceSum": 13}


def _reduce(stem: str, **functions: Attribute) -> Mapper:
    def apply(source: Source) -> None:
        operand = source.version >= _OPERAND.get(source.op_type, 18)
        attributes: dict[str, Attribute] = {
            "keep_dims": source.flag("keepdims", True, False),
            "keeps_without_axes": False,
            **functions,
        }
        inputs = list(source.inputs)
        if operand:
            attributes["keeps_without_axes"] = source.flag("noop_with_empty_axes", False, False)
        else:
            axes = source.integers("axes")
            inputs = inputs[:1] + ([source.constant(np.array(axes, np.int64), "axes")] if axes else [])
        source.emit(stem, source.type(0), attributes, inputs=inputs)

    return apply


def _batch_normalization(source: Source) -> None:
    """Older versions train where they have further outputs."""
    training, momentum = source.integer("training_mode", 0) == 1, source.real("momentum", 0.9)
    if source.version < 14:
        training = len(source.outputs) > 1
    dtype, inputs = source.type(0), list(source.inputs)
    epsilon: dict[str, Attribute] = {"epsilon": source.real("epsilon", 1e-5)}
    flat_samples = source.version < 9 and source.integer("spatial", 1) != 1
    if training:
        if len(source.outputs) != (5 if source.version < 14 else 3) or flat_samples:
            raise source.invalid("BT-NODE-ARITY", f"{len(source.outputs)} outputs do not fit training of this version")
        source.emit("batch_training", dtype, {**epsilon, "momentum": momentum})
        return
    if flat_samples:
        # Every element of a sample is a channel.
        def flat(position: int, axis: int) -> int:
            name = source.temporary(dtype, f"flat{position}")
            return source.emit("flatten", dtype, {"axis": axis}, inputs=[inputs[position]], outputs=[name])[0]

        all_of = source.constant(np.array([-1], np.int64), "all")
        parts = [flat(0, 1)]
        for position in range(1, len(inputs)):
            part, name = flat(position, 0), source.temporary(dtype, f"row{position}")
            parts += source.emit("reshape", dtype, {"zeros": "copied"}, inputs=[part, all_of], outputs=[name])
        outputs = [source.temporary(dtype, "normalized")]
        normalized = source.emit("batch_normalization", dtype, epsilon, inputs=parts, outputs=outputs)
        sizes = [source.temporary("s64", "shape")]
        shape = source.emit("shape", "s64", {"of": "dimensions"}, inputs=inputs[:1], outputs=sizes)
        source.emit("reshape", dtype, {"zeros": "copied"}, inputs=[*normalized, *shape], outputs=source.outputs[:1])
        return
    source.emit("batch_normalization", dtype, epsilon, outputs=source.outputs[:1])


def _layer_normalization(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "axis": source.integer("axis", -1),
        "epsilon": source.real("epsilon", 1e-5),
        "centred": source.op_type == "LayerNormalization",
        "summed": False,
    }
    outputs, stash = source.outputs, source.integer("stash_type", 1)
    if stash != 1:
        # It is also the type of the further outputs.
        if any(outputs[1:]):
            raise source.unsupported("BT-ONNX-ATTRIBUTE", "only stash_type 1 (binary32) is read with further outputs")
        attributes["stash_type"] = stash
    dtype = source.type(0)
    if source.op_type == "SimplifiedLayerNormalization":
        # No mean is taken away, and none is given. The result has the type of the scale.
        outputs = [outputs[0], "", *outputs[1:]]
        attributes["of_two_types"] = dtype != source.type(1)
        dtype = source.type(1)
    source.emit("layer_normalization", [dtype, "f32", "f32"], attributes, outputs=outputs)


def _instance_normalization(source: Source) -> None:
    attributes: dict[str, Attribute] = {"epsilon": source.real("epsilon", 1e-5), "per_group": False}
    source.emit("group_normalization", source.type(0), attributes)


def _group_normalization(source: Source) -> None:
    if source.integer("stash_type", 1) != 1:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "only stash_type 1 (binary32) is read")
    attributes: dict[str, Attribute] = {
        "groups": source.integer("num_groups", 0),
        "epsilon": source.real("epsilon", 1e-5),
        "per_group": source.version < 21,
    }
    source.emit("group_normalization", source.type(0), attributes)


def _skip_layer_normalization(source: Source) -> None:
    """Sum of input, skip and bias, normalized over the last axis. Outputs: result, mean, inverse deviation, the sum."""
    dtype, epsilon = source.type(0), source.real("epsilon", 1e-12)
    if not epsilon >= 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"epsilon must not be negative, found {epsilon}")
    simplified = source.op_type == "SkipSimplifiedLayerNormalization"
    names = (source.outputs + [""] * 4)[:4]
    bias = 3 if simplified else 4
    total = names[3] or source.temporary(dtype, "sum")
    first = source.temporary(dtype, "skipped") if source.present(bias) else total

    def add(left: int | None, right: int | None, result: str, skipped: str) -> int:
        plain: dict[str, Attribute] = {"activation": "none", "skipped": skipped}
        return source.emit("add", dtype, plain, inputs=[left, right], outputs=[result])[0]

    sum_of = add(source.inputs[0], source.inputs[1], first, "sequence")
    if source.present(bias):
        sum_of = add(sum_of, source.inputs[bias], total, "row")
    attributes: dict[str, Attribute] = {
        "axis": -1,
        "epsilon": epsilon,
        "centred": not simplified,
        "summed": True,
    }
    beta = None if simplified or not source.present(3) else source.inputs[3]
    source.emit(
        "layer_normalization",
        [dtype, "f32", "f32"],
        attributes,
        inputs=[sum_of, source.inputs[2], beta],
        outputs=names[:3],
    )


def _lp_normalization(source: Source) -> None:
    source.emit("lp_normalization", source.type(0), {"axis": source.integer("axis", -1), "p": source.integer("p", 2)})


def _lrn(source: Source) -> None:
    size = source.integer("size", 0)
    if size < 1:
        raise source.invalid("BT-NORM-SIZE", f"size is {size}, expected at least 1")
    attributes: dict[str, Attribute] = {
        "before": (size - 1) // 2,
        "after": size // 2,
        "divisor": size,
        "channels_last": False,
        "alpha": source.real("alpha", 0.0001),
        "beta": source.real("beta", 0.75),
        "bias": source.real("bias", 1.0),
    }
    source.emit("local_response_normalization", source.type(0), attributes)


def _mean_variance(source: Source) -> None:
    axes = source.integers("axes", (0, 2, 3)) or ()
    source.emit("mean_variance_normalization", source.type(0), {"axes": axes})


MAPPERS: Mappers = {
    ("", "BatchNormalization"): _batch_normalization,
    ("", "GroupNormalization"): _group_normalization,
    ("", "InstanceNormalization"): _instance_normalization,
    ("", "LRN"): _lrn,
    ("", "LayerNormalization"): _layer_normalization,
    ("", "LpNormalization"): _lp_normalization,
    ("", "MeanVarianceNormalization"): _mean_variance,
    ("", "RMSNormalization"): _layer_normalization,
    ("", "ReduceL1"): _reduce("sum", before="abs"),
    ("", "ReduceL2"): _reduce("sum", before="square", after="sqrt"),
    ("", "ReduceLogSum"): _reduce("sum", after="log"),
    ("", "ReduceLogSumExp"): _reduce("sum", before="exp", after="log"),
    ("", "ReduceMax"): _reduce("reduce_max"),
    ("", "ReduceMean"): _reduce("mean"),
    ("", "ReduceMin"): _reduce("reduce_min"),
    ("", "ReduceProd"): _reduce("reduce_prod"),
    ("", "ReduceSum"): _reduce("sum"),
    ("", "ReduceSumSquare"): _reduce("sum", before="square"),
    ("", "SimplifiedLayerNormalization"): _layer_normalization,
    (MICROSOFT, "SkipLayerNormalization"): _skip_layer_normalization,
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): _skip_layer_normalization,
}
