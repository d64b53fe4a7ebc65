"""einsum_view: operands, products and results of a sum over letters (Einsum), their axes in the order that is next.

Every axis of a tensor in between belongs to a letter: first come the axes that an ellipsis stands for, then all
`letters`; what a tensor lacks has one element. `part` says what is made of the first input:

- ``spread``: such a tensor, of operand `index` of `terms`; letters that occur twice become their diagonal. The other
  inputs are all operands.
- ``left``, ``right``: of two such tensors (the next two inputs) the matrices [batches, rows, columns] that are
  multiplied: axes that both have and keep, that the left one has, that are summed (`summed`), that the right one has.
- ``joined``: such a tensor again, of the product of the next two inputs.
- ``result``: the axes of the term `result`, of the product of the next two inputs or of a tensor that stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...records import dataclass
from ..core.base import Call, Lowered, Operator, Shape
from .strided_view import reference, steps_of, strided

ELLIPSIS = "..."


@dataclass(frozen=True)
class _Moved:
    """A tensor of `source` sizes (elements between neighbours: `steps`), its axes in another order.

    Attributes:
        order: axes of the source in the order of the result.
        shape: of the result, after axes have become one.
    """

    source: Shape
    steps: tuple[int, ...]
    order: tuple[int, ...]
    shape: Shape


def _moved(source: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> _Moved:
    return _Moved(tuple(source), tuple(steps_of(source)), tuple(order), tuple(shape))


def _text(call: Call, name: str) -> str:
    return str(call.attribute(name))


def _hidden(call: Call, term: str, rank: int) -> int:
    """How many axes the ellipsis of a term stands for."""
    count = rank - len(term.replace(ELLIPSIS, ""))
    if count < 0 or (count and ELLIPSIS not in term):
        raise call.invalid("BT-SHAPE-RANK", f"an operand of rank {rank} does not fit the term '{term}'")
    return count


def _spread(call: Call) -> _Moved:
    terms, index, letters = _text(call, "terms").split(","), int(call.attribute("index")), _text(call, "letters")
    counts = [_hidden(call, term, call.input(1 + i).rank) for i, term in enumerate(terms)]
    most = max(counts)
    if any(count != most for count, term in zip(counts, terms, strict=True) if ELLIPSIS in term):
        raise call.invalid("BT-EINSUM-ELLIPSIS", f"ellipses stand for {counts} axes, expected the same number")
    x, term, own = call.input(0), terms[index], counts[index]
    first = term.index(ELLIPSIS) if ELLIPSIS in term else 0
    names = [*term.replace(ELLIPSIS, "")]
    axes: list[int | str] = [*names[:first], *range(own), *names[first:]]
    sizes: dict[int | str, int] = {}
    steps: dict[int | str, int] = {}
    for axis, size, step in zip(axes, x.shape, steps_of(x.shape), strict=True):
        if sizes.setdefault(axis, size) != size:
            raise call.invalid("BT-EINSUM-SIZES", f"'{axis}' has the sizes {sizes[axis]} and {size} in one operand")
        steps[axis] = steps.get(axis, 0) + step
    every = [*range(most), *letters]
    shape = tuple(sizes.get(axis, 1) for axis in every)
    return _Moved(shape, tuple(steps.get(axis, 0) for axis in every), tuple(range(len(every))), shape)


@dataclass(frozen=True)
class _Product:
    """Axes by what becomes of them in a product, and sizes of all axes."""

    both: tuple[int, ...]
    left: tuple[int, ...]
    summed: tuple[int, ...]
    right: tuple[int, ...]
    sizes: Shape

    def count(self, axes: Sequence[int]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    @property
    def order(self) -> tuple[int, ...]:
        return (*self.both, *self.left, *self.summed, *self.right)

    @property
    def shape(self) -> Shape:
        """Of the product, every axis for itself."""
        return tuple(1 if axis in self.summed else self.sizes[axis] for axis in self.order)


def _product(call: Call) -> _Product:
    left, right = call.input(1).shape, call.input(2).shape
    rank, letters = len(left), _text(call, "letters")
    summed = tuple(rank + axis for axis in call.attribute("summed"))
    in_both: list[int] = []
    in_left: list[int] = []
    in_right: list[int] = []
    sizes = []
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        name = letters[axis - rank] if rank - axis <= len(letters) else ELLIPSIS
        if a != b and 1 not in (a, b):
            raise call.invalid("BT-EINSUM-SIZES", f"'{name}' has the sizes {a} and {b}")
        if axis in summed:
            if a != b:
                raise call.unsupported(
                    "BT-EINSUM-BROADCAST", f"'{name}' is summed, and has one element in one operand alone"
                )
        else:
            (in_right if a < 2 else in_left if b < 2 else in_both).append(axis)
        sizes.append(b if a == 1 else a)
    return _Product(tuple(in_both), tuple(in_left), summed, tuple(in_right), tuple(sizes))


def _factor(call: Call) -> _Moved:
    product, is_left = _product(call), call.attribute("part") == "left"
    both, summed = product.count(product.both), product.count(product.summed)
    if is_left:
        order = product.order
        shape = both, product.count(product.left), summed
    else:
        order = (*product.both, *product.summed, *product.right, *product.left)
        shape = both, summed, product.count(product.right)
    return _moved(call.input(0).shape, order, shape)


def _joined(call: Call) -> _Moved:
    product = _product(call)
    order = [product.order.index(axis) for axis in range(len(product.sizes))]
    return _moved(product.shape, order, [product.shape[axis] for axis in order])


def _result(call: Call) -> _Moved:
    letters, term = _text(call, "letters"), _text(call, "result")
    if len(call.inputs) > 1:
        product = _product(call)
        axes, sizes = product.order, product.shape
    else:
        sizes = call.input(0).shape
        axes = tuple(range(len(sizes)))
    hidden = list(range(len(axes) - len(letters)))
    first = term.index(ELLIPSIS) if ELLIPSIS in term else 0
    if hidden and ELLIPSIS not in term:
        raise call.invalid("BT-EINSUM-ELLIPSIS", "the operands have an ellipsis, the result has none")
    own = [len(hidden) + letters.index(letter) for letter in term.replace(ELLIPSIS, "")]
    kept = [*own[:first], *hidden, *own[first:]]
    # What is left out has been summed, and has one element.
    order = [axes.index(axis) for axis in (*kept, *(axis for axis in axes if axis not in kept))]
    return _moved(sizes, order, [sizes[place] for place in order[: len(kept)]])


_PARTS = {"spread": _spread, "left": _factor, "right": _factor, "joined": _joined, "result": _result}


def infer(call: Call) -> list[Shape]:
    """Sizes in the new order."""
    return [_PARTS[_text(call, "part")](call).shape]


def lower(call: Call) -> Lowered:
    """A strided view, or the same elements in a new shape."""
    moved = _PARTS[_text(call, "part")](call)
    sizes = [moved.source[axis] for axis in moved.order]
    steps = [moved.steps[axis] for axis in moved.order]
    taken = [(size, step) for size, step in zip(sizes, steps, strict=True) if size != 1]
    if [step for _, step in taken] == steps_of([size for size, _ in taken]):
        return Lowered({"shape": moved.shape}, operator="reshape", inputs=(0,))
    lowered = strided(call, 0, sizes, steps)
    return Lowered(lowered.parameters, operator="slice_axes", inputs=(0,))


OPERATOR = Operator(
    "einsum_view",
    (),
    infer,
    lower,
    reference,
    "axes of an operand or of a product in the order that a sum over letters needs next",
    moves=True,
)
