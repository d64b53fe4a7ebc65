"""What the operands of operators are for, and layers with weights brought into one form.

`Operator.roles` names operands, so that whatever looks at steps from outside asks for the weights, not for input 3.
A layer's **form** is a convolution with the channels last: image [N, spatial..., C], weights [O, spatial..., I] with
I = C / groups, sums [N, spatial..., O]; a matrix product has no spatial axes. Every layout is a view of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graph import Attribute
from ...records import dataclass
from .base import Operator, Role, Step


def position_of(operator: Operator | None, *names: str) -> int | None:
    """The position of the first input that has one of these roles; None where the operator has no such input."""
    if operator is not None:
        for role in operator.roles:
            if role.name in names and role.position >= 0:
                return role.position
    return None


@dataclass(frozen=True)
class Seats:
    """Positions of a layer's operands among its inputs.

    Attributes:
        image: what is multiplied with the weights.
        weights: filters or a matrix; the second factor of a matrix product.
        bias: None for layers without one.
    """

    image: int
    weights: int
    bias: int | None


def seats_of(operator: Operator | None) -> Seats | None:
    """Where the operands of a layer are; None for other operators."""
    if operator is None or not (operator.weights or position_of(operator, "weights") is not None):
        return None
    image, weights = position_of(operator, "input", "first input"), position_of(operator, "weights", "second input")
    assert image is not None, operator.stem
    assert weights is not None, operator.stem
    return Seats(image, weights, position_of(operator, "bias"))


def weights_order(operator: Operator, known: Mapping[str, Attribute]) -> str:
    """The axes of the weights: ``O`` output channels, ``I`` input channels of a group, ``S`` all spatial axes.

    Empty for operators without weights, or whose layers have no form, and for packed blocks. Matrices are ``OI`` or
    ``IO``; `known`, the attributes or parameters, may exchange them by ``transpose_b``, and name the order of filters
    as ``filter_layout``.
    """
    if "filter_layout" in known:
        return str(known["filter_layout"])
    if known.get("block_size"):
        return ""
    return operator.weights[::-1] if known.get("transpose_b") else operator.weights


def turned(weights: np.ndarray, order: str, wanted: str) -> np.ndarray:
    """A view of the weights with their axes in another order; see `weights_order`.

    >>> turned(np.zeros((5, 3, 3, 2)), "OSI", "IOS").shape
    (2, 5, 3, 3)
    """
    places, at = {}, 0
    for letter in order:
        count = weights.ndim - len(order) + 1 if letter == "S" else 1
        places[letter] = range(at, at + count)
        at += count
    return weights.transpose([axis for letter in wanted for axis in places[letter]])


# Scales and zero points belong to the tensors.
PAIR = (Role("first input", 0), Role("second input", 1))
# They are operands.
OPERAND_LAYER = (Role("input", 0, 3, 4), Role("weights", 1, 5, 6), Role("bias", 2), Role("output", -1, 7, 8))
OPERAND_PAIR = (Role("first input", 0, 2, 3), Role("second input", 1, 4, 5), Role("output", -1, 6, 7))
OPERAND_UNARY = (Role("input", 0, 1, 2), Role("output", -1, 3, 4))


@dataclass(frozen=True)
class LayerForm:
    """How a layer's arrays are brought into its form and back.

    Attributes:
        order: of the weights' axes, see `weights_order`.
        channels_last: of the image and of the result.
        axes: letters of the spatial axes that the step's geometry names; empty for matrix products.
        groups: of channels.
        depth: products of one sum, for matrix products.
        transposed: the image is a matrix that the step transposes.
    """

    order: str
    channels_last: bool
    axes: str
    groups: int
    depth: int = 0
    transposed: bool = False

    def image(self, x: np.ndarray) -> np.ndarray:
        """[N, spatial..., C]; matrices [rows, K]."""
        if not self.axes:
            return x.T if self.transposed else x.reshape(-1, self.depth)
        x = x if self.channels_last else np.moveaxis(x, 1, -1)
        return x.reshape(x.shape[0], *(1,) * (len(self.axes) + 2 - x.ndim), *x.shape[1:])

    def weights(self, w: np.ndarray) -> np.ndarray:
        """[O, spatial..., I]; matrices [O, K]."""
        w = turned(w, self.order, "OSI" if self.axes else "OI")
        return w.reshape(w.shape[0], *(1,) * (len(self.axes) + 2 - w.ndim), *w.shape[1:])

    def result(self, sums: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """What has the shape [N, spatial..., O] in the shape and layout of the step's result."""
        if self.axes and not self.channels_last:
            sums = np.moveaxis(sums, -1, 1)
        return np.ascontiguousarray(sums).reshape(shape)


def layer_form(operator: Operator | None, step: Step, source: tuple[int, ...], w: tuple[int, ...]) -> LayerForm | None:
    """The form of a step with weights that are filters or one matrix; None for others and transposed convolutions.

    Args:
        operator: of the step.
        step: lowered.
        source, w: shapes of the image and of the weights.
    """
    if operator is None or not operator.weights or operator.transposed or not source:
        return None
    known = step.parameters
    order = weights_order(operator, known)
    if not order:
        return None
    if "S" not in order:
        if len(w) != 2 or (known.get("transpose_a") and len(source) != 2):
            return None
        depth = w[order.index("I")]
        return LayerForm(order, True, "", 1, depth, bool(known.get("transpose_a"))) if depth else None
    axes = "dhw" if "filter_d" in known else "hw"
    if len(source) != len(w) or not 3 <= len(w) <= len(axes) + 2 or f"filter_{axes[-1]}" not in known:
        return None
    last = bool(known.get("channels_last"))
    channels = source[-1] if last else source[1]
    groups = known.get("groups", 1)
    if not isinstance(groups, int) or groups < 1 or channels % groups:
        return None
    return LayerForm(order, last, axes, groups)
