"""Mappings of element-wise operators on real numbers."""

from __future__ import annotations

import math

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, Mapper, Mappers, Source, same_type

_PLAIN: dict[str, Attribute] = {"activation": "none"}


def with_reals(operator: str, **defaults: float) -> Mapper:
    """An operator of the same operands, whose attributes are all real numbers."""

    def apply(source: Source) -> None:
        source.emit(operator, source.type(0), {name: source.real(name, value) for name, value in defaults.items()})

    return apply


def _clip(source: Source) -> None:
    if source.version >= 11:
        source.emit("clip", source.type(0))
        return
    given = [source.real(name, 0.0) if source.has(name) else None for name in ("min", "max")]
    if any(end is not None and math.isnan(end) for end in given):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'min' and 'max' must be numbers")
    ends = [
        None if end is None else source.constant(np.float32(end), name)
        for name, end in zip(("min", "max"), given, strict=True)
    ]
    source.emit("clip", source.type(0), inputs=[*source.inputs[:1], *ends])


def _celu(source: Source) -> None:
    source.emit("elu", source.type(0), {"alpha": source.real("alpha", 1.0), "continuous": True})


def _reciprocal(source: Source) -> None:
    one = source.constant(np.ones((), source.tensor(0).type.numpy), "one")
    source.emit("div", source.type(0), {"reciprocal": True}, inputs=[one, *source.inputs])


def _relu(source: Source) -> None:
    dtype = source.type(0)
    if dtype in ("f32", "f16", "f64"):
        source.emit("relu", dtype, {"activation": "relu"})
        return
    zero = source.constant(np.zeros((), source.tensor(0).type.numpy), "zero")
    source.emit("clip", dtype, inputs=[*source.inputs[:1], zero])


def _gelu(source: Source) -> None:
    form = source.text("approximate", "none")
    if form not in ("none", "tanh"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute 'approximate' is '{form}'")
    source.emit("gelu", source.type(0), {"approximate": form == "tanh"})


def _biased_gelu(approximate: bool) -> Mapper:
    def apply(source: Source) -> None:
        dtype, inputs = source.type(0), source.inputs[:1]
        if source.present(1):
            sum_of = source.temporary(dtype, "biased")
            inputs = list(source.emit("add", dtype, _PLAIN, inputs=source.inputs[:2], outputs=[sum_of]))
        source.emit("gelu", dtype, {"approximate": approximate}, inputs=inputs)

    return apply


def _quick_gelu(source: Source) -> None:
    source.emit("gelu", source.type(0), {"form": "logistic", "alpha": source.real("alpha", 1.702)})


def _shrink(source: Source) -> None:
    attributes: dict[str, Attribute] = {"bias": source.real("bias", 0.0), "lambda": source.real("lambd", 0.5)}
    source.emit("shrink", source.type(0), attributes)


def _hardmax(source: Source) -> None:
    flattened = source.version < 13
    axis = source.integer("axis", 1 if flattened else -1)
    source.emit("hardmax", source.type(0), {"axis": axis, "flattened": flattened})


def _softmax(stem: str) -> Mapper:
    def apply(source: Source) -> None:
        flattened = source.version < 13
        axis = source.integer("axis", 1 if flattened else -1)
        source.emit(stem, source.type(0), {"axis": axis, "flattened": flattened, "beta": 1.0})

    return apply


_CIRCULAR = "Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan".split()


def _sum_of_many(mean: bool) -> Mapper:
    def mapper(source: Source) -> None:
        attributes: dict[str, Attribute] = {"broadcasts": source.version >= 8, "least": 1, "mean": mean}
        source.emit("add_n", source.type(0), attributes)

    return mapper


MAPPERS: Mappers = {
    **{("", name): same_type(name.lower()) for name in _CIRCULAR},
    ("", "Ceil"): same_type("round_to_integer", direction="up"),
    ("", "Celu"): _celu,
    ("", "Clip"): _clip,
    ("", "Cos"): same_type("cos"),
    ("", "Elu"): with_reals("elu", alpha=1.0),
    ("", "Erf"): same_type("erf"),
    ("", "Exp"): same_type("exp"),
    ("", "Floor"): same_type("round_to_integer", direction="down"),
    ("", "Gelu"): _gelu,
    ("", "HardSigmoid"): with_reals("hard_sigmoid", alpha=0.2, beta=0.5),
    ("", "HardSwish"): same_type("hard_swish"),
    ("", "Hardmax"): _hardmax,
    ("", "LeakyRelu"): with_reals("leaky_relu", alpha=0.01),
    ("", "Log"): same_type("log"),
    ("", "LogSoftmax"): _softmax("log_softmax"),
    ("", "Mean"): _sum_of_many(True),
    ("", "Mish"): same_type("mish"),
    ("", "PRelu"): same_type("prelu"),
    ("", "Pow"): same_type("power"),
    ("", "Reciprocal"): _reciprocal,
    ("", "Relu"): _relu,
    ("", "Round"): same_type("round_to_integer", direction="even"),
    ("", "Selu"): with_reals("elu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    ("", "Shrink"): _shrink,
    ("", "Sigmoid"): same_type("logistic"),
    ("", "Sign"): same_type("sign"),
    ("", "Sin"): same_type("sin"),
    ("", "Softmax"): _softmax("softmax"),
    ("", "Softplus"): same_type("softplus"),
    ("", "Softsign"): same_type("softsign"),
    ("", "Sqrt"): same_type("sqrt"),
    ("", "Sum"): _sum_of_many(False),
    ("", "Tanh"): same_type("tanh"),
    ("", "ThresholdedRelu"): with_reals("thresholded_relu", alpha=1.0),
    (MICROSOFT, "BiasGelu"): _biased_gelu(False),
    (MICROSOFT, "FastGelu"): _biased_gelu(True),
    (MICROSOFT, "Gelu"): same_type("gelu", approximate=False),
    (MICROSOFT, "QuickGelu"): _quick_gelu,
}
