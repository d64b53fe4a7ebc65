"""Files appear whole or not at all, whatever stands where they go."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue import files
from bittrue.errors import BittrueError, InputError, OutputError

STALE = ".bittrue-1-0123456789ab.tmp"


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.name.startswith("."))


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    files.write_text(str(path), "näw")
    assert path.read_bytes() == "näw".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("failure", [ValueError("x"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_a_failure_leaves_the_old_file(tmp_path: Path, failure: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    expected = OutputError if isinstance(failure, OSError) else type(failure)

    def write() -> None:
        with files.written(path) as file:
            file.write(b"new" * (1 << 20))
            raise failure

    with pytest.raises(expected):
        write()
    assert path.read_bytes() == b"old"
    assert not left(tmp_path)


def test_libraries_write_through_the_buffer(tmp_path: Path) -> None:
    value = np.arange(1 << 18)
    with files.written(tmp_path / "a.npz") as file:
        np.savez(file, a=value)
    with files.written(tmp_path / "a.npy") as file:
        np.save(file, value)
    with files.written(tmp_path / "a.zip") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x", b"y" * 100)
    assert (np.load(tmp_path / "a.npz")["a"] == value).all()
    assert (np.load(tmp_path / "a.npy") == value).all()
    assert zipfile.ZipFile(tmp_path / "a.zip").testzip() is None


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    during = []
    with files.written(path):
        during = [stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir() if p.name != "a"]
    assert during == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    old = os.umask(0o027)
    try:
        files.write_bytes(tmp_path / "b", b"")
        with files.written_folder(tmp_path / "c", "index") as folder, files.scratch(folder / "index"):
            pass
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "b", tmp_path / "c", tmp_path / "c" / "index")]
    assert modes == [0o640, 0o750, 0o640]


def test_links(tmp_path: Path) -> None:
    folder = tmp_path / "else"
    folder.mkdir()
    (folder / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("else/real")
    (tmp_path / "second").symlink_to(tmp_path / "link")
    files.write_bytes(tmp_path / "second", b"new")
    assert (folder / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "second").is_symlink()
    (tmp_path / "dangling").symlink_to("else/made")
    files.write_bytes(tmp_path / "dangling", b"made")
    assert (folder / "made").read_bytes() == b"made"
    assert (tmp_path / "dangling").is_symlink()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OutputError, match="cannot be written: too many levels"):
        files.write_bytes(tmp_path / "circle", b"")
    # Other names of the same file keep the old content.
    os.link(folder / "real", tmp_path / "hard")
    files.write_bytes(folder / "real", b"newer")
    assert (tmp_path / "hard").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("", errno.EISDIR),
        ("no/a", errno.ENOENT),
        ("file/a", errno.ENOTDIR),
        ("x" * 300, errno.ENAMETOOLONG),
        ("/dev/full", errno.ENOSPC),
        ("/proc/self/fd/987654", None),
    ],
)
def test_targets_that_cannot_be(tmp_path: Path, name: str, number: int | None) -> None:
    (tmp_path / "file").write_bytes(b"old")
    path = tmp_path / name
    with pytest.raises(OutputError) as caught:
        files.write_bytes(path, b"new")
    assert caught.value.code == "BT-FILE-WRITE"
    assert caught.value.place == str(path)
    assert caught.value.advice
    if number is not None:
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == number
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", 3, None])
def test_what_is_no_path(path: object) -> None:
    for function in (files.write_bytes, files.append_line, files.read_file):
        with pytest.raises(InputError, match="BT-FILE-PATH"):
            function(path, b"")  # type: ignore[operator]


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o444)
    # The superuser may write everything.
    monkeypatch.setattr(files.os, "access", lambda name, mode: os.stat(name).st_mode & 0o200 != 0)
    with pytest.raises(OutputError, match="permission denied"):
        files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"


def test_pipes_and_devices(tmp_path: Path) -> None:
    files.write_bytes("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    fifo, found = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    files.write_bytes(fifo, b"through" * 100_000)
    reader.join(10)
    assert found == [b"through" * 100_000]
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("piped", [True, False])
def test_standard_output(tmp_path: Path, name: str, piped: bool) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = f"from bittrue import files; print('a', flush=True); files.write_text({name!r}, 'b'); print('c')"
    with (tmp_path / "out").open("wb+") as out:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE if piped else out,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])},
            check=True,
        )
        out.seek(0)
        assert (done.stdout if piped else out.read()) == b"a\nbc\n"
    assert not left(tmp_path)


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / STALE).write_bytes(b"half")
    (tmp_path / STALE.replace("-1-", "-2-")).mkdir()
    (tmp_path / STALE.replace("-1-", "-2-") / "x").write_bytes(b"half")
    strangers = [".bittrue-mine.tmp", f"{STALE}x", "a.tmp"]
    for name in strangers:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / STALE.replace("-1-", "-3-")).symlink_to("a.tmp")
    held = tmp_path / STALE.replace("-1-", "-4-")
    with held.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        files.write_bytes(tmp_path / "new", b"")
        assert {p.name for p in tmp_path.iterdir()} == {
            *strangers, "new", held.name, STALE.replace("-1-", "-3-")
        }  # fmt: skip
    files.write_bytes(tmp_path / "new", b"")
    assert not held.exists()


def test_folders_appear_whole(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "c"

    def write() -> None:
        with files.written_folder(target, "index") as folder, files.scratch(folder / "x") as file:
            file.write(b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []
    with files.written_folder(target, "index") as folder:
        (folder / "inner").mkdir()
        for name in ("inner/x", "index"):
            with files.scratch(folder / name) as file:
                file.write(b"1")
        assert not (tmp_path / "a").exists()
    assert {p.name for p in target.rglob("*")} == {"inner", "x", "index"}
    assert left(tmp_path) == []


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_folders_are_replaced_entry_by_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    for name in ("index", "mine", "old/x", "x"):
        (tmp_path / name).write_bytes(b"old")
    before = content(tmp_path)

    def write() -> None:
        with files.written_folder(tmp_path, "index", ["old"]) as folder:
            for name in ("index", "x", "y"):
                with files.scratch(folder / name) as file:
                    file.write(b"new")

    moved = []
    for stop in range(6):
        monkeypatch.setattr(files.os, "rename", failing_at(stop, os.rename, moved))
        with pytest.raises(OutputError) as caught:
            write()
        monkeypatch.undo()
        assert caught.value.place == str(tmp_path)
        assert content(tmp_path) == before
        assert not left(tmp_path)
    moved.clear()
    monkeypatch.setattr(files.os, "rename", failing_at(6, os.rename, moved))
    write()
    assert [Path(destination).name for _, destination in moved] == ["index", "old", "x", *"xy", "index"]
    assert content(tmp_path) == {"index": b"new", "mine": b"old", "x": b"new", "y": b"new"}


def failing_at(stop: int, real: Callable[..., None], calls: list[tuple[str, str]]) -> Callable[..., None]:
    """`real`, whose call number `stop` fails; the calls are kept."""
    numbers = count()

    def function(*arguments: str) -> None:
        calls.append(arguments)  # type: ignore[arg-type]
        if next(numbers) == stop:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(*arguments)

    return function


def test_lines_are_added_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    files.append_line(path, "one")
    real, calls = os.write, []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) % 2 == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:2])

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "write", write)
        with pytest.raises(OutputError, match="no space left"):
            files.append_line(path, "two")
    assert path.read_bytes() == b"one\n"
    assert calls == [4, 2]
    files.append_line(path, "three")
    assert path.read_bytes() == b"one\nthree\n"


def test_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    assert files.read_file(path) == bytes(range(100))
    assert files.read_file(path, 10, 5) == bytes(range(10, 15))
    assert files.read_file(path, 200) == b""
    with pytest.raises(InputError, match="BT-FILE-CHANGED"):
        files.read_file(path, 90, 20)
    real, calls = os.fstat, []

    def fstat(descriptor: int) -> os.stat_result:
        calls.append(descriptor)
        if len(calls) == 2:
            path.write_bytes(b"other" * 20)
        return real(descriptor)

    monkeypatch.setattr(files.os, "fstat", fstat)
    with pytest.raises(BittrueError, match="changed while it was being read"):
        files.read_file(path)


def test_something_is_done_while_a_large_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, threads = tmp_path / "a", []
    content = np.random.default_rng(0).bytes(3 << 20)
    path.write_bytes(content)
    assert files.read_file(path, meanwhile=lambda: threads.append(threading.get_ident())) == content
    assert files.read_file(path, 5, 1 << 20) == content[5 : 5 + (1 << 20)]
    assert threads == [threading.get_ident()]
    path.write_bytes(b"small")
    assert files.read_file(path, meanwhile=lambda: threads.append(0)) == b"small"
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize("full", [False, True])
def test_reading_beside_something_else_fails_as_it_does_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """A disk that fails, something else that fails, and a system that has no thread left."""
    path = tmp_path / "a"
    path.write_bytes(bytes(2 << 20))

    def refused(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    def failing(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    def broken() -> None:
        raise ImportError("no such module")

    if full:
        monkeypatch.setattr(files._thread, "start_new_thread", refused)
    assert files.read_file(path, meanwhile=int) == bytes(2 << 20)
    with pytest.raises(ImportError):
        files.read_file(path, meanwhile=broken)
    monkeypatch.setattr(files.os, "pread", failing)
    with pytest.raises(OSError, match="Input/output"):
        files.read_file(path)
