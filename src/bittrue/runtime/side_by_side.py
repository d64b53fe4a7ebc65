"""Work on many samples: in order, lazily, with bounded memory, on several threads where that is asked for."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]

# Handing over a chunk takes some 50 microseconds; a consumer should not wait longer than this for the first result.
_CHUNK_SECONDS = 0.01
# Chunks that a thread has in front of it: one to work on, one to go on with.
AHEAD = 2


def available_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(
    workers: Sequence[Work[Item, Result]],
    items: Iterable[Item],
    *,
    first: int = 1,
    most: int = 256,
    seconds: float = _CHUNK_SECONDS,
    end: Callable[[], None],
) -> Generator[list[Result], None, int]:
    """Results of `items` in their order, chunk by chunk; each worker is called from one thread only.

    Items are taken from the iterable by the thread that asks for results, no more than a few chunks ahead.

    Args:
        workers: what does the work; with a single one it is done in the caller's thread.
        items: any iterable, endless ones too.
        first: items that the first chunk has.
        most: items that a chunk may have.
        seconds: that a chunk may take, as far as earlier ones tell.
        end: called when nobody wants further results while workers are busy: it makes them end.

    Returns:
        How many items the next chunk would have.

    Raises:
        Exception: the first one that a worker raised, after the results of the chunks before.
    """
    waiting = iter(items)
    size = _Size(first, most, seconds)
    if len(workers) == 1:
        while chunk := size.taken(waiting):
            yield size.timed(workers[0], chunk)
        return size.now
    import threading
    from concurrent.futures import ThreadPoolExecutor

    free, mine = list(workers), threading.local()

    def begin() -> None:
        mine.work = free.pop()

    def work(chunk: list[Item]) -> list[Result]:
        return size.timed(mine.work, chunk)

    pool = ThreadPoolExecutor(len(workers), "bittrue-map", begin)
    pending: deque[Future[list[Result]]] = deque()
    try:
        while True:
            while len(pending) < AHEAD * len(workers) and (chunk := size.taken(waiting)):
                pending.append(pool.submit(work, chunk))
            if not pending:
                return size.now
            yield pending.popleft().result()
    finally:
        if pending:
            end()
        pool.shutdown(wait=True, cancel_futures=True)


class _Size:
    """How many items the next chunk has: as many as are taken, and worked on, in about so many seconds."""

    def __init__(self, first: int, most: int, seconds: float) -> None:
        self._most, self._seconds = max(most, 1), seconds
        self.now = max(1, min(first, self._most))
        self._taking = 0.0

    def taken(self, items: Iterator[Item]) -> list[Item]:
        """The next chunk."""
        start = time.perf_counter()
        chunk = list(islice(items, self.now))
        self._taking = (time.perf_counter() - start) / max(len(chunk), 1)
        return chunk

    def timed(self, work: Work[Item, Result], chunk: list[Item]) -> list[Result]:
        """The results of a chunk."""
        start = time.perf_counter()
        results = work(chunk)
        each = max((time.perf_counter() - start) / len(chunk), self._taking, 1e-9)
        # At most twice as many as before: the first item is often slower than the others, or faster.
        self.now = max(1, min(self._most, 2 * len(chunk), int(self._seconds / each)))
        return results
