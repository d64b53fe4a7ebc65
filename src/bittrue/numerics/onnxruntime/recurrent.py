"""Rows of `onnxruntime`: recurrent layers over whole sequences."""

from __future__ import annotations

from ..table import Row

_RUN = "run on x86-64 with AVX-512 and FMA, one thread: 500 random single-node models, every bit"
_OTHER_MACHINES = (
    "other processors have other kernels, whose last bits differ; several threads take the sequences of a batch or the "
    "columns of a product apart, which can change the order of a sum; of several NaN it "
    "may keep another one"
)
_GATES = {"recurrence": "binary32_polynomials"}
LSTM_TYPES = tuple(f"f32 f32 f32 f32|- s32|- f32|- f32|- f32|- -> {out}" for out in ("f32", "f32 f32", "f32 f32 f32"))
SHORT_TYPES = tuple(f"f32 f32 f32 f32|- s32|- f32|- -> {out}" for out in ("f32", "f32 f32"))
QUANTIZED_TYPES = tuple(
    f"f32 T T f32|- s32|- f32|- f32|- f32|- f32 T f32 T -> {out}" for out in ("f32", "f32 f32", "f32 f32 f32")
)

ROWS: tuple[Row, ...] = (
    Row(
        "lstm",
        LSTM_TYPES,
        {"real_product": "binary32_fused_blocks", **_GATES},
        _RUN,
        limit=_OTHER_MACHINES,
        requires=(("names_hidden_size",),),
    ),
    *(
        Row(
            stem,
            SHORT_TYPES,
            {"real_product": "binary32_fused_blocks", **_GATES},
            _RUN,
            limit=limit,
            requires=(("names_hidden_size",),),
        )
        for stem, limit in (
            ("gru", _OTHER_MACHINES),
            (
                "rnn",
                f"{_OTHER_MACHINES}; a sequence of no steps is refused: the runtime reads foreign memory",
            ),
        )
    ),
    Row(
        "lstm",
        QUANTIZED_TYPES,
        {
            "dynamic_range": "binary32_over_255_by_eights",
            "quotient": "binary32",
            "to_integer": "clamp_even",
            "accumulate": "s32_wrap",
            "scale_back": "binary32_product_of_scales",
            **_GATES,
        },
        _RUN,
        where=("u8", "s8"),
        limit=f"{_OTHER_MACHINES}; several threads quantize parts of a batch on their own",
        requires=(("names_hidden_size",),),
    ),
    Row(
        "attending_lstm",
        tuple(types.replace(" ->", " f32 f32 f32 f32 s32|- f32|- ->") for types in LSTM_TYPES),
        {"real_product": "binary32_fused_blocks", "real_function": "binary32_by_library", **_GATES},
        "run on x86-64 with AVX-512 and FMA, one thread: 200 random single-node models, every bit",
        limit=_OTHER_MACHINES,
        requires=(("names_hidden_size",),),
    ),
)
