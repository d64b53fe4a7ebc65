"""binary32 sums of products whose order is part of their meaning."""

from __future__ import annotations

import numpy as np

# Elements of the sum held at a time: one pass per term stays inside a level-2 cache.
_BLOCK = 1 << 16


def add_products(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """total[..., m, n] += a[..., m, k] * b[..., k, n] for k = 0, 1, ..., in place, all binary32.

    Every product and every sum is rounded on its own, ties to even: no fused multiply-add, no reordering. `total` has
    the broadcast shape. NaN and infinity as IEEE 754 has them, the sign of a NaN as the processor makes it.
    No errors. Source: the compiled kernels of one runtime, run (facts in the numerics' rows).

    >>> total = np.zeros((1, 1), np.float32)
    >>> add_products(total, np.float32([[2**24, 1, -(2**24)]]), np.float32([[1], [1], [1]]))
    >>> total.tolist()  # 2^24 + 1 ties to the even 2^24; in the order 1, 3, 2 the sum would be 1
    [[0.0]]
    """
    with np.errstate(all="ignore"):
        if total.ndim > 2:
            batch = total.shape[:-2]
            left, right = (np.broadcast_to(part, (*batch, *part.shape[-2:])) for part in (a, b))
            for index in np.ndindex(*batch):
                add_products(total[index], left[index], right[index])
            return
        rows = max(1, _BLOCK // max(1, total.shape[1]))
        for first in range(0, total.shape[0], rows):
            block, part = total[first : first + rows], a[first : first + rows]
            for k in range(b.shape[0]):
                block += part[:, k, None] * b[k]
