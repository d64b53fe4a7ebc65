"""Slot `sum_of_products`: how a sum of binary32 products is added up, which decides its last bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats, tiled_products
from ..records import dataclass

# The NaN of an invalid operation on x86; other machines clear the sign bit.
_INVALID = np.uint32(0xFFC00000).view(np.float32)


# Elements of a sum held at a time: one pass per term stays inside a level-2 cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class SumRule:
    """`rule(total, first, second, room)` adds one term in place; `room` has the shape of `total`.

    Attributes:
        from_bias: sums start with the bias, not with +0, and what lies outside of an image is a term with a zero.
        inside: what lies outside of an image is left out all the same.
        by_columns: a filter is walked column by column, not row by row, and sums end as f32(total + 0) where it does
            not fill 3, 4, 9 or 25 taps.
        in_chains: terms take turns in chains, of which the first starts with the bias, the others with +0; how many
            there are, `chains_of_product`, `chains_of_windows` or `chains_of_taps` say.
        rest: adds the terms that are left of eights, where these are added in another way.
        tiles: makes a whole product of matrices, where the order of its sums goes by where results lie. Windows are
            rows then, with zeros outside of the image; transposed layers multiply first, and add up products then.
    """

    add: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
    formula: str
    from_bias: bool = False
    inside: bool = False
    by_columns: bool = False
    in_chains: bool = False
    rest: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None = None
    tiles: tiled_products.TiledProduct | None = None

    def __call__(self, total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
        self.add(total, first, second, room)

    def term(self, k: int, depth: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]:
        """What adds term `k` of `depth`."""
        return self.rest if self.rest is not None and k >= depth - depth % 8 else self.add


def binary32_in_order(total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
    """total = f32(total + f32(first * second)), in place: one term of a sum that starts at +0.

    Both operations round to nearest, ties to even; subnormal numbers count. No fused multiply-add, no second sum
    beside the first. `room` has the shape of `total` and takes the products. Domain: all of binary32.
    Source: reference/conv.h, reference/fully_connected.h, verified by running.

    >>> total, room = np.zeros(1, np.float32), np.empty(1, np.float32)
    >>> for x in (2.0**24, 1.0, 1.0, -(2.0**24)):
    ...     binary32_in_order(total, np.float32([x]), np.float32([1]), room)
    >>> total.tolist()
    [0.0]
    """
    with np.errstate(all="ignore"):
        np.multiply(first, second, out=room)
        np.add(total, room, out=total)


def binary32_fused(total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
    """total = f32(total + first * second) with one rounding, in place.

    Source: docs/facts/xnnpack.md 3.3, verified by running.

    >>> total, room = np.float32([-1 - 2.0**-11]), np.empty(1, np.float32)
    >>> binary32_fused(total, np.float32([1 + 2.0**-12]), np.float32([1 + 2.0**-12]), room)
    >>> float(total[0]) == 2.0**-24  # 0 if the product were rounded
    True
    """
    total[...] = floats.fused_multiply_add(first, second, total)


def add_up(rule: SumRule, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sums of products along the last axis, from +0 on.

    >>> add_up(RULES["binary32_in_order"], np.float32([[2, 3]]), np.float32([[5, 7]])).tolist()
    [31.0]
    """
    first, second = np.broadcast_arrays(first, second)
    total = np.zeros(first.shape[:-1], np.float32)
    room, depth = np.empty_like(total), first.shape[-1]
    for k in range(depth):
        rule.term(k, depth)(total, first[..., k], second[..., k], room)
    return total


def add_matrix(rule: SumRule, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """total[m, n] += a[m, k] * b[k, n] for k = 0, 1, ..., in place, one term after the other.

    >>> total = np.zeros((1, 1), np.float32)
    >>> add_matrix(RULES["binary32_in_order"], total, np.float32([[2, 3]]), np.float32([[5], [7]]))
    >>> total.tolist()
    [[31.0]]
    """
    rows = max(1, _BLOCK // max(1, total.shape[1]))
    for first in range(0, total.shape[0], rows):
        block, part = total[first : first + rows], a[first : first + rows]
        room = np.empty_like(block)
        for k in range(b.shape[0]):
            rule.term(k, b.shape[0])(block, part[:, k, None], b[k], room)


def chains_of_product(columns: int, single: bool) -> int:
    """Chains of a product of matrices with so many columns, of a `single` row or of more.

    Panels of 8 columns have one, two for a single row. Panels of 2 have four, and stand in their place for fewer
    columns than 8, and where they need fewer, and panels of 8 over 1 % more than there are. Source:
    docs/facts/xnnpack.md 3.20, verified by running.

    >>> [chains_of_product(n, False) for n in (1, 7, 8, 601, 602)], chains_of_product(8, True)
    ([4, 4, 1, 4, 1], 2)
    """
    eights, pairs = -(-columns // 8) * 8, -(-columns // 2) * 2
    if columns < 8 or (pairs < eights and 100 * eights > 101 * columns):
        return 4
    return 2 if single else 1


def chains_of_windows(columns: int, single: bool) -> int:
    """Chains of a convolution with so many channels per group, of a `single` window or of more: taps keep their order,
    the channels of every tap take turns.

    Source: docs/facts/xnnpack.md 3.20, verified by running.

    >>> [chains_of_windows(n, False) for n in (7, 8)], chains_of_windows(8, True)
    ([2, 1], 2)
    """
    return 2 if single or columns < 8 else 1


def chains_of_matrices(rows: int) -> int:
    """Chains of a product of two matrices that are computed, the first with so many rows: even and odd terms of one.

    Source: docs/facts/xnnpack.md 3.20, verified by running.

    >>> [chains_of_matrices(rows) for rows in (1, 2)]
    [2, 1]
    """
    return 2 if rows == 1 else 1


def chains_of_taps(taps: int) -> int:
    """Chains of a convolution whose groups have one channel: its taps take turns from 10 on.

    Source: docs/facts/xnnpack.md 3.20, verified by running.

    >>> [chains_of_taps(n) for n in (9, 10)]
    [1, 2]
    """
    return 2 if taps > 9 else 1


class Chains:
    """Sums whose terms take turns in one, two or four chains.

    Of four only whole fours of terms do; what is left is added to the sum of the chains.

    >>> chains = Chains(np.float32([1]), 4)
    >>> for k in range(5):
    ...     chains.of(k, 5)[...] += np.float32(2**k)
    >>> chains.folded().tolist()
    [32.0]
    """

    def __init__(self, start: np.ndarray, count: int) -> None:
        self._parts = [start, *(np.zeros_like(start) for _ in range(count - 1))]

    def of(self, k: int, depth: int) -> np.ndarray:
        """The chain that term `k` of `depth` goes to, in place."""
        if len(self._parts) == 4 and k == depth - depth % 4:
            self.folded()
        return self._parts[k % len(self._parts)]

    def folded(self) -> np.ndarray:
        """All chains' sum: neighbours, and then their sums."""
        with np.errstate(all="ignore"):
            while len(self._parts) > 1:
                self._parts = [a + b for a, b in zip(self._parts[::2], self._parts[1::2], strict=True)]
        return self._parts[0]


def invalid_as_on_x86(result: np.ndarray, *operands: np.ndarray | None) -> np.ndarray:
    """`result` with the NaN that x86 makes of infinities, when none of the operands holds a NaN to hand on.

    >>> hex(int(invalid_as_on_x86(np.float32([np.nan]), np.float32([np.inf])).view(np.uint32)[0]))
    '0xffc00000'
    """
    wrong = np.isnan(result)
    if wrong.any() and not any(o is not None and np.isnan(o).any() for o in operands):
        result[wrong] = _INVALID
    return result


RULES: dict[str, SumRule] = {
    "binary32_in_order": SumRule(
        binary32_in_order, "f32(total + f32(x * w)) from +0 on, filters row by row, then f32(total + bias)"
    ),
    "binary32_fused_in_order": SumRule(
        binary32_fused, "f32(total + x * w), one rounding, from +0 on, filters row by row, then f32(total + bias)"
    ),
    "binary32_fused_from_bias": SumRule(
        binary32_fused, "f32(total + x * w), one rounding, from the bias on, filters row by row", from_bias=True
    ),
    "binary32_from_bias_inside": SumRule(
        binary32_in_order,
        "f32(total + f32(x * w)) from the bias on, filters row by row, without what lies outside of an image",
        from_bias=True,
        inside=True,
    ),
    "binary32_fused_from_bias_inside": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, from the bias on, filters row by row, without what lies outside of an image",
        from_bias=True,
        inside=True,
    ),
    "binary32_fused_from_bias_by_columns": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, from the bias on, filters column by column",
        from_bias=True,
        by_columns=True,
    ),
    "binary32_fused_in_chains": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, in one chain from the bias on; in two for a single row or window, and for "
        "windows with fewer than 8 channels: even and odd terms of every tap, then their sum; in four where panels of "
        "2 columns waste less than those of 8: whole fours of terms, (0 + 1) + (2 + 3), then the terms that are left",
        from_bias=True,
        in_chains=True,
    ),
    "binary32_fused_by_columns_in_chains": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, filters column by column, up to 9 taps from the bias on; of more, even taps "
        "from the bias and odd ones from +0 on, then their sum",
        from_bias=True,
        by_columns=True,
        in_chains=True,
    ),
    "binary32_eights_then_fused": SumRule(
        binary32_in_order,
        "f32(total + f32(x * w)) from +0 on for whole eights of terms, f32(total + x * w) for those left, then "
        "f32(total + bias)",
        rest=binary32_fused,
    ),
    "binary32_in_tiles": SumRule(
        binary32_in_order,
        "f32(total + f32(x * w)) from +0 on, then f32(total + bias). In whole fours of rows: eights of filters in "
        "order; four behind them in two chains, k mod 2 as far as eights of terms go; the last up to three in four, "
        "k mod 4. "
        "Rows behind the fours: in order. A single row or filter: four lanes, (0 + 2) + (1 + 3), then the rest. Few of "
        "all (below 20): two sets of such lanes in turn",
        tiles=tiled_products.in_tiles,
    ),
    "binary32_fused_in_tiles": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, from +0 on, in order, then f32(total + bias); the last whole four of eight "
        "terms and more goes 1, 2, 3, 0 but where row and filter are among the first four of eight. A single row with "
        "four filters and terms: four lanes, (0 + 1) + (2 + 3)",
        tiles=tiled_products.fused_in_tiles,
    ),
}
