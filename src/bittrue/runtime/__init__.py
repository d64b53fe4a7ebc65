"""Executors of plans, and traces of their runs."""

from .native import NativeExecutor, isas, native_module
from .reference import ReferenceExecutor
from .trace import collect, write_trace

__all__ = ["NativeExecutor", "ReferenceExecutor", "collect", "isas", "native_module", "write_trace"]
