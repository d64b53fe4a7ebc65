"""One run of a session: who sees it, what it may take, and what ends it early."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable

import numpy as np

from ..errors import BittrueError, InputError, ResourceError, StoppedError
from ..operators import Step

# Runs of called graphs that one run of a session may take: loops in files need not end.
DEFAULT_ITERATION_LIMIT = 1_000_000

Observer = Callable[[str, np.ndarray], None]


class Run:
    """One run of a session.

    Args:
        limit: how many runs of called graphs it may take.
        interrupts: an array of one int64, which other threads change to end all runs of the session.
        observe: receives name and value of every tensor.
        timeout: seconds from now after which it ends.

    Attributes:
        deadline: when it ends, in seconds of `time.monotonic`.
        seen: the interrupts when it began.

    Raises:
        InputError: the timeout is not a number above 0.
    """

    def __init__(
        self, limit: int, interrupts: np.ndarray, observe: Observer | None = None, timeout: float | None = None
    ) -> None:
        self.observe = observe
        self.limit = limit
        self.taken = 0
        self.timeout = timeout_seconds(timeout)
        self.deadline = deadline_of(self.timeout)
        self._interrupts = interrupts
        self.seen = int(interrupts[0])

    def count(self) -> None:
        """One more run of a called graph."""
        self.check()
        self.taken += 1
        if self.taken > self.limit:
            raise ResourceError(
                "BT-ITERATIONS",
                f"a run took more than {self.limit:,} loop iterations, branches and calls",
                advice="pass a larger iteration_limit to prepare() if the loop is meant to end later",
            )

    def check(self) -> None:
        """Raises StoppedError when the run shall end."""
        if time.monotonic() >= self.deadline or self._interrupts[0] != self.seen:
            raise self.stopped(self._interrupts[0] != self.seen)

    def left(self) -> float | None:
        """Seconds until it ends, a moment where that is over; None when it has no timeout."""
        return None if self.deadline == math.inf else max(self.deadline - time.monotonic(), 1e-9)

    def stopped(self, interrupted: bool) -> StoppedError:
        """The error of a run that was ended by an interrupt, or by its timeout."""
        if interrupted:
            return StoppedError("BT-INTERRUPTED", "the run was ended by interrupt()")
        return StoppedError(
            "BT-TIMEOUT",
            f"the run was not done after its timeout of {self.timeout:g} seconds",
            advice="pass a larger timeout; profile() says which steps take long",
        )


def timeout_seconds(timeout: float | None) -> float:
    """A timeout as callers give it, in seconds.

    Raises:
        InputError: it is not a number above 0.
    """
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real) or not timeout > 0:
        raise InputError("BT-TIMEOUT-VALUE", f"a timeout is a number of seconds above 0, found {timeout!r}")
    return float(min(timeout, 1e12))


def deadline_of(timeout: float | None) -> float:
    """When a run that begins now ends, in seconds of `time.monotonic`.

    Raises:
        InputError: the timeout is not a number above 0.
    """
    return time.monotonic() + timeout_seconds(timeout)


def placed(error: StoppedError, step: Step, done: int, steps: int) -> StoppedError:
    """The error of a run that was ended in `step`, or in front of it, when `done` of a graph's `steps` were done."""
    if error.place not in ("", step.place):
        return error  # a called graph's
    message = f"{error.message}; {done} of {steps} steps were done"
    return StoppedError(error.code, message, place=step.place, advice=error.advice)


def reentered() -> BittrueError:
    """The error of a callback or a signal's handler that uses the session inside of which it is called."""
    return InputError(
        "BT-REENTERED",
        "this thread is inside a run of this session already",
        advice="do not run or reset a session from its own observer, progress callback or a signal's handler",
    )
