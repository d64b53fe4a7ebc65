"""Rules: one file per slot (or per pair of inverse slots), all its variants side by side, named by their arithmetic."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ..deferred import deferred

# slot -> module of this folder and the name of its table
_TABLES = {
    "accumulate": ("accumulate", "RULES"),
    "activation": ("activation", "RULES"),
    "activation_range": ("activation_range", "RULES"),
    "add_bias": ("range_layer", "ADD"),
    "affine_average": ("affine_average", "RULES"),
    "affine_product": ("affine_product", "RULES"),
    "affine_scale": ("affine_scale", "RULES"),
    "affine_scale_tail": ("affine_scale", "RULES"),
    "affine_softmax": ("affine_softmax", "RULES"),
    "affine_sum": ("affine_sum", "RULES"),
    "affine_sum_of_many": ("affine_sum_of_many", "RULES"),
    "affine_sum_tail": ("affine_sum", "RULES"),
    "align": ("align", "RULES"),
    "align_tail": ("align", "RULES"),
    "attention": ("attention", "RULES"),
    "average": ("average", "RULES"),
    "quantized_bias": ("range_layer", "BIAS"),
    "block_product": ("block_product", "RULES"),
    "beyond_32_bits": ("beyond_32_bits", "RULES"),
    "block_product_without_points": ("block_product", "RULES"),
    "byte_products": ("byte_products", "RULES"),
    "cached_product": ("cached_product", "RULES"),
    "cast": ("cast", "RULES"),
    "channel_parameters": ("channel_parameters", "RULES"),
    "cast_tail": ("cast", "RULES"),
    "center": ("center", "RULES"),
    "choice": ("choice", "RULES"),
    "combine": ("combine", "RULES"),
    "compare": ("compare", "RULES"),
    "dequantize": ("quantize", "DEQUANTIZE"),
    "dequantize_tail": ("quantize", "DEQUANTIZE"),
    "corner_weights": ("corner_weights", "RULES"),
    "divide": ("divide", "RULES"),
    "dot": ("dot", "RULES"),
    "dynamic_range": ("dynamic_range", "RULES"),
    "elimination": ("elimination", "RULES"),
    "expert_choice": ("expert_choice", "RULES"),
    "extreme": ("extreme", "RULES"),
    "fold_normalization": ("range_layer", "FOLD"),
    "gate": ("gate", "RULES"),
    "gate_normalization": ("gate_normalization", "RULES"),
    "half_nan": ("half_nan", "RULES"),
    "hard_swish": ("hard_swish", "RULES"),
    "hard_swish_tail": ("hard_swish", "RULES"),
    "input_range": ("activation_range", "RULES"),
    "interpolate": ("interpolate", "RULES"),
    "inverse_root": ("inverse_root", "RULES"),
    "lanes": ("lanes", "RULES"),
    "layer_norm": ("layer_norm", "RULES"),
    "level_sum": ("level_sum", "RULES"),
    "levels": ("levels", "RULES"),
    "layer_sum": ("range_layer", "SUM"),
    "log_softmax": ("log_softmax", "RULES"),
    "mean": ("mean", "RULES"),
    "mean_tail": ("mean", "RULES"),
    "modulo": ("modulo", "RULES"),
    "multiply_add": ("multiply_add", "RULES"),
    "narrow": ("narrow", "RULES"),
    "nearest": ("nearest", "RULES"),
    "normalize": ("normalize", "RULES"),
    "order": ("order", "RULES"),
    "plain_range": ("plain_range", "RULES"),
    "power": ("power", "RULES"),
    "power_code": ("power_code", "RULES"),
    "product": ("product", "RULES"),
    "quantize": ("quantize", "QUANTIZE"),
    "quantize_asymmetric": ("quantize_rows", "ASYMMETRIC"),
    "quantize_symmetric": ("quantize_rows", "SYMMETRIC"),
    "quantize_tail": ("quantize", "QUANTIZE"),
    "quotient": ("quotient", "RULES"),
    "range_change": ("range_change", "RULES"),
    "range_dequantize": ("range_quantize", "DEQUANTIZE"),
    "range_normalization": ("range_normalization", "RULES"),
    "range_product": ("range_product", "RULES"),
    "range_quantize": ("range_quantize", "QUANTIZE"),
    "range_requantize": ("range_quantize", "REQUANTIZE"),
    "range_sum": ("range_sum", "RULES"),
    "read_as": ("read_as", "RULES"),
    "real_divide": ("divide", "REAL"),
    "real_function": ("real_function", "RULES"),
    "real_gelu": ("real_gelu", "RULES"),
    "real_normalization": ("real_normalization", "RULES"),
    "real_product": ("real_product", "RULES"),
    "real_softmax": ("real_softmax", "RULES"),
    "real_sum": ("real_sum", "RULES"),
    "recurrence": ("recurrence", "RULES"),
    "requantize": ("requantize", "RULES"),
    "remainder": ("remainder", "RULES"),
    "rescale": ("rescale", "RULES"),
    "rescale_tail": ("rescale", "RULES"),
    "rotation": ("rotation", "RULES"),
    "row_product": ("row_product", "RULES"),
    "row_blocks": ("row_blocks", "RULES"),
    "row_blocks_without_points": ("row_blocks", "RULES"),
    "row_sums": ("row_sums", "RULES"),
    "rows": ("quantize_rows", "ROWS"),
    "scale_back": ("scale_back", "RULES"),
    "scale_back_per_axis": ("scale_back", "RULES"),
    "scale_form": ("scale_form", "RULES"),
    "scale_form_per_axis": ("scale_form", "RULES"),
    "shift": ("shift", "RULES"),
    "shift_count": ("shift_count", "RULES"),
    "sigmoid": ("sigmoid", "RULES"),
    "sign": ("sign", "RULES"),
    "slope_rescale": ("rescale", "RULES"),
    "slope": ("slope", "RULES"),
    "shifted_softmax": ("shifted_softmax", "RULES"),
    "softmax": ("softmax", "RULES"),
    "square_root": ("square_root", "RULES"),
    "start": ("start", "RULES"),
    "state_step": ("state_step", "RULES"),
    "store": ("store", "RULES"),
    "store_tail": ("store", "RULES"),
    "sum_of_products": ("sum_of_products", "RULES"),
    "table": ("table", "RULES"),
    "table_product": ("table_product", "RULES"),
    "table_function": ("table_function", "RULES"),
    "to_integer": ("to_integer", "RULES"),
    "to_integer_tail": ("to_integer", "RULES"),
    "window_average": ("window_average", "RULES"),
    "widen": ("widen", "RULES"),
    "window_levels": ("window_levels", "RULES"),
    "quantized_weights": ("range_layer", "WEIGHTS"),
    "zero_points": ("zero_points", "RULES"),
    "weights_offset": ("weights_offset", "RULES"),
    "weighted": ("interpolate", "WEIGHTED"),
}


if not TYPE_CHECKING:
    # Operators name the rules of all their arithmetics, of which a model has one or two.
    __getattr__ = deferred(__name__, (module for module, _ in _TABLES.values()))


def slots() -> tuple[str, ...]:
    """Names of all slots."""
    return tuple(_TABLES)


@cache
def rules(slot: str) -> Mapping[str, object]:
    """Name to rule of one slot. Raises KeyError for an unknown slot."""
    module, table = _TABLES[slot]
    found: Mapping[str, object] = getattr(importlib.import_module(f"{__name__}.{module}"), table)
    return found


def formula(slot: str, name: str) -> str:
    """What a rule computes, in one sentence."""
    rule = rules(slot)[name]
    return str(getattr(rule, "formula", "")) or (rule.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
