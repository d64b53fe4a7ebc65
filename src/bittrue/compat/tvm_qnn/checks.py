"""What every function checks of its arguments; all errors are InputError and name function and argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...graph import data_type
from ...quantization import as_array, named_type
from .expr import ARRAY, Expr

INTEGERS_8 = ("s8", "u8")
INTEGERS_16 = ("s8", "u8", "s16", "u16")
CODES = ("s8", "u8", "s16", "u16", "s32")


def wrong(function: str, argument: str, message: str, advice: str = "", code: str = "BT-QNN-VALUE") -> InputError:
    """An error about an argument, ready to raise."""
    return InputError(code, message, place=f"qnn.{function}, argument '{argument}'", advice=advice)


def tensor(
    function: str, argument: str, value: Any, types: Sequence[str], rank: int | tuple[int, int] | None = None
) -> Expr:
    """A data argument: a symbolic tensor, or an array of one of `types`. Python numbers stand for float32."""
    if isinstance(value, Expr):
        found = value
    else:
        array = given_array(function, argument, value)
        numbers = "fiu" if types == ("f32",) else "f"
        if not isinstance(value, np.ndarray | np.generic) and array.dtype.kind in numbers and "f32" in types:
            with np.errstate(over="ignore"):
                array = array.astype(np.float32)
        found = Expr(ARRAY, (), array.shape, _type(function, argument, array, types), name=argument, value=array)
    if found.dtype not in types:
        raise _other_type(function, argument, data_type(found.dtype).title, types)
    if rank is not None:
        low, high = rank if isinstance(rank, tuple) else (rank, rank)
        if not low <= found.rank <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise wrong(
                function, argument, f"expected rank {wanted}, found shape {list(found.shape)}", code="BT-QNN-SHAPE"
            )
    return found


def given_array(function: str, argument: str, value: Any) -> np.ndarray:
    """What NumPy makes of an argument."""
    try:
        return as_array(value)
    except InputError as error:
        raise wrong(function, argument, error.message, code=error.code) from None


def _type(function: str, argument: str, array: np.ndarray, types: Sequence[str]) -> str:
    """The short name of an array's element type."""
    try:
        return named_type(array.dtype).name
    except InputError:
        raise _other_type(function, argument, "no numbers" if array.dtype == object else array.dtype, types) from None


def _other_type(function: str, argument: str, found: Any, types: Sequence[str]) -> InputError:
    names = ", ".join(data_type(name).title for name in types)
    return wrong(function, argument, f"found {found}", f"types are {names}", "BT-QNN-TYPE")


def _parameter(function: str, argument: str, value: Any, sizes: Sequence[int]) -> np.ndarray:
    if isinstance(value, Expr):
        if value.value is None:
            raise wrong(
                function, argument, "must be a constant, found a tensor that is computed", code="BT-QNN-CONSTANT"
            )
        value = value.value
    if value is None:
        raise wrong(function, argument, "is missing", code="BT-QNN-ARGUMENT")
    array = given_array(function, argument, value)
    if array.ndim > 1 or (array.ndim == 1 and array.size not in sizes):
        wanted = "one number" if not sizes else f"one number or {' or '.join(str(e) for e in dict.fromkeys(sizes))}"
        raise wrong(function, argument, f"expected {wanted}, found shape {list(array.shape)}", code="BT-QNN-SHAPE")
    return array


def _named(array: np.ndarray) -> str:
    """The element type of a parameter in words."""
    return "no number" if array.dtype == object else "a text" if array.dtype.kind in "SU" else str(array.dtype)


def scale(function: str, argument: str, value: Any, sizes: Sequence[int] = (), zero: bool = False) -> np.ndarray:
    """A scale as float32, of rank 0, or of rank 1 with one of `sizes` elements; `zero`: whether it may be 0."""
    array = _parameter(function, argument, value, sizes)
    if array.dtype.kind not in "iuf":
        raise wrong(function, argument, f"expected float32, found {_named(array)}", code="BT-QNN-TYPE")
    with np.errstate(over="ignore"):
        found = array.astype(np.float32)
    if not np.isfinite(found).all() or (found < 0).any() or (not zero and (found == 0).any()):
        raise wrong(function, argument, f"every scale must be positive and finite, found {array.tolist()}")
    return found


def zero_point(function: str, argument: str, value: Any, sizes: Sequence[int] = ()) -> np.ndarray:
    """A zero point as int32, of rank 0, or of rank 1 with one of `sizes` elements."""
    array = _parameter(function, argument, value, sizes)
    if array.dtype.kind not in "iu":
        raise wrong(function, argument, f"expected int32, found {_named(array)}", code="BT-QNN-TYPE")
    if ((array < -(2**31)) | (array > 2**31 - 1)).any():
        raise wrong(function, argument, f"{array.tolist()} is no int32")
    return array.astype(np.int32)


def points(function: str, **given: tuple[Any, Sequence[int]]) -> tuple[dict[str, np.ndarray], dict[str, Expr]]:
    """Zero points by argument, each with how long a vector of it may be: constants, and those that a run computes."""
    constants, computed = dict[str, np.ndarray](), dict[str, Expr]()
    for name, (value, sizes) in given.items():
        if not isinstance(value, Expr) or value.value is not None:
            constants[name] = zero_point(function, name, value, sizes)
            continue
        computed[name] = tensor(function, name, value, ("s32",), (0, 1))
        if value.shape and value.shape not in [(size,) for size in sizes]:
            raise wrong(function, name, f"found shape {list(value.shape)}", code="BT-QNN-SHAPE")
    return constants, computed


def element_type(function: str, argument: str, value: Any, types: Sequence[str]) -> str:
    """The short name of an element type among `types`."""
    try:
        found = named_type(value).name
    except InputError:
        found = ""
    if found not in types:
        raise _other_type(function, argument, repr(value), types)
    return found


def choice(function: str, argument: str, value: Any, allowed: Sequence[str]) -> str:
    """One of several texts."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(name or "''" for name in allowed)
        raise wrong(function, argument, f"found {value!r}", f"choose one of: {names}")
    return value


def truth(function: str, argument: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise wrong(function, argument, f"expected True or False, found {value!r}")
    return bool(value)


def dimensions(value: Any) -> int:
    """The rank of a scale or zero point; 0 for what `scale` and `zero_point` are going to refuse."""
    try:
        return value.rank if isinstance(value, Expr) else as_array(value).ndim
    except InputError:
        return 0


def parts(function: str, argument: str, value: Any, count: int | None = None) -> list[Any]:
    """A list, a tuple or a vector as a list of its entries; `count`: how many are wanted."""
    vector = isinstance(value, np.ndarray) and value.ndim == 1 and count is not None
    if not isinstance(value, list | tuple) and not vector:
        raise wrong(function, argument, f"expected a list, found {type(value).__name__}", code="BT-QNN-TYPE")
    if count is not None and len(value) != count:
        raise wrong(function, argument, f"expected {count} entries, found {len(value)}", code="BT-QNN-SHAPE")
    return list(value)


def whole(function: str, argument: str, value: Any, low: int | None = None) -> int:
    """An integer, at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (low is not None and value < low):
        wanted = "an integer" if low is None else f"an integer of {low} or more"
        raise wrong(function, argument, f"expected {wanted}, found {value!r}")
    return int(value)


def wholes(function: str, argument: str, value: Any, count: int | Sequence[int], low: int) -> tuple[int, ...]:
    """`count` integers (or one of several counts); a single number stands for all of them."""
    counts = (count,) if isinstance(count, int) else tuple(count)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = (value,) * counts[-1]
    try:
        if isinstance(value, str):
            raise TypeError
        found = tuple(whole(function, argument, entry, low) for entry in value)
    except TypeError:
        raise wrong(function, argument, f"expected integers, found {value!r}") from None
    if len(found) not in counts:
        raise wrong(function, argument, f"expected {' or '.join(map(str, counts))} values, found {len(found)}")
    return found


def axis(function: str, argument: str, value: Any, rank: int) -> int:
    """An axis counted from the front."""
    found = whole(function, argument, value)
    if not -rank <= found < rank:
        raise wrong(function, argument, f"axis {found} is outside a tensor of rank {rank}", code="BT-QNN-SHAPE")
    return found % rank
