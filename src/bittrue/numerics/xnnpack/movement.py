"""Rows of `xnnpack`: data movement: the same bytes as the built-in kernels, but other refusals.

Only 8-bit tensors have rows: nothing is checked of the others that the built-in kernels do not check.
"""

from __future__ import annotations

from ..litert.movement import ONE_VALUE
from ..table import Row
from .matrix import QUANTIZED

_BYTES = ("s8", "u8")
_SCALED = ("one_scale", 0, "output")
_SAME = (*QUANTIZED, ("same_parameters", 0))

ROWS: tuple[Row, ...] = (
    *(
        Row(stem, ("T s32 -> T",), {}, "run", _BYTES, when=(("counts_within", (2, 2), (1, 1)), *when), requires=_SAME)
        for stem, when in (
            ("pad", (*ONE_VALUE, ("stored_in_file", 1), ("declared_rank", 1, 6, 0, "output"), _SCALED)),
            ("transpose", (("stored_in_file", 1), ("declared_rank", 1, 6, 0), _SCALED)),
        )
    ),
    Row(
        "slice",
        ("T s32|s64 s32|s64 -> T",),
        {},
        "run",
        _BYTES,
        when=(("stored_in_file", 1, 2), ("values_within", 2, 1, 2**31 - 1), _SCALED),
        requires=_SAME,
    ),
    Row(
        "strided_slice",
        ("T s32 s32 s32 -> T",),
        {},
        "run",
        _BYTES,
        when=(
            ("stored_in_file", 1, 2, 3),
            ("indices_for_every_axis", 1),
            ("values_within", 3, 1, 1),
            ("attribute_is", "ellipsis_mask", 0),
            ("attribute_is", "new_axis_mask", 0),
            ("attribute_is", "shrink_axis_mask", 0),
            _SCALED,
        ),
        requires=_SAME,
    ),
    Row(
        "split",
        ("T - s32 -> T...",),
        {},
        "run",
        _BYTES,
        when=(("counts_within", (3, 3), (2, 4)), ("stored_in_file", 2), ("one_scale", 0, "outputs")),
        requires=(*QUANTIZED, ("same_parameters", 0)),
    ),
    *(
        Row(
            stem,
            ("T -> T",),
            {},
            "run",
            _BYTES,
            when=(("counts_within", (1, 1), (1, 1)), ("block_size_above_1",), _SCALED),
            requires=_SAME,
        )
        for stem in ("space_to_depth", "depth_to_space")
    ),
    *(
        Row(
            stem,
            ("T s32 -> T",),
            {},
            "run; quantized values, parameters are not compared",
            _BYTES,
            when=(
                ("counts_within", (2, 2), (1, 1)),
                ("stored_in_file", 1),
                ("input_rank_at_most", 1, 1),
                ("not_empty", 1),
                _SCALED,
            ),
            requires=QUANTIZED,
        )
        for stem in ("reduce_max", "reduce_min")
    ),
)
