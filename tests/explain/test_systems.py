"""Explanations of the operators of systems that are gone: they end at the quantized value, and layers are worked
out.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from bittrue.errors import RunError
from bittrue.explain import explain_element
from bittrue.operators import find
from bittrue.plan import Plan
from bittrue.runtime import ReferenceExecutor
from support.differential import random_values
from support.system_plans import made_plans


def traced(plan: Plan, rng: np.random.Generator) -> dict[str, np.ndarray] | None:
    """A trace on random values; integers where a layer has them in real numbers; None where the operator refuses."""
    tensors = [plan.tensors[i] for i in plan.inputs]
    values = {tensor.name: random_values(rng, tensor.type.numpy, tensor.shape) for tensor in tensors}
    if any(step.rules.get("accumulate") == "binary32" for step in plan.steps):
        values = {name: rng.integers(-100, 100, value.shape).astype(value.dtype) for name, value in values.items()}
    feeds = dict(zip(plan.inputs, values.values(), strict=True))
    try:
        ReferenceExecutor(plan).run(feeds, values.__setitem__)
    except RunError:
        return None
    return values


def test_every_operator() -> None:
    rng = np.random.default_rng(7)
    told: defaultdict[str, Counter[str]] = defaultdict(Counter)
    met: Counter[object] = Counter()
    for plan in made_plans():
        kinds = tuple((step.operator, *sorted(step.rules.items())) for step in plan.steps)
        met[kinds] += 1
        if met[kinds] > 4:
            continue
        values = traced(plan, rng)
        for step in plan.steps if values is not None else ():
            tensor = plan.tensors[step.outputs[0]].name
            if not values[tensor].size:
                continue
            element = tuple(int(rng.integers(size)) for size in values[tensor].shape)
            found = explain_element(plan, values, tensor, element)
            assert found.stored == values[tensor][element] or found.stored != found.stored
            told[step.operator]["result" not in [line.label for line in found.lines]] += 1
            told[step.operator]["accumulator"] += "accumulator" in found.numbers
    for stem, counts in told.items():
        operator = find(stem)
        assert operator is not None
        if operator.multiplies:
            assert counts["accumulator"] >= counts.total() // 4, stem
        if operator.elementwise or operator.moves:
            assert counts[True], stem
    layers = {stem for stem, counts in told.items() if counts["accumulator"]}
    assert layers >= {"conv_transpose", "fully_connected", "conv", "matmul"}
