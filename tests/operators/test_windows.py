"""The one window function against positions counted one by one, under every rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.operators.core.geometry import PADDINGS, SIZES, Window, WindowError, meeting, transposed_window, window

small = st.integers(1, 7)
WILD = st.sampled_from((-(2**70), -(2**31), -1, 0, 1, 2, 3, 32767, 32768, 2**31 - 1, 2**31, 2**63, 2**70))


@st.composite
def found(draw: st.DrawFn) -> Window:
    """Any window that some rules give."""
    rules = draw(st.sampled_from(list(product(PADDINGS, SIZES))))
    pads = draw(st.tuples(st.integers(-3, 6), st.integers(-3, 6)))
    try:
        return window(draw(st.integers(0, 14)), *(draw(small) for _ in range(3)), pads, *rules)
    except WindowError:
        return window(9, draw(small), draw(small))


def _positions(one: Window) -> list[list[int]]:
    return [[o * one.stride - one.before + t * one.dilation for t in range(one.taps)] for o in range(one.out)]


@given(found())
def test_counts_are_those_of_positions_counted_one_by_one(one: Window) -> None:
    places = _positions(one)
    assert one.counts().tolist() == [sum(0 <= p < one.size for p in row) for row in places]
    assert one.counts("padded").tolist() == [
        sum(-one.before <= p < one.size + one.after for p in row) for row in places
    ]
    assert one.counts("taps").tolist() == [one.taps]
    if one.out:
        assert one.reached == places[-1][-1] - places[0][0] + 1
        assert one.behind == (places[-1][0] >= one.size)


@given(found())
def test_a_tap_meets_the_positions_that_lie_inside(one: Window) -> None:
    places = _positions(one)
    for tap in range(one.taps):
        inside = [(o, row[tap]) for o, row in enumerate(places) if 0 <= row[tap] < one.size]
        windows, positions = one.met(tap)
        rows = range(*windows.indices(one.out)), range(*positions.indices(one.size))
        assert list(zip(*rows, strict=True)) == inside
        assert tap in one.taps_met() or not inside


@given(st.integers(1, 14), small, small, small)
def test_same_gives_a_window_for_every_stride(size: int, taps: int, stride: int, dilation: int) -> None:
    for name, rule in PADDINGS.items():
        if rule is None or (not rule.dilated and dilation > 1):
            continue
        one = window(size, taps, stride, dilation, padding=name)
        assert one.out == -(-size // stride), name
        lower, total = name.startswith("same_lower"), one.before + one.after
        if total >= 0:
            if rule.ahead != "half":
                undilated = max(0, (one.out - 1) * stride + taps - size)
                assert one.before == (undilated // 2 if rule.ahead == "taps" else 0), name
            else:
                assert one.before - one.after in ((0, 1) if lower else (0, -1)), name
            assert total == max(0, (one.out - 1) * stride + one.reach - size), name
        else:
            assert total == one.reached - size, name
            assert rule.crops != "none", name


@given(st.integers(1, 14), small, small, small, st.integers(0, 3), st.integers(0, 3))
def test_a_transposed_window_is_the_window_over_its_result(
    size: int, taps: int, stride: int, dilation: int, before: int, after: int
) -> None:
    try:
        one = transposed_window(size, taps, stride, dilation, (before, after))
    except WindowError:
        return
    assert one == window(one.size, taps, stride, dilation, (before, after))


@given(WILD, WILD, WILD, WILD, st.tuples(WILD, WILD), WILD, st.sampled_from(list(product(PADDINGS, SIZES))))
def test_numbers_out_of_range_are_an_error_of_windows(
    size: int, taps: int, stride: int, dilation: int, pads: tuple[int, int], more: int, rules: tuple[str, str]
) -> None:
    for make in (
        lambda: window(size, taps, stride, dilation, pads, *rules),
        lambda: transposed_window(size, taps, stride, dilation, pads, more, rules[0]),
    ):
        try:
            one = make()
        except WindowError:
            continue
        assert 0 <= one.out < 2**33
        assert 0 <= one.size < 2**31


def test_a_last_window_behind_the_image_is_left_out_where_the_rule_says_so() -> None:
    assert window(5, 2, 3, 1, (0, 2), "explicit", "ceil").out == 3
    assert window(5, 2, 3, 1, (0, 2), "explicit", "ceil_clipped").out == 2
    assert window(3, 4, 4, 1, (0, 0), "explicit", "ceil_hanging").out == 1
    assert window(2, 3, 1, 1, (0, 0), "explicit", "ceil_hanging").out == 0
    with pytest.raises(WindowError, match="two windows begin behind"):
        window(2, 1, 1, 1, (0, 6), "explicit", "floor_binary32_clipped")


@pytest.mark.parametrize("stride", [1.0, "2", None, (1,)])
def test_what_is_no_integer_or_rule_is_an_error_of_windows(stride: Any) -> None:
    for make in (window, transposed_window):
        with pytest.raises(WindowError, match="not all integers"):
            make(5, 2, stride)
    with pytest.raises(WindowError, match="no rules"):
        window(5, 2, size="round")


def test_meeting_of_nothing_is_two_empty_slices() -> None:
    assert meeting(3, 2, 2, 5) == (slice(0, 0), slice(0, 0))
