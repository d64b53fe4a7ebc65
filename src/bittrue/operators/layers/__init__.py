"""Convolutions and matrix products."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # Which of these a model needs depends on its arithmetic.
    __getattr__ = deferred(
        __name__,
        (
            "depthwise_conv",
            "hybrid_layers",
            "image_conv",
            "integer_conv",
            "integer_conv_transpose",
            "matmul_blocks",
            "matmul_integer",
            "matmul_real",
            "matmul_tensors",
            "matmul_wrapping",
            "ordered_conv_transpose",
            "real_conv",
            "real_conv_transpose",
            "real_layers",
            "rescaled_conv_transpose",
            "whole_conv",
            "whole_numbers",
            "whole_product",
            "window_sums",
        ),
    )
