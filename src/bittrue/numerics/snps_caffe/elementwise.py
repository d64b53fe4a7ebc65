"""Rows of `snps_caffe`: Bias, Concat, Eltwise, Power, ReLU, Sigmoid, Softmax."""

from __future__ import annotations

from ..table import Row

_SCALE = "-|f64 -|s32"
_ONE = (f"f32|u8|s8 {_SCALE} {_SCALE} -> f32|u8|s8",)
_TWO = ("f32|u8|s8 f32|u8|s8 f64 s32 f64 s32 f64 s32 -> f32|u8|s8",)
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


_PLAIN = {"plain_range": "unlimited"}
_SOURCES = "run: random cases of the original layer sources; docs/facts/snps_caffe.md 5"

ROWS: tuple[Row, ...] = (
    Row(
        "add",
        _TWO,
        {"level_sum": "q31_left_20_two_step"},
        f"{_RUN} 5",
        when=(("attribute_is", "side_by_side", True), _method("tflite")),
        limit=_SHIFTS,
    ),
    Row(
        "add",
        _TWO,
        {"level_sum": "binary32_of_21_bits_away"},
        f"{_RUN} 5",
        when=(("attribute_is", "side_by_side", True),),
        limit="scales 2^10 times smaller than the output's and more, for which it shifts by 31 bits, are refused",
    ),
    Row("add", _TWO, _AWAY, f"{_RUN} 5", limit=_RESTORED),
    Row("add", ("f32 f32 -> f32",), _PLAIN, _SOURCES),
    Row("mul", ("f32 f32 -> f32",), _PLAIN, _SOURCES),
    Row(
        "div",
        ("f32 f32 -> f32",),
        {**_PLAIN, "real_divide": "binary32_quotient"},
        _SOURCES,
        when=(("equal_shapes",),),
    ),
    Row(
        "div",
        ("f32 f32 -> f32",),
        refuses="a quotient by a shorter tensor with limits: the runtime limits what lies behind its result in memory",
        when=(("attribute_is", "limited", True),),
    ),
    Row("div", ("f32 f32 -> f32",), {**_PLAIN, "real_divide": "binary32_product_of_reciprocal"}, _SOURCES),
    Row("maximum", ("f32 f32 -> f32",), {}, _SOURCES),
    Row("minimum", ("f32 f32 -> f32",), {}, _SOURCES),
    Row("power", ("f32 f32 -> f32",), {"power": "library"}, f"{_SOURCES} with the C library's powf"),
    Row("cast", ("u8|s8 -> f32",), {}, f"{_RUN} 0"),
    Row("clip", ("f32|u8|s8 f32 f32 -> f32|u8|s8",), {}, f"{_RUN} 0", limit=_LEVEL),
    Row(
        "concatenation",
        ("T T... -> T",),
        {"combine": "copy"},
        f"{_RUN} 8",
        where=("f32", "u8", "s8"),
        requires=(("rank_within", 0, 1),),
    ),
    Row("leaky_relu", _ONE, {"rescale": "q31_two_step_up_away"}, f"{_RUN} 8", limit=_SHIFTS),
    Row("relu", _ONE, _AWAY, f"{_RUN} 8", limit=_RESTORED),
    Row("quantize", _ONE, _AWAY, f"{_RUN} 8", when=(("attribute_is", "multiplies", False),), limit=_RESTORED),
    Row("quantize", _ONE, {"levels": "binary32_multiply_away"}, f"{_RUN} 7", when=(_method("tflite"),), limit=_LEVEL),
    Row("quantize", _ONE, {"levels": "binary32_multiply_even"}, f"{_RUN} 7", limit=_LEVEL),
    Row("logistic", _ONE, _AWAY, f"{_RUN} 8", limit=_RESTORED),
    Row(
        "softmax",
        _ONE,
        _AWAY,
        f"{_RUN} 8",
        when=(("attribute_is", "rounds", False),),
        limit="the runtime adds exponentials in the order of its BLAS library, which differs by processor and shape: "
        "results that are not rounded to quantized values may differ in their last bit",
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
        "add",
        _TWO,
        {"levels": "binary32_divide_even"},
        "read: QUANTIZED_OP.md, BiasAdd o, halves toward even",
        when=(("attribute_is", "side_by_side", None), _method("onnx")),
    ),
)
