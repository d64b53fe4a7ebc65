"""What `litert-optimized` refuses: binary32 kernels whose order of sums, or polynomials, are not reproduced."""

from __future__ import annotations

from ..table import Row

_REALS = ("f32", "f16", "bf16")
_PRODUCTS = (
    "binary32 matrix products of these kernels are summed in blocks whose sizes follow the processor's caches, and "
    "matrix-vector products in lanes; that is not reproduced. Numerics 'litert' has one defined order"
)
_EXPONENTIALS = (
    "these binary32 kernels use vector polynomials that differ from the C library's functions in the last bits; "
    "numerics 'litert' has the C library's"
)

_VECTORS = (
    "these binary32 kernels group or order their operations by vectors, which differs from numerics 'litert' in the "
    "last bits and is not reproduced"
)
_FIRST = "products of quantized integers begin with the first element here, unscaled, which is not reproduced"
_WRAPS = (
    "with a zero point outside of the type, the bounds of the fused activation wrap to 16 bits here, which is not "
    "reproduced"
)

ROWS: tuple[Row, ...] = (
    *(
        Row(stem, types, refuses=_PRODUCTS)
        for stem, types in (
            ("conv2d", ("f32 * f32|- -> f32",)),
            ("depthwise_conv2d", ("f32 * f32|- -> f32",)),
            ("fully_connected", ("f32 * f32|- -> f32",)),
            ("transpose_conv", ("s32 f32|s8 f32 f32|- -> f32",)),
            ("batch_matmul", ("f32 f32|s8 -> f32",)),
            ("conv3d", ("f32 f32 f32|- -> f32",)),
            ("conv3d_transpose", ("s32 f32 f32 f32|- -> f32",)),
        )
    ),
    *(
        Row(stem, ("T -> T",), where=_REALS, refuses=_EXPONENTIALS)
        for stem in ("softmax", "log_softmax", "logistic", "tanh")
    ),
    *(
        Row(stem, ("f32 -> f32",), refuses=_VECTORS)
        for stem in ("hard_swish", "l2_pool2d", "local_response_normalization")
    ),
    Row("average_pool2d", ("u8 -> u8",), when=(("output_zero_point_outside",),), refuses=_WRAPS),
    Row("reduce_prod", ("T s32 -> T",), where=("s8", "s16"), refuses=_FIRST),
)
