"""A device whose difference nothing explains: `conform` and `identify` say what is true of all of it."""

from __future__ import annotations

import numpy as np

from bittrue.conformance.causes import STAGES, Differences, Evidence, Search
from bittrue.conformance.conform import conform
from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.identification import identify
from bittrue.conformance.suite import SuiteCase, find_suite
from support.planted import PLANTED, RIGHT, PlantedDevice

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


def test_the_search_ends() -> None:
    """With nothing left to spend nothing is found, and what was not tried is said."""
    device = PlantedDevice(next(p for p in PLANTED if p.operator == "PAD"))
    cases = [case for case in find_suite("litert").cases(["PAD"]) if not case.rejects]
    found = [(case, case.model.prepare("litert").run(dict(case.inputs))) for case in cases]
    evidence = [Evidence(case, device.answer(case).outputs, wanted) for case, wanted in found]
    search = Search(0)
    differences = Differences(evidence, "litert", search)
    assert [differences.find(stage) for stage in STAGES] == [None, None, None]
    assert search.text.endswith("not tried, or not to the end: rules and faults, rare faults, two causes at once")
    search = Search()
    assert Differences(evidence, "litert", search).find("likely") is not None
    assert search.text == ""


def test_identify_describes() -> None:
    (found,) = identify(Turning(), "litert", operators=["MAXIMUM"], types=["s8"], questions=12).findings
    assert found.verdict == "unknown"
    assert found.nearest is not None
    assert found.nearest.described == (SAID,)
