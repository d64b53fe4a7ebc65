"""Faults of whole tensors: other layouts, operands in another order, other axes, stale data, bytes mixed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from ...graph import Graph, Node
from ...operators import Operator, find
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values
from .regions import regions

Array = np.ndarray


def results(case: Case) -> Iterator[Hypothesis]:
    """Changes of the order of operands, of axes, and of the tensor as a whole."""
    yield from _orders(case)
    yield from _axes(case)
    yield from _layouts(case)
    yield from _quantized(case)
    yield from regions(case)


def _layouts(case: Case) -> Iterator[Hypothesis]:
    shape = case.theirs[0].shape
    if len(shape) == 4:
        yield _result("result in NCHW order", "the result lies as NCHW where NHWC is meant", (0, 3, 1, 2))
        yield _result("result in NHWC order", "the result lies as NHWC where NCHW is meant", (0, 2, 3, 1))
        yield _result("height and width of the result swapped", "the result lies column by column", (0, 2, 1, 3))
        for axis, ends in ((1, "top to bottom"), (2, "left to right")):
            yield _changed(f"result flipped {ends}", f"the result is flipped {ends}", "data", _along(np.flip, axis))
    if len(shape) == 2:
        yield _result("result transposed", "the result lies column by column", (1, 0))
    if len(shape) > 1 and shape[-1] > 1:
        yield _changed(
            "channels of the result reversed", "the last axis is reversed", "data", lambda y, p: y[..., ::-1]
        )
        for by in (1, -1):
            name, text = "result shifted by one channel", f"channel c holds channel c - {by}".replace("- -", "+ ")
            yield _changed(name, text, "data", _along(np.roll, by, -1))
    for by in (1, -1):
        text = "every element is where the next should be" if by > 0 else "every element is where the last should be"
        name = "result shifted by one element"
        yield _changed(name, text, "data", _along(np.roll, by))


def _along(function: Callable[..., Array], *arguments: int) -> Callable[[Array, Plan], Array]:
    return lambda y, plan: function(y, *arguments)


def _result(name: str, text: str, axes: tuple[int, ...]) -> Hypothesis:
    return _changed(name, text, "data", lambda y, p: np.ascontiguousarray(y.transpose(axes)).reshape(y.shape), "layout")


def _quantized(case: Case) -> Iterator[Hypothesis]:
    kind = case.theirs[0].dtype
    if kind.kind not in "iu":
        return
    ends = np.iinfo(kind)

    def added(by: int) -> Callable[[Array, Plan], Array]:
        return lambda y, p: np.clip(y.astype(np.int64) + by, ends.min, ends.max).astype(kind)

    yield _changed("every value one too large", "every value is one too large", "order", added(1), "values")
    yield _changed("every value one too small", "every value is one too small", "order", added(-1), "values")
    if ends.min < 0:
        text = "quantized values below 0 are 0, whatever the zero point"
        yield _changed("quantized values below 0 cut to 0", text, "range", lambda y, p: np.maximum(y, 0), "values")
    cut = (
        ("lowest bit cleared", "the lowest bit of every quantized value is 0", lambda y, p: (y >> 1) << 1),
        (
            "quantized values doubled",
            "every quantized value is doubled",
            lambda y, p: _saturated(y.astype(np.int64) * 2, y),
        ),
        ("quantized values halved", "every quantized value is halved", lambda y, p: y >> 1),
    )
    for name, text, change in cut:
        yield _changed(name, text, "range", change, "values")
    top = np.array(1, np.int64) << (ends.bits - 1)
    unsigned = np.dtype(f"u{kind.itemsize}")

    def flipped(y: Array, plan: Plan) -> Array:
        return (y.view(unsigned) ^ unsigned.type(top)).view(kind)

    yield _changed(
        "sign bit flipped", "quantized values are signed where unsigned ones are meant", "data", flipped, "values"
    )
    yield _changed(
        "result negated",
        "every value has the other sign",
        "data",
        lambda y, p: _saturated(-y.astype(np.int64), y),
        "values",
    )
    if kind.itemsize > 1:
        yield _changed(
            "bytes swapped", "the bytes of every value are swapped", "data", lambda y, p: y.byteswap(), "values"
        )
        yield _changed(
            "cut to 8 bits",
            "values are cut to 8 bits",
            "data",
            lambda y, p: y.astype(f"{kind.kind}1").astype(kind),
            "values",
        )
        yield _changed(
            "saturated to 8 bits",
            "values saturate to 8 bits",
            "range",
            lambda y, p: np.clip(y, *((-128, 127) if kind.kind == "i" else (0, 255))).astype(kind),
            "values",
        )


def _saturated(values: Array, like: Array) -> Array:
    ends = np.iinfo(like.dtype)
    return np.clip(values, ends.min, ends.max).astype(like.dtype)


def stale(case: Case) -> Iterator[Hypothesis]:
    """Tensors that nobody computed: constant, or left from elsewhere."""
    yield _changed("result is all zeros", "the tensor holds zeros alone", "data", lambda y, p: np.zeros_like(y))
    yield _changed("result is the zero point everywhere", "the tensor holds its zero point alone", "data", _zero_points)
    graph = case.segment.graph
    for index in graph.inputs:
        name = graph.tensors[index].name

        def given(values: Sequence[Values], position: int, which: str = name) -> Array | None:
            return values[position][which]

        yield _replaced(case, "input passed through", f"the tensor holds what '{name}' holds", given)
    if len(case.values) > 1:

        def before(values: Sequence[Values], position: int) -> Values | None:
            return values[position - 1] if position else values[0]

        text = "the tensor is that of the input set before"
        yield Hypothesis(_cause("result of the previous input set", text), "stale", values=before)


def _zero_points(y: Array, plan: Plan) -> Array | None:
    quantization = plan.tensors[plan.outputs[0]].quantization
    return None if quantization is None else np.full_like(y, int(quantization.zero_points[0]))


def _replaced(case: Case, name: str, text: str, given: Callable[[Sequence[Values], int], Array | None]) -> Hypothesis:
    def compute(plan: Plan, values: Values) -> Array | None:
        position = next(i for i, known in enumerate(case.values) if known is values)
        found = given(case.values, position)
        shape = case.theirs[position].shape
        return None if found is None or found.size != np.prod(shape, dtype=int) else found.reshape(shape)

    return Hypothesis(_cause(name, text), "stale", compute=compute)


def _orders(case: Case) -> Iterator[Hypothesis]:
    node = case.segment.graph.nodes[-1]
    operator = find(node.operator)
    if operator is None:
        return
    ordered = operator.elementwise == 2 and not operator.commutes
    if ordered and len(node.inputs) == 2 and case.segment.node is node:
        yield _reordered(node, (1, 0), "operands swapped", "the operands are swapped")
    joins = operator.joins and "given" not in node.attributes
    if joins and 1 < len(node.inputs) <= 4:
        for order in permutations(range(len(node.inputs))):
            if order != tuple(range(len(node.inputs))):
                backwards = order == tuple(reversed(range(len(node.inputs))))
                name = "operands in reversed order" if backwards and len(order) > 2 else "operands in another order"
                text = f"the operands come in the order {[i + 1 for i in order]}"
                if len(order) == 2:
                    swapped = _reordered(node, order, "operands swapped", text)
                    yield replace(swapped, aliases=(replace(swapped.cause, name="operands in reversed order"),))
                else:
                    yield _reordered(node, order, name, text)
    elif joins and len(node.inputs) > 4:
        order = tuple(reversed(range(len(node.inputs))))
        yield _reordered(node, order, "operands in reversed order", "the operands come in reversed order")
    for stem in operator.mistaken_for:
        other = find(stem)
        if other is not None:
            yield _other(node, operator, other)


def _reordered(node: Node, order: tuple[int, ...], name: str, text: str) -> Hypothesis:
    return _node(node, name, text, "operands", lambda n: replace(n, inputs=tuple(n.inputs[i] for i in order)))


def _other(node: Node, mine: Operator, other: Operator) -> Hypothesis:
    from ... import numerics as numerics_tables  # the row of the other operator is A's own

    both = mine.signs and other.signs
    wrong, right = (("sum" if min(o.signs) > 0 else "difference") if both else o.stem for o in (other, mine))

    def numerics(old: object) -> object:
        return numerics_tables.find(old.name)  # type: ignore[attr-defined]

    name, text = f"{wrong} instead of {right}", f"it is a {wrong}, no {right}"
    found = _node(node, name, text, "operator", lambda n: replace(n, operator=other.stem))
    return replace(found, numerics=numerics)  # type: ignore[arg-type]


def _axes(case: Case) -> Iterator[Hypothesis]:
    node = case.segment.node
    rank = case.theirs[0].ndim
    axis = node.attributes.get("axis")
    if isinstance(axis, int) and not isinstance(axis, bool):
        for other in range(rank):
            if other != axis % max(1, rank):
                yield _attribute(node, "axis", other, f"along axis {other}", f"it works along axis {other}, not {axis}")
    for flag, text in (
        ("keep_dims", "kept dimensions"),
        ("exclusive", "exclusive sums"),
        ("reverse", "reversed sums"),
    ):
        value = node.attributes.get(flag)
        if isinstance(value, bool):
            kind = "without" if value else "with"
            yield _attribute(node, flag, not value, f"{flag} is {not value}", f"it works {kind} {text}")
    own = node.attributes.get("transformation")
    if isinstance(own, str):
        for mode in ("asymmetric", "half_pixel", "align_corners"):
            if mode != own:
                text = f"positions are those of {mode}, not of {own}"
                yield _attribute(node, "transformation", mode, f"{mode} in place of {own}", text)
    for name in ("alpha", "beta"):
        value = node.attributes.get(name)
        if isinstance(value, float) and value != 1.0:
            yield _attribute(node, name, 1.0, f"{name} ignored", f"{name} is taken as 1")


def _attribute(node: Node, attribute: str, value: object, name: str, text: str) -> Hypothesis:
    return _node(
        node,
        name,
        text,
        "attribute",
        lambda n: replace(n, attributes={**n.attributes, attribute: value}),  # type: ignore[dict-item]
    )


def _node(node: Node, name: str, text: str, seat: str, change: Callable[[Node], Node]) -> Hypothesis:
    def graph(old: Graph) -> Graph:
        return replace(old, nodes=tuple(change(n) if n.index == node.index else n for n in old.nodes))

    return Hypothesis(Cause(name, f"{text}: a fault", "order", False), seat, graph=graph)


def _changed(
    name: str, text: str, kind: str, change: Callable[[Array, Plan], Array | None], seat: str = "result"
) -> Hypothesis:
    return Hypothesis(_cause(name, text, kind), seat, result=change)


def _cause(name: str, text: str, kind: str = "data") -> Cause:
    return Cause(name, f"{text}: a fault", kind, False)
