"""bittrue itself as a device: one numerics, in this process."""

from __future__ import annotations

import time

from ...errors import BittrueError
from ...numerics import default_of, find
from ..suite import SuiteCase
from .base import Answer, Device


class Ours(Device):
    """bittrue under one numerics.

    Args:
        spec: what the user typed.
        numerics: its name; empty for that of the runtime that a model's format comes with.
    """

    def __init__(self, spec: str, numerics: str) -> None:
        self.spec = spec
        self.numerics = numerics
        self.title = f"bittrue, numerics {find(numerics).name}" if numerics else "bittrue"

    def answer(self, case: SuiteCase) -> Answer:
        start = time.monotonic()
        try:
            session = case.model.prepare(self.numerics or default_of(case.format))
            outputs = session.run(dict(case.inputs))
        except BittrueError as error:
            return Answer("refused", {}, str(error), time.monotonic() - start)
        return Answer("outputs", outputs, "", time.monotonic() - start)
