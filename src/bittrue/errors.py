"""Typed errors: every one names a stable code, the place, what was found and what to do about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class BittrueError(Exception):
    """Base of all errors that bittrue raises on purpose.

    Attributes:
        code: stable identifier, for example ``"BT-FILE-BOUNDS"``; scripts may match on it.
        message: one sentence saying what is wrong, with expected and found.
        place: where: a node, tensor, byte offset or argument; empty when there is none.
        advice: what the reader can do; empty when nothing helps.
    """

    def __init__(self, code: str, message: str, *, place: str = "", advice: str = "") -> None:
        self.code = code
        self.message = message
        self.place = place
        self.advice = advice
        super().__init__(code, message, place, advice)

    def __str__(self) -> str:
        text = f"[{self.code}] "
        if self.place:
            text += f"{self.place}: "
        text += self.message
        if self.advice:
            text += f" ({self.advice})"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self.place, self.advice)


def _rebuild(kind: type[BittrueError], code: str, message: str, place: str, advice: str) -> BittrueError:
    return kind(code, message, place=place, advice=advice)


class ModelFormatError(BittrueError):
    """The bytes are not a well-formed model file of a known format."""


class InvalidModelError(BittrueError):
    """The file can be read, but what it describes is contradictory, undefined or refused by the runtime named."""


# What Python and NumPy raise when numbers that came from a plan file, which is untrusted, do not fit together.
MISFITS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class UnsupportedError(BittrueError):
    """The model is (or may be) fine, but bittrue or the chosen numerics does not implement what it asks for."""


class InputError(BittrueError):
    """Values or arguments given by the caller do not fit."""


class RunError(BittrueError):
    """Execution met values for which the operator has no defined result (for example a division by zero)."""


class ResourceError(BittrueError):
    """The work asked for would exceed a limit of memory or time."""


class StoppedError(ResourceError):
    """A run was ended before it was done: its timeout has passed (BT-TIMEOUT), or `Session.interrupt` was called
    (BT-INTERRUPTED). The session is as it was before the run.
    """


class InexactWarning(UserWarning):
    """A model was prepared whose results may differ from the runtime's in bits: `session.plan.inexact` names where."""


def memory_errors(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with a `ResourceError` in place of every MemoryError."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except MemoryError as error:
            raise out_of_memory(error) from None

    return call


def out_of_memory(error: MemoryError) -> ResourceError:
    """What stands for a MemoryError."""
    reason = f": {error}" if str(error) else ""
    return ResourceError("BT-MEMORY", f"out of memory{reason}", advice="free some, or take smaller inputs or batches")


def caller_level() -> int:
    """The `stacklevel` with which the calling function's warning names the nearest line outside of this package."""
    folder = os.path.dirname(__file__)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folder):
        frame, level = frame.f_back, level + 1
    return level


class OutputError(BittrueError):
    """A file could not be written; what was there under its name before still is."""


class InternalError(BittrueError):
    """Two ways of working out one number disagree: a fault of bittrue itself, worth a report."""
