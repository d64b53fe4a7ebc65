"""`bittrue.records.dataclass` makes what the standard library's makes, and a first result needs no other."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bittrue
from bittrue.records import dataclass, field, replace

KINDS: list[dict[str, bool]] = [{"frozen": True}, {"frozen": True, "eq": False}, {}, {"eq": False}]
# Modules of the standard library, and one of the format's, that take milliseconds.
HEAVY = "concurrent.futures dataclasses decimal difflib flatbuffers hashlib json logging pathlib shutil urllib zipfile"


@dataclass(frozen=True)
class Kept:
    name: str
    values: list[int] = field(default_factory=list)


def both(options: dict[str, bool]) -> list[Any]:
    """One class made by us, one by the standard library."""

    def made(decorate: Callable[..., Any], field: Callable[..., Any]) -> Any:
        class Base:
            first: int
            second: tuple[int, ...] = (1,)

        class Example(decorate(**options)(Base)):  # type: ignore[misc]
            second: tuple[int, ...] = (2,)
            third: dict[str, int] = field(default_factory=dict)

            def twice(self) -> int:
                return 2 * int(self.first)

        return decorate(**options)(Example)

    return [made(dataclass, field), made(dataclasses.dataclass, dataclasses.field)]


def bare(kind: Any) -> list[inspect.Parameter]:
    """The arguments of a class without annotations."""
    return [p.replace(annotation=p.empty) for p in inspect.signature(kind).parameters.values()]


def said(action: Callable[[], object]) -> object:
    """The result, or the kind of error."""
    try:
        return action()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_classes_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = both(options)
    for arguments, named in [
        ((1,), {}),
        ((1, (3,), {"a": 1}), {}),
        ((), {"third": {}, "first": 5}),
        ((), {}),
        ((1, 2, 3, 4), {}),
        ((1,), {"first": 1}),
        ((1,), {"fourth": 1}),
    ]:
        made = [said(lambda kind=kind, a=arguments, n=named: vars(kind(*a, **n))) for kind in (ours, theirs)]
        assert made[0] == made[1]
    for action in (
        lambda kind: repr(kind(1)),
        lambda kind: kind(1) == kind(1),
        lambda kind: kind(1) == kind(2),
        lambda kind: kind(1) == 1,
        lambda kind: kind(1).third is kind(1).third,
        lambda kind: setattr(kind(1), "first", 2),
        lambda kind: delattr(kind(1), "first"),
        lambda kind: dataclasses.asdict(dataclasses.replace(kind(1), first=4)),
        lambda kind: [one.name for one in dataclasses.fields(kind)],
        lambda kind: kind.second,
        lambda kind: str(inspect.signature(kind).replace(parameters=bare(kind), return_annotation=str)),
        lambda kind: kind.__match_args__,
        lambda kind: kind(3).twice(),
        lambda kind: len({kind(1, third=()), kind(1, third=())}),
    ):
        assert said(lambda a=action: a(ours)) == said(lambda a=action: a(theirs))


def test_objects_with_other_values() -> None:
    kept = Kept("a", [1])
    other = replace(kept, name="b")
    assert (other, other.values is kept.values) == (Kept("b", [1]), True)
    with pytest.raises(TypeError, match="size"):
        replace(kept, size=1)  # type: ignore[call-arg]


def test_objects_are_copied_and_pickled() -> None:
    kept = Kept("a", [1, 2])
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == copy.copy(kept) == kept
    assert hash(Kept("a", ())) == hash(Kept("a", ()))  # type: ignore[arg-type]


def test_a_first_result_needs_little(tmp_path: Path) -> None:
    """Its dataclasses are made by `bittrue.records`, and modules that take long to import are left alone."""
    code = f"""
import sys, numpy
before = set(sys.modules)
import bittrue
session = bittrue.load(sys.argv[1]).prepare()
session.run({{port.name: numpy.zeros(port.shape, port.dtype) for port in session.inputs}})
loaded = set(sys.modules) - before
ours = [vars(sys.modules[name]) for name in loaded if name.startswith("bittrue.")]
kinds = {{k for names in ours for k in names.values() if isinstance(k, type) and k.__module__.startswith("bittrue.")}}
slow = [k.__qualname__ for k in kinds if "__dataclass_params__" in vars(k) and k.__dataclass_params__.init]
import json
print(json.dumps([sorted(loaded & set("{HEAVY}".split())), slow]))
"""
    model = tmp_path / "model.tflite"
    model.write_bytes(bittrue.demo_model())
    done = subprocess.run([sys.executable, "-c", code, str(model)], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [[], []]


def test_a_run_from_the_command_line_needs_little() -> None:
    """Neither processes, bars of progress nor data sets are loaded before there are any."""
    code = (
        "import sys, bittrue.cli.run, bittrue.cli.demo; print(sorted({*sys.argv[1].split()}.intersection(sys.modules)))"
    )
    heavy = "bittrue.evaluation concurrent.futures email logging multiprocessing rich.progress socket subprocess"
    done = subprocess.run([sys.executable, "-c", code, heavy], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_first_objects_are_like_later_ones() -> None:
    """The first ones are made without a function of their class."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list)

    made = [Point(1), Point(1, 3), Point(x=4, names=["a"])]
    assert not inspect.isfunction(vars(Point)["__init__"])
    wrong: list[Callable[[], Point]] = [
        lambda: Point(),  # type: ignore[call-arg]
        lambda: Point(1, 2, [], 4),  # type: ignore[call-arg]
        lambda: Point(1, x=2),  # type: ignore[misc]
        lambda: Point(1, z=2),  # type: ignore[call-arg]
    ]
    told = []
    for make in wrong:
        with pytest.raises(TypeError) as caught:
            make()
        told.append(str(caught.value))
    assert inspect.isfunction(vars(Point)["__init__"])
    assert [Point(1), Point(1, 3), Point(x=4, names=["a"])] == made
    assert [list(vars(point)) for point in made] == [["x", "y", "names"]] * 3
    assert made[0].names is not made[1].names
    for make, text in zip(wrong, told, strict=True):
        with pytest.raises(TypeError) as caught:
            make()
        assert str(caught.value) == text


def test_a_class_with_several_objects_gets_its_function() -> None:
    @dataclass
    class Many:
        x: int

    made = [Many(i) for i in range(40)]
    assert [one.x for one in made] == list(range(40))
    assert inspect.isfunction(vars(Many)["__init__"])


def test_classes_keep_their_names() -> None:
    """What the decorator keeps on a class hides no method of one of bittrue's."""
    kept = {name for name in vars(Kept) if name.startswith("_") and not name.startswith("__")}
    assert kept
    for path in Path(bittrue.__file__).parent.rglob("*.py"):
        for made in ast.walk(ast.parse(path.read_text())):
            if isinstance(made, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in made.decorator_list):
                methods = {node.name for node in made.body if isinstance(node, ast.FunctionDef)}
                assert not methods & kept, f"{path}, {made.name}"
