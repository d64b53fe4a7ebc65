"""Slot `elimination`: how matrices are eliminated and their triangles solved, sums of products by tiles.

Columns are eliminated one by one, more than 16 in blocks: of an eighth of them, a multiple of 16, but at least 8 and at
most 256 (inside of a block 16). What a block gives to the columns behind it is added up and subtracted at once, and so
is what the rows before a panel of a triangle give to the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..records import dataclass
from . import multiply_add

_LARGEST, _SMALL = 256, 16
# Fewer sizes than these are a product element by element, or a triangle in one block.
_FEW, _ONE_BLOCK = 20, 48


@dataclass(frozen=True)
class Tiles:
    """Sums of products of one type, left [rows, depth] times right [depth, columns], by rows of a tile and packets of
    columns.

    Attributes:
        lanes: numbers of a packet.
        packets: that are worked on together, if there are as many.
        rows: of a tile; of fewer, four or one.
        half: numbers of a smaller packet, or 0.
        fours: whether what no packet holds of four rows goes to four sums that take turns.
        apart: whether products are rounded of single rows of what no packet holds.
        cache: bytes of the first-level cache, which blocks of large triangles fill.
    """

    lanes: int
    packets: int
    rows: int
    half: int = 0
    fours: bool = False
    apart: bool = False
    cache: int = 48 << 10

    @property
    def panel(self) -> int:
        """Rows of a panel of a triangle."""
        return max(self.lanes * self.packets, self.rows)

    def block(self, size: int, columns: int, itemsize: int) -> int:
        """Rows of a block of a triangle that is solved for so many columns."""
        together = self.lanes * self.packets
        each = 4 * (together + self.rows) * itemsize
        most = (self.cache - together * self.rows * itemsize) // each // 8 * 8
        if max(size, columns) < _ONE_BLOCK or size <= most:
            return max(size, 1)
        left = size % most
        return most if left == 0 else most - 8 * ((most - 1 - left) // (8 * (size // most + 1)))


@dataclass(frozen=True, eq=False)
class EliminationRule:
    """`tiles`: by bytes of an element; `add`: a b + c; matrices [N, rows, columns], in place."""

    tiles: Mapping[int, Tiles]
    add: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    formula: str
    source: str

    def _chain(
        self,
        left: np.ndarray,
        right: np.ndarray,
        terms: range,
        total: np.ndarray | None = None,
        add: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        if total is None:
            total = np.zeros((*left.shape[:2], right.shape[2]), left.dtype)
        for k in terms:
            total = (add or self.add)(left[:, :, k, None], right[:, None, k], total)
        return total

    def _turns(self, left: np.ndarray, right: np.ndarray, count: int, whole: int) -> np.ndarray:
        """Sums that take turns up to `whole`, added up by pairs; then the rest."""
        sums = [self._chain(left, right, range(first, whole, count)) for first in range(count)]
        while len(sums) > 1:
            sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=True)]
        return self._chain(left, right, range(whole, left.shape[2]), sums[0])

    def product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Left times right by tiles."""
        tiles, depth = self.tiles[left.itemsize], left.shape[2]
        total = self._chain(left, right, range(depth))
        rows, columns = total.shape[1:]
        eights = rows // 8 * 8 if tiles.rows == 8 else 0
        fours, many = slice(eights, eights + (rows - eights) // 4 * 4), 0
        for count in (3, 2):
            wide = count * tiles.lanes
            many += (columns - many) // wide * wide if count <= tiles.packets else 0
        packets = many + (columns - many) // tiles.lanes * tiles.lanes
        packets += (columns - packets) // tiles.half * tiles.half if tiles.half else 0
        for part, count, whole in (
            (slice(many, packets), 2, depth // 8 * 8),
            (slice(packets, columns), 4, depth // 4 * 4 if tiles.fours else 0),
        ):
            if whole and part.start < part.stop and fours.start < fours.stop:
                total[:, fours, part] = self._turns(left[:, fours], right[:, :, part], count, whole)
        if tiles.apart:
            add = multiply_add.RULES["rounded_twice"].apply
            single = self._chain(left[:, fours.stop :], right[:, :, packets:], range(depth), add=add)
            total[:, fours.stop :, packets:] = single
        return total

    def solve(self, m: np.ndarray, x: np.ndarray, lower: bool) -> None:
        """The rows of x become those of a triangle's inverse times them; a lower one has ones on its diagonal."""
        tiles, size = self.tiles[m.itemsize], m.shape[1]
        rows = tiles.block(size, x.shape[2], m.itemsize)
        starts = range(0, size, rows)
        blocks = [(s, min(s + rows, size)) if lower else (max(size - s - rows, 0), size - s) for s in starts]
        for begin, end in blocks:
            panels = [(s, min(s + tiles.panel, end)) for s in range(begin, end, tiles.panel)]
            for first, last in panels if lower else reversed(panels):
                self._subtract(m, x, slice(begin, first) if lower else slice(last, end), slice(first, last))
                for i in range(first, last) if lower else reversed(range(first, last)):
                    for k in range(first, i) if lower else range(i + 1, last):
                        x[:, i] = self.add(-m[:, i, k, None], x[:, k], x[:, i])
                    if not lower:
                        x[:, i] *= m.dtype.type(1) / m[:, i, i, None]
            self._subtract(m, x, slice(begin, end), slice(end, size) if lower else slice(0, begin))

    def _subtract(self, m: np.ndarray, x: np.ndarray, given: slice, taken: slice) -> None:
        if given.start < given.stop and taken.start < taken.stop:
            x[:, taken] -= self.product(m[:, taken, given], x[:, given])

    def eliminate(
        self, m: np.ndarray, each: Callable[[], None], begin: int = 0, end: int | None = None, largest: int = _LARGEST
    ) -> tuple[np.ndarray, np.ndarray]:
        """Matrices become both triangles in place; the order of rows, and the sign of the exchanges.

        `each` is called for every column.
        """
        end = m.shape[2] if end is None else end
        if end - begin <= _SMALL:
            return self._column_by_column(m, each, begin, end)
        width, size = min(max((end - begin) // 8 // 16 * 16, 8), largest), m.shape[1]
        order, sign = np.tile(np.arange(size), (m.shape[0], 1)), np.ones(m.shape[0], m.dtype)
        for first in range(begin, end, width):
            last = min(first + width, end)
            moved, turned = self.eliminate(m, each, first, last, _SMALL)
            order, sign = np.take_along_axis(order, moved, 1), sign * turned
            if last == end:
                break
            upper, left = m[:, first:last, last:end], m[:, last:, first:last]
            self.solve(m[:, first:last, first:last], upper, True)
            small = size - last + end - last + last - first < _FEW
            product = self._chain(left, upper, range(last - first)) if small else self.product(left, upper)
            m[:, last:, last:end] -= product
        return order, sign

    def _column_by_column(
        self, m: np.ndarray, each: Callable[[], None], begin: int, end: int
    ) -> tuple[np.ndarray, np.ndarray]:
        count, size = m.shape[:2]
        rows, sign = np.arange(count), np.ones(count, m.dtype)
        order = np.tile(np.arange(size), (count, 1))
        for k in range(begin, end if count else begin):
            each()
            pivot = k + np.abs(m[:, k:, k]).argmax(axis=1)
            sign = np.where(pivot != k, -sign, sign)
            for whole in (m, order):
                upper = whole[rows, pivot].copy()
                whole[rows, pivot] = whole[:, k]
                whole[:, k] = upper
            above, below = m[:, k], m[:, k + 1 :, k]
            factors = np.where(above[:, k, None] != 0, below / above[:, k, None], below)
            m[:, k + 1 :, k] = factors
            rest = m[:, k + 1 :, k + 1 : end]
            rest[...] = self.add(-factors[:, :, None], above[:, None, k + 1 : end], rest)
        return order, sign


RULES: dict[str, EliminationRule] = {
    "tiles_of_4_rounded_twice": EliminationRule(
        {2: Tiles(1, 2, 4), 4: Tiles(4, 2, 4, fours=True), 8: Tiles(2, 2, 4)},
        multiply_add.RULES["rounded_twice"].apply,
        "sums from the first product on; of four rows, single packets have two sums that take turns by eights of "
        "terms, and what is left of binary32 numbers four; products and sums are rounded",
        "a linear algebra library for x86-64 and its use in one runtime, read; verified by running",
    ),
    "tiles_of_8_rounded_once": EliminationRule(
        {
            4: Tiles(4, 3, 8, half=2, fours=True, apart=True, cache=16 << 10),
            8: Tiles(2, 3, 8, cache=16 << 10),
        },
        multiply_add.RULES["rounded_once"].apply,
        "as tiles_of_4_rounded_twice of the rows that are left of eights, with one rounding of a b + c but for single "
        "rows of what no packet of binary32 numbers holds",
        "the same library on aarch64, verified by running",
    ),
}
