"""Cases of the suites are made once per process: making them takes longer than most of what is done with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bittrue.conformance.suite import suites
from bittrue.conformance.suite.draft import Draft

_made: dict[tuple[suites.Generator, str], tuple[Draft, ...]] = {}
_make = suites.Generator.cases


def _cases(generator: suites.Generator, operator: str, types: str) -> Iterator[Draft]:
    key = (generator, types)
    if key not in _made:
        _made[key] = tuple(_make(generator, operator, types))
    for draft in _made[key]:
        # A test that changes an input must not change it for others.
        yield replace(draft, inputs={name: value.copy() for name, value in draft.inputs.items()})


@pytest.fixture(scope="session", autouse=True)
def cases_are_made_once_per_process() -> Iterator[None]:
    """Wherever the suites are asked for cases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suites.Generator, "cases", _cases)
        yield


@pytest.fixture
def made_anew(cases_are_made_once_per_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of how they are made."""
    monkeypatch.setattr(suites.Generator, "cases", _make)
