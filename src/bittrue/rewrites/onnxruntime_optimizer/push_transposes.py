"""Transpositions go behind the nodes that read them, as the runtime's optimiser moves them.

Each node that reads a transposition is asked once, in order: it is carried out on what stands before the transposition,
with other axes, and its results are transposed, where that leaves less to transpose. What counts is the number of
dimensions other than 1; a result that leads on to another transposition, through nodes that it can pass, costs nothing.
Where transpositions stand decides over which axes sums go, and which binary16 numbers are rounded.
Source: ONNX Runtime 1.31.1, its TransposeOptimizer (test_halves.py and test_moved_transposes.py compare bytes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute, Node, data_type
from ...operators import find
from ...operators.movement.concatenation import data_inputs
from ...records import dataclass
from .. import Shapes
from ..editing import Editor
from .free_dimensions import Sizes, known_sizes
from .inserted_casts import has_kernel

Order = tuple[int, ...]
Shape = tuple[int, ...]

# Nodes that one can pass, or that the runtime believes so.
PASSED = frozenset(
    """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BitShift Cast CastLike Ceil Celu Clip Concat Cos
    Cosh DequantizeLinear Div Elu Equal Erf Exp FastGelu Floor Gather Gelu Greater GreaterOrEqual HardSigmoid
    HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax Max MaxPool Mean Min Mod
    Mul Neg Not Or PRelu Pad Pow QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool
    QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid QLinearSoftmax QuantizeLinear QuickGelu
    Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare Relu Reshape Resize Round Selu Shape Shrink Sigmoid Sign Sin Sinh Slice Softmax
    Softplus Softsign Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile Transpose Unsqueeze Where Xor
    """.split()
)
# What they give is no transposed tensor.
_ENDS = ("Reshape", "Shape", "Transpose")
# Of a tensor whose number of dimensions is not known.
_RANK = 5
# Each round may move every transposition once.
_ROUNDS = 10


@dataclass(frozen=True)
class _Unit:
    """One node of the file, or the nodes that define it: what it is called, and what its nodes write first."""

    source: str
    firsts: tuple[int, ...]


def push_transposes(editor: Editor, shapes: Shapes) -> None:
    """Moves the transpositions of a graph until nothing changes, past definitions as a whole."""
    _Pushes(editor, shapes, whole=True).run(_ROUNDS)


def push_past_definitions(editor: Editor, shapes: Shapes) -> None:
    """The same past the nodes of definitions, one by one.

    By then the runtime has kernels for the rest: only nodes without one are passed, and what is new has none either.
    Last, all are asked once more, and what is new has kernels.
    """
    _Pushes(editor, shapes, assigned=False).run(_ROUNDS)
    push_once(editor, shapes)


def push_once(editor: Editor, shapes: Shapes) -> None:
    """Asks every node once whether transpositions can go behind it."""
    _Pushes(editor, shapes).run(1)


def turn_image(editor: Editor, node: Node, order: Order) -> None:
    """A node on its first operand turned back, and its result transposed by `order`."""
    source, result = node.inputs[0], node.outputs[0]
    assert source is not None
    name = editor.tensors[result].name
    turned, unturned = (
        editor.computed(index, f"{name}/{what}", editor.type(index), (-1,) * len(order))
        for index, what in ((source, "turned"), (result, "unturned"))
    )
    back, axes = (editor.constant(np.array(to, np.int64), f"{name}/order", "s64") for to in (_inverse(order), order))
    editor.add(node, "transpose", (source, back), (turned,), source="Transpose", version=13)
    changed = editor.change(node, inputs=(turned, *node.inputs[1:]), outputs=(unturned,))
    editor.add(changed, "transpose", (unturned, axes), (result,), source="Transpose", version=13)


class _Pushes:
    """One run of the runtime's optimiser.

    Attributes:
        whole: what the runtime defines by other nodes is one node still.
        assigned: nodes with a kernel are passed, too, and what is new has one.
    """

    def __init__(self, editor: Editor, shapes: Shapes, *, whole: bool = False, assigned: bool = True) -> None:
        self.editor = editor
        self._whole, self._assigned = whole, assigned
        # Of what is new; a copy of a tensor has its sizes, whatever they follow from.
        self._known: dict[int, Sizes | None] = {}
        self._shapes = shapes

    def run(self, most: int) -> None:
        if not any(node.source == "Transpose" for node in self.editor.nodes()):
            return
        self._found = known_sizes(self.editor, self._shapes)
        for _ in self.editor.rounds(most):
            units = self._units()
            leading = self._leading_on(units)
            for unit in units:
                if self._assigned or self._is_without(unit):
                    self._ask(unit, leading)

    # -- the graph as the runtime sees it --------------------------------------------------------------------------
    def _units(self) -> list[_Unit]:
        """In the order in which the runtime visits nodes; definitions come in place of nodes later."""
        parts: dict[object, list[int]] = {}
        for node in self.editor.nodes_from_the_end():
            if node.outputs and not self._settled(node):
                whole = (self._whole and node.attributes.get("defines")) or node.outputs[0]
                # A definition stands where its last node does.
                parts[whole] = [*parts.pop(whole, []), node.outputs[0]]
        return [_Unit(self._source(firsts[0]), tuple(firsts)) for firsts in parts.values()]

    def _source(self, first: int) -> str:
        node = self.editor.writer(first)
        return "" if node is None else self._name(node)

    def _name(self, node: Node) -> str:
        """What the runtime calls the node, or the one that it helps to define."""
        whole = node.attributes.get("defines") if self._whole else None
        return whole.split()[0] if isinstance(whole, str) else node.source

    def _is_without(self, unit: _Unit) -> bool:
        return any(map(self._has_none, self._nodes(unit)))

    def _has_none(self, node: Node) -> bool:
        reads = any(self.editor.type(index) == "f16" for index in node.inputs)
        return reads and (bool(node.attributes.get("unassigned")) or not has_kernel(node))

    def _settled(self, node: Node) -> bool:
        """Whether the runtime has folded the node, which it does with Shape and not with Size."""
        return (
            node.source != "Size"
            and not node.attributes.get("computed")
            and all(self._value(i) is not None for i in node.outputs)
        )

    def _value(self, index: int | None) -> np.ndarray | None:
        return self.editor.value(index)

    def _nodes(self, unit: _Unit) -> list[Node]:
        return [node for node in map(self.editor.writer, unit.firsts) if node is not None]

    def _outside(self, unit: _Unit) -> list[int]:
        """Operands that a transposition could be taken from."""
        nodes = self._nodes(unit)
        if len(nodes) == 1:
            return self._moving(nodes[0])
        inside = {index for node in nodes for index in node.outputs}
        found = [index for node in nodes for index in self._moving(node) if index not in inside]
        return [index for index in dict.fromkeys(found) if self._value(index) is None]

    def _results(self, unit: _Unit) -> list[int]:
        nodes = self._nodes(unit)
        inside = {index for node in nodes for index in node.inputs}
        return [index for node in nodes for index in node.outputs if len(nodes) == 1 or index not in inside]

    def _moving(self, node: Node) -> list[int]:
        """Operands of a node that are transposed with its results."""
        wide = _broadcasts(node)
        count = data_inputs(node.attributes, len(node.inputs)) if node.source == "Concat" else None if wide else 1
        return [index for index in node.inputs[:count] if index is not None and not (wide and self.shape(index) == ())]

    def _sizes(self, index: int) -> Sizes | None:
        return self._known[index] if index in self._known else self._found(index)

    def shape(self, index: int | None) -> Shape | None:
        sizes = None if index is None else self._sizes(index)
        return None if sizes is None else tuple(size if isinstance(size, int) else -1 for size in sizes)

    def _rank(self, index: int) -> int:
        """What a transposition of the tensor costs."""
        shape = self.shape(index)
        return _RANK if shape is None else sum(size != 1 for size in shape)

    def _order(self, index: int | None) -> tuple[Node, Order] | None:
        """The transposition that writes a tensor, and its order of axes."""
        turn = self.editor.writer(index)
        if turn is None or turn.source != "Transpose" or self._value(turn.inputs[0]) is not None:
            return None
        if len(turn.inputs) < 2:
            shape = self.shape(turn.inputs[0])
            return None if shape is None else (turn, tuple(range(len(shape)))[::-1])
        value = self._value(turn.inputs[1])
        order = () if value is None else tuple(int(axis) for axis in value)
        return (turn, order) if sorted(order) == list(range(len(order))) else None

    def _readers(self, index: int) -> list[Node]:
        return [node for node, _ in self.editor.readers(index) if not self._settled(node)]

    # -- whether -----------------------------------------------------------------------------------------------------
    def _leading_on(self, units: Sequence[_Unit]) -> set[int]:
        leading: set[int] = set()
        for unit in reversed(units):
            if unit.source == "Transpose" or (
                unit.source in PASSED and unit.source not in _ENDS and not leading.isdisjoint(self._results(unit))
            ):
                leading.update(self._outside(unit))
        return leading

    def _likely_goes(self, turn: Node) -> bool:
        readers = self._readers(turn.outputs[0])
        return not self.editor.gives_result(turn) and all(self._name(reader) in PASSED for reader in readers)

    def _costs(self, index: int, order: Order) -> int:
        if self._value(index) is not None:
            return 0
        found = self._order(index)
        if found is not None:
            return -self._rank(index) if found[1] == order and self._likely_goes(found[0]) else 0
        return self._rank(index)

    def _pays(self, unit: _Unit, order: Order, leading: set[int]) -> bool:
        cost = sum(self._costs(index, order) for index in self._outside(unit))
        results = self._results(unit)
        if cost < 0 and unit.source not in _ENDS and not any(self._leads(i, order, leading) for i in results):
            cost += max(map(self._rank, results), default=0)
        return cost < 0

    def _leads(self, index: int, order: Order, leading: set[int]) -> bool:
        """Whether a result leads on to a transposition: one that undoes this one, where several nodes read it."""
        if index not in leading or index in self.editor.results:
            return False
        readers = self._readers(index)
        if len({(self._whole and node.attributes.get("defines")) or node for node in readers}) == 1:
            return True
        queue, seen = [index], {index}
        while queue:
            for reader in self._readers(queue.pop()):
                back = self._order(reader.outputs[0]) if reader.outputs else None
                if back is not None and back[1] == _inverse(order):
                    return True
                if self._name(reader) in PASSED and self._name(reader) not in _ENDS:
                    # A result of the graph is not gone through.
                    queue += [one for one in reader.outputs if one not in seen and one not in self.editor.results]
                    seen.update(reader.outputs)
        return False

    def _ask(self, unit: _Unit, leading: set[int]) -> bool:
        if unit.source not in PASSED:
            return False
        for index in self._outside(unit):
            found = self._order(index)
            if found is None:
                continue
            turn, order = found
            if unit.source == "Transpose":
                second = self._order(unit.firsts[0])
                if second is not None and self._join(turn, order, *second):
                    return True
            elif self._pays(unit, order, leading) and self._push(unit, turn, order):
                return True
        return False

    # -- how ---------------------------------------------------------------------------------------------------------
    def _push(self, unit: _Unit, turn: Node, order: Order) -> bool:
        nodes = self._nodes(unit)
        if len(nodes) == 1:
            return self._handle(nodes[0], turn, order)
        if not all(_handler(node) in (_Pushes._elements, _Pushes._reduce) for node in nodes):
            return False
        done = False
        for first in unit.firsts:
            node = self.editor.writer(first)
            if node is not None and any((self._order(i) or (0, 0))[1] == order for i in self._moving(node)):
                done = self._handle(node, turn, order) or done
        return done

    def _handle(self, node: Node, turn: Node, order: Order) -> bool:
        handler = _handler(node)
        return handler is not None and handler(self, node, turn, order)

    def _elements(self, node: Node, turn: Node, order: Order) -> bool:
        moving = self._moving(node)
        ranks = [self.shape(index) for index in moving]
        if _broadcasts(node) and any(shape is None or len(shape) > len(order) for shape in ranks):
            return False
        self._turn(node, moving, order, order)
        return True

    def _along(self, node: Node, turn: Node, order: Order) -> bool:
        """One axis is an attribute."""
        axis, rank = node.attributes.get("axis"), len(order)
        if not isinstance(axis, int) or not -rank <= axis < rank:
            return False
        attributes: dict[str, Attribute] = {**node.attributes, "axis": order[axis]}
        if node.attributes.get("flattened"):
            if any((i < axis % rank) != (order[i] < axis % rank) for i in range(rank)):
                return False
            attributes["axis"] = axis
        self._turn(node, self._moving(node), order, order, attributes=attributes)
        return True

    def _pairs(self, node: Node, turn: Node, order: Order) -> bool:
        scale = self.shape(node.inputs[1])
        if scale == ():
            self._turn(node, self._moving(node), order, order)
            return True
        return not node.attributes.get("block_size") and self._along(node, turn, order)

    def _reduce(self, node: Node, turn: Node, order: Order) -> bool:
        given, keeps = (*node.inputs, None)[1], bool(node.attributes.get("keep_dims"))
        value = self._value(given)
        if given is not None and value is None:
            return False
        axes = [] if value is None else [int(axis) for axis in value.reshape(-1)]
        if not axes:
            whole = keeps or node.attributes.get("keeps_without_axes")
            self._turn(node, self._moving(node), order, order if whole else ())
            return True
        return self._over(node, order, axes, keeps)

    def _squeeze(self, node: Node, turn: Node, order: Order) -> bool:
        value = self._value((*node.inputs, None)[1])
        return value is not None and self._over(node, order, [int(axis) for axis in value.reshape(-1)], False)

    def _over(self, node: Node, order: Order, axes: list[int], keeps: bool) -> bool:
        """Axes are an operand; without `keeps` they are none of the result."""
        rank = len(order)
        if any(not -rank <= axis < rank for axis in axes):
            return False
        new = sorted({order[axis] for axis in axes})
        operands = {1: self.editor.constant(np.array(new, np.int64), "axes", "s64")}
        self._turn(node, self._moving(node), order, order if keeps else without(order, new), operands)
        return True

    def _unsqueeze(self, node: Node, turn: Node, order: Order) -> bool:
        value, rank = self._value((*node.inputs, None)[1]), len(order)
        axes = [] if value is None else [int(axis) for axis in value.reshape(-1)]
        rank += len(axes)
        if value is None or any(not -rank <= axis < rank for axis in axes):
            return False
        self._turn(node, self._moving(node), order, _with(order, [axis % rank for axis in axes]))
        return True

    def _gather(self, node: Node, turn: Node, order: Order) -> bool:
        """One index, whose axis goes."""
        axis, rank = node.attributes.get("axis", 0), len(order)
        if self.shape(node.inputs[1]) != () or not isinstance(axis, int) or not -rank <= axis < rank:
            return False
        attributes: dict[str, Attribute] = {**node.attributes, "axis": order[axis]}
        self._turn(node, self._moving(node), order, without(order, [order[axis]]), attributes=attributes)
        return True

    def _slice(self, node: Node, turn: Node, order: Order) -> bool:
        starts, axes, rank = self.shape(node.inputs[1]), self._value((*node.inputs, None, None)[3]), len(order)
        if axes is None:
            if (len(node.inputs) > 3 and node.inputs[3] is not None) or starts is None or len(starts) != 1:
                return False
            axes = np.arange(starts[0])
        if any(not -rank <= axis < rank for axis in axes.reshape(-1)):
            return False
        new = np.array([order[int(axis)] for axis in axes.reshape(-1)], np.int64)
        # The operands of a Slice are of one type.
        dtype = self.editor.type(node.inputs[1])
        operands = {3: self.editor.constant(new.astype(data_type(dtype).numpy), "axes", dtype)}
        self._turn(node, self._moving(node), order, order, operands)
        return True

    def _shape(self, node: Node, turn: Node, order: Order) -> bool:
        """The sizes of what stands before the transposition, picked from in its order."""
        start, end = node.attributes.get("start", 0), node.attributes.get("end", len(order))
        assert isinstance(start, int)
        assert isinstance(end, int)
        result, picked = node.outputs[0], np.array(order[start:end], np.int64)
        axes = self.editor.constant(picked, f"{self.editor.tensors[result].name}/order", "s64")
        sizes = self._new(result, "unturned", (len(order),))
        source = self._turned(node, turn.outputs[0], _inverse(order))
        whole = {name: value for name, value in node.attributes.items() if name not in ("start", "end")}
        changed = self.editor.change(node, inputs=(source,), outputs=(sizes,), attributes=whole)
        along: dict[str, Attribute] = {"axis": 0, "batch_dims": 0, "from_either_end": True}
        self.editor.add(changed, "gather", (sizes, axes), (result,), along, source="Gather", version=13)
        self._drop(turn)
        return True

    def _each_axis(self, node: Node, turn: Node, order: Order) -> bool:
        """An operand has numbers for every axis, once or twice."""
        value = self._value((*node.inputs, None)[1])
        if value is None or value.size % len(order) or len(node.inputs) > 3:
            return False
        new = value.reshape(-1, len(order))[:, list(_inverse(order))].reshape(value.shape)
        operands = {1: self.editor.constant(new, "per_axis", "s64")}
        self._turn(node, self._moving(node), order, order, operands)
        return True

    def _reshape(self, node: Node, turn: Node, order: Order) -> bool:
        """A Reshape that only moves dimensions of 1 is a transposition; one that splits dimensions can be passed."""
        before, after, wanted = (*map(self.shape, (turn.inputs[0], node.inputs[0])), self._value(node.inputs[1]))
        result = self.shape(node.outputs[0])
        if before is None or after is None or wanted is None or result is None or -1 in (*after, *result):
            return False
        left, second = list(after), []
        if len(result) != len(after):
            return len(result) > len(after) and self._split_dimensions(node, order, after, result)
        for size in result:
            place = next((i for i, one in enumerate(left) if one == size or (one not in (-1, 1) and size != 1)), None)
            if place is None or left[place] != size:
                return False
            second.append(place)
            left[place] = -1
        name = self.editor.tensors[node.outputs[0]].name
        axes = self.editor.constant(np.array(second, np.int64), f"{name}/order", "s64")
        made = self.editor.change(
            node, operator="transpose", source="Transpose", version=13, inputs=(node.inputs[0], axes), attributes={}
        )
        return self._join(turn, order, made, tuple(second))

    def _split_dimensions(self, node: Node, order: Order, before: Shape, result: Shape) -> bool:
        """Each dimension becomes some that follow each other."""
        parts: list[list[int]] = []
        place = 0
        for size in before:
            first, place = place, place + 1
            while math.prod(result[first:place]) != size and place < len(result):
                place += 1
            parts.append(list(range(first, place)))
            if math.prod(result[first:place]) != size or place > len(result):
                return False
        if place < len(result):
            return False
        axes = [axis for at in _inverse(order) for axis in parts[at]]
        shape = self.editor.constant(np.array([result[axis] for axis in axes], np.int64), "shape", "s64")
        self._turn(node, self._moving(node), order, _inverse(tuple(axes)), {1: shape})
        return True

    def _join(self, first: Node, order: Order, second: Node, then: Order) -> bool:
        """A transposition of a transposition."""
        editor, source, result = self.editor, first.inputs[0], second.outputs[0]
        if source is None or len(order) != len(then):
            return False
        both = tuple(order[axis] for axis in then)
        if both != tuple(range(len(both))):
            axes = editor.constant(np.array(both, np.int64), f"{editor.tensors[result].name}/order", "s64")
            editor.change(second, inputs=(source, axes))
        elif not editor.gives_result(second):
            editor.replace_reads(result, source)
            editor.remove(second)
        else:
            writer = editor.writer(source)
            editor.remove(second)
            if writer is not None and not editor.gives_result(writer):
                editor.replace_reads(source, result)
                outputs = tuple(result if index == source else index for index in writer.outputs)
                editor.change(writer, outputs=outputs)
            else:
                editor.add(second, "identity", (source,), (result,), source="Identity", version=13)
        # What was read in its place may have replaced it.
        left = editor.writer(first.outputs[0])
        if left is not None:
            self._drop(left)
        return True

    def _turn(
        self,
        node: Node,
        moving: Sequence[int],
        order: Order,
        behind: Order,
        operands: dict[int, int] | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        """The node on operands that are turned back, with other constants, and its results transposed."""
        editor, inputs = self.editor, list(node.inputs)
        was = [writer for index in moving if (writer := editor.writer(index)) is not None]
        for position, index in enumerate(inputs):
            if index is not None and index in moving:
                inputs[position] = self._turned(node, self._widened(node, index, len(order)), _inverse(order))
        for position, constant in (operands or {}).items():
            inputs += [None] * (position + 1 - len(inputs))
            inputs[position] = constant
        outputs = list(node.outputs)
        trivial = behind == tuple(range(len(behind)))
        for position, result in enumerate(node.outputs):
            if not trivial:
                outputs[position] = self._new(result, "unturned", self._permuted(result, _inverse(behind)))
        changed = editor.change(
            node, inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes or dict(node.attributes)
        )
        for new, result in zip(outputs, node.outputs, strict=True):
            if new != result:
                self._transpose(changed, new, result, behind)
        for writer in was:
            if editor.alive(writer):
                self._drop(writer)

    def _widened(self, node: Node, index: int, rank: int) -> int:
        """The operand with as many dimensions, the new ones in front."""
        editor, shape = self.editor, self._sizes(index)
        value = self._value(index)
        if shape is None or len(shape) >= rank:
            return index
        added, name = rank - len(shape), editor.tensors[index].name
        wide = (1,) * added + shape
        if value is not None:
            new = editor.constant(value.reshape(wide), f"{name}/wide", editor.type(index))
            self._known[new] = wide
            return new
        writer = editor.writer(index)
        if writer is not None and writer.source == "Squeeze":
            axes = self._value((*writer.inputs, None)[1])
            if axes is not None and list(axes.reshape(-1)) == list(range(added)) and writer.inputs[0] is not None:
                return writer.inputs[0]
        axes_added = editor.constant(np.arange(added, dtype=np.int64), f"{name}/axes", "s64")
        found, before, turned = self._order(index), index, tuple[int, ...]()
        if found is not None and found[0].inputs[0] is not None:
            before, turned = found[0].inputs[0], _with(found[1], list(range(added)))
        inner = self._sizes(before)
        new = self._new(index, "unsqueezed", None if inner is None else (1,) * added + inner)
        marks: dict[str, Attribute] = {"made": True} if self._assigned else {"made": True, "unassigned": True}
        made = editor.add(node, "expand_dims", (before, axes_added), (new,), marks, source="Unsqueeze", version=13)
        if not turned:
            return new
        result = self._new(index, "wide", wide)
        self._transpose(made, new, result, turned)
        return result

    def _turned(self, node: Node, index: int, order: Order) -> int:
        """The operand transposed: a constant, what another transposition is taken from, or a new one."""
        editor = self.editor
        value, name = self._value(index), editor.tensors[index].name
        if value is not None:
            if value.size == 1 or value.ndim != len(order):
                return index
            new = editor.constant(value.transpose(order), f"{name}/turned", editor.type(index))
            self._known[new] = value.transpose(order).shape
            return new
        found = self._order(index)
        if found is not None and len(found[1]) == len(order) and found[0].inputs[0] is not None:
            source, both = found[0].inputs[0], tuple(found[1][axis] for axis in order)
            if both == tuple(range(len(both))):
                return source
            index, order = source, both
        for reader in self._readers(index):
            there = self._order(reader.outputs[0]) if reader.source == "Transpose" else None
            if there is not None and there[1] == order and found is None:
                return reader.outputs[0]
        new = self._new(index, "turned", self._permuted(index, order))
        self._transpose(node, index, new, order)
        return new

    def _permuted(self, index: int, order: Order) -> Sizes | None:
        sizes = self._sizes(index)
        return None if sizes is None or len(sizes) != len(order) else tuple(sizes[axis] for axis in order)

    def _new(self, like: int, name: str, sizes: Sizes | None) -> int:
        tensor = self.editor.tensors[like]
        new = self.editor.computed(None, f"{tensor.name}/{name}", tensor.dtype, sizes)
        self._known[new] = sizes
        return new

    def _transpose(self, near: Node, source: int, result: int, order: Order) -> None:
        editor = self.editor
        axes = editor.constant(np.array(order, np.int64), f"{editor.tensors[result].name}/order", "s64")
        marks: dict[str, Attribute] = {"made": True} if self._assigned else {"made": True, "unassigned": True}
        editor.add(near, "transpose", (source, axes), (result,), marks, source="Transpose", version=13)

    def _drop(self, node: Node) -> None:
        if (
            node.source in ("Transpose", "Squeeze")
            and not self.editor.edges(node)
            and not self.editor.gives_result(node)
        ):
            self.editor.remove(node)


_Handler = Callable[[_Pushes, Node, Node, Order], bool]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(("Concat", "Split", "Softmax", "LogSoftmax", "Hardmax"), _Pushes._along),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _Pushes._pairs),
    **dict.fromkeys((one for one in PASSED if one.startswith("Reduce")), _Pushes._reduce),
    **dict.fromkeys(("Pad", "Tile"), _Pushes._each_axis),
    "Gather": _Pushes._gather,
    "Identity": _Pushes._elements,
    "Reshape": _Pushes._reshape,
    "Shape": _Pushes._shape,
    "Slice": _Pushes._slice,
    "Squeeze": _Pushes._squeeze,
    "Unsqueeze": _Pushes._unsqueeze,
}


def _handler(node: Node) -> _Handler | None:
    operator = find(node.operator)
    if node.source in _HANDLERS:
        return _HANDLERS[node.source]
    works = operator is not None and operator.elementwise > 0
    return _Pushes._elements if works and node.source in PASSED else None


def _broadcasts(node: Node) -> bool:
    operator = find(node.operator)
    return operator is not None and operator.elementwise > 1


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def without(order: Order, gone: Sequence[int]) -> Order:
    """The order of the axes that are left when some of those before a transposition go."""
    left = [axis for axis in range(len(order)) if axis not in gone]
    return tuple(left.index(axis) for axis in order if axis not in gone)


def _with(order: Order, added: Sequence[int]) -> Order:
    """The order with axes of size 1 that keep their places."""
    places = [axis for axis in range(len(order) + len(added)) if axis not in added]
    rest = iter(order)
    return tuple(axis if axis in added else places[next(rest)] for axis in range(len(places) + len(added)))
