"""Rows of `litert`: selection and placement: what is kept, counted, scattered or sorted."""

from __future__ import annotations

from ..table import Row

_RUN = "run; kernels read at f674577"
_UNWRITTEN = (
    "places beyond the number of detections are 0; the kernel leaves them unwritten, so that they hold what the memory "
    "held before. Options without meaning (classes or room below 1, scales of 0) are refused; with several threads the "
    "kernel may order equal scores of different classes otherwise (regular suppression)"
)

ROWS: tuple[Row, ...] = (
    Row(
        "detection_postprocess",
        ("f32 f32|u8 f32 -> f32 f32 f32 f32", "u8 f32|u8 u8 -> f32 f32 f32 f32"),
        {},
        _RUN,
        requires=(("zero_points_fit",),),
        limit=_UNWRITTEN,
    ),
)
