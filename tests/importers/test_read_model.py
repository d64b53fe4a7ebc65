"""Sources of `read_model`, and what it says about files that are no TFLite models."""

import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from bittrue.errors import InputError, ModelFormatError
from bittrue.importers import read_model
from importers.tflite_build import DEMO, dense, pack


def names(source) -> list[str]:
    return [tensor.name for tensor in read_model(source).graphs[0].tensors]


def test_sources(tmp_path) -> None:
    content = pack(dense())
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    expected = ["x", "w", "b", "h", "y"]
    for source in (str(path), path, content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)):
        assert names(source) == expected
    assert names(io.BytesIO(content)) == expected
    assert names(np.frombuffer(content, np.int32)) == expected
    with path.open("rb") as file:
        assert names(file) == expected
    assert names(np.memmap(path, np.uint8, "r")) == expected


def test_unaligned_bytes_read_the_same() -> None:
    content = DEMO.read_bytes()
    aligned = read_model(content).graphs[0]
    shifted = read_model(memoryview(b"\0" + content)[1:]).graphs[0]
    for one, other in zip(aligned.tensors, shifted.tensors, strict=True):
        assert (one.data is None) == (other.data is None)
        if one.data is not None:
            assert np.array_equal(one.data, other.data)
        if one.quantization is not None:
            assert one.quantization.same_as(other.quantization)
            assert other.quantization.scales.flags.aligned


def test_the_descriptor_is_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_model(DEMO)
    assert len(os.listdir("/proc/self/fd")) == before


def test_pipes_are_read_to_their_end(tmp_path) -> None:
    content, (reading, writing) = pack(dense()), os.pipe()
    os.write(writing, content)
    os.close(writing)
    assert names(f"/dev/fd/{reading}") == names(content)
    os.close(reading)
    # Whether anybody will ever write into it is not waited for.
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero"):
        with pytest.raises(InputError, match="no regular file"):
            read_model(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty file"),
        (b"TFL", "text"),
        (b"\0\1\2", "only 3 bytes"),
        (b"PK\x03\x04" + bytes(40), "zip"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5"),
        (gzip.compress(b"x" * 100, mtime=0), "gzip"),
        (b"\x08\x01\x12\x07" + bytes(30), "SavedModel"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "this is a Git LFS pointer, fetch"),
        (b"\n<!DOCTYPE html><html>", "HTML"),
        (b'{"error": "not found"}', "JSON"),
        (b"just some words", "plain text"),
        (b"\x18\0\0\0TFL2" + bytes(30), "another version"),
        (b"\xfe\xdc\xba\x98" * 8, "unknown format"),
    ],
)
def test_foreign_content_is_named(content: bytes, words: str, tmp_path) -> None:
    with pytest.raises(ModelFormatError, match=words) as caught:
        read_model(content)
    assert caught.value.code == "BT-FILE-FORMAT"
    path = tmp_path / "wrong.tflite"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=words) as caught:
        read_model(path)
    assert caught.value.place == str(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x08\x08\x12\x07pytorch" + bytes(30),
        b"\x08\x08\x12\x07pytorch",
        b"\x08\x0a\x3a\xff\xff\xff\x7f",
        b"\x3a\x02\x12\x09",
        b"\x42\x04\x0a\x00\x10\x15",
    ],
)
def test_what_begins_like_onnx_is_read_as_onnx(content: bytes, tmp_path) -> None:
    with pytest.raises(ModelFormatError, match="BT-ONNX-FORMAT"):
        read_model(content)
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match="BT-ONNX-FORMAT") as caught:
        read_model(path)
    assert caught.value.place == str(path)


def test_bad_sources(tmp_path) -> None:
    for path in (tmp_path / "absent", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="BT-FILE-PATH"):
            read_model(path)
    closed = io.BytesIO(b"x")
    closed.close()
    for source in (None, 5, io.StringIO("text"), closed, np.zeros((8, 8), np.uint8)[:, ::2]):
        with pytest.raises(InputError, match="BT-FILE-SOURCE"):
            read_model(source)


def test_importing_is_light() -> None:
    code = "import sys, bittrue.importers; print('numpy' in sys.modules, 'flatbuffers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if done.stdout.split()[1] == "True":
        pytest.skip("the bittrue package itself imports flatbuffers")
