"""Write the table of numerics in docs/aarch64.md: what the wheels for aarch64 answered to models of every row.

python tools/make_aarch64_table.py            # writes the table
python tools/make_aarch64_table.py --check    # exit code 1 when it is not what the numerics and their counts say
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from bittrue import numerics
from bittrue.numerics.processors import identity, on_aarch64

TARGET = Path(__file__).resolve().parents[1] / "docs" / "aarch64.md"
BEGIN, END = "<!-- tools/make_aarch64_table.py -->\n", "<!-- end -->\n"
HEAD = (
    "numerics",
    "rows",
    "inexact",
    "tried",
    "equal",
    "equal but for NaNs' bits",
    "differ",
    "of these, in rows said to be exact",
)

_KINDS = ("equal", "nan", "differ")


def line(name: str) -> str:
    """The counts of one table."""
    counted = on_aarch64()[name]
    # Rows of kernels below come again, behind those that are taken.
    rows = {identity(row): row for row in reversed(numerics.find(name).rows) if not row.refuses}
    total, exact = Counter[str](), 0
    for place, row in rows.items():
        total.update(answers := counted.get(place, {}))
        exact += 0 if row.inexact else answers.get("differ", 0)
    inexact = sum(row.inexact for row in rows.values())
    figures = (len(rows), inexact, len(rows.keys() & counted.keys()), *map(total.__getitem__, _KINDS), exact)
    return f"| `{name}` | {' | '.join(f'{figure:,}' for figure in figures)} |"


def table() -> str:
    """A table of x86-64 and the one for aarch64 below it."""
    names = sorted(on_aarch64(), key=lambda name: (name.partition("@")[0], name))
    return "\n".join([f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|", *map(line, names), ""])


def page(text: str) -> str:
    """The page with a current table."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    current = TARGET.read_text()
    if "--check" in sys.argv[1:]:
        sys.exit(page(current) != current)
    TARGET.write_text(page(current))
