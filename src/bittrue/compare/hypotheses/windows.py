"""Faults of windows: padding at other ends or with other codes, windows moved, dilation and strides mixed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...operators import Step
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values, change_steps, with_parameters
from .layers import last_layer, padded

Change = Callable[[Step], "dict[str, Any]"]
_POOLS = ("average_pool", "max_pool")


def windows(case: Case) -> Iterator[Hypothesis]:
    """Changes of the geometry of the segment's last step with windows."""
    # Transposed convolutions pad their results, and keep two of the four numbers.
    step = next((s for s in reversed(case.plan.steps) if "pad_bottom" in s.parameters), None)
    if step is None:
        return
    layer = last_layer(case.plan) is step
    if layer:
        yield from _codes(step)
    elif step.operator in _POOLS and "filter_d" not in step.parameters and case.theirs[0].ndim == 4:
        yield from _pools(step)
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


def _codes(step: Step) -> Iterator[Hypothesis]:
    """What stands at padded positions."""
    codes: tuple[tuple[str, str, Callable[[Step], int]], ...] = (
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
    for name, text, code in codes:
        if code(step) != int(step["input_zero_point"]):
            by_code.setdefault(code(step), []).append((_cause(name, text), code))
    for found in by_code.values():
        (cause, code), *others = found
        aliases = tuple(other for other, _ in others)
        yield Hypothesis(cause, "padding", layer={"pad_code": code}, aliases=aliases)
    for name, mode in (("padding repeats the edge", "edge"), ("padding mirrors the image", "reflect")):
        yield Hypothesis(_cause(name, f"{name} instead of holding the zero point"), "padding", layer={"pad_mode": mode})


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
    changed = next(s for s in reversed(plan.steps) if "pad_top" in s.parameters)
    return change_steps(plan, lambda step: with_parameters(step, **change(step)) if step is changed else None)


def _pools(step: Step) -> Iterator[Hypothesis]:
    """Padding that takes part in averages and maxima."""
    area = step["filter_h"] * step["filter_w"]

    def average(plan: Plan, values: Values, divide: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        x, last = _input(plan, values)
        sums, counts = window_sums(x, last, 0)
        return np.clip(divide(sums, counts), last["low"], last["high"]).astype(x.dtype)

    def half_away(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)

    def of_all(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return half_away(sums, counts * 0 + area)

    def with_zero_point(plan: Plan, values: Values) -> np.ndarray:
        x, last = _input(plan, values)
        quantization = plan.tensors[last.inputs[0] or 0].quantization
        point = 0 if quantization is None else int(quantization.zero_points[0])
        sums, counts = window_sums(x, last, point)
        return np.clip(of_all(sums, counts), last["low"], last["high"]).astype(x.dtype)

    if step.operator == "average_pool":
        if "average" not in step.rules:
            return
        yield Hypothesis(
            _cause("average counts padding", "padded positions count as zeros in the average"),
            "average",
            compute=lambda plan, values: average(plan, values, of_all),
        )
        yield Hypothesis(
            _cause("average counts padding", "padded positions count as zero points in the average"),
            "average",
            compute=with_zero_point,
        )
        return

    def largest(plan: Plan, values: Values, code: int | None) -> np.ndarray:
        x, last = _input(plan, values)
        quantization = plan.tensors[last.inputs[0] or 0].quantization
        point = 0 if quantization is None else int(quantization.zero_points[0])
        view = _view(x.astype(np.int64), last, point if code is None else code)
        return np.clip(_laid_out(view.max(axis=(3, 4)), last), last["low"], last["high"]).astype(x.dtype)

    for name, code in (("quantized value 0", 0), ("the zero point", None)):
        yield Hypothesis(
            _cause(f"padding with {name}", f"padded positions hold {name} and take part in the maximum"),
            "padding",
            compute=lambda plan, values, c=code: largest(plan, values, c),  # type: ignore[misc]
        )


def _input(plan: Plan, values: Values) -> tuple[np.ndarray, Step]:
    step = plan.steps[-1]
    index = step.inputs[0]
    if len(plan.steps) != 1 or index is None:
        raise ValueError("more than one step")
    return values[plan.tensors[index].name], step


def _view(x: np.ndarray, step: Step, outside: int) -> np.ndarray:
    """[N, H', W', taps_h, taps_w, C] of all windows, padded positions holding `outside`."""
    pictures = []
    for picture in x if step["channels_last"] else np.moveaxis(x, 1, -1):
        for axis, (suffix, first) in enumerate((("h", "pad_top"), ("w", "pad_left"))):
            picture = padded(picture, axis, step, suffix, int(step[first]), outside, "")
        taps = (step["filter_h"], step["filter_w"])
        view = np.lib.stride_tricks.sliding_window_view(picture, taps, axis=(0, 1))
        view = view[:: step["stride_h"], :: step["stride_w"]][: step["out_h"], : step["out_w"]]
        pictures.append(view.transpose(0, 1, 3, 4, 2))
    return np.stack(pictures)


def window_sums(x: np.ndarray, step: Step, outside: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of all windows, padded positions holding `outside`, and how many positions lie inside the image."""
    sums = _view(x.astype(np.int64), step, outside).sum(axis=(3, 4))
    counts = _view(np.ones(x.shape, np.int64), step, 0).sum(axis=(3, 4))
    return _laid_out(sums, step), _laid_out(counts, step)


def _laid_out(result: np.ndarray, step: Step) -> np.ndarray:
    """[N, H, W, C] as the step has it."""
    return result if step["channels_last"] else np.moveaxis(result, -1, 1)


def _cause(name: str, text: str) -> Cause:
    return Cause(name, f"{text}: a fault", "geometry", False)
