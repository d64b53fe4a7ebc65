"""Why one tensor of a session is another one elsewhere, for tests that compare a single array."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import BittrueError
from ..plan import Plan
from .result import Verdict
from .segments import segments
from .verdict import Explainer

# Seconds that the search may take: a test that fails must not take much longer than one that passes.
_SEARCH = 1.25


def verdict_on(plan: Plan, values: Mapping[str, np.ndarray], name: str, theirs: np.ndarray) -> Verdict | None:
    """The verdict on a tensor that somebody else computed from the same inputs.

    Args:
        plan: of the session that computed `values`.
        values: its trace.
        name: of the tensor.
        theirs: the other value, of the same type and shape.

    Returns:
        None where the tensor cannot be computed alone.
    """
    if plan.source is None or name not in values:
        return None
    source = plan.source
    try:
        parts = segments(source.graphs[source.main], plan, source.numerics, values, source.memory_limit)
        part = next((part for part in parts if part.name == name), None)
        if part is None or not part.shapes.keys() <= values.keys():
            return None
        return Explainer(source.numerics, None, _SEARCH).explain(part, [values], [theirs], "")
    except BittrueError:
        return None
