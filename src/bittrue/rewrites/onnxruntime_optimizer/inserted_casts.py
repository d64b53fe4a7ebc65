"""Binary16 numbers where the runtime has no kernel for them: casts to binary32 and back, and which of them stay.

A node that has a kernel, but stands alone between nodes that have none, is widened like them. Casts that undo each
other go, also where one of them is the file's own: only two casts of the file in a row keep their rounding.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_halves.py compares bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ...graph import HALF_KERNEL, Attribute, Node, data_type
from .. import Shapes
from ..editing import Editor
from .free_dimensions import Sizes, inferred_sizes
from .join_reshapes import join_reshapes
from .split_slices import split_slices

_HALF, _BRAIN, _SINGLE = "f16", "bf16", "f32"
# Operators with a kernel for binary16, and the version from which they have it.
_ALWAYS = """
    BitCast BranchwiseRMSNorm Cast CastLike Compress Concat ConstantOfShape DynamicSlice EngramGate Expand ExpandDims
    Flatten GatedAdd Gather
    GatherBlockQuantized GatherElements GatherND GroupQueryAttention HyperConnectionPostMix HyperConnectionPreMix
    Identity If Inverse IsNaN LayerNormalization Loop
    MRotaryEmbedding MatMulNBits Mod QMoE RMSNormalization RandomNormalLike RandomUniformLike Reshape
    ReverseSequence RotaryEmbedding Round ScaledSiLU Scan Scatter ScatterElements ScatterND Shape Shrink Sign
    SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization Slice SparseAttention
    Split Squeeze TensorScatter Transpose UnfoldTensor Unsqueeze
    """
_LATER = {"Attention": 23, "Clip": 12, "DequantizeLinear": 19, "IsInf": 20, "Max": 12, "Min": 12, "QuantizeLinear": 19}
SINCE = {**dict.fromkeys(_ALWAYS.split(), 1), **_LATER}
# Those with one on some processors, where `mark_other_kernels` says so.
HALF_KERNELS = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), 14),
    **dict.fromkeys(("AveragePool", "Conv"), 11),
    **dict.fromkeys(("FusedConv", "GlobalAveragePool", "MatMul"), 1),
    "Erf": 13,
    "Gelu": 20,
    "Gemm": 7,
    "LeakyRelu": 6,
    "MaxPool": 8,
    "Relu": 6,
}
_OF_BOTH = (
    "BranchwiseRMSNorm HyperConnectionPostMix HyperConnectionPreMix LayerNormalization SimplifiedLayerNormalization"
    " SkipLayerNormalization SkipSimplifiedLayerNormalization"
)
# These kernels widen their operands and round their results.
_WIDENING = {
    _HALF: frozenset(
        "Attention Clip GatedAdd GatherBlockQuantized GroupQueryAttention MRotaryEmbedding MatMulNBits Max Min Mod QMoE"
        f" RMSNormalization RotaryEmbedding Round Shrink {_OF_BOTH}".split()
    ),
    _BRAIN: frozenset(_OF_BOTH.split()),
}
# Some have an arithmetic of their own then; normalizations of bf16 have that of those behind a sum.
_SAID: dict[str, dict[str, Attribute]] = {_HALF: {"half": True}, _BRAIN: {"brain": True}}
CONTROL = ("If", "Loop", "Scan")
# What they read or give is a sequence of any type to the runtime, no tensor.
_SEQUENCES = ("ConcatFromSequence", "SequenceAt", "SplitToSequence")
_VARIADIC = ("Concat", "Max", "Min")
_CAST: dict[str, Attribute] = {"saturate": True, "round_mode": "up", "inserted": True}
_LARGEST = np.finfo(np.float16).max
KEPT = (
    "a cast to binary16 behind a quantized convolution goes with the inserted cast behind it; where the runtime has"
    " moved a transposition between them, it rounds (1 of 500 random graphs of binary16 numbers and pairs)"
)


def is_cast(node: Node | None) -> bool:
    """Whether a node is a cast of the file, or an inserted one."""
    return node is not None and node.operator == "convert" and node.source in ("Cast", "CastLike")


class Casts:
    """The casts that a graph gets.

    Attributes:
        inserted: what the inserted ones give, in the order of their insertion.
        widened: what nodes between inserted ones give.
        notes: where the runtime may keep one that goes here.
    """

    def __init__(self, editor: Editor, shapes: Shapes) -> None:
        self.editor, self._shapes = editor, shapes
        self.inserted: dict[int, None] = {
            node.outputs[0]: None for node in editor.nodes() if node.attributes.get("inserted")
        }
        self.widened: set[int] = set()
        self.notes: tuple[str, ...] = ()
        self._sizes: Callable[[int], Sizes | None] = lambda index: None

    def insert(self) -> None:
        """Around every node without a kernel, and around those that stand alone between such nodes."""
        editor = self.editor
        join_reshapes(editor, self._shapes, _HALF)
        entered = split_slices(editor, self._shapes, _HALF)
        nodes = editor.nodes()
        without = {node for node in nodes if has_halves(editor, [node]) and not _is_assigned(node)}
        # What stands alone has no kernel for those that are asked later.
        operators = _operators(entered)
        for node in sorted(entered, key=_turn):
            if node not in without and self._stands_alone(operators[node], without):
                without.update(operators[node])
        widened: dict[int, int] = {}
        # Operands have what the file declares of them then; what is wide is not declared.
        self._sizes = inferred_sizes(editor, self._shapes)
        for node in nodes:
            if node in without:
                # Constants have been folded by then: what follows from them now is none.
                attributes: dict[str, Attribute] = {**node.attributes, "widened": True, "computed": True}
                self._surround(node, attributes, widened, self.inserted)

    def remove_pairs(self) -> None:
        """Casts of casts: those that undo each other, and the first one where that loses nothing."""
        editor = self.editor
        own = [node.outputs[0] for node in editor.nodes() if is_cast(node) and node.outputs[0] not in self.inserted]
        for result in (*own, *self.inserted):
            node = editor.writer(result)
            if node is not None and is_cast(node):
                self._shorten(node)

    def keep_apart(self, images: set[int]) -> None:
        """Images in blocks of channels before casts are inserted leave them for widened nodes and sums with planes."""
        editor = self.editor
        for node in editor.nodes():
            for position, index in enumerate(node.inputs):
                sums = node.source in ("Add", "Sum") and not images.intersection(node.outputs)
                if index is not None and index in images and (sums or not self.widened.isdisjoint(node.outputs)):
                    plain = editor.computed(index, f"{editor.tensors[index].name}/unblocked", _SINGLE)
                    unblocks: dict[str, Attribute] = {"unblocks": True}
                    editor.add(node, "identity", (index,), (plain,), unblocks, source="Identity", version=13)
                    node = editor.redirect(node, position, plain)

    def widen_kernels(self) -> None:
        """Around the nodes whose kernels widen by themselves; what they give is rounded whoever reads it."""
        editor = self.editor
        kept: dict[int, None] = {}
        widened: dict[int, int] = {}
        for node in editor.nodes():
            for kind, sources in _WIDENING.items():
                if ((kind == _HALF and has_own_kernel(node)) or node.source in sources) and kind in map(
                    editor.type, (*node.inputs, *node.outputs)
                ):
                    attributes = {**node.attributes, **_SAID[kind]}
                    node = self._bounded(node) if node.source == "Clip" else node
                    self._surround(node, attributes, widened, kept, kind)
        # A kernel knows its constants; between the parts of one operator nothing is rounded.
        for result in kept:
            cast = editor.writer(result)
            read = None if cast is None or cast.inputs[0] is None else editor.tensors[cast.inputs[0]]
            if cast is not None and read is not None and read.is_constant and read.outside < 2:
                self._fold(cast)
                continue
            wide = None if cast is None else cast.inputs[0]
            before = editor.writer(wide)
            if cast is None or wide is None or before is None or editor.type(result) == _SINGLE:
                continue
            for reader, _ in editor.readers(result):
                again = reader.outputs[0]
                if not is_cast(reader) or again not in kept:
                    continue
                for after, position in editor.readers(again):
                    if _is_part(before, after):
                        editor.redirect(after, position, wide)
                if not editor.readers(again):
                    editor.remove(reader)
            if not editor.readers(result) and result not in editor.results:
                editor.remove(cast)

    def fold_constants(self) -> bool:
        """Constants that one node reads behind an inserted cast are widened; whether there was one.

        What several nodes read stays a cast, whose result is no constant to the runtime, and so does every one in a
        graph that another one calls.
        """
        editor, found = self.editor, False
        for result in self.inserted:
            cast = editor.writer(result)
            if cast is None or editor.type(result) != _SINGLE or cast.inputs[0] is None:
                continue
            if not editor.tensors[cast.inputs[0]].is_constant:
                continue
            if len(editor.readers(result)) == 1 and result not in editor.results and not editor.graph.called:
                self._fold(cast)
                found = True
            else:
                editor.change(cast, attributes={**cast.attributes, "computed": True})
        return found

    def _fold(self, cast: Node) -> None:
        """Puts a constant in place of the cast of one."""
        value = self.editor.tensors[cast.inputs[0] or 0]
        new = self.editor.constant(value.values().astype("float32"), f"{value.name}/widened", _SINGLE)
        self.editor.replace_reads(cast.outputs[0], new)
        self.editor.remove(cast)

    # -- inside ----------------------------------------------------------------------------------------------------
    def _bounded(self, node: Node) -> Node:
        """A Clip whose bounds are the largest binary16 numbers where the file leaves them out."""
        name = self.editor.tensors[node.outputs[0]].name
        ends = zip((*node.inputs[1:], None, None)[:2], (-_LARGEST, _LARGEST), ("low", "high"), strict=True)
        bounds = (self.editor.constant(end, f"{name}/{side}", _HALF) if i is None else i for i, end, side in ends)
        return self.editor.change(node, inputs=(node.inputs[0], *bounds))

    def _stands_alone(self, parts: list[Node], without: set[Node]) -> bool:
        """Every binary16 operand of an operator that a node computes, and every binary16 result, belongs to a node
        without a kernel.

        Source: the runtime keeps nodes that read no node at all, that give a result of the graph, or that call graphs.
        """
        editor, node = self.editor, parts[0]
        results = [index for part in parts for index in part.outputs]
        operands = [index for part in parts for index in part.inputs if index not in results]
        if all(editor.writer(index) is None for index in operands) or node.source in (*CONTROL, *_SEQUENCES):
            return False
        if any(map(editor.gives_result, parts)) or is_cast(node):
            return False
        if node.source == "Conv" and has_own_kernel(node):
            # It has transpositions around it by then.
            return False
        # Of any number of operands or results the runtime looks at the first one.
        read = [i for i in operands[: 1 if node.source in _VARIADIC else None] if editor.type(i) == _HALF]
        given = [i for i in results[: 1 if node.source == "Split" else None] if editor.type(i) == _HALF]
        given = [i for i in given if any(reader not in parts for reader, _ in editor.readers(i))]
        if not read or not given:
            return False
        before = map(editor.writer, read)
        readers = (reader for index in given for reader, _ in editor.readers(index) if reader not in parts)
        return all(one in without for one in (*(w for w in before if w is not None), *readers))

    def _surround(
        self,
        node: Node,
        attributes: Mapping[str, Attribute],
        widened: dict[int, int],
        kept: dict[int, None],
        kind: str = _HALF,
    ) -> None:
        """Casts of the operands of a kind, one per tensor, and of the results; the node with other attributes."""
        editor = self.editor
        inputs = list(node.inputs)
        for position, index in enumerate(inputs):
            if index is None or editor.type(index) != kind:
                continue
            if index not in widened:
                name = editor.tensors[index].name
                widened[index] = editor.computed(index, f"{name}/widened", _SINGLE)
                editor.add(node, "convert", (index,), (widened[index],), _CAST, source="Cast", version=13)
                kept[widened[index]] = None
            inputs[position] = widened[index]
        outputs = list(node.outputs)
        for position, index in enumerate(outputs):
            if editor.type(index) == kind:
                name, sizes = editor.tensors[index].name, self._sizes(index)
                outputs[position] = editor.computed(index, f"{name}/wide", _SINGLE, sizes=sizes)
                kept[index] = None
        self.widened.update(outputs)
        changed = editor.change(node, inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes)
        rounding = {**_CAST, "one_nan": True} if kind == _BRAIN else _CAST
        for new, old in zip(outputs, node.outputs, strict=True):
            if new != old:
                editor.add(changed, "convert", (new,), (old,), rounding, source="Cast", version=13)

    def _shorten(self, node: Node) -> None:
        editor, result = self.editor, node.outputs[0]
        source, edges = node.inputs[0], editor.readers(result)
        assert source is not None
        first, second = editor.type(source), editor.type(result)
        loses = self._loses(first, second, result)
        undone: list[Node] = []
        kept: list[Node] = []
        for reader, _ in edges:
            if not is_cast(reader):
                continue
            last = reader.outputs[0]
            if loses and self._loses(editor.type(last), second, last):
                return
            undoes = editor.type(last) == first and last not in editor.results
            (undone if undoes else kept).append(reader)
        if loses and undone and self._is_quantized_image(source):
            self.notes = (KEPT,)
        for reader in undone:
            editor.replace_reads(reader.outputs[0], source)
            editor.remove(reader)
        if edges and len(undone) + len(kept) == len(edges) and result not in editor.results:
            for reader in kept:
                editor.redirect(reader, 0, source)
            editor.remove(node)

    def _is_quantized_image(self, index: int) -> bool:
        """Whether a convolution of quantized values gives what is dequantized here."""
        node = self.editor.writer(index)
        before = None if node is None or node.operator != "dequantize" else self.editor.writer(node.inputs[0])
        return before is not None and before.operator == "conv"

    def _loses(self, source: str, target: str, result: int) -> bool:
        """Whether the runtime keeps a cast for what it may lose."""
        one, two = _group(source), _group(target)
        if not one or not two:
            return True
        if two == "unsigned" and one not in ("bool", "unsigned"):
            return True
        if one == "float" != two:
            return True
        before, after = _bits(source), _bits(target)
        if (one == "unsigned" and two == "signed") or (one in ("signed", "unsigned") and two == "float"):
            return after <= before
        if {source, target} == {_HALF, "bf16"}:
            return True
        return before > after and result not in self.inserted


def _operators(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that are one operator of the file together, by each of them; most are alone."""
    found: dict[object, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.attributes.get("whole", node), []).append(node)
    return {node: parts for parts in found.values() for node in parts}


def mark_early(editor: Editor) -> None:
    """Says of the nodes that passes have made so far that they stand before those of definitions."""
    for node in editor.nodes():
        if node.attributes.get("made"):
            editor.change(node, attributes={**node.attributes, "made": "early"})


def _turn(node: Node) -> int:
    """When a node is asked: nodes of the file, what passes have made, nodes of definitions, what passes made later."""
    made = node.attributes.get("made")
    if made:
        return 1 if made == "early" else 3
    return 2 if node.attributes.get("defines") else 0


def _is_assigned(node: Node) -> bool:
    return has_kernel(node) and not node.attributes.get("unassigned")


def has_kernel(node: Node) -> bool:
    """Whether the runtime has a kernel for the node on binary16 numbers."""
    if node.source in ("QuantizeLinear", "DequantizeLinear") and node.attributes.get("domain"):
        return False
    if node.attributes.get("of_two_types"):
        return False
    if node.source == "Dropout":
        return node.version < 12
    if node.source in _SEQUENCES or has_own_kernel(node):
        return True
    return node.version >= SINCE.get(node.source, 1 << 30)


def has_own_kernel(node: Node) -> bool:
    """Whether the runtime has a kernel for the node on binary16 numbers on this processor, as it has not on all."""
    return bool(node.attributes.get(HALF_KERNEL)) and node.version >= HALF_KERNELS.get(node.source, 1 << 30)


def _is_part(one: Node, other: Node) -> bool:
    """Whether both nodes are of one operator of the file: a sum, and what normalizes it or adds a row before that."""
    return "skipped" in one.attributes and one.source == other.source and other.attributes.get("skipped") != "sequence"


def _group(dtype: str) -> str:
    kind = data_type(dtype)
    if dtype == "bool":
        return "bool"
    if kind.is_float:
        return "float" if kind.bits > 8 else ""
    return "" if kind.bits < 8 else "unsigned" if kind.minimum == 0 else "signed"


def _bits(dtype: str) -> int:
    return 1 if dtype == "bool" else data_type(dtype).bits


def has_halves(editor: Editor, nodes: Iterable[Node]) -> bool:
    """Whether a node reads binary16 numbers."""
    return any(editor.type(index) == _HALF for node in nodes for index in node.inputs)


def has_brains(editor: Editor, nodes: Iterable[Node]) -> bool:
    """Whether a node reads bf16 numbers that its kernel widens."""
    return any(
        editor.type(index) == _BRAIN for node in nodes if node.source in _WIDENING[_BRAIN] for index in node.inputs
    )
