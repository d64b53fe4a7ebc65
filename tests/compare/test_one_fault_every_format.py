"""One fault, every format: what a comparison says of the same fault in the same network does not depend on the file.

docs/faults.md is the whole table; `tools/make_faults_page.py` writes it. Here is a part of it, with `--deep` all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.network_faults import FAULTS, compared, image, named
from support.network_formats import FORMATS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
# Of so many faults one is planted into a format, others into the next one.
_SHARE = 8


@pytest.mark.parametrize("fault", ["trunc", "ties-even"])
@pytest.mark.parametrize("form", FORMATS)
def test_the_device_without_a_fault_has_the_systems_bits(form: str, fault: str) -> None:
    own = FORMATS[form]
    net = FAULTS[fault].net(own)
    result = compared(own, net, image(own, net), "", None)
    assert len(result.pairs) >= 7
    assert result.equal, result.headline


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("form", FORMATS)
def test_faults_are_named(form: str, request: pytest.FixtureRequest) -> None:
    own, begin = FORMATS[form], list(FORMATS).index(form)
    every = 1 if request.config.getoption("--deep") else _SHARE
    for title in list(FAULTS)[begin % every :: every]:
        fault = FAULTS[title]
        net = fault.net(own)
        if not fault.reason(own, net):
            assert named(own, net, fault), title


@pytest.mark.parametrize(
    ("form", "fault"), [("qoperator", "acc-wrap"), ("mxnet", "w-roll"), ("mxnet", "b-twice"), ("tvm", "pads-v")]
)
def test_other_networks(form: str, fault: str) -> None:
    """Other weights, sizes and numbers of channels, which share no dimension with each other."""
    own = FORMATS[form]
    assert named(own, own.net(7, size=(9, 12), channels=3, filters=8), FAULTS[fault])


def test_the_page_has_every_cell() -> None:
    lines = PAGE.read_text("utf-8").split("## In the suites")[0].splitlines()
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("| ")]
    table = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    for fault in FAULTS.values():
        cells = table[fault.title]
        for own, cell in zip(FORMATS.values(), cells, strict=True):
            assert bool(fault.reason(own, fault.net(own))) == (cell.startswith("(")), (fault.title, own.numerics)
            assert cell != "", (fault.title, own.numerics)
