"""Rows of `mxnet`: operators on real numbers, as they stand around the quantized part of a model."""

from __future__ import annotations

from ...records import replace
from ..table import Row

_RUN = "run: random numbers, NaN, infinities, zeros of both signs"
_REAL = "run: close, but not equal in bits"
_LIMIT = (
    "sums and functions of real numbers are the exact ones, rounded once; the runtime's depend on oneDNN's kernels for "
    "the processor, on shapes and on threads, and differ by some units in the last place"
)
_PLAIN, _ONE = {"plain_range": "unlimited"}, ("f32 -> f32",)
_CODES = ("f32", "s8", "u8", "s32")
_ELEMENTWISE = ("attribute_is", "broadcasts", False)
_UNEQUAL = "shapes must be equal: this operator does not broadcast"


def _inexact(stem: str, types: tuple[str, ...], slot: str) -> Row:
    return Row(stem, types, {slot: "rounded_once"}, _REAL, limit=_LIMIT, inexact=True)


def _sums(stem: str) -> tuple[Row, ...]:
    types = ("f32 f32 -> f32",)
    return (
        Row(stem, types, _PLAIN, _RUN, when=(_ELEMENTWISE, ("not_broadcast",))),
        Row(stem, types, refuses=_UNEQUAL, when=(_ELEMENTWISE,)),
        Row(stem, types, _PLAIN, _RUN),
    )


def rows_by_rank(*ranks: int) -> Row:
    """Refuses a softmax over rows, whatever they are, of these ranks."""
    return Row(
        "softmax",
        _ONE,
        refuses="SoftmaxOutput of this rank takes all axes but the first as one row: reshape its input to two axes",
        when=(("attribute_is", "rows_by_rank", True), ("input_rank", 0, *ranks)),
    )


ROWS: tuple[Row, ...] = (
    *(row for stem in ("add", "div", "mul", "sub") for row in _sums(stem)),
    *(Row(stem, _ONE, {}, _RUN) for stem in ("abs", "neg", "relu", "sqrt", "thresholded_relu")),
    Row("leaky_relu", _ONE, {"slope": "scaled_below_zero"}, _RUN),
    Row("clip", ("f32 f32 f32 -> f32",), {}, _RUN),
    Row("max_pool", _ONE, {}, _RUN),
    Row("concatenation", ("T... -> T",), {"combine": "copy"}, _RUN, where=_CODES, requires=(("rank_within", 0, 1),)),
    *(Row(stem, ("T s64 -> T",), {}, _RUN, where=_CODES) for stem in ("expand_dims", "reshape")),
    *(Row(stem, ("T s64|- -> T",), {}, _RUN, where=_CODES) for stem in ("squeeze", "transpose")),
    Row("slice_axes", ("T s64 s64 s64 -> T",), {}, _RUN, where=_CODES),
    *(
        _inexact(stem, _ONE, "real_function")
        for stem in ("exp", "log", "logistic", "elu", "softplus", "softsign", "tanh")
    ),
    _inexact("gelu", _ONE, "real_gelu"),
    rows_by_rank(1, 3, 5),
    *(_inexact(stem, _ONE, "real_softmax") for stem in ("log_softmax", "softmax")),
    replace(_inexact("average_pool", _ONE, "real_sum"), requires=(("windows_have_elements",),)),
    *(_inexact(stem, ("f32 f32 f32|- -> f32",), "real_product") for stem in ("conv", "matmul")),
    _inexact("mean", ("f32 s64|- -> f32",), "real_sum"),
    Row(
        "batch_normalization",
        ("f32 f32 f32 f32 f32 -> f32",),
        {"real_normalization": "binary32_difference"},
        "run: 600 random tensors of rank 2 to 5, all equal; first layers and excluded ones of whole networks",
        limit="behind convolutions on real numbers (which are inexact themselves) the runtime keeps blocks of 16 "
        "channels, where its last product and sum are one fused operation",
    ),
)
