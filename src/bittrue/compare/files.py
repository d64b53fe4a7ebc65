"""Two files of one format, node by node: in which parameters, attributes and constants they differ.

What differs between the files is known without running anything; that it explains the other side's bits is proven by
planning the host's part with the other file's parameters and computing it again.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np

from ..errors import BittrueError
from ..graph import Graph, Node, Quantization, Tensor
from ..names import short
from ..numerics import Numerics
from ..plan.declared import rewritten_graph
from ..runners.base import Runner
from .host import Host
from .hypotheses.case import Hypothesis, change_tensors
from .hypotheses.operands import operand_roles
from .result import Cause
from .segments import ChangeGraph
from .window_words import Part, window_parts

_MOST_NOTES = 8
_SHOWN = 3
# Characters of a tensor's name that are shown.
_NAME = 48
# Constants of so many axes are tried in every order of them.
_MOST_AXES = 4


@dataclass(frozen=True, eq=False)
class Difference:
    """One thing in which the other file differs.

    Attributes:
        node: of the host's graph.
        name: stable, for `Cause.name`.
        text: what is wrong, for people, as in `Cause.text`.
        facts: what stands in the one file, and what in the other.
        kind: as in `Cause`.
        change: makes the host's graph have it; None where that graph does not say all of it.
        wide: it takes rows of other operators than the host's part has.
        tensor: name of the changed tensor in the host's graph; parts of it count their tensors anew.
    """

    node: Node
    name: str
    text: str
    facts: str
    kind: str
    change: ChangeGraph | None = None
    wide: bool = False
    tensor: str = ""

    @property
    def cause(self) -> Cause:
        """What is claimed where this explains B's bits."""
        return Cause(self.name, f"{self.text} ({self.facts}): a fault", self.kind, False)

    def hypothesis(self, own: Numerics) -> Hypothesis:
        """That this is why B's bits are others. `own` is the host's numerics."""
        rows = tuple(replace(row, requires=()) for row in own.rows)
        numerics = (lambda base: replace(base, rows=rows)) if self.wide else None
        return Hypothesis(self.cause, f"file {id(self)}", graph=self.change, numerics=numerics)


@dataclass(eq=False)
class Files:
    """The host's graph and the other side's, node by node.

    Attributes:
        host, other: graphs after the same rewrites.
        labels: of the host's side and of the other, ``"A"`` and ``"B"``.
    """

    host: Graph
    other: Graph
    labels: tuple[str, str]
    _nodes: dict[int, Node] = field(default_factory=dict, init=False)
    _partners: dict[int, int] = field(default_factory=dict, init=False)
    _known: dict[int, list[Difference]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if len(self.host.inputs) == len(self.other.inputs):
            self._partners.update(zip(self.host.inputs, self.other.inputs, strict=True))
        for one, two in _aligned(self.host, self.other):
            self._nodes[one.index] = two
            self._partners.update(zip(one.outputs, two.outputs, strict=False))

    def of(self, nodes: Sequence[Node]) -> list[Difference]:
        """What the other file has differently at these nodes of the host's."""
        found: dict[tuple[str, str], Difference] = {}
        for node in nodes:
            if node.index not in self._known:
                partner = self._nodes.get(node.index)
                self._known[node.index] = [] if partner is None else list(self._between(node, partner))
            for difference in self._known[node.index]:
                found.setdefault((difference.name, difference.facts), difference)
        return list(found.values())

    def notes(self) -> list[str]:
        """One sentence on all that differs; nothing when nothing does."""
        lines: dict[str, None] = {}
        for node in self.host.nodes:
            for difference in self.of([node]):
                lines.setdefault(difference.facts, None)
        missing = [node for node in self.host.nodes if node.index not in self._nodes]
        partners = {node.index for node in self._nodes.values()}
        more = [node for node in self.other.nodes if node.index not in partners]
        for nodes, label in ((missing, self.labels[1]), (more, self.labels[0])):
            for node in nodes:
                lines[f"{label}'s file has no partner of {node}"] = None
        if not lines:
            return []
        shown = list(lines)[:_MOST_NOTES]
        left = f"; and {len(lines) - len(shown)} more" if len(lines) > len(shown) else ""
        return [f"the files differ: {'; '.join(shown)}{left}"]

    def _between(self, a: Node, b: Node) -> Iterator[Difference]:
        yield from self._attributes(a, b)
        roles = dict(operand_roles(self.host, a))
        wiring = self._wiring(a, b)
        if wiring is not None:
            yield wiring
        swapped = wiring is not None and wiring.change is not None
        for position, index in enumerate(a.inputs):
            partner = b.inputs[position] if position < len(b.inputs) else None
            if swapped and index is not None and not self.host.tensors[index].is_constant:
                partner = self._partners.get(index)
            role = roles.get(position, f"operand {position + 1}")
            if index is None or partner is None:
                if (index is None) != (partner is None):
                    yield self._absent(a, position, index, role)
                continue
            yield from self._tensors(a, index, partner, role)
        for one, two in zip(a.outputs, b.outputs, strict=False):
            yield from self._tensors(a, one, two, "output")

    def _attributes(self, a: Node, b: Node) -> Iterator[Difference]:
        if a.operator != b.operator:

            def become(graph: Graph) -> Graph:
                return _with_node(graph, a, operator=b.operator, source=b.source, attributes=b.attributes)

            name = f"{b.source} instead of {a.source}"
            facts = f"{a} of {self.labels[0]}'s file is {b.source} in {self.labels[1]}'s"
            yield Difference(a, name, f"the operator is {b.source} instead of {a.source}", facts, "data", become, True)
            return
        keys = [key for key in sorted({*a.attributes, *b.attributes}) if _differs(a, b, key)]
        for part in window_parts(a.attributes, b.attributes, keys):
            keys = [key for key in keys if key not in part.keys]
            yield self._attribute(a, b, part, "geometry")
        groups: dict[str, list[str]] = {}
        for key in keys:
            # Height and width of one thing are one thing.
            groups.setdefault(key.removesuffix("_h").removesuffix("_w"), []).append(key)
        for stem, same in groups.items():
            key = stem if len(same) > 1 else same[0]
            one, two = [[n.attributes.get(k) for k in same] if len(same) > 1 else n.attributes.get(key) for n in (a, b)]
            geometry = any(part in key for part in ("pad", "stride", "dilation", "filter", "kernel", "axis"))
            kind = "geometry" if geometry else "range" if key == "activation" else "parameters"
            yield self._attribute(a, b, Part(key.replace("_", " "), one, two, tuple(same)), kind)

    def _attribute(self, node: Node, other: Node, part: Part, kind: str) -> Difference:
        word, one, two = part.word, part.one, part.two
        theirs = {k: other.attributes[k] for k in part.keys if k in other.attributes}

        def change(graph: Graph) -> Graph:
            now = next(n for n in graph.nodes if n.index == node.index)
            return _with_node(graph, node, attributes={**now.attributes, **theirs})

        facts = f"{self.labels[1]}'s file has {word} {_value(two)} at {node}, {self.labels[0]}'s {_value(one)}"
        name = f"{word} {_value(two)} instead of {_value(one)}"
        text = f"fused {name}" if word == "activation" else name
        return Difference(node, name, text, facts, kind, change)

    def _wiring(self, a: Node, b: Node) -> Difference | None:
        """Computed operands that are others."""
        mine = [i for i in a.inputs if i is not None and not self.host.tensors[i].is_constant]
        wanted = [self._partners.get(i) for i in mine]
        theirs = [i for i in b.inputs if i is not None and not self.other.tensors[i].is_constant]
        if wanted == theirs or None in wanted:
            return None
        facts = f"{a} reads {_names(self.host, mine)} in {self.labels[0]}'s file"
        facts += f", {_names(self.other, theirs)} in {self.labels[1]}'s"
        back = dict(zip(wanted, mine, strict=True))
        if sorted(theirs) != sorted(i for i in wanted if i is not None) or len(a.inputs) != len(b.inputs):
            return Difference(a, "other operands", "it reads other tensors", facts, "data")
        order = iter(a.inputs.index(back[i]) for i in theirs)
        sources = [next(order) if i in mine else position for position, i in enumerate(a.inputs)]

        def change(graph: Graph) -> Graph:
            now = next(n for n in graph.nodes if n.index == a.index)
            return _with_node(graph, a, inputs=tuple(now.inputs[position] for position in sources))

        return Difference(a, "operands swapped", "the operands are in another order", facts, "data", change)

    def _absent(self, a: Node, position: int, index: int | None, role: str) -> Difference:
        facts = f"{self.labels[index is not None]}'s file has no {role} at {a}"
        if index is None:
            return Difference(a, f"{role} added", f"there is a {role}", facts, "parameters")
        name = "bias dropped" if role == "bias" else f"{role} left out"

        def change(graph: Graph) -> Graph:
            now = next(n for n in graph.nodes if n.index == a.index)
            return _with_node(graph, a, inputs=(*now.inputs[:position], None, *now.inputs[position + 1 :]))

        return Difference(a, name, f"the {role} is left out", facts, "parameters", change)

    def _tensors(self, node: Node, index: int, partner: int, role: str) -> Iterator[Difference]:
        one, two = self.host.tensors[index], self.other.tensors[partner]
        whose = f"{role} {_quoted(two.name)}"
        if one.dtype != two.dtype:
            facts = f"{self.labels[1]}'s {whose} at {node} is {two.dtype}, {self.labels[0]}'s {one.dtype}"
            name = f"{role} type {two.dtype} instead of {one.dtype}"
            yield Difference(node, name, f"the {role} has another type", facts, "data")
        elif one.is_constant != two.is_constant:
            facts = f"{whose} at {node} is a constant in one file alone"
            yield Difference(node, f"{role} constant in one file", f"the {role} is computed", facts, "data")
        elif one.is_constant:
            yield from self._constants(node, one, two, role)
        yield from self._quantization(node, one, two, role)

    def _constants(self, node: Node, one: Tensor, two: Tensor, role: str) -> Iterator[Difference]:
        assert one.data is not None
        assert two.data is not None
        if one.shape == two.shape and one.data.tobytes() == two.data.tobytes():
            return
        kind = "parameters" if role.endswith(("bias", "scale", "zero point")) else "data"

        def change(graph: Graph) -> Graph:
            return _with_tensor(graph, one.name, lambda t: replace(t, data=two.data, shape=two.shape))

        plain = role if role != "weight" else "weights"
        mine, its = one.values(), two.values()
        if mine.size != its.size or mine.tobytes() == its.tobytes():
            facts = f"{_quoted(two.name)} has shape {list(two.shape)} in {self.labels[1]}'s file"
            facts += f", {list(one.shape)} in {self.labels[0]}'s"
            text = f"the {plain} {'have' if plain == 'weights' else 'has'} another shape"
            yield Difference(node, f"{plain} of another shape", text, facts, kind, change, tensor=one.name)
            return
        its = its.reshape(mine.shape)
        for what, named in (("zero point", _points), ("scale", _scales)):
            if role.endswith(f" {what}"):
                old, new = mine.reshape(-1), its.reshape(-1)
                name, text = named(role.removesuffix(f" {what}"), old, new)
                facts = _pair(_quoted(two.name), old, new, self.labels)
                yield Difference(node, name, text, facts, kind, change, tensor=one.name)
                return
        facts = _changed(two.name, mine, its, self.labels)
        name, text = changed_name(plain, mine, its)
        yield Difference(node, name, text, facts, kind, change, tensor=one.name)

    def _quantization(self, node: Node, one: Tensor, two: Tensor, role: str) -> Iterator[Difference]:
        old, new = one.quantization, two.quantization
        if old is None and new is None:
            return
        where = _quoted(two.name)
        if old is None or new is None or old.scales.shape != new.scales.shape or old.axis != new.axis:
            facts = f"{where}: {new or 'no scale'} in {self.labels[1]}'s file, {old or 'none'} in {self.labels[0]}'s"

            def whole(graph: Graph) -> Graph:
                return _with_tensor(graph, one.name, lambda t: replace(t, quantization=new))

            text = f"the {_whose(role)} scales belong to other slices"
            yield Difference(node, f"{role} quantized differently", text, facts, "parameters", whole, tensor=one.name)
            return
        if not np.array_equal(old.zero_points, new.zero_points):
            facts = _pair(f"zero point of {where}", old.zero_points, new.zero_points, self.labels)
            points = new.zero_points
            change = _set(one.name, lambda q: Quantization(q.scales, points, q.axis, q.declared_axis))
            name, text = _points(role, old.zero_points, new.zero_points)
            yield Difference(node, name, text, facts, "parameters", change, tensor=one.name)
        if not np.array_equal(old.scales, new.scales):
            facts = _pair(f"scale of {where}", old.scales, new.scales, self.labels)
            scales = new.scales
            change = _set(one.name, lambda q: Quantization(scales, q.zero_points, q.axis, q.declared_axis))
            name, text = _scales(role, old.scales, new.scales)
            yield Difference(node, name, text, facts, "parameters", change, tensor=one.name)


def files_of(host: Host, guest: Runner, labels: tuple[str, str]) -> Files | None:
    """The files of both sides; None where they are one, or of two formats, or one side has none."""
    if guest.model is None or host.runner.model is None or guest.model.format != host.runner.model.format:
        return None
    if same_file(host.runner, guest):
        return None
    try:
        other = rewritten_graph(guest.model.graph, host.numerics)[0]
    except BittrueError:
        # The host's rewrites do not take it: then nothing is said of files.
        return None
    return Files(host.graph, other, labels)


def same_places(one: Graph, two: Graph) -> list[tuple[str, str]]:
    """Names of tensors at the same place of two graphs that are alike node by node, but for one operator in ten."""
    if len(one.nodes) != len(two.nodes) or len(one.inputs) != len(two.inputs):
        return []
    nodes = list(zip(one.nodes, two.nodes, strict=True))
    if any((len(a.inputs), len(a.outputs)) != (len(b.inputs), len(b.outputs)) for a, b in nodes):
        return []
    if sum(a.operator != b.operator for a, b in nodes) > max(1, len(nodes) // 10):
        return []
    return [
        (one.tensors[i].name, two.tensors[k].name) for a, b in nodes for i, k in zip(a.outputs, b.outputs, strict=True)
    ]


def same_file(one: Runner, other: Runner) -> bool:
    """Whether both sides read a file with the same bytes."""
    return one.path.is_file() and other.path.is_file() and one.path.read_bytes() == other.path.read_bytes()


def _aligned(one: Graph, two: Graph) -> Iterator[tuple[Node, Node]]:
    """Nodes that stand for each other: those that compute tensors of one name, else by operator and order."""
    named = {two.tensors[i].name: node for node in two.nodes for i in node.outputs}
    left, taken = [], set()
    for node in one.nodes:
        partner = next((named[one.tensors[i].name] for i in node.outputs if one.tensors[i].name in named), None)
        if partner is None or partner.index in taken:
            left.append(node)
        else:
            taken.add(partner.index)
            yield node, partner
    others = [node for node in two.nodes if node.index not in taken]
    words = [[(n.operator, len(n.inputs), len(n.outputs)) for n in nodes] for nodes in (left, others)]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
        # What is replaced one for one is another operator at the same place.
        if tag == "equal" or (tag == "replace" and b - a == d - c):
            yield from zip(left[a:b], others[c:d], strict=True)


def tensor_index(graph: Graph, name: str) -> int:
    """Where a graph, or a part of one, has the tensor of this name."""
    return next(i for i, tensor in enumerate(graph.tensors) if tensor.name == name)


def _with_tensor(graph: Graph, name: str, change: Callable[[Tensor], Tensor]) -> Graph:
    return change_tensors(graph, {tensor_index(graph, name): change})


def _with_node(graph: Graph, node: Node, **changes: Any) -> Graph:
    return replace(graph, nodes=tuple(replace(n, **changes) if n.index == node.index else n for n in graph.nodes))


def _set(name: str, change: Callable[[Quantization], Quantization]) -> ChangeGraph:
    def changed(tensor: Tensor) -> Tensor:
        assert tensor.quantization is not None
        return replace(tensor, quantization=change(tensor.quantization))

    return lambda graph: _with_tensor(graph, name, changed)


def _points(role: str, old: np.ndarray, new: np.ndarray) -> tuple[str, str]:
    apart = np.unique(new.astype(np.int64) - old.astype(np.int64))
    if apart.size > 1:
        return f"{role} zero points of channels changed", f"the {_whose(role)} zero points are others"
    by = abs(int(apart[0]))
    words = f"{'one' if by == 1 else by} too {'large' if apart[0] > 0 else 'small'}"
    if not new.any():
        words = "ignored"
    return f"{role} zero point {words}", f"the {_whose(role)} zero point is {words}"


def _scales(role: str, old: np.ndarray, new: np.ndarray) -> tuple[str, str]:
    with np.errstate(all="ignore"):
        ratios = np.unique((new.astype(np.float64) / old).astype(np.float32))
    if old.size > 1 and np.array_equal(np.sort(old), np.sort(new)):
        return f"{role} scales in another order", f"the {_whose(role)} scales are in another order"
    if ratios.size == 1:
        times = f"{ratios[0]:.6g} times as large"
        return f"{role} scale {times}", f"the {_whose(role)} scale is {times}"
    where = np.flatnonzero(new != old)
    channels = f" of channel {where[0]}" if where.size == 1 else f" of {where.size} channels"
    return f"{role} scale{channels} changed", f"the {_whose(role)} scale{channels} is another"


def changed_name(role: str, mine: np.ndarray, its: np.ndarray) -> tuple[str, str]:
    """Name and text of a constant that is another: how the one is made of the other, if that can be said.

    >>> changed_name("weights", np.int8([[1, 2], [3, 4]]), np.int8([[2, 1], [4, 3]]))
    ('weights reversed along axis 1', 'the weights are reversed along axis 1')
    """
    differs = _unequal(mine, its)
    count = int(differs.sum())
    are = "are" if role == "weights" else "is"
    if mine.size == 1:
        return f"{role} changed", f"the {role} {are} {_value(its.flat[0])} instead of {_value(mine.flat[0])}"
    if not its.any():
        # As a device without it would be named.
        if role == "bias":
            return "bias dropped", "the bias is left out"
        return f"{role} all zero", f"the {role} {are} all zero"
    way = _way(mine, its)
    if way is not None:
        return f"{role} {way}", f"the {role} {are} {way}"
    pairs = {(_value(a), _value(b)) for a, b in zip(mine[differs][:1024], its[differs][:1024], strict=True)}
    if count > 1 and len(pairs) == 1:
        old, new = next(iter(pairs))
        return f"{role} {old} changed to {new}", f"{count} {role} of {old} are {new}"
    if role == "bias" and mine.ndim == 1 and count < mine.size:
        where = np.flatnonzero(differs)
        channels = f"in channel{'s' if count > 1 else ''} {', '.join(map(str, where[:_SHOWN]))}"
        channels += " ..." if count > _SHOWN else ""
        done = ("dropped", "left out") if not its[differs].any() else ("changed", "another")
        return f"bias {done[0]} {channels}", f"the bias is {done[1]} {channels}"
    if count == 1:
        one = {"weights": "one weight"}.get(role, f"one value of the {role}")
        return f"{one} changed", f"{one} is another"
    values = role if role == "weights" else f"values of the {role}"
    return f"{role} changed", f"{count} of {mine.size} {values} are others"


def _way(mine: np.ndarray, its: np.ndarray) -> str | None:
    """What was done to all of `mine`, in words: another order of its slices, of its axes, of its signs."""
    if mine.dtype.kind == "i":
        limits = np.iinfo(mine.dtype)
        if np.array_equal(np.clip(-mine.astype(np.int64), limits.min, limits.max), its):
            return "negated"
    for axis in range(mine.ndim):
        if np.array_equal(np.flip(mine, axis), its):
            return f"reversed along axis {axis}"
        for step in (1, -1):
            if np.array_equal(np.roll(mine, step, axis), its):
                return f"shifted by one along axis {axis}"
    if 2 <= mine.ndim <= _MOST_AXES:
        for order in permutations(range(mine.ndim)):
            turned = mine.transpose(order)
            if np.array_equal(turned.reshape(mine.shape), its):
                return f"transposed to axes {' '.join(map(str, order))}"
            back = np.empty(turned.shape, mine.dtype)
            back.reshape(-1)[:] = mine.reshape(-1)
            if np.array_equal(back.transpose(np.argsort(order)), its):
                return f"transposed from axes {' '.join(map(str, order))}"
    moved = _permuted(mine, its)
    return None if moved is None else f"permuted along axis {moved}"


def _permuted(mine: np.ndarray, its: np.ndarray) -> int | None:
    """The axis along which `its` has the slices of `mine` in another order."""
    for axis, size in enumerate(mine.shape):
        if size < 2:
            continue
        rows = [sorted(np.ascontiguousarray(s).tobytes() for s in np.moveaxis(x, axis, 0)) for x in (mine, its)]
        if rows[0] == rows[1]:
            return axis
    return None


def _changed(name: str, mine: np.ndarray, its: np.ndarray, labels: tuple[str, str]) -> str:
    differs = _unequal(mine, its)
    where = np.argwhere(differs)
    start = f"{_quoted(name)} differs between the files in {len(where)} of {mine.size} values"
    shown = [
        f"{_at(e)} is {_value(its[tuple(e)])} in {labels[1]}'s, {_value(mine[tuple(e)])} in {labels[0]}'s"
        for e in where[: _SHOWN if len(where) <= _SHOWN else 1]
    ]
    return f"{start}: {', '.join(shown)}" if len(where) <= _SHOWN else f"{start}, the first: {shown[0]}"


def _at(element: np.ndarray) -> str:
    return f"[{','.join(map(str, element))}]"


def _unequal(mine: np.ndarray, its: np.ndarray) -> np.ndarray:
    if mine.dtype.kind != "f":
        return np.asarray(mine != its)
    return np.asarray(mine.view(f"u{mine.itemsize}") != its.view(f"u{its.itemsize}"))


def _pair(what: str, old: np.ndarray, new: np.ndarray, labels: tuple[str, str]) -> str:
    where = np.flatnonzero(old != new)
    first = int(where[0])
    more = f" of channel {first}" if old.size > 1 else ""
    left = f" ({len(where)} channels differ)" if len(where) > 1 else ""
    return f"{what}{more} is {_value(new[first])} in {labels[1]}'s file, {_value(old[first])} in {labels[0]}'s{left}"


def _differs(a: Node, b: Node, key: str) -> bool:
    one, two = a.attributes.get(key), b.attributes.get(key)
    return one != two or type(one) is not type(two)


def _value(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.9g}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def _quoted(name: str) -> str:
    """The name; of long ones both ends."""
    return f"'{short(name, _NAME)}'"


def _names(graph: Graph, indices: Sequence[int]) -> str:
    return " and ".join(_quoted(graph.tensors[i].name) for i in indices)


def _whose(role: str) -> str:
    return f"{role}'s" if role != "weight" else "weights'"
