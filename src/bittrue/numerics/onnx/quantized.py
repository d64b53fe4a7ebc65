"""Rows of `onnx`: element-wise operators, pools and tables on quantized numbers.

The schemas of domain com.microsoft give formulas of real numbers; results are their values, quantized as QuantizeLinear
does it: divided by the output's scale, rounded to even, then the zero point is added and the sum saturates.
"""

from __future__ import annotations

from ..onnxruntime.quantized import BYTES, CONCAT, MEANS, SCALES, WHERE
from ..table import Row

_BINARY = ("T T f32 T|- f32 T|- f32 T|- -> T",)
_TABLE = ("T f32 T|- f32 T|- -> T",)
_TEXT = "the schema's formula in real numbers; exact oracles"
_MEAN = {"accumulate": "s64", "mean": "exact_even", "store": "clamp_then_zero_point"}

ROWS: tuple[Row, ...] = (
    Row("add", _BINARY, {"affine_sum": "exact_even"}, _TEXT, where=BYTES),
    Row("mul", _BINARY, {"affine_product": "exact_even"}, _TEXT, where=BYTES),
    Row("average_pool", _TABLE, _MEAN, _TEXT, where=BYTES, when=(("attribute_is", "kernel", ()),)),
    Row("average_pool", _TABLE, {"affine_average": "exact_even"}, _TEXT, where=BYTES),
    Row("concatenation", CONCAT, {"combine": "exact_even"}, _TEXT, where=BYTES, when=SCALES),
    Row("select", WHERE, {"combine": "exact_even"}, _TEXT, where=BYTES),
    Row("leaky_relu", _TABLE, {"table": "exact_256_even"}, _TEXT, where=BYTES),
    Row("logistic", _TABLE, {"table": "exact_256_even"}, _TEXT, where=BYTES),
    Row("softmax", _TABLE, {"affine_softmax": "exact_even"}, _TEXT, where=BYTES),
    Row("mean", MEANS, _MEAN, _TEXT, where=BYTES),
)
