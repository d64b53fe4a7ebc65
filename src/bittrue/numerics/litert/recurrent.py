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

_BATCHES = (
    "several batches at once (time major, or a single step) are refused: the order of additions changes with the "
    "dimensions and, in long rows, with the processor's caches; so is the activation none, which leaves temporaries in "
    "h"
)
_NANS = "where NaNs of different bits meet in one sum, kernels keep the one or the other"
_ROWS = "rows with NaN or infinity, or of denormal numbers alone, are refused: their conversion to 8 bits is undefined"

# x, weights, recurrent weights, peepholes, biases, projection and its bias, states, layer normalization.
_LSTM_INTEGER = (
    "s8 s8|- s8 s8 s8 s8|- s8 s8 s8 s16|- s16|- s16|- s32|- s32 s32 s32 s8|- s32|- s8 s16 "
    "s16|- s16|- s16|- s16|- -> s8",
)
_REAL_CELL = "f32|- f32 f32 f32 f32|- f32 f32 f32 f32|- f32|- f32|- f32|- f32 f32 f32 f32|- f32|-"
_REAL_EXTRA = "f32|- f32|- f32|- f32|- f32|- f32|- f32|- f32|-"
_HYBRID_CELL = "T|- T T T T|- T T T T|- T|- T|- f32|- f32 f32 f32 T|- f32|-"
_EXTRA = "T|- T|- T|- T|- T|- T|- T|- T|-"
_LSTM_REAL = (f"f32 {_REAL_CELL} f32 f32 f32|- f32|- f32|- f32|- -> f32",)
_LSTM_HYBRID = (
    "f32 T|- T T T T|f32|- T|f32 T|f32 T|f32 T|- T|- T|- f32|- f32 f32 f32 T|- f32|- f32 f32 f32|- f32|- f32|- f32|- "
    "-> f32",
)
_BASIC = {"dot": "binary32_lanes_4_by_halves", **_ACTIVATION}
_CELL = {**_BASIC, "multiply_add": "rounded_twice", "gate_normalization": "binary32_in_order"}

ROWS: tuple[Row, ...] = (
    Row(
        "lstm",
        _LSTM_INTEGER,
        {**_INTEGER, "gate": "s16_polynomial_newton", "layer_norm": "s32_newton_inverse_root"},
        "run, a whole model over several runs; docs/facts/litert.md 2.6",
    ),
    Row(
        "lstm",
        _LSTM_REAL,
        _CELL,
        "run: 2 k models, converted models of 13 layers, every tensor",
        limit=f"{_BATCHES}; {_NANS}",
    ),
    Row("lstm", _LSTM_HYBRID, {**_CELL, **_HYBRID}, "run: 2 k models, converted models", ("s8", "u8"), limit=_ROWS),
    Row("rnn", ("f32 f32 f32 f32 f32 -> f32",), _VECTOR, "run", limit=_NANS),
    Row("rnn", ("f32 T T f32 f32 -> f32",), {**_VECTOR, **_HYBRID}, "run", ("s8", "u8"), limit=_ROWS),
    Row("lstm", ("f32 f32 f32 f32 f32 -> f32 f32 f32 f32",), _BASIC, "run", limit=f"{_BATCHES}; {_NANS}"),
    Row(
        "lstm",
        ("u8 u8 u8 s32 s16 -> u8 s16 u8 s16",),
        {"accumulate": "s32_wrap", "rescale": "q31_two_step_up_up", "gate": "s16_polynomial_newton"},
        "run",
    ),
    Row(
        "lstm",
        tuple(
            f"f32 {_REAL_CELL} {_REAL_CELL} f32 f32 f32 f32 f32|- {_REAL_EXTRA} -> {out}" for out in ("f32", "f32 f32")
        ),
        _CELL,
        "run",
        limit=_BATCHES,
    ),
    Row(
        "lstm",
        tuple(
            f"f32 {_HYBRID_CELL} {_HYBRID_CELL} f32 f32 f32 f32 f32|- {_EXTRA} -> {out}" for out in ("f32", "f32 f32")
        ),
        {**_CELL, **_HYBRID},
        "run",
        ("s8", "u8"),
        limit=_ROWS,
    ),
    Row(
        "rnn",
        (
            "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32|- f32|- f32|- -> f32",
            "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32|- f32|- f32|- -> f32 f32",
        ),
        _VECTOR,
        "run",
    ),
    Row(
        "rnn",
        (
            "f32 T T f32 f32 T T f32 f32 f32|- T|- T|- -> f32",
            "f32 T T f32 f32 T T f32 f32 f32|- T|- T|- -> f32 f32",
        ),
        {**_VECTOR, **_HYBRID},
        "run",
        ("s8", "u8"),
        limit=_ROWS,
    ),
    Row("svdf", ("s8 s8 s16 s32|- s16 -> s8",), _INTEGER, "run over several steps; docs/facts/litert.md 2.1"),
    Row(
        "svdf",
        ("f32 f32 f32 f32|- f32 -> f32",),
        _VECTOR,
        "run: every order of additions found in the wheel",
        limit=_NANS,
    ),
    Row("svdf", ("f32 s8|u8 s8|u8 f32|- f32 -> f32",), {**_VECTOR, **_HYBRID}, "run", limit=_ROWS),
    Row(
        "svdf",
        ("s8 s8 s8 s32|- s8|s16 -> s8", "s8 s8 s16 s32|- s8 -> s8"),
        evidence="run: heap corruption; docs/facts/litert.md 2.1",
        refuses=(
            "SVDF with an int8 state or int8 weights_time is a microcontroller extension: this runtime's kernel takes "
            "both for int16 without a check and reads and writes past their ends"
        ),
        advice="run it with TensorFlow Lite Micro, or convert it again with a state and weights_time of int16",
    ),
)
