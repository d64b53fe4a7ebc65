"""Slot block_product: sums in lanes against single operations on fractions, one element at a time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic.correct_rounding import fraction
from bittrue.rules import block_product
from bittrue.rules.block_product import Blocks, Points

F32 = np.float32


def rounded(value: Fraction) -> Fraction:
    """The nearest binary32 number, ties to even."""
    guess = F32(float(value))
    near = [guess, np.nextafter(guess, F32(np.inf)), np.nextafter(guess, F32(-np.inf))]
    return Fraction(float(min(near, key=lambda c: (abs(Fraction(float(c)) - value), int(c.view(np.uint32)) & 1))))


def total(values: list[Fraction]) -> Fraction:
    result = values[0]
    for value in values[1:]:
        result = rounded(result + value)
    return result


def halves(lanes: list[Fraction]) -> Fraction:
    while len(lanes) > 1:
        middle = len(lanes) // 2
        lanes = [rounded(a + b) for a, b in zip(lanes[:middle], lanes[middle:], strict=True)]
    return lanes[0]


class Element:
    """One row and one column."""

    def __init__(self, rows: Blocks, columns: Blocks, m: int, n: int) -> None:
        self.products = rows.values[m] * columns.values[n]
        self.blocks, self.length = self.products.shape
        self.scales = [
            rounded(fraction(a) * fraction(b)) for a, b in zip(rows.scales[m], columns.scales[n], strict=True)
        ]

    def four(self, block: int, place: int) -> int:
        return int(self.products[block, 4 * place : 4 * place + 4].sum())

    def sixteen_lanes(self, *, by_fours: bool) -> Fraction:
        lanes, k, together = [Fraction(0)] * 16, 0, max(1, 128 // self.length)
        while k + together <= self.blocks:
            if self.length >= 128:
                for piece in range(0, self.length // 4, 32):
                    for j in range(16):
                        dot = self.four(k, piece + j) + self.four(k, piece + 16 + j)
                        lanes[j] = rounded(dot * self.scales[k] + lanes[j])
            else:
                # Two vectors of fours of 4 * 64 bytes; within each quarter, neighbours of both lie side by side.
                where = [(k + f * 4 // self.length, f % (self.length // 4)) for f in range(32)]
                for quarter in range(4):
                    one, two = where[4 * quarter : 4 * quarter + 4], where[16 + 4 * quarter :]
                    pairs = [(one[0], one[2]), (one[1], one[3]), (two[0], two[2]), (two[1], two[3])]
                    order = [0, 2, 1, 3] if self.length == 64 else [0, 1, 2, 3]
                    for j, pair in enumerate(pairs[i] for i in order):
                        dot = self.four(*pair[0]) + self.four(*pair[1])
                        lane = 4 * quarter + j
                        lanes[lane] = rounded(dot * self.scales[pair[0][0]] + lanes[lane])
            k += together
        if self.length < 64:
            lanes = [rounded(a + b) for a, b in zip(lanes[:8], lanes[8:], strict=True)]
        for block in range(k, self.blocks):
            each = self.length // len(lanes)
            for j in range(len(lanes)):
                dot = int(self.products[block, each * j : each * (j + 1)].sum())
                lanes[j] = rounded(dot * self.scales[block] + lanes[j])
        return halves([total(lanes[j : j + 4]) for j in range(0, len(lanes), 4)]) if by_fours else halves(lanes)

    def eight_lanes(self, bits: int, *, pointed: bool, by_fours: bool) -> Fraction:
        """Two neighbouring fours at once: of four blocks of 16, two of 32, or in pieces of 64."""
        lanes = [Fraction(0)] * 8

        def add(lane: int, block: int, terms: list[int]) -> None:
            dot = int(sum(self.products[block, t] for t in terms))
            lanes[lane] = rounded(dot * self.scales[block] + lanes[lane])

        # Which terms each lane of a group of 64 adds: halves of 128 bits, of two registers each.
        in_group = [[*range(16 * half + 8 * i, 16 * half + 8 * i + 8)] for half in (0, 1) for i in (0, 1)]
        order = [in_group[0], in_group[1], [t + 32 for t in in_group[0]], [t + 32 for t in in_group[1]]]
        order += [in_group[2], in_group[3], [t + 32 for t in in_group[2]], [t + 32 for t in in_group[3]]]
        if self.length >= 64 and bits == 8:
            order = [[*range(4 * j, 4 * j + 4), *range(4 * j + 32, 4 * j + 36)] for j in range(8)]
        done = 0
        if self.length >= 64 or not pointed:
            done = self.blocks * self.length // 64 * 64
            for begin in range(0, done, 64):
                for lane, terms in enumerate(order):
                    block, first = divmod(begin + terms[0], self.length)
                    add(lane, block, [first - terms[0] + t for t in terms])
        for block in range(done // self.length, self.blocks):
            width = self.length // 8
            for lane in range(8):
                add(lane, block, [*range(width * lane, width * lane + width)])
        return rounded(total(lanes[:4]) + total(lanes[4:])) if by_fours else halves(lanes)

    def four_blocks(self, count: int = 0) -> Fraction:
        lanes = [Fraction(0)] * (count or min(self.length, 64) // 4)
        for k in range(0, self.blocks, 4):
            for j in range(len(lanes)):
                sums = []
                for blocks in ((k, k + 2), (k + 1, k + 3)):
                    part = Fraction(0)
                    for block in blocks:
                        if block < self.blocks:
                            dot = sum(self.four(block, f) for f in range(j, self.length // 4, len(lanes)))
                            part = rounded(dot * self.scales[block] + part)
                    sums.append(part)
                lanes[j] = rounded(lanes[j] + rounded(sums[0] + sums[1]))
        return halves(lanes)

    def chain_of_blocks(self) -> Fraction:
        lanes = [Fraction(0)] * 8
        for block in range(self.blocks):
            for j in range(8):
                dot = sum(self.four(block, f) for f in range(j, self.length // 4, 8))
                lanes[j] = rounded(dot * self.scales[block] + lanes[j])
        return halves(lanes)


def factors(length: int, blocks: int, bits: int, m: int = 3, n: int = 5) -> tuple[Blocks, Blocks]:
    rng = np.random.default_rng([length, blocks, bits])
    rows = rng.integers(-127, 128, (m, blocks, length))
    columns = rng.integers(0, 1 << bits, (n, blocks, length))
    scales = [np.exp2(rng.uniform(-6, 6, (count, blocks))).astype(F32) for count in (m, n)]
    return Blocks(rows, scales[0]), Blocks(columns, scales[1])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("length", "blocks"), [(16, 1), (16, 19), (32, 6), (64, 1), (64, 5), (128, 3), (256, 2)])
def test_lanes_by_single_operations(length: int, blocks: int, bits: int) -> None:
    """binary32_16_lanes: pairs of rows, the odd one, and a column beyond the fours."""
    rows, columns = factors(length, blocks, bits)
    ours = block_product.binary32_16_lanes(rows, columns, bits)
    for m in range(3):
        for n in range(5):
            in_pair = m < 2 and length >= (128 if bits == 8 else 64)
            wanted = Element(rows, columns, m, n).sixteen_lanes(by_fours=n < 4 and not in_pair)
            assert fraction(ours[m, n]) == wanted, (m, n)


@pytest.mark.parametrize(("length", "blocks"), [(16, 7), (32, 1), (32, 5), (64, 3), (128, 2)])
@pytest.mark.parametrize(("bits", "pointed"), [(4, False), (4, True), (8, False)])
def test_eight_lanes_by_single_operations(length: int, blocks: int, bits: int, pointed: bool) -> None:
    """binary32_8_lanes: a group of four columns and one beyond."""
    rows, columns = factors(length, blocks, bits, 2)
    columns, pointed = replace(columns, pointed=pointed), pointed and length == 32
    ours = block_product.binary32_8_lanes(rows, columns, bits)
    for m in range(2):
        for n in range(5):
            wanted = Element(rows, columns, m, n).eight_lanes(bits, pointed=pointed, by_fours=n < 4)
            assert fraction(ours[m, n]) == wanted, (m, n)


def test_a_single_row_subtracts_zero_points() -> None:
    """binary32_8_lanes alone, from 4 bits in blocks of 32 and more."""
    for length, rows_count, subtracted in ((32, 1, True), (64, 1, True), (16, 1, False), (32, 2, False)):
        rows, columns = factors(length, 3, 4, rows_count)
        points = np.full((5, 3), 8)
        found = {
            name: block_product.RULES[name].apply(rows, columns, 4, Points(points, False), None).tobytes()
            for name in ("binary32_8_lanes", "binary32_16_lanes")
        }
        moved = block_product.binary32_8_lanes(rows, replace(columns, values=columns.values - 8), 4)
        assert (found["binary32_8_lanes"] == moved.tobytes()) == subtracted, (length, rows_count)
        assert found["binary32_16_lanes"] != moved.tobytes()


@pytest.mark.parametrize(("length", "blocks"), [(32, 1), (32, 7), (64, 6), (128, 4), (128, 3)])
def test_four_blocks_by_single_operations(length: int, blocks: int) -> None:
    """binary32_four_blocks."""
    rows, columns = factors(length, blocks, 2, 2, 3)
    ours = block_product.binary32_four_blocks(rows, columns, 2)
    wanted = [[Element(rows, columns, m, n).four_blocks() for n in range(3)] for m in range(2)]
    assert [[fraction(v) for v in row] for row in ours] == wanted


@pytest.mark.parametrize(("length", "blocks"), [(32, 7), (64, 6), (64, 3), (128, 5)])
def test_four_blocks_of_8_by_single_operations(length: int, blocks: int) -> None:
    """binary32_four_blocks_of_8: three rows and five columns have a pair, a single row, four columns and a last one."""
    rows, columns = factors(length, blocks, 2)
    ours = block_product.binary32_four_blocks_of_8(rows, columns, 2)
    for m in range(3):
        for n in range(5):
            one = Element(rows, columns, m, n)
            chained = length == 64 and m < 2 and n < 4
            assert fraction(ours[m, n]) == (one.chain_of_blocks() if chained else one.four_blocks(8)), (m, n)


class Chain(Element):
    """One row and one column as kernels for aarch64 meet them; `points` of the column."""

    def __init__(self, rows: Blocks, columns: Blocks, m: int, n: int, points: np.ndarray) -> None:
        super().__init__(rows, columns, m, n)
        self.row, self.column, self.points = rows.values[m], columns.values[n].astype(np.int64), points[n]
        self.row_scales, self.column_scales = ([fraction(v) for v in x] for x in (rows.scales[m], columns.scales[n]))

    def lanes(self, pairs: bool) -> Fraction:
        """Pieces of 32 terms in 4 lanes; every second one has sums of its own unless the element is in a pair."""
        by, sides = min(self.length, 32), 1 if pairs else 2
        found = [[Fraction(0)] * 4 for _ in range(2)]
        products = (self.row * (self.column - self.points[:, None])).reshape(-1, by // 16, 4, 4).sum((1, 3))
        for piece, dots in enumerate(products):
            scale = self.scales[piece * by // self.length]
            side = found[piece % sides]
            for lane in range(4):
                side[lane] = rounded(int(dots[lane]) * scale + side[lane])
        sums = [rounded(rounded(v[0] + v[1]) + rounded(v[2] + v[3])) for v in found]
        return rounded(sums[0] + sums[1])

    def unsigned(self, bias: Fraction, in_lanes: bool, depth: int) -> Fraction:
        inside = np.arange(self.blocks * self.length).reshape(self.blocks, -1) < depth
        row = np.where(inside, self.row + 128, 0)
        lanes = [Fraction(0)] * (4 if in_lanes else 1)
        for block in range(self.blocks):
            dots = (row[block] * self.column[block]).reshape(-1, len(lanes), 4 if in_lanes else 16).sum((0, 2))
            lanes = [rounded(int(d) * self.scales[block] + lane) for d, lane in zip(dots, lanes, strict=True)]
        result = rounded(rounded(lanes[0] + lanes[1]) + rounded(lanes[2] + lanes[3])) if in_lanes else lanes[0]
        result, one, two = rounded(result + bias), Fraction(0), Fraction(0)
        for k, (own, other) in enumerate(zip(self.row_scales, self.column_scales, strict=True)):
            point = int(self.points[k])
            one = rounded(rounded(own * int(row[k].sum())) * -rounded(other * point) + one)
            turned = rounded(other * int(point * inside[k].sum() - self.column[k][inside[k]].sum()))
            two = rounded(own * turned + two)
        return rounded(two * 128 + rounded(result + one))

    def from_the_bias(self, bias: Fraction) -> Fraction:
        total = bias
        for k, (own, other) in enumerate(zip(self.row_scales, self.column_scales, strict=True)):
            total = rounded(self.scales[k] * int(self.products[k].sum()) + total)
            total = rounded(rounded(own * int(self.row[k].sum())) * -rounded(other * int(self.points[k])) + total)
        return total

    def points_first(self, bias: Fraction) -> Fraction:
        total = Fraction(0)
        for k, (own, other) in enumerate(zip(self.row_scales, self.column_scales, strict=True)):
            moved = rounded(other * int(8 - self.points[k]))
            total = rounded(moved * rounded(own * int(self.row[k].sum())) + total)
            total = rounded(self.scales[k] * int((self.row[k] * (self.column[k] - 8)).sum()) + total)
        return rounded(total + bias)

    def row_range(self, bias: Fraction, point: int) -> Fraction:
        total = sums = Fraction(0)
        for k, scale in enumerate(self.column_scales):
            kept = Fraction(float((np.array([float(scale)], F32).view(np.uint32) & 0xFFFF0000).view(F32)[0]))
            total = rounded(int((self.row[k] * (self.column[k] - 8)).sum()) * kept + total)
            for first in (at for at in range(self.length) if at % 32 < 16 and at % 4 == 0):
                terms = [self.column[k][first + lane + far] - 8 for lane in range(4) for far in (0, 16)]
                sums = rounded(sums + rounded(int(sum(terms)) * kept))
        return rounded(rounded(rounded(sums * -point + total) * self.row_scales[0]) + bias)


@pytest.mark.parametrize(
    ("name", "length", "blocks", "bits"),
    [
        *(("binary32_4_lanes", length, blocks, 4) for length, blocks in ((16, 1), (16, 6), (32, 5), (64, 3), (256, 1))),
        *(("binary32_unsigned_rows", length, blocks, 8) for length, blocks in ((16, 3), (64, 2), (256, 2))),
        *(("binary32_from_the_bias", length, blocks, 2) for length, blocks in ((32, 7), (128, 2))),
        *(("binary32_points_first", length, blocks, 4) for length, blocks in ((32, 5), (128, 2))),
        *(("binary32_row_ranges", length, blocks, 4) for length, blocks in ((32, 5), (64, 3))),
    ],
)
def test_chains_by_single_operations(name: str, length: int, blocks: int, bits: int) -> None:
    """Five rows and columns have fours, pairs and what is left over; the last block of unsigned rows is not full."""
    rows, columns = factors(length, blocks, bits, 5)
    rng = np.random.default_rng(length)
    bias, depth = rng.standard_normal(5).astype(F32), length * blocks - 3
    points = rng.integers(0, 1 << bits, (5, blocks))
    if name == "binary32_row_ranges":
        points[:] = 8
        rows = replace(rows, scales=np.repeat(rows.scales[:, :1], blocks, 1), zero_points=rng.integers(-128, 128, 5))
    if name == "binary32_unsigned_rows":
        values = rows.values.reshape(5, -1) * (np.arange(length * blocks) < depth)
        rows = replace(rows, values=values.reshape(rows.values.shape), depth=depth)
    ours = block_product.RULES[name].apply(rows, columns, bits, Points(points, True), bias)
    for m in range(5):
        for n in range(5):
            one, added = Chain(rows, columns, m, n, points), fraction(bias[n])
            if name == "binary32_4_lanes":
                wanted = rounded(one.lanes(m < 4 and n < 4) + added)
            elif name == "binary32_unsigned_rows":
                wanted = one.unsigned(added, n >= 4, depth)
            elif name == "binary32_row_ranges":
                assert rows.zero_points is not None
                wanted = one.row_range(added, int(rows.zero_points[m]))
            else:
                wanted = (one.points_first if name == "binary32_points_first" else one.from_the_bias)(added)
            assert fraction(ours[m, n]) == wanted, (m, n)


def test_block_products_are_told_apart() -> None:
    """Two of them differ in blocks of more than 32 alone."""
    results = set()
    for rule in block_product.RULES.values():
        found = b""
        for length in (32, 64):
            rows, columns = factors(length, 6, 2)
            points = Points(np.full((5, 6), 2), False)
            found += rule.apply(replace(rows, zero_points=np.arange(3)), columns, 2, points, None).tobytes()
        results.add(found)
    assert len(results) == len(block_product.RULES)
