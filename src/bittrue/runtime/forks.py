"""What a child process must mend: of all threads only the one that forked goes on there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Thing = TypeVar("Thing")

_mended: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def after_fork(thing: Thing, mend: Callable[[Thing], None]) -> None:
    """Call ``mend(thing)`` in every child process, for as long as `thing` lives."""
    _mended[thing] = mend


def _begin_child() -> None:
    for thing, mend in list(_mended.items()):
        mend(thing)


# Where processes cannot fork there is nothing to mend.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
