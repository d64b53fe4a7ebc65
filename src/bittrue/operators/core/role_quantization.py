"""What quantization the operand of a role has, whatever form the file gives it in.

Scale and zero point are operands of the node, at the positions that `Operator.roles` says, or belong to the role's own
tensor. Operands stand in one order for all operators: the data, in the order of the roles; then for every role its
scale and its zero point (inputs, weights, output; those of quantize begin with the output: real numbers have none).
Absent ones are None, and left out at the end. With the attribute
`ranged`, the same operands hold the ends of ranges, which are no scales and zero points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ...graph import Attribute, Node, Quantization, Tensor
from ...records import dataclass
from .base import Call, Operator, Role, Step

T = TypeVar("T")


class _Known(Protocol):
    """A tensor of a plan: what it carries, and its value where that is known."""

    @property
    def quantization(self) -> Quantization | None: ...

    @property
    def value(self) -> np.ndarray | None: ...


@dataclass(frozen=True, eq=False)
class RoleQuantization:
    """The quantization of a role.

    Attributes:
        scales, zero_points: as they are given; None where there are none, or only running tells.
        scale_at, zero_point_at: positions of the inputs that hold them; None where the role's tensor does.
        late: only running tells one of them.
        axis: the axis of the role's tensor that they belong to, where the tensor carries them.
    """

    scales: np.ndarray | None = None
    zero_points: np.ndarray | None = None
    scale_at: int | None = None
    zero_point_at: int | None = None
    late: bool = False
    axis: int | None = None


def at(items: Sequence[T | None], position: int | None) -> T | None:
    """The item at a position; None for no position, and behind the end."""
    return None if position is None or not 0 <= position < len(items) else items[position]


def _quantization(
    role: Role,
    known: Mapping[str, Attribute],
    inputs: Sequence[T | None],
    value: Callable[[T], np.ndarray | None],
    carried: Quantization | None,
) -> RoleQuantization:
    if known.get("ranged"):
        return RoleQuantization()
    scale, point = at(inputs, role.scale), at(inputs, role.zero_point)
    if scale is None and point is None:
        if carried is None:
            return RoleQuantization()
        return RoleQuantization(carried.scales, carried.zero_points, axis=carried.axis)
    scales, points = (None if one is None else value(one) for one in (scale, point))
    late = any(one is not None and found is None for one, found in ((scale, scales), (point, points)))
    places = role.scale if scale is not None else None, role.zero_point if point is not None else None
    return RoleQuantization(scales, points, *places, late)


def of_call(call: Call, role: Role) -> RoleQuantization:
    """The quantization of a role of a call."""
    owner = at(call.outputs, 0) if role.position < 0 else at(call.inputs, role.position)
    carried = None if owner is None else owner.tensor.quantization
    return _quantization(role, call.node.attributes, call.inputs, lambda one: one.value, carried)


def of_node(tensors: Sequence[Tensor], node: Node, role: Role) -> RoleQuantization:
    """The quantization of a role of a graph's node."""

    def value(index: int) -> np.ndarray | None:
        return tensors[index].values() if tensors[index].is_constant else None

    owner = at(node.outputs, 0) if role.position < 0 else at(node.inputs, role.position)
    carried = None if owner is None else tensors[owner].quantization
    return _quantization(role, node.attributes, node.inputs, value, carried)


def of_step(tensors: Sequence[_Known], step: Step, role: Role) -> RoleQuantization:
    """The quantization of a role of a step, given the tensors of its plan."""
    owner = at(step.outputs, 0) if role.position < 0 else at(step.inputs, role.position)
    carried = None if owner is None else tensors[owner].quantization
    return _quantization(role, step.parameters, step.inputs, lambda index: tensors[index].value, carried)


def role_of(operator: Operator | None, *names: str) -> Role | None:
    """The first role that has one of these names."""
    return next((role for role in operator.roles if role.name in names), None) if operator is not None else None


def settled_values(call: Call, roles: Sequence[Role]) -> list[Any]:
    """The values of all operands, with scales and zero points that tensors carry where their operands would be."""
    values: list[Any] = [None if operand is None else operand.value for operand in call.inputs]
    for role in roles:
        found = of_call(call, role)
        if found.scale_at is None and found.zero_point_at is None and found.scales is not None:
            for position, given in ((role.scale, found.scales), (role.zero_point, found.zero_points)):
                if position is not None:
                    values += [None] * (position + 1 - len(values))
                    values[position] = given
    return values
