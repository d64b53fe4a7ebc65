"""Executors of plans; `profile` and `trace` are what else becomes of a run."""

from typing import TYPE_CHECKING, Any

from .isa import isas, native_module
from .native import NativeExecutor
from .run import DEFAULT_ITERATION_LIMIT

if TYPE_CHECKING:
    from .reference import ReferenceExecutor

__all__ = [
    "DEFAULT_ITERATION_LIMIT",
    "NativeExecutor",
    "ReferenceExecutor",
    "isas",
    "native_module",
]


def __getattr__(name: str) -> Any:
    if name != "ReferenceExecutor":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from .reference import ReferenceExecutor

    return ReferenceExecutor
