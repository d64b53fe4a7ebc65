"""Rows of `tvm-qnn`: the operators of relay.qnn themselves."""

from __future__ import annotations

from ..table import Row
from .variants import READ, Variant, variants

_CODES = ("s8", "u8", "s16", "u16", "s32")
_STORED = "|".join(_CODES)
_MOVED = ("s8", "u8", "s16", "u16", "s32", "s64", "f32")


def _requantize(variant: Variant, per_channel: bool) -> Row:
    return Row(
        "quantize",
        ("s8|u8|s16|s32|s64 -> s8|u8|s16|s32",),
        {**variant.centering(), "scale_form": "binary64", **variant.rescaling(per_channel)},
        f"{READ}, op/requantize.cc; 226 check values",
        when=(("input_per_axis", 0),) if per_channel else (),
    )


def rows(own: Variant) -> tuple[Row, ...]:
    """All of them."""
    return (
        # One scale per slice first: those rows have a condition, even the last one.
        *variants(own, lambda v: _requantize(v, True)),
        *variants(own, lambda v: _requantize(v, False)),
        Row(
            "quantize",
            (f"f32 -> {_STORED}",),
            {"quantize": "binary32_divide_away_sum"},
            f"{READ}, op/quantize.cc; 6 check values",
            limit="NaN and, for int32, numbers of 2^31 and more have no rule there",
        ),
        Row(
            "dequantize",
            (f"{_STORED} -> f32",),
            {"dequantize": "binary32_multiply"},
            f"{READ}, op/dequantize.cc; 8 check values",
        ),
        Row(
            "dequantize_linear",
            (f"{_STORED} f32 s32 -> f32|f16",),
            {"zero_points": "used", "dequantize": "binary32_multiply", "narrow": "even_saturate"},
            f"{READ}, op/dequantize.cc; a check value",
        ),
        *(
            Row(
                "conv_integer",
                ("s8|u8|s16 s8|u8|s16 s32 s32 -> T",),
                {"accumulate": "s32_wrap" if result == "s32" else "s64"},
                f"{READ}, op/convolution.cc; 3 check values",
                where=(result,),
            )
            for result in ("s32", "s64")
        ),
        *(
            Row(
                "matmul_integer",
                ("s8|u8|s16|u16 s8|u8 s32 s32 -> T",),
                {"accumulate": "s32_wrap" if result == "s32" else "s64"},
                f"{READ}, op/dense.cc and op/batch_matmul.cc; 19 check values",
                where=(result,),
            )
            for result in ("s32", "s64")
        ),
        Row("add", ("T T -> T",), {"plain_range": "type_limits"}, f"{READ}, nn.bias_add", where=("s32", "s64")),
        *(Row("clip", ("T T|- T|- -> T",), {}, f"{READ}, clip on codes", where=(t,)) for t in _CODES),
        Row("transpose", ("T s32|s64 -> T",), {}, f"{READ}, values are moved only", where=_MOVED),
        Row("reshape", ("T s32|- -> T",), {}, f"{READ}, values are moved only", where=_MOVED),
    )
