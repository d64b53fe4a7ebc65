"""Bits and bytes that arrive otherwise than they were sent: bits that are stuck, other signs, other orders of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .case import Case, Hypothesis, Values
from .common import Array, cause, of_inputs, of_result
from .constants import weights_read
from .layers import last_layer, own_padding
from .operands import operands
from .signedness import computed_wide

Change = Callable[[Array], Array]


def delivery(case: Case) -> Iterator[Hypothesis]:
    """Single bits of the result and of the inputs, inputs of the other sign, inputs in the other layout."""
    kind = case.theirs[0].dtype
    if kind.kind in "iu" and kind.itemsize <= 2:
        for name, text, change in _bits(kind):
            yield of_result(f"result's {name}", f"of every value of the result {text}", change)
    graph = case.segment.graph
    names = [graph.tensors[i].name for i in graph.inputs]
    for number, name in enumerate(names[:4]):
        value = case.values[0][name]
        if value.dtype.kind not in "iu" or value.dtype.itemsize > 2:
            continue
        whose = "input" if len(names) == 1 else f"input {number + 1}"
        for title, text, change in _bits(value.dtype):
            yield of_inputs(f"{whose}'s {title}", f"of every value of {whose} {text}", {name: change})
        if value.ndim == 4:
            text = f"{whose} is read with channels last, though it has them first"
            yield of_inputs(f"{whose} read as NHWC", text, {name: _as_last})
    yield from _signed(case)


def _bits(kind: np.dtype) -> Iterator[tuple[str, str, Change]]:
    plain = np.dtype(f"u{kind.itemsize}")
    for bit in range(8 * kind.itemsize):
        one = plain.type(1 << bit)
        ways = (
            ("stuck at 1", np.bitwise_or, one),
            ("stuck at 0", np.bitwise_and, ~one),
            ("inverted", np.bitwise_xor, one),
        )
        for words, function, mask in ways:
            number = f"bit {bit} {words}"
            yield number, f"bit {bit} (0x{1 << bit:02x}) is {words}", _on(plain, function, mask)


def _on(plain: np.dtype, function: Callable[..., Array], mask: object) -> Change:
    return lambda v: function(np.ascontiguousarray(v).view(plain), mask).view(v.dtype)


def _as_last(value: Array) -> Array:
    n, c, h, w = value.shape
    return np.ascontiguousarray(value.reshape(n, h, w, c).transpose(0, 3, 1, 2))


def _signed(case: Case) -> Iterator[Hypothesis]:
    """Unsigned inputs and weights that are taken for signed ones; `signedness` has the reverse."""
    plan = case.plan
    if any(plan.tensors[i].dtype == "u8" for i in plan.inputs):
        text = "the input's values are read as signed bytes; its zero point stays"
        way = (
            {"plan": own_padding, "layer": {"plain": True}}
            if last_layer(plan) is not None
            else {"compute": computed_wide}
        )
        yield Hypothesis(cause("input quantized values read as signed bytes", text), "values", values=_bytes, **way)
    points = next((o.zero_points for o in operands(case) if o.role == "weight"), None)
    weights = weights_read(case)
    if points is None or weights is None or weights.dtype != "u8":
        return

    def signed(w: Array) -> Array:
        return np.where(w + points.reshape(-1, *(1,) * (w.ndim - 1)) > 127, w - 256, w)

    text = "the weights are read as signed bytes; their zero point stays"
    yield Hypothesis(cause("weights read as signed", text), "weights", layer={"weights": signed})


def _bytes(given: object, position: int) -> Values:
    return {name: v.view(np.int8) if v.dtype == np.uint8 else v for name, v in given[position].items()}  # type: ignore[index]
