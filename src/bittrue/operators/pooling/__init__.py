"""What windows and grids are made into one value: pooling and resizing."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # Which of these a model needs depends on its arithmetic.
    __getattr__ = deferred(
        __name__,
        (
            "average_affine",
            "average_levels",
            "average_reals",
            "average_scaled",
            "max_over_grid",
            "pooling",
            "resize_antialiased",
            "resized_places",
        ),
    )
