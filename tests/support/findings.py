"""What single check rules find in models that tests build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import bittrue
from bittrue import numerics as tables
from bittrue.check import Finding, Subject
from bittrue.check.rules import find

Maker = Callable[[], bytes]


def subject_of(content: bytes, numerics: str | None = None) -> Subject:
    """The model as rules see it."""
    model = bittrue.load(content)
    return Subject(model.file, tables.find(numerics or tables.default_of(model.format)))


def findings(content: bytes, code: str, numerics: str | None = None) -> list[Finding]:
    """What the rule `code` finds; rules for other formats find nothing, as in a whole check."""
    subject, rule = subject_of(content, numerics), find(code)
    return list(rule.find(subject)) if not rule.formats or subject.format in rule.formats else []


def only(content: bytes, code: str, numerics: str | None = None) -> Finding:
    """The one finding of a rule."""
    found = findings(content, code, numerics)
    assert len(found) == 1, [f.message for f in found]
    return found[0]


def makers(fixtures: Mapping[str, tuple[list[bytes], list[bytes]]]) -> dict[str, tuple[list[Maker], list[Maker]]]:
    """Fixtures as functions that give the models, which is how tests/check/test_rules.py collects them."""

    def one(contents: list[bytes]) -> list[Maker]:
        return [partial(bytes, content) for content in contents]

    return {code: (one(wrong), one(right)) for code, (wrong, right) in fixtures.items()}
