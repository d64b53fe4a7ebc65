"""`onnxruntime-avx2`: ONNX Runtime's CPU provider on an x86-64 without VNNI, where u8 by s8 products can saturate.

Its kernels add up two neighbouring products in 16 bits. All other types are exact there, and depthwise convolutions
unless their filters have different zero points.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..records import replace
from .onnxruntime import ONNXRUNTIME, attention, floating, layers, recurrent
from .table import Row


def factors(operator: str, rules: Mapping[str, str]) -> tuple[int, int] | None:
    """Positions of both factors of a layer's products among its inputs, the left one first; None for other operators.

    Convolutions multiply windows by weights; those that give their sums, weights by windows.
    """
    if operator not in ("conv", "matmul"):
        return None
    return (1, 0) if operator == "conv" and "store" not in rules else (0, 1)


def _mixed(row: Row) -> tuple[str, ...]:
    """The patterns of a row whose left factor is u8 and whose right one is s8."""
    found = factors(row.operator, row.rules)
    assert found is not None, row.operator
    left, right = found
    return tuple(types for types in row.types if (types.split()[left], types.split()[right]) == ("u8", "s8"))


def _when(row: Row) -> tuple[tuple[object, ...], ...]:
    """Weights that are known to saturate nowhere leave a layer to the exact rows."""
    if factors(row.operator, row.rules) == (1, 0):
        return row.when
    return (*row.when, ("column_pairs_can_saturate" if row.operator == "matmul" else "window_pairs_can_saturate",))


ROWS: tuple[Row, ...] = tuple(
    replace(
        row,
        types=_mixed(row),
        when=_when(row),
        rules={**row.rules, "accumulate": "s16_pairs_s32_wrap"},
        evidence="run under emulation of a Haswell; docs/facts/onnxruntime.md 2.1",
    )
    for row in layers.ROWS
    if factors(row.operator, row.rules) and _mixed(row)
) + tuple(
    replace(
        row,
        where=("s8",),
        rules={**row.rules, "accumulate": "s16_pairs_s32_wrap"},
        evidence="run under emulation of a Haswell: 100 random single-node models",
    )
    for row in recurrent.ROWS
    if "dynamic_range" in row.rules
)

_RUN = "run on x86-64 with AVX2 and FMA, one thread"
_BLOCKS = f"{_RUN}: 270 random products with weights in blocks, every bit"
_ROWS = (
    "several threads have other blocks: last bits differ; rows with numbers that are not finite, or with subnormal ones"
    " alone, become other integers"
)

# Bytes of the smallest second-level cache of these processors.
_CACHE = 1 << 18


def _attention(row: Row) -> tuple[Row, ...]:
    """Blocks follow from the size of a cache: whether they are the same everywhere is said first."""
    own = replace(
        row,
        rules={
            **row.rules,
            "real_softmax": "binary32_polynomial_8_lanes",
            **({"cached_product": "binary32_8_lanes"} if "cached_product" in row.rules else {}),
        },
        evidence=f"{_RUN}: 1,065 random single-node models, every bit",
        limit=attention.OTHERS + attention.LEFT,
    )
    if row.rules["attention"].startswith("whole_rows"):
        return (own,)
    of_blocks = f"{attention.CACHE}, which few of these processors have{attention.LEFT}"
    return (
        replace(own, when=(*row.when, ("attends_in_one_block", _CACHE))),
        replace(own, limit=of_blocks, inexact=True),
    )


# Rows of real numbers that other vectors change.
_REALS: tuple[Row, ...] = (
    tuple(
        # The C library's stays.
        row
        if row.when == (floating.BY_LIBRARY,)
        else replace(
            row,
            rules={"real_softmax": "binary32_polynomial_8_lanes"},
            evidence="run on x86-64 with AVX2 and FMA, one thread: 500 random single-node models, every bit",
        )
        for row in floating.ROWS
        if "binary32" in row.rules.get("real_softmax", "")
    )
    + tuple(
        replace(
            row,
            rules={"real_product": "binary32_fused_blocks_of_8"},
            evidence=f"{_RUN}: convolutions, alone and in whole networks, every bit",
        )
        for row in floating.ROWS
        if row.operator == "conv" and not row.when
    )
    + tuple(
        # What is refused there comes first here, too.
        row
        if row.refuses
        else replace(
            row,
            rules={**row.rules, "block_product": "binary32_8_lanes"},
            evidence=_BLOCKS,
            limit=f"{_ROWS}; computed zero points are ignored, but by single rows of 4 bits",
        )
        if row.rules["block_product"] == "binary32_16_lanes"
        else replace(
            row,
            rules={**row.rules, "block_product": "binary32_four_blocks_of_8"},
            evidence="run under emulation of a Haswell: 300 random products with weights of 2 bits, every bit",
            limit=f"{_ROWS}; computed zero points are ignored",
        )
        for row in layers.ROWS
        if row.operator == "matmul" and (row.refuses or "block_product" in row.rules)
    )
    + tuple(
        replace(
            row,
            rules={**row.rules, "real_product": "binary32_fused_blocks_of_8"},
            evidence=_BLOCKS,
        )
        for row in layers.ROWS
        if row.operator == "matmul" and "real_product" in row.rules and " u8 " in row.types[0]
    )
    + tuple(
        replace(
            row,
            when=(*row.when, ("attribute_is", "block_size", 16, 32, 64, 128, 256)),
            rules={
                **row.rules,
                "real_product": "binary32_fused_blocks_of_8",
                **({"block_product": "binary32_8_lanes"} if "block_product" in row.rules else {}),
            },
            evidence="run under emulation of a Haswell: 220 random single-node models, every bit",
        )
        for row in layers.ROWS
        if row.operator == "mixture_of_experts" and " u8 " in row.types[0]
    )
    + tuple(one for row in attention.ROWS if row.operator == "attention" for one in _attention(row))
    + tuple(row for row in attention.ROWS if row.operator == "linear_attention" and not row.when)
    + tuple(row for row in floating.ROWS if row.operator == "gelu" and row.when == (floating.QUICK_GELU,))
    + tuple(
        # The same in gates as elsewhere; the C library's stays.
        row
        for row in floating.ROWS
        if row.operator == "logistic" and row.types == ("f32 -> f32",) and row.when in ((), (floating.BY_LIBRARY,))
    )
)

# Rewrites that ask how many channels a block has.
_OF_BLOCKS = ("unblock_channels", "cast_halves", "fuse_reals", "mark_planes")

ONNXRUNTIME_AVX2 = replace(
    ONNXRUNTIME,
    name="onnxruntime-avx2",
    reproduces="ONNX Runtime 1.31 CPU provider, x86-64 with AVX2 and without VNNI, session.qdqisint8allowed=1",
    verified=(
        "run against onnxruntime 1.31.1 on an AMD EPYC with AVX2: random single-node models, graphs of the optimiser's"
        " passes, exported models; recorded under qemu-x86_64 -cpu Haswell-v1; all else as onnxruntime"
    ),
    rows=(*ROWS, *_REALS, *ONNXRUNTIME.rows),
    rewrites=tuple(f"{name}:8" if name in _OF_BLOCKS else name for name in ONNXRUNTIME.rewrites),
)
