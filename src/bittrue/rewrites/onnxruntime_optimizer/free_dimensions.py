"""What the runtime knows of dimensions that a file leaves free: the same symbol is the same dimension.

Symbols come from the file's inputs and from what it declares of other tensors, and go through operators as the
specification's shape inference says. A dimension that follows from sizes computed at run time has no symbol, until the
runtime makes a constant of the Concat of such sizes that a Reshape reads, whose zeros keep dimensions.
Source: ONNX Runtime 1.31.1, the shapes of its optimised graphs (tests/onnx_operators/test_passes.py compares them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import find
from ...operators.core.base import broadcast_shape, same_shape
from .. import Shapes
from ..editing import Editor

# A number, a symbol, or nothing that is known of it.
Size = int | str
Sizes = tuple[Size, ...]
UNKNOWN = ""
_RANKED_RESHAPE = 14  # From this set on ONNX infers how many dimensions a Reshape to a computed shape gives.
Values = Callable[[int | None], np.ndarray | None]

# Results with the sizes of the first operand, beside operators that infer them so.
_KEEPS = frozenset(
    """
    batch_normalization batch_training causal_conv clip cumsum dequantize hardmax layer_normalization leaky_relu
    local_response_normalization log_softmax logistic lp_normalization mixture_of_experts prelu quantize relu
    reverse_sequence rotary_embedding scatter_nd softmax triangle
    """.split()
)
_BROADCASTS = ("add", "mul", "select", "add_n")
# Sources whose sums have the sizes of the first operand, whatever is added.
_SUMS = ("EmbedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
# Sources of the matrix products whose sizes the runtime infers.
_PRODUCTS = frozenset(
    """
    Attention DynamicQuantizeMatMul FusedGemm FusedMatMul Gemm MatMul MatMulBnb4 MatMulInteger MatMulIntegerToFloat
    MatMulNBits QAttention QGemm QLinearMatMul
    """.split()
)
_OVER_AXES = ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod")


def known_shape(editor: Editor, shapes: Shapes, index: int | None) -> tuple[int, ...] | None:
    """The shape of a tensor, -1 where a dimension is free; None when it is not known."""
    while index is not None:
        tensor: Tensor = editor.tensors[index]
        if tensor.is_constant:
            return tensor.shape
        if index in shapes().shapes:
            return shapes().shapes[index]
        writer = editor.writer(index)
        if writer is None or writer.operator not in ("quantize", "dequantize"):
            return None
        index = writer.inputs[0]
    return None


def leaves_sizes_free(editor: Editor) -> bool:
    """Whether an input of the graph has a dimension without a number."""
    return any(-1 in (editor.tensors[index].shape_signature or ()) for index in editor.graph.inputs)


def known_sizes(editor: Editor, shapes: Shapes) -> Callable[[int | None], Sizes | None]:
    """Gives the sizes of a tensor as the runtime knows them, None where not even their number is known."""
    if not _leaves_computed_free(editor, shapes):
        return partial(known_shape, editor, shapes)
    return _Walk(editor, shapes).get


def sizes_of(graph: Graph, shapes: Shapes) -> Callable[[int | None], Sizes | None]:
    """The same of a graph that nobody changes."""
    return known_sizes(Editor(graph, shapes), shapes)


def _leaves_computed_free(editor: Editor, shapes: Shapes) -> bool:
    """Whether a tensor has a dimension without a number."""
    if leaves_sizes_free(editor):
        return True
    known = shapes().shapes
    return any(-1 in known.get(index, (-1,)) for node in editor.nodes() for index in node.outputs)


def inferred_sizes(editor: Editor, shapes: Shapes) -> Callable[[int], Sizes | None]:
    """Gives the sizes that follow from the operands of a tensor's node, whatever the file declares of the tensor."""
    return _Walk(editor, shapes).inferred.get if _leaves_computed_free(editor, shapes) else lambda index: None


def reshape_targets(editor: Editor, shapes: Shapes) -> Callable[[Node], list[int] | None]:
    """Gives the constant that the runtime makes of a Concat of sizes that a Reshape reads; None where it makes none."""
    return _Walk(editor, shapes).fitted


def folded_values(editor: Editor, shapes: Shapes) -> Values:
    """Gives the values that the runtime's constant folding leaves: no size of a tensor that has free ones besides."""
    return _Walk(editor, shapes).folded if leaves_sizes_free(editor) else editor.value


def known_numbers(editor: Editor, shapes: Shapes) -> Callable[[int | None], tuple[int, ...] | None]:
    """The same with -1 for every size that is no number."""
    sizes = known_sizes(editor, shapes)

    def numbers(index: int | None) -> tuple[int, ...] | None:
        found = sizes(index)
        return None if found is None else tuple(size if isinstance(size, int) else -1 for size in found)

    return numbers


class _Walk:
    """Sizes of tensors in the order in which they are computed."""

    def __init__(self, editor: Editor, shapes: Shapes) -> None:
        self.editor, self.shapes = editor, shapes
        self.sizes: dict[int, Sizes] = {}
        self.inferred: dict[int, Sizes] = {}
        self.sizes, self.inferred = editor.kept("sizes", self._find)

    def _find(self) -> tuple[dict[int, Sizes], dict[int, Sizes]]:
        for index in self.editor.graph.inputs:
            declared = self._declared(index)
            if declared is not None:
                self.sizes[index] = declared
        for node in self.editor.nodes():
            results = self._results(node)
            for position, index in enumerate(node.outputs):
                found = results[position] if position < len(results) else self._numbers(index)
                if found is not None:
                    self.inferred[index] = found
                merged = _merged(found, self._declared(index))
                if merged is not None:
                    self.sizes[index] = merged
        return self.sizes, self.inferred

    def get(self, index: int | None) -> Sizes | None:
        if index is None:
            return None
        return self.editor.tensors[index].shape if self.editor.tensors[index].is_constant else self.sizes.get(index)

    def _declared(self, index: int) -> Sizes | None:
        tensor = self.editor.tensors[index]
        if tensor.is_unranked:
            return None
        signature, symbols = tensor.shape_signature or tensor.shape, tensor.symbols
        names = symbols or (UNKNOWN,) * len(signature)
        return tuple(name if size == -1 else size for size, name in zip(signature, names, strict=True))

    def _numbers(self, index: int) -> Sizes | None:
        """Sizes that depend on no free one."""
        known = known_shape(self.editor, self.shapes, index)
        return None if known is None else tuple(UNKNOWN if size == -1 else size for size in known)

    # -- operators -------------------------------------------------------------------------------------------------
    def _results(self, node: Node) -> Sequence[Sizes | None]:
        """Sizes of results, None where the runtime knows none; nothing where sizes that depend on no free one hold."""
        operator = find(node.operator)
        first = self.get(node.inputs[0]) if node.inputs else None
        if operator is None:
            return ()
        keeps = operator.infer is same_shape or node.operator in _KEEPS
        if keeps or (node.source in _SUMS and node.operator == "add"):
            return (first,)
        if operator.infer is broadcast_shape or node.operator in _BROADCASTS:
            return (_broadcast([self.get(index) for index in node.inputs if index is not None]),)
        if node.operator == "matmul" and node.source in _PRODUCTS:
            return (self._product(node),)
        if node.source == "Range":
            return self.count(node)
        rule = _Walk.over_axes if node.operator in _OVER_AXES else _RULES.get(node.operator)
        if rule is None:
            return ()
        return self._without_operand(node) if first is None else rule(self, node, first)

    def _without_operand(self, node: Node) -> Sequence[Sizes | None]:
        """The same where not even the number of dimensions of the first operand is known."""
        if node.source == "Shape":
            return ((UNKNOWN,),)
        if node.source == "Size":
            return ((),)
        target = self.target(node) if node.source == "Reshape" else None
        if target is not None:
            return (tuple(UNKNOWN if size in (0, -1) else size for size in target),)
        ranked = node.source == "Reshape" and node.version >= _RANKED_RESHAPE
        return (self._of_rank(node.inputs[1]),) if ranked else (None,) * len(node.outputs)

    def _product(self, node: Node) -> Sizes | None:
        a, b = self.get(node.inputs[0]), self.get(node.inputs[1])
        columns = node.attributes.get("n")
        if a and isinstance(columns, int):
            return (*a[:-1], columns)
        if a is None or b is None or len(a) < 2 or len(b) < 2:
            return None
        turned = [bool(node.attributes.get(name)) for name in ("transpose_a", "transpose_b")]
        batch = _broadcast([a[:-2], b[:-2]])
        return None if batch is None else (*batch, a[-1 if turned[0] else -2], b[-2 if turned[1] else -1])

    def _axes(self, index: int | None, rank: int) -> tuple[int, ...] | None:
        value = self.editor.value(index)
        if value is None:
            return None
        axes = [int(axis) for axis in value.reshape(-1)]
        return tuple(axis % rank for axis in axes) if rank and all(-rank <= axis < rank for axis in axes) else None

    def over_axes(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        given = (*node.inputs, None)[1]
        axes = tuple(range(len(first))) if given is None else self._axes(given, len(first))
        if axes is None:
            return ()
        if node.attributes.get("keep_dims"):
            return (tuple(1 if axis in axes else size for axis, size in enumerate(first)),)
        return (tuple(size for axis, size in enumerate(first) if axis not in axes),)

    def attention(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        given = node.attributes
        heads, key_heads, columns = (int(str(given[name])) for name in ("heads", "key_heads", "value_columns"))
        value = self.get((*node.inputs, None, None)[2])
        if all(index is None for index in node.inputs[1:3]):
            # Queries, keys and values side by side in one tensor.
            if len(first) != 3 or not isinstance(first[2], int):
                return ()
            if node.source == "GroupQueryAttention":
                return ((*first[:2], first[2] // (heads + 2 * key_heads) * heads),)
            return ((*first[:2], columns or first[2] // 3),)
        if node.source == "GroupQueryAttention":
            return (first,)
        if value is None or len(first) not in (3, 4):
            return ()
        if len(first) == 4:
            return ((*first[:3], value[3]),) if len(value) == 4 else ()
        rows = value[2] if len(value) == 3 else value[1]
        if len(value) == 4:
            wide = rows * value[3] if isinstance(rows, int) and isinstance(value[3], int) else UNKNOWN
        elif node.source == "Attention":
            wide = rows // key_heads * heads if isinstance(rows, int) else UNKNOWN
        else:
            wide = rows
        return ((*first[:2], wide),)

    def transpose(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        order = self._axes(node.inputs[1], len(first)) if len(node.inputs) > 1 else tuple(range(len(first)))[::-1]
        return () if order is None or len(order) != len(first) else (tuple(first[axis] for axis in order),)

    def expand_dims(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        value = self.editor.value(node.inputs[1])
        if value is None:
            return ()
        rank = len(first) + value.size
        axes, rest = self._axes(node.inputs[1], rank), iter(first)
        if axes is None or len(set(axes)) != value.size:
            return ()
        return (tuple(1 if axis in axes else next(rest) for axis in range(rank)),)

    def squeeze(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        axes = self._axes(node.inputs[1], len(first)) if len(node.inputs) > 1 else None
        return () if axes is None else (tuple(size for axis, size in enumerate(first) if axis not in axes),)

    def gather(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        indices, axis = self.get(node.inputs[1]), node.attributes.get("axis")
        if node.attributes.get("elements"):
            return (indices,)
        if indices is None or not isinstance(axis, int) or not -len(first) <= axis < len(first):
            return ()
        axis %= len(first)
        numbers, last = self._numbers(node.outputs[0]), first[axis + 1 :]
        if "block_size" in node.attributes and numbers is not None:
            # Several numbers may share a byte.
            last = numbers[axis + len(indices) :]
        return ((*first[:axis], *indices, *last),)

    def gather_nd(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        indices, batches = self.get(node.inputs[1]), node.attributes["batch_dims"]
        if not indices or not isinstance(indices[-1], int) or not isinstance(batches, int):
            return ()
        return ((*indices[:-1], *first[batches + indices[-1] :]),)

    def arg_max(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        axes = self._axes(node.inputs[1], len(first))
        return () if axes is None else (tuple(size for axis, size in enumerate(first) if axis not in axes),)

    def one_hot(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        depth, axis = self.editor.value(node.inputs[1]), node.attributes["axis"]
        if depth is None or depth.size != 1 or not isinstance(axis, int) or not -len(first) - 1 <= axis <= len(first):
            return ()
        axis %= len(first) + 1
        return ((*first[:axis], int(depth.reshape(())), *first[axis:]),)

    def top(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        """Of the largest: nothing but the rank where the axis is free."""
        count, axis = self.editor.value(node.inputs[1]), node.attributes["axis"]
        if not isinstance(axis, int) or not -len(first) <= axis < len(first):
            return ()
        axis %= len(first)
        if count is None or count.size != 1 or not isinstance(first[axis], int):
            return ((UNKNOWN,) * len(first),) * 2
        return ((*first[:axis], int(count.reshape(())), *first[axis + 1 :]),) * 2

    def blocks_and_depth(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        numbers = self._numbers(node.outputs[0])
        if node.attributes["block_size"] == 1 or numbers is None:
            return (first,) if numbers is not None else ()
        return ((first[0], *numbers[1:]),)

    def einsum(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        given = {name: str(node.attributes.get(name, "")) for name in ("part", "letters", "terms", "result")}
        letters = given["letters"]
        if given["part"] == "spread":
            term = given["terms"].split(",")[int(str(node.attributes["index"]))]
            if not term.isalpha() or len(term) != len(first):
                return ()
            own = dict(zip(term, first, strict=True))
            return (tuple(own.get(letter, 1) for letter in letters),)
        merged = _broadcast([self.get(index) for index in node.inputs[1:]] or [first])
        if given["part"] not in ("joined", "result") or merged is None or len(merged) != len(letters):
            return ()
        if given["part"] == "result":
            return (tuple(merged[letters.index(letter)] for letter in given["result"]),)
        summed = node.attributes["summed"]
        assert isinstance(summed, tuple)
        return (tuple(1 if axis - len(letters) in summed else size for axis, size in enumerate(merged)),)

    def concatenation(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        axis = node.attributes.get("axis")
        parts = [self.get(index) for index in node.inputs]
        if node.source == "QLinearConcat":
            # Scales and zero points stand behind all of them.
            parts = parts[: (len(parts) - 2) // 3]
        if not isinstance(axis, int) or not -len(first) <= axis < len(first):
            return ()
        merged: list[Size] = list(first)
        axis %= len(first)
        for part in parts[1:]:
            if part is None or len(part) != len(first):
                return ()
            for place, size in enumerate(part):
                if place == axis:
                    total = merged[axis]
                    merged[axis] = total + size if isinstance(total, int) and isinstance(size, int) else UNKNOWN
                else:
                    merged[place] = _one(size, merged[place])
        return (tuple(merged),)

    def slice_axes(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        given = (*node.inputs, None, None)
        starts, ends, steps = (self.folded(index) for index in (given[1], given[2], (*given, None)[4]))
        if starts is None or ends is None or starts.size > len(first):
            # The runtime knows the rank.
            return ((UNKNOWN,) * len(first),)
        axes = tuple(range(starts.size)) if given[3] is None else self._axes(given[3], len(first))
        if axes is None or starts.size != ends.size or len(axes) != starts.size:
            return ()
        result = list(first)
        by = [1] * len(axes) if steps is None else steps.reshape(-1).tolist()
        for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), by, strict=False):
            size = first[axis]
            result[axis] = len(range(size)[start:end:step]) if isinstance(size, int) and step else UNKNOWN
        return (tuple(result),)

    def split(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        axis = node.attributes.get("axis")
        if node.source != "Split" or not isinstance(axis, int) or not -len(first) <= axis < len(first):
            return ()
        axis %= len(first)
        size, count = first[axis], len(node.outputs)
        parts = self.editor.value(node.inputs[1]) if len(node.inputs) > 1 else None
        given: list[Size] = [UNKNOWN] * count
        if parts is None and isinstance(size, int):
            each = -(-size // count)
            given = [min(each, size - each * number) for number in range(count)]
        elif parts is not None and parts.size == count:
            given = parts.reshape(-1).tolist()
        return tuple((*first[:axis], part, *first[axis + 1 :]) for part in given)

    def shape(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        return ((len(self._shape_part(node, first)),) if node.source == "Shape" else (),)

    def _shape_part(self, node: Node, sizes: Sizes) -> Sizes:
        start, end = node.attributes.get("start", 0), node.attributes.get("end", len(sizes))
        return sizes[start:end] if isinstance(start, int) and isinstance(end, int) else sizes

    def dynamic_quantize_linear(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        return first, (), ()

    def groups(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        """The runtime carries GroupNormalization out by its definition, which goes through computed sizes."""
        return () if node.source == "GroupNormalization" else (first,)

    def images(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        numbers = self._numbers(node.outputs[0])
        if numbers is None and node.source == "Conv":
            filters = self.get(node.inputs[1])
            return ((first[0], filters[0], *(UNKNOWN,) * len(first[2:])),) if filters else ()
        if numbers is None or len(numbers) != len(first):
            return ()
        whole = not node.attributes.get("kernel", True)
        pairs = zip(first[2:], numbers[2:], strict=True)
        after = (new if whole or isinstance(old, int) else UNKNOWN for old, new in pairs)
        return ((first[0], numbers[1], *after),)

    def pools(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        """Every channel by itself, so that a free number of them stays."""
        return tuple(found and (*found[:1], *first[1:2], *found[2:]) for found in self.images(node, first))

    def pad(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        numbers, widths = self._numbers(node.outputs[0]), self.folded((*node.inputs, None)[1])
        if widths is None or numbers is None or widths.size != 2 * len(first):
            return ((UNKNOWN,) * len(first),)
        some = [bool(begin + end) for begin, end in widths.reshape(2, -1).T.tolist()]
        return (tuple(new if pads else old for old, new, pads in zip(first, numbers, some, strict=True)),)

    def recurrent(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        numbers = self._numbers(node.outputs[0])
        if numbers is None or len(numbers) != 4 or len(first) != 3:
            return ()
        return ((first[0], numbers[1], first[1], numbers[3]),)

    def reshape(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        if node.source != "Reshape":
            return ()
        target = self.target(node)
        if target is None:
            return (self._of_rank(node.inputs[1]) if node.version >= _RANKED_RESHAPE else None,)
        keeps = node.attributes.get("zeros") == "copied"
        kept = {axis for axis, size in enumerate(target) if size == 0 and keeps and axis < len(first)}
        found: list[Size] = [first[axis] if axis in kept else size for axis, size in enumerate(target)]
        if -1 in target:
            found[target.index(-1)] = self._rest(first, found, kept)
        return (tuple(found),)

    def broadcast_to(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        target = self.folded(node.inputs[1])
        given = self._of_rank(node.inputs[1]) if target is None else tuple(target.reshape(-1).tolist())
        return (_broadcast([first, given]),) if given is not None and node.source == "Expand" else ()

    def count(self, node: Node) -> Sequence[Sizes | None]:
        """Range: how many there are is known of constants."""
        return () if all(self.folded(index) is not None for index in node.inputs) else ((UNKNOWN,),)

    def flatten(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        axis = node.attributes["axis"]
        if node.source != "Flatten" or not isinstance(axis, int) or not -len(first) <= axis <= len(first):
            return ()
        axis += len(first) if axis < 0 else 0
        return (tuple(self._together(part) for part in (first[:axis], first[axis:])),)

    def _together(self, sizes: Sizes) -> Size:
        """One size for several; a free one is known alone."""
        others = [size for size in sizes if size != 1]
        if len(others) == 1:
            return others[0]
        return math.prod(map(int, others)) if all(isinstance(size, int) for size in others) else UNKNOWN

    def by_values(self, node: Node, first: Sizes) -> Sequence[Sizes | None]:
        """ConstantOfShape, Tile and Resize: only the rank where the runtime does not know what values they read."""
        if node.source == "ConstantOfShape":
            given, rank = node.inputs[:1], self._of_rank(node.inputs[0])
        else:
            given, rank = node.inputs[1:], (UNKNOWN,) * len(first)
        known = all(self.folded(index) is not None for index in given if index is not None)
        return () if known else (rank,)

    def _of_rank(self, shape: int | None) -> Sizes | None:
        """As many sizes as a shape, whose values are not known, has elements."""
        count = self.get(shape)
        return (UNKNOWN,) * count[0] if count is not None and len(count) == 1 and isinstance(count[0], int) else None

    def _rest(self, first: Sizes, found: Sequence[Size], kept: set[int]) -> Size:
        """What is left for the size -1: free sizes that are kept on both sides do not count."""
        same = {axis for axis in kept if not isinstance(first[axis], int)}
        before = [size for axis, size in enumerate(first) if axis not in same]
        after = [size for axis, size in enumerate(found) if axis not in same and size != -1]
        if not all(isinstance(size, int) for size in (*before, *after)):
            return UNKNOWN
        whole, part = math.prod(map(int, before)), math.prod(map(int, after))
        return whole // part if part else UNKNOWN

    # -- reshapes to sizes of other tensors ------------------------------------------------------------------------
    def target(self, node: Node) -> list[int] | None:
        """The constant that a Reshape reads."""
        value = self.folded(node.inputs[1])
        return None if value is None else [int(size) for size in value.reshape(-1)]

    def fitted(self, node: Node) -> list[int] | None:
        """What the runtime makes of a Concat of sizes that one Reshape alone reads: 0 keeps one, -1 fits."""
        concat = self.editor.writer(node.inputs[1])
        if concat is None or concat.source != "Concat" or self.editor.only_reader(concat) is not node:
            return None
        target: list[int] = []
        for index in concat.inputs:
            part = self._own(index)
            if part is not None:
                target += [int(size) for size in part.reshape(-1)]
            elif self._keeps(index, node, len(target)):
                target.append(0)
            elif self.get(index) == (1,) or self.get(index) == ():
                target.append(-1)
            else:
                return None
        return target if target.count(-1) <= 1 else None

    def _keeps(self, index: int | None, reshape: Node, axis: int) -> bool:
        """Whether a one-element tensor is the size of this axis of what is reshaped: Shape, Gather, Unsqueeze."""
        unsqueeze = self.editor.writer(index)
        gather = self.editor.writer(unsqueeze.inputs[0]) if unsqueeze is not None else None
        shape = self.editor.writer(gather.inputs[0]) if gather is not None else None
        if unsqueeze is None or unsqueeze.source != "Unsqueeze" or gather is None or gather.source != "Gather":
            return False
        if any(self._own(axes) is None for axes in unsqueeze.inputs[1:]):
            return False
        place = self._own(gather.inputs[1])
        if (
            shape is None
            or shape.source != "Shape"
            or place is None
            or place.size != 1
            or int(place.reshape(())) != axis
        ):
            return False
        if shape.inputs[0] == reshape.inputs[0] or self._is_projected(shape.inputs[0], reshape.inputs[0]):
            return True
        one, two = self.get(shape.inputs[0]), self.get(reshape.inputs[0])
        if one is None or two is None or axis >= min(len(one), len(two)):
            return False
        return one[axis] == two[axis] != UNKNOWN

    def _is_projected(self, before: int | None, after: int | None) -> bool:
        """Whether one tensor is the product of the other with a square matrix, plus a constant vector."""
        total = self.editor.writer(after)
        if total is None or total.source != "Add":
            return False
        product, bias = self.editor.writer(total.inputs[0]), self._own(total.inputs[1])
        if product is None or product.source != "MatMul" or product.inputs[0] != before or bias is None:
            return False
        return bias.ndim == 1 and self.get(product.inputs[1]) == bias.shape * 2

    def _own(self, index: int | None) -> np.ndarray | None:
        """The value of a constant, but not of one of a graph further out."""
        return None if index is not None and self.editor.tensors[index].outside else self.folded(index)

    def folded(self, index: int | None) -> np.ndarray | None:
        """A value that follows from constants and from shapes that the runtime knows whole."""
        value = self.editor.value(index)
        return value if value is not None and self._is_folded(index) else None

    def _is_folded(self, index: int | None) -> bool:
        writer = self.editor.writer(index)
        if index is None or writer is None:
            return index is None or self.editor.tensors[index].is_constant
        if writer.operator == "shape":
            sizes = self.get(writer.inputs[0])
            return sizes is not None and all(isinstance(size, int) for size in self._shape_part(writer, sizes))
        return all(map(self._is_folded, writer.inputs))


_Rule = Callable[[_Walk, Node, Sizes], Sequence[Sizes | None]]
_RULES: dict[str, _Rule] = {
    "arg_max": _Walk.arg_max,
    "arg_min": _Walk.arg_max,
    "attention": _Walk.attention,
    "average_pool": _Walk.pools,
    "broadcast_to": _Walk.broadcast_to,
    "concatenation": _Walk.concatenation,
    "conv": _Walk.images,
    "conv_transpose": _Walk.images,
    "depth_to_space": _Walk.blocks_and_depth,
    "dynamic_quantize_linear": _Walk.dynamic_quantize_linear,
    "einsum_view": _Walk.einsum,
    "expand_dims": _Walk.expand_dims,
    "fill": _Walk.by_values,
    "flatten": _Walk.flatten,
    "gather": _Walk.gather,
    "gather_nd": _Walk.gather_nd,
    "group_normalization": _Walk.groups,
    "gru": _Walk.recurrent,
    "lstm": _Walk.recurrent,
    "max_pool": _Walk.pools,
    "one_hot": _Walk.one_hot,
    "pad": _Walk.pad,
    "reshape": _Walk.reshape,
    "resize_antialiased": _Walk.by_values,
    "resize_cubic": _Walk.by_values,
    "resize_linear": _Walk.by_values,
    "resize_nearest": _Walk.by_values,
    "rnn": _Walk.recurrent,
    "shape": _Walk.shape,
    "slice_axes": _Walk.slice_axes,
    "space_to_depth": _Walk.blocks_and_depth,
    "split": _Walk.split,
    "squeeze": _Walk.squeeze,
    "tile": _Walk.by_values,
    "topk_v2": _Walk.top,
    "transpose": _Walk.transpose,
}


def _one(new: Size, old: Size) -> Size:
    """What is known of a size that two tensors say something about: a number, else the older symbol."""
    if isinstance(old, int) or (old and not isinstance(new, int)):
        return old
    return new


def _merged(found: Sizes | None, declared: Sizes | None) -> Sizes | None:
    if found is None or declared is None or len(found) != len(declared):
        return declared if found is None else found
    return tuple(_one(size, said) for size, said in zip(found, declared, strict=True))


def _broadcast(operands: Sequence[Sizes | None]) -> Sizes | None:
    """Sizes of what operands broadcast to: a number other than 1 counts before symbols, different symbols give none."""
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands) or not known:
        return None
    rank = max(map(len, known))
    result: list[Size] = []
    for axis in range(rank):
        sizes = [operand[axis - rank + len(operand)] for operand in known if axis >= rank - len(operand)]
        numbers = [size for size in sizes if isinstance(size, int) and size != 1]
        symbols = {size for size in sizes if isinstance(size, str)}
        result.append(numbers[0] if numbers else 1 if not symbols else symbols.pop() if len(symbols) == 1 else UNKNOWN)
    return tuple(result)
