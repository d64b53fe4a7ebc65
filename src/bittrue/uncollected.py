"""Functions that make many objects which stay: meanwhile the garbage collector waits, which would go through all of
them again and again and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """The function, without a collection while it runs, unless another thread asks for one."""
    first = True

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        nonlocal first
        collects = gc.isenabled()
        gc.disable()
        try:
            return function(*arguments, **named)
        finally:
            if collects:
                # The first time brings modules and tables, which stay: they count as old, or all of them would be gone
                # through as soon as the collector runs again. Models that come later do not, since programs drop them.
                if first and not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()
                first = False
                gc.enable()

    return call
