"""Cases of relay.qnn: the operator's function of `bittrue.qnn`, called on symbolic tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from ... import qnn
from ...errors import UnsupportedError
from .adapters import Trial
from .vectors import Case, Recorded, damaged

# Operands that are tensors of the graph; all others are weights and parameters.
_DATA = {"data", "x", "y", "lhs", "rhs", "quantized_data"}
_LIST = re.compile(r"(.+)_(\d+)")
# Attributes of a case that are no arguments of its operator.
_APART = {"epilogue", "requantize_config"}
# Arguments that functions of several values take as one list.
_LISTS = {"data": "data", "input_scale": "input_scales", "input_zero_point": "input_zero_points"}

# Whose arithmetic cases of a target of the running system have, where it is not that of its tests.
_TARGETS = {"llvm -mcpu=nehalem": "tvm-qnn-float32"}

# What is public, and makes no tensor of tensors.
_NO_OPERATORS = {
    "Conversion",
    "Expr",
    "constant",
    "current_requantize_config",
    "from_mxnet",
    "from_onnx",
    "from_tflite",
    "model",
    "nn",
    "parameters_from_range",
    "requantize_config",
    "var",
}
# What recorders call an argument whose name the functions do not share.
_OTHER = {"data": "x", "x": "data", "kernel": "weight", "weight": "kernel", "scale": "input_scale"}
_OTHER |= {"input_scale": "scale", "zero_point": "input_zero_point", "input_zero_point": "zero_point"}


def trial(case: Case) -> Trial:
    """A graph of the operator and its epilogue, whose inputs are the case's data and what it calls computed.

    Attributes of the case are arguments by name. `requantize_config` holds what the configuration says, `epilogue`
    operators applied to the result, whose operands begin with their own name (``requantize_input_scale``) or are called
    ``bias``. What neither says is left to the numerics.
    """
    name = case.operator.removeprefix("qnn.").removeprefix("nn.")
    function = _function(name)
    if function is None:
        raise UnsupportedError("BT-VECTORS-OPERATOR", f"no function '{case.operator}'", place=case.place)
    attributes = dict(case.attributes)
    epilogue = attributes.get("epilogue") or []
    config = attributes.get("requantize_config") or {}
    if not isinstance(epilogue, list) or not isinstance(config, dict):
        raise damaged("'epilogue' is a list and 'requantize_config' an object", case.place)
    inputs = [given for given in case.inputs() if given is not None]
    prefixes = {_short(step) for step in epilogue}
    feeds: list[np.ndarray] = []
    arguments: dict[str, Any] = {}
    later: dict[str, Any] = {}
    for given in inputs:
        if given.name == "bias" or any(given.name.startswith(f"{prefix}_") for prefix in prefixes):
            later[given.name] = given.value
            continue
        value: Any = given.value
        if _is_data(given):
            feeds.append(value)
            value = qnn.var(given.name, given.value.shape, given.dtype.title)
        _add(arguments, given.name, value, case.place)
    for key, value in attributes.items():
        if key in _APART or any(key.startswith(f"{prefix}_") for prefix in prefixes):
            later[key] = value
        elif value is not None or key in ("channels", "units"):
            arguments[key] = value
    with qnn.requantize_config(**config):
        result = _called(function, arguments, case)
        for step in epilogue:
            result = _after(_short(step), result, later, case)
    return Trial(qnn.model(result).file, feeds, case.outputs(), _TARGETS.get(str(case.fields.get("target"))))


def _short(operator: Any) -> str:
    return str(operator).rsplit(".", 1)[-1]


def _is_data(given: Recorded) -> bool:
    found = _LIST.fullmatch(given.name)
    stem = found[1] if found else given.name
    return stem in _DATA or bool(given.fields.get("computed"))


def _add(arguments: dict[str, Any], name: str, value: Any, place: str) -> None:
    """data_0, data_1, ... are one list; a variable's value is one number or a vector."""
    found = _LIST.fullmatch(name)
    if found and found[1] in _LISTS:
        several = arguments.setdefault(_LISTS[found[1]], [])
        if not isinstance(several, list):
            raise damaged(f"'{name}' is given beside '{found[1]}'", place)
        several.append(value)
    else:
        arguments[name] = value


def _called(function: Callable[..., Any], arguments: Mapping[str, Any], case: Case) -> Any:
    known = signature(function).parameters
    named = {_OTHER[key] if key not in known and key in _OTHER else key: value for key, value in arguments.items()}
    try:
        return function(**named)
    except TypeError as error:
        raise damaged(f"{case.operator} does not take these arguments: {error}", case.place) from None


def _function(name: str) -> Callable[..., Any] | None:
    """The public function of that name that makes a tensor of tensors."""
    found = getattr(qnn, name, None) if name in qnn.__all__ and name not in _NO_OPERATORS else None
    return found if callable(found) else None


def _after(name: str, result: Any, later: Mapping[str, Any], case: Case) -> Any:
    """The epilogue's operator `name` applied to `result`."""
    given = {key.removeprefix(f"{name}_"): value for key, value in later.items() if key.startswith(f"{name}_")}
    if name == "bias_add":
        bias = np.asarray(later.get("bias", ()))
        # The system's default is axis 1; recorders do not write it down.
        first = result.rank > 1 and result.shape[1] == bias.size
        return qnn.bias_add(result, bias, **{"axis": 1 if first else -1, **given})
    if name == "requantize":
        return _called(qnn.requantize, {"data": result, "input_zero_point": 0, **given}, case)
    function = _function(name)
    if function is not None:
        return _called(function, {"data": result, **given}, case)
    raise UnsupportedError("BT-VECTORS-OPERATOR", f"no epilogue '{name}'", place=case.place)
