"""var_handle, read_variable and assign_variable: values that a session keeps by name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...graph import data_type
from ..core.base import Call, Lowered, Operator, Shape, Step, World
from ..core.indexing import fresh


def infer_handle(call: Call) -> list[Shape]:
    """One handle, whatever shape the file declares."""
    call.expect(0)
    return [()]


def lower_handle(call: Call) -> Lowered:
    """The number that stands for container and name."""
    name = str(call.attribute("container")), str(call.attribute("shared_name"))
    return Lowered(parameters={"variable": call.resources[name]})


def reference_handle(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The number."""
    return [np.array(step["variable"], np.int32)]


def _variable(call: Call) -> int:
    handle, declared = call.value(0, "handle"), call.input(0).tensor.shape
    # Handles are single numbers here; kernels count what the file declares.
    if handle.size != 1 or math.prod(declared) != 1:
        shape = handle.shape if handle.size != 1 else declared
        raise call.invalid("BT-VARIABLE-HANDLE", f"expected one handle, found shape {list(shape)}")
    return int(handle.reshape(-1)[0])


def infer_read(call: Call) -> list[Shape]:
    """The declared shape. No shape may be that of a scalar or any shape, so that only running tells."""
    call.expect(1)
    _variable(call)
    return [call.output.tensor.shape or (-1,)]


def lower_read(call: Call) -> Lowered:
    """The variable's number, and the type and shape that are read."""
    return Lowered(
        parameters={"variable": _variable(call), "type": call.output.dtype, "shape": call.output.tensor.shape}
    )


def reference_read(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """A copy of the variable's value: its first elements under the declared shape, if there is one."""
    value = world.resources.get(step["variable"])
    if value is None:
        raise RunError("BT-VARIABLE-UNSET", "the variable is read before anything is assigned to it")
    kind, shape = data_type(step["type"]), step["shape"] or value.shape
    if value.dtype != kind.numpy or value.size < math.prod(shape):
        raise RunError(
            "BT-VARIABLE-SHAPE",
            f"the variable holds {value.dtype}{list(value.shape)}, expected {kind.title}{list(shape)}",
        )
    return [fresh(value.reshape(-1)[: math.prod(shape)], shape)]


def infer_assign(call: Call) -> list[Shape]:
    """No outputs."""
    call.expect(2, 0)
    call.input(1, "value")
    return []


def lower_assign(call: Call) -> Lowered:
    """The variable's number."""
    return Lowered(parameters={"variable": _variable(call)}, work=call.input(1).size)


def reference_assign(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """Keeps a copy of the value, of whatever type and shape."""
    world.resources[step["variable"]] = np.array(inputs[1])
    return []


OPERATORS = (
    Operator("var_handle", (), infer_handle, lower_handle, reference_handle, "which resource variable"),
    Operator("read_variable", (), infer_read, lower_read, reference_read, "value of a resource variable", worldly=True),
    Operator(
        "assign_variable", (), infer_assign, lower_assign, reference_assign, "new value of a variable", worldly=True
    ),
)
