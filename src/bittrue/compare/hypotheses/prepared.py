"""What a plan prepares and a device keeps in registers and tables: every number a little off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...operators import Step, find
from ...operators.core.roles import seats_of
from .case import Case, Hypothesis, with_parameters
from .common import Array, of_step

# What results are laid out by: other numbers give other shapes.
_SHAPES = frozenset(
    (
        "shape",
        "output_shape",
        "out_h",
        "out_w",
        "bits",
        "size",
        "split",
        "outer",
        "inner",
        "count",
        "batch",
        "tables",
        "scales_at",
        "view",
    )
)
# Windows are moved in every way by `windows`.
_WINDOWS = ("filter_", "stride_", "dilation_", "pad_", "groups", "multiplier")


def prepared(case: Case) -> Iterator[Hypothesis]:
    """Parameters and arrays of the step that writes the result, one at a time."""
    step = case.step
    operator = find(step.operator)
    layer, unread = seats_of(operator) is not None, () if operator is None else operator.unread
    for name, value in step.parameters.items():
        if name in _SHAPES or name in unread or isinstance(value, bool):
            continue
        if layer and name.startswith(_WINDOWS):
            continue
        if (name == "block_size" and not value) or (name == "axis" and _per_tensor(step)):
            continue
        words = name.replace("_", " ")
        if isinstance(value, int):
            yield _parameter(name, f"{words} one too large", lambda v: v + 1)
            yield _parameter(name, f"{words} one too small", lambda v: v - 1)
            yield _parameter(name, f"{words} is 0", lambda v: 0)
        elif isinstance(value, tuple) and len(value) > 1 and all(isinstance(v, int) for v in value):
            if name != "axes":
                yield _parameter(name, f"{words} reversed", lambda v: v[::-1])
                yield _parameter(name, f"{words} moved by one", lambda v: (*v[1:], v[0]))
            for place in range(len(value)):
                if name == "steps" and step["sizes"][place] == 1:
                    # Nothing moves along an axis of one element.
                    continue
                for by in (1, -1):
                    size = "large" if by > 0 else "small"
                    yield _parameter(name, f"{words}[{place}] one too {size}", _moved(place, by))
    for name, array in step.arrays.items():
        if array.dtype.kind == "i" and array.size <= 64 and name not in unread:
            yield from _array(name, array)


def _per_tensor(step: Step) -> bool:
    """One scale for all elements: it lies along no axis."""
    scales = step.arrays.get("scales")
    return scales is not None and scales.size == 1


def _moved(place: int, by: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda v: (*v[:place], v[place] + by, *v[place + 1 :])


def _parameter(name: str, title: str, change: Callable[..., object]) -> Hypothesis:
    return of_step(title, f"the step's {title}", lambda step: with_parameters(step, **{name: change(step[name])}))


def _array(name: str, array: Array) -> Iterator[Hypothesis]:
    words = name.replace("_", " ")
    if "multiplier" in name and not (array % (1 << 16)).any():
        # Multipliers of 15 bits in the upper half of a register.
        return
    for by, size in ((1, "large"), (-1, "small")):
        last = " in its last bit" if "multiplier" in name else ""
        title = f"{words} one too {size}{last}"
        yield of_step(title, f"the step's {title}", _with(name, lambda a, by=by: a + by))  # type: ignore[misc]
    if array.size > 1:
        title = f"{words} moved by one"
        yield of_step(title, f"the step's {title}", _with(name, lambda a: np.roll(a, 1)))
        title = f"{words} reversed"
        yield of_step(title, f"the step's {title}", _with(name, lambda a: a[::-1].copy()))
        title = f"last {words} is that before"
        yield of_step(title, f"the step's {title}", _with(name, lambda a: np.append(a[:-1], a[-2])))


def _with(name: str, change: Callable[[Array], Array]) -> Callable[[Step], Step]:
    return lambda step: replace(step, arrays={**step.arrays, name: change(step.arrays[name]).astype(np.int64)})
