"""Mapping of Einsum: operands two by two, as the runtime goes through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from .base import Mappers, Source

_ELLIPSIS = "..."


def _letters(source: Source, term: str) -> str:
    letters = term.replace(_ELLIPSIS, "", 1)
    if not all("a" <= letter <= "z" or "A" <= letter <= "Z" for letter in letters):
        raise source.invalid("BT-EINSUM-EQUATION", f"term '{term}' holds more than letters and one ellipsis")
    return letters


def _terms(source: Source) -> tuple[tuple[str, ...], str]:
    """Terms of the operands, and of the result, which follows from those where the equation has none."""
    equation = source.text("equation", "").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = tuple(left.split(","))
    if len(terms) != len(source.inputs) or None in source.inputs:
        raise source.invalid(
            "BT-EINSUM-EQUATION", f"'{equation}' has {len(terms)} terms for {len(source.inputs)} operands"
        )
    counts = Counter("".join(_letters(source, term) for term in terms))
    if not arrow:
        dots = _ELLIPSIS if any(_ELLIPSIS in term for term in terms) else ""
        once = sorted(letter for letter, count in counts.items() if count == 1)
        if any(letter < "a" for letter in once):
            raise source.unsupported(
                "BT-EINSUM-EQUATION", f"'{equation}' leaves the place of capital letters open", "name the result's axes"
            )
        return terms, dots + "".join(once)
    wanted = _letters(source, result)
    if len(set(wanted)) < len(wanted) or not set(wanted) <= counts.keys():
        raise source.invalid(
            "BT-EINSUM-EQUATION", f"the result '{result}' holds a letter twice, or one that no operand has"
        )
    return terms, result


def _einsum(source: Source) -> None:
    """The first operand is summed over what only it has; then every next one is multiplied by what there is.

    Of a next one, sums over what only it has come first, letter by letter; other letters that end with it are summed
    by the product of matrices.
    """
    terms, result = _terms(source)
    dtype = source.type(0)
    letters = "".join(dict.fromkeys("".join(_letters(source, term) for term in terms)))
    last = {letter: max(i for i, term in enumerate(terms) if letter in term) for letter in letters}
    first = {letter: min(i for i, term in enumerate(terms) if letter in term) for letter in letters}
    ending = [[a for a in letters if last[a] == i and a not in result] for i in range(len(terms))]

    def view(part: str, inputs: Sequence[int | None], **attributes: Attribute) -> int:
        given: dict[str, Attribute] = {"part": part, "letters": letters, **attributes}
        outputs = source.outputs if part == "result" else [source.temporary(dtype, part)]
        return source.emit("einsum_view", dtype, given, inputs=inputs, outputs=outputs)[0]

    def summed(x: int, names: Sequence[str], keeps_single: bool = False) -> int:
        axes = source.constant(np.array([letters.index(a) - len(letters) for a in names], np.int64), "axes")
        plain: dict[str, Attribute] = {"keep_dims": True, "keeps_without_axes": False, "keeps_single": keeps_single}
        return source.emit("sum", dtype, plain, inputs=[x, axes], outputs=[source.temporary(dtype, "sum")])[0]

    spread = [
        view("spread", [x, *source.inputs], terms=",".join(terms), index=index)
        for index, x in enumerate(list(source.inputs))
    ]
    now = summed(spread[0], ending[0]) if ending[0] else spread[0]
    inputs = [now]
    along: dict[str, Attribute] = {}
    for index in range(1, len(terms)):
        other = spread[index]
        for letter in ending[index]:
            if first[letter] == index:
                other = summed(other, letter, keeps_single=True)
        along = {"summed": tuple(letters.index(a) - len(letters) for a in ending[index])}
        factors = [view("left", [now, now, other], **along), view("right", [other, now, other], **along)]
        product = source.emit(
            "matmul", dtype, {"computed_weights": (1,)}, inputs=factors, outputs=[source.temporary(dtype, "product")]
        )
        inputs = [product[0], now, other]
        if index < len(terms) - 1:
            now = view("joined", inputs, **along)
    view("result", inputs, result=result, **along)


MAPPERS: Mappers = {("", "Einsum"): _einsum}
