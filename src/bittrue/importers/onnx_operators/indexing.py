"""Mappings of operators on positions: gather and scatter, extremes, marks."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from ..onnx_tensors import type_name
from .base import MICROSOFT, Mapper, Mappers, Source, fixed_type

_REDUCTIONS = {"none": "replace", "add": "add", "mul": "multiply", "max": "largest", "min": "smallest"}


def _gather(source: Source) -> None:
    attributes: dict[str, Attribute] = {"axis": source.integer("axis", 0), "batch_dims": 0, "from_either_end": True}
    source.emit("gather", source.type(0), attributes)


def _gather_elements(source: Source) -> None:
    attributes: dict[str, Attribute] = {"axis": source.integer("axis", 0), "elements": True, "from_either_end": True}
    source.emit("gather", source.type(0), attributes)


def _gather_nd(source: Source) -> None:
    attributes: dict[str, Attribute] = {"batch_dims": source.integer("batch_dims", 0), "from_either_end": True}
    source.emit("gather_nd", source.type(0), attributes)


def _scattering(source: Source) -> dict[str, Attribute]:
    """Another reduction is none to the runtime."""
    return {"reduction": _REDUCTIONS.get(source.text("reduction", "none"), _REDUCTIONS["none"]), "wraps": True}


def _scatter_elements(source: Source) -> None:
    attributes = {**_scattering(source), "coordinates": "along_axis", "axis": source.integer("axis", 0)}
    source.emit("scatter_nd", source.type(0), attributes)


def _scatter_nd(source: Source) -> None:
    source.emit("scatter_nd", source.type(0), {**_scattering(source), "coordinates": "slices"})


def _tensor_scatter(source: Source) -> None:
    mode = source.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is neither linear nor circular")
    attributes: dict[str, Attribute] = {"axis": source.integer("axis", -2), "circular": mode == "circular"}
    source.emit("tensor_scatter", source.type(0), attributes)


def _position(operator: str) -> Mapper:
    def mapper(source: Source) -> None:
        axis = source.constant(np.array([source.integer("axis", 0)], np.int64), "axis")
        attributes: dict[str, Attribute] = {
            "output_type": "s64",
            "last": source.flag("select_last_index", False, True),
            "starts_with_first": True,
        }
        inputs = [*source.inputs, axis]
        if not source.flag("keepdims", True, False):
            source.emit(operator, "s64", attributes, inputs=inputs)
            return
        found = source.emit(operator, "s64", attributes, inputs=inputs, outputs=[source.temporary("s64", "positions")])
        source.emit("expand_dims", "s64", inputs=[*found, axis])

    return mapper


def _top(source: Source) -> None:
    inputs = list(source.inputs)
    if source.version < 10:
        count = source.integer("k", 0)
        if count < 1:
            raise source.invalid("BT-ONNX-ATTRIBUTE", f"k is {count}, expected 1 or more")
        inputs = [*inputs[:1], source.constant(np.array([count], np.int64), "k")]
    attributes = {
        "axis": source.integer("axis", -1),
        "largest": source.flag("largest", True, False),
        "sorted": source.flag("sorted", True, False),
    }
    names = [*source.outputs, "", ""][:2]
    source.emit("topk_v2", [source.type(0), "s64"], attributes, inputs=inputs, outputs=_named(source, names))


def _named(source: Source, names: list[str]) -> list[str]:
    """Outputs that the operator always has, with names of our own where the file leaves them out."""
    return [name or source.builder.unique(f"{source.label}/unused{at}") for at, name in enumerate(names)]


def _compress(source: Source) -> None:
    attributes = {"axis": source.integer("axis", 0)} if source.has("axis") else {}
    source.emit("compress", source.type(0), attributes)


def _reverse_sequence(source: Source) -> None:
    along, batch = source.integer("time_axis", 0), source.integer("batch_axis", 1)
    if along == batch or max(along, batch) > 1:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'time_axis' {along} and 'batch_axis' {batch} must be 0 and 1")
    # Below 0 they are axis 1 to the runtime, but what has the lengths is always the other one.
    attributes = {"seq_dim": int(along != 0), "batch_dim": int(along == 0)}
    source.emit("reverse_sequence", source.type(0), attributes)


def _non_zero(source: Source) -> None:
    source.emit("where", "s64", {"axes_first": True})


def _non_max_suppression(source: Source) -> None:
    attributes: dict[str, Attribute] = {"results": "triples", "centred": source.flag("center_point_box", False)}
    source.emit("non_max_suppression", "s64", attributes)


def _one_hot(source: Source) -> None:
    attributes: dict[str, Attribute] = {"axis": source.integer("axis", -1), "from_either_end": True}
    source.emit("one_hot", source.type(2), attributes)


def _affine_grid(source: Source) -> None:
    source.emit("affine_grid", source.type(0), {"align_corners": source.flag("align_corners", False, True)})


def _eye_like(source: Source) -> None:
    dtype = type_name(source.integer("dtype", 0), source.place) if source.has("dtype") else source.type(0)
    source.emit("eye", dtype, {"diagonal": source.integer("k", 0)})


def _trilu(source: Source) -> None:
    source.emit("triangle", source.type(0), {"upper": source.flag("upper", True, True)})


def _unique(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "sorted": source.flag("sorted", True, False),
        "nans_differ": True,
        "results": "all",
    }
    if source.has("axis"):
        attributes["axis"] = source.integer("axis", 0)
    types = [source.type(0), "s64", "s64", "s64"][: len(source.outputs)]
    source.emit("unique", types, attributes, outputs=_named(source, source.outputs))


def _unique_in_order(source: Source) -> None:
    """Numbers as they come, where they went, and how often they are there."""
    values, places, counts = source.outputs
    attributes: dict[str, Attribute] = {"sorted": False, "nans_differ": True, "results": "all"}
    outputs = _named(source, [values, "", places, counts])
    source.emit("unique", [source.type(0), "s64", "s64", "s64"], attributes, outputs=outputs)


def _resize(source: Source) -> None:
    """Upsample and Resize of all versions; scales as attribute, as second or as third input."""
    mode = source.text("mode", "nearest")
    cubic: dict[str, Attribute] = {
        "factor": source.real("cubic_coeff_a", -0.75),
        "exclude_outside": source.flag("exclude_outside", False),
    }
    modern = source.op_type == "Resize" and source.version >= 11
    attributes: dict[str, Attribute] = {
        "transformation": source.text("coordinate_transformation_mode", "half_pixel") if modern else "asymmetric",
        "policy": source.text("keep_aspect_ratio_policy", "stretch"),
    }
    if attributes["policy"] not in ("stretch", "not_larger", "not_smaller"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"keep_aspect_ratio_policy '{attributes['policy']}' is not known")
    attributes["outside"] = source.real("extrapolation_value", 0.0)
    # The empty text means to the runtime what old versions do.
    rounding = (source.text("nearest_mode", "round_prefer_floor") or "simple") if modern else "simple"
    if mode == "nearest" and rounding not in ("simple", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"nearest_mode '{rounding}' is not known")
    axes = source.integers("axes")
    if axes is not None:
        attributes["axes"] = axes
    antialiased = source.flag("antialias", False, True)
    if mode not in ("nearest", "linear", "bilinear", "cubic"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is neither nearest nor linear nor cubic")
    if cubic["exclude_outside"] and mode != "cubic":
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"exclude_outside has no meaning in mode '{mode}'")
    inputs = list(source.inputs)
    if not modern:
        scales = source.reals("scales")
        factors = inputs[1:] if scales is None else [source.constant(np.array(scales, np.float32), "scales")]
        inputs = [*inputs[:1], None, *factors]
    else:
        region, given, sizes = (inputs[at] if at < len(inputs) else None for at in (1, 2, 3))
        inputs = [*inputs[:1], sizes, *([] if given is None else [given])]
        # Elsewhere the region has no meaning.
        if region is not None and attributes["transformation"] == "tf_crop_and_resize":
            inputs = [*inputs, *[None] * (7 - len(inputs)), region]
    if mode == "nearest":
        attributes["nearest"] = rounding
    names = {"nearest": "resize_nearest", "cubic": "resize_cubic"}
    name = names.get(mode, "resize_linear")
    if antialiased:
        if mode == "nearest":
            raise source.invalid("BT-ONNX-ATTRIBUTE", "antialias has no meaning in mode 'nearest'")
        name, attributes["filter"] = "resize_antialiased", "cubic" if mode == "cubic" else "linear"
    if mode == "cubic" or antialiased:
        attributes |= cubic
    source.emit(name, source.type(0), attributes, inputs=inputs)


# Names of modes since version 20, and before.
_GRID_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


def _grid_sample(source: Source) -> None:
    modes = _GRID_MODES if source.version < 20 else {mode: mode for mode in _GRID_MODES.values()}
    mode, padding = source.text("mode", next(iter(modes))), source.text("padding_mode", "zeros")
    if mode not in modes or padding not in ("zeros", "border", "reflection"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' or padding_mode '{padding}' is not known")
    attributes: dict[str, Attribute] = {
        "mode": modes[mode],
        "padding": padding,
        "align_corners": source.flag("align_corners", False, True),
        "first_version": source.version < 20,
    }
    source.emit("grid_sample", source.type(0), attributes)


def _gather_block_quantized(source: Source) -> None:
    names = {"axis": ("gather_axis", 0), "block_axis": ("quantize_axis", 1), "block_size": ("block_size", 128)}
    attributes: dict[str, Attribute] = {ours: source.integer(*theirs) for ours, theirs in names.items()}
    source.emit("gather", source.type(2), {**attributes, "bits": source.integer("bits", 4)})


def _unfold(source: Source) -> None:
    attributes: dict[str, Attribute] = {
        "axis": source.integer("dim", -1),
        "size": source.integer("size", 0),
        "stride": source.integer("step", 1),
    }
    source.emit("unfold", source.type(0), attributes)


def _ban_repeats(source: Source) -> None:
    source.emit("ban_repeats", source.type(1), {"size": source.integer("ngram_size", 0)})


def _crop_and_resize(source: Source) -> None:
    mode = source.text("mode", "bilinear")
    if mode not in ("bilinear", "nearest"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is neither bilinear nor nearest")
    attributes: dict[str, Attribute] = {
        "nearest": mode == "nearest",
        "outside": source.real("extrapolation_value", 0.0),
    }
    source.emit("crop_and_resize", source.type(0), attributes)


def _append_verified(source: Source) -> None:
    attributes = {"least": source.integer("min_ngram_size", 0), "most": source.integer("max_ngram_size", 0)}
    source.emit("append_verified", "s64", attributes)


MAPPERS: Mappers = {
    ("", "ArgMax"): _position("arg_max"),
    ("", "ArgMin"): _position("arg_min"),
    ("", "Compress"): _compress,
    ("", "AffineGrid"): _affine_grid,
    ("", "EyeLike"): _eye_like,
    ("", "Gather"): _gather,
    (MICROSOFT, "GatherBlockQuantized"): _gather_block_quantized,
    ("", "GatherElements"): _gather_elements,
    ("", "GatherND"): _gather_nd,
    ("", "GridSample"): _grid_sample,
    (MICROSOFT, "GridSample"): _grid_sample,
    ("", "NonMaxSuppression"): _non_max_suppression,
    ("", "NonZero"): _non_zero,
    ("", "OneHot"): _one_hot,
    ("", "Resize"): _resize,
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "Scatter"): _scatter_elements,
    ("", "ScatterElements"): _scatter_elements,
    ("", "ScatterND"): _scatter_nd,
    ("", "TensorScatter"): _tensor_scatter,
    ("", "TopK"): _top,
    ("", "Trilu"): _trilu,
    (MICROSOFT, "Trilu"): _trilu,
    ("", "Unique"): _unique,
    (MICROSOFT, "GatherND"): _gather_nd,
    (MICROSOFT, "Unique"): _unique_in_order,
    ("", "Upsample"): _resize,
    (MICROSOFT, "BifurcationDetector"): _append_verified,
    (MICROSOFT, "CropAndResize"): _crop_and_resize,
    (MICROSOFT, "DynamicTimeWarping"): fixed_type("warped_path", "s32"),
    (MICROSOFT, "NGramRepeatBlock"): _ban_repeats,
    (MICROSOFT, "UnfoldTensor"): _unfold,
}
