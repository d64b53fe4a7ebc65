"""Rows of `snps_caffe`: convolutions and matrix products.

The arithmetic goes by quantize_method, by whether scales are one per channel, and by the form of the filters.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..table import Row

_RUN = "run: recorded cases of the built system, 4,700 random layers of its sources; docs/facts/snps_caffe.md 1 to 4"
_READ = "read: QUANTIZED_OP.md of SNPS Caffe"
_WHOLE = "u8|s8 u8|s8 -|s32 f64 s32 f64 s32 f64 s32 -> f32|u8|s8"
_ANY = "f32|u8|s8 f32|u8|s8 -|s32|f32 f64 s32 f64 s32 f64 s32 -> f32|u8|s8"
_ORDER = (
    "sums that can leave 2^24 on their way depend on the matrix library of the machine: refused while running, but"
    " taken as exact where everything has 8 bits and such results are limited anyway"
)
_REAL = "sums of numbers that are not whole depend on the matrix library of the machine: rounded once here"
_SHIFT = "; a left shift that leaves 32 bits is undefined: it wraps here"
_WITHIN = (("significand_within_31_bits",),)
_SCALED = ("attribute_is", "rescales", True)
_TFLITE, _ONNX, _CAFFE2 = (("attribute_is", "quantize_method", name) for name in ("tflite", "onnx", "caffe2"))
_PER_CHANNEL = ("attribute_is", "per_channel", True)
_PER_TENSOR = ("attribute_is", "per_channel", False)
_TWO, _ONE, _EVEN = "q31_two_step_up_away", "q31_one_step_up", "q15_one_step_even"
_REAL_EVEN = "binary32_multiply_even_wide"

_Condition = tuple[object, ...]
# (conditions, scale form, rescale)
_Kind = tuple[tuple[_Condition, ...], str, str]


def _rows(operator: str, kinds: tuple[_Kind, ...], channels: str, evidence: str) -> Iterator[Row]:
    for when, form, rescale in kinds:
        fixed = rescale.startswith(("q31", "q30"))
        yield Row(
            operator,
            (_ANY,),
            {
                "accumulate": "binary32",
                "scale_form": form,
                "rescale": rescale,
                "store": "clamp_then_zero_point",
                "channel_parameters": "of_axis" if _PER_TENSOR in when else channels,
            },
            evidence,
            when=(_SCALED, *when),
            requires=_WITHIN if fixed or rescale == _EVEN else (),
            limit=_ORDER + (_SHIFT if fixed else ""),
        )


def _plain(operator: str) -> Iterator[Row]:
    """Without scales nothing is rounded; a multiplier of 1 leaves integers as they are."""
    when = (("attribute_is", "rescales", False),)
    one = {
        "accumulate": "binary32",
        "scale_form": "given_binary64",
        "rescale": "binary64_multiply_even",
        "store": "clamp_then_zero_point",
    }
    yield Row(operator, (_WHOLE,), one, _RUN, when=when, limit=_ORDER)
    real = {"accumulate": "binary32", "real_product": "rounded_once"}
    yield Row(operator, (_ANY,), real, _RUN, when=when, limit=_REAL, inexact=True)


def _convolution(ev: bool) -> tuple[_Kind, ...]:
    two, one = (_EVEN, _EVEN) if ev else (_TWO, _ONE)
    single = "given_binary64" if ev else "binary32_product"
    return (
        ((_TFLITE, _PER_CHANNEL, ("every_output_its_group",)), "given_binary64", two),
        ((_TFLITE, _PER_CHANNEL), "given_binary64", one),
        ((_TFLITE, _PER_TENSOR, ("every_output_its_group",)), single, two),
        ((_TFLITE, _PER_TENSOR, ("single_tap",)), single, two),
        ((_TFLITE, _PER_TENSOR), "given_binary64", two),
        ((_ONNX, _PER_CHANNEL), "given_binary64", _REAL_EVEN),
        ((_ONNX, _PER_TENSOR), "binary32", _REAL_EVEN),
        ((_CAFFE2,), "binary32_step_by_step", two),
    )


def _product(tflite: str) -> tuple[_Kind, ...]:
    return (
        ((_TFLITE,), "given_binary64", tflite),
        ((_ONNX,), "given_binary64", "binary64_multiply_even"),
        ((_CAFFE2,), "given_binary64", "binary64_multiply_even"),
    )


_DECONVOLUTION: tuple[_Kind, ...] = (((), "given_binary64", "binary32_two_step_away_away"),)
# As the document prints it: D1, D2, F2 in single precision throughout, 2-steps-rounding for Caffe2.
_DOCUMENT_CONVOLUTION: tuple[_Kind, ...] = (
    ((_TFLITE, _PER_CHANNEL, ("every_channel_its_group",)), "given_binary64", _TWO),
    ((_TFLITE, _PER_CHANNEL), "given_binary64", "q30_floor_plus_one"),
    ((_TFLITE, _PER_TENSOR, ("every_channel_its_group",)), "binary32", _TWO),
    ((_TFLITE, _PER_TENSOR, ("single_tap",)), "binary32", _TWO),
    ((_TFLITE, _PER_TENSOR), "given_binary64", _TWO),
    ((_ONNX, _PER_CHANNEL), "binary32", _REAL_EVEN),
    ((_ONNX, _PER_TENSOR), "binary32", _REAL_EVEN),
    ((_CAFFE2,), "binary32", _TWO),
)
_DOCUMENT_PRODUCT: tuple[_Kind, ...] = (
    ((_TFLITE,), "given_binary64", _TWO),
    ((_ONNX,), "given_binary64", _TWO),
    ((_CAFFE2,), "given_binary64", "binary64_multiply_even"),
)
_DOCUMENT_DECONVOLUTION: tuple[_Kind, ...] = (((), "binary32", _TWO),)

_SHARED = (*_plain("conv"), *_plain("conv_transpose"), *_plain("fully_connected"))


def _table(
    convolution: tuple[_Kind, ...],
    product: tuple[_Kind, ...],
    deconvolution: tuple[_Kind, ...],
    channels: str = "of_equal_slices",
    evidence: str = _RUN,
) -> tuple[Row, ...]:
    return (
        *_rows("conv", convolution, channels, evidence),
        *_rows("conv_transpose", deconvolution, "of_axis", evidence),
        *_rows("fully_connected", product, "of_axis", evidence),
        *_SHARED,
    )


ROWS = _table(_convolution(False), _product("binary64_two_step_away_away"), _DECONVOLUTION)
EV_ROWS = _table(_convolution(True), _product(_EVEN), _DECONVOLUTION)
SR_ROWS = _table(_convolution(False), _product("binary64_product_binary32_away"), _DECONVOLUTION)
DOCUMENT_ROWS = _table(_DOCUMENT_CONVOLUTION, _DOCUMENT_PRODUCT, _DOCUMENT_DECONVOLUTION, "of_axis", _READ)
