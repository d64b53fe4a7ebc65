"""Symbolic tensors: what the functions of `bittrue.qnn` make when one of their data arguments is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...graph import data_type
from ...quantization import as_array, named_type

# The operator of arguments that were arrays: they are constants, or the inputs when all of them were arrays.
ARRAY, CONSTANT, VARIABLE = "array", "constant", "var"


@dataclass(frozen=True, eq=False)
class Expr:
    """The result of one operator, not yet computed. Made by `var`, `constant` and the functions of `bittrue.qnn`.

    Attributes:
        operator: what made it, for example ``"qnn.conv2d"``.
        inputs: its operands.
        shape: known at once.
        dtype: short name of the element type, for example ``"s8"``.
        parameters: scales (float32) and zero points (int32) by the name of the argument.
        attributes: the other arguments, resolved.
        computed: the parameters that runs compute; the last of `inputs` are these, in this order.
        name: of a variable, or what the tensor is to be called.
        value: of a constant.
    """

    operator: str
    inputs: tuple[Expr, ...]
    shape: tuple[int, ...]
    dtype: str
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    name: str = ""
    value: np.ndarray | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<{self.operator} {data_type(self.dtype).title}{list(self.shape)}>"

    # Comparisons and truth values of symbols would be mistakes.
    def __bool__(self) -> bool:
        raise InputError("BT-QNN-SYMBOL", "a symbolic tensor has no truth value", advice="compare arrays instead")


Tensor = Expr | npt.ArrayLike


def var(name: str, shape: Sequence[int], dtype: Any = "float32") -> Expr:
    """An input of a graph.

    Args:
        name: as results and errors name it.
        shape: its dimensions.
        dtype: ``"float32"``, ``"int8"``, ``"uint8"``, ...

    Raises:
        InputError: a negative dimension, an unknown type, an empty name.

    >>> var("x", (1, 4), "int8")
    <var int8[1, 4]>
    """
    if not isinstance(name, str) or not name:
        raise InputError("BT-QNN-NAME", f"a variable's name is a text, found {name!r}", place="qnn.var")
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        raise InputError("BT-QNN-SHAPE", f"{shape!r} is no shape", place=f"qnn.var, '{name}'") from None
    if any(size < 0 for size in sizes):
        raise InputError("BT-QNN-SHAPE", f"{list(sizes)} has a negative dimension", place=f"qnn.var, '{name}'")
    return Expr(VARIABLE, (), sizes, named_type(dtype).name, name=name)


def constant(value: npt.ArrayLike, dtype: Any = None, name: str = "") -> Expr:
    """A constant as a symbolic tensor; plain arrays beside a symbolic tensor become constants by themselves.

    >>> constant([[1, 2]], "int8")
    <constant int8[1, 2]>
    """
    array = as_array(value)
    if array.dtype.kind not in "biufV" or not isinstance(name, str):
        raise InputError(
            "BT-QNN-TYPE", f"expected numbers and a text, found {array.dtype}, {name!r}", place="qnn.constant"
        )
    wanted = named_type(array.dtype if dtype is None else dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        kept = array.astype(wanted.numpy)
    if wanted.is_integer and not np.array_equal(kept, array):
        raise InputError("BT-QNN-VALUE", f"not all values are {wanted.title}", place="qnn.constant")
    return Expr(CONSTANT, (), kept.shape, wanted.name, name=name, value=kept)
