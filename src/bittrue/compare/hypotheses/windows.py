"""Faults of windows: padding at other ends or with other values, windows moved, dilation and strides mixed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...graph import Graph
from ...operators import Step, find
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values, change_steps, with_parameters
from .layers import last_layer, own_padding, padded
from .operands import operands

Change = Callable[[Step], "dict[str, Any]"]


def windows(case: Case) -> Iterator[Hypothesis]:
    """Changes of the geometry of the segment's last step with windows."""
    # Transposed convolutions pad their results, and keep two of the four numbers.
    plan = own_padding(case.plan)
    step = next((s for s in reversed(plan.steps) if "pad_bottom" in s.parameters), None)
    if step is None:
        return
    layer = last_layer(plan) is step
    if layer:
        yield from _quantized(step)
    elif (pool := pool_of(plan, step)) is not None and plan.steps == (step,):
        yield from _pools(case, pool)
    moves = list(_moves(step))
    both = "padding swapped on both axes"
    only = [name for name, _, _ in moves if name.startswith("padding swapped: ")]
    for name, text, change in moves:
        # Layers are computed where windows may lie anywhere, pools by their own kernels.
        yield Hypothesis(
            Cause(name, f"{text}: a fault", "geometry", False),
            "windows",
            plan=lambda plan, c=change: _changed(plan, c),  # type: ignore[misc]
            layer={"plain": True} if layer else {},
            # Where one axis alone has pads that differ, this is what swapping on both comes to.
            aliases=(_cause(both, "pads are swapped on both axes"),) if only == [name] else (),
        )


def _quantized(step: Step) -> Iterator[Hypothesis]:
    """What stands at padded positions."""
    quantized: tuple[tuple[str, str, Callable[[Step], int]], ...] = (
        (
            "padding with quantized value 0",
            "padded positions hold quantized value 0 instead of the zero point",
            lambda s: 0,
        ),
        ("padding with quantized value -128", "padded positions hold -128 instead of the zero point", lambda s: -128),
        ("padding with quantized value 127", "padded positions hold 127 instead of the zero point", lambda s: 127),
        ("padding with quantized value 128", "padded positions hold 128 instead of the zero point", lambda s: 128),
        (
            "padding with the output zero point",
            "padded positions hold the output's zero point",
            lambda s: int(s["output_zero_point"]),
        ),
        ("padding with quantized value 1", "padded positions hold 1 instead of the zero point", lambda s: 1),
        ("padding with the negated zero point", "padded positions hold -z", lambda s: -int(s["input_zero_point"])),
    )
    by_code: dict[int, list[tuple[Cause, Callable[[Step], int]]]] = {}
    for name, text, code in quantized:
        if code(step) != int(step["input_zero_point"]):
            by_code.setdefault(code(step), []).append((_cause(name, text), code))
    for found in by_code.values():
        (cause, code), *others = found
        aliases = tuple(other for other, _ in others)
        yield Hypothesis(cause, "padding", plan=own_padding, layer={"pad_code": code}, aliases=aliases)
    for name, mode in (("padding repeats the edge", "edge"), ("padding mirrors the image", "reflect")):
        text = f"{name} instead of holding the zero point"
        yield Hypothesis(_cause(name, text), "padding", plan=own_padding, layer={"pad_mode": mode})


def _moves(step: Step) -> Iterator[tuple[str, str, Change]]:
    top, bottom, left, right = (int(step[f"pad_{side}"]) for side in ("top", "bottom", "left", "right"))
    swaps = []
    if top != bottom:
        swaps.append(("top and bottom", {"pad_top": bottom, "pad_bottom": top}))
    if left != right:
        swaps.append(("left and right", {"pad_left": right, "pad_right": left}))
    if len(swaps) == 2:
        both = {**swaps[0][1], **swaps[1][1]}
        yield "padding swapped on both axes", "top and bottom, left and right pads are swapped", lambda s: both
    for ends, pads in swaps:
        yield f"padding swapped: {ends}", f"{ends} pads are swapped", _fixed(pads)
    if (top, bottom) != (left, right):
        exchanged = {"pad_top": left, "pad_bottom": right, "pad_left": top, "pad_right": bottom}
        yield "padding of height and width swapped", "the pads of height and width are swapped", lambda s: exchanged
    end = {"pad_top": 0, "pad_bottom": top + bottom, "pad_left": 0, "pad_right": left + right}
    begin = {"pad_top": top + bottom, "pad_bottom": 0, "pad_left": left + right, "pad_right": 0}
    if top or left:
        yield "padding all at the end", "all padding is at the bottom and right", lambda s: end
    if bottom or right:
        yield "padding all at the beginning", "all padding is at the top and left", lambda s: begin
    for down, across in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)):
        where = " and ".join(
            [
                *([("down" if down > 0 else "up")] if down else []),
                *([("right" if across > 0 else "left")] if across else []),
            ]
        )
        moved = {
            "pad_top": top - down,
            "pad_left": left - across,
            "pad_bottom": bottom + down,
            "pad_right": right + across,
        }
        yield f"windows moved {where} by one", f"every window begins one position further {where}", _fixed(moved)
    for axis, suffix, first in (("height", "h", "pad_top"), ("width", "w", "pad_left")):
        stride = int(step[f"stride_{suffix}"])
        if stride > 2:
            phase = {first: int(step[first]) - (stride - 1)}
            yield f"stride phase of {axis}", f"windows begin at the end of their stride in {axis}", _fixed(phase)
    if "dilation_h" in step.parameters:
        yield from _dilations(step)
    if step["stride_h"] != step["stride_w"]:
        strides = {"stride_h": step["stride_w"], "stride_w": step["stride_h"]}
        yield "strides of height and width swapped", "the strides of height and width are swapped", lambda s: strides


def _fixed(parameters: dict[str, Any]) -> Change:
    return lambda step: parameters


def _dilations(step: Step) -> Iterator[tuple[str, str, Change]]:
    one = {"dilation_h": 1, "dilation_w": 1}
    if step["dilation_h"] > 1 or step["dilation_w"] > 1:
        yield "dilation ignored", "the taps are neighbours", lambda s: one
        centred = dict(one)
        for suffix, first in (("h", "pad_top"), ("w", "pad_left")):
            centred[first] = int(step[first]) // int(step[f"dilation_{suffix}"])
        yield "dilation ignored", "the taps are neighbours, and padding is computed for that", lambda s: centred
    if step["dilation_h"] != step["dilation_w"]:
        swapped = {"dilation_h": step["dilation_w"], "dilation_w": step["dilation_h"]}
        yield "dilations of height and width swapped", "the dilations of both axes are swapped", lambda s: swapped


def _changed(plan: Plan, change: Change) -> Plan:
    plan = own_padding(plan)
    changed = next(s for s in reversed(plan.steps) if "pad_top" in s.parameters)
    return change_steps(plan, lambda step: with_parameters(step, **change(step)) if step is changed else None)


def _pools(case: Case, pool: Pool) -> Iterator[Hypothesis]:
    """Padding that takes part in averages and maxima."""

    def average(plan: Plan, values: Values, outside: int) -> np.ndarray:
        x, step = _input(plan, values)
        sums, _ = window_sums(x, step, pool, outside)
        area = step["filter_h"] * step["filter_w"]
        found = np.sign(sums) * ((np.abs(sums) + area // 2) // area)
        return np.clip(found, step["low"], step["high"]).astype(x.dtype)

    def largest(plan: Plan, values: Values, code: int) -> np.ndarray:
        x, step = _input(plan, values)
        found = pool.back(pool.view(x.astype(np.int64), step, code).max(axis=(3, 4)))
        ends = np.iinfo(x.dtype)
        low, high = step.parameters.get("low", ends.min), step.parameters.get("high", ends.max)
        return np.clip(found, low, high).astype(x.dtype)

    point = _zero_point(case)
    if pool.kind == "average":
        yield from _counts(case)
        if "average" not in case.step.rules:
            return
        for what, outside in (("zeros", 0), ("zero points", point or 0)):
            yield Hypothesis(
                _cause("average counts padding", f"padded positions count as {what} in the average"),
                "average",
                compute=lambda plan, values, c=outside: average(plan, values, c),  # type: ignore[misc]
            )
        return
    for name, code in (("quantized value 0", 0), ("the zero point", point)):
        kind = case.theirs[0].dtype
        if code is None or (kind.kind in "iu" and code == np.iinfo(kind).min):
            # The lowest value is never the maximum.
            continue
        yield Hypothesis(
            _cause(f"padding with {name}", f"padded positions hold {name} and take part in the maximum"),
            "padding",
            compute=lambda plan, values, c=code: largest(plan, values, c),  # type: ignore[misc]
        )


def _counts(case: Case) -> Iterator[Hypothesis]:
    """Averages by the system's own rule, divided by another number of taps."""
    node = case.segment.node
    own = node.attributes.get("counted", "inside")
    for counted in ("inside", "padded", "taps"):
        if counted == own:
            continue
        inside = counted == "inside"
        name = "average leaves padding out" if inside else "average counts padding"
        text = (
            "taps in the padding are left out of the divisor" if inside else "taps in the padding count in the divisor"
        )

        def graph(old: Graph, counted: str = counted) -> Graph:
            other = replace(node, attributes={**node.attributes, "counted": counted})
            return replace(old, nodes=tuple(other if n.index == node.index else n for n in old.nodes))

        yield Hypothesis(_cause(name, text), "average", graph=graph)


def _zero_point(case: Case) -> int | None:
    """That of what the pool reads; None where only quantized values are known."""
    return next((int(o.zero_points[0]) for o in operands(case) if o.role == "input"), None)


def _input(plan: Plan, values: Values) -> tuple[np.ndarray, Step]:
    step = plan.steps[-1]
    index = step.inputs[0]
    if len(plan.steps) != 1 or index is None:
        raise ValueError("more than one step")
    return values[plan.tensors[index].name], step


@dataclass(frozen=True)
class Pool:
    """How a pool's windows lie.

    Attributes:
        kind: ``"average"`` or ``"maximum"``.
        last: the images have their channels last.
    """

    kind: str
    last: bool

    def view(self, x: np.ndarray, step: Step, outside: int) -> np.ndarray:
        """[N, H', W', taps_h, taps_w, C] of all windows, padded positions holding `outside`."""
        images = []
        for image in x if self.last else np.moveaxis(x, 1, -1):
            for axis, (suffix, first) in enumerate((("h", "pad_top"), ("w", "pad_left"))):
                image = padded(image, axis, step, suffix, int(step[first]), outside, "")
            reach = [(step[f"filter_{s}"] - 1) * step[f"dilation_{s}"] + 1 for s in "hw"]
            view = np.lib.stride_tricks.sliding_window_view(image, reach, axis=(0, 1))
            view = view[:: step["stride_h"], :: step["stride_w"], :, :: step["dilation_h"], :: step["dilation_w"]]
            images.append(view[: step["out_h"], : step["out_w"]].transpose(0, 1, 3, 4, 2))
        return np.stack(images)

    def back(self, made: np.ndarray) -> np.ndarray:
        """What has the channels last in the layout of the file."""
        return made if self.last else np.ascontiguousarray(np.moveaxis(made, -1, 1))


# Slots of averages over windows.
_AVERAGES = {"average", "window_average", "affine_average", "window_levels"}


def pool_of(plan: Plan, step: Step) -> Pool | None:
    """How the windows of a step lie that takes means or maxima of quantized images; None for other steps."""
    operator, shape = find(step.operator), plan.tensors[step.outputs[0]].shape
    known = step.parameters
    named = {"filter_h", "filter_w", "dilation_h", "channels_last"}
    if operator is None or step.inputs[0] is None or not named <= known.keys() or "filter_d" in known:
        return None
    kind = "maximum" if operator.compares else "average" if _AVERAGES & step.rules.keys() else ""
    if not kind or len(shape) != 4 or plan.tensors[step.outputs[0]].type.numpy.kind not in "iu":
        return None
    return Pool(kind, bool(known["channels_last"]))


def window_sums(x: np.ndarray, step: Step, pool: Pool, outside: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of all windows, padded positions holding `outside`, and how many positions lie inside the image."""
    sums = pool.view(x.astype(np.int64), step, outside).sum(axis=(3, 4))
    counts = pool.view(np.ones(x.shape, np.int64), step, 0).sum(axis=(3, 4))
    return pool.back(sums), pool.back(counts)


def _cause(name: str, text: str) -> Cause:
    return Cause(name, f"{text}: a fault", "geometry", False)
