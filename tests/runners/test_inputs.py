"""Sets of inputs from files, folders and seeds."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.api import Port
from bittrue.errors import InputError
from bittrue.graph import Quantization
from bittrue.runners.inputs import input_sets, one_input_set

CORPUS = Path(__file__).parents[1] / "data" / "onnx_corpus"

A = Port("a", np.dtype(np.int8), (1, 4), Quantization(np.float32([0.5]), np.int64([3])))
B = Port("b", np.dtype(np.float32), (2,), None)
IMAGE = Port("p", np.dtype(np.uint8), (1, 4, 6, 3), None)
FIRST = Port("p", np.dtype(np.float32), (1, 3, 4, 6), None)


def save(folder: Path, name: str, value: object) -> str:
    np.save(folder / name, value)
    return str(folder / name)


def test_each_seed_is_a_set() -> None:
    sets = input_sets([A, B], seeds=range(3))
    assert [one.description for one in sets] == ["random, seed 0", "random, seed 1", "random, seed 2"]
    assert len({one.values["a"].tobytes() for one in sets}) == 3
    assert [*sets[0].values] == ["a", "b"]
    again = input_sets([A, B], seeds=[2])[0]
    assert all(np.array_equal(again.values[name], sets[2].values[name]) for name in ("a", "b"))
    assert again.remarks == ["input 'a': random values, seed 2", "input 'b': random values, seed 2"]


def test_levels() -> None:
    (one,) = input_sets([B], levels={"b"})
    assert np.array_equal(one.values["b"], np.rint(one.values["b"]))
    assert "levels 0..255" in one.remarks[0]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_tokens_masks_and_positions(dtype: str) -> None:
    """Integers that stand for themselves are such as models take; those with a scale are quantized values."""
    tokens = Port("ids", np.dtype(dtype), (4, 16), None)
    (one,) = input_sets([tokens])
    assert one.values["ids"].dtype == tokens.dtype
    assert set(one.values["ids"].flat) == {0, 1}
    assert one.remarks == ["input 'ids': random zeros and ones, seed 0"]
    sums = Port("sums", np.dtype(np.int32), (64,), Quantization(np.float32([0.5]), np.int64([0])))
    (two,) = input_sets([sums])
    assert len(set(two.values["sums"])) == 64


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*bert*.onnx")), ids=lambda path: path.stem)
def test_transformers_take_random_inputs(path: Path) -> None:
    session = bittrue.load(path).prepare()
    session.run(input_sets(session.inputs)[0].values)


def test_each_file_of_a_model_with_one_input_is_a_set(tmp_path: Path) -> None:
    files = [save(tmp_path, f"{i}.npy", np.full((1, 4), i, np.int8)) for i in range(3)]
    sets = input_sets([A], files)
    assert [(one.description, int(one.values["a"][0, 0])) for one in sets] == [("0.npy", 0), ("1.npy", 1), ("2.npy", 2)]
    (tmp_path / "readme.txt").write_text("no array")
    assert [one.description for one in input_sets([A], [str(tmp_path)])] == ["0.npy", "1.npy", "2.npy"]
    with pytest.raises(InputError, match=r"more files than inputs \(1\)"):
        one_input_set([A], files, None, None)


def test_files_fill_inputs_in_order_and_by_name(tmp_path: Path) -> None:
    a, b = (
        [save(tmp_path, f"{name}{i}.npy", np.full(shape, i, dtype)) for i in (1, 2)]
        for name, shape, dtype in (("a", (1, 4), np.int8), ("b", (2,), np.float32))
    )
    for files in ([a[0], b[0], a[1], b[1]], [f"b={b[0]}", f"a={a[0]}", f"b={b[1]}", f"a={a[1]}"]):
        sets = input_sets([A, B], files)
        assert [(int(one.values["a"][0, 0]), float(one.values["b"][0])) for one in sets] == [(1, 1.0), (2, 2.0)]
        assert [*sets[0].values] == ["a", "b"]
    np.savez(tmp_path / "both.npz", a=np.zeros((4,), np.int8), b=np.ones(2, np.float32))
    both, second = input_sets([A, B], [str(tmp_path / "both.npz"), f"b={b[1]}"])
    assert both.values["a"].shape == (1, 4)
    assert both.remarks == []
    assert second.remarks == ["input 'a': random values, seed 0"]


def test_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8)
    image.fromarray(pixels).save(tmp_path / "b.png")
    image.fromarray(pixels[::-1].copy()).save(tmp_path / "a.PNG")
    one, two = input_sets([IMAGE], [str(tmp_path)])
    assert np.array_equal(one.values["p"][0], pixels[::-1])
    assert np.array_equal(two.values["p"][0], pixels)
    assert "6x4" in two.remarks[0]
    (first,) = input_sets([FIRST], [str(tmp_path / "b.png")], image_range=(0, 255))
    assert np.array_equal(first.values["p"][0], pixels.transpose(2, 0, 1).astype(np.float32))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["missing.npy"], "no file 'missing.npy'"),
        (["c={a}"], "'c' is no input"),
        (["{text}"], "no readable .npy file"),
        (["{empty}"], "no file in it ends in"),
        (["{other}"], "the archive holds z"),
    ],
)
def test_errors(files: list[str], says: str, tmp_path: Path) -> None:
    places = {"a": save(tmp_path, "a.npy", np.zeros(4, np.int8)), "text": str(tmp_path / "text.npy")}
    Path(places["text"]).write_text("no array")
    places["empty"], places["other"] = str(tmp_path / "empty"), str(tmp_path / "other.npz")
    Path(places["empty"]).mkdir()
    np.savez(places["other"], z=np.zeros(4, np.int8), a=np.zeros(4, np.int8))
    with pytest.raises(InputError, match=says):
        input_sets([A, B], [text.format(**places) for text in files])


def test_open_shapes_ask_for_a_file() -> None:
    with pytest.raises(InputError, match=r"\[1, \?\]"):
        input_sets([Port("x", np.dtype(np.float32), (1, -1), None)])
    assert input_sets([])[0].values == {}
    with pytest.raises(InputError, match=r"more files than inputs \(0\)"):
        input_sets([], [__file__])


def test_raw_values(tmp_path: Path) -> None:
    for port in (A, B):
        value = np.arange(np.prod(port.shape)).reshape(port.shape).astype(port.dtype)
        value.astype(port.dtype.newbyteorder("<")).tofile(tmp_path / f"{port.name}.bin")
        read = one_input_set([port], [str(tmp_path / f"{port.name}.bin")], None, None)[0][port.name]
        assert (read.dtype, read.shape, read.tobytes()) == (port.dtype, port.shape, value.tobytes())
        assert read.dtype.isnative
    for port in (B, Port("open", np.dtype(np.int8), (-1, 4), None)):
        with pytest.raises(InputError, match="4 bytes are no raw values of input"):
            one_input_set([port], [str(tmp_path / "a.bin")], 0, None)


@pytest.mark.parametrize("size", [(50_000, 1_001), (30_000, 30_000)])
def test_images_of_many_pixels_are_not_decoded(tmp_path: Path, size: tuple[int, int]) -> None:
    pytest.importorskip("PIL.Image")
    head = b"IHDR" + struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    # There is nothing to decode: whoever tried would say so.
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    (tmp_path / "large.png").write_bytes(
        content + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    )
    with pytest.raises(InputError, match="BT-IMAGE") as raised:
        input_sets([FIRST], [str(tmp_path / "large.png")])
    assert "pixels" in raised.value.message


def test_images_that_would_start_programs_are_none(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    path = tmp_path / "page.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n")
    with pytest.raises(InputError, match="BT-IMAGE"):
        input_sets([FIRST], [str(path)])
