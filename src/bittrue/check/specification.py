"""The LiteRT 8-bit quantization specification as data: 38 operators, what it says about each of their tensors.

Source: https://ai.google.dev/edge/litert/conversion/tensorflow/quantization/quantization_spec (read), of which an older
version is https://www.tensorflow.org/lite/performance/quantization_spec (read). They differ in one line: weights of
FULLY_CONNECTED are per-axis (dim = 0) today and were per-tensor before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

PER_TENSOR, PER_AXIS = "per-tensor", "per-axis"


@dataclass(frozen=True)
class Operand:
    """What the specification says about one tensor of an operator.

    Attributes:
        side: ``"input"`` or ``"output"``.
        position: its index there; None stands for every one of that side.
        role: ``"activation"``, ``"weight"`` or ``"bias"``.
        dtype: type.
        low, high: range of its values.
        granularity: `PER_TENSOR` or `PER_AXIS`.
        axis: the dimension that the scales of a per-axis operand belong to; None where none is given.
        older_granularity: that of the older version, where it is another one.
    """

    side: str
    position: int | None
    role: str = "activation"
    dtype: str = "s8"
    low: int = -128
    high: int = 127
    granularity: str = PER_TENSOR
    axis: int | None = None
    older_granularity: str = ""

    @property
    def title(self) -> str:
        """As in the specification: ``"input 1 (weight)"``."""
        role = f" ({self.role})" if self.role != "activation" else ""
        return f"{self.side}{'s' if self.position is None else f' {self.position}'}{role}"


@dataclass(frozen=True)
class Fixed:
    """The only scale and zero point that an operator's output may have.

    Attributes:
        numerator, denominator: the scale.
        zero_point: for int8.
    """

    numerator: int
    denominator: int
    zero_point: int

    @property
    def scale(self) -> float:
        return self.numerator / self.denominator

    def __str__(self) -> str:
        return f"scale {self.numerator}/{self.denominator}, zero point {self.zero_point}"


@dataclass(frozen=True)
class Specified:
    """One operator of the specification.

    Attributes:
        name: as files call it.
        operands: what it says about tensors; tensors that are not named may be anything.
        same: inputs and outputs must all have the same scale and zero point.
        fixed: the parameters that its output must have; None when they are free.
        same_enforced: LiteRT refuses int8 nodes that break `same`; what it does differently.
    """

    name: str
    operands: tuple[Operand, ...]
    same: bool = False
    fixed: Fixed | None = None
    same_enforced: bool = False


_IN0, _IN1, _OUT = Operand("input", 0), Operand("input", 1), Operand("output", 0)
_UNARY, _BINARY = (_IN0, _OUT), (_IN0, _IN1, _OUT)
_WEIGHT = Operand("input", 1, "weight", low=-127, granularity=PER_AXIS, axis=0)
_BIAS = Operand("input", 2, "bias", "s32", -(2**31), 2**31 - 1, PER_AXIS)


def _layer(name: str, weight: Operand, bias: Operand) -> Specified:
    return Specified(name, (_IN0, weight, bias, _OUT))


def _same(name: str, enforced: bool = False) -> Specified:
    return Specified(name, _UNARY, same=True, same_enforced=enforced)


def _fixed(name: str, numerator: int, denominator: int, zero_point: int) -> Specified:
    return Specified(name, _UNARY, fixed=Fixed(numerator, denominator, zero_point))


def _compared(name: str) -> Specified:
    return Specified(name, (_IN0, _IN1))


# In the order of the document.
_OPERATORS = (
    Specified("ADD", _BINARY),
    _same("AVERAGE_POOL_2D"),
    Specified("CONCATENATION", (Operand("input", None), _OUT), same=True, same_enforced=True),
    _layer("CONV_2D", _WEIGHT, _BIAS),
    _layer("DEPTHWISE_CONV_2D", replace(_WEIGHT, axis=3), _BIAS),
    _layer(
        "FULLY_CONNECTED",
        replace(_WEIGHT, older_granularity=PER_TENSOR),
        replace(_BIAS, granularity=PER_TENSOR),
    ),
    _fixed("L2_NORMALIZATION", 1, 128, 0),
    _fixed("LOGISTIC", 1, 256, -128),
    _same("MAX_POOL_2D"),
    Specified("MUL", _BINARY),
    _same("RESHAPE"),
    _same("RESIZE_BILINEAR"),
    _fixed("SOFTMAX", 1, 256, -128),
    _same("SPACE_TO_DEPTH"),
    _fixed("TANH", 1, 128, 0),
    _same("PAD"),
    _same("GATHER"),
    _same("BATCH_TO_SPACE_ND", enforced=True),
    _same("SPACE_TO_BATCH_ND", enforced=True),
    _same("TRANSPOSE"),
    Specified("MEAN", _UNARY),
    Specified("SUB", _BINARY),
    Specified("SUM", _UNARY),
    _same("SQUEEZE"),
    _fixed("LOG_SOFTMAX", 16, 256, 127),
    _same("MAXIMUM"),
    Specified("ARG_MAX", (_IN0,)),
    _same("MINIMUM"),
    _compared("LESS"),
    _same("PADV2"),
    _compared("GREATER"),
    _compared("GREATER_EQUAL"),
    _compared("LESS_EQUAL"),
    _same("SLICE"),
    _compared("EQUAL"),
    _compared("NOT_EQUAL"),
    Specified("SHAPE", (_IN0,)),
    Specified("QUANTIZE", _UNARY),
)

SPECIFICATION = {operator.name: operator for operator in _OPERATORS}
SOURCE = "LiteRT 8-bit quantization specification, https://ai.google.dev/edge/litert (read)"
