"""Sums, means, extremes, softmax and normalizations along axes."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # Which of these a model needs depends on its arithmetic.
    __getattr__ = deferred(
        __name__,
        (
            "affine_mean",
            "affine_normalization",
            "range_normalization",
            "real_reduce",
            "reduce",
        ),
    )
