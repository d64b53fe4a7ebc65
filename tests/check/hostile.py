"""Checks of mutated models, for processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from entries import change_model, checked
from oracle import tried
from watch import changes, seeds

__all__ = ["attempt", "change_model", "changes", "seeds"]


def attempt(content: bytes, folder: Path) -> str:
    """``"found"``, ``"result"`` or the quantized value of a typed error."""
    return tried(lambda: checked(content))
