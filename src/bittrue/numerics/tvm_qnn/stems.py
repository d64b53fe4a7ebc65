"""Rows of `tvm-qnn`: operators on tensors with one scale and zero point, as graphs of other formats have them."""

from __future__ import annotations

from ..table import Row
from .variants import Variant


def rows(own: Variant) -> tuple[Row, ...]:
    """All of them."""
    return ()
