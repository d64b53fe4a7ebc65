"""Samples in WebDataset's tar files: read as they were written, and hostile archives are typed errors."""

from __future__ import annotations

import io
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.sources import open_source
from bittrue.runners.arrays import npy_in


def write(path: Path, members: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def npy(value: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, value)
    return buffer.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_with_one_key_are_one_sample(tmp_path: Path, form: int) -> None:
    members = [
        ("./a/one.cls", b"3\n"),
        ("./a/one.jpg", b"first"),
        ("./a/one.json", b"{}"),
        ("./b/one.PNG", b"second"),
        ("./b/two.cls", b"12"),
        ("./b/two.png", b""),
        ("./b/" + "long" * 22 + ".png", b"third"),
    ]
    source = open_source(write(tmp_path / "x.tar", members, form))
    assert (source.kind, source.holds, source.classes, len(source)) == ("webdataset", "image", (), 4)
    found = [(source[i].id, source[i].label, source[i].read()) for i in range(4)]
    assert found == [
        ("x.tar:./a/one", 3, [b"first"]),
        ("x.tar:./b/one", None, [b"second"]),
        ("x.tar:./b/two", 12, [b""]),
        ("x.tar:./b/" + "long" * 22, None, [b"third"]),
    ]


def test_folder_and_pattern(tmp_path: Path) -> None:
    for i in range(12):
        write(tmp_path / f"train-{i:02}.tar", [("k.jpg", bytes([i])), ("k.cls", b"cat" if i % 2 else b"dog")])
    source = open_source(tmp_path)
    assert source.classes == ("cat", "dog")
    assert [source[i].read() for i in range(12)] == [[bytes([i])] for i in range(12)]
    assert [source[i].label for i in range(4)] == [1, 0, 1, 0]
    part = open_source(f"webdataset:{tmp_path}/train-{{08..10}}.tar")
    assert [part[i].id for i in range(len(part))] == [
        f"train-{i}.tar:k" if i > 9 else f"train-0{i}.tar:k" for i in (8, 9, 10)
    ]
    words = open_source(f"webdataset:{tmp_path}/train-{{0,1}}{{1..1}}.tar")
    assert [words[i].read() for i in range(2)] == [[b"\x01"], [b"\x0b"]]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("train-{00..02}.tar", "BT-FILE-MISSING"),
        ("train-{2..1}.tar", "BT-DATA-PATTERN"),
        ("train-{0..999999999}.tar", "BT-DATA-PATTERN"),
        ("train-{0..9999}{0..9999}.tar", "BT-DATA-PATTERN"),
        ("nothing.tar", "BT-DATA"),
    ],
)
def test_patterns_that_name_no_files(tmp_path: Path, pattern: str, code: str) -> None:
    write(tmp_path / "train-00.tar", [("k.jpg", b"")])
    with pytest.raises(bittrue.InputError) as caught:
        open_source(f"webdataset:{tmp_path}/{pattern}")
    assert caught.value.code == code


def test_arrays(digits: Path, tmp_path: Path) -> None:
    stored = np.load(digits / "samples.npz")
    members = []
    for i, (x, label) in enumerate(zip(stored["images"], stored["labels"], strict=True)):
        members += [(f"{i:03}.npy", npy(x if i % 2 else np.asfortranarray(x))), (f"{i:03}.cls", str(label).encode())]
    path = write(tmp_path / "digits.tar", members)
    usual = bittrue.evaluate(digits / "model.tflite", digits / "samples.npz")
    assert bittrue.evaluate(digits / "model.tflite", path)["metrics"] == usual["metrics"]
    broken = dict(members)
    broken["004.npy"] = broken["004.npy"][:-1]
    del broken["007.npy"]
    found = bittrue.evaluate(digits / "model.tflite", write(path, list(broken.items())))
    assert (found["samples"], found["errors"]) == (100, {"BT-DATA-MEMBER": 1, "BT-FILE-SIZE": 1})


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ([("a.jpg", b"1"), ("a.png", b"2")], "BT-DATA-MEMBER"),
        ([("a.jpg", b"1"), ("a.jpg", b"2")], "BT-DATA-MEMBER"),
        ([("a.cls", b"1"), ("a.cls", b"2")], "BT-DATA-MEMBER"),
        ([("a.jpg", b"1"), ("b.npy", b"2")], "BT-DATA-MIXED"),
        ([("a.jpg", b"1"), ("a.cls", b"\xff")], "BT-DATA-LABELS"),
        ([("a.jpg", b"1"), ("a.cls", b"1" * 5000)], "BT-DATA-SIZE"),
        ([("a.txt", b"1")], "BT-DATA-EMPTY"),
    ],
)
def test_keys_that_are_no_sample(tmp_path: Path, members: list[tuple[str, bytes]], code: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        open_source(write(tmp_path / "x.tar", members))
    assert caught.value.code == code


def test_links_lead_nowhere(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            entry = tarfile.TarInfo(f"k{kind!r}.jpg")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(bittrue.InputError) as caught:
        open_source(tmp_path / "x.tar")
    assert caught.value.code == "BT-DATA-EMPTY"


def test_damaged_archives_lose_nothing_silently(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", [(f"{i}.jpg", bytes([i])) for i in range(4)], tarfile.USTAR_FORMAT)
    whole = path.read_bytes()
    # The header of the third member no longer has its checksum.
    path.write_bytes(whole[:2048] + b"\xff" + whole[2049:])
    with pytest.raises(bittrue.InputError, match="neither a member nor the end"):
        open_source(path)
    for size in (0, 100, 512, 1024, 2048, 2500, 4096):
        path.write_bytes(whole[:size])
        with pytest.raises(bittrue.InputError) as caught:
            open_source(path)
        assert (caught.value.code, caught.value.place) == ("BT-DATA-TAR", str(path))


@pytest.mark.parametrize("size", [-512, -1024, -1, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE])
def test_headers_with_wrong_sizes(tmp_path: Path, size: int, kind: bytes) -> None:
    entry = tarfile.TarInfo("a.jpg")
    entry.type, entry.size = kind, size
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    (tmp_path / "x.tar").write_bytes(bytes(header) + bytes(2048))
    with pytest.raises(bittrue.InputError) as caught:
        open_source(tmp_path / "x.tar")
    assert caught.value.code in ("BT-DATA-TAR", "BT-DATA-SIZE")


def test_changed_bytes_are_typed_errors(tmp_path: Path) -> None:
    members = [(f"{i}.npy", npy(np.arange(3))) for i in range(3)] + [("n" * 120 + ".cls", b"1")]
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = write(tmp_path / "x.tar", members, form)
        whole = path.read_bytes()
        rng = np.random.default_rng(0)
        for _ in range(200):
            content = bytearray(whole)
            at = int(rng.integers(12)) * 512
            block = content[at : at + 512]
            block[rng.integers(100, 500)] = rng.integers(256)
            # Checksums that are right let the change through to what reads sizes and types.
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
            content[at : at + 512] = block
            path.write_bytes(content)
            with suppress(bittrue.BittrueError):
                source = open_source(path)
                for i in range(len(source)):
                    with suppress(bittrue.BittrueError):
                        source[i].read()


def test_threads_read_one_header_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What parses them raises SystemError in some versions of Python where two threads use it."""
    content = io.BytesIO()
    np.save(content, np.zeros((2, 3)))
    parse, inside, most = np.lib.format.read_array_header_1_0, [0], [0]

    def slow(file: Any, *given: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1
        return parse(file, *given)

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: npy_in(content.getvalue(), tmp_path, "").shape, range(20)))
    assert (most, found) == ([1], [(2, 3)] * 20)
