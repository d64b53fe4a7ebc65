"""Every attribute of every mapped operator, given as no exporter would: equal to the runtime, or a typed refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from onnx import helper

import bittrue
from support.isolated_runtime import IsolatedRuntime
from support.odd_attributes import bases, mapped, names_in_source, odd_cases, reads
from support.onnx_models import HERE, Refused, build, check, needs_measured, run_runtime, single

# What the Python package of the runtime has no arrays for.
_UNSHOWN = "Numpy type"
# Shape inference and kernel of the runtime read these integers differently, so that only square matrices pass.
_TWO_READINGS = {("Gemm", "transA"), ("Gemm", "transB")}
# One of so many; `--deep` takes all.
_USUAL = 60


def test_no_attribute_is_forgotten() -> None:
    """By construction: a mapping without a model, or an attribute that no model makes it read, fails here."""
    found = bases()
    assert not mapped() - {(base.domain, base.op_type) for base in found}
    drawn = {name for base in found for name in reads(base)}
    assert len(drawn) > 60
    assert not names_in_source() - drawn


@needs_measured
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


def test_nodes_of_one_name() -> None:
    """The runtime refuses them, in a graph that a node calls too; nodes without a name are many, and names of constants
    do not count.
    """
    x = np.float32([1, -2])
    for names, constants in (
        (("", ""), ("", "")),
        (("a", "b"), ("c", "c")),
        (("a", "b"), ("a", "b")),
        (("a", "a"), ()),
    ):
        nodes = [
            *(helper.make_node("Constant", [], [f"c{i}"], name, value_float=1.0) for i, name in enumerate(constants)),
            helper.make_node("Neg", ["x"], ["y"], names[0]),
            helper.make_node("Relu", ["y"], ["z"], names[1]),
        ]
        content, feeds = build(nodes, {"x": x}, {"z": 1})
        theirs = run_runtime(content, feeds)
        if names == ("a", "a"):
            assert isinstance(theirs, Refused)
            with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-NAME"):
                bittrue.load(content)
        else:
            assert not isinstance(theirs, Refused)
            assert bittrue.load(content).prepare(HERE).run(*feeds)["z"].tobytes() == theirs["z"].tobytes()


def test_filters_of_one_channel() -> None:
    """With one window along the last axis windows are rows of the image: single rows and columns take other ways."""
    for case in range(60):
        rng = np.random.default_rng(case)
        groups, each, depth = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2])), int(rng.choice([1, 1, 2]))
        more, taps = [int(v) for v in rng.integers(0, 3, 2)], [int(v) for v in rng.integers(1, 15, 2)]
        x = rng.standard_normal((1, groups * depth, *np.add(taps, more))).astype(np.float32)
        w = rng.standard_normal((each * groups, depth, *taps)).astype(np.float32)
        assert check(*single("Conv", {"x": x, "w": w}, [1], {"group": groups})) == "equal"
