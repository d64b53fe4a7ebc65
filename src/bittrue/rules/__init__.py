"""Rules: one file per slot (or per pair of inverse slots), all its variants side by side, named by their arithmetic."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache

# slot -> module of this folder and the name of its table
_TABLES = {
    "accumulate": ("accumulate", "RULES"),
    "activation_range": ("activation_range", "RULES"),
    "dequantize": ("quantize", "DEQUANTIZE"),
    "quantize": ("quantize", "QUANTIZE"),
    "rescale": ("rescale", "RULES"),
    "scale_form": ("scale_form", "RULES"),
    "store": ("store", "RULES"),
}


def slots() -> tuple[str, ...]:
    """Names of all slots."""
    return tuple(_TABLES)


@cache
def rules(slot: str) -> Mapping[str, object]:
    """Name to rule of one slot. Raises KeyError for an unknown slot."""
    module, table = _TABLES[slot]
    found: Mapping[str, object] = getattr(importlib.import_module(f"{__name__}.{module}"), table)
    return found
