"""mfcc against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check, only_output
from support.flexbuffer import packed
from support.selection import Case, refused_by_both
from support.strategies import seeds


def model(
    shape: tuple[int, ...], low: float = 20, high: float = 4000, channels: int = 40, coefficients: int = 13
) -> bytes:
    options = {
        "lower_frequency_limit": low,
        "upper_frequency_limit": high,
        "filterbank_channel_count": channels,
        "dct_coefficient_count": coefficients,
    }
    return single("CUSTOM:Mfcc", packed(options), [T("f32", shape), T("s32", (1,))], [T("f32", ())])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.sampled_from([2, 3, 9, 33, 129, 257, 513])))
    channels = draw(st.integers(1, 64))
    low = draw(st.sampled_from([0, 20, 20.75, 300]))
    high = low + draw(st.sampled_from([1, 100, 1000.5, 3980, 7000, 30000]))
    rate = draw(st.sampled_from([8000, 16000, 16000, 44100, 1, 2**31 - 1]))
    rng = np.random.default_rng(draw(seeds))
    x = (rng.standard_normal(shape) ** 2).astype(np.float32)
    x[rng.random(shape) < draw(st.sampled_from([0, 0, 0.5, 1]))] = draw(st.sampled_from([0, 1e-30, np.inf]))
    content = model(shape, low, high, channels, draw(st.integers(1, channels)))
    return content, [[x, np.int32([rate])]]


@given(cases())
def test_mfcc(case: Case) -> None:
    check(*case)


def test_a_second_of_speech() -> None:
    x = np.random.default_rng(0).standard_normal((1, 98, 257)).astype(np.float32) ** 2
    check(model((1, 98, 257)), [[x, np.int32([16000])]])


@pytest.mark.parametrize("shape", [(1, 0, 257), (0, 2, 257), (1, 2, 257), (1, 2, 1)])
def test_nothing_to_compute(shape: tuple[int, ...]) -> None:
    check(model(shape, coefficients=13 if 0 in shape else 0), [[np.zeros(shape, np.float32), np.int32([0])]])


def test_literal() -> None:
    """Silence: every channel holds log(1e-12), so that only the constant coefficient is not about 0."""
    out = only_output(model((1, 1, 257)), np.zeros((1, 1, 257), np.float32), np.int32([16000]))
    assert out[0, 0, 0] == np.float32(np.sqrt(2 / 40) * 40 * np.log(1e-12))
    assert (abs(out[0, 0, 1:]) < 1e-6).all()


@pytest.mark.parametrize(
    ("options", "rate", "code"),
    [
        ({}, 0, "BT-RUN-MFCC"),
        ({}, -16000, "BT-RUN-MFCC"),
        ({"channels": 4}, 16000, "BT-MFCC"),
        ({"coefficients": -1}, 16000, "BT-MFCC"),
        ({"low": 4000}, 16000, "BT-MFCC"),
        ({"low": -1}, 16000, "BT-MFCC"),
    ],
)
def test_refusals(options: dict[str, int], rate: int, code: str) -> None:
    x = np.ones((1, 1, 257), np.float32)
    refused_by_both((model((1, 1, 257), **options), [[x, np.int32([rate])]]), code)
