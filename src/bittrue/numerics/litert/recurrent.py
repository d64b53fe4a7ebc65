"""Rows of `litert`: recurrent layers. Their kernels are shared by all resolvers of the runtime."""

from __future__ import annotations

from ..table import Row

_INTEGER = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
}
_ACTIVATION = {"activation": "binary32_rational_lanes_4"}
_VECTOR = {"dot": "binary32_lanes_4_in_order", **_ACTIVATION}
_HYBRID = {"row_product": "s8_vectors_binary32_scale"}

ROWS: tuple[Row, ...] = (
    Row(
        "unidirectional_sequence_lstm",
        (
            "s8 s8|- s8 s8 s8 s8|- s8 s8 s8 s16|- s16|- s16|- s32|- s32 s32 s32 s8|- s32|- s8 s16 "
            "s16|- s16|- s16|- s16|- -> s8",
        ),
        {**_INTEGER, "gate": "s16_polynomial_newton", "layer_norm": "s32_newton_inverse_root"},
        "run; facts 2.6: 865 values; a whole model over several runs",
    ),
    Row("svdf", ("s8 s8 s16 s32|- s16 -> s8",), _INTEGER, "run; facts 2.1: 132 values, 12 stateful steps"),
    Row("svdf", ("f32 f32 f32 f32|- f32 -> f32",), _VECTOR, "run: every order of additions found in the wheel"),
    Row("svdf", ("f32 s8|u8 s8|u8 f32|- f32 -> f32",), {**_VECTOR, **_HYBRID}, "run"),
    Row(
        "svdf",
        ("s8 s8 s8 s32|- s8|s16 -> s8", "s8 s8 s16 s32|- s8 -> s8"),
        evidence="run: heap corruption, facts 4.3",
        refuses=(
            "SVDF with an int8 state or int8 weights_time is a microcontroller extension: this runtime's kernel takes "
            "both for int16 without a check and reads and writes past their ends"
        ),
    ),
)
