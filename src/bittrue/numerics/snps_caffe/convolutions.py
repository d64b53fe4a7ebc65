"""Rows of `snps_caffe`: convolutions and matrix products.

The arithmetic goes by quantize_method, by whether scales are one per channel, and by the form of the filters. Each kind
has two rows: layers of 8 bits throughout whose sums are proven go to kernels of integers, all others keep binary32.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..table import Row

_RUN = "run: recorded cases of the built system; facts/snps_caffe.md 1 to 4"
_READ = "read: QUANTIZED_OP.md of SNPS Caffe"
_EIGHT = "u8|s8 f64 s32 u8|s8 f64 s32 f64 s32 -|s32 -> u8|s8"
_WHOLE = "u8|s8 f64 s32 u8|s8 f64 s32 f64 s32 -|s32 -> f32|u8|s8"
_ANY = "f32|u8|s8 f64 s32 f32|u8|s8 f64 s32 f64 s32 -|s32|f32 -> f32|u8|s8"
_ORDER = "sums that leave 2^24 on their way depend on the matrix library of the machine: taken as exact"
_REFUSED = "sums that can leave 2^24 depend on the matrix library of the machine: refused while running"
_REAL = "sums of numbers that are not whole depend on the matrix library of the machine: rounded once here"
_WITHIN = (("significand_within_31_bits",),)
_SCALED = ("attribute_is", "rescales", True)
_TFLITE, _ONNX, _CAFFE2 = (("attribute_is", "quantize_method", name) for name in ("tflite", "onnx", "caffe2"))
_PER_CHANNEL = ("attribute_is", "per_channel", True)
_TWO, _ONE, _EVEN = "q31_two_step_up_away", "q31_one_step_up", "q15_one_step_even"

_Condition = tuple[object, ...]
# (conditions, scale form, rescale of 8-bit results, rescale of any, checks)
_Kind = tuple[tuple[tuple[object, ...], ...], str, str, str, tuple[tuple[object, ...], ...]]


def _fixed(when: tuple[tuple[object, ...], ...], form: str, rule: str) -> _Kind:
    return when, form, rule, rule, _WITHIN


def _floating(when: tuple[tuple[object, ...], ...], form: str, rule: str, wide: str) -> _Kind:
    return when, form, rule, wide, ()


def _rows(
    operator: str, kinds: tuple[_Kind, ...], eight: _Condition | None, channels: str, evidence: str
) -> Iterator[Row]:
    """Two rows per kind; one for an operator without a form of 8 bits throughout."""
    for when, form, narrow, wide, requires in kinds:
        when = (_SCALED, *when)
        if eight is not None:
            rules = {
                "accumulate": "s32_wrap",
                "scale_form": form,
                "rescale": narrow,
                "store": "clamp_then_zero_point",
            }
            yield Row(operator, (_EIGHT,), rules, evidence, when=(*when, eight), requires=requires, limit=_ORDER)
        rules = {"accumulate": "binary32", "scale_form": form, "rescale": wide, "channel_parameters": channels}
        yield Row(operator, (_ANY,), rules, evidence, when=when, requires=requires, limit=_REFUSED)


def _plain(operator: str, eight: _Condition | None) -> Iterator[Row]:
    """Without scales nothing is rounded. A multiplier of 1 leaves whole numbers as they are."""
    when = (("attribute_is", "rescales", False),)
    if eight is not None:
        rules = {
            "accumulate": "s32_wrap",
            "scale_form": "given_binary64",
            "rescale": "binary64_multiply_even",
            "store": "clamp_then_zero_point",
        }
        yield Row(operator, (_EIGHT,), rules, _RUN, when=(*when, eight), limit=_ORDER)
    yield Row(operator, (_WHOLE,), {"accumulate": "binary32"}, _RUN, when=when, limit=_REFUSED)
    real = {"accumulate": "binary32", "real_product": "rounded_once"}
    yield Row(operator, (_ANY,), real, _RUN, when=when, limit=_REAL, inexact=True)


def _convolution(ev: bool) -> tuple[_Kind, ...]:
    two, one = (_EVEN, _EVEN) if ev else (_TWO, _ONE)
    single = "given_binary64" if ev else "binary32_product"
    return (
        _fixed((_TFLITE, _PER_CHANNEL, ("every_output_its_group",)), "given_binary64", two),
        _fixed((_TFLITE, _PER_CHANNEL), "given_binary64", one),
        _fixed((_TFLITE, ("every_output_its_group",)), single, two),
        _fixed((_TFLITE, ("single_tap",)), single, two),
        _fixed((_TFLITE,), "given_binary64", two),
        _floating((_ONNX, _PER_CHANNEL), "given_binary64", "binary32_multiply_even", "binary32_multiply_even_wide"),
        _floating((_ONNX,), "binary32", "binary32_multiply_even", "binary32_multiply_even_wide"),
        _fixed((_CAFFE2,), "binary32_step_by_step", two),
    )


def _product(tflite: str) -> tuple[_Kind, ...]:
    return (
        _floating((_TFLITE,), "given_binary64", tflite, tflite),
        _floating((), "given_binary64", "binary64_multiply_even", "binary64_multiply_even"),
    )


_DEPTHWISE = (("every_channel_its_group",),)
# As the document prints it: D1, D2, F2 in single precision throughout, 2-steps-rounding for Caffe2.
_DOCUMENT_CONVOLUTION = (
    _fixed((_TFLITE, _PER_CHANNEL, *_DEPTHWISE), "given_binary64", _TWO),
    _fixed((_TFLITE, _PER_CHANNEL), "given_binary64", "q30_floor_plus_one"),
    _fixed((_TFLITE, *_DEPTHWISE), "binary32", _TWO),
    _fixed((_TFLITE, ("single_tap",)), "binary32", _TWO),
    _fixed((_TFLITE,), "given_binary64", _TWO),
    _floating((_ONNX,), "binary32", "binary32_multiply_even", "binary32_multiply_even_wide"),
    _fixed((_CAFFE2,), "binary32", _TWO),
)
_DOCUMENT_PRODUCT = (
    _fixed((_TFLITE,), "given_binary64", _TWO),
    _fixed((_ONNX,), "given_binary64", _TWO),
    _floating((), "given_binary64", "binary64_multiply_even", "binary64_multiply_even"),
)
_DECONVOLUTION = ((_floating((), "given_binary64", "binary32_two_step_away_away", "binary32_two_step_away_away")),)
_DOCUMENT_DECONVOLUTION = (_fixed((), "binary32", _TWO),)

_SHARED = (
    *_plain("whole_conv", ("is_8_bit_convolution", "of_axis")),
    *_plain("whole_conv_transpose", None),
    *_plain("whole_fully_connected", ("is_8_bit_product",)),
)


def _table(
    convolution: tuple[_Kind, ...],
    product: tuple[_Kind, ...],
    deconvolution: tuple[_Kind, ...],
    channels: str = "of_equal_slices",
    evidence: str = _RUN,
) -> tuple[Row, ...]:
    return (
        *_rows("whole_conv", convolution, ("is_8_bit_convolution", channels), channels, evidence),
        *_rows("whole_conv_transpose", deconvolution, None, "of_axis", evidence),
        *_rows("whole_fully_connected", product, ("is_8_bit_product",), "of_axis", evidence),
        *_SHARED,
    )


ROWS = _table(_convolution(False), _product("binary64_two_step_away_away"), _DECONVOLUTION)
EV_ROWS = _table(_convolution(True), _product(_EVEN), _DECONVOLUTION)
SR_ROWS = _table(_convolution(False), _product("binary64_product_binary32_away"), _DECONVOLUTION)
DOCUMENT_ROWS = _table(_DOCUMENT_CONVOLUTION, _DOCUMENT_PRODUCT, _DOCUMENT_DECONVOLUTION, "of_axis", _READ)
