"""What the functions of `bittrue.qnn` return: a symbolic tensor, or the result itself where all operands are arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import numerics as numerics_tables
from ...errors import BittrueError, InputError
from ...graph import Attribute
from ...plan import make_plan
from ...runtime.reference import ReferenceExecutor
from .expr import ARRAY, VARIABLE, Expr
from .model import DEFAULT_NUMERICS, graph_of


def build(
    operator: str,
    inputs: Sequence[Expr],
    shape: Sequence[int],
    dtype: str,
    parameters: Mapping[str, np.ndarray] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    variable: int = 1,
    computed: Mapping[str, Expr] | None = None,
) -> Any:
    """A symbolic tensor where one of `inputs` is one, else the result as an array: one definition for both.

    Args:
        variable: how many of the inputs, from the first one on, are data; the others are weights.
        computed: parameters that are no constants; they become the last inputs.
    """
    named = computed or {}
    operands, sizes = (*inputs, *named.values()), tuple(int(e) for e in shape)
    made = Expr(operator, operands, sizes, dtype, parameters or {}, attributes or {}, tuple(named))
    return made if any(given.operator != ARRAY for given in operands) else evaluate(made, variable)


def evaluate(expr: Expr, variable: int) -> np.ndarray:
    """The value of a node whose operands are all arrays: a graph of one node, planned and run."""
    feeds = [np.asarray(given.value) for given in expr.inputs[:variable]]
    names = [
        Expr(VARIABLE, (), given.shape, given.dtype, name=f"x{i}") for i, given in enumerate(expr.inputs[:variable])
    ]
    graph = graph_of([replace(expr, inputs=(*names, *expr.inputs[variable:]))], variables=names)
    try:
        plan = make_plan(graph, numerics_tables.find(DEFAULT_NUMERICS))
        found = ReferenceExecutor(plan).run(dict(zip(graph.inputs, feeds, strict=True)))[0]
    except BittrueError as error:
        raise InputError(error.code, error.message, place=error.place, advice=error.advice) from None
    return np.array(found)
