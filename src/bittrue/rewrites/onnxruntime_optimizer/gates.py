"""Groups of operators on real numbers that become a gate: x times the normal distribution function of x.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py and
tests/onnx_operators/test_passes.py compare bytes).
"""

from __future__ import annotations

import numpy as np

from ...graph import HALF_KERNEL, Attribute, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape

# From this operator set on there is the operator itself, and the passes that know nothing but the standard join it.
GELU = 20
_ROOT, _CUBIC = 0.7978845834732056, 0.044715


def only(editor: Editor, node: Node | None, *sources: str) -> Node | None:
    """The node's only reader, if it is one of these operators; the result of the node is no result of the graph."""
    reader = None if node is None else editor.only_reader(node)
    return reader if reader is not None and reader.source in sources else None


def mark_gates(editor: Editor) -> None:
    """Sigmoid that only the product with its own operand reads: the runtime makes both a QuickGelu, rows say how."""
    for node in editor.nodes():
        product = only(editor, node, "Mul") if node.source == "Sigmoid" and node.operator == "logistic" else None
        if product is None or node.attributes.get("gates") or editor.type(node.inputs[0]) != "f32":
            continue
        if set(product.inputs) == {node.inputs[0], node.outputs[0]}:
            editor.change(node, attributes={**node.attributes, "gates": True})


def is_integer_product(editor: Editor, product: Node | None) -> bool:
    """Whether the factor of a product of integers, which the runtime has joined to one before it joins real groups."""
    if product is None or product.source != "Mul":
        return False
    parts = {part.source: part for part in map(editor.writer, product.inputs) if part is not None}
    cast, factors = parts.get("Cast"), parts.get("Mul")
    sums = None if cast is None else editor.writer(cast.inputs[0])
    if cast is None or sums is None or sums.source != "MatMulInteger" or factors is None:
        return False
    return all(editor.only_reader(one) is two for one, two in ((sums, cast), (cast, product), (factors, product)))


def _other(node: Node, read: int) -> int | None:
    """The other operand of a node with two."""
    return node.inputs[1] if node.inputs[0] == read else node.inputs[0]


def _is(editor: Editor, index: int | None, number: float) -> bool:
    """A binary32 or binary16 constant of one element, close to a number as the runtime checks it."""
    value = editor.value(index)
    if value is None or value.size != 1 or value.ndim > 1 or value.dtype not in (np.float32, np.float16):
        return False
    found, wanted = float(value.reshape(-1)[0]), float(value.dtype.type(number))
    return bool(abs(found - wanted) <= 1e-8 + 1e-5 * abs(wanted))


# -- x / 2 * (1 + erf(x / sqrt 2)) ---------------------------------------------------------------------------------
def join_gelu(editor: Editor) -> None:
    """Quotient by sqrt 2, error function, plus 1, times x, times 1/2, or with the half of x first: gelu."""
    for start in editor.nodes():
        if not editor.alive(start) or start.source != "Div" or not _is(editor, start.inputs[1], 2**0.5):
            continue
        x = start.inputs[0]
        erf = only(editor, start, "Erf")
        total = only(editor, erf, "Add")
        if erf is None or total is None or not _is(editor, _other(total, erf.outputs[0]), 1):
            continue
        product = only(editor, total, "Mul")
        if product is None or x is None or not _joins_gelu(editor, x):
            continue
        pair = editor.writer(x)
        if pair is not None and pair.operator == "dequantize":
            # Every node that reads it has its own.
            continue
        other = _other(product, total.outputs[0])
        half = editor.writer(other)
        last = only(editor, product, "Mul")
        # Source: ORT takes any product that x comes from for the half of x.
        from_product = half is not None and half.source == "Mul" and "defines" not in half.attributes
        if editor.graph.version < GELU and is_integer_product(editor, half):
            from_product = False
        if other == x and not from_product and last is not None and _is(editor, _other(last, product.outputs[0]), 0.5):
            nodes, result = (start, erf, total, product, last), last.outputs
        elif (
            half is not None
            and half.source == "Mul"
            and editor.only_reader(half) is product
            and x in half.inputs
            and _is(editor, _other(half, x), 0.5)
        ):
            nodes, result = (start, erf, total, half, product), product.outputs
        else:
            continue
        editor.remove(*nodes)
        if editor.type(x) == "f16" and not start.attributes.get(HALF_KERNEL):
            _define_gelu(editor, start, x, result[0])
        else:
            editor.add(start, "gelu", (x,), result, {"approximate": False}, source="Gelu", version=20)


def join_biased_gelu(editor: Editor, shapes: Shapes) -> None:
    """A sum of binary16 numbers with a vector that only a Gelu reads: both together have no kernel for these."""
    for node in editor.nodes():
        gelu = only(editor, node, "Gelu") if node.source == "Add" and node.attributes.get(HALF_KERNEL) else None
        if gelu is None or editor.type(node.outputs[0]) != "f16":
            continue
        left, right = (known_shape(editor, shapes, index) for index in node.inputs)
        if left and right and left[-1] == right[-1] != -1 and 1 in (len(left), len(right)):
            editor.change(node, source="BiasGelu", version=1)
            editor.change(gelu, source="BiasGelu", version=1)


def _joins_gelu(editor: Editor, x: int) -> bool:
    """Of binary16 numbers only where the operator set has the operator, which then is carried out by its definition or,
    where division has one, by a kernel.
    """
    return editor.type(x) == "f32" or (editor.type(x) == "f16" and editor.graph.version >= GELU)


def _define_gelu(editor: Editor, near: Node, x: int, result: int) -> None:
    """x / 2 * (1 + erf(x / sqrt 2)) as the specification writes it: other operators, and constants that are cast."""

    def computed(operator: str, inputs: tuple[int, ...], name: str, **attributes: Attribute) -> int:
        output = result if name == "Y" else editor.computed(x, f"{editor.tensors[result].name}/{name}", "f16")
        source = {"convert": "CastLike", "add_n": "Sum"}.get(operator, operator.capitalize())
        marks: dict[str, Attribute] = {**attributes, "defines": f"Gelu {editor.tensors[result].name}"}
        editor.add(near, operator, inputs, (output,), marks, source=source, version=13)
        return output

    half, one, two = (
        computed(
            "convert",
            (editor.constant(np.array(number, np.float32), f"{editor.tensors[result].name}/{name}", "f32"),),
            f"{name}Cast",
            saturate=True,
            round_mode="up",
            computed=True,
        )
        for name, number in (("Half", 0.5), ("One", 1), ("Two", 2))
    )
    root = computed("sqrt", (two,), "SqrtTwo")
    erf = computed("erf", (computed("div", (x, root), "XSqrt"),), "ErfXSqrt")
    phi = computed("add_n", (one, erf), "Phi", broadcasts=True, mean=False)
    computed("mul", (computed("mul", (half, x), "MultX"), phi), "Y")


# -- x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) ------------------------------------------------------------
def join_fast_gelu(editor: Editor) -> None:
    """The same by a hyperbolic tangent, whose argument is written in one of two ways."""
    for start in editor.nodes():
        if not editor.alive(start) or start.source not in ("Mul", "Pow") or editor.type(start.outputs[0]) != "f32":
            continue
        found = _factored_cubic(editor, start) if start.source == "Mul" else _summed_cubic(editor, start)
        if found is None:
            continue
        x, nodes = found
        tanh = only(editor, nodes[-1], "Tanh")
        total = only(editor, tanh, "Add")
        product = only(editor, total, "Mul")
        if tanh is None or total is None or product is None or editor.gives_result(product):
            continue
        half = editor.writer(_other(product, total.outputs[0]))
        if half is None or half.source != "Mul" or not _plus_one(editor, total, tanh) or editor.gives_result(half):
            continue
        if _factor_of(editor, half, x, 0.5):
            editor.remove(*nodes, tanh, total, product)
            if not editor.edges(half):
                editor.remove(half)
            attributes: dict[str, Attribute] = {"approximate": True}
            editor.add(start, "gelu", (x,), product.outputs, attributes, source="FastGelu")


def _plus_one(editor: Editor, total: Node, read: Node) -> bool:
    return _is(editor, _other(total, read.outputs[0]), 1)


def _factor_of(editor: Editor, product: Node, x: int, number: float) -> bool:
    """Whether a product is that of x with a number."""
    first = next((i for i in (0, 1) if _is(editor, product.inputs[i], number)), None)
    return first is not None and product.inputs[1 - first] == x


def _factored_cubic(editor: Editor, start: Node) -> tuple[int, tuple[Node, ...]] | None:
    """0.044715 x times x, plus 1, times sqrt(2 / pi) x: x and the nodes, the last one last."""
    position = next((i for i in (0, 1) if _is(editor, start.inputs[i], _CUBIC)), None)
    square = only(editor, start, "Mul")
    total = only(editor, square, "Add")
    last = only(editor, total, "Mul")
    if position is None or square is None or total is None or last is None:
        return None
    x = start.inputs[1 - position]
    scaled = editor.writer(_other(last, total.outputs[0]))
    if x is None or _other(square, start.outputs[0]) != x or not _plus_one(editor, total, square):
        return None
    if scaled is None or scaled.source != "Mul" or editor.only_reader(scaled) is not last:
        return None
    return (x, (start, square, total, scaled, last)) if _factor_of(editor, scaled, x, _ROOT) else None


def _summed_cubic(editor: Editor, start: Node) -> tuple[int, tuple[Node, ...]] | None:
    """x cubed times 0.044715, plus x, times sqrt(2 / pi): x and the nodes, the last one last."""
    x, cubic = start.inputs[0], only(editor, start, "Mul")
    total = only(editor, cubic, "Add")
    last = only(editor, total, "Mul")
    if x is None or cubic is None or total is None or last is None or not _is(editor, start.inputs[1], 3):
        return None
    if not _is(editor, _other(cubic, start.outputs[0]), _CUBIC) or _other(total, cubic.outputs[0]) != x:
        return None
    return (x, (start, cubic, total, last)) if _is(editor, _other(last, total.outputs[0]), _ROOT) else None
