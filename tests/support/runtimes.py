"""Which real runtime answers for which numerics."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import numpy as np
import pytest

import bittrue

from .oracle import Answer, oracle


@dataclass(frozen=True)
class Runtime:
    """How to ask one runtime.

    Attributes:
        resolver: kernels of the interpreter; empty for what exists as recorded vectors only.
        variable: environment variable that says where it is, for runtimes that the test extra does not install.
        strict: whether bittrue refuses all that the runtime refuses. Where False (a recorded limit of those numerics)
            it may run such models.
        may_refuse: codes with which bittrue refuses models that the runtime runs.
        subnormal: whether it computes with subnormal binary32 numbers. Where False (a recorded limit), nothing is
            compared once there is one.
        named_only: its table repeats another one but for what some tests name it for; all others leave it out.
        wide: whether its kernels for real numbers have the recorded bits only on processors with AVX-512. Elsewhere
            shapes and types of models with real numbers are compared, and no bits.
    """

    resolver: str
    variable: str = ""
    strict: bool = True
    may_refuse: tuple[str, ...] = ()
    subnormal: bool = True
    wide: bool = False
    named_only: bool = False

    @property
    def place(self) -> str:
        return os.environ.get(self.variable, "") if self.variable else ""

    @property
    def available(self) -> bool:
        return bool(self.resolver) and (not self.variable or bool(self.place))

    @property
    def recorded(self) -> bool:
        """Whether tests/data/recorded has its answers, as it is not installed beside the others."""
        return not self.resolver or bool(self.variable)

    def run(self, content: bytes, feeds: list[list[np.ndarray]], wanted: list[int]) -> Answer:
        """The tensors `wanted` after the last feed set."""
        return oracle(self.resolver, self.place).run(content, feeds, wanted)


# Empty tensors, ranks and geometries that 2.3 refuses and 1.2 did not look at.
_STRICTER_THAN_1_2 = (
    "BT-ARG-EMPTY",
    "BT-GATHER",
    "BT-OPERATOR",
    "BT-PAD",
    "BT-RESIZE-SIZE",
    "BT-SHAPE-OUTPUT",
    "BT-SHAPE-RANK",
    "BT-SLICE",
    "BT-UNIQUE-TYPE",
    "BT-WINDOW",
)
# Many types and operators have no row there, and its kernels believe shapes and axes.
_STRICTER_THAN_MICRO = (
    "BT-MULTIPLIER",
    "BT-OPERATOR",
    "BT-PACK",
    "BT-PAD",
    "BT-QUANT-MISSING",
    "BT-RESHAPE",
    "BT-RESIZE-SIZE",
    "BT-SHAPE-AXIS",
    "BT-SHAPE-BROADCAST",
    "BT-SLICE",
    "BT-UNDEFINED",
)

RUNTIMES = {
    "litert": Runtime("BUILTIN_REF"),
    "litert-as-compiled": Runtime("BUILTIN_REF", named_only=True),
    "litert-optimized": Runtime("BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    # The delegate gives up on empty tensors, and hands nothing to kernels that would check it.
    "xnnpack": Runtime("BUILTIN", "", False, ("BT-CONCATENATION", "BT-SHAPE-RANK", "BT-VARIABLE-UNSET"), False, True),
    "litert@1.2": Runtime("BUILTIN_REF", "BITTRUE_LITERT_1_2", False, _STRICTER_THAN_1_2),
    "single-rounding": Runtime("", strict=False, may_refuse=_STRICTER_THAN_MICRO),
}

# tools/python_aarch64.sh says so.
not_emulated = pytest.mark.skipif(
    bool(os.environ.get("BITTRUE_EMULATED")),
    reason="an emulated processor is slow, its threads are not there in a forked process, its programs start nowhere",
)

# What runtimes of other formats answered elsewhere: they have tests of their own here.
_OTHER = Runtime("")


def here(numerics: str) -> str:
    """The numerics that has the runtime's bits on the processor that runs the tests."""
    other = f"{numerics}@{platform.machine()}"
    return other if other in bittrue.numerics_names() else numerics


def runtime_of(numerics: str) -> Runtime:
    """The runtime that a numerics, of this processor or of another one, reproduces."""
    return RUNTIMES.get(numerics.removesuffix("@aarch64"), _OTHER)
