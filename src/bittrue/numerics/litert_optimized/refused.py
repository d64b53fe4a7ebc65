"""What `litert-optimized` refuses: kernels whose results are wrong in a way that is not reproduced."""

from __future__ import annotations

from ..table import Row

_NEIGHBOURS = (
    "this kernel's results are not those of the formula (they differ by up to 75 %), which is not reproduced; numerics "
    "'litert' has the formula's"
)
_FIRST = "products of quantized integers begin with the first element here, unscaled, which is not reproduced"
_WRAPS = (
    "with a zero point outside of the type, the bounds of the fused activation wrap to 16 bits here, which is not "
    "reproduced"
)

ROWS: tuple[Row, ...] = (
    Row("local_response_normalization", ("f32 -> f32",), refuses=_NEIGHBOURS),
    Row("average_pool", ("u8 -> u8",), when=(("output_zero_point_outside",),), refuses=_WRAPS),
    Row(
        "average_pool",
        ("s8 -> s8",),
        when=(
            ("output_zero_point_outside", -(2**15), 2**15 - 1),
            ("attribute_is", "activation", "relu", "relu6", "relu_n1_to_1"),
        ),
        refuses=_WRAPS,
    ),
    Row("reduce_prod", ("T s32 -> T",), where=("s8", "s16"), refuses=_FIRST),
)
