"""NON_MAX_SUPPRESSION_V4 and _V5 against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.differential import check
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds


def case_of(
    boxes: np.ndarray,
    scores: np.ndarray,
    room: object,
    overlap: float = 0.5,
    score: float = 0.1,
    sigma: float | None = None,
    constants: int = 0x3C,
) -> Case:
    operands = [("f32", boxes), ("f32", scores), ("s32", np.array(room)), ("f32", np.array(overlap))]
    operands.append(("f32", np.array(score)))
    if sigma is None:
        return given_as("NON_MAX_SUPPRESSION_V4", None, operands, ["s32", "s32"], constants)
    operands.append(("f32", np.array(sigma)))
    return given_as("NON_MAX_SUPPRESSION_V5", None, operands, ["s32", "f32", "s32"], constants)


@st.composite
def cases(draw: st.DrawFn, soft: bool) -> Case:
    count = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(seeds))
    boxes = rng.random((count, 4)).astype(np.float32)
    if draw(st.booleans()):
        # Corners on a grid: equal boxes and boxes of no size.
        boxes = np.round(boxes * 4) / np.float32(4)
    scores = rng.random(count).astype(np.float32)
    if draw(st.booleans()):
        scores = np.round(scores * 4) / np.float32(4)
    if draw(st.integers(0, 5)) == 0:
        scores[rng.random(count) < 0.3] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0]))
    if draw(st.integers(0, 5)) == 0:
        boxes[rng.random((count, 4)) < 0.1] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0]))
    sigma = draw(st.sampled_from([0.0, 0.1, 0.5, 0.5, 3.0])) if soft else None
    limits = (draw(st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.5])), draw(st.sampled_from([-1.0, 0.0, 0.1, 0.25])))
    constants = draw(st.sampled_from([0x3C, 0x04]))
    return case_of(boxes, scores, draw(st.integers(0, count + 3)), *limits, sigma, constants)


@given(cases(False))
def test_non_max_suppression_v4(case: Case) -> None:
    check(*case)


@given(cases(True))
def test_non_max_suppression_v5(case: Case) -> None:
    check(*case)


BOXES = np.float32([[0, 0, 1, 1], [0, 0, 1, 0.75], [2, 2, 3, 3]])
SCORES = np.float32([0.5, 0.75, 0.25])


def test_literal() -> None:
    content, (feed,) = case_of(BOXES, SCORES, 3)
    indices, count = bittrue.load(content).prepare().run(*feed).values()
    assert indices.tolist() == [1, 2, 0]
    assert count == 2
    content, (feed,) = case_of(BOXES, SCORES, 3, overlap=0.9, sigma=0.5)
    indices, scores, count = bittrue.load(content).prepare().run(*feed).values()
    assert indices.tolist() == [1, 0, 2]
    # The overlap of the first two is 3/4: exp(-9/16) times 1/2.
    assert scores.tolist() == [0.75, 0.5 * float(np.float32(np.exp(-9 / 16))), 0.25]
    assert count == 3


def test_scores_decay_by_the_exponential_of_the_c_library() -> None:
    """exp of -0.046024140 lies 0.499979 units above a number of 32 bits, and the library takes the one above."""
    rows = "0.43848777 0.7678015 0.7770276 0.45724383 0.37079996 0.15504979 0.7242851 0.31677192 0.10978527 0.2628105"
    rows += " 0.60092306 0.64929205 0.4408319 0.24208042 0.8928163 0.48274407 0.7660181 0.79592556 0.18183205 0.2237106"
    scores = np.float32([0.901126, 0.47183457, 0.50007355, 0.6956524, 0.6580353])
    boxes = np.float32(rows.split()).reshape(5, 4)
    case = case_of(boxes, scores, 3, score=-1.0, sigma=0.5)
    check(*case)
    found = bittrue.load(case[0]).prepare().run(boxes, scores)["t7"]
    assert found[2] == np.float32(0.57393104)


def test_refusals() -> None:
    refused_by_both(case_of(BOXES, SCORES, -1), "BT-SHAPE-NEGATIVE")
    refused_by_both(case_of(BOXES, SCORES[:2], 2), "BT-NMS")
    refused_by_both(case_of(BOXES[:, :3], SCORES, 2), "BT-NMS")
    refused_by_both(case_of(BOXES, SCORES, [2]), "BT-SHAPE-RANK")
    refused_by_both(case_of(BOXES, SCORES, 2, sigma=-1.0), "BT-NMS-SIGMA")
