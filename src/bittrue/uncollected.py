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

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        collects = gc.isenabled()
        gc.disable()
        try:
            return function(*arguments, **named)
        finally:
            if collects:
                gc.enable()

    return call
