"""Mappings of element-wise operators, pools and tables on quantized numbers."""

from __future__ import annotations

from .base import Mappers

MAPPERS: Mappers = {}
