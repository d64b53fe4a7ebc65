"""`explain_element`: one element of a tensor, worked out step by step and checked against the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from ..api import Session
from ..errors import InputError, InternalError, UnsupportedError
from ..names import by_number, did_you_mean
from ..operators import Operator, Step, find
from ..operators.core.functions import BILINEAR, IDENTITY
from ..plan import Plan
from ..runtime.graphs import Untrusted, carry_out, initial_state
from . import conversions, elementwise, lookup, windows
from .decimals import place
from .explanation import Explanation
from .general import general
from .late import settled
from .layers import layer, real_layer
from .movement import filled, joined, moved
from .site import Number, Site, Work, shown_name

Narrator = Callable[[Site, Work], "Number | None"]


def _slot(name: str) -> Callable[[Operator], bool]:
    return lambda operator: name in operator.slots


# Which operators a narrator may know, by traits and slots, in order; a narrator gives None for steps that it does not
# know.
_TOLD: tuple[tuple[Callable[[Operator], bool], Narrator], ...] = (
    (lambda operator: bool(operator.signs), elementwise.add),
    (_slot("product"), elementwise.mul),
    (lambda operator: "align" in operator.slots and not operator.signs, elementwise.squared_difference),
    (lambda operator: operator.function is IDENTITY, elementwise.change_of_scale),
    (lambda operator: operator.largest is not None and bool(operator.elementwise), elementwise.extreme),
    (lambda operator: operator.truth is not None, elementwise.comparison),
    (_slot("table"), lookup.read),
    (_slot("sign"), elementwise.leaky_relu),
    (_slot("softmax"), lookup.soft_maximum),
    (lambda operator: operator.function is BILINEAR, lookup.resized),
    (lambda operator: operator.positions, lookup.position),
    (lambda operator: operator.reduces, windows.reduced),
    (_slot("average"), windows.average_pool),
    (_slot("affine_average"), windows.affine_average_pool),
    (lambda operator: operator.layout == "largest of windows", windows.max_pool),
    (_slot("quantize"), conversions.quantize),
    (lambda operator: operator.quantizes, conversions.quantize_by_operands),
    (lambda operator: operator.dequantizes, conversions.dequantize_by_operands),
    (lambda operator: operator.dequantizes, conversions.dequantize),
    (lambda operator: operator.joins, joined),
)


def narrators(stem: str) -> tuple[Narrator, ...]:
    """Those that may know an operator, in order; the first that knows the step tells, else `general`."""
    operator = find(stem)
    if operator is None:
        return ()
    if operator.multiplies:
        return (layer, real_layer)
    told = tuple(narrator for knows, narrator in _TOLD if knows(operator))
    if operator.moves:
        return (*told, moved, filled)
    return (*told, elementwise.pointwise) if operator.elementwise else told


def explain_element(
    source: Plan | Session,
    values: Mapping[str, np.ndarray],
    tensor: str,
    element: Sequence[int],
    result: np.ndarray | None = None,
) -> Explanation:
    """How one element of one tensor comes about, step by step.

    Args:
        source: a session, or a plan.
        values: tensors by name, as `Session.trace` gives them; the inputs of the step that computes `tensor` suffice.
            Of a session also its inputs alone: then it is run up to that step, and is left in the state that it was in.
        tensor: a tensor of the main graph that a step computes.
        element: its index, one number per axis.
        result: what the plan makes of these values, where that is known; else the reference computes it.

    The numbers shown are those that the rules have on their way, and the last one is compared with what the reference
    computes from the same inputs.

    Raises:
        InputError: `source` is no session or plan; no such tensor or element; a tensor that no step computes; values
            that are missing or do not fit.
        UnsupportedError: steps that run other graphs.
        InternalError: the calculation does not end at the stored value (a fault of bittrue).
    """
    if not isinstance(source, Session | Plan):
        raise InputError(
            "BT-EXPLAIN-SOURCE",
            f"expected a session or a plan, found {type(source).__name__}",
            place="source",
            advice="prepare the model first: explain_element(model.prepare(), inputs, tensor, element)",
        )
    if isinstance(source, Session):
        values = _run_up_to(source, values, step_of(source.plan, tensor)[0])
        source = source.plan
    return explain_site(site_of(source, values, tensor, element, result))


class _ReachedError(Exception):
    """Ends a run: what is needed of it is known."""


def _run_up_to(session: Session, values: Mapping[str, np.ndarray], step: Step) -> Mapping[str, np.ndarray]:
    """`values`, or what a run on them computes up to a step: where they are the session's inputs and do not suffice."""
    tensors = [session.plan.tensors[i] for i in step.inputs if i is not None]
    needed = {tensor.name for tensor in tensors if tensor.value is None and tensor.kind != "variable"}
    if any(tensor.kind == "variable" for tensor in tensors):
        # Its results tell whether the session's variables are still as they began.
        needed |= {session.plan.tensors[i].name for i in step.outputs}
    if needed <= values.keys() or values.keys() != {port.name for port in session.inputs}:
        return values
    known: dict[str, np.ndarray] = {}

    def finished(position: int) -> None:
        # A run that raises leaves the session's state as it was.
        if session.plan.steps[position] is step:
            raise _ReachedError

    with suppress(_ReachedError):
        session.observe(known.__setitem__, values, progress=finished)
    return known


def explain_site(site: Site) -> Explanation:
    """The explanation of an element whose step and inputs are known."""
    work, found = Work(), None
    for narrator in narrators(site.step.operator):
        work = Work()
        with Untrusted(site.step.place):
            found = narrator(site, work)
        if found is not None:
            break
    if found is None:
        work = Work()
        found = general(site, work)
    stored = site.stored.item()
    if found != stored and not (found != found and stored != stored):
        raise InternalError(
            "BT-EXPLAIN",
            f"'{site.tensor.name}' {place(site.element)} is {stored}, its explanation ends at {found}",
            place=site.step.place,
            advice="please report this model",
        )
    work.add("stored", str(site.stored), f"{site.tensor.dtype}, '{shown_name(site.tensor.name)}' {place(site.element)}")
    return Explanation(
        site.tensor.name,
        site.element,
        site.step.operator,
        site.step.source,
        site.step.index,
        site.plan.numerics,
        dict(site.step.rules),
        tuple(work.lines),
        stored,
        work.numbers,
    )


def named(plan: Plan, text: str) -> str:
    """The name of the tensor that a name or the number of a step stands for; see `bittrue.names.by_number`."""
    steps = {step.index: [plan.tensors[i].name for i in step.outputs] for step in plan.steps}
    return by_number(text, [*(tensor.name for tensor in plan.tensors), *plan.aliases], steps.get, len(steps))


def step_of(plan: Plan, tensor: str) -> tuple[Step, int]:
    """The step that computes a tensor, and the tensor's position among its outputs.

    Raises:
        InputError: no step does.
    """
    names = {t.name: index for index, t in enumerate(plan.tensors)}
    tensor = named(plan, tensor)
    index = names.get(tensor, plan.aliases.get(tensor, -1))
    for step in plan.steps:
        if index in step.outputs:
            return step, step.outputs.index(index)
    if index >= 0:
        found = plan.tensors[index]
        why = {
            "input": "an input: whoever runs the model gives it",
            "constant": "a constant of the model file",
            "folded": "computed at plan time from constants and shapes alone",
            "variable": "a variable: it keeps what the last step that wrote it left",
            "later": "computed by a later stage, which is planned while running",
        }.get(found.kind, "computed by no step")
        raise InputError("BT-EXPLAIN-TENSOR", f"nothing to explain: '{found.name}' is {why}", place="tensor")
    if "::" in tensor:
        raise InputError(
            "BT-EXPLAIN-TENSOR",
            f"'{tensor}' belongs to a graph that a step calls; only tensors of the main graph are explained",
            place="tensor",
        )
    computed = [plan.tensors[i].name for step in plan.steps for i in step.outputs]
    advice = did_you_mean(tensor, computed, "leave the tensor out to list them")
    raise InputError("BT-EXPLAIN-TENSOR", f"no tensor '{tensor}' in this plan", place="tensor", advice=advice)


def inputs_of(plan: Plan, step: Step, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, ...]:
    """The step's inputs: constants of the plan, else from `values`, checked for type and shape.

    Raises:
        InputError: one is missing or does not fit.
    """
    found: list[np.ndarray | None] = []
    for index in step.inputs:
        if index is None:
            found.append(None)
            continue
        tensor = plan.tensors[index]
        if tensor.value is not None:
            found.append(tensor.value)
            continue
        if tensor.kind == "variable":
            found.append(initial_state(tensor))
            continue
        if tensor.name not in values:
            raise InputError(
                "BT-EXPLAIN-VALUE", f"no value for '{tensor.name}', which the step reads", place=step.place
            )
        value = np.asarray(values[tensor.name])
        open_shape = tensor.kind in ("unknown", "later")
        if value.dtype != tensor.type.numpy or (not open_shape and value.shape != tensor.shape):
            raise InputError(
                "BT-EXPLAIN-VALUE",
                f"'{tensor.name}' must be {tensor.type.numpy}{list(tensor.shape)}, "
                f"found {value.dtype}{list(value.shape)}",
                place=step.place,
            )
        found.append(value)
    return tuple(found)


def outputs_of(plan: Plan, values: Mapping[str, np.ndarray], tensor: str, result: np.ndarray | None = None) -> Site:
    """The step behind a tensor, its inputs and what the reference makes of them; no element is chosen yet.

    A known `result` is taken for what the reference makes where the step has no other outputs and no state.
    """
    step, output = step_of(plan, tensor)
    operator = find(step.operator)
    if operator is None or operator.worldly:
        raise UnsupportedError(
            "BT-EXPLAIN-GRAPH", f"{step.source} runs other graphs or touches variables of the session", place=step.place
        )
    inputs = inputs_of(plan, step, values)
    remembers = any(i is not None and plan.tensors[i].kind == "variable" for i in step.inputs)
    if result is not None and len(step.outputs) == 1 and not remembers:
        return Site(plan, settled(step, inputs), output, inputs, (), (result,))
    results = carry_out(plan, step, inputs)[: len(step.outputs)]
    if remembers:
        _check_state(plan, step, values, results)
    return Site(plan, settled(step, inputs), output, inputs, (), tuple(results))


def site_of(
    plan: Plan,
    values: Mapping[str, np.ndarray],
    tensor: str,
    element: Sequence[int],
    result: np.ndarray | None = None,
) -> Site:
    """The step behind an element, with its inputs and what the reference makes of them. Errors: `explain_element`."""
    site = outputs_of(plan, values, tensor, result)
    index = tuple(int(i) for i in element)
    if len(index) != len(site.shape) or not all(0 <= i < e for i, e in zip(index, site.shape, strict=False)):
        raise InputError(
            "BT-EXPLAIN-ELEMENT",
            f"no element {place(index)} in '{site.tensor.name}' of shape {list(site.shape)}",
            place="element",
            advice="give one index per axis, counted from 0",
        )
    return site.at(index)


def _check_state(plan: Plan, step: Step, values: Mapping[str, np.ndarray], results: Sequence[np.ndarray]) -> None:
    """A trace holds the state after a step, not before: only the first run of a session is known from its start."""
    for index, result in zip(step.outputs, results, strict=True):
        name = plan.tensors[index].name
        if name in values and values[name].tobytes() != result.tobytes():
            raise UnsupportedError(
                "BT-EXPLAIN-STATE",
                "the values of this trace follow from a state before the run that the trace does not hold",
                place=step.place,
                advice="trace the first run after reset()",
            )
