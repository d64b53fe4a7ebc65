"""Faults of accumulators: narrow registers, saturation on the way, real numbers, bits and products that are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...operators import Step
from ..result import Cause
from .case import Case, Hypothesis
from .layers import last_layer

Array = np.ndarray
# Products of one layer above which sums are not made one product at a time.
_MOST_PRODUCTS = 40_000_000


def registers(case: Case) -> Iterator[Hypothesis]:
    """Other registers for the sums of the segment's layer."""
    step = last_layer(case.plan)
    if step is None:
        return
    for bits in (16, 20, 24, 32):
        yield _register(f"accumulator wraps at {bits} bits", f"sums wrap at {bits} bits", _wrapping(bits))
        yield _register(f"accumulator saturates at {bits} bits", f"sums saturate at {bits} bits", _saturating(bits))
    for title, dtype in (("binary32", np.float32), ("binary16", np.float16)):
        text = f"the whole sum is rounded to {title}"
        yield _register(f"accumulator rounded to {title}", text, _rounded(dtype))
    for bits in range(1, 9):
        yield _register(
            f"accumulator without its lowest {bits} bits",
            f"sums lose their lowest {bits} bits",
            _shifted(bits),
        )
        yield _register(
            f"accumulator without its lowest {bits} bits",
            f"sums lose their lowest {bits} bits, toward zero",
            _shifted(bits, toward_zero=True),
        )
    if step.work * len(case.values) > _MOST_PRODUCTS:
        return
    for bits in (16, 24):
        yield _products(
            f"every sum saturates at {bits} bits", f"every sum of products saturates at {bits} bits", _one_by_one(bits)
        )
    yield _products(
        "pairs of products saturate at 16 bits", "sums of two products saturate at 16 bits", _pairs(quantized=False)
    )
    yield _products(
        "pairs of products saturate at 16 bits",
        "sums of two products of unsigned values and signed weights saturate at 16 bits",
        _pairs(quantized=True),
    )
    for title, dtype in (("binary32", np.float32), ("binary16", np.float16)):
        yield _products(f"accumulator in {title}", f"products are added in {title}", _real(dtype))
    yield _products("products wrap at 16 bits", "every product is cut to 16 bits", _narrow)


def _register(name: str, text: str, change: Callable[[Array], Array]) -> Hypothesis:
    return Hypothesis(_cause(name, text), "register", layer={"register": change})


def _products(name: str, text: str, change: Callable[[Step, Array, Array], Array]) -> Hypothesis:
    return Hypothesis(_cause(name, text), "products", layer={"products": change})


def _wrapping(bits: int) -> Callable[[Array], Array]:
    half = 1 << (bits - 1)
    return lambda acc: ((acc + half) & (2 * half - 1)) - half


def _shifted(bits: int, toward_zero: bool = False) -> Callable[[Array], Array]:
    if toward_zero:
        return lambda acc: np.sign(acc) * ((np.abs(acc) >> bits) << bits)
    return lambda acc: (acc >> bits) << bits


def _saturating(bits: int) -> Callable[[Array], Array]:
    half = 1 << (bits - 1)
    return lambda acc: np.clip(acc, -half, half - 1)


def _rounded(dtype: Any) -> Callable[[Array], Array]:
    def change(acc: Array) -> Array:
        with np.errstate(over="ignore"):
            real = acc.astype(dtype).astype(np.float64)
        return np.where(np.isfinite(real), real, np.sign(acc) * 65504.0).astype(np.int64)

    return change


def _one_by_one(bits: int) -> Callable[[Step, Array, Array], Array]:
    saturate = _saturating(bits)

    def change(step: Step, rows: Array, weights: Array) -> Array:
        acc = np.zeros((rows.shape[0], weights.shape[2]), np.int64)
        for k in range(rows.shape[1]):
            acc = saturate(acc + rows[:, k] * weights[:, k])
        return acc

    return change


def _pairs(quantized: bool) -> Callable[[Step, Array, Array], Array]:
    """With `quantized`: unsigned values times weights; what saturation takes away is missing in the exact sum."""
    saturate = _saturating(16)

    def change(step: Step, rows: Array, weights: Array) -> Array:
        acc = np.zeros((rows.shape[0], weights.shape[2]), np.int64)
        move = 0
        if quantized:
            move = int(step["input_zero_point"]) + (128 if int(step["input_zero_point"]) < 0 else 0)
        for k in range(0, rows.shape[1], 2):
            pair = (rows[:, k : k + 2] + move) * weights[:, k : k + 2]
            exact = pair.sum(axis=1)
            acc += saturate(exact) - (move * weights[:, k : k + 2]).sum(axis=1)
        return acc

    return change


def _real(dtype: Any) -> Callable[[Step, Array, Array], Array]:
    def change(step: Step, rows: Array, weights: Array) -> Array:
        acc = np.zeros((rows.shape[0], weights.shape[2]), dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(rows.shape[1]):
                acc = acc + (rows[:, k] * weights[:, k]).astype(dtype)
        if not np.isfinite(acc).all():
            raise ValueError("sums leave the type")
        return acc.astype(np.int64)

    return change


def _narrow(step: Step, rows: Array, weights: Array) -> Array:
    wrap = _wrapping(16)
    acc = np.zeros((rows.shape[0], weights.shape[2]), np.int64)
    for k in range(rows.shape[1]):
        acc += wrap(rows[:, k] * weights[:, k])
    return acc


def _cause(name: str, text: str) -> Cause:
    return Cause(name, f"{text}: a fault", "range", False)
