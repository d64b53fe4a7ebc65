"""A native kernel makes what the rules of its step say: none takes a step by a rule that it does not know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import bittrue
from bittrue.operators import Step
from bittrue.plan import Plan
from bittrue.records import replace
from bittrue.runtime.native import NativeExecutor
from bittrue.runtime.reference import ReferenceExecutor
from support import elsewhere, recorded
from support.native import needs_native

pytestmark = [needs_native, pytest.mark.long]

LITERT = ("litert", "litert-optimized", "xnnpack")
TABLES = [*LITERT, "onnxruntime", *(f"{name}@aarch64" for name in (*LITERT, "onnxruntime"))]
# Slots whose rules differ in NaNs and zeros only, which integers do not have.
OF_REALS = {"plain_range", "extreme"}
# Slots that kernels need not read, and why.
UNREAD = {
    ("convert", "half_nan"): "NaNs are the reference's",
    ("convert", "widen"): "NaNs are the reference's",
    ("hardmax", "extreme"): "NaNs are the reference's",
    ("matmul", "accumulate"): "pairs where the rule says so, else 32 bits",
}


def _plans(name: str) -> Iterator[tuple[Plan, dict[int, np.ndarray]]]:
    """Of all recorded models that the numerics can have, with inputs."""
    base = elsewhere.base_of(name)
    for path in sorted(recorded.FOLDER.glob("*@aarch64.npz")):
        if (elsewhere.base_of(path.stem) == "onnxruntime") != (base == "onnxruntime"):
            continue
        for case in recorded.read(path):
            model = bittrue.load(case.content)
            names = (model.graph.tensors[i].name for i in model.graph.inputs)
            shapes = {key: value.shape for key, value in zip(names, case.feeds[-1], strict=True)}
            try:
                plan = model.prepare(name, executor="reference", shapes=shapes).plan
            except bittrue.BittrueError:
                continue
            yield plan, dict(zip(plan.inputs, case.feeds[-1], strict=True))


def _key(plan: Plan, step: Step) -> object:
    """What kernels are chosen by."""
    operands = tuple(None if i is None else (plan.tensors[i].dtype, plan.tensors[i].value is None) for i in step.inputs)
    return step.operator, tuple(sorted(step.rules.items())), operands, tuple(sorted(step.parameters))


def _is_native(plan: Plan, position: int) -> bool:
    return position not in NativeExecutor(plan, passes=[]).missing


def _is_read(plan: Plan, changed: Plan, inputs: dict[int, np.ndarray]) -> bool:
    """Whether the reference asks for a rule of a name that there is not, or has other results with it."""
    try:
        expected = ReferenceExecutor(plan).run(inputs)
        found = ReferenceExecutor(changed).run(inputs)
    except bittrue.BittrueError as error:
        return "of_no_name" in str(error)
    return any(one.tobytes() != other.tobytes() for one, other in zip(expected, found, strict=True))


@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("name", TABLES)
def test_no_rule_is_passed_over(name: str) -> None:
    seen = set[object]()
    for plan, inputs in _plans(name):
        for position, step in enumerate(plan.steps):
            key = _key(plan, step)
            if key in seen or not _is_native(plan, position):
                continue
            seen.add(key)
            whole = any(i is not None and plan.tensors[i].type.is_integer for i in step.inputs[:1])
            for slot in step.rules:
                if (step.operator, slot) in UNREAD or (slot in OF_REALS and whole):
                    continue
                changed = replace(step, rules={**step.rules, slot: "of_no_name"})
                other = replace(plan, steps=(*plan.steps[:position], changed, *plan.steps[position + 1 :]))
                assert not (_is_native(other, position) and _is_read(plan, other, inputs)), (
                    f"{step.operator} by {step.rules} has a native kernel that does not ask for '{slot}'"
                )
    assert len(seen) > 10
