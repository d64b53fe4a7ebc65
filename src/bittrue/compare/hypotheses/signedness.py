"""Signed 8-bit values read as unsigned bytes, alone or with results that are stored so, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph import Graph
from ...operators import find
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values, change_tensors
from .layers import last_layer, own_padding


def signedness(case: Case) -> Iterator[Hypothesis]:
    """What comes of quantized values -128..127 that are taken for the bytes 0..255."""
    plan = case.plan
    # A table is indexed by the byte, whatever it is called; `lookups` has its faults.
    layer = last_layer(plan)
    operator = find(plan.steps[0].operator if len(plan.steps) == 1 else "" if layer is None else layer.operator)
    # Of what compares, `movement` has the same fault under names that fit better.
    if operator is None or operator.compares or "table" in case.step.rules:
        return
    read = [i for i in plan.inputs if plan.tensors[i].dtype == "s8"]
    if not read:
        return
    if all(plan.tensors[i].dtype == "s8" for i in plan.outputs):
        text = (
            "quantized values are read as unsigned bytes, and results clamped to 0..255 and stored so; zero points stay"
        )
        yield Hypothesis(
            Cause("quantized values read and stored as unsigned bytes", text, "data", False),
            "values",
            graph=_all_unsigned,
            values=_bytes,
            result=_signed,
        )
    text = "the input's quantized values are read as unsigned bytes; its zero point stays"
    cause = Cause("input quantized values read as unsigned bytes", text, "data", False)
    if layer is not None:
        yield Hypothesis(cause, "values", values=_bytes, plan=own_padding, layer={"plain": True}, result=_signed)
    else:
        yield Hypothesis(cause, "values", values=_bytes, compute=computed_wide)


def _all_unsigned(graph: Graph) -> Graph:
    """Every signed tensor of 8 bits that is computed or fed becomes an unsigned one."""
    signed = [i for i, t in enumerate(graph.tensors) if t.dtype == "s8" and t.data is None]
    return change_tensors(graph, dict.fromkeys(signed, lambda tensor: replace(tensor, dtype="u8")))


def _bytes(given: Any, position: int) -> Values:
    return {name: v.view(np.uint8) if v.dtype == np.int8 else v for name, v in given[position].items()}


def _signed(found: np.ndarray, plan: Plan) -> np.ndarray:
    return found.view(np.int8) if found.dtype == np.uint8 else found


def computed_wide(plan: Plan, values: Values) -> np.ndarray | None:
    """The step's own arithmetic on integers that its type cannot hold."""
    step = plan.steps[0]
    operator = find(step.operator)
    if operator is None:
        return None
    known: dict[int, Any] = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
    known.update({i: values[plan.tensors[i].name] for i in plan.inputs})
    inputs = [None if i is None else known[i] for i in step.inputs]
    read = {plan.tensors[i].dtype: values[plan.tensors[i].name].dtype for i in plan.inputs}
    other = {kind for name, kind in read.items() if name != f"{'u' if kind.kind == 'u' else 's'}{8 * kind.itemsize}"}
    wide = [x.astype(np.int16) if x is not None and x.dtype in other else x for x in inputs]
    found = operator.reference(step, wide)[0]
    wanted = plan.tensors[plan.outputs[0]].type.numpy
    return np.asarray(found).astype(wanted)
