"""Names of free dimensions that are sums, differences, products or quotients of others, as exporters write them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}
# Nothing else is read, and no longer name.
_FORMULA, _LONGEST = re.compile(r"(?:\b[A-Za-z_]\w*\b|\b\d{1,9}\b|[-+*/()\s])+", re.ASCII), 200


def parts(name: str) -> frozenset[str]:
    """The names of the dimensions that one follows from; none for one that stands for itself.

    >>> sorted(parts("past + sequence")), sorted(parts("batch_size"))
    (['past', 'sequence'], [])
    """
    tree = _tree(name)
    if tree is None or isinstance(tree, ast.Name):
        return frozenset()
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def size_of(name: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dimension, given or following from those of others; None where they do not tell.

    >>> size_of("past + 2 * rows", {"past": 3, "rows": 4}), size_of("past + 1", {})
    (11, None)
    """
    if name in sizes:
        return sizes[name]
    if not parts(name) <= sizes.keys() or not parts(name):
        return None
    tree = _tree(name)
    try:
        found = None if tree is None else _value(tree, sizes)
    except ZeroDivisionError:
        return None
    return found if found is not None and found >= 0 else None


@cache
def _tree(name: str) -> ast.expr | None:
    """The formula that a name is; None for one that is none."""
    if len(name) > _LONGEST or not _FORMULA.fullmatch(name):
        return None
    try:
        tree = ast.parse(name.strip(), mode="eval").body
    except SyntaxError:
        return None
    return tree if _is_formula(tree) else None


def _is_formula(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return type(tree.op) in _OPERATIONS and _is_formula(tree.left) and _is_formula(tree.right)
    return isinstance(tree, ast.Name) or (isinstance(tree, ast.Constant) and type(tree.value) is int)


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](_value(tree.left, sizes), _value(tree.right, sizes))
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    assert isinstance(tree, ast.Constant)
    return int(str(tree.value))
