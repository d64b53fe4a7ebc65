"""A device whose difference nothing explains: `conform` and `identify` say what is true of all of it."""

from __future__ import annotations

import numpy as np

from bittrue.conformance.conform import conform
from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.identification import identify
from bittrue.conformance.suite import SuiteCase
from support.planted import RIGHT

SAID = "device is reference XOR 0x05 in every differing element"


class Turning(Device):
    """Right, but for two bits of every value."""

    reads = ("tflite",)
    spec = title = "turning"

    def answer(self, case: SuiteCase) -> Answer:
        found = RIGHT.answer(case)
        turned = {name: np.ascontiguousarray(value ^ value.dtype.type(5)) for name, value in found.outputs.items()}
        return Answer(found.status, turned, found.text)


def test_conform_describes() -> None:
    (found,) = conform(Turning(), "litert", operators=["MAXIMUM"], types=["s8"]).operators
    assert found.cause is None
    assert found.described == (SAID,)
    assert f"unexplained; seen: {SAID}" in found.text


def test_identify_describes() -> None:
    (found,) = identify(Turning(), "litert", operators=["MAXIMUM"], types=["s8"], questions=12).findings
    assert found.verdict == "unknown"
    assert found.nearest is not None
    assert found.nearest.described == (SAID,)
