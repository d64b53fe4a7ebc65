"""Passes that make a plan run faster and change no bit of any result that remains.

Each pass turns a schedule into a schedule and notes what it did. Tensors that a pass makes disappear (the sum of a
convolution before its lookup table) do not exist in such a run; traces are made without passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import BittrueError, InputError
from ..graph import Attribute
from ..names import near_or_all
from ..operators import Step, find
from ..records import dataclass, replace
from ..rules import real_function
from .plan import Plan, PlanTensor
from .schedule import Part, Schedule, Then


@dataclass
class _Uses:
    """Who writes and who reads each tensor of a schedule."""

    writer: dict[int, int]
    readers: dict[int, list[int]]

    @staticmethod
    def of(steps: Sequence[Step | None]) -> _Uses:
        uses = _Uses({}, {})
        for position, step in enumerate(steps):
            if step is None:
                continue
            for index in step.outputs:
                uses.writer[index] = position
            for operand in step.inputs:
                if operand is not None:
                    uses.readers.setdefault(operand, []).append(position)
        return uses

    def only_reader(self, index: int) -> int | None:
        """The position of the one step that reads the tensor, once."""
        readers = self.readers.get(index, [])
        return readers[0] if len(readers) == 1 else None


def stored_table(step: Step, plan: Plan) -> np.ndarray | None:
    """256 results of a bytewise step, by input counted from the smallest value of its type, counted likewise.

    None when the step is not of that kind.
    """
    operator = find(step.operator)
    if operator is None or operator.elementwise != 1 or len(step.inputs) != 1 or step.inputs[0] is None:
        return None
    source, target = plan.tensors[step.inputs[0]].type, plan.tensors[step.outputs[0]].type
    if source.name not in ("s8", "u8") or target.name not in ("s8", "u8") or _along_an_axis(step):
        return None
    values = np.arange(source.minimum, source.maximum + 1).astype(source.numpy)
    # Where places in the tensor decide, both functions must be the same one.
    placed_anywhere = not any(slot == "lanes" or slot.endswith("_tail") for slot in step.rules)
    splits = (None,) if placed_anywhere else (values.size, 0)
    results = []
    for split in splits:
        placed = step if split is None else replace(step, parameters={**step.parameters, "body": split})
        try:
            (result,) = operator.reference(placed, [values])
        except BittrueError:
            # Some inputs have no result, so there is no table.
            return None
        results.append(result)
    if not np.array_equal(results[0], results[-1]):
        return None
    return (result.astype(np.int64) - target.minimum).astype(np.uint8)


def _along_an_axis(step: Step) -> bool:
    """Whether the place of an element along some axis decides which parameters it meets."""
    if "axis" in step.parameters or "scales" in step.arrays:
        return True
    return any(array.ndim > 1 or array.size > 256 for array in step.arrays.values())


def _wants_channels_last(step: Step) -> bool:
    """Whether a step is done with channels last in any case where it can be; others follow what they read."""
    operator = find(step.operator)
    layout = None if operator is None else operator.layout
    if layout == "filters":
        return bool(step["arithmetic"] == "integers")
    return layout in ("averages of windows", "largest of windows")


def _channels_last(schedule: Schedule) -> Schedule:
    """Channels-first images are worked on with channels last."""
    if not any(map(_wants_channels_last, schedule.steps)):
        return schedule
    from .channels_last import rewritten
    from .channels_last_layers import LAYERS

    return rewritten(schedule, LAYERS)


def _identities(schedule: Schedule) -> Schedule:
    """Reshapes, and quantizations between u8 and s8 of the same scale, name memory that already holds the result."""
    plan = schedule.plan
    kept: list[Step] = []
    parts = dict(schedule.parts)
    gone: list[str] = []
    for step in schedule.steps:
        source = step.inputs[0] if step.inputs else None
        operator = find(step.operator)
        same = operator is not None and operator.keeps_order
        if not same and source is not None:
            table = stored_table(step, plan)
            same = table is not None and bool((table == np.arange(256)).all())
        root = source if source is None or source not in parts else parts[source].root
        if not same or source is None or root is None or plan.tensors[root].kind not in ("input", "computed"):
            kept.append(step)
            continue
        target = plan.tensors[step.outputs[0]]
        offset = parts[source].offset if source in parts else 0
        row = (target.shape[-1] if target.shape else 1) * target.type.numpy.itemsize
        parts[step.outputs[0]] = Part(root, offset, row)
        gone.append(f"{step.source} #{step.index}")
    return _noted(schedule, kept, parts, "identities removed", gone)


def _padding(schedule: Schedule) -> Schedule:
    """A border of real zeros is left to the convolution behind it, which pads with the same value."""
    plan = schedule.plan
    steps: list[Step | None] = list(schedule.steps)
    uses = _Uses.of(steps)
    shared = _shared(schedule)
    gone: list[str] = []
    for position, step in enumerate(schedule.steps):
        reader = uses.only_reader(step.outputs[0]) if "value_is_input" in step.parameters else None
        if reader is None or step.outputs[0] in plan.outputs or step.outputs[0] in shared:
            continue
        follower = steps[reader]
        source = step.inputs[0]
        if follower is None or source is None or not _is_convolution(follower):
            continue
        shape, before = plan.tensors[source].shape, step["before"]
        if (
            len(shape) != 4
            or follower.inputs[0] != step.outputs[0]
            # Rows that are quantized later may be rounded by their place, so nothing may move in them.
            or "input_zero_point" not in follower.parameters
            or _pad_value(step, plan) != follower["input_zero_point"]
        ):
            continue
        after = [int(o) - b - s for o, b, s in zip(step["shape"], before, shape, strict=True)]
        if before[0] or before[3] or after[0] or after[3]:
            continue
        parameters = dict(follower.parameters)
        for side, more in (("top", before[1]), ("left", before[2]), ("bottom", after[1]), ("right", after[2])):
            parameters[f"pad_{side}"] = follower[f"pad_{side}"] + int(more)
        steps[reader] = replace(follower, parameters=parameters, inputs=(source, *follower.inputs[1:]))
        steps[position] = None
        gone.append(f"{step.source} #{step.index} into {follower.source} #{follower.index}")
    return _noted(schedule, steps, schedule.parts, "padding folded into convolutions", gone)


def _is_convolution(step: Step) -> bool:
    """Whether a step is a convolution of images with their channels last."""
    operator = find(step.operator)
    if operator is None or operator.transposed or "S" not in operator.weights:
        return False
    return step.parameters.get("arithmetic") in ("images", "depthwise") and "filter_h" in step.parameters


def _pad_value(step: Step, plan: Plan) -> int | None:
    if not step["value_is_input"]:
        return int(step["value"])
    value = plan.tensors[step.inputs[2]].value if step.inputs[2] is not None else None
    return None if value is None else int(value.reshape(-1)[0])


def _functions(schedule: Schedule) -> Schedule:
    """Bytes that follow one by one from other bytes, by several steps, are looked up in a table of these."""
    plan = schedule.plan
    steps: list[Step | None] = list(schedule.steps)
    roots: dict[int, int] = {}
    writers: dict[int, Step] = {}
    for step in schedule.steps:
        root = _root(step, plan, roots)
        if root is not None:
            roots[step.outputs[0]] = root
            writers[step.outputs[0]] = step
    needed = set(plan.outputs)
    gone: list[str] = []
    for position in reversed(range(len(steps))):
        step = schedule.steps[position]
        result = step.outputs[0] if step.outputs else -1
        if result in roots and result not in needed:
            steps[position] = None
            continue
        root = roots.get(result)
        read = {index for index in step.inputs if index is not None and plan.tensors[index].value is None}
        values = None
        if root is not None and read != {root} and plan.tensors[result].dtype in ("s8", "u8"):
            values = _values_of_bytes(result, root, plan, writers)
        if root is None or values is None:
            needed |= read
            continue
        source, target = plan.tensors[root].type, plan.tensors[result]
        parameters: dict[str, Attribute] = {"dtype": target.dtype, "minimum": source.minimum}
        arrays, rules = {"table": values.astype(np.int32)}, {"table": "exact_256_even"}
        steps[position] = Step(
            step.index, "logistic", step.source, (root,), step.outputs, rules, parameters, arrays, work=step.work
        )
        needed.add(root)
        gone.append(f"{step.source} #{step.index}")
    return _noted(schedule, steps, schedule.parts, "functions of bytes looked up", gone)


# Elements of tensors whose table is worth its making; and of the groups that some functions of real numbers work in.
_FEWEST, _GROUP = 1024, 16


def _root(step: Step, plan: Plan, roots: Mapping[int, int]) -> int | None:
    """The tensor of bytes from whose elements those of a step's result follow one by one, if there is one."""
    operator = find(step.operator)
    if operator is None or not operator.elementwise or len(step.outputs) != 1:
        return None
    shape = plan.tensors[step.outputs[0]].shape
    size = int(np.prod(shape, dtype=np.int64)) if shape is not None else 0
    if size < _FEWEST or size % _GROUP or "body" in step.parameters or step.parameters.get("block_size"):
        return None
    if any(slot == "lanes" or slot.endswith("_tail") for slot in step.rules):
        return None
    # What there are several of may belong to channels, unless there is one of it for each operand.
    most = 1 if "scales" in step.arrays else 3
    if any(array.size > most and name not in ("table", "entries") for name, array in step.arrays.items()):
        return None
    found = set()
    for position, index in enumerate(step.inputs):
        tensor = None if index is None else plan.tensors[index]
        if index is None or tensor is None:
            continue
        if tensor.value is not None:
            if tensor.value.size != 1:
                return None
            continue
        if position >= operator.elementwise or tensor.kind not in ("input", "computed") or tensor.shape != shape:
            return None
        found.add(roots.get(index, index if tensor.dtype in ("s8", "u8") else None))
    return found.pop() if len(found) == 1 else None


def _values_of_bytes(result: int, root: int, plan: Plan, writers: Mapping[int, Step]) -> np.ndarray | None:
    """What each byte of `root` becomes in `result`; None where some have no result."""
    source = plan.tensors[root].type
    values: dict[int, np.ndarray] = {root: np.arange(source.minimum, source.maximum + 1).astype(source.numpy)}

    def find_values(index: int) -> np.ndarray:
        value = plan.tensors[index].value
        if value is not None:
            return value
        if index not in values:
            step = writers[index]
            operator = find(step.operator)
            assert operator is not None
            inputs = [None if i is None else find_values(i) for i in step.inputs]
            if "shape" in step.parameters:
                step = replace(step, parameters={**step.parameters, "shape": values[root].shape})
            (values[index],) = operator.reference(step, inputs)
        return values[index]

    try:
        found = find_values(result)
    except BittrueError:
        return None
    return found if found.shape == values[root].shape else None


def _tables(schedule: Schedule) -> Schedule:
    """A bytewise step behind a convolution becomes a table that the convolution looks its results up in."""
    plan = schedule.plan

    def with_table(step: Step, writer: Step) -> Step | None:
        if not _is_convolution(writer) or "fused_table" in writer.arrays:
            return None
        table = stored_table(step, plan)
        if table is None or plan.tensors[writer.outputs[0]].dtype != plan.tensors[step.outputs[0]].dtype:
            return None
        return replace(writer, outputs=step.outputs, arrays={**writer.arrays, "fused_table": table})

    return _into_writers(schedule, "tables fused", with_table)


def _limits(schedule: Schedule) -> Schedule:
    """A clamp of real numbers behind a convolution with channels first is done while its sums are in registers."""
    plan = schedule.plan

    def with_limits(step: Step, writer: Step) -> Step | None:
        operator = find(step.operator)
        if operator is None or operator.limits is None or not _limits_reals(writer):
            return None
        if plan.tensors[writer.outputs[0]].dtype != "f32":
            return None
        ends = operator.limits(step, [None if i is None else plan.tensors[i].value for i in step.inputs])
        # NaN is no end.
        if ends is None or not ends[0] <= ends[1]:
            return None
        parameters = {**writer.parameters, "limit_low": ends[0], "limit_high": ends[1]}
        return replace(writer, outputs=step.outputs, parameters=parameters)

    return _into_writers(schedule, "limits fused", with_limits)


def _gates(schedule: Schedule) -> Schedule:
    """A product of a tensor and of a function of it that nobody else reads is made in one step."""
    plan, steps = schedule.plan, list[Step | None](schedule.steps)
    uses, shared = _Uses.of(steps), _shared(schedule)
    gone: list[str] = []
    for position, step in enumerate(schedule.steps):
        if not _is_plain_product(step, plan):
            continue
        for x, gate in (step.inputs, step.inputs[::-1]):
            if gate is None or gate in shared or gate in plan.outputs or uses.only_reader(gate) != position:
                continue
            before = uses.writer.get(gate)
            writer = None if before is None else steps[before]
            if before is None or writer is None or writer.inputs != (x,):
                continue
            operator = find(writer.operator)
            if operator is None or not operator.gates:
                continue
            rule = real_function.RULES.get(writer.rules.get("real_function", ""))
            if rule is None or rule.once or "quick_gelu" not in rule.functions:
                continue
            steps[before], steps[position] = (
                None,
                replace(step, operator=operator.gates, inputs=(x,), rules=writer.rules, parameters={"alpha": 1.0}),
            )
            gone.append(f"{writer.source} #{writer.index} into {step.source} #{step.index}")
            break
    return _noted(schedule, steps, schedule.parts, "gates fused", gone)


def _is_plain_product(step: Step, plan: Plan) -> bool:
    """Whether a step is an unlimited product of two tensors of binary32 numbers of one shape."""
    operator = find(step.operator)
    if operator is None or not operator.gated or len(step.inputs) != 2 or None in step.inputs:
        return False
    tensors = [plan.tensors[i] for i in (*step.inputs, *step.outputs) if i is not None]
    same = all(tensor.dtype == "f32" and tensor.shape == tensors[0].shape for tensor in tensors)
    return same and step.parameters.get("form") == "plain" and (step["low"], step["high"]) == (-math.inf, math.inf)


def _into_writers(schedule: Schedule, note: str, join: Callable[[Step, Step], Step | None]) -> Schedule:
    """A step and the one that writes its first input for it alone become the one that `join` makes of both, if any."""
    steps: list[Step | None] = list(schedule.steps)
    uses = _Uses.of(steps)
    shared = _shared(schedule)
    gone: list[str] = []
    for position, step in enumerate(schedule.steps):
        source = step.inputs[0] if step.inputs else None
        if source is None or source in schedule.plan.outputs or source in shared:
            continue
        before = uses.writer.get(source)
        writer = None if before is None else steps[before]
        if before is None or writer is None or uses.only_reader(source) != position:
            continue
        joined = join(step, writer)
        if joined is not None:
            steps[before], steps[position] = joined, None
            gone.append(f"{step.source} #{step.index} into {writer.source} #{writer.index}")
    return _noted(schedule, steps, schedule.parts, note, gone)


def _limits_reals(step: Step) -> bool:
    """Whether a step is a convolution of real images with channels first, which has no limits yet."""
    operator = find(step.operator)
    if operator is None or operator.transposed or "S" not in operator.weights or "limit_low" in step.parameters:
        return False
    fused = step.rules.get("real_product", "").startswith("binary32_fused_blocks")
    return fused and not step.parameters.get("channels_last")


def _additions(schedule: Schedule) -> Schedule:
    """An addition behind a convolution is done block by block while the convolution's results are in cache."""
    plan = schedule.plan
    steps: list[Step | None] = list(schedule.steps)
    uses = _Uses.of(steps)
    shared = _shared(schedule)
    then: dict[int, Then] = {}
    gone: list[str] = []
    for position, step in enumerate(schedule.steps):
        for source, other in _summands(step, plan):
            before = uses.writer.get(source)
            made_by = None if before is None else steps[before]
            if before is None or made_by is None:
                continue
            # The other operand, or what it is a name for, must be there when the convolution runs.
            root = schedule.parts[other].root if other in schedule.parts else other
            ready = plan.tensors[other].kind in ("input", "computed") and uses.writer.get(root, -1) < before
            alone = uses.only_reader(source) == position and source not in plan.outputs
            alone = alone and source not in schedule.parts and source not in shared
            if not (ready and alone and _adds_as_well(made_by, plan)) or made_by.outputs[0] in then:
                continue
            inputs = (*made_by.inputs, *(None,) * (3 - len(made_by.inputs)), other)
            steps[before] = replace(made_by, inputs=inputs, outputs=step.outputs)
            steps[position] = None
            then[step.outputs[0]] = Then(step, source)
            # Later additions may follow this one's result.
            uses.writer[step.outputs[0]] = before
            gone.append(f"{step.source} #{step.index} into {made_by.source} #{made_by.index}")
            break
    return replace(_noted(schedule, steps, schedule.parts, "additions fused", gone), then=then)


def _shared(schedule: Schedule) -> set[int]:
    """Tensors whose memory has other names, too: who reads those is not among their readers."""
    return {part.root for part in schedule.parts.values()}


def _summands(step: Step, plan: Plan) -> list[tuple[int, int]]:
    """What a convolution may compute of an addition, and what is added to that; one pair for each way round."""
    if "layer_sum" in step.rules:
        acc, _, other, *_ = step.inputs
        known = all(plan.tensors[i].value is not None for i in step.inputs if i not in (None, acc, other))
        narrow = plan.tensors[step.outputs[0]].dtype in ("s8", "u8")
        if acc is None or other is None or not (known and narrow and step["channels_last"]):
            return []
        return [(acc, other)]
    first, second, *_ = (*step.inputs, None, None)
    if not _is_addition(step) or first is None or second is None or first == second:
        return []
    shapes = {plan.tensors[i].shape for i in (first, second, *step.outputs)}
    types = {plan.tensors[i].dtype for i in (first, second, *step.outputs)}
    return [(first, second), (second, first)] if len(shapes) == len(types) == 1 and types <= {"s8", "u8"} else []


def _is_addition(step: Step) -> bool:
    """Whether a sum's operands are two tensors of quantized values, each with one scale."""
    operator = find(step.operator)
    form = step.parameters.get("form") if operator is not None and operator.signs == (1, 1) else None
    if form == "operands":
        return not step["late"] and step.rules["affine_sum"] == "binary32_fused_even"
    return form == "rescaled" and "lanes" not in step.rules


def _adds_as_well(step: Step, plan: Plan) -> bool:
    """Whether a step is a convolution whose kernel does an addition, too: of known weights, and by itself."""
    if step.parameters.get("groups") != 1 or len(step.inputs) > 3 or "fused_table" in step.arrays:
        return False
    if plan.tensors[step.inputs[1] or 0].value is None:
        return False
    if step.parameters.get("arithmetic") == "integers":
        return bool(step["channels_last"]) and not step["late"] and "store" not in step.rules
    return _is_convolution(step) and step["arithmetic"] == "images"


def _concatenations(schedule: Schedule) -> Schedule:
    """Steps write their part of a concatenation where it belongs, so that nothing is joined afterwards."""
    plan = schedule.plan
    steps: list[Step | None] = list(schedule.steps)
    uses = _Uses.of(steps)
    parts = dict(schedule.parts)
    aliased = {part.root for part in parts.values()} | set(parts)
    gone: list[str] = []
    # The last one first: the memory of an inner concatenation has been placed by then.
    for position in reversed(range(len(steps))):
        step = steps[position]
        if step is None or not _joins_rows(step) or step.parameters.get("late"):
            continue
        whole = step.outputs[0]
        shape, item = plan.tensors[whole].shape, plan.tensors[whole].type.numpy.itemsize
        axis = step["axis"]
        if not shape or plan.tensors[whole].kind != "computed" or (whole in parts and axis != len(shape) - 1):
            continue
        place = parts.get(whole, Part(whole, 0, shape[-1] * item))
        along = 0
        moved = 0
        for operand, table in zip(step.inputs, step["tables"], strict=True):
            if operand is None:
                continue
            size = plan.tensors[operand].shape[axis] if plan.tensors[operand].shape else 1
            if table < 0 and operand not in aliased and _can_live_inside(operand, plan, steps, uses, shape, axis):
                inside = along * item * int(np.prod(shape[axis + 1 :], dtype=np.int64))
                own = plan.tensors[operand].shape
                # A single row is dense wherever it lies.
                several = axis == len(shape) - 1 and any(e != 1 for e in own[:-1])
                stride = place.row_stride if several else (own[-1] if own else 1) * item
                parts[operand] = Part(place.root, place.offset + inside, stride)
                moved += 1
            along += size
        if moved == len(step.inputs):
            steps[position] = None
        if moved:
            gone.append(f"{step.source} #{step.index} ({moved} of {len(step.inputs)} inputs)")
    return _noted(schedule, steps, parts, "concatenations in place", gone)


def _rooms(schedule: Schedule) -> Schedule:
    """Rows that only running counts get room for as many as there can be, and are picked from it afterwards."""
    tensors = list(schedule.plan.tensors)
    steps: list[Step] = []
    gone: list[str] = []
    for step in schedule.steps:
        operator, found = find(step.operator), None
        if operator is not None and operator.room is not None and tensors[step.outputs[0]].kind == "unknown":
            operands = [None if i is None else tensors[i] for i in step.inputs]
            shapes = [None if tensor is None else tensor.shape for tensor in operands]
            found = operator.room(step, shapes, [None if tensor is None else tensor.value for tensor in operands])
        if found is None:
            steps.append(step)
            continue
        room, shape = found
        target, made = tensors[step.outputs[0]], (len(tensors), len(tensors) + 1)
        tensors.append(PlanTensor(f"{target.name} (room)", target.dtype, shape, "computed"))
        tensors.append(PlanTensor(f"{target.name} (kept)", "bool", shape[:1], "computed"))
        steps.append(replace(step, outputs=made, parameters={**step.parameters, "room": room}))
        steps.append(Step(step.index, "compress", step.source, made, step.outputs, {}, {"axis": 0}, {}))
        gone.append(f"{step.source} #{step.index}")
    plan = replace(schedule.plan, tensors=tuple(tensors)) if gone else schedule.plan
    return _noted(replace(schedule, plan=plan), steps, schedule.parts, "rooms made", gone)


def _can_live_inside(
    index: int, plan: Plan, steps: Sequence[Step | None], uses: _Uses, shape: Sequence[int], axis: int
) -> bool:
    if plan.tensors[index].kind != "computed" or index in plan.outputs or plan.tensors[index].bytes == 0:
        return False
    writer = uses.writer.get(index)
    readers = uses.readers.get(index, [])
    # One piece of memory: nothing but the outermost dimensions differs from 1 before the axis.
    if all(size == 1 for size in shape[:axis]):
        return _joined_once([steps[r] for r in readers])
    if axis != len(shape) - 1 or writer is None:
        return False
    made_by = steps[writer]
    if made_by is None or not _writes_pixels(made_by):
        return False
    read_by = [steps[r] for r in readers]
    for reader in read_by:
        operator = None if reader is None else find(reader.operator)
        if reader is None or operator is None or not operator.reads_rows or not _has_pixels(reader):
            return False
    return _joined_once(read_by)


def _has_pixels(step: Step) -> bool:
    """Of convolutions, those whose kernels find pixels wherever they lie."""
    operator = find(step.operator)
    return operator is None or not operator.weights or step.parameters.get("filter_layout") == "OSI"


def _writes_pixels(step: Step) -> bool:
    """Whether the step's kernel writes pixel by pixel: of pools, those with channels last that add up integers."""
    operator = find(step.operator)
    if operator is None or not operator.writes_rows or not step.parameters.get("channels_last", True):
        return False
    if not _has_pixels(step):
        return False
    return not step.rules.keys() & {"affine_average", "window_levels"}


def _joins_rows(step: Step) -> bool:
    """Whether a step puts tensors side by side along one of their axes."""
    operator = find(step.operator)
    return operator is not None and operator.joins and "tables" in step.parameters


def _joined_once(readers: Sequence[Step | None]) -> bool:
    return sum(reader is not None and _joins_rows(reader) for reader in readers) == 1


def _noted(
    schedule: Schedule, steps: Sequence[Step | None], parts: Mapping[int, Part], what: str, gone: Sequence[str]
) -> Schedule:
    if not gone:
        return schedule
    shown = ", ".join(gone[:6]) + (f" and {len(gone) - 6} more" if len(gone) > 6 else "")
    return replace(
        schedule,
        steps=tuple(step for step in steps if step is not None),
        parts=parts,
        notes=(*schedule.notes, f"{what}: {shown}"),
    )


Pass = Callable[[Schedule], Schedule]

# In the order in which they are applied.
PASSES: dict[str, Pass] = {
    "channels_last": _channels_last,
    "functions": _functions,
    "identities": _identities,
    "padding": _padding,
    "tables": _tables,
    "limits": _limits,
    "gates": _gates,
    "additions": _additions,
    "concatenations": _concatenations,
    "rooms": _rooms,
}


def make_schedule(plan: Plan, passes: Sequence[str] | None = None) -> Schedule:
    """The schedule of `plan` after `passes` (None: all of them).

    Raises:
        InputError: there is no such pass.
    """
    for name in passes or ():
        if name not in PASSES:
            advice = near_or_all(name, PASSES, "choose from")
            raise InputError("BT-PASS", f"no pass is called '{name}'", place="passes", advice=advice)
    schedule = Schedule(plan, plan.steps)
    for name, apply in PASSES.items():
        if passes is None or name in passes:
            schedule = apply(schedule)
    return schedule
