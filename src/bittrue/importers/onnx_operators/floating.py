"""Mappings of operators on real numbers."""

from __future__ import annotations

from .base import Mappers

MAPPERS: Mappers = {}
