"""What every operator is made of: calls, steps, operands and their roles, windows."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # For scales that are operands.
    __getattr__ = deferred(__name__, ("granularity", "late", "role_quantization"))
