"""Cases of the suites are made once per run: making them takes longer than most of what is done with them.

Whoever imports the fixture gets them so.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bittrue.conformance.suite import suites
from bittrue.conformance.suite.draft import Draft

_made: dict[tuple[suites.Generator, str], tuple[Draft, ...]] = {}
_make = suites.Generator.cases


def _shared(folder: Path, generator: suites.Generator, types: str) -> tuple[Draft, ...]:
    """What another worker of the run has made, or made here for the others."""
    words = (generator.operator, types, *(source.__module__ for source in generator.sources))
    path = folder / f"cases-{hashlib.sha256(repr(words).encode()).hexdigest()}"
    if path.is_file():
        found: tuple[Draft, ...] = pickle.loads(path.read_bytes())
        return found
    found = tuple(_make(generator, generator.operator, types))
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(found))
    part.replace(path)
    return found


def _cases(folder: Path, generator: suites.Generator, types: str) -> Iterator[Draft]:
    key = (generator, types)
    if key not in _made:
        _made[key] = _shared(folder, generator, types)
    for draft in _made[key]:
        # A test that changes an input must not change it for others.
        yield replace(draft, inputs={name: value.copy() for name, value in draft.inputs.items()})


@pytest.fixture(scope="session", autouse=True)
def cases_are_made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wherever the suites are asked for cases."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suites.Generator, "cases", lambda generator, operator, types: _cases(folder, generator, types))
        yield


@pytest.fixture
def made_anew(cases_are_made_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of how they are made."""
    monkeypatch.setattr(suites.Generator, "cases", _make)
