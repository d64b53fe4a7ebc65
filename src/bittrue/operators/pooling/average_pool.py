"""average_pool: the average of every window; the rules of a row say how it is computed.

Attributes are those of `pooling`, and `counted`: which taps the sum is divided by (see `Window.counts`). Operands: x;
then, where tensors do not carry them, x_scale, x_zero_point, y_scale, y_zero_point. The slots that decide: `average`
(of integers as they are stored, or of real numbers), `window_average` (in another scale), `real_sum`, `affine_average`
(a summand for every quantized value), `window_levels`, and `rescale` or `mean` (whole images, as the mean along axes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...records import replace
from ...rules import average, order, plain_range
from ..core.accumulator import finish_accumulator, proven_bound
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.functions import MEAN
from ..core.geometry import Window, tap_count
from ..core.roles import OPERAND_UNARY
from ..core.scalar_operands import check_scalars
from ..reduction import affine_mean
from ..reduction.mean import reference_mean, reference_sum
from . import average_affine, average_levels, average_reals, average_scaled
from .pooling import Images, counted, image_scratch, limits, most_taps, pool_windows, result_shape, step_geometry

# Grouped sums walk over taps that miss the image, too.
_MOST_GROUPED = 1 << 20


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...'], and [N, ..., C] gives [N, ...', C]."""
    call.expect((1, 5))
    if len(call.inputs) > 1:
        call.expect((4, 5))
        check_scalars(call, (1, 3), (2, 4))
    return [result_shape(call, pool_windows(call))]


def lower(call: Call) -> Lowered:
    """What the rules need."""
    return _way(call.rules)[0](call)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """As the rules say."""
    return _way(step.rules)[1](step, inputs)


def _lower_plain(call: Call) -> Lowered:
    found, source = pool_windows(call), call.input(0)
    taps = tap_count(found)
    if "order" in call.rules and taps > _MOST_GROUPED:
        raise call.invalid("BT-WINDOW", f"a window of {taps:,} taps is too large to be grouped")
    bound = None
    if "accumulate" in call.rules:
        bound = proven_bound(call, most_taps(found), max(-source.type.minimum, source.type.maximum), None)
    parameters = {**step_geometry(call, found), **limits(call), "counted": counted(call), "dtype": call.output.dtype}
    return Lowered(
        parameters,
        _rows(call, found),
        accumulator=bound,
        work=call.output.size * most_taps(found),
        scratch=image_scratch(call),
    )


def _rows(call: Call, found: Sequence[Window]) -> dict[str, np.ndarray]:
    """Of which row of windows each row has its taps, where one has those of another."""
    of = order.RULES[call.rules["order"]].rows if "order" in call.rules else None
    down = found[-2]
    rows = np.arange(down.out) if of is None else of(down.out, down.stride, down.before, down.after)
    return {} if (rows == np.arange(down.out)).all() else {"rows": rows}


def _grouped_sums(images: Images, image: np.ndarray, rule: str) -> np.ndarray:
    """Binary32 sums over windows, grouped as the slot `order` says; missing taps are zeros."""
    _, down, across = images.windows
    shape = images.empty(image.dtype).shape[1:]

    def taps() -> Iterator[np.ndarray]:
        for column in map(across.met, range(across.taps)):
            for row in map(down.met, range(down.taps)):
                tap = np.zeros(shape, np.float32)
                here, there = images.place(slice(None), row[0], column[0]), images.place(slice(None), row[1], column[1])
                tap[here] = image[there]
                yield tap

    grouped = order.RULES[rule].taps
    assert grouped is not None, "an order of taps"
    return grouped(taps())


def _reference_plain(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums image by image, divided by the number of taps that count."""
    images = Images(step, inputs[0])
    out = images.empty(DATA_TYPES[step["dtype"]].numpy)
    count = np.maximum(images.counts(step["counted"]), 1)
    divide = average.RULES[step.rules["average"]]
    limit = plain_range.CLAMPS[step.rules.get("plain_range", "type_limits")]
    exact = np.int32 if step.accumulator is not None and not step.accumulator.wraps else np.int64
    for image, result in zip(images, out, strict=True):
        if not result.size:
            break
        if "order" in step.rules:
            total = _grouped_sums(images, image, step.rules["order"])
            if "rows" in step.arrays:
                total = total[images.along(1, step.arrays["rows"])]
        else:
            total = images.sums(image, exact)
        if "accumulate" in step.rules:
            total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
        result[...] = limit(divide(total, count), step["low"], step["high"])
    return [images.result(out)]


def _lower_whole(call: Call) -> Lowered:
    rank = call.input(0).rank
    axes = tuple(range(1, rank - 1)) if call.attribute("channels_last") else tuple(range(2, rank))
    lowered = affine_mean.lower(call, axes, 1)
    if lowered.parameters["late"]:
        return lowered
    return replace(lowered, operator="mean" if "mean" in call.rules else "sum")


def _reference_whole(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    step = affine_mean.settled(step, inputs)
    return (reference_mean if "mean" in step.rules else reference_sum)(step, inputs[:1])


def _lower_one_tap(call: Call) -> Lowered:
    """A window of one tap is a clamp, which leaves alone NaN and, but for slot `extreme`, the sign of zeros."""
    return Lowered(limits(call), operator="relu")


_Way = tuple[Callable[[Call], Lowered], Callable[[Step, Sequence[np.ndarray]], "list[np.ndarray]"]]
_WAYS: dict[str, _Way] = {
    "average": (_lower_plain, _reference_plain),
    "window_average": (average_scaled.lower, average_scaled.reference),
    "real_sum": (average_reals.lower, average_reals.reference),
    "affine_average": (average_affine.lower, average_affine.reference),
    "window_levels": (average_levels.lower, average_levels.reference),
    "rescale": (_lower_whole, _reference_whole),
    "mean": (_lower_whole, _reference_whole),
    "plain_range": (_lower_one_tap, _reference_plain),
}


def _way(rules: object) -> _Way:
    return next(way for slot, way in _WAYS.items() if slot in rules)  # type: ignore[operator]


OPERATOR = Operator(
    "average_pool",
    (
        *_WAYS,
        "accumulate",
        "activation_range",
        "extreme",
        "order",
        "scale_form",
        "store",
    ),
    infer,
    lower,
    reference,
    "average of every window",
    roles=OPERAND_UNARY,
    mistaken_for=("max_pool", "lp_pool"),
    unread=("output_zero_point", "pad_bottom", "pad_right"),
    function=MEAN,
    layout="averages of windows",
    writes_rows=True,
)
