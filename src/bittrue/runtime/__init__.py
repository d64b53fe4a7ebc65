"""Executors of plans, traces and profiles of their runs."""

from .isa import isas, native_module
from .native import NativeExecutor
from .profile import Profile, StepTime, machine_peak
from .reference import ReferenceExecutor
from .trace import collect, write_trace

__all__ = [
    "NativeExecutor",
    "Profile",
    "ReferenceExecutor",
    "StepTime",
    "collect",
    "isas",
    "machine_peak",
    "native_module",
    "write_trace",
]
