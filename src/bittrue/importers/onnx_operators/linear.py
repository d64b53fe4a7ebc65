"""Mappings of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from .base import Mappers

MAPPERS: Mappers = {}
