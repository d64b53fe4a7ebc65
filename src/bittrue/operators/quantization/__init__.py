"""Quantized values from real numbers, back, and between types."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # Which of these a model needs depends on its arithmetic.
    __getattr__ = deferred(
        __name__,
        (
            "dequantize_operands",
            "level_storage",
            "quantize_in_reals",
            "quantize_operands",
            "quantize_ranges",
        ),
    )
