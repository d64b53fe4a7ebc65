"""Every rule of the slots `rescale` and `store` tells its roundings as they are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.explain.decimals import HALF, decimal, rounded, tie_distance
from bittrue.explain.rescaling import NARRATORS, multiplier_of, rescale
from bittrue.explain.storing import store
from bittrue.rules import rescale as rules
from bittrue.rules import store as stores

REALS = (0.25, 0.5, 0.0625, 0.0078125, 0.75, 0.3, 0.1, 0.0123, 0.00321, 0.000457, 1.7, 2.0, 300.5)
ACCUMULATORS = [0, 1, -1, 2, -2, 5, -5, 6, -6, 254, -254, 4095, -4096, 123457, -987654, 2**24 + 1, 2**31 - 1, -(2**31)]
OPERANDS = {"addend": np.int32(3), "second": np.float32(0.75)}


def _prepared(name: str, real: float) -> dict[str, np.generic] | None:
    rule = rules.RULES[name]
    try:
        prepared = rules.prepare(name, real)
    except ValueError:
        return None
    return {**{k: a[()] for k, a in prepared.items()}, **{k: OPERANDS[k] for k in rule.operands}}


def _accumulators(name: str) -> list[int]:
    # Nine bits are the domain of one rule.
    return [acc for acc in ACCUMULATORS if name != "q8_one_step_up" or abs(acc) < 512]


@pytest.mark.parametrize("name", sorted(rules.RULES))
def test_every_rule_is_told_to_its_end(name: str) -> None:
    told = 0
    for real in REALS:
        values = _prepared(name, real)
        if values is None:
            continue
        for acc in _accumulators(name):
            found = rescale(name, acc, values)
            with np.errstate(all="ignore"):
                expected = rules.RULES[name].apply(np.asarray(acc), {k: np.asarray(v) for k, v in values.items()})[()]
            assert found.value == expected
            assert found.lines[-1].value.rstrip("…").replace(",", "").split(".")[0].lstrip("-").isdigit()
            told += 1
    assert told > 20


def test_no_rule_is_left_out() -> None:
    assert set(NARRATORS) == set(rules.RULES)


@pytest.mark.parametrize("name", [n for n, rule in rules.RULES.items() if not rule.operands])
def test_exact_values_and_tie_distances_are_those_of_fractions(name: str) -> None:
    for real in REALS:
        values = _prepared(name, real)
        if values is None:
            continue
        prepared = rules.prepare(name, real)
        if "multiplier" in prepared:
            bits = 15 if name.startswith("q15") else 31
            scale = int(prepared["multiplier"]) * Fraction(2) ** (int(prepared["exponent"]) - bits)
        else:
            scale = Fraction(float(prepared["factor"])) / (256 if name == "q8_one_step_up" else 1)
        assert multiplier_of(values, name) == scale
        for acc in _accumulators(name):
            exact = acc * scale
            assert rescale(name, acc, values).exact == exact
            nearest = min(abs(exact - (math.floor(exact) + k + HALF)) for k in (-1, 0, 1))
            assert tie_distance(exact) == nearest


def test_ties_are_called_ties() -> None:
    lines = rescale("q31_two_step_up_away", -2, _prepared("q31_two_step_up_away", 0.25) or {}).lines
    second = next(line for line in lines if line.label == "second rounding")
    assert (second.value, "exactly a tie: ties away from zero" in second.remark) == ("-1", True)
    one = rescale("q31_one_step_up", -2, _prepared("q31_one_step_up", 0.25) or {}).lines[-1]
    assert (one.value, "exactly a tie: ties up" in one.remark) == ("0", True)


@pytest.mark.parametrize("name", sorted(stores.RULES))
def test_every_store_rule_is_told(name: str) -> None:
    real = name.startswith("zero_point_") and name != "zero_point_then_clamp"
    for zero_point in (0, 3, -128, 127):
        for value in (0, 1, -1, 130, -130, 32767, 32768, -40000, 2**31 - 1, -(2**31), 2**31 - 100):
            for low, high in ((-128, 127), (-10, 20), (5, 3)):
                for given in (np.float32(value / 2), np.float64(value / 4)) if real else (value,):
                    lines, stored = store(name, given, zero_point, low, high)
                    with np.errstate(all="ignore"):
                        assert stored == int(stores.RULES[name](np.asarray(given), zero_point, low, high))
                    assert lines


def test_numbers_are_cut_where_decisions_are_clear() -> None:
    assert decimal(Fraction(25, 10)) == "2.5"
    assert decimal(Fraction(25, 10) - Fraction(1, 10**12)).startswith("2.499999999999")
    assert decimal(Fraction(-1, 3)) == "-0.333333…"
    assert decimal(Fraction(123456789)) == "123,456,789"
    assert [rounded(Fraction(5, 2), ties) for ties in ("even", "away", "up", "down", "trunc")] == [2, 3, 3, 2, 2]
