"""Slot expert_choice: whom a row asks."""

from __future__ import annotations

import numpy as np

from bittrue.rules import expert_choice


def test_choices_are_told_apart() -> None:
    """Shares of all experts add up to less than 1, those of the best ones to 1; these differ in who comes first."""
    scores = np.float32([[0, 1, 2]])
    sums = {name: rule.apply(scores, None, 2, False).factors.sum() for name, rule in expert_choice.RULES.items()}
    assert sums["softmax_then_best"] < 0.95 < sums["best_then_softmax"]
    befores = {name: rule.before for name, rule in expert_choice.RULES.items()}
    assert befores["softmax_then_best"] is None
    for name, most_first in (("best_then_softmax", True), ("best_then_softmax_fewest_first", False)):
        before = befores[name]
        assert before is not None
        assert (before(3, 2), before(2, 3), before(2, 2)) == (most_first, not most_first, False)


def test_of_equal_scores_the_later_expert_comes_first() -> None:
    for rule in expert_choice.RULES.values():
        assert rule.apply(np.zeros((1, 4), np.float32), None, 2, False).experts.tolist() == [[3, 2]]
