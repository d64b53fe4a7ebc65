"""Files on disk: whatever bittrue writes appears under its name whole or not at all, and what it reads stays as it was.

**Writing.** A file is written under a temporary name (``.bittrue-*.tmp``) in the same folder, flushed to the disk and
renamed. When anything fails, be it Ctrl-C, the temporary file is removed and the old file is still there, whole. A
process that is killed leaves at most its temporary file: it holds a lock on it, so the next write into that folder sees
that nobody does and removes it. Folders are built likewise, and their index is moved last.

What a link points to is replaced, the link stays; a file keeps its permissions, a new one gets those of the umask;
other hard links keep the old content. Pipes, terminals, devices and ``/dev/stdout`` are written into, once everything
is there to be written.

**Reading.** Files are copied into memory and never mapped: a file that another program overwrites or cuts off later
changes nothing, one that changes while it is being read is an error.
"""

from __future__ import annotations

import _thread
import errno
import io
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

from .errors import InputError, OutputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "append_line",
    "check_finished",
    "cut_off",
    "is_temporary",
    "read_file",
    "scratch",
    "scratch_bytes",
    "write_bytes",
    "write_text",
    "writing",
    "written",
    "written_folder",
]

_TEMPORARY = r"\.bittrue-[0-9]+-[0-9a-f]{12}\.tmp"
_BUFFER = 1 << 20
_MOST_LINKS = 40
# Bytes that take longer to copy than a thread takes to begin.
_LARGE = 1 << 20
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder"}
# What systems say where a file or folder cannot be flushed or locked: then there is nothing to wait for.
_CANNOT = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS})
_ADVICE = {
    errno.ENOSPC: "make room on the disk, or name a file on another one",
    errno.EDQUOT: "make room within the quota, or name a file elsewhere",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or name a file elsewhere",
    errno.EIO: "the disk is failing: name a file on another one",
    errno.EACCES: "a file is replaced by a new one: the file and its folder must both be writable; name another file",
    errno.EPERM: "a file is replaced by a new one: the file and its folder must both be writable; name another file",
    errno.EROFS: "the disk is mounted for reading only: name a file elsewhere",
    errno.EBUSY: "something is mounted there: name a file inside a folder that is mounted as a whole",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENOTDIR: "a part of the path is a file: name a file in a folder",
    errno.ENOENT: "make the folder first, or name one that exists",
}


@contextmanager
def writing(path: object) -> Iterator[None]:
    """What the system refuses while something is written becomes an `OutputError` that names `path`.

    Raises:
        OutputError: instead of an OSError.
    """
    try:
        yield
    except OutputError as error:
        # What was asked for, and not which part of it.
        raise OutputError(error.code, error.message, place=str(path), advice=error.advice) from error
    except OSError as error:
        # Some libraries raise their own OSError, without a number.
        reason = error.strerror or str(error) or type(error).__name__
        raise OutputError(
            "BT-FILE-WRITE",
            f"cannot be written: {reason[:1].lower()}{reason[1:]}",
            place=str(path),
            advice=_ADVICE.get(error.errno or 0, "name another file"),
        ) from error


def _path(path: object) -> str:
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
        os.fsencode(name)
    except (TypeError, ValueError) as error:
        raise InputError("BT-FILE-PATH", f"this is no path: {error}", place="path") from None
    if not name or "\0" in name:
        raise InputError("BT-FILE-PATH", "this is no path: it is empty or holds a zero byte", place="path")
    return name


@contextmanager
def written(path: object) -> Iterator[IO[bytes]]:
    """A file to write, which appears under its name when the block ends without an error.

    Args:
        path: str or PathLike; the folder must exist.

    Yields:
        A buffered binary file that can be written and sought.

    Raises:
        OutputError: it could not be written; what was there before still is.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written(folder / "a") as file:
    ...     _ = file.write(b"all of it")
    >>> (folder / "a").read_bytes(), len(list(folder.iterdir()))
    (b'all of it', 1)
    """
    name = _path(path)
    with writing(name):
        target, status = _target(name)
        is_open = status is not None and (target.startswith("/proc/") or not stat.S_ISREG(status.st_mode))
        with _written_into(target) if is_open else _replaced(target, status) as file:
            yield file


def write_bytes(path: object, content: bytes) -> None:
    """As `pathlib.Path.write_bytes`, whole or not at all; see `written`."""
    with written(path) as file:
        file.write(content)


def write_text(path: object, text: str) -> None:
    """UTF-8, whole or not at all; see `written`. What UTF-8 cannot hold, halves of surrogate pairs, is escaped."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def append_line(path: object, text: str) -> None:
    """One line more at the end of a file; it is there whole, or the file is as long as before.

    Only the end of the process in the middle of it leaves a part of the line, without its end.

    Raises:
        OutputError: it could not be written.
    """
    name = _path(path)
    with writing(name):
        descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            length = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, f"{text}\n".encode())
            except BaseException:
                os.ftruncate(descriptor, length)
                raise
        finally:
            os.close(descriptor)


def cut_off(path: object, size: int) -> None:
    """Make a file that is longer `size` bytes long.

    Raises:
        OutputError: it could not be written.
    """
    with writing(path):
        if os.stat(_path(path)).st_size > size:
            os.truncate(_path(path), size)


@contextmanager
def scratch(path: object) -> Iterator[IO[bytes]]:
    """A file in a folder that is temporary or becomes whole later: it is written in place.

    Raises:
        OutputError: it could not be written.
    """
    with writing(path):
        descriptor = os.open(_path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            with _buffered(descriptor) as file:
                yield file
        finally:
            os.close(descriptor)


def scratch_bytes(path: object, content: bytes | memoryview) -> None:
    """All of a `scratch` file."""
    with scratch(path) as file:
        file.write(content)


@contextmanager
def written_folder(path: object, index: str, removes: Collection[str] = ()) -> Iterator[Path]:
    """A folder to fill with `scratch` files, whose content appears under its name when the block ends without an error.

    A folder that is not there yet appears at once. Into one that exists, what was made is moved entry by entry: the old
    `index` goes first and the new one comes last, so that a folder without it is unfinished. Entries of the same name
    are replaced, others stay.

    Args:
        path: str or PathLike; folders above it are made.
        index: the file whose presence says that the folder is whole.
        removes: names of older entries that go away.

    Yields:
        The folder to write into.

    Raises:
        OutputError: it could not be written; an older folder is as it was.
    """
    from pathlib import Path

    name = _path(path)
    with writing(name):
        target = os.path.realpath(name)
        if os.path.isdir(target):
            # Inside of it: something may be mounted on it, and then what is beside it lies on another disk.
            with _temporary(target, _new_folder) as (made, _):
                yield Path(made)
                _flush_all(made)
                _move_into(made, target, index, removes)
                _flush_folder(target)
            return
        # Missing folders above it appear with it.
        parts = [""]
        while not os.path.lexists(parent := os.path.dirname(target)):
            parts.insert(0, os.path.basename(target))
            target = parent
        with _temporary(parent, _new_folder) as (made, _):
            inside = os.path.join(made, *parts)
            os.makedirs(inside, exist_ok=True)
            yield Path(inside)
            _flush_all(made)
            os.rename(made, target)
            _flush_folder(parent)


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name is one that `written` or `written_folder` makes meanwhile.

    >>> is_temporary(".bittrue-7-0123456789ab.tmp"), is_temporary("a.tmp")
    (True, False)
    """
    return re.fullmatch(_TEMPORARY, name) is not None


def check_finished(folder: Path, index: str) -> None:
    """Whether a folder that may come from `written_folder` is whole.

    Raises:
        InputError: there is no `index`, and the process that wrote the folder ended, or is still at it.
    """
    if (folder / index).exists():
        return
    with suppress(OSError), os.scandir(folder) as entries:
        if any(is_temporary(entry.name) and entry.is_dir(follow_symlinks=False) for entry in entries):
            raise InputError(
                "BT-FILE-UNFINISHED",
                f"the folder is not whole: it holds no {index}, which is written last",
                place=str(folder),
                advice="write it again",
            )


def read_file(
    path: object, start: int = 0, size: int | None = None, meanwhile: Callable[[], object] = lambda: None
) -> bytes:
    """The content of a file, or a part of it, as it is now: a copy that nothing changes later.

    Args:
        path: str or PathLike; a pipe that a shell hands over (``/dev/fd/63``) is read to its end.
        start: the first byte.
        size: how many; all that follow by default.
        meanwhile: called while another thread reads a file of some size; not called for a small one.

    Raises:
        InputError: it is a named pipe, a socket or a device, which may never end; the file changed while it was being
            read, or has become shorter.
        OSError: what the system says.
    """
    # Without Python's file objects, which take longer than small files.
    descriptor = os.open(_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return _piped(path, descriptor, before.st_mode)
        wanted = max(before.st_size - start, 0) if size is None else size
        # One byte more, which a file that grows has.
        first = partial(os.pread, descriptor, wanted + (size is None), start)
        content = first() if wanted < _LARGE else _beside(first, meanwhile)
        while len(content) < wanted and (more := os.pread(descriptor, wanted - len(content), start + len(content))):
            content += more
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(content) != wanted:
        raise InputError(
            "BT-FILE-CHANGED",
            "the file changed while it was being read",
            place=str(path),
            advice="try again when nothing writes it any more; replace files by renaming others over them",
        )
    return content


def _beside(read: Callable[[], bytes], meanwhile: Callable[[], object]) -> bytes:
    """What `read` gives in a thread of its own, while this one calls `meanwhile`."""
    found: list[bytes | BaseException] = []
    done = _thread.allocate_lock()

    def work() -> None:
        try:
            found.append(read())
        except BaseException as error:
            found.append(error)
        finally:
            done.release()

    done.acquire()
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # The system has no thread left.
        work()
    try:
        meanwhile()
    finally:
        done.acquire()
    (content,) = found
    if isinstance(content, BaseException):
        raise content
    return content


def _piped(path: object, descriptor: int, mode: int) -> bytes:
    """What a pipe that a shell hands over gives until its end."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), _path(path))
    if not stat.S_ISFIFO(mode) or not os.path.realpath(_path(path)).startswith("/proc/"):
        raise InputError(
            "BT-FILE-KIND",
            f"this is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, and no regular file",
            place=str(path),
            advice="copy what it gives into a file",
        )
    os.set_blocking(descriptor, True)
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


class _Descriptor(io.RawIOBase):
    """An open file without a file number to be had, so that no library writes past the buffer and loses the error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.is_given_up = False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes if self.is_given_up else _write(self._descriptor, data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return os.lseek(self._descriptor, offset, whence)


@contextmanager
def _buffered(descriptor: int) -> Iterator[IO[bytes]]:
    """What is written into it has reached the system when the block ends; after an error nothing more is tried."""
    raw = _Descriptor(descriptor)
    file = io.BufferedWriter(raw, _BUFFER)
    try:
        yield cast("IO[bytes]", file)
        file.flush()
    finally:
        raw.is_given_up = True
        file.close()


def _write(descriptor: int, data: Any) -> int:
    count = os.write(descriptor, data)
    if not count:
        raise OSError(errno.EIO, "nothing was written")
    return count


def _write_all(descriptor: int, content: bytes | memoryview) -> None:
    left = memoryview(content)
    while left:
        left = left[_write(descriptor, left) :]


def _target(name: str) -> tuple[str, os.stat_result | None]:
    """What a path stands for once links are followed, and what is there; None when there is nothing."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(name) or ".")
        full = os.path.join(folder, os.path.basename(name))
        # What is open already (/dev/stdout, /dev/fd/3) is no link to a name.
        if folder.startswith("/proc/") or not os.path.islink(full):
            break
        name = os.path.join(folder, os.readlink(full))
    else:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        status = os.stat(full)
    except FileNotFoundError:
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, "there is no such folder") from None
        return full, None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not os.access(full, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return full, status


@contextmanager
def _replaced(target: str, status: os.stat_result | None) -> Iterator[IO[bytes]]:
    """A new file in place of `target`."""

    def create(name: str) -> int:
        # Never more readable than what it replaces, not even for a moment.
        mode = 0o666 if status is None else 0o600
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    folder = os.path.dirname(target)
    with _temporary(folder, create) as (temporary, descriptor):
        with _buffered(descriptor) as file:
            yield file
        if status is not None:
            with suppress(OSError):
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        _flush(descriptor)
        os.replace(temporary, target)
        _flush_folder(folder)


@contextmanager
def _written_into(target: str) -> Iterator[IO[bytes]]:
    """A pipe, a terminal, a device, or a file that is open already: what is written goes there at the end."""
    file = io.BytesIO()
    yield file
    folder, number = os.path.split(target)
    if folder == f"/proc/{os.getpid()}/fd":
        # Where it stands, which a file that is opened anew would not.
        descriptor = os.dup(int(number))
    else:
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _write_all(descriptor, file.getbuffer())
    finally:
        os.close(descriptor)


@contextmanager
def _temporary(folder: str, create: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    """A new file or folder, locked; it is removed in the end if it is still there."""
    _sweep(folder)
    descriptor, name = -1, ""
    try:
        while True:
            name = os.path.join(folder, f".bittrue-{os.getpid()}-{os.urandom(6).hex()}.tmp")
            descriptor = create(name)
            with suppress(OSError):
                _lock(descriptor, waits=True)
            # Somebody may have swept between these two lines.
            if os.path.lexists(name):
                break
            os.close(descriptor)
            descriptor = -1
        yield name, descriptor
    finally:
        _remove(name)
        if descriptor >= 0:
            os.close(descriptor)


def _lock(descriptor: int, waits: bool) -> None:
    # Whoever only reads files needs no locks.
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _new_folder(name: str) -> int:
    os.mkdir(name)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _remove(name: str) -> None:
    with suppress(OSError):
        if os.path.isdir(name):
            import shutil

            shutil.rmtree(name, ignore_errors=True)
        else:
            os.unlink(name)


def _sweep(folder: str) -> None:
    """Removes what processes that were killed have left: temporary files and folders that nobody locks."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_temporary(entry.name) or entry.is_symlink():
                continue
            with suppress(OSError):
                access = os.O_RDONLY | os.O_DIRECTORY if entry.is_dir() else os.O_WRONLY
                descriptor = os.open(entry.path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    _lock(descriptor, waits=False)
                    _remove(entry.path)
                finally:
                    os.close(descriptor)


def _flush(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _flush_folder(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        # Names may be added to folders that may not be read.
        return
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def _flush_all(folder: str) -> None:
    for inside, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(inside, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                _flush(descriptor)
            finally:
                os.close(descriptor)
        _flush_folder(inside)


def _move_into(made: str, target: str, index: str, removes: Collection[str]) -> None:
    """Everything in `made` to `target`; what it replaces goes where it is removed with `made`."""
    names = sorted(os.listdir(made), key=lambda name: name == index)
    aside = os.path.join(made, ".replaced")
    os.mkdir(aside)
    moves = [(target, aside, name) for name in dict.fromkeys((index, *removes, *names))]
    moves += [(made, target, name) for name in names]
    done = []
    try:
        for source, destination, name in moves:
            if os.path.lexists(os.path.join(source, name)):
                done.append((source, destination, name))
                os.rename(os.path.join(source, name), os.path.join(destination, name))
    except BaseException:
        for source, destination, name in reversed(done):
            with suppress(OSError):
                os.rename(os.path.join(destination, name), os.path.join(source, name))
        raise
