"""Every executor and instruction set of this machine gives the reference's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import bittrue

from . import guarded

needs_native = pytest.mark.skipif(not bittrue.isas(), reason="bittrue runs from its sources, without the C++ core")

# Operators for which some step of some test fell back to the reference, and all that ran natively.
FALLEN_BACK: dict[str, int] = {}
RAN_NATIVELY: dict[str, int] = {}


def check_native(
    session: bittrue.Session,
    feeds: Sequence[Sequence[np.ndarray]],
    expected: Mapping[str, np.ndarray],
    threads: Sequence[int] = (1,),
    isas: Sequence[str] | None = None,
) -> None:
    """Trace the session's plan natively on every instruction set and compare each tensor after the last feed set."""
    for isa in bittrue.isas() if isas is None else isas:
        for count in threads:
            with guarded.results():
                native = bittrue.Session(session.plan, executor="native", isa=isa, threads=count)
            values: Mapping[str, np.ndarray] = {}
            outputs: Mapping[str, np.ndarray] = {}
            for feed in feeds:
                values = native.trace(*feed)
                # A run between two traces would change the state.
                with guarded.results():
                    outputs = {} if _stateful(session) else native.run(*map(guarded.copied, feed))
            _note(native)
            assert list(values) == list(expected)
            for name, value in values.items():
                same(f"{name} on {isa}", value, expected[name])
            for name, value in outputs.items():
                same(f"output {name} on {isa}", value, expected[name])


def same(what: str, ours: np.ndarray, expected: np.ndarray) -> None:
    """Equal type, shape and bytes."""
    assert ours.dtype == expected.dtype, f"{what}: {ours.dtype}, expected {expected.dtype}"
    assert ours.shape == expected.shape, f"{what}: {ours.shape}, expected {expected.shape}"
    if np.ascontiguousarray(ours).tobytes() != np.ascontiguousarray(expected).tobytes():
        different = np.argwhere(np.asarray(ours != expected))
        where = tuple(int(i) for i in different[0]) if len(different) else ()
        raise AssertionError(
            f"{what}: {len(different)} of {ours.size} elements differ from the reference, first at {where}: "
            f"native {ours[where]!r}, reference {expected[where]!r}"
        )


def _stateful(session: bittrue.Session) -> bool:
    source = session.plan.source
    resources = source is not None and bool(source.resources)
    return resources or any(tensor.kind == "variable" for tensor in session.plan.tensors)


def _note(native: bittrue.Session) -> None:
    missing = native.missing
    for position, step in enumerate(native.plan.steps):
        counts = FALLEN_BACK if position in missing else RAN_NATIVELY
        counts[step.operator] = counts.get(step.operator, 0) + 1
