"""What is known about a case's model, flattened for devices that read no JSON: tensors with values, named numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import DeviceModel

Value = str | list[int] | list[float]


@dataclass(frozen=True, eq=False)
class Operand:
    """One tensor of the model.

    Attributes:
        stem: what files call it: ``"input-0"``, numbered within its role.
        role: ``"input"``, ``"constant"``, ``"output"`` or ``"inner"``.
        name, position, dtype, shape, scale, zero_point, axis: as in `bittrue.conformance.formats.describe`.
        value: of inputs and constants; None for others.
    """

    stem: str
    role: str
    name: str
    position: int | None
    dtype: str
    shape: tuple[int, ...]
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None
    value: np.ndarray | None


def operands(model: DeviceModel, inputs: Mapping[str, np.ndarray]) -> list[Operand]:
    """All tensors: inputs, constants, inner ones, outputs; inputs and outputs in the model's order."""
    values = {**_constants(model), **inputs}
    order = {port.name: i for ports in (model.inputs, model.outputs) for i, port in enumerate(ports)}
    found, counts = list[Operand](), dict[str, int]()
    for role in ("input", "constant", "inner", "output"):
        chosen = [tensor for tensor in model.description["tensors"] if tensor["role"] == role]
        if role in ("input", "output"):
            chosen.sort(key=lambda tensor: order.get(tensor["name"], len(order)))
        for tensor in chosen:
            number = counts[role] = counts.get(role, -1) + 1
            found.append(
                Operand(
                    f"{role}-{number}",
                    role,
                    tensor["name"],
                    tensor["position"],
                    tensor["dtype"],
                    tuple(tensor["shape"]),
                    tuple(tensor["scale"] or ()),
                    tuple(tensor["zero_point"] or ()),
                    tensor["axis"],
                    values.get(tensor["name"]),
                )
            )
    return found


def _constants(model: DeviceModel) -> dict[str, np.ndarray]:
    found = {}
    for tensor in model.tensors:
        if tensor.is_constant:
            try:
                found[tensor.name] = tensor.values()
            except ValueError:
                # A file that must be refused may claim a shape that its bytes do not fill.
                continue
    return found


def parameters(model: DeviceModel) -> dict[str, Value]:
    """The operator's version and attributes, and what the plan computes with: ``"attribute.strides"``,
    ``"step0.multiplier"``.

    Each is a text, integers or real numbers; no and yes are 0 and 1.
    """
    found: dict[str, Value] = {} if model.version is None else {"version": [model.version]}
    for name, value in _named(model.description):
        plain = _plain(value)
        if plain is not None:
            found[name] = plain
    return found


def _named(description: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in description["attributes"].items():
        yield f"attribute.{name}", value
    for number, step in enumerate(description.get("plan", {}).get("steps", ())):
        yield f"step{number}.operator", step["operator"]
        for slot, rule in step["rules"].items():
            yield f"step{number}.rule.{slot}", rule
        for name, value in step["parameters"].items():
            yield f"step{number}.{name}", value
        for name, array in step["arrays"].items():
            yield f"step{number}.{name}", array["values"]


def _plain(value: Any) -> Value | None:
    """None for what is neither a text nor numbers."""
    if isinstance(value, str):
        return value
    numbers = value if isinstance(value, Sequence) else [value]
    if all(isinstance(one, int) for one in numbers):
        whole = [int(one) for one in numbers]
        return whole if all(-(2**63) <= one < 2**63 for one in whole) else None
    if all(isinstance(one, (int, float)) for one in numbers):
        return [float(one) for one in numbers]
    return None


def word(name: str) -> str:
    """A name that shells and C take.

    >>> word("step0.rule.rescale")
    'step0_rule_rescale'
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", name)
