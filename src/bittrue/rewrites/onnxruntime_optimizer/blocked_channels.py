"""Tensors whose channels the runtime holds in blocks, and what is done there in another order.

A sum of two such tensors begins a convolution that computes one of them; a batch normalization becomes a convolution.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import numpy as np

from ...graph import Attribute, Node
from ...operators.layers.conv_geometry import ADDEND
from ...operators.layers.real_conv import can_block
from ...records import replace
from .. import Shapes
from ..editing import Editor
from .free_dimensions import UNKNOWN, Sizes, known_shape, known_sizes

_POOLS, _GLOBAL_POOLS = ("MaxPool", "AveragePool"), ("GlobalMaxPool", "GlobalAveragePool")
ACTIVATIONS = ("Gelu", "HardSigmoid", "HardSwish", "QuickGelu", "Relu", "Sigmoid", "Tanh")
# Of each axis the tensor that its size follows from, and how often it has been halved.
Origin = tuple[tuple[int, int], ...]
# What only goes with the convolution whose result nothing else reads.
FINISHES = ("LeakyRelu", "Clip")


def join_residual_sums(editor: Editor, shapes: Shapes, block: int) -> None:
    """Sums with what a convolution computes, and batch normalizations behind blocks of `block` channels; 0: none."""
    # Tensors in blocks, and what their sizes follow from.
    blocked: dict[int, Origin] = {}
    sizes = known_sizes(editor, shapes)
    for planned in editor.nodes():
        node = editor.writer(planned.outputs[0]) if planned.outputs else None
        if node is None or len(node.outputs) != 1 or editor.type(node.outputs[0]) != "f32":
            continue
        images = node.inputs[:1] if node.operator.startswith("resize_") else node.inputs
        inside = bool(images) and all(index in blocked for index in images)
        if node.source == "Conv":
            if len(node.inputs) > ADDEND and node.inputs[ADDEND] in blocked and "begins" in node.attributes:
                # Source: a FusedConv of the file goes into blocks where what its sums begin with is in such.
                weights = editor.tensors[node.inputs[1] or 0]
                attributes = {**node.attributes, "computed_weights": () if weights.is_constant else (1,)}
                if is_blocked(editor, replace(node, attributes=attributes), block):
                    node = editor.change(node, attributes=attributes)
                    blocked[node.outputs[0]] = _of_windows(editor, node, blocked, block)
            elif _is_plain(node) and is_blocked(editor, node, block):
                blocked[node.outputs[0]] = _of_windows(editor, node, blocked, block)
        elif node.source in _POOLS or (node.source in _GLOBAL_POOLS and (inside or _is_given(editor, node))):
            if fills_blocks(sizes(node.inputs[0]), block):
                blocked[node.outputs[0]] = _of_windows(editor, node, blocked, block)
        elif node.source in ("Add", "Sum") and inside and len(node.inputs) == 2:
            if _same_shape(editor, shapes, node):
                origin = _of(node.inputs[0], blocked)
                if _same_sizes(sizes, node, blocked):
                    _begin_with(editor, node, (0, 1), bias=False)
                blocked[node.outputs[0]] = origin
        elif node.source in (*ACTIVATIONS, "Mul") and inside:
            if len(node.inputs) == 1 or _same_shape(editor, shapes, node):
                blocked[node.outputs[0]] = _of(node.inputs[0], blocked)
        elif inside and enlarges(editor, sizes, node):
            # Neither antialiasing nor a policy about proportions counts here.
            made = {**node.attributes, "policy": "stretch"}
            if node.operator != "resize_nearest":
                node = editor.change(node, operator="resize_linear", attributes={**made, "blocks": True})
            else:
                node = editor.change(node, attributes=made)
            blocked[node.outputs[0]] = _own(node)
        elif node.source in FINISHES and node.inputs[0] in blocked:
            conv = editor.writer(node.inputs[0])
            constant = all(editor.value(index) is not None for index in node.inputs[1:] if index is not None)
            if conv is not None and _is_plain(conv) and editor.only_reader(conv) is node and constant:
                blocked[node.outputs[0]] = _of(node.inputs[0], blocked)
        elif node.source == "Mul" and not blocked.keys().isdisjoint(node.inputs):
            origin = next(blocked[index] for index in node.inputs if index in blocked)
            if _scale_channels(editor, shapes, node):
                blocked[node.outputs[0]] = origin
        elif node.source == "Concat" and inside and node.attributes.get("axis") == 1:
            if all((known_shape(editor, shapes, i) or (0, 1))[1] % block == 0 for i in node.inputs):
                blocked[node.outputs[0]] = _of(node.inputs[0], blocked)
        elif node.source == "BatchNormalization" and node.inputs[0] in blocked:
            origin = _of(node.inputs[0], blocked)
            if _as_convolution(editor, node):
                blocked[node.outputs[0]] = origin
    sizes = known_sizes(editor, shapes)
    nodes = editor.nodes()
    places = {index: place for place, node in enumerate(nodes) for index in node.outputs}
    for node in nodes:
        if editor.alive(node) and node.source == "Add" and editor.type(node.outputs[0]) == "f32":
            left, right = map(sizes, node.inputs)
            if left is not None and len(left) == 4 and left == right and UNKNOWN not in left:
                # Source: ORT asks the node first that the file has first.
                first, second = (-1 if index is None else places.get(index, -1) for index in node.inputs)
                order = (0, 1) if first < second else (1, 0)
                _begin_with(editor, node, order, bias=True, besides=blocked)


def fills_blocks(image: Sizes | None, block: int) -> bool:
    """Whether the runtime knows that the channels of an image for a pool fill whole blocks."""
    if image is None or len(image) != 4:
        return False
    channels = image[1]
    return block > 0 and isinstance(channels, int) and channels > 0 and channels % block == 0


def _is_given(editor: Editor, node: Node) -> bool:
    """Whether nothing computes a node's image: it is put into blocks for global pools, too."""
    return node.inputs[0] is not None and editor.writer(node.inputs[0]) is None


def _own(node: Node) -> Origin:
    return ((node.outputs[0], 0),) * 4


def _of(index: int | None, blocked: Mapping[int, Origin]) -> Origin:
    assert index is not None
    return blocked[index]


def _of_windows(editor: Editor, node: Node, blocked: Mapping[int, Origin], block: int) -> Origin:
    """The image's, where padding makes up for the windows' size; strides of 2 halve it. Else the result's own, as where
    a convolution reads planes: of fewer channels than a block has.
    """
    image = blocked.get(-1 if node.inputs[0] is None else node.inputs[0])
    weights = editor.value(node.inputs[1]) if node.source == "Conv" else None
    planes = weights is not None and node.attributes["groups"] == 1 and weights.shape[1] < block
    if image is None or planes:
        return _own(node)
    filters = () if weights is None else weights.shape[2:]
    kernel = _numbers(node, "kernel", _numbers(node, "kernel_shape", filters))
    strides, dilations = (_numbers(node, name, (1, 1)) for name in ("strides", "dilations"))
    pads, found = _numbers(node, "pads", (0, 0, 0, 0)), list(_own(node))
    found[:2] = image[:2]
    for axis in range(len(kernel)):
        whole = str(node.attributes.get("auto_pad", "")).startswith("SAME")
        whole = whole or pads[axis] + pads[axis + 2] + 1 == kernel[axis]
        if whole and dilations[axis] == 1 and strides[axis] in (1, 2):
            start, halved = image[axis + 2]
            found[axis + 2] = start, halved + strides[axis] - 1
    return tuple(found)


def _numbers(node: Node, name: str, absent: tuple[int, ...]) -> tuple[int, ...]:
    found = node.attributes.get(name)
    return found if found and isinstance(found, tuple) else absent


def _same_sizes(sizes: Callable[[int | None], Sizes | None], node: Node, blocked: Mapping[int, Origin]) -> bool:
    """Whether the runtime knows that both images have the same sizes: by number, by symbol, or by their origin."""
    left, right = (sizes(index) or (UNKNOWN,) * 4 for index in node.inputs)
    origins = (_of(index, blocked) for index in node.inputs)
    return all(a == b != UNKNOWN or one == two for a, b, one, two in zip(left, right, *origins, strict=True))


def _same_shape(editor: Editor, shapes: Shapes, node: Node) -> bool:
    left, right = (known_shape(editor, shapes, index) for index in node.inputs)
    return left is not None and left == right


def _is_plain(node: Node) -> bool:
    """Whether a node is a convolution whose sums begin with no other tensor."""
    return node.operator == "conv" and len(node.inputs) <= ADDEND


def is_blocked(editor: Editor, conv: Node, block: int) -> bool:
    """Constant weights of two spatial axes and a constant bias or none, in numbers that fit."""
    if editor.type(conv.outputs[0]) != "f32":
        return False
    weights, groups = editor.value(conv.inputs[1]), conv.attributes["groups"]
    if weights is None or weights.ndim != 4 or conv.attributes.get("computed_weights"):
        return False
    if len(conv.inputs) > 2 and conv.inputs[2] is not None and editor.value(conv.inputs[2]) is None:
        return False
    assert isinstance(groups, int)
    return can_block(weights.shape[0], weights.shape[1], groups, block)


def enlarges(editor: Editor, sizes: Callable[[int | None], Sizes | None], node: Node) -> bool:
    """Whether a node enlarges images by integer factors, in a way that is carried out on blocks."""
    if not node.operator.startswith("resize_") or node.attributes.get("axes"):
        return False
    way = node.attributes["transformation"]
    if node.operator == "resize_nearest":
        made = way == "asymmetric" and node.attributes["nearest"] == "floor"
    else:
        linear = node.operator == "resize_linear" or node.attributes.get("filter") == "linear"
        made = linear and way in ("asymmetric", "half_pixel", "align_corners")
    return made and _by_integers(editor, sizes, node)


def _by_integers(editor: Editor, sizes: Callable[[int | None], Sizes | None], node: Node) -> bool:
    """Whether images keep their number and channels, and rows and columns become whole multiples.

    Source: ONNX Runtime 1.31.1, where constant sizes count as factors if it knows all sizes of the image.
    """
    given, factors = (editor.stored(index) for index in (*node.inputs, None)[1:3])
    if factors is not None and factors.size:
        known = factors.shape == (4,) and tuple(factors[:2]) == (1, 1)
        return known and all(factor == int(factor) and factor >= 1 for factor in factors)
    image = sizes(node.inputs[0])
    if given is None or given.shape != (4,) or image is None or len(image) != 4:
        return False
    if not all(isinstance(size, int) and size > 0 for size in image):
        return False
    results, image = given.tolist(), tuple(map(int, image))
    return results[:2] == list(image[:2]) and all(
        new >= old and new % old == 0 for new, old in zip(results, image, strict=True)
    )


def _begin_with(
    editor: Editor, total: Node, order: tuple[int, int], *, bias: bool, besides: Container[int] = ()
) -> None:
    """The first operand, in an order, that a convolution computes for this sum alone: it begins with the other one."""
    for position in order:
        conv = editor.writer(total.inputs[position])
        if conv is None or not _is_plain(conv) or editor.only_reader(conv) is not total:
            continue
        if conv.outputs[0] in besides:
            continue
        has_bias = len(conv.inputs) > 2 and conv.inputs[2] is not None
        if bias and not has_bias:
            continue
        third = conv.inputs[2] if has_bias else None
        editor.remove(conv)
        editor.change(
            total,
            operator="conv",
            source=conv.source,
            version=conv.version,
            inputs=(conv.inputs[0], conv.inputs[1], third, *(None,) * (ADDEND - 3), total.inputs[1 - position]),
            attributes=dict(conv.attributes),
        )
        return


def _scale_channels(editor: Editor, shapes: Shapes, node: Node) -> bool:
    """A product with one constant per channel as a convolution with a filter of one element per channel."""
    for position in (0, 1):
        shape, factor = known_shape(editor, shapes, node.inputs[1 - position]), editor.value(node.inputs[position])
        if factor is None or shape is None or len(shape) != 4 or factor.dtype != np.float32:
            continue
        if factor.shape in ((shape[1], 1, 1), (1, shape[1], 1, 1)):
            name = editor.tensors[node.outputs[0]].name
            weights = editor.constant(factor.reshape(-1, 1, 1, 1), f"{name}/weights", "f32")
            _per_channel(editor, node, (node.inputs[1 - position], weights), factor.size)
            return True
    return False


def _as_convolution(editor: Editor, node: Node) -> bool:
    """A batch normalization by constants as a convolution with a filter of one element per channel."""
    parts = [editor.value(index) for index in node.inputs[1:]]
    if any(part is None or part.dtype != np.float32 or part.ndim != 1 for part in parts):
        return False
    scale, bias, mean, variance = (np.asarray(part) for part in parts)
    epsilon = node.attributes["epsilon"]
    assert isinstance(epsilon, float)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        shift = bias - mean * factor
    name = editor.tensors[node.outputs[0]].name
    inputs = (
        node.inputs[0],
        editor.constant(factor.reshape(-1, 1, 1, 1), f"{name}/weights", "f32"),
        editor.constant(shift, f"{name}/bias", "f32"),
    )
    _per_channel(editor, node, inputs, factor.size)
    return True


def _per_channel(editor: Editor, node: Node, inputs: tuple[int | None, ...], channels: int) -> None:
    attributes: dict[str, Attribute] = {
        "kernel_shape": (),
        "strides": (),
        "dilations": (),
        "pads": (),
        "auto_pad": "NOTSET",
        "channels_last": False,
        "groups": channels,
    }
    editor.change(node, operator="conv", source="Conv", version=11, inputs=inputs, attributes=attributes)
