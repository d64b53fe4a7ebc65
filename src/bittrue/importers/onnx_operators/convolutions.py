"""Mappings of convolutions, matrix products and pools of real numbers, and of what the runtime joins with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source, same_type
from .windows import WHOLE, convolution_attributes, pool_attributes, sizes


def _conv(source: Source) -> None:
    source.emit("conv", source.type(0), {**convolution_attributes(source), "channels_last": False})


def _conv_transpose(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        **convolution_attributes(source),
        "output_padding": sizes(source, "output_padding"),
        "output_shape": sizes(source, "output_shape"),
        "channels_last": False,
    }
    if source.op_type == "ConvTransposeWithDynamicPads":
        source.tensor(2)
        inputs = [*source.ordered(0, 1, 3), *[None] * 6, *source.ordered(2)]
        source.emit("conv_transpose", source.type(0), attributes, inputs=inputs)
        return
    source.emit("conv_transpose", source.type(0), attributes)


def _gemm_attributes(source: Source) -> dict[str, Attribute]:
    return {
        "alpha": source.real("alpha", 1.0),
        "beta": source.real("beta", 1.0),
        "transpose_a": source.flag("transA", False, True),
        "transpose_b": source.flag("transB", False, True),
        "matrices": True,
    }


def _gemm(source: Source) -> None:
    source.emit("matmul", source.type(0), _gemm_attributes(source))


def _fused_matmul(source: Source) -> None:
    """A product of transposed matrices, perhaps with their rows before the batch axes."""
    turned = [source.flag(f"trans{side}", False, True) for side in "AB"]
    fused = source.op_type == "FusedMatMul"
    behind = [fused and source.flag(f"transBatch{side}", False, True) for side in "AB"]
    inputs = list(source.inputs)
    for position, name in enumerate("ab"):
        if behind[position]:
            result = [source.temporary(source.type(position), name)]
            (inputs[position],) = source.emit(
                "transpose",
                source.type(position),
                {"rows_first": True},
                inputs=inputs[position : position + 1],
                outputs=result,
            )
    attributes: dict[str, Attribute] = {
        "alpha": source.real("alpha", 1.0),
        "transpose_a": turned[0],
        "transpose_b": turned[1],
        "apart": turned[0] or any(behind),
        "apart_b": behind[1],
    }
    source.emit("matmul", source.type(0), attributes, inputs=inputs)


# Operators that can be the activation of another one: stem, version, and parameters, which have no defaults there.
_ACTIVATIONS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "Clip": ("clip", 13, ("min", "max")),
    "Elu": ("elu", 6, ("alpha",)),
    "HardSigmoid": ("hard_sigmoid", 6, ("alpha", "beta")),
    "HardSwish": ("hard_swish", 14, ()),
    "LeakyRelu": ("leaky_relu", 6, ("alpha",)),
    "Relu": ("relu", 14, ()),
    "Selu": ("elu", 6, ("alpha", "gamma")),
    "Sigmoid": ("logistic", 13, ()),
    "Softplus": ("softplus", 1, ()),
    "Softsign": ("softsign", 1, ()),
    "Tanh": ("tanh", 13, ()),
    "ThresholdedRelu": ("thresholded_relu", 10, ("alpha",)),
}
# What convolutions of real numbers end with; products end with all but Clip and HardSwish.
_FINISHES = ("Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh")


def _activate(source: Source, name: str, parameters: Sequence[float], before: int) -> None:
    """The activation as a node of its own, which gives the same bits."""
    (stem, version, names), inputs = _ACTIVATIONS[name], [before]
    attributes: dict[str, Attribute] = dict(zip(names, parameters, strict=True))
    if name == "Clip":
        # Its kernel for binary16 numbers is none of the whole operator.
        attributes = {"unassigned": True}
        inputs += (source.constant(np.float32(end), "end") for end in parameters)
    elif name == "Relu":
        attributes = {"activation": "relu"}
    source.emit(stem, source.type(0), attributes, inputs=inputs, source=(name, version))


def _distances(source: Source) -> None:
    """-2 A B' plus both sums of squares, row by row; the magnitude, perhaps its root."""
    metric, dtype = source.text("metric", "sqeuclidean"), source.type(0)
    if metric not in ("euclidean", "sqeuclidean"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"metric '{metric}' is neither euclidean nor sqeuclidean")

    def step(operator: str, inputs: Sequence[int | None], name: str, **attributes: Attribute) -> int:
        return source.emit(operator, dtype, attributes, inputs=inputs, outputs=[source.temporary(dtype, name)])[0]

    axis = source.constant(np.array([1], np.int64), "axis")
    turned: dict[str, Attribute] = {"transpose_a": False, "transpose_b": True, "matrices": True}
    total = step("matmul", source.inputs, "products", alpha=-2.0, beta=1.0, **turned)
    for position, keeps in enumerate((True, False)):
        sums: dict[str, Attribute] = {"alone": True, "keep_dims": keeps, "keeps_without_axes": False}
        squares = step("mul", [source.inputs[position]] * 2, f"squares{position}")
        total = step("add", [total, step("sum", [squares, axis], f"length{position}", **sums)], f"sum{position}")
    if metric == "euclidean":
        source.emit("sqrt", dtype, inputs=[step("abs", [total], "squared")])
    else:
        source.emit("abs", dtype, inputs=[total])


def _fused_gemm(source: Source) -> None:
    """A product and the activation behind it, whose parameters are attributes with names of their own."""
    name, dtype = source.text("activation", ""), source.type(0)
    names = None if name in ("Clip", "HardSwish") or name not in _ACTIVATIONS else _ACTIVATIONS[name][2]
    for parameter in ("alpha", "beta", "gamma"):
        # Those of other functions are passed over.
        source.real(f"activation_{parameter}", 0.0)
    if names is None or not all(source.has(f"activation_{k}") for k in names):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"activation '{name}' is unknown, or lacks a parameter")
    parameters = [source.real(f"activation_{k}", 0.0) for k in names]
    between = source.temporary(dtype, "product")
    (product,) = source.emit("matmul", dtype, _gemm_attributes(source), outputs=[between])
    _activate(source, name, parameters, product)


def _fused_conv(source: Source) -> None:
    emit_finished_convolution(source, "conv", ("Conv", 11))


def emit_finished_convolution(source: Source, stem: str, counts_as: tuple[str, int]) -> None:
    """A convolution whose sums begin with a fourth operand, and the activation behind it."""
    name, given, dtype = source.text("activation", ""), source.reals("activation_params", ()) or (), source.type(0)
    known = name in _FINISHES if name else not source.has("activation")
    if not known or len(given) != len(_ACTIVATIONS[name][2] if name else ()):
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", f"activation '{name}' is unknown, or has other parameters than {given}"
        )
    x, weights, bias, begin = (*source.inputs, None, None)[:4]
    # Scales and zero points, which real numbers have not, stand before what sums begin with.
    inputs = [x, weights, bias, *(None,) * 6, begin]
    attributes: dict[str, Attribute] = {**convolution_attributes(source), "channels_last": False}
    if begin is not None and stem == "conv":
        # Images stay in planes, unless what sums begin with is in blocks of channels.
        attributes |= {"computed_weights": (1,), "begins": True}
    outputs = [source.temporary(dtype, "sums")] if name else None
    (sums,) = source.emit(stem, dtype, attributes, inputs=inputs, outputs=outputs, source=counts_as)
    if name:
        _activate(source, name, given, sums)


def _words(source: Source) -> None:
    names = ("embedding_size", "conv_window_size", "char_embedding_size")
    source.emit("word_convolution", "f32", {name: source.integer(name, -1) for name in names})


def _max_pool(source: Source) -> None:
    attributes = {**pool_attributes(source), "storage_order": int(source.flag("storage_order", False))}
    source.emit("max_pool", [source.type(0), "s64"], attributes)


def _masked_max_pool(source: Source) -> None:
    source.integer("storage_order", 0)
    source.emit("masked_maxima", source.type(0), pool_attributes(source, dilated=False))


def average_pool_attributes(source: Source) -> dict[str, Attribute]:
    """Windows, and what their sums are divided by."""
    counted = "padded" if source.flag("count_include_pad", False, True) else "inside"
    return {**pool_attributes(source), "counted": counted}


def _average_pool(source: Source) -> None:
    source.emit("average_pool", source.type(0), average_pool_attributes(source))


def _lp_pool(source: Source) -> None:
    source.emit("lp_pool", source.type(0), {**pool_attributes(source), "p": source.integer("p", 2)})


def _global_lp_pool(source: Source) -> None:
    source.emit("lp_pool", source.type(0), {**WHOLE, "p": source.integer("p", 2)})


def _max_unpool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "kernel": sizes(source, "kernel_shape"),
        "strides": sizes(source, "strides"),
        "pads": sizes(source, "pads"),
    }
    source.emit("unpool", source.type(0), attributes)


def _col2im(source: Source) -> None:
    attributes: dict[str, Attribute] = {name: sizes(source, name) for name in ("strides", "pads", "dilations")}
    source.emit("fold", source.type(0), attributes)


def _roi_align(source: Source) -> None:
    mode, transformed = source.text("mode", "avg"), "output_half_pixel"
    if source.version >= 16:
        transformed = source.text("coordinate_transformation_mode", "half_pixel")
    if mode not in ("avg", "max") or transformed not in ("half_pixel", "output_half_pixel"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' of coordinates '{transformed}' is unknown")
    attributes: dict[str, Attribute] = {
        "bins": (source.integer("output_height", 1), source.integer("output_width", 1)),
        "sampling_ratio": source.integer("sampling_ratio", 0),
        "spatial_scale": source.real("spatial_scale", 1.0),
        "half_pixel": transformed == "half_pixel",
        "maximum": mode == "max",
    }
    source.emit("region_bins", source.type(0), attributes)


def _max_roi_pool(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "bins": sizes(source, "pooled_shape"),
        "spatial_scale": source.real("spatial_scale", 1.0),
    }
    source.emit("region_maxima", source.type(0), attributes)


def _deform_conv(source: Source) -> None:
    attributes: dict[str, Attribute] = {name: sizes(source, name) for name in ("strides", "pads", "dilations")}
    attributes |= {
        "kernel": sizes(source, "kernel_shape"),
        "group": source.integer("group", 1),
        "offset_group": source.integer("offset_group", 1),
    }
    source.emit("deformable_conv", source.type(0), attributes)


def _causal_conv(source: Source) -> None:
    activation = source.text("activation", "none")
    if source.integer("ndim", 1) != 1 or activation not in ("none", "silu", "swish"):
        raise source.unsupported(
            "BT-ONNX-ATTRIBUTE", f"'ndim' {source.integer('ndim', 1)} with activation '{activation}' is not read"
        )
    if source.integer("state_window", 0):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'state_window' has no kernel", "export it with one state")
    attributes: dict[str, Attribute] = {
        "channels_last": source.flag("channels_last", False),
        "gated": activation != "none",
        "dilation": source.integer("dilation", 1),
    }
    source.emit("causal_conv", source.type(0), attributes)


MAPPERS: Mappers = {
    ("", "AveragePool"): _average_pool,
    ("", "Col2Im"): _col2im,
    ("", "Conv"): _conv,
    ("", "DeformConv"): _deform_conv,
    ("", "Det"): same_type("determinant"),
    ("", "ConvTranspose"): _conv_transpose,
    ("", "Gemm"): _gemm,
    ("", "GlobalAveragePool"): same_type("average_pool", **WHOLE),
    ("", "GlobalLpPool"): _global_lp_pool,
    ("", "GlobalMaxPool"): same_type("max_pool", **WHOLE),
    ("", "LpPool"): _lp_pool,
    ("", "MatMul"): same_type("matmul"),
    ("", "MaxPool"): _max_pool,
    ("", "MaxRoiPool"): _max_roi_pool,
    ("", "MaxUnpool"): _max_unpool,
    ("", "RoiAlign"): _roi_align,
    (MICROSOFT, "CDist"): _distances,
    (MICROSOFT, "ConvTransposeWithDynamicPads"): _conv_transpose,
    (MICROSOFT, "FusedConv"): _fused_conv,
    (MICROSOFT, "MaxpoolWithMask"): _masked_max_pool,
    (MICROSOFT, "Inverse"): same_type("inverse"),
    (MICROSOFT, "FusedGemm"): _fused_gemm,
    (MICROSOFT, "WordConvEmbedding"): _words,
    (MICROSOFT, "CausalConvWithState"): _causal_conv,
    (MICROSOFT, "FusedMatMul"): _fused_matmul,
    (MICROSOFT, "TransposeMatMul"): _fused_matmul,
}
