"""Tables that fit: readable in 80 columns, and nothing is cut that 160 have room for.

Columns of numbers keep their width; those of names are shortened together, so that rows stay distinct; those of text
are folded. Where that is not enough, columns that matter least are left out, and a line says which. Where even that is
not enough, each row becomes a few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..visible import visible
from .common import all_shortened, digest

# Between columns, and the least that names and text need to be worth showing.
_GAP = 2
_NAME, _TEXT = 20, 20
# Room that names get before details are shown.
_TELLING = 28


@dataclass
class Column:
    """One column.

    Attributes:
        title: its heading.
        kind: ``"fixed"``: never shortened; ``"name"``: shortened together; ``"text"``: folded at blanks.
        right: whether its cells stand at the right.
        least: how much matters least: columns with the largest number are left out first, those with 0 never.
        room: the width below which names or text say nothing.
        cells: one per row.
    """

    title: str
    kind: str = "fixed"
    right: bool = False
    least: int = 0
    room: int = 0
    cells: list[Text] = field(default_factory=list)

    @property
    def natural(self) -> int:
        """The width that it takes by itself."""
        return max([len(self.title), *(max(map(len, cell.plain.split("\n"))) for cell in self.cells)])

    @property
    def fewest(self) -> int:
        """The width below which it says nothing."""
        if self.kind == "fixed":
            return self.natural
        return min(self.natural, max(self.room or (_NAME if self.kind == "name" else _TEXT), len(self.title)))


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], width: int, title: str | Text = ""
) -> RenderableType:
    """A table within `width` columns.

    Args:
        columns: headings and kinds; columns in which every cell is empty are left out.
        rows: cells; of names and paths of unknown origin, too.
        width: of the terminal.
        title: a line above.
    """
    rows = list(rows)
    columns = [replace(c, cells=[]) for c in columns]
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            column.cells.append(cell if isinstance(cell, Text) else Text(visible(cell)))
    columns = [c for c in columns if not rows or any(cell.plain for cell in c.cells)]
    shown, left = list(columns), list[Column]()
    # Names that tell something come before details, then what matters before long names.
    for details, telling in ((2, _TELLING), (1, 0)):
        while _needed(shown, telling) > width and any(c.least >= details for c in shown):
            gone = max((c for c in shown if c.least >= details), key=lambda column: column.least)
            shown.remove(gone)
            left.append(gone)
    # One line, whatever is in it.
    heading = visible(title.plain if isinstance(title, Text) else title)
    parts: list[RenderableType] = [Text(heading, style="italic")] if heading else []
    if _needed(shown) > width:
        parts += _records(columns, len(rows), width)
        return Group(*parts)
    widths = _fit(shown, width)
    headed = any(column.title for column in shown)
    # The box has a blank between columns.
    made = Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False, show_header=headed)
    for column, room in zip(shown, widths, strict=True):
        overflow = "fold" if column.kind == "text" else "ellipsis"
        justify = "right" if column.right else "left"
        made.add_column(column.title, justify=justify, no_wrap=column.kind != "text", overflow=overflow, width=room)  # type: ignore[arg-type]
    for cells in zip(*(column.cells for column in shown), strict=True):
        made.add_row(*cells)
    parts.append(made)
    if left:
        names = ", ".join(column.title for column in reversed(left) if column.title)
        parts.append(Text(f"left out in {width} columns: {names}", style="dim"))
    return Group(*parts)


def _needed(columns: Sequence[Column], names: int = 0) -> int:
    """The least width, where names have so much room."""
    least = (max(c.fewest, min(c.natural, names if c.kind == "name" else 0)) for c in columns)
    return sum(least) + _GAP * max(len(columns) - 1, 0)


def _fit(columns: Sequence[Column], width: int) -> list[int]:
    """Gives what room there is to names and text, evenly, and shortens the names to theirs."""
    widths = {i: column.fewest for i, column in enumerate(columns)}
    room = width - _needed(columns)
    while room > 0:
        open_ones = [i for i, column in enumerate(columns) if widths[i] < column.natural]
        if not open_ones:
            break
        share = max(room // len(open_ones), 1)
        for i in open_ones[:room]:
            more = min(share, columns[i].natural - widths[i], room)
            widths[i] += more
            room -= more
    for i, column in enumerate(columns):
        if column.kind == "name" and widths[i] < column.natural:
            names = all_shortened([cell.plain for cell in column.cells], widths[i])
            column.cells = [Text(name, style=cell.style) for name, cell in zip(names, column.cells, strict=True)]
    return [*widths.values()]


def _records(columns: Sequence[Column], rows: int, width: int) -> list[RenderableType]:
    """Each row as lines of their own, what does not fit on a line further in."""
    parts: list[RenderableType] = []
    for row in range(rows):
        first = True
        for column in columns:
            cell = column.cells[row]
            if not cell.plain:
                continue
            title = f"{column.title}:" if column.title else ""
            indent = 0 if first else 2
            line = Table.grid(padding=(0, 1, 0, 0))
            if title and len(title) <= width // 3:
                line.add_column(width=len(title))
            line.add_column(overflow="fold", style="bold" if first else "")
            line.add_row(*([Text(title, style="dim"), cell] if len(line.columns) > 1 else [Text(f"{title} ") + cell]))
            parts.append(Padding(line, (0, 0, 0, indent), expand=False))
            first = False
    return parts


def tensor_table(title: str, values: Mapping[str, np.ndarray], width: int) -> RenderableType:
    """Name, type, shape, range and a digest of the bytes, so that two machines can be compared by eye."""
    columns = [Column("tensor", "name"), Column("type"), Column("shape"), Column("min", right=True, least=1)]
    columns += [Column("max", right=True, least=1), Column("sha256 of the bytes", "name")]
    rows = []
    for name, value in values.items():
        low, high = (f"{value.min()}", f"{value.max()}") if value.size else ("-", "-")
        rows.append((name, str(value.dtype), str(list(value.shape)), low, high, digest(value)[:16]))
    return table(columns, rows, width, title)
