"""arg_max and arg_min: the position of the first (or `last`) extreme value along one axis.

Numbers are beyond NaN. Where a node `starts_with_first`, its first element is the extreme value until another one is
beyond it, so a NaN there stays; the first of all NaNs does when the first extreme value of a vector is looked for.
Source: ONNX Runtime 1.31.1, run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step, keeps_axes_of_nothing
from ..movement.where import refuse_odd_truths


def _axis(call: Call) -> int:
    call.expect(2)
    source = call.input(0)
    axes = call.integers(1, "axis")
    if len(axes) != 1:
        raise call.invalid("BT-ARG-AXIS", f"the axis must be one number, found {len(axes)}")
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    return call.axis(axes[0], source.rank)


def infer(call: Call) -> list[Shape]:
    """The shape without the axis, which must hold an element where the result does; see `keeps_axes_of_nothing`."""
    axis = _axis(call)
    shape = call.input(0).shape
    if keeps_axes_of_nothing(call) and call.integers(1, "axis")[0] < 0:
        return [shape]
    others = shape[:axis] + shape[axis + 1 :]
    if shape[axis] < 1 and 0 not in others:
        raise call.invalid("BT-ARG-EMPTY", f"axis {axis} of shape {list(shape)} is empty and has no extreme value")
    return [others]


def lower(call: Call) -> Lowered:
    """The axis; the attribute that names the output type must agree with the output tensor."""
    declared, found = call.attribute("output_type"), call.output.dtype
    if declared != found:
        raise call.invalid(
            "BT-ARG-TYPE",
            f"the operator declares positions of type {declared}, but tensor '{call.output.name}' is {found}",
            "make them the same",
        )
    source, last = call.input(0), bool(call.node.attributes.get("last", False))
    further: dict[str, Attribute] = {} if source.size else {"shape": call.output.shape}
    if call.node.attributes.get("starts_with_first", False) and source.dtype in ("f32", "f64"):
        further["staying_nan"] = "any" if source.rank == 1 and not last else "first"
    return Lowered(
        parameters={"axis": _axis(call), "output_dtype": call.output.type.numpy.name, "last": last, **further},
        work=source.size,
        scratch=3 * source.size * source.type.numpy.itemsize + 8 * call.output.size,
    )


def _position_of(largest: bool) -> Callable[[Step, Sequence[np.ndarray]], list[np.ndarray]]:
    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        x, axis = inputs[0], step["axis"]
        if not x.size:
            return [np.zeros(step["shape"], step["output_dtype"])]
        refuse_odd_truths(step, x)
        # The last one is the first one from behind.
        x = np.flip(x, axis) if step["last"] else x
        with_nan = x.dtype.kind == "f" and np.isnan(x).any()
        staying = step.parameters.get("staying_nan", "")
        plain = np.argmax if largest else np.argmin
        position = _without_nan(x, axis, largest) if with_nan and staying != "any" else plain(x, axis=axis)
        position = x.shape[axis] - 1 - position if step["last"] else position
        if with_nan and staying == "first":
            position = np.where(np.isnan(inputs[0].take(0, axis)), 0, position)
        if "start" in step.rules:
            position = np.where(x.max(axis) == np.iinfo(x.dtype).min, -1, position)
        return [np.asarray(position).astype(step["output_dtype"])]

    return reference


def _without_nan(x: np.ndarray, axis: int, largest: bool) -> np.ndarray:
    """Every number is beyond NaN; only NaN gives position 0."""
    worst = x.dtype.type(-np.inf if largest else np.inf)
    ordered = np.where(np.isnan(x), worst, x)
    position = np.expand_dims(ordered.argmax(axis) if largest else ordered.argmin(axis), axis)
    # An infinity that stands for NaN must not hide a true one behind it.
    masked = np.isnan(np.take_along_axis(x, position, axis))
    first_number = np.expand_dims(np.argmax(~np.isnan(x), axis), axis)
    return np.where(masked, first_number, position).squeeze(axis)


def _operator(stem: str, other: str, largest: bool, word: str) -> Operator:
    return Operator(
        stem,
        ("start",) if largest else (),
        infer,
        lower,
        _position_of(largest),
        f"position of the {word} value along an axis",
        compares=True,
        largest=largest,
        positions=True,
        mistaken_for=(other,),
    )


OPERATORS = (_operator("arg_max", "arg_min", True, "largest"), _operator("arg_min", "arg_max", False, "smallest"))
