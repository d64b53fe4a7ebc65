"""On which other processors the rows of a numerics were run, and what came of it.

`aarch64.json` counts, for every row, the models whose bytes the wheel for aarch64 gave (under qemu), those that were
the same but for the bits of NaNs, and those that differed. `tests/support/elsewhere.py` writes it from that wheel's
answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from .table import Row


def identity(row: Row) -> str:
    """A row's operator, types and conditions: what stays the same when other rows are added."""
    conditions = ("", *(" ".join(map(str, condition)) for condition in row.when))
    return f"{row.operator}: {', '.join(row.types)} {' '.join(row.where)}".rstrip() + "; ".join(conditions)


@cache
def on_aarch64() -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Numerics to rows (`identity`) to how many models were "equal", "nan" (but for NaNs' bits) and "differ"."""
    read: Mapping[str, Mapping[str, Mapping[str, int]]] = json.loads(
        files(__package__).joinpath("aarch64.json").read_text()
    )
    return read


def elsewhere(numerics: str, row: Row) -> str:
    """What is known of a row on aarch64, in one line; empty for numerics that were not run there at all."""
    table = on_aarch64().get(numerics)
    if table is None or row.refuses:
        return ""
    found = table.get(identity(row))
    if found is None:
        return "aarch64: not run"
    parts = [f"{found.get('equal', 0)} models equal"]
    parts += [f"{found['nan']} equal but for NaNs' bits"] if "nan" in found else []
    parts += [f"{found['differ']} differ"] if "differ" in found else []
    return "aarch64: " + ", ".join(parts)
