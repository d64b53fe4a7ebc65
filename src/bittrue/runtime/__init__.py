"""Executors of plans, and traces of their runs."""

from .reference import ReferenceExecutor
from .trace import collect, write_trace

__all__ = ["ReferenceExecutor", "collect", "write_trace"]
