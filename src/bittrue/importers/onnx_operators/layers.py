"""Mappings of matrix products and convolutions on integers."""

from __future__ import annotations

from .base import Mappers, Source


def _qlinear_matmul(source: Source) -> None:
    source.emit("qlinear_matmul", source.type(7))


MAPPERS: Mappers = {
    ("", "QLinearMatMul"): _qlinear_matmul,
}
