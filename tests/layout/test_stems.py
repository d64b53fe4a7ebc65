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
    "distinct equal exp floor identity log maximum mean minimum pad power range rank real shape split square sum where"
    " quantize dequantize".split()
)
# File: how many lists and comparisons it has, and why they are no property of operators. Numbers only go down.
_NARRATOR = "which narrator knows the formula; operators without one are told by their traits"
_FORMULA = "a formula of its own that a fault or an exact result is made with, like a rule"
_KERNEL = "what our own C++ kernels can do for steps, and what steps they have with channels last"
_VERDICT = "a verdict has words of its own for these"
EXCEPTIONS: dict[str, tuple[int, str]] = {
    "check/refusals.py": (1, "the nodes that rules BT4xx speak of in their own words"),
    "check/rules/bt502_undefined_result.py": (1, "results that one runtime leaves undefined"),
    "cli/demo.py": (1, "the layer that the demonstration shows, of a model that we ship"),
    "compare/hypotheses/fixed_point.py": (1, _FORMULA),
    "compare/hypotheses/movement.py": (3, _VERDICT),
    "compare/hypotheses/results.py": (6, _VERDICT),
    "compare/hypotheses/scales.py": (1, _VERDICT),
    "compare/hypotheses/unfused.py": (1, "what one runtime's optimiser made its operators of"),
    "compare/hypotheses/unrounded.py": (2, _FORMULA),
    "compare/hypotheses/comparisons.py": (2, _FORMULA),
    "compare/hypotheses/exact_results.py": (2, _FORMULA),
    "compare/hypotheses/prepared.py": (1, "numbers of steps that no executor reads"),
    "compare/hypotheses/reading.py": (1, "which mutants the published score counts"),
    "compare/hypotheses/table_entries.py": (1, "which mutants the published score counts"),
    "conformance/recorded/tvm_qnn_case.py": (1, "functions of one runtime that recorded cases call"),
    "explain/element.py": (5, _NARRATOR),
    "explain/elementwise.py": (2, _NARRATOR),
    "explain/lookup.py": (4, _NARRATOR),
    "plan/channels_last.py": (1, _KERNEL),
    "plan/channels_last_layers.py": (2, _KERNEL),
    "plan/passes.py": (6, _KERNEL),
    "plan/plan.py": (1, "the one operator that gives a variable its name"),
    "quantization.py": (1, "one of the two operators that the function makes"),
}


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
    for name, lists in found.items():
        allowed, why = EXCEPTIONS.get(name, (0, ""))
        shown = "".join(f"\n  line {line}: {', '.join(stems)}" for line, stems in lists)
        assert len(lists) <= allowed, f"{name} lists operators; a trait of `Operator` says it once:{shown}"
        assert len(lists) == allowed, f"{name} has {len(lists)} lists left: lower its number"
        assert not allowed or len(why) > 20, name
    assert not EXCEPTIONS.keys() - found.keys()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("LAYERS = {'conv2d': 0, 'conv': 3}", 1),
        ("if step.operator == 'conv2d' or operator in ('conv2d', 'matmul'): pass", 2),
        ("MOVES = 'pad transpose'.split()", 1),
        ("shown = {'shape': 1, 'range': 2}", 0),
        ("replace(step, operator='conv2d')", 0),
    ],
)
def test_lists_are_found(tmp_path: Path, text: str, count: int) -> None:
    path = tmp_path / "one.py"
    path.write_text(text)
    assert len(list(lists_of_stems(path))) == count
