"""Rows of `snps_caffe`: Bias, Concat, Eltwise, Power, ReLU, Sigmoid, Softmax."""

from __future__ import annotations

from ..table import Row

_ONE = ("f32|u8|s8 -> f32|u8|s8",)
_TWO = ("f32|u8|s8 f32|u8|s8 -> f32|u8|s8",)
_ANY = ("f32|u8|s8 f32|u8|s8... -> f32|u8|s8",)
_RUN = "run: recorded cases of the built system; docs/facts/snps_caffe.md"
_AWAY = {"levels": "binary32_divide_away"}
_LEVEL = "a number that is no whole one of 8 bits has no place in a result of 8 bits: refused while running"
_RESTORED = (
    "where the input is quantized, the runtime writes it back rounded to integers: a second reader of a blob with "
    "other numbers would see those"
)
_SHIFTS = "sums and shifts that leave 32 bits, which the runtime leaves undefined, are refused"


def _method(*names: str) -> tuple[object, ...]:
    return ("attribute_is", "quantize_method", *names)


ROWS: tuple[Row, ...] = (
    Row("add_n", _TWO, {"level_sum": "q31_left_20_two_step"}, f"{_RUN} 5", when=(_method("tflite"),), limit=_SHIFTS),
    Row(
        "add_n",
        _TWO,
        {"level_sum": "binary32_of_21_bits_away"},
        f"{_RUN} 5",
        limit="scales 2^10 times smaller than the output's and more, for which it shifts by 31 bits, are refused",
    ),
    Row("bias_levels", _TWO, _AWAY, f"{_RUN} 5", limit=_RESTORED),
    Row(
        "combine_levels",
        _ONE + _ANY,
        {},
        "run: random cases of the original layer sources; docs/facts/snps_caffe.md 5",
        limit="coefficients that are no powers of two, whose products some processors do not round, are refused",
    ),
    Row(
        "concatenation",
        ("T T... -> T",),
        {"combine": "copy"},
        f"{_RUN} 8",
        where=("f32", "u8", "s8"),
        requires=(("rank_within", 0, 1),),
    ),
    Row("leaky_levels", _ONE, {"rescale": "q31_two_step_up_away"}, f"{_RUN} 8", limit=_SHIFTS),
    Row("limit_levels", _ONE, {}, f"{_RUN} 0", limit=_LEVEL),
    Row("power_levels", _ONE, {}, "run: random cases of the original layer sources with the C library's powf"),
    Row("relu", _ONE, _AWAY, f"{_RUN} 8", limit=_RESTORED),
    Row("quantize", _ONE, _AWAY, f"{_RUN} 8", limit=_RESTORED),
    Row(
        "scale_levels",
        _ONE,
        {"levels": "binary32_multiply_add"},
        f"{_RUN} 7",
        when=(("attribute_is", "rounds", False),),
    ),
    Row(
        "scale_levels", _ONE, {"levels": "binary32_multiply_away"}, f"{_RUN} 7", when=(_method("tflite"),), limit=_LEVEL
    ),
    Row("scale_levels", _ONE, {"levels": "binary32_multiply_even"}, f"{_RUN} 7", limit=_LEVEL),
    Row("logistic", _ONE, _AWAY, f"{_RUN} 8", limit=_RESTORED),
    Row(
        "softmax",
        _ONE,
        _AWAY,
        f"{_RUN} 8",
        when=(("attribute_is", "output_scale", 1.0),),
        limit="the runtime adds exponentials in the order of its BLAS library, which differs by processor and shape: "
        "results that are not rounded to levels may differ in their last bit",
        inexact=True,
    ),
    Row(
        "softmax",
        _ONE,
        _AWAY,
        f"{_RUN} 8",
        limit="exponentials are added in order; the runtime adds them as its BLAS library does, so a share within two "
        "units of the last place of a tie may round the other way",
    ),
)

# What the system's document says differently.
DOCUMENT_ROWS: tuple[Row, ...] = (
    Row(
        "bias_levels",
        _TWO,
        {"levels": "binary32_divide_even"},
        "read: QUANTIZED_OP.md, BiasAdd o, halves toward even",
        when=(_method("onnx"),),
    ),
)
