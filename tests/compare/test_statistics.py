"""Statistics of two arrays against plain Python integers and fractions."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bittrue.compare.statistics import Collector, pieces, statistics

TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_)
SHAPES = ((), (0, 3), (7,), (5, 6, 3), (1, 5, 6, 3), (2, 67, 130, 17))


def values(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape).astype(np.bool_))
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_integers_are_exact(dtype: type, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    collector = Collector(shape)
    flat: list[int] = []
    changed = np.zeros(shape, np.int64)
    for share in (0.02, 0.9):
        a, other = values(rng, dtype, shape), values(rng, dtype, shape)
        near = rng.random(shape) < 0.5
        if dtype != np.bool_:
            with np.errstate(over="ignore"):
                other = np.where(near, a + rng.integers(0, 3, shape).astype(dtype), other).astype(dtype)
        b = np.asarray(np.where(rng.random(shape) < share, other, a))
        assert collector.add(a, b) == int((a != b).sum())
        changed += a != b
        flat += [int(y) - int(x) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)]
    found = collector.result()
    differing = [d for d in flat if d]
    assert (found.elements, found.differing) == (len(flat), len(differing))
    if not differing:
        return
    assert found.largest == float(max(map(abs, differing)))
    assert found.bias == float(Fraction(sum(flat), len(flat)))
    nearest = sorted(Counter(differing).items(), key=lambda item: (abs(item[0]), item[0]))
    expected = {str(d): count for d, count in sorted(nearest[:32])}
    if len(nearest) > 32:
        expected["other"] = sum(count for _, count in nearest[32:])
    assert found.histogram == expected
    assert found.worst is not None
    assert len(found.worst.element) == len(shape)
    assert abs(int(found.worst.b) - int(found.worst.a)) == max(map(abs, differing))
    if shape:
        per_channel = changed.reshape(-1, shape[-1]).sum(0) / (2 * changed.size // shape[-1])
        assert found.per_channel == tuple(per_channel)
    if len(shape) == 4:
        plane = np.asarray(found.plane)
        assert plane.shape == tuple(min(size, 64) for size in shape[1:3])
        if max(shape[1:3]) <= 64:
            assert np.array_equal(plane, changed.sum((0, 3)) / (2 * shape[0] * shape[3]))
        rows = np.arange(shape[1]) * plane.shape[0] // shape[1]
        columns = np.arange(shape[2]) * plane.shape[1] // shape[2]
        cells = np.outer(np.bincount(rows), np.bincount(columns)) * 2 * shape[0] * shape[3]
        assert np.rint(plane * cells).sum() == changed.sum()


def test_channels_first() -> None:
    a = np.zeros((1, 3, 4, 5), np.int8)
    b = a.copy()
    b[0, 1, 2, 3] = 7
    found = statistics(a, b, channel_axis=1)
    assert found.per_channel == (0, 1 / 20, 0)
    assert np.argwhere(np.asarray(found.plane)).tolist() == [[2, 3]]
    assert found.worst is not None
    assert found.worst.element == (0, 1, 2, 3)


def test_real_numbers_in_units_in_the_last_place() -> None:
    one, up = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
    four_up = np.uint32(one.view(np.uint32) + 5).view(np.float32)
    a = np.float32([0.0, 1, 1, 1, -1, 5])
    b = np.float32([-0.0, up, four_up, 1, -up, 5])
    found = statistics(a, b)
    assert (found.differing, found.elements) == (4, 6)
    # Zeros of different sign are 0 apart, and different all the same; 5 units count as 4.
    assert found.histogram == {"0": 1, "1": 1, "4": 1, "-1": 1}
    assert found.largest == float(four_up) - 1
    assert found.bias == pytest.approx((float(four_up) - 1) / 6, rel=1e-15)


def test_what_is_not_a_number() -> None:
    quiet, other = np.uint32([0x7FC00000, 0x7FC00001]).view(np.float32)
    assert statistics(np.float32([quiet]), np.float32([quiet])).equal
    found = statistics(np.float32([quiet, 1, np.inf, 2]), np.float32([other, quiet, 1, 2]))
    assert (found.differing, found.largest, found.bias) == (3, None, None)
    assert found.histogram == {"nan": 2, "infinite": 1}


@pytest.mark.parametrize("name", ["float16", "float64"])
def test_other_real_types(name: str) -> None:
    a = np.ones(3, name)
    b = a.copy()
    b[1] = np.nextafter(b[1], b.dtype.type(2))
    found = statistics(a, b)
    assert (found.differing, found.histogram) == (1, {"1": 1})


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (7,), (3, 5), (2, 3, 4), (5, 1, 1)])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pieces_cover_every_element_once_and_in_order(shape: tuple[int, ...], limit: int) -> None:
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    seen = []
    for start, place in pieces(shape, limit):
        part = whole[place].reshape(-1)
        assert part.size <= limit
        assert part[0] == start
        seen += part.tolist()
    assert seen == list(range(whole.size))


def test_files_are_not_loaded(tmp_path: Path) -> None:
    """200 MB, transposed, with a conversion: temporaries stay small."""
    shape = (1, 32, 2500, 2500)
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        file.truncate(int(np.prod(shape)))
    a = np.memmap(path, np.int8, "r", 0, (1, 2500, 2500, 32))
    b = np.memmap(path, np.uint8, "r+", 0, shape).transpose(0, 2, 3, 1)
    tracemalloc.start()
    collector = Collector(a.shape)
    collector.add(a, b, lambda v: (v ^ np.uint8(128)).view(np.int8), lambda v: (v.view(np.uint8) ^ 128).view(np.int8))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert collector.result().equal
    assert peak < 32 << 20


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_narrow_real_types(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(32, 36, dtype=np.uint8 if dtype.itemsize == 1 else np.uint16)
    found = statistics(codes.view(dtype), (codes + np.array([0, 1, 0, 4], codes.dtype)).view(dtype))
    assert (found.differing, found.histogram) == (2, {"1": 1, "4": 1})


def test_complex_numbers() -> None:
    a, b = np.complex64([1, 2j, 3, 4]), np.complex64([1, 2j + 3, 3 + 4j, 4])
    found = statistics(a, b)
    assert (found.differing, found.largest, found.bias, found.histogram) == (2, 4.0, None, {})
    assert found.worst is not None
    assert (found.worst.element, found.worst.a, found.worst.b) == ((2,), 3.0, 5.0)
    assert statistics(a, np.complex64([np.nan, 2j, 3, 4])).largest is None
