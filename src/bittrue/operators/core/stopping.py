"""Runs that shall end early: long loops of references ask here, so that a timeout need not wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Of the run that this thread is in.
_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


def check_stop() -> None:
    """Raises what ends the run that this thread is in, when it shall end."""
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """Inside, `check_stop` calls `check`, which raises when the run shall end."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)
