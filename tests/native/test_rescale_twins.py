"""Link 3 of the equality argument: exact oracle = NumPy = C++ scalar, for every rescale rule."""

from __future__ import annotations

import numpy as np
import pytest

from bittrue.rules import rescale

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")


def accumulators(multiplier: int, exponent: int, rng: np.random.Generator) -> np.ndarray:
    """Ties of the real product and their neighbours, ends of the range, and random values."""
    real = multiplier * 2.0 ** (exponent - 31)
    halves = (np.arange(-2000, 2000) + 0.5) / real
    ties = np.round(halves[np.abs(halves) < 2**31 - 4]).astype(np.int64)
    near = np.concatenate([ties + d for d in (-1, 0, 1)])
    ends = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1])
    return np.concatenate([near, ends, rng.integers(-(2**31), 2**31, 20_000), rng.integers(-(2**16), 2**16, 20_000)])


@pytest.mark.parametrize("rule", sorted(rescale.RULES))
def test_native_equals_numpy(rule: str) -> None:
    assert rule in native.rescale_rules
    rng = np.random.default_rng(11)
    reals = [2.0**-k for k in range(24)] + [1.5, 3.0, 0.75, 1 - 2**-24, 2**-31] + list(np.exp(rng.uniform(-16, 2, 60)))
    for real in reals:
        try:
            prepared = rescale.prepare(rule, real)
        except ValueError:
            # tests/rules says which multipliers a rule knows.
            continue
        if rule == "q15_one_step_up" and not -31 <= int(prepared["exponent"]) < 8:
            continue
        multiplier = int(prepared.get("multiplier", np.int64(0)))
        exponent = int(prepared.get("exponent", np.int64(0)))
        factor = float(prepared.get("factor", np.float64(0)))
        encoded = rescale.prepare("q31_two_step_up_away", real)
        acc = accumulators(int(encoded["multiplier"]) or 1, int(encoded["exponent"]), rng)
        out = np.empty_like(acc)
        native.rescale(rule, acc, multiplier, exponent, factor, out)
        np.testing.assert_array_equal(out, rescale.apply(rule, acc, prepared))


def test_every_rule_has_a_twin() -> None:
    assert sorted(native.rescale_rules) == sorted(rescale.RULES)


def test_bad_calls_raise() -> None:
    values = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="no native rescale rule"):
        native.rescale("no_such_rule", values, 1, 0, 0.0, values.copy())
    with pytest.raises(ValueError, match="same length"):
        native.rescale("q31_one_step_up", values, 1 << 30, 0, 0.0, np.zeros(2, np.int64))
