"""Mappings of recurrent layers over whole sequences."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source

# Which of alpha and beta a function reads, and their defaults; where it is 0 the specification has none.
_ALPHA = {
    "affine": 0.0,
    "elu": 1.0,
    "hardsigmoid": 0.2,
    "leakyrelu": 0.01,
    "scaledtanh": 0.0,
    "thresholdedrelu": 0.0,
}
_BETA = {"affine": 0.0, "hardsigmoid": 0.5, "scaledtanh": 0.0}
_NAMES = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh",
          "ThresholdedRelu")  # fmt: skip


def _numbers(
    source: Source, name: str, functions: Sequence[str], defaults: dict[str, float]
) -> tuple[list[float], bool]:
    """One number per function: lists of the file are consumed in order by those that read one. Whether one is a default
    that the specification does not have.
    """
    left = list(source.reals(name) or ())
    found: list[float] = []
    lacks = False
    for function in functions:
        if function in defaults and left:
            found.append(float(left.pop(0)))
        else:
            found.append(defaults.get(function, 0.0))
            lacks = lacks or defaults.get(function) == 0
    return found, lacks


def _attributes(source: Source, usual: Sequence[str], exact_names: bool = False) -> dict[str, Attribute]:
    direction = source.text("direction", "forward").lower()
    per_direction = 2 if direction == "bidirectional" else 1
    given = source.texts("activations") or tuple(usual) * per_direction
    functions = tuple(str(name).lower() for name in given)
    known = {name if exact_names else name.lower() for name in _NAMES}
    for name in given:
        if (str(name) if exact_names else str(name).lower()) not in known:
            raise source.unsupported(
                "BT-ONNX-ATTRIBUTE", f"activation '{name}' is not known", f"known ones are {', '.join(_NAMES)}"
            )
    alphas, lacks_alpha = _numbers(source, "activation_alpha", functions, _ALPHA)
    betas, lacks_beta = _numbers(source, "activation_beta", functions, _BETA)
    described = zip(functions, alphas, betas, strict=True)
    clip = source.real("clip", 0.0)
    if source.has("clip") and not clip > 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"clip must be positive, found {clip}", "leave it out for no limit")
    return {
        "operands": "stacked",
        "direction": direction,
        "hidden_size": source.integer("hidden_size", 0),
        "batch_first": source.flag("layout", False) if source.version >= 14 else False,
        "functions": ", ".join(f"{name} {alpha!r} {beta!r}" for name, alpha, beta in described),
        "clip": clip,
        **({"lacking": True} if lacks_alpha or lacks_beta else {}),
    }


def _lstm(source: Source) -> None:
    attributes = _attributes(source, ("Sigmoid", "Tanh", "Tanh"))
    attributes["input_forget"] = source.flag("input_forget", False, True)
    if source.domain == MICROSOFT:
        attributes["has_sequence"] = bool(source.outputs[0])
    source.emit("lstm", (source.type(0),) * 3, attributes)


def _attending_lstm(source: Source) -> None:
    """The runtime reads its first output behind every step, so it must be there."""
    if not source.outputs[0]:
        raise source.invalid("BT-NODE-OUTPUT", "the first output is missing")
    attributes = _attributes(source, ("Sigmoid", "Tanh", "Tanh"))
    attributes["input_forget"] = source.flag("input_forget", False, True)
    source.emit("attending_lstm", (source.type(0),) * 3, attributes)


def _gru(source: Source) -> None:
    attributes = _attributes(source, ("Sigmoid", "Tanh"))
    if not -(1 << 31) <= source.integer("linear_before_reset", 0) < 1 << 31:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "attribute 'linear_before_reset' does not fit 32 bits")
    attributes["linear_before_reset"] = source.flag("linear_before_reset", False, True)
    source.emit("gru", (source.type(0),) * 2, attributes)


def _rnn(source: Source) -> None:
    """Names of functions in other letters mean tanh to one runtime, so they are refused."""
    source.emit("rnn", (source.type(0),) * 2, _attributes(source, ("Tanh",), exact_names=True))


MAPPERS: Mappers = {
    ("", "GRU"): _gru,
    ("", "LSTM"): _lstm,
    ("", "RNN"): _rnn,
    (MICROSOFT, "AttnLSTM"): _attending_lstm,
    (MICROSOFT, "DynamicQuantizeLSTM"): _lstm,
}
