"""Executors of plans, traces and profiles of their runs."""

from .isa import isas, native_module
from .native import NativeExecutor
from .profile import Profile, StepTime, machine_byte_rate, machine_peak
from .reference import ReferenceExecutor
from .run import DEFAULT_ITERATION_LIMIT
from .trace import write_trace

__all__ = [
    "DEFAULT_ITERATION_LIMIT",
    "NativeExecutor",
    "Profile",
    "ReferenceExecutor",
    "StepTime",
    "isas",
    "machine_byte_rate",
    "machine_peak",
    "native_module",
    "write_trace",
]
