"""Runs that shall end early: long loops of references ask here, so that a timeout need not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Current(threading.local):
    check: Callable[[], None] | None = None


_current = _Current()


def check_stop() -> None:
    """Raises what ends the run that this thread is in, when it shall end."""
    if _current.check is not None:
        _current.check()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """Inside, `check_stop` calls `check`, which raises when the run shall end."""
    before, _current.check = _current.check, check
    try:
        yield
    finally:
        _current.check = before
