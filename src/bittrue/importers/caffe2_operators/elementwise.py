"""Sums, products, activations, and the ways between real numbers and integers."""

from __future__ import annotations

from ...graph import Attribute
from .base import SERVER, Mappers, Source, in_u8
from .layers import fused


def _sum(source: Source) -> None:
    source.expect((1, 1 << 16))
    in_u8(source, *range(len(source.inputs)))
    activation, parameters = fused(source)
    if len(source.inputs) == 2:
        attributes: dict[str, Attribute] = {"activation": activation, "pot_scale_int16": False}
        source.emit("add", "u8", parameters, attributes)
    else:
        source.emit("add_n", "u8", parameters, {"activation": activation, "least": 1})


def _product(source: Source) -> None:
    source.expect(2)
    in_u8(source, 0, 1)
    activation, parameters = fused(source)
    source.emit("mul", "u8", parameters, {"activation": activation})


def _relu(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    asked = source.requested()
    # The arguments are ignored by the server engine.
    parameters = source.quantization(0) if source.engine == SERVER else asked
    source.emit("relu", "u8", parameters, {"activation": "relu"})


def _leaky_relu(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    source.emit("leaky_relu", "u8", source.requested(), {"alpha": source.real("alpha", 0.01)})


def _sigmoid(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    asked = source.requested()
    source.emit("logistic", "u8", source.parameters(0.5 / 127, 0) if source.engine == SERVER else asked)


def _tanh(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    source.requested()
    source.emit("tanh", "u8", source.parameters(1 / 127, 128))


def _quantize(source: Source) -> None:
    source.expect(1)
    if source.tensor(0).dtype != "f32" or source.tensor(0).quantization is not None:
        raise source.invalid("BT-NODE-TYPE", f"input 0 is {source.tensor(0).dtype}, expected real numbers (f32)")
    source.emit("quantize", "u8", source.requested())


def _dequantize(source: Source) -> None:
    source.expect(1)
    source.quantization(0)
    source.emit("dequantize", "f32", None)


MAPPERS: Mappers = {
    "Int8Add": _sum,
    "Int8AddRelu": _sum,
    "Int8Dequantize": _dequantize,
    "Int8LeakyRelu": _leaky_relu,
    "Int8Mul": _product,
    "Int8Quantize": _quantize,
    "Int8Relu": _relu,
    "Int8Sigmoid": _sigmoid,
    "Int8Sum": _sum,
    "Int8SumRelu": _sum,
    "Int8Tanh": _tanh,
}
