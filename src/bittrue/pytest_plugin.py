"""The pytest plug-in: the fixture `bittrue`. It imports nothing of ours until a test asks for the fixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


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
        from .cli.inputs import gather

        values, _ = gather(self.session(model, numerics), (), seed, None)
        return {**values, **(inputs or {})}

    def assert_bit_equal(self, actual: Any, expected: Any, **options: Any) -> None:
        """`bittrue.testing.assert_bit_equal`."""
        __tracebackhide__ = True
        from .testing import assert_bit_equal

        assert_bit_equal(actual, expected, **options)


@pytest.fixture(scope="session")
def bittrue(request: pytest.FixtureRequest) -> Bittrue:
    """Run models bit for bit, and compare: `run`, `check`, `compare`, `assert_bit_equal`, `assert_equal_runs`."""
    return Bittrue(request.config.getoption("--bittrue-numerics"))
