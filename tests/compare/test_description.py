"""What is said of a difference that nothing explains is true of every element, and never chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bittrue.compare.description import Sample, describe
from support import faulty_device as device
from support import layer_formats as formats
from support.layer_faults import layer_of
from support.verdicts import random_inputs, segment_of, verdict

Array = np.ndarray
POINT = 5
TIES = np.random.default_rng(1).random((2, 6, 5, 8)) < 0.1


def values(shape: tuple[int, ...] = (2, 6, 5, 8), reach: int = 50) -> Array:
    return np.random.default_rng(0).integers(-reach, reach, shape).astype(np.int8)


def said(change: Callable[[Array], Array], **known: object) -> tuple[str, ...]:
    a = values()
    b = np.asarray(change(a.copy())).astype(a.dtype)
    return describe([Sample(a, b, POINT, **known)])  # type: ignore[arg-type]


def at(place: object, by: int = 3) -> Callable[[Array], Array]:
    def change(a: Array) -> Array:
        a[place] += by  # type: ignore[index]
        return a

    return change


def half(a: Array) -> Array:
    return np.rint((a.astype(int) - POINT) * 0.5) + POINT


RELATIONS: list[tuple[str, Callable[[Array], Array]]] = [
    ("B = A + 4 everywhere", lambda a: a + 4),
    ("B = A + 90 everywhere, up to the clamp", lambda a: np.clip(a.astype(int) + 90, -128, 127)),
    ("B - zp = -(A - zp) everywhere (zp is the zero point 5)", lambda a: 2 * POINT - a),
    ("B - zp = 2 (A - zp) everywhere (zp is the zero point 5)", lambda a: 2 * a.astype(int) - POINT),
    ("B - zp = 1/2 (A - zp) everywhere, to within rounding (zp is the zero point 5)", half),
    (
        "B - zp = 3 (A - zp) everywhere (zp is the zero point 5)",
        lambda a: np.clip(3 * (a.astype(int) - POINT) + POINT, -128, 127),
    ),
    ("B is A moved by +1 index along axis 3", lambda a: np.concatenate([a[..., :1], a[..., :-1]], 3)),
    ("B is A moved by -1 index along axis 1", lambda a: np.roll(a, -1, 1)),
    ("B is A moved by +3 elements in memory", lambda a: np.roll(a, 3)),
    ("B is A in reversed order", lambda a: a.reshape(-1)[::-1].reshape(a.shape)),
    (
        "B holds the values of A in another order, within each index of axis 0",
        lambda a: a.transpose(0, 3, 1, 2).reshape(a.shape),
    ),
    ("B is A XOR 0x05 in every differing element", lambda a: a ^ 5),
    ("one bit is flipped in every differing element: bit 6 (0x40)", lambda a: a ^ 64),
]
PLACES: list[tuple[tuple[str, ...], object]] = [
    (("B = A + 3 wherever they differ", "all at index 3 of axis 3, and every element there"), np.s_[..., 3]),
    (("B = A + 3 wherever they differ", "all at index 5, the last, of axis 1, and every element there"), np.s_[:, -1]),
    (("B = A + 3 wherever they differ", "all at index 1, the last, of axis 0, and every element there"), np.s_[1]),
    (
        ("B = A + 3 wherever they differ", "all at every second index from 1 on of axis 3, and every element there"),
        np.s_[..., 1::2],
    ),
    (
        ("B = A + 3 wherever they differ", "all at indices 1 and 4 of axis 2, and every element there"),
        np.s_[:, :, 1::3],
    ),
    (("B = A + 3 wherever they differ", "at [0, 1, 2, 3]"), (0, 1, 2, 3)),
    (("B = A + 3 wherever they differ", "all at indices from 4 on of axis 3"), (TIES & (np.arange(8) > 3))),
]


@pytest.mark.parametrize(("text", "change"), RELATIONS, ids=[text for text, _ in RELATIONS])
def test_relations(text: str, change: Callable[[Array], Array]) -> None:
    assert said(change)[0] == text


@pytest.mark.parametrize(("texts", "place"), PLACES, ids=[texts[1] for texts, _ in PLACES])
def test_places(texts: tuple[str, ...], place: object) -> None:
    assert said(at(place)) == texts


def test_one_bit_of_one_element() -> None:
    def change(a: Array) -> Array:
        a[1, 2, 3, 4] ^= 8
        return a

    assert said(change) == ("one bit is flipped: bit 3 (0x08)", "at [1, 2, 3, 4]")


def test_bytes_swapped_and_values_cut_short() -> None:
    a = np.random.default_rng(0).integers(-30000, 30000, (4, 9)).astype(np.int16)
    assert describe([Sample(a, a.byteswap(), 0)])[0] == "the bytes of every value of B are in the other order"
    real = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)
    short = (real.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert describe([Sample(real, short)])[0] == "B is A with its lowest 16 bits cut off"


def test_ties_borders_and_signs() -> None:
    a = values()
    distance = np.where(TIES, 0.0, 0.25)
    assert said(at(TIES, 1), distance=distance) == (
        "B = A + 1 wherever they differ",
        "all at exact ties, and at every such tie",
    )
    negative = TIES & (a <= POINT)
    assert said(at(negative, 1), distance=distance)[1] == "all at exact ties of negative values, and at every such tie"
    near = np.where(TIES, 0.01, 0.25)
    assert said(at(TIES, 1), distance=near)[1] == "all within 0.01 of a tie"
    padded = np.ones(a.shape, bool)
    padded[:, 1:-1, 1:-1] = False
    scattered = padded & (np.random.default_rng(3).random(a.shape) < 0.7)
    assert said(at(scattered), padded=padded)[1] == "all where the window reaches into the padding"
    assert said(at(a < POINT - 1))[1].startswith("all where A is at or below the zero point")
    large = np.abs(a.astype(int) - POINT) >= 40
    assert "all where |A - zp| is 40 or more, and wherever it is" in said(at(large))
    assert "all where A is at the upper end of its range" in said(at(a == 30, -2), low=-128, high=30)


def test_noise_has_no_description() -> None:
    """Random changes at random places have nothing in common."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a = rng.integers(-128, 128, (3, 8, 8, 4)).astype(np.int8)
        b = np.where(rng.random(a.shape) < 0.2, rng.integers(-128, 128, a.shape), a).astype(np.int8)
        distance = rng.random(a.shape) / 2
        padded = rng.random(a.shape) < 0.4
        assert describe([Sample(a, b, 3, -128, 127, padded, distance)]) == ()


def test_nothing_differs() -> None:
    assert describe([Sample(values(), values(), POINT)]) == ()
    assert describe([Sample(values((0, 3)), values((0, 3)), POINT)]) == ()


def test_all_samples_count() -> None:
    """What holds for one of two runs alone is not said."""
    one, two = values((6, 8)), values((6, 8), 40)
    changed = [Sample(one, at(np.s_[:, 2])(one.copy()), 0), Sample(two, at(np.s_[:, 2])(two.copy()), 0)]
    assert describe(changed)[1] == "all at index 2 of axis 1, and every element there"
    changed[1] = Sample(two, at(np.s_[:, 3])(two.copy()), 0)
    assert describe(changed)[1] == "all at indices 2 and 3 of axis 1"


# Both forms become the same operators before anything is searched.
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("form", ["qoperator", "qdq"])
def test_a_verdict_that_explains_nothing_describes(form: str) -> None:
    """A device of its own that adds 2 where windows reach into the padding and the value is no multiple of 3."""
    layer, source = layer_of("conv", real=True)
    part, ports = segment_of(getattr(formats, form)(layer, source), "onnxruntime")
    given = random_inputs(ports, 1)
    right = formats.first(device.run(layer, np.moveaxis(given[0]["x"], 1, -1)))
    border = np.zeros(right.shape, bool)
    # Three taps, stride 2, 9 rows and 8 columns: one row above and below, one column on the right are padding.
    border[:, :, 0], border[:, :, -1], border[..., -1] = True, True, True
    theirs = np.where(border & (right % 3 != 0), right ^ 3, right).astype(right.dtype)
    found = verdict(part, given, [theirs])
    assert not found.exact
    assert found.described == (
        "B is A XOR 0x03 in every differing element",
        "all where the window reaches into the padding",
    )
    assert all(text in found.text for text in found.described)
