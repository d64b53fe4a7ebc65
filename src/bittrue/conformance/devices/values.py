"""What devices leave behind, judged before anyone believes it: arrays of numbers, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...visible import visible

# Bytes that the outputs of one case may take; those of the suite take some hundred kilobytes.
OUTPUT_LIMIT = 256 << 20
_MOST_OUTPUTS = 1000
_TEXT = 2000
# Of bool, integers, real and complex numbers; ml_dtypes' types have the kind of structures.
_NUMBERS = "biufc"


class Unreadable(Exception):
    """Something that is no array of numbers; the text says what is wrong with it."""


class Failed(Exception):
    """A device's own words for what went wrong."""


class Crashed(Exception):
    """The end of a device's process."""


class TimedOut(Exception):
    """A device took too long."""


def clean(text: str) -> str:
    r"""Text that a device wrote, fit for one line of a report.

    >>> clean("no" + chr(27) + "[31m   way")
    'no\\x1b[31m way'
    """
    line = " ".join(text[: 4 * _TEXT].split())
    shown = visible(line[:_TEXT])
    return f"{shown} ..." if len(line) > _TEXT else shown


def words(error: BaseException) -> str:
    """What an exception says; nothing when it cannot."""
    try:
        return clean(str(error))
    except Exception:
        return ""


def told(error: BaseException) -> str:
    """What an exception says, with its type."""
    text = words(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_number_type(dtype: np.dtype) -> bool:
    """Whether values of this type are numbers and no objects, texts or structures."""
    if dtype.kind in _NUMBERS:
        return True
    return dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and dtype.type is not np.void


def as_array(value: Any, what: str) -> np.ndarray:
    """What a device gave as an array of its own, in C order and native byte order.

    Lists of numbers are no arrays: their type would be ours.

    Raises:
        Unreadable: it is none.
    """
    if not (isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")) or isinstance(value, type):
        raise Unreadable(f"{what} is no array but {_a(value)}")
    try:
        found = np.asarray(value)
    except Exception as error:
        raise Unreadable(f"{what} is {_a(value)} that gives no array: {told(error)}") from None
    if not isinstance(found, np.ndarray) or not is_number_type(found.dtype):
        raise Unreadable(f"{what} has type {getattr(found, 'dtype', None)}, which is no type of numbers")
    if found.nbytes > OUTPUT_LIMIT:
        raise Unreadable(f"{what} takes {found.nbytes:,} bytes, the limit is {OUTPUT_LIMIT:,}")
    return np.array(found, found.dtype.newbyteorder("="), order="C", subok=False)


def named_arrays(given: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Outputs by name, from what a device's function returned.

    Args:
        given: a mapping by name, a sequence in the order of `names`, or one array.
        names: the model's outputs; empty where nobody knows them.

    Raises:
        Unreadable: it is none of these, or holds something that is no array.
    """
    if given is None:
        raise Unreadable("it returned nothing (None)")
    if isinstance(given, Mapping):
        pairs = list(given.items())
        strange = [name for name, _ in pairs if not isinstance(name, str)]
        if strange:
            raise Unreadable(f"it returned a dict whose keys are not all names of outputs: {clean(repr(strange[0]))}")
    elif isinstance(given, (list, tuple)):
        if names and len(given) != len(names):
            wanted = "1 output" if len(names) == 1 else f"{len(names)} outputs"
            raise Unreadable(f"it returned a sequence of {len(given)}, the model has {wanted}")
        pairs = [(names[i] if names else f"output{i}", value) for i, value in enumerate(given)]
    else:
        if len(names) > 1:
            raise Unreadable(f"it returned {_a(given)}, the model has {len(names)} outputs")
        pairs = [(names[0] if names else "output0", given)]
    if not pairs:
        raise Unreadable("it returned no outputs")
    if len(pairs) > _MOST_OUTPUTS:
        raise Unreadable(f"it returned {len(pairs):,} outputs")
    found = {name: as_array(value, f"output '{clean(name)}'") for name, value in pairs}
    total = sum(value.nbytes for value in found.values())
    if total > OUTPUT_LIMIT:
        raise Unreadable(f"its outputs take {total:,} bytes, the limit is {OUTPUT_LIMIT:,}")
    return found


def _a(value: object) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{'the class' if isinstance(value, type) else 'an object of type'} {clean(kind.__name__)}"
