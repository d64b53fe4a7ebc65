"""Link 3 of the equality argument: exact oracle = NumPy = C++ scalar, for every rescale rule."""

from __future__ import annotations

import numpy as np
import pytest

from bittrue.rules import rescale, store

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")


def accumulators(multiplier: int, exponent: int, rng: np.random.Generator) -> np.ndarray:
    """Ties of the real product and their neighbours, ends of the range, and random values."""
    real = multiplier * 2.0 ** (exponent - 31)
    halves = (np.arange(-2000, 2000) + 0.5) / real
    ties = np.round(halves[np.abs(halves) < 2**31 - 4]).astype(np.int64)
    near = np.concatenate([ties + d for d in (-1, 0, 1)])
    ends = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1])
    return np.concatenate([near, ends, rng.integers(-(2**31), 2**31, 20_000), rng.integers(-(2**16), 2**16, 20_000)])


REALS = [2.0**-k for k in range(24)] + [1.5, 3.0, 0.75, 1 - 2**-24, 2**-31]


@pytest.mark.parametrize("rule", sorted(rule for rule in rescale.RULES if rescale.RULES[rule].integral))
def test_native_equals_numpy(rule: str) -> None:
    assert rule in native.rescale_rules
    rng = np.random.default_rng(11)
    for real in REALS + list(np.exp(rng.uniform(-16, 2, 60))):
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
        addend, second = (
            (int(rng.integers(-(2**30), 2**30)) >> int(rng.integers(0, 31))),
            np.float32(rng.uniform(0.1, 3)),
        )
        more = {"addend": np.array([addend], np.int32), "second": np.array([second])}
        native.rescale(rule, acc, multiplier, exponent, factor, out, addend, float(second))
        used = {name: more[name] for name in rescale.RULES[rule].operands}
        np.testing.assert_array_equal(out, rescale.apply(rule, acc, {**prepared, **used}))


@pytest.mark.parametrize(
    "finish", [f"zero_point_{how}_then_clamp" for how in ("half_up", "plus_half_up", "away", "half_away")]
)
@pytest.mark.parametrize("rule", sorted(rule for rule in rescale.RULES if not rescale.RULES[rule].integral))
def test_real_rules_with_their_stores(rule: str, finish: str) -> None:
    """Real products are rounded when they are stored."""
    rng = np.random.default_rng(12)
    for real in [*REALS, 0.49999997, 1e9, 1e30, *np.exp(rng.uniform(-16, 2, 40))]:
        prepared = rescale.prepare(rule, real)
        factor, zero_point = float(prepared["factor"]), int(rng.integers(-300, 300))
        acc = accumulators(1 << 30, max(int(np.frexp(real)[1]), -20), rng)
        for low, high in ((-128, 127), (0, 255), (-(2**31), 2**31 - 1)):
            out = np.empty_like(acc)
            native.requantize(rule, finish, acc, 0, 0, factor, zero_point, low, high, out)
            expected = store.RULES[finish](rescale.apply(rule, acc, prepared), zero_point, low, high)
            np.testing.assert_array_equal(out, expected)


def test_every_rule_has_a_twin() -> None:
    assert sorted(native.rescale_rules) == sorted(rescale.RULES)


def test_bad_calls_raise() -> None:
    values = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="no native rescale rule"):
        native.rescale("no_such_rule", values, 1, 0, 0.0, values.copy())
    with pytest.raises(ValueError, match="same length"):
        native.rescale("q31_one_step_up", values, 1 << 30, 0, 0.0, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="real numbers"):
        native.rescale("binary32_multiply", values, 0, 0, 1.0, values.copy())
    for rule, finish in (("binary32_multiply", "zero_point_then_clamp"), ("q31_one_step_up", "no such rule")):
        with pytest.raises(ValueError, match="no native store rule"):
            native.requantize(rule, finish, values, 0, 0, 1.0, 0, -1, 1, values.copy())
