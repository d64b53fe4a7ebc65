"""Mappings of data movement."""

from __future__ import annotations

import numpy as np

from .base import Mappers, Source


def _transpose(source: Source) -> None:
    order = source.integers("perm")
    inputs = (
        source.inputs[:1] if order is None else [*source.inputs[:1], source.constant(np.array(order, np.int64), "perm")]
    )
    source.emit("transpose", source.type(0), inputs=inputs)


MAPPERS: Mappers = {
    ("", "Transpose"): _transpose,
}
