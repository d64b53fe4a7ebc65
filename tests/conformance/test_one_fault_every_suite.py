"""What `compare` names in a network, `conform` and `identify` name in devices that run the suites' models.

docs/faults.md is the whole table; `tools/make_faults_page.py` writes it. Here is a part of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bittrue.conformance.expected import same_bytes
from support.network_faults import FAULTS
from support.suite_faults import KINDS, PAGE, Faulty, cases_of, conformed, identified, reason

TABLE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
# One in so many cases is asked of the device without a fault.
_SHARE = 6
# Rules and faults, layers, pools and sums; ties toward zero and an exponent off by one among them.
_PLANTED = (
    ("litert", "max-pads"),
    ("litert", "pool-pads"),
    ("onnxruntime s8", "ties-zero"),
    ("onnxruntime s8", "w-zero"),
    ("onnxruntime u8", "exp-"),
    ("onnxruntime QDQ", "add-scales"),
    ("onnxruntime QDQ", "pads-v"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_device_without_a_fault_has_the_numerics_bits(kind: str) -> None:
    own = KINDS[kind]
    ran = 0
    # Some operators of each: making the cases of a layer takes seconds.
    first = list(KINDS).index(kind) % 3
    for at in list(own.operators)[first::3]:
        for case in cases_of(kind, at)[::_SHARE]:
            found = Faulty(own).answer(case)
            if found.status == "outputs":
                wanted = case.model.prepare(kind.partition(" ")[0]).run(dict(case.inputs))
                assert same_bytes(found.outputs, wanted), (case.identity, case.note)
                ran += 1
    assert ran


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("kind", "fault"), _PLANTED)
def test_both_name_the_fault(kind: str, fault: str) -> None:
    planted = FAULTS[fault]
    assert not reason(kind, planted)
    for said in (conformed(kind, planted), identified(kind, planted)):
        assert {*said.names} & {*planted.names}, said


def test_the_page_has_every_cell() -> None:
    lines = TABLE.read_text("utf-8").split("## In the suites")[1].splitlines()
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in lines if line.startswith("| ")}
    for fault in FAULTS.values():
        cells = [cell.strip() for cell in rows[fault.title]]
        assert len(cells) == len(PAGE)
        for kind, cell in zip(PAGE, cells, strict=True):
            assert cell
            assert (fault.at in KINDS[kind].operators) or cell == "(the device has no such operator)"
