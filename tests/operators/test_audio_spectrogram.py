"""audio_spectrogram against the real runtime."""

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


def model(shape: tuple[int, ...], window: int, stride: int, squared: bool = True) -> bytes:
    options = packed({"window_size": window, "stride": stride, "magnitude_squared": squared})
    return single("CUSTOM:AudioSpectrogram", options, [T("f32", shape)], [T("f32", ())])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    window = draw(st.one_of(st.integers(2, 40), st.sampled_from([63, 64, 65, 400, 480, 512, 640, 1024])))
    stride = draw(st.integers(1, 2 * window))
    shape = (draw(st.integers(1, 4 * window)), draw(st.sampled_from([1, 1, 2, 3])))
    rng = np.random.default_rng(draw(seeds))
    x = rng.standard_normal(shape) if draw(st.booleans()) else rng.integers(-2, 3, shape)
    return model(shape, window, stride, draw(st.booleans())), [[x.astype(np.float32)]]


@given(cases())
def test_audio_spectrogram(case: Case) -> None:
    check(*case)


def test_a_second_of_speech() -> None:
    x = np.random.default_rng(0).standard_normal((16000, 1)).astype(np.float32)
    check(model((16000, 1), 480, 160), [[x]])


def test_literal() -> None:
    # Weights 0 and 1: the sum and the difference of 0 and x[j + 1], squared.
    assert only_output(model((3, 1), 2, 1), np.float32([[1], [2], [3]])).tolist() == [[[4, 4], [9, 9]]]


@pytest.mark.parametrize(
    ("shape", "window", "stride", "code"),
    [
        ((8, 1), 1, 1, "BT-SPECTROGRAM"),
        ((8, 1), 4, 0, "BT-SPECTROGRAM"),
        ((8,), 4, 1, "BT-SHAPE-RANK"),
    ],
)
def test_refusals(shape: tuple[int, ...], window: int, stride: int, code: str) -> None:
    refused_by_both((model(shape, window, stride), [[np.ones(shape, np.float32)]]), code)
