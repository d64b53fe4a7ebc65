"""Executors of plans, traces and profiles of their runs."""

from .profile import Profile, StepTime, machine_peak
from .reference import ReferenceExecutor
from .trace import collect, write_trace

__all__ = ["Profile", "ReferenceExecutor", "StepTime", "collect", "machine_peak", "write_trace"]
