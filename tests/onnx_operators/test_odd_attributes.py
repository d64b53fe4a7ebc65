"""Every attribute of every mapped operator, given as no exporter would: equal to the runtime, or a typed refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import bittrue
from support.isolated_runtime import IsolatedRuntime
from support.odd_attributes import bases, mapped, names_in_source, odd_cases, reads
from support.onnx_models import HERE, Refused, needs_wide

# What the Python package of the runtime has no arrays for.
_UNSHOWN = "Numpy type"
# Shape inference and kernel of the runtime read these integers differently, so that only square matrices pass.
_TWO_READINGS = {("Gemm", "transA"), ("Gemm", "transB")}
# One of so many; `--examples` of 20 000 (`--deep`) takes all.
_USUAL = 60


def test_no_attribute_is_forgotten() -> None:
    """By construction: a mapping without a model, or an attribute that no model makes it read, fails here."""
    found = bases()
    assert not mapped() - {(base.domain, base.op_type) for base in found}
    drawn = {name for base in found for name in reads(base)}
    assert len(drawn) > 60
    assert not names_in_source() - drawn


@needs_wide
@pytest.mark.parametrize("part", range(4))
def test_odd_values(request: pytest.FixtureRequest, part: int, record_property: Callable[[str, object], None]) -> None:
    every = 1 if request.config.getoption("--deep") else _USUAL
    counts: Counter[str] = Counter()
    with IsolatedRuntime() as runtime:
        for base in bases()[part::4]:
            for case in odd_cases(base):
                if case.number % every:
                    continue
                theirs = runtime.run(case.content, base.feeds)
                code = ""
                try:
                    session = bittrue.load(case.content).prepare(HERE)
                    ours = session.run(*base.feeds)
                except bittrue.BittrueError as error:
                    code = error.code
                if code:
                    assert code != "BT-PLAN-STEP", case
                    counts["refused"] += 1
                    continue
                if isinstance(theirs, Refused):
                    known = _UNSHOWN in theirs.message or (base.op_type, case.name) in _TWO_READINGS
                    assert known, f"{case}: ran what the runtime refuses: {theirs.message[-300:]}"
                    counts["not shown"] += 1
                    continue
                same = {name: array.tobytes() for name, array in theirs.items()} == {
                    name: ours[name].tobytes() for name in theirs
                } and all(ours[name].shape == array.shape for name, array in theirs.items())
                assert same or session.plan.inexact, f"{case}: other results, and nothing says so"
                counts["equal" if same else "differs, as it says"] += 1
    assert counts["equal"] > 10
    record_property("compared", f"odd attributes, part {part}: {dict(counts)}")
