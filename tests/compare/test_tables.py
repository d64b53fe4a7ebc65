"""Where two numerics differ, and the numbers that tell their rules apart."""

from __future__ import annotations

from functools import cache

import pytest

import bittrue
from bittrue import numerics
from bittrue.compare.tables import compare_numerics
from bittrue.rules import formula, rules, slots
from bittrue.rules.examples import example

PAIRS = [("litert", name) for name in numerics.names()[1:]] + [("litert-optimized", "xnnpack"), ("onnx", "onnxruntime")]
compared = cache(compare_numerics)
# Slots whose rules differ in whole formulas or in which elements they hold for: the formulas are the answer there.
BY_FORMULA = {
    "activation",
    "beyond_32_bits",
    "byte_products",
    "dot",
    "extreme",
    "gate_normalization",
    "hard_swish",
    "lanes",
    "log_softmax",
    "multiply_add",
    "order",
    "plain_range",
    "power",
    "quantize_asymmetric",
    "quantize_symmetric",
    "real_gelu",
    "real_normalization",
    "real_product",
    "real_softmax",
    "real_sum",
    "recurrence",
    "row_product",
    "row_sums",
    "scale_back",
    "slope",
    "sum_of_products",
    "table",
    "zero_points",
}


def test_a_table_does_not_differ_from_itself() -> None:
    for name in numerics.names():
        found = compare_numerics(name, name)
        assert not found.differences
        assert not found.examples
        assert found.same > 30


@pytest.mark.in_turns(5)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_difference_is_found_in_both_directions(first: str, second: str) -> None:
    there, back = compared(first, second), compared(second, first)
    assert there.differences
    assert there.same == back.same
    swapped = {(d.operator, d.signatures, d.condition[::-1], d.slot, d.rules[::-1]) for d in back.differences}
    assert {(d.operator, tuple(sorted(d.signatures)), d.condition, d.slot, d.rules) for d in there.differences} == {
        (operator, tuple(sorted(signatures)), *rest) for operator, signatures, *rest in swapped
    }


def test_what_is_known_to_differ() -> None:
    older = compare_numerics("litert", "litert@1.2", "fully_connected")
    assert ("rescale", ("binary64_multiply_away", "q31_two_step_up_away")) in {
        (d.slot, d.rules) for d in older.differences if "s8 s8 s32 -> s8" in d.signatures
    }
    switched = compare_numerics("litert", "single-rounding", "conv")
    assert {(d.slot, d.rules) for d in switched.differences if "s8 s8 s32 -> s8" in d.signatures} == {
        ("rescale", ("q31_two_step_up_away", "q31_one_step_up"))
    }
    shown = switched.examples["rescale", "q31_two_step_up_away", "q31_one_step_up"]
    assert shown is not None
    assert str(shown) == "accumulator 1 times 0.25: 1 and 0"


def test_every_differing_pair_of_rules_has_an_example_or_formulas() -> None:
    for first, second in PAIRS:
        for (slot, one, other), shown in compared(first, second).examples.items():
            if shown is not None:
                assert shown.results[0] != shown.results[1]
            elif slot != "align":
                assert slot in BY_FORMULA, f"{slot}: no example tells {one} from {other}"
            assert formula(slot, one) != formula(slot, other)


def test_no_example_for_equal_rules() -> None:
    for slot in slots():
        for name in rules(slot):
            assert example(slot, name, name) is None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(bittrue.InputError, match="BT-NUMERICS"):
        compare_numerics("litert", "nobody")
