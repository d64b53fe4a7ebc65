"""Executors of plans; `profile` and `trace` are what else becomes of a run."""

from .isa import isas, native_module
from .native import NativeExecutor
from .reference import ReferenceExecutor
from .run import DEFAULT_ITERATION_LIMIT

__all__ = [
    "DEFAULT_ITERATION_LIMIT",
    "NativeExecutor",
    "ReferenceExecutor",
    "isas",
    "native_module",
]
