"""Which tensors belong together: names, layouts, values; and when none do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bittrue.compare.alignment import as_a, layouts, meaning
from bittrue.compare.matching import match, read_pairs, stem
from bittrue.errors import InputError
from support.recordings import Tensor, recording

RNG = np.random.default_rng(11)


def quantized(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def near(value: np.ndarray) -> np.ndarray:
    """Another arithmetic: one in twenty elements is off by one."""
    moved = value.astype(np.int64) + (RNG.random(value.shape) < 0.05)
    return np.clip(moved, -128, 127).astype(value.dtype)


def nchw(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((2, 3), (2, 3), ["same"]),
        ((1, 4, 5, 6), (1, 6, 4, 5), ["NCHW to NHWC"]),
        ((1, 6, 4, 5), (1, 4, 5, 6), ["NHWC to NCHW"]),
        ((1, 1, 1, 6), (1, 6, 1, 1), ["NCHW to NHWC"]),
        ((1, 6), (1, 6, 1, 1), ["reshaped"]),
        ((2, 3, 4), (24,), ["reshaped"]),
        ((2, 3), (3, 2), ["axes 1 0"]),
        ((1, 3, 3, 5), (45,), ["reshaped", "reshaped, NCHW to NHWC", "reshaped, NHWC to NCHW"]),
        ((2, 3), (7,), []),
        ((), (), ["same"]),
        ((1,), (), ["reshaped"]),
    ],
)
def test_layouts(a: tuple[int, ...], b: tuple[int, ...], expected: list[str]) -> None:
    assert [str(layout) for layout in layouts(a, b)] == expected


@pytest.mark.parametrize("b", [(1, 6, 4, 5), (1, 4, 5, 6), (120,), (5, 1, 4, 6), (6, 4, 5)])
def test_a_layout_can_be_undone(b: tuple[int, ...]) -> None:
    value = np.arange(120).reshape(b)
    for layout in layouts((1, 4, 5, 6), b):
        there = layout(value)
        assert there.shape == (1, 4, 5, 6)
        assert np.array_equal(layout.back(there, b), value)


def test_layout_of_a_cube_is_found_by_its_values() -> None:
    x = quantized(1, 6, 6, 6)
    a = recording({"x": x})
    for value, expected in ((near(x), "same"), (near(nchw(x)), "NCHW to NHWC")):
        (found,) = match(a, recording({"x": value}), same_names=True)
        assert str(found.layout) == expected
        assert np.mean(found.layout(found.b.load()) != x) < 0.1


def test_names_decide_within_one_model_whatever_the_values() -> None:
    x, y = quantized(1, 4, 4, 2), quantized(1, 4, 4, 2)
    (found, other) = match(recording({"x": x, "y": y}), recording({"x": y, "y": x}), same_names=True)
    assert [(m.a.name, m.b.name, m.how) for m in (found, other)] == [("x", "x", "name"), ("y", "y", "name")]


def test_another_name_is_found_by_values_and_never_by_shape_alone() -> None:
    x, y, z = (quantized(1, 4, 5, 3) for _ in range(3))
    a = recording({"x": x, "y": y, "lonely": z})
    b = recording({"t2": near(nchw(y)), "t1": near(nchw(x)), "other": quantized(1, 3, 4, 5)})
    found = match(a, b, same_names=False)
    assert [(m.a.name, m.b.name, m.how, str(m.layout)) for m in found] == [
        ("x", "t1", "values", "NCHW to NHWC"),
        ("y", "t2", "values", "NCHW to NHWC"),
    ]


def test_sizes_that_differ_belong_to_two_tensors() -> None:
    """A runtime keeps -1 in a shape where the other has the number: neither of them is wrong."""
    a = recording({"Shape_2": np.array([2, 40, 4, 6]), "axes": np.array([3, 1, 2])})
    b = recording({"Concat": np.array([2, 40, -1, 6]), "order": np.array([3, 1, 2])})
    assert [(m.a.name, m.b.name) for m in match(a, b, same_names=False)] == [("axes", "order")]


def test_two_that_fit_equally_well_are_left_alone() -> None:
    x = quantized(1, 40, 5)
    a = recording({"x": Tensor(x, 0.1)})
    b = recording({"one": Tensor(near(x), 0.1), "two": Tensor(near(x), 0.1)})
    assert match(a, b, same_names=False) == []


def test_copies_of_one_tensor_are_paired_in_order() -> None:
    x = quantized(1, 6, 1, 1)
    a = recording({"pooled": x.reshape(1, 1, 1, 6), "flat": x.reshape(1, 6)})
    b = recording({"p": x, "f": x.reshape(1, 6)})
    found = match(a, b, same_names=False)
    assert [(m.a.name, m.b.name) for m in found] == [("pooled", "p"), ("flat", "f")]


def test_stored_integers_go_before_the_real_numbers_that_they_stand_for() -> None:
    x = quantized(1, 8, 8, 4)
    real = (nchw(x).astype(np.float32) - 3) * np.float32(0.25)
    a = recording({"x": Tensor(x, 0.25, 3)})
    b = recording({"unrounded": real + np.float32(0.01), "q": Tensor(nchw(x), 0.25, 3), "back": real})
    (found,) = match(a, b, same_names=False)
    assert found.b.name == "q"


def test_names_with_converters_suffixes() -> None:
    x = quantized(1, 8, 8, 4)
    a = recording({"net/conv1": Tensor(x, 0.5)})
    b = recording({"net/conv1_prequant__73:0": Tensor(near(nchw(x)), 0.5)})
    (found,) = match(a, b, same_names=False)
    assert (found.how, str(found.layout)) == ("name", "NCHW to NHWC")
    assert stem("a/b_quantized__12:0") == "a/b"
    assert stem(":0") == ":0"


def test_a_fault_does_not_hide_behind_its_values() -> None:
    """One is left on each side, of one size, type and scale, between matched neighbours: its values do not matter."""
    x, y, z = quantized(1, 30), quantized(1, 40), quantized(1, 50)
    a = recording({"x": Tensor(x, 0.5), "broken": Tensor(y, 0.25), "z": Tensor(z, 0.5)})
    good = {"t1": Tensor(near(x), 0.5), "t2": Tensor(quantized(1, 40), 0.25), "t3": Tensor(near(z), 0.5)}
    found = {m.a.name: (m.b.name, m.how) for m in match(a, recording(good), same_names=False)}
    assert found["broken"] == ("t2", "order and shape")
    late = {"t1": good["t1"], "t3": good["t3"], "t2": good["t2"]}
    assert "broken" not in {m.a.name for m in match(a, recording(late), same_names=False)}
    scaled = {**good, "t2": Tensor(quantized(1, 40), 0.5)}
    assert "broken" not in {m.a.name for m in match(a, recording(scaled), same_names=False)}


def test_constants_prove_nothing() -> None:
    a = recording({"x": np.full((1, 9), 7, np.int8)})
    assert match(a, recording({"t": np.full((1, 9), 7, np.int8), "u": quantized(1, 9)}), same_names=False) == []


def test_what_the_user_says_goes_first() -> None:
    x, y = quantized(1, 9), quantized(1, 9)
    a, b = recording({"x": x, "y": y}), recording({"x": x, "y": y})
    found = match(a, b, True, [("x", "y")])
    assert [(m.a.name, m.b.name, m.how) for m in found] == [("x", "y", "given")]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([("nix", "x")], "A shows no tensor 'nix'"),
        ([("x", "xx")], "B shows no tensor 'xx'"),
        ([("x", "x"), ("x", "y")], "matched twice"),
        ([("x", "wide")], "do not fit"),
    ],
)
def test_what_the_user_cannot_say(given: list[tuple[str, str]], place: str) -> None:
    a = recording({"x": quantized(1, 9), "y": quantized(1, 9)})
    b = recording({"x": quantized(1, 9), "y": quantized(1, 9), "wide": quantized(1, 10)})
    with pytest.raises(InputError, match=place):
        match(a, b, True, given)


def test_match_files(tmp_path: Path) -> None:
    assert read_pairs("# mine\na b\n\nc d\te f\n", "m.txt") == [("a", "b"), ("c d", "e f")]
    with pytest.raises(InputError, match=r"m\.txt line 2: expected two names, found 3"):
        read_pairs("a b\nc d e", "m.txt")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_no_numbers_match_nothing(dtype: type) -> None:
    a = recording({"x": np.full((1, 9), np.nan, dtype), "y": np.full((1, 9), np.inf, dtype)})
    b = recording({"t": np.full((1, 9), np.nan, dtype), "u": np.full((1, 9), np.inf, dtype)})
    assert match(a, b, same_names=False) == []


def test_meaning_of_types() -> None:
    x = quantized(1, 50)
    unsigned = (x.view(np.uint8) ^ np.uint8(128)).view(np.uint8)
    a = recording({"x": Tensor(x, 0.5, -3)})["x"]
    moved = recording({"x": Tensor(unsigned, 0.5, 125)})["x"]
    assert meaning(a, moved).text == "u8 - 128"
    brought = as_a(a, moved, unsigned)
    assert brought is not None
    assert np.array_equal(brought, x)
    real = ((x.astype(np.float32) + 3) * np.float32(0.5)).astype(np.float32)
    floats = recording({"x": real})["x"]
    convert = meaning(a, floats).convert_a
    assert convert is not None
    assert convert(x).tobytes() == real.tobytes()
    stored = as_a(a, floats, real)
    assert stored is not None
    assert np.array_equal(stored, x)
    # Between the steps of A's scale there is no stored value.
    assert as_a(a, floats, real + np.float32(0.1)) is None
    assert as_a(floats, a, x) is not None
    unknown = recording({"x": x})["x"]
    assert "no scale" in meaning(unknown, floats).problem
    wide = recording({"x": x.astype(np.int32)})["x"]
    assert "as numbers" in meaning(wide, unknown).text
    assert meaning(recording({"x": x.astype(np.uint64)})["x"], wide).problem
    assert as_a(unknown, wide, x.astype(np.int32) + 1000) is None
    other_scale = recording({"x": Tensor(x, 0.25, -3)})["x"]
    assert "the parameters differ" in meaning(a, other_scale).text
    for value in (x[0, 0], real[0, 0]):
        scalar = recording({"x": np.asarray(value)})["x"]
        brought = as_a(recording({"x": Tensor(np.asarray(x[0, 0]), 0.5, -3)})["x"], scalar, np.asarray(value))
        assert brought is not None
        assert (brought.shape, brought) == ((), x[0, 0])


def test_thousands_of_tensors_of_one_size_come_to_an_end() -> None:
    values = [quantized(3, 4) for _ in range(250)]
    a = recording({f"a{i}": value for i, value in enumerate(values)})
    b = recording({f"b{i}": value.reshape(12) for i, value in enumerate(values)})
    found = match(a, b, same_names=False)
    assert len(found) > 230
    assert all(m.a.name[1:] == m.b.name[1:] for m in found)
