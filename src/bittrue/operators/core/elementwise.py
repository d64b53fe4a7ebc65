"""Element-wise evaluation in blocks: broadcasting without whole-tensor temporaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .stopping import check_stop

# Elements per block: a handful of int64 temporaries of this size stay inside a level-2 cache.
BLOCK = 1 << 15


def blockwise(
    function: Callable[..., np.ndarray],
    arrays: Sequence[np.ndarray],
    dtype: np.dtype,
    compute: np.dtype | None = None,
) -> np.ndarray:
    """function(*arrays) with NumPy broadcasting, stored as `dtype`, evaluated on one-dimensional blocks.

    Args:
        function: receives one 1-D array per input, converted to `compute`, and returns one of the same length.
        arrays: inputs that broadcast together.
        dtype: type of the result.
        compute: type of the arrays given to `function`; int64 unless said.

    >>> blockwise(lambda a, b: a + b, [np.int8([[1], [2]]), np.int8([10, 20])], np.dtype(np.int16)).tolist()
    [[11, 21], [12, 22]]
    """
    compute = np.dtype(np.int64) if compute is None else compute
    operands: list[np.ndarray | None] = [*arrays, None]
    iterator: Any = np.nditer(  # type: ignore[call-overload]
        operands,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=[*([["readonly"]] * len(arrays)), ["writeonly", "allocate"]],
        op_dtypes=[*([compute] * len(arrays)), np.dtype(dtype)],
        order="C",
        casting="unsafe",
        buffersize=BLOCK,
    )
    with iterator:
        for *blocks, out in iterator:
            check_stop()
            out[...] = function(*blocks)
        return iterator.operands[-1]


def in_lanes(
    body: Callable[..., np.ndarray],
    tail: Callable[..., np.ndarray],
    split: int,
    arrays: Sequence[np.ndarray],
    dtype: np.dtype,
    compute: np.dtype | None = None,
) -> np.ndarray:
    """`blockwise` with `body` for the first `split` elements in memory order and `tail` for the rest.

    The arrays have one shape, or a single element.

    >>> in_lanes(np.negative, np.abs, 2, [np.int8([[-1, -2], [-3, 4]])], np.dtype(np.int8)).tolist()
    [[1, 2], [3, 4]]
    """
    flat = [a.reshape(-1) for a in arrays]
    parts = [
        blockwise(function, [a if a.size == 1 and arrays[0].size != 1 else a[part] for a in flat], dtype, compute)
        for function, part in ((body, slice(0, split)), (tail, slice(split, None)))
    ]
    return np.concatenate(parts).reshape(arrays[0].shape)
