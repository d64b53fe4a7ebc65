"""Where transpositions go before casts are inserted: towards others, past nodes that work on elements and their places.

Only what this changes for binary16 numbers is told, because values stay the same: who reads whom then.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_halves.py compares bytes).
"""

from __future__ import annotations

from ...graph import Node
from ...operators import find
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape

_PLACES = ("Concat", "Slice")
# Only their first operand is transposed with the result.
_FIRST = ("Clip", "Slice")
# A tensor of unknown rank.
_RANK = 5


class MovedTransposes:
    """Which transpositions move on, and what is transposed in their place.

    Attributes:
        before: the tensor before a transposition that moves on, by its result.
        turned: operands that are transposed because another operand of their reader no longer is.
    """

    def __init__(self, editor: Editor, shapes: Shapes) -> None:
        self.editor, self.shapes = editor, shapes
        self.before: dict[int, int] = {}
        self.turned: set[int] = set()
        nodes = editor.nodes()
        if sum(node.source == "Transpose" for node in nodes) < 2:
            return
        self._leading = self._leading_on(nodes)
        self._move(nodes)

    def writer(self, index: int | None) -> Node | None:
        """The node that writes a tensor, or what is before a transposition that moves on."""
        return self.editor.writer(index if index is None else self.before.get(index, index))

    def readers(self, index: int) -> list[Node]:
        """The nodes that read a tensor, those behind a transposition that moves on among them."""
        found: list[Node] = []
        for reader, _ in self.editor.readers(index):
            moves = reader.source == "Transpose" and reader.outputs[0] in self.before
            found += self.readers(reader.outputs[0]) if moves else [reader]
        return found

    # -- inside ----------------------------------------------------------------------------------------------------
    def _leading_on(self, nodes: list[Node]) -> set[int]:
        """What leads to a transposition through nodes that one can pass."""
        leading: set[int] = set()
        for node in reversed(nodes):
            if node.source == "Transpose" and node.inputs[0] is not None:
                leading.add(node.inputs[0])
            elif not leading.isdisjoint(node.outputs) and _passed(node):
                leading.update(_operands(node))
        return leading

    def _move(self, nodes: list[Node]) -> None:
        editor, behind = self.editor, set[int]()
        for node in nodes:
            if node.source == "Transpose":
                readers = [reader for reader, _ in editor.readers(node.outputs[0])]
                on = all(r.source in ("Shape", "Transpose") or self._lets_pass(r, node.outputs[0]) for r in readers)
                # Seen of keys of which a part is rotated: what slices alone read stays for one of them.
                on = on and any(reader.source != "Slice" for reader in readers)
                if on and not editor.gives_result(node) and editor.value(node.inputs[0]) is None:
                    assert node.inputs[0] is not None
                    self.before[node.outputs[0]] = node.inputs[0]
                    behind.add(node.outputs[0])
            elif not behind.isdisjoint(node.inputs) and _passed(node) and not self._leading.isdisjoint(node.outputs):
                operands = _operands(node)
                others = [i for i in operands if i not in behind and editor.value(i) is None]
                if sum(map(self._rank, others)) < sum(self._rank(i) for i in operands if i in behind):
                    self.turned.update(others)
                    behind.update(node.outputs)

    def _lets_pass(self, node: Node, index: int) -> bool:
        return _passed(node) and index in _operands(node) and not self._leading.isdisjoint(node.outputs)

    def _rank(self, index: int) -> int:
        """What a transposition of the tensor costs: dimensions other than 1."""
        shape = known_shape(self.editor, self.shapes, index)
        return _RANK if shape is None else sum(size != 1 for size in shape)


def _passed(node: Node) -> bool:
    operator = find(node.operator)
    return node.source in _PLACES or (operator is not None and operator.elementwise > 0)


def _operands(node: Node) -> list[int]:
    given = node.inputs[:1] if node.source in _FIRST else node.inputs
    return [index for index in given if index is not None]
