"""What `litert-optimized` refuses: binary32 kernels whose order of sums, or polynomials, are not reproduced."""

from __future__ import annotations

from ..table import Row

_PRODUCTS = (
    "binary32 matrix products of these kernels are summed in blocks whose sizes follow the processor's caches, and "
    "matrix-vector products in lanes; that is not reproduced. Numerics 'litert' has one defined order"
)
_EXPONENTIALS = (
    "these binary32 kernels use vector polynomials that differ from the C library's functions in the last bits; "
    "numerics 'litert' has the C library's"
)

ROWS: tuple[Row, ...] = (
    *(
        Row(stem, types, refuses=_PRODUCTS)
        for stem, types in (
            ("conv2d", ("f32 * f32|- -> f32",)),
            ("depthwise_conv2d", ("f32 * f32|- -> f32",)),
            ("fully_connected", ("f32 f32 f32|- -> f32",)),
            ("transpose_conv", ("s32 f32 f32 f32|- -> f32",)),
            ("batch_matmul", ("f32 f32 -> f32",)),
            ("conv3d", ("f32 f32 f32|- -> f32",)),
            ("conv3d_transpose", ("s32 f32 f32 f32|- -> f32",)),
        )
    ),
    *(Row(stem, ("f32 -> f32",), refuses=_EXPONENTIALS) for stem in ("softmax", "log_softmax", "logistic", "tanh")),
)
