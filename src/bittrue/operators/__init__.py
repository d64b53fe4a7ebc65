"""One file per operator (or per family of one formula): shapes, planning and the NumPy reference.

`find(stem)` imports an operator's file on first use, so that importing bittrue stays fast.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from .base import Bound, Call, Lowered, Operand, Operator, Role, Step, Subgraph, ValueUnknown, World

# Modules of this folder that hold shared machinery instead of an operator.
_SHARED = frozenset(
    {
        "accumulator",
        "base",
        "conditions",
        "elementwise",
        "geometry",
        "granularity",
        "hybrid_layers",
        "indexing",
        "integer_layers",
        "lanes",
        "late",
        "level_storage",
        "lstm_basic",
        "lstm_integer",
        "lstm_layout",
        "lstm_real",
        "partition",
        "range_operands",
        "real_layers",
        "recurrent",
        "requirements",
        "roles",
        "scalar_operands",
        "sequences",
        "spatial",
        "stopping",
        "whole_numbers",
        "zero_points",
    }
)


# Files that hold more than the operator of their own name, or none of that name. A test keeps the list true.
_FAMILIES: dict[str, str] = {
    "add": "sub",
    "add_levels": "bias_levels combine_levels",
    "arg_max": "arg_min",
    "average_levels": "max_levels",
    "broadcast_sum": "broadcast_mean",
    "bitwise": "bitwise_and bitwise_or bitwise_not bitwise_xor right_shift shift_left shift_right",
    "classes": "is_nan is_infinite",
    "complex_parts": "real imag complex_abs",
    "control": "if while stablehlo_composite call_once",
    "conv": "conv_onto",
    "conv3d": "conv3d_transpose",
    "convention_pool": "convention_average_pool convention_max_pool",
    "dilate": "stablehlo_pad",
    "equal": "not_equal greater greater_equal less less_equal",
    "floor_div": "floor_mod",
    "functions": "exp log elu sin cos",
    "gather": "gather_nd take_along",
    "level_functions": "relevel scale_levels power_levels rectify_levels leaky_levels sigmoid_levels limit_levels",
    "logical": "logical_and logical_or logical_not",
    "loop": "branch",
    "logistic": "tanh",
    "lstm": "unidirectional_sequence_lstm",
    "matrix_diag": "matrix_set_diag",
    "matrix_product": "matmul gemm",
    "maximum": "minimum",
    "mean": "sum",
    "non_max_suppression": "non_max_suppression_v4 non_max_suppression_v5",
    "normalizations": "batch_normalization instance_normalization group_normalization layer_normalization "
    "lp_normalization channel_response_normalization",
    "pad": "pad_v2 mirror_pad",
    "places": "mark_places eye triangle",
    "plain": "plain_add plain_multiply plain_maximum plain_minimum",
    "pool2d": "average_pool2d l2_pool2d max_pool2d",
    "qlinear_conv": "conv_integer",
    "qlinear_matmul": "matmul_integer matmul_integer_to_float",
    "qlinear_add": "qlinear_mul",
    "qlinear_concat": "qlinear_where",
    "qlinear_global_average_pool": "qlinear_reduce_mean",
    "qlinear_sigmoid": "qlinear_leaky_relu",
    "put": "put_along put_nd",
    "range_finish": "add_bias layer_sum range_to_real",
    "range_quantize": "range_dequantize range_requantize",
    "ranged_layers": "conv_sums ranged_conv ranged_matmul",
    "ranges": "joined_range product_range range_of_sums range_of_values sum_range symmetric_range",
    "range_weights": "fold_normalization rescale_bias",
    "rank": "zeros_like",
    "real_functions": "celu erf hard_sigmoid mish parametric_elu quick_gelu selu "
    "softplus softsign thresholded_relu ceil round_even reciprocal",
    "real_reduce": "reduce_sum reduce_mean reduce_sum_square reduce_l1 reduce_l2 reduce_log_sum "
    "reduce_log_sum_exp axes_prod",
    "reduce": "reduce_max reduce_min reduce_prod reduce_any reduce_all",
    "relu": "relu6 relu_n1_to_1 relu_0_to_1",
    "resample": "resample_nearest resample_linear",
    "remainder": "modulo",
    "reshape": "squeeze expand_dims",
    "reshape_to": "reshape_axes flatten identity",
    "resize": "resize_bilinear resize_nearest",
    "rnn": "unidirectional_sequence_rnn bidirectional_sequence_rnn",
    "scatter_nd": "sparse_to_dense",
    "select": "select_v2",
    "sequence_lstm": "dynamic_quantize_lstm",
    "shape": "size_of",
    "simulated_quantize": "simulated_dequantize",
    "softmax": "log_softmax",
    "softmax_along": "log_softmax_along",
    "space_to_batch": "batch_to_space",
    "spatial_pool": "max_pool average_pool lp_pool global_average_pool global_max_pool",
    "split": "split_v split_parts unpack",
    "sqrt": "rsqrt",
    "strided_view": "slice_axes space_to_depth depth_to_space",
    "tile": "broadcast_to fill",
    "unary": "neg square floor sign",
    "unsorted_segment": "unsorted_segment_sum unsorted_segment_prod unsorted_segment_max unsorted_segment_min",
    "whole_conv": "whole_conv_transpose",
    "variables": "var_handle read_variable assign_variable",
}
_FILES = {stem: file for file, stems in _FAMILIES.items() for stem in stems.split()}


def _operators_of(file: str) -> tuple[Operator, ...]:
    loaded = importlib.import_module(f"{__name__}.{file}")
    found: tuple[Operator, ...] = getattr(loaded, "OPERATORS", None) or (loaded.OPERATOR,)
    return found


@cache
def registry() -> dict[str, Operator]:
    """Stem to operator, collected from every operator file of this folder."""
    import pkgutil

    found: dict[str, Operator] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name in _SHARED:
            continue
        for operator in _operators_of(module.name):
            if operator.stem in found:
                raise RuntimeError(f"two operator files define '{operator.stem}'")
            found[operator.stem] = operator
    return found


@cache
def find(stem: str) -> Operator | None:
    """The operator called `stem`, or None when bittrue has none. Imports its file alone."""
    file = _FILES.get(stem, stem)
    if file in _SHARED or not file.isidentifier() or importlib.util.find_spec(f"{__name__}.{file}") is None:
        return None
    return next((operator for operator in _operators_of(file) if operator.stem == stem), None)


__all__ = [
    "Bound",
    "Call",
    "Lowered",
    "Operand",
    "Operator",
    "Role",
    "Step",
    "Subgraph",
    "ValueUnknown",
    "World",
    "find",
    "registry",
]
