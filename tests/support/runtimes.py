"""Which real runtime answers for which numerics."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.operators.core.base import Step
from bittrue.runners.processor import numerics_here

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
    """

    resolver: str
    variable: str = ""
    strict: bool = True
    may_refuse: tuple[str, ...] = ()
    subnormal: bool = True
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
    "xnnpack": Runtime("BUILTIN", "", False, ("BT-CONCATENATION", "BT-SHAPE-RANK", "BT-VARIABLE-UNSET"), False),
    "litert@1.2": Runtime("BUILTIN_REF", "BITTRUE_LITERT_1_2", False, _STRICTER_THAN_1_2),
    "single-rounding": Runtime("", strict=False, may_refuse=_STRICTER_THAN_MICRO),
}

# tools/python_aarch64.sh says so.
not_emulated = pytest.mark.skipif(
    bool(os.environ.get("BITTRUE_EMULATED")),
    reason="an emulated processor is slow, its threads are not there in a forked process, its programs start nowhere",
)


def _first_zen() -> bool:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    found = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (\S+)$", text, re.M))
    family, model = (int(found.get(key, 0)) for key in ("cpu family", "model"))
    return (found.get("vendor_id") == "AuthenticAMD" and family == 23 and model < 48) or "HygonGenuine" in text


# A processor on which the delegate's wide products of real numbers have their own order: docs/facts/xnnpack.md 3.19.
FIRST_ZEN = _first_zen()


def in_rotated_fours(plan: bittrue.Plan, step: Step) -> bool:
    """Whether this processor adds up the terms of a step in another order than its numerics."""
    if not FIRST_ZEN or plan.numerics != "xnnpack-avx2" or "sum_of_products" not in step.rules:
        return False
    columns = plan.tensors[step.outputs[0]].shape[-1]
    more = [-columns % width for width in (8, 16)]
    return step.operator == "matmul" or not (columns < 16 or (more[0] < more[1] and more[1] * 100 > columns))


# What runtimes of other formats answered elsewhere: they have tests of their own here.
_OTHER = Runtime("")


def here(numerics: str) -> str:
    """The numerics that has the runtime's bits on the processor that runs the tests."""
    return numerics_here(numerics)


def runtime_of(numerics: str) -> Runtime:
    """The runtime that a numerics, of this processor or of another one, reproduces."""
    return RUNTIMES.get(numerics.removesuffix("@aarch64").removesuffix("-avx2"), _OTHER)
