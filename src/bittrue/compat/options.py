"""Options that programs set before they open a session. Nothing here changes a result: the numerics decides those."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import Any

from .sessions import ArgumentError

PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(IntEnum):
    """Accepted; what is fused is decided by the numerics."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted; steps run one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """Accepted; steps run in the plan's order."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Entries:
    """Free keys with texts."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise ArgumentError("BT-OPTION", f"there is no entry '{key}'", place=type(self).__name__)
        return self._entries[key]


class SessionOptions(_Entries):
    """Attributes and methods as onnxruntime.SessionOptions has them.

    Used are `intra_op_num_threads` (0: all cores) and the overrides of free dimensions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order: Any = ExecutionOrder.DEFAULT
        self.graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.free_dimensions: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; none has an effect."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """The text of an entry; ArgumentError without one."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the size of all dimensions of inputs that are called `name`."""
        if size < 0:
            raise ArgumentError("BT-OPTION", f"a dimension of {size} for the free dimension '{name}'")
        self.free_dimensions[str(name)] = int(size)


class RunOptions(_Entries):
    """Attributes and methods as onnxruntime.RunOptions has them, without effect."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; none has an effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """The text of an entry; ArgumentError without one."""
        return self._entry(key)


def get_device() -> str:
    """What sessions run on."""
    return "CPU"


def get_available_providers() -> list[str]:
    """What a session's `providers` can name with effect."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """As `get_available_providers`."""
    return [PROVIDER]


def set_default_logger_severity(severity: int) -> None:
    """Accepted; nothing is logged."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted; nothing is logged."""


def thread_count(options: Any) -> int:
    """Threads that options ask for; 0 and no options mean all cores."""
    asked = int(getattr(options, "intra_op_num_threads", 0) or 0)
    return asked if asked > 0 else max(1, len(os.sched_getaffinity(0)))
