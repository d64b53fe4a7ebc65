"""What attention adds to its scores so that some keys are not seen."""

from __future__ import annotations

import numpy as np

LOWEST = float(np.finfo(np.float32).min)


def after(queries: int, keys: int, past: int) -> np.ndarray:
    """Whether a key comes after a query [S, T].

    >>> after(2, 3, 1).tolist()
    [[False, False, True], [False, False, False]]
    """
    return np.arange(keys)[None] > np.arange(queries)[:, None] + past


def of_integers(mask: np.ndarray, batch: int, queries: int, keys: int, value: np.float32) -> np.ndarray:
    """`value` where a key is masked [B, S, T]: by marks of keys, of keys per query, or by ends and starts of sequences.

    >>> of_integers(np.int32([1, 2, 0, 1]), 2, 1, 3, np.float32(-5)).tolist()
    [[[0.0, -5.0, -5.0]], [[-5.0, 0.0, -5.0]]]
    """
    if mask.ndim == 1:
        places = np.arange(keys)
        hidden = places[None] >= mask[:batch, None]
        if mask.size == 2 * batch:
            hidden |= places[None] < mask[batch:, None]
    else:
        hidden = mask <= 0
    if hidden.ndim == 2:
        hidden = hidden[:, None]
    return np.where(np.broadcast_to(hidden, (batch, queries, keys)), value, np.float32(0))


def of_numbers(mask: np.ndarray, value: np.float32) -> np.ndarray:
    """Truth values say which keys are seen; numbers are added as they are. [.., .., S, T] with the leading axes."""
    added = np.where(mask, np.float32(0), value) if mask.dtype == np.bool_ else mask
    return added.reshape((1,) * (4 - added.ndim) + added.shape)
