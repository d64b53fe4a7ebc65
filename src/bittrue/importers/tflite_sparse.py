"""Sparse constants of a TFLite file, made dense.

A tensor of rank n with b block axes is a tree of n + b levels in `traversal_order`: an axis below n counts whole blocks
of a dimension, axis n + j counts inside of the blocks of dimension `block_map[j]`. A dense level has all its positions
under every parent; in a sparse one (compressed rows) parent p has the positions indices[segments[p] : segments[p + 1]].
The stored values are the leaves in order; everything else is zero. Source: the schema's comments, and the kernels, run.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import InvalidModelError, ResourceError
from . import tflite_schema as schema
from .flatbuffer import FlatBuffer, Table

# Bytes of one file's tensors after they were made dense: their size is a claim of the file.
MAX_DENSE_BYTES = 1 << 30


def make_dense(
    file: FlatBuffer, table: Table, values: np.ndarray, shape: tuple[int, ...], room: int, place: str
) -> np.ndarray:
    """The elements of a tensor of `shape` from the stored `values`, as a flat read-only array of their type.

    Raises:
        InvalidModelError: the description contradicts itself, the shape or the number of values.
        ResourceError: the dense tensor takes more than `room` bytes.
    """

    def wrong(message: str) -> InvalidModelError:
        return InvalidModelError(
            "BT-TENSOR-SPARSE-FORM", f"the sparse tensor {message}", place=place, advice="convert the model again"
        )

    elements = math.prod(shape)
    if elements * values.itemsize > room:
        raise ResourceError(
            "BT-FILE-LIMIT",
            f"dense tensors would take more than {MAX_DENSE_BYTES:,} bytes",
            place=place,
            advice="convert the model without sparsity",
        )
    order, blocked = table.integers("traversal_order") or (), table.integers("block_map") or ()
    levels = table.tables("dim_metadata")
    if not elements and not values.size:
        return np.zeros(0, values.dtype)
    rank, depth = len(shape), len(shape) + len(blocked)
    if levels is None or len(levels) != depth or sorted(order) != list(range(depth)):
        raise wrong(f"of rank {rank} with {len(blocked)} block axes needs an order and a format for each of its levels")
    if any(not 0 <= dimension < rank for dimension in blocked) or len(set(blocked)) != len(blocked):
        raise wrong(f"has blocks along {list(blocked)}")
    blocks = dict.fromkeys(range(rank), 1)
    for position, axis in enumerate(order):
        if axis >= rank:
            blocks[blocked[axis - rank]] = levels[position].number("dense_size")
    if any(size < 1 or shape[dimension] % size for dimension, size in blocks.items()):
        raise wrong(f"of shape {list(shape)} does not divide into blocks of {list(blocks.values())}")

    # Per node of the level that was reached: its place in the dense tensor.
    places = np.zeros(1, np.int64)
    for position, axis in enumerate(order):
        dimension = axis if axis < rank else blocked[axis - rank]
        length = shape[axis] // blocks[axis] if axis < rank else blocks[dimension]
        stride = math.prod(shape[dimension + 1 :]) * (blocks[dimension] if axis < rank else 1)
        level = levels[position]
        if schema.ENUMS["DimensionType"][level.number("format") & 1] == "DENSE":
            if axis < rank and level.number("dense_size") != length:
                raise wrong(f"has {level.number('dense_size')} positions in level {position}, expected {length}")
            if places.size * length > elements:
                raise wrong("names positions twice")
            places = (places[:, None] + np.arange(length) * stride).reshape(-1)
            continue
        segments, indices = (_numbers(file, level, name, place) for name in ("array_segments", "array_indices"))
        counts = np.diff(segments)
        if segments.size != places.size + 1 or segments[0] != 0 or (counts < 0).any() or segments[-1] != indices.size:
            raise wrong(f"has segments in level {position} that do not cover its {indices.size} positions")
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < length:
            raise wrong(f"has a position outside of the {length} of level {position}")
        places = np.repeat(places, counts) + indices * stride
    if places.size != values.size:
        raise wrong(f"has {values.size} values for {places.size} leaves")
    dense = np.zeros(elements, values.dtype)
    dense[places] = values
    dense.flags.writeable = False
    return dense


def _numbers(file: FlatBuffer, level: Table, name: str, place: str) -> np.ndarray:
    """Segments or positions of a sparse level, whatever their width."""
    member, position = level.union(name)
    kinds = schema.UNIONS["SparseIndexVector"]
    if not 0 < member < len(kinds):
        raise InvalidModelError(
            "BT-TENSOR-SPARSE-FORM", f"a sparse level has no {name}", place=place, advice="convert the model again"
        )
    values = Table(file, kinds[member], position).numbers("values")
    found = np.zeros(0, np.int64) if values is None else values.astype(np.int64)
    file.spend_bytes(found.nbytes, place)
    return found
