"""Which rows compute with q - zero point in a register of 32 bits, and so have no result where it overflows."""

from __future__ import annotations

from ...records import replace
from ..table import Row

# A row that fills one of these slots for integers of at most 16 bits subtracts zero points.
_SLOTS = frozenset(
    {
        "activation_range",
        "align",
        "dequantize",
        "divide",
        "hard_swish",
        "inverse_root",
        "mean",
        "normalize",
        "product",
        "quantize",
        "rescale",
        "square_root",
        "table",
    }
)
# What these subtract from keeps the low 32 bits, as tests with zero points of every size show.
_WRAPPING = ("fully_connected", ("s8 s8|s4|s2 s32|- -> s8",))


def with_differences(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows, with the requirement `differences_fit` where zero points are subtracted."""
    return tuple(
        replace(row, requires=(*row.requires, ("differences_fit", (row.operator, row.types) == _WRAPPING)))
        if _SLOTS.intersection(row.rules)
        else row
        for row in rows
    )
