"""What a check says: a finding, with the place, what was expected and found, who minds, and what to do."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from ..names import brief

# From worst to mildest.
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that a rule found.

    Attributes:
        code: of the rule, for example ``"BT204"``.
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        message: one sentence with what was found and what was expected.
        graph: name of the graph.
        node: position of the node; None for findings about a tensor or the file.
        source: what the file calls the operator; empty without a node.
        tensor: name of the tensor; empty when it is not about one.
        place: where in the tensor: a channel, an element; empty otherwise.
        expected, found: the same as in the message, for programs; empty where it is no matter of two values.
        advice: what to do here; the rule's page says it in general.
        numbers: what backs it, for example the witness channel and the bound of its accumulator.
    """

    code: str
    severity: str
    message: str
    graph: str = ""
    node: int | None = None
    source: str = ""
    tensor: str = ""
    place: str = ""
    expected: str = ""
    found: str = ""
    advice: str = ""
    numbers: dict[str, int | float | str] = field(default_factory=dict)

    def __repr__(self) -> str:
        node = "" if self.node is None else f", node {self.node} {self.source}"
        tensor = f", tensor {brief(self.tensor)}" if self.tensor else ""
        return f"Finding({self.code} {self.severity}{node}{tensor}: {brief(self.message)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no numbers for infinities: they are text."""
        numbers = {
            name: str(number) if isinstance(number, float) and not math.isfinite(number) else number
            for name, number in self.numbers.items()
        }
        return {**asdict(self), "numbers": numbers}
