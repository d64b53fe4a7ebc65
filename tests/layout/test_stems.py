"""What an operator is like, it says itself: beside `operators` nobody keeps lists of operators by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from bittrue.operators import registry
from support.shared import REPOSITORY

PACKAGE = REPOSITORY / "src" / "bittrue"
# Rooms that are about operators by their names: formats and tables of runtimes, functions of the same names, graphs
# that are matched and made node by node as one runtime's optimiser does it, and cases that are written per operator.
ROOMS = ("operators", "importers", "numerics", "arithmetic", "rules", "rewrites", "compat/tvm_qnn", "conformance/suite")
# Stems that are ordinary words, too: a list of nothing but these says nothing.
WORDS = frozenset(
    "distinct equal exp floor identity log maximum mean minimum pad power range rank real shape split sum where"
    " quantize dequantize".split()
)


def _strings(node: ast.AST) -> list[str]:
    """The strings that a list, a set, a tuple, keys of a dictionary, or the words of a text hold."""
    if isinstance(node, ast.List | ast.Set | ast.Tuple):
        held: list[ast.expr | None] = [*node.elts]
    elif isinstance(node, ast.Dict):
        held = [*node.keys]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split()
    else:
        return []
    return [one.value for one in held if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _is_stem_of_something(node: ast.expr) -> bool:
    """`step.operator`, `operator.stem`, and variables of these names."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("operator", "stem")


def lists_of_stems(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Lines and stems of every list of at least two stems, and of every comparison of an operator with one."""
    stems = registry().keys()
    for node in ast.walk(ast.parse(path.read_text())):
        found = _strings(node)
        if len(found) > 1 and set(found) <= stems and not set(found) <= WORDS:
            yield node.lineno, found  # type: ignore[attr-defined]
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = [one.value for one in sides if isinstance(one, ast.Constant) and one.value in stems]
            if named and any(_is_stem_of_something(one) for one in sides):
                yield node.lineno, named


def files() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not str(path.relative_to(PACKAGE)).startswith(tuple(f"{room}/" for room in ROOMS)):
            yield path


def test_no_lists_of_operators() -> None:
    found = {str(path.relative_to(PACKAGE)): list(lists_of_stems(path)) for path in files()}
    shown = [f"{name}:{line}: {', '.join(stems)}" for name, lists in found.items() for line, stems in lists]
    assert not shown, "a trait of `Operator` says it once:\n" + "\n".join(shown)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("LAYERS = {'matmul': 0, 'conv': 3}", 1),
        ("if step.operator == 'conv' or operator in ('conv', 'matmul'): pass", 2),
        ("MOVES = 'pad transpose'.split()", 1),
        ("shown = {'shape': 1, 'range': 2}", 0),
        ("replace(step, operator='conv')", 0),
    ],
)
def test_lists_are_found(tmp_path: Path, text: str, count: int) -> None:
    path = tmp_path / "one.py"
    path.write_text(text)
    assert len(list(lists_of_stems(path))) == count
