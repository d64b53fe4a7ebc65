"""No slot with several rules may lack a shipped case that tells each pair apart."""

from __future__ import annotations

import ast
from pathlib import Path

from bittrue.rules import rules, slots

# slot -> file of this folder and the test in it that fails when two rules of the slot always agree
SEPARATED = {
    "accumulate": ("test_core_rules", "test_accumulate_rules_are_told_apart"),
    "activation": ("test_recurrent_rules", "test_activations_are_told_apart"),
    "activation_range": ("test_delegate_rules", "test_activation_range_rules_are_told_apart"),
    "add_bias": ("test_range_layer_rules", "test_rules_of_sums_and_weights_are_told_apart"),
    "affine_average": ("test_affine_rules", "test_affine_average_rules_are_told_apart"),
    "affine_product": ("test_affine_rules", "test_affine_product_rules_are_told_apart"),
    "affine_scale": ("test_fused_rules", "test_affine_scale_rules_are_told_apart"),
    "affine_scale_tail": ("test_fused_rules", "test_affine_scale_rules_are_told_apart"),
    "affine_softmax": ("test_affine_rules", "test_affine_softmax_rules_are_told_apart"),
    "affine_sum": ("test_affine_rules", "test_affine_sum_rules_are_told_apart"),
    "affine_sum_tail": ("test_affine_rules", "test_affine_sum_rules_are_told_apart"),
    "align": ("test_elementwise_rules", "test_every_pair_of_align_rules_is_told_apart"),
    "align_tail": ("test_elementwise_rules", "test_every_pair_of_align_rules_is_told_apart"),
    "attention": ("test_attention_rules", "test_attention_rules_are_told_apart"),
    "average": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "quantized_bias": ("test_range_layer_rules", "test_quantized_bias_are_told_apart"),
    "block_product": ("test_block_product", "test_block_products_are_told_apart"),
    "block_product_without_points": ("test_block_product", "test_block_products_are_told_apart"),
    "expert_choice": ("test_expert_choice", "test_choices_are_told_apart"),
    "beyond_32_bits": ("test_elementwise_rules", "test_conversions_beyond_32_bits_are_told_apart"),
    "byte_products": ("test_real_rules", "test_byte_products_are_told_apart"),
    "cached_product": ("test_attention_rules", "test_products_of_a_cache_are_told_apart"),
    "cast": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "cast_tail": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "channel_parameters": ("test_core_rules", "test_channel_parameters_are_told_apart"),
    "center": ("test_whole_product_rules", "test_center_rules_are_told_apart"),
    "combine": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "compare": ("test_elementwise_rules", "test_every_pair_is_told_apart"),
    "dequantize": ("test_vector_rules", "test_dequantizations_against_fractions_and_apart"),
    "dequantize_tail": ("test_vector_rules", "test_dequantizations_against_fractions_and_apart"),
    "divide": ("test_elementwise_rules", "test_divide_is_the_oracle_where_shifts_are_undefined"),
    "dot": ("test_recurrent_rules", "test_dot_rules_are_told_apart"),
    "dynamic_range": ("test_narrow_rules", "test_dynamic_range_rules_are_told_apart"),
    "elimination": ("test_real_number_rules", "test_eliminations_are_told_apart"),
    "extreme": ("test_vector_rules", "test_extremes_are_told_apart"),
    "gate_normalization": ("test_recurrent_rules", "test_gate_normalizations_follow_their_steps"),
    "hard_swish": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "hard_swish_tail": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "input_range": ("test_delegate_rules", "test_activation_range_rules_are_told_apart"),
    "interpolate": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "lanes": ("test_vector_rules", "test_lanes"),
    "level_sum": ("test_level_rules", "test_level_sum_rules_are_told_apart"),
    "layer_sum": ("test_range_layer_rules", "test_rules_of_sums_and_weights_are_told_apart"),
    "levels": ("test_level_rules", "test_levels_rules_are_told_apart"),
    "log_softmax": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "mean": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "mean_tail": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "modulo": ("test_movement_rules", "test_modulo_rules_are_told_apart"),
    "multiply_add": ("test_real_number_rules", "test_products_and_their_sums_are_told_apart"),
    "order": ("test_delegate_rules", "test_order_rules_are_told_apart"),
    "narrow": ("test_narrow_rules", "test_narrow_rules_are_told_apart"),
    "normalize": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "plain_range": ("test_real_rules", "test_plain_ranges_are_told_apart"),
    "product": ("test_elementwise_rules", "test_every_pair_is_told_apart"),
    "real_divide": ("test_real_number_rules", "test_real_divisions_are_told_apart"),
    "real_function": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "real_gelu": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "power_code": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "power": ("test_real_number_rules", "test_every_pair_of_rules_is_told_apart"),
    "real_normalization": ("test_real_number_rules", "test_every_pair_of_rules_is_told_apart"),
    "real_product": ("test_real_number_rules", "test_every_pair_of_rules_is_told_apart"),
    "real_sum": ("test_real_number_rules", "test_every_pair_of_rules_is_told_apart"),
    "real_softmax": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "quantize": ("test_vector_rules", "test_quantizations_are_told_apart"),
    "quantized_weights": ("test_range_layer_rules", "test_rules_of_sums_and_weights_are_told_apart"),
    "quantize_symmetric": ("test_delegate_rules", "test_quantize_symmetric_rules_are_told_apart"),
    "row_product": ("test_recurrent_rules", "test_row_products_are_told_apart"),
    "quantize_asymmetric": ("test_delegate_rules", "test_quantize_asymmetric_rules_are_told_apart"),
    "quantize_tail": ("test_vector_rules", "test_quantizations_are_told_apart"),
    "quotient": ("test_narrow_rules", "test_quotient_rules_are_told_apart"),
    "range_dequantize": ("test_range_rules", "test_range_dequantize_rules_are_told_apart"),
    "range_quantize": ("test_range_rules", "test_range_quantize_rules_are_told_apart"),
    "range_requantize": ("test_range_rules", "test_range_requantize_rules_are_told_apart"),
    "rotation": ("test_real_number_rules", "test_rotations_are_told_apart"),
    "recurrence": ("test_recurrence_rules", "test_recurrence_rules_are_told_apart"),
    "remainder": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "rescale": ("test_core_rules", "test_every_pair_of_rescale_rules_is_told_apart"),
    "rescale_tail": ("test_core_rules", "test_every_pair_of_rescale_rules_is_told_apart"),
    "row_blocks": ("test_row_blocks", "test_row_blocks_are_told_apart"),
    "row_blocks_without_points": ("test_row_blocks", "test_row_blocks_are_told_apart"),
    "row_sums": ("test_real_rules", "test_row_sums_are_told_apart"),
    "rows": ("test_delegate_rules", "test_rows_are_told_apart"),
    "scale_back": ("test_real_rules", "test_scale_back_rules_are_told_apart"),
    "scale_back_per_axis": ("test_real_rules", "test_scale_back_rules_are_told_apart"),
    "scale_form": ("test_core_rules", "test_scale_forms_are_told_apart"),
    "scale_form_per_axis": ("test_core_rules", "test_scale_forms_are_told_apart"),
    "shift": ("test_movement_rules", "test_every_pair_is_told_apart"),
    "sign": ("test_delegate_rules", "test_sign_rules_are_told_apart"),
    "sigmoid": ("test_vector_rules", "test_sigmoid_by_polynomial_against_integers_and_apart"),
    "slope_rescale": ("test_core_rules", "test_every_pair_of_rescale_rules_is_told_apart"),
    "slope": ("test_delegate_rules", "test_slope_rules_are_told_apart"),
    "softmax": ("test_reduction_rules", "test_every_pair_of_rules_is_told_apart"),
    "state_step": ("test_attention_rules", "test_rules_of_states_are_told_apart"),
    "start": ("test_movement_rules", "test_starts_are_told_apart"),
    "store": ("test_vector_rules", "test_every_pair_of_store_rules_is_told_apart"),
    "store_tail": ("test_vector_rules", "test_every_pair_of_store_rules_is_told_apart"),
    "sum_of_products": ("test_delegate_rules", "test_sum_of_products_rules_are_told_apart"),
    "table": ("test_unary_rules", "test_every_pair_of_rules_is_told_apart"),
    "table_function": ("test_dequantized_rules", "test_table_functions_are_told_apart"),
    "to_integer": ("test_narrow_rules", "test_to_integer_rules_are_told_apart"),
    "to_integer_tail": ("test_narrow_rules", "test_to_integer_rules_are_told_apart"),
    "half_nan": ("test_movement_rules", "test_half_nan_rules_are_told_apart"),
    "widen": ("test_movement_rules", "test_widen_rules_are_told_apart"),
    "window_average": ("test_window_rules", "test_window_average_rules_are_told_apart"),
    "weights_offset": ("test_real_rules", "test_weights_offset_rules_are_told_apart"),
    "window_levels": ("test_level_rules", "test_window_levels_rules_are_told_apart"),
    "zero_points": ("test_narrow_rules", "test_zero_points_are_told_apart"),
    "weighted": ("test_movement_rules", "test_weighted_rules_are_told_apart"),
}


def test_every_slot_with_a_choice_is_named() -> None:
    assert set(SEPARATED) == {slot for slot in slots() if len(rules(slot)) > 1}


def test_the_named_tests_exist_and_know_the_slot() -> None:
    for slot, (file, test) in SEPARATED.items():
        text = (Path(__file__).parent / f"{file}.py").read_text()
        functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert test in functions, f"{file} has no {test}"
        assert (
            slot.removesuffix("_per_axis").removesuffix("_without_points").removesuffix("_tail").removeprefix("slope_")
            in text
        ), f"{file} does not mention '{slot}'"
