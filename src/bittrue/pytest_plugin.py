"""The pytest plug-in: the fixture `bittrue`. It imports nothing of ours until a test asks for the fixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

# Findings that a failure names.
_SHOWN = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """Whose arithmetic, where a test does not say."""
    parser.getgroup("bittrue").addoption(
        "--bittrue-numerics",
        metavar="NAME",
        help="whose arithmetic the fixture `bittrue` uses where a test names none",
    )


class Bittrue:
    """What the fixture `bittrue` is.

    Attributes:
        numerics: for models where a test names none; None: that of the runtime that the file's format comes with.
    """

    def __init__(self, numerics: str | None = None) -> None:
        self.numerics = numerics

    def __getattr__(self, name: str) -> Any:
        """`bittrue.load` and the like: in a test that asks for the fixture, its name hides the package."""
        import bittrue as package

        return getattr(package, name)

    def session(self, model: Any, numerics: str | None = None) -> Any:
        """A prepared model (`bittrue.Session`): from a path, the bytes of a model or a `bittrue.Model`; or as it is."""
        from . import api

        if isinstance(model, api.Session):
            return model
        return (model if isinstance(model, api.Model) else api.load(model)).prepare(numerics or self.numerics)

    def run(
        self, model: Any, inputs: Mapping[str, Any] | None = None, numerics: str | None = None, seed: int = 0
    ) -> dict[str, Any]:
        """Outputs by name.

        Args:
            model: as for `session`; a session keeps its variable tensors.
            inputs: arrays by input name; those that are missing get random values, the same as `bittrue run --seed`.
            numerics: whose arithmetic.
            seed: of random inputs.
        """
        session = self.session(model, numerics)
        results: dict[str, Any] = session.run(self.inputs(session, inputs, seed=seed))
        return results

    def inputs(
        self, model: Any, inputs: Mapping[str, Any] | None = None, numerics: str | None = None, seed: int = 0
    ) -> dict[str, Any]:
        """What `run` feeds with these arguments, for example for `assert_bit_equal(..., inputs=...)`."""
        from .runners.inputs import input_sets, inputs_of_levels

        session = self.session(model, numerics)
        values = input_sets(session.inputs, (), (seed,), None, inputs_of_levels(session.plan))[0].values
        return {**values, **(inputs or {})}

    def check(self, model: Any, numerics: str | None = None, **options: Any) -> Any:
        """`bittrue.check_model` on a path, bytes or a model; fails on findings that are errors.

        Returns:
            The result (`bittrue.check.CheckResult`), for what else it found.
        """
        __tracebackhide__ = True
        from .check import check_model

        result = check_model(model, numerics or self.numerics, **options)
        errors = [finding for finding in result.findings if finding.severity == "error"]
        if errors:
            lines = [f"  {finding.code} {_place(finding)}{finding.message}" for finding in errors[:_SHOWN]]
            more = [f"  and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
            count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
            pytest.fail("\n".join([f"bittrue check: {count}", *lines, *more]), pytrace=False)
        return result

    def compare(self, a: Any, b: Any, inputs: Any = None, **options: Any) -> Any:
        """`bittrue.compare_models`: the result (`bittrue.compare.result.CompareResult`), equal or not."""
        from .compare.comparison import compare_models

        return compare_models(a, b, inputs, **options)

    def assert_equal_runs(self, a: Any, b: Any, inputs: Any = None, **options: Any) -> None:
        """Fail unless two sides give every tensor that both show the same bytes.

        Args:
            a, b: sides, for example ``"model.tflite"`` and ``"trace:dump"``; see `bittrue.compare_models`.
            inputs, options: of `bittrue.compare_models`, for example ``seeds=range(3)``.
        """
        __tracebackhide__ = True
        result = self.compare(a, b, inputs, **options)
        if not result.equal:
            pytest.fail(_difference(result), pytrace=False)

    def assert_bit_equal(self, actual: Any, expected: Any, **options: Any) -> None:
        """`bittrue.testing.assert_bit_equal`."""
        __tracebackhide__ = True
        from .testing import assert_bit_equal

        assert_bit_equal(actual, expected, **options)


def _place(finding: Any) -> str:
    place = ", ".join(filter(None, (finding.source, finding.tensor and f"'{finding.tensor}'", finding.place)))
    return f"{place}: " if place else ""


def _difference(result: Any) -> str:
    """The first tensor that differs, and why."""
    different = [pair for pair in result.pairs if not pair.equal]
    lines = [f"{len(different)} of {len(result.pairs)} tensors differ: {result.a.title} against {result.b.title}"]
    if not result.pairs:
        lines.append("  no tensor of one side was matched with one of the other")
    for pair in different[:1]:
        found = pair.cumulative
        lines.append(
            f"  first:   '{pair.a}' ({pair.operator or 'input'}): {found.differing:,} of {found.elements:,} elements"
        )
        if found.worst is not None:
            lines.append(f"  worst:   element {list(found.worst.element)}: A {found.worst.a}, B {found.worst.b}")
        if pair.note:
            lines.append(f"  note:    {pair.note}")
        if pair.verdict is not None:
            lines.append(f"  verdict: {pair.verdict.text}")
            if pair.verdict.command:
                lines.append(f"  replay:  {pair.verdict.command}")
    return "\n".join(lines)


@pytest.fixture(scope="session")
def bittrue(request: pytest.FixtureRequest) -> Bittrue:
    """Run models bit for bit, and compare: `run`, `check`, `compare`, `assert_bit_equal`, `assert_equal_runs`."""
    return Bittrue(request.config.getoption("--bittrue-numerics"))
