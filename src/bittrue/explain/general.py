"""Steps without a narrator of their own: what goes in, which rules act, what comes out."""

from __future__ import annotations

import numpy as np

from ..rules import formula
from .decimals import place
from .site import Number, Site, Work, shown_name

# Elements of a small input that are written out.
_SHOWN = 12


def inputs(site: Site, work: Work) -> None:
    """One line per input: name, type, shape, and its values where they are few."""
    for position, array in enumerate(site.inputs):
        if array is None:
            continue
        tensor = site.source(position)
        few = array.size <= _SHOWN and array.dtype != object
        shown = np.array2string(array, separator=", ", max_line_width=10**6).replace("\n", "") if few else "..."
        kind = f" ({tensor.kind})" if tensor.kind in ("constant", "folded") else ""
        work.add(f"input {position}", shown, f"'{shown_name(tensor.name)}' {tensor.dtype}{list(array.shape)}{kind}")


def rules(site: Site, work: Work) -> None:
    """One line per slot: the rule, and what it computes."""
    for slot, rule in site.step.rules.items():
        work.add(slot, rule, formula(slot, rule))


def general(site: Site, work: Work) -> Number:
    """Inputs, rules, result."""
    inputs(site, work)
    rules(site, work)
    stored = site.stored.item()
    work.add("result", str(stored), f"element {place(site.element)} of what {site.step.operator} gives")
    return stored
