"""What an explanation is made of: plain data that terminals, reports and mismatch texts show."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from ..names import brief


@dataclass(frozen=True)
class Line:
    """One step of the calculation.

    Attributes:
        label: what it is, for example ``"accumulator"``.
        value: the number, ready to show.
        remark: where it comes from: the formula, the tie, the clamp.
    """

    label: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class Explanation:
    """How one element of one tensor comes about.

    Attributes:
        tensor: name.
        element: index of the element, one number per axis.
        operator: stem.
        source: what the file calls the operator.
        node: its position in the graph.
        numerics: whose arithmetic.
        rules: slot to rule.
        lines: the calculation.
        stored: the result.
        numbers: what programs want: as far as the operator has them ``accumulator``, ``multiplier``, ``exponent``,
            ``real_multiplier``, ``zero_point``, ``low``, ``high``, ``exact`` (the unrounded value), ``tie_distance``
            (how far the unrounded value is from the nearest tie, in units of the quantized value).
    """

    tensor: str
    element: tuple[int, ...]
    operator: str
    source: str
    node: int
    numerics: str
    rules: dict[str, str]
    lines: tuple[Line, ...]
    stored: int | float | bool
    numbers: dict[str, int | float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Explanation({brief(self.tensor)}, element {list(self.element)}, {self.source} under '{self.numerics}': "
            f"stored {self.stored})"
        )

    def __str__(self) -> str:
        widths = [
            max((len(text) for text in column), default=0) for column in zip(*map(astuple, self.lines), strict=True)
        ]
        rows = [
            "  ".join(f"{text:<{w}}" for text, w in zip(astuple(line), widths, strict=True)).rstrip()
            for line in self.lines
        ]
        return "\n".join([repr(self), *(f"  {row}" for row in rows)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
