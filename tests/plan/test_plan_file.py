"""Plan files are canonical: what is in them follows from what was planned, or loading says what does not."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.numerics import find
from bittrue.plan.loading import load_plan
from support.build import T, chain, single
from support.graphs import nested_loops, staged
from support.shared import REPOSITORY

Description = dict[str, Any]


def joined() -> bytes:
    """A concatenation of an input and a constant."""
    constant = T("s8", (3,), 1.0, 0, data=np.arange(3))
    operands = [T("s8", (1,), 1.0, 0), constant], [T("s8", (4,), 1.0, 0)]
    return chain([("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), *operands)])


MODELS = {"demo": bittrue.demo_model, "joined": joined, "loops": nested_loops, "staged": staged}


def saved(folder: Path, model: str = "demo") -> Path:
    path = folder / "saved.plan"
    bittrue.load(MODELS[model]()).prepare(executor="reference").plan.save(path)
    return path


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, change: Callable[[Description], object]) -> None:
    members = members_of(path)
    description = json.loads(members["plan.json"])
    change(description)
    members["plan.json"] = json.dumps(description, indent=1).encode()
    zipped(members, path)


@pytest.mark.parametrize("model", MODELS)
def test_saved_loaded_saved(model: str, tmp_path: Path) -> None:
    path = saved(tmp_path, model)
    content = path.read_bytes()
    rewritten(path, lambda description: None)
    assert path.read_bytes() == content
    bittrue.load_plan(path, executor="reference").plan.save(tmp_path / "again.plan")
    assert (tmp_path / "again.plan").read_bytes() == content


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for key, one in inner for place in leaves(one, (*path, key))]
    return [path]


@pytest.mark.parametrize("model", MODELS)
def test_no_member_may_be_another(model: str, tmp_path: Path) -> None:
    """Every leaf of the plan itself, changed alone; what was planned may be something else, which then is derived."""
    path = saved(tmp_path, model)
    content = path.read_bytes()
    true = json.loads(members_of(path)["plan.json"])
    free = {"source", "notes", "version"}
    places = [place for place in leaves(true) if place[0] not in free]
    for place in places[:: max(1, len(places) // 40)]:

        def change(description: Description, place: tuple[Any, ...] = place) -> None:
            holder: Any = description
            for key in place[:-1]:
                holder = holder[key]
            before = holder[place[-1]]
            after = {bool: not before, int: float(before) if isinstance(before, int) else 0, str: f"{before}x"}
            holder[place[-1]] = after.get(type(before), 0)

        path.write_bytes(content)
        rewritten(path, change)
        with pytest.raises(bittrue.ModelFormatError):
            load_plan(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda step: step["parameters"].update(pad_top=7), r"\.pad_top: the file says 7, this version"),
        (lambda step: step.update(parameters=7), ": the file says 7, this version"),
        (lambda step: step.update(parameters=[]), r": the file says \[\], this version"),
    ],
)
def test_the_first_difference_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str) -> None:
    path = saved(tmp_path)
    rewritten(path, lambda d: change(d["steps"][0]))
    with pytest.raises(bittrue.ModelFormatError, match=r"steps\[0\]\.parameters" + words):
        load_plan(path)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_constants_of_half_bytes_and_of_pairs(tmp_path: Path, count: int) -> None:
    """As the file has them, and as plain data: real and imaginary part side by side."""
    halves = single(
        "DEQUANTIZE", None, [T("s4", (count,), 0.5, 0, data=np.arange(-1, count - 1))], [T("f32", (count,))]
    )
    pairs = single("REAL", None, [T("c64", (count,), data=np.arange(count) - 2j)], [T("f32", (count,))])
    for content in (halves, pairs):
        plan = bittrue.load(content).prepare().plan
        plan.save(tmp_path / "saved.plan")
        assert load_plan(tmp_path / "saved.plan").to_dict(constants=True) == plan.to_dict(constants=True)
    (values,) = (t["value"]["values"] for t in plan.to_dict(constants=True)["tensors"] if t["dtype"] == "c64")
    assert values == [[i, -2] for i in range(count)]


def test_a_constant_that_says_it_is_computed(tmp_path: Path) -> None:
    """Finding F18: the native executor read memory that nobody had written."""
    path = saved(tmp_path, "joined")
    rewritten(path, lambda d: next(t for t in d["tensors"] if t["kind"] == "constant").update(kind="computed"))
    with pytest.raises(bittrue.ModelFormatError, match="kind: the file says"):
        load_plan(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(more=1),
        lambda d: d["steps"][0].update(more=None),
        lambda d: d["source"].update(more=None),
        lambda d: d["source"]["graphs"][0]["nodes"][0].update(more=None),
        lambda d: d["source"]["graphs"][0]["tensors"][0].pop("variable"),
        lambda d: d["source"].update(main=1),
        lambda d: d["source"].update(memory_limit=True),
        lambda d: d["source"].update(memory_limit=10**40),
        lambda d: d["source"].update(shapes=[{"input": 0, "shape": [1.5]}]),
        lambda d: d["source"].update(numerics="none such"),
        lambda d: d["source"]["graphs"][0].update(outputs=[]),
        lambda d: d["source"]["graphs"].append(d["source"]["graphs"][0]),
        lambda d: d["arenas"] if "arenas" in d else d.pop("arena"),
        lambda d: d["notes"].append(5),
    ],
)
def test_unknown_missing_and_impossible_members(change: Callable[[Description], object], tmp_path: Path) -> None:
    path = saved(tmp_path)
    rewritten(path, change)
    with pytest.raises(bittrue.ModelFormatError):
        load_plan(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": 1' + "0" * 100_000 + "}", "[]", "null", "\ufeff{}", '{"a": 1, "a": 1}']
)
def test_hostile_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "one.plan"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("plan.json", text)
    with pytest.raises(bittrue.ModelFormatError):
        load_plan(path)


def zipped(
    members: dict[str, bytes],
    path: Path,
    *,
    compression: int = zipfile.ZIP_STORED,
    comment: bytes = b"",
    date: tuple[int, int, int, int, int, int] = (1980, 1, 1, 0, 0, 0),
) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date)
            info.compress_type = compression
            archive.writestr(info, content)
        archive.comment = comment


def _double(members: dict[str, bytes], path: Path) -> None:
    zipped(members, path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("plan.json", members["plan.json"])


def _extra(members: dict[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.extra = b"\x99\x99\x04\x00abcd"
            archive.writestr(info, content)


def _described(members: dict[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.comment = b"a comment"
            archive.writestr(info, content)


def _between(members: dict[str, bytes], path: Path) -> None:
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
            file.write(b"between")
            archive.start_dir = file.tell()


def _fortran(members: dict[str, bytes], path: Path) -> None:
    for name, content in members.items():
        array = None if name == "plan.json" else np.load(io.BytesIO(content))
        if array is not None and array.ndim > 1 and not array.flags.f_contiguous:
            stream = io.BytesIO()
            np.save(stream, np.asfortranarray(array))
            members[name] = stream.getvalue()
    zipped(members, path)


def _as_text(change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes], Path], object]:
    """The description with a change of its text."""

    def write(members: dict[str, bytes], path: Path) -> None:
        changed = change(members["plan.json"])
        assert changed != members["plan.json"]
        zipped({**members, "plan.json": changed}, path)

    return write


ARCHIVES: dict[str, Callable[[dict[str, bytes], Path], object]] = {
    "compressed": lambda members, path: zipped(members, path, compression=zipfile.ZIP_DEFLATED),
    "comment": lambda members, path: zipped(members, path, comment=b"more"),
    "comments": _described,
    "extra": _extra,
    "double": _double,
    "between": _between,
    "before": lambda members, path: (zipped(members, path), path.write_bytes(b"MZ" + path.read_bytes())),
    "behind": lambda members, path: (zipped(members, path), path.write_bytes(path.read_bytes() + b"MZ")),
    "unused": lambda members, path: zipped({**members, "a999.npy": members["a0.npy"]}, path),
    "other": lambda members, path: zipped({**members, "readme.txt": b"text"}, path),
    "missing": lambda members, path: zipped({n: c for n, c in members.items() if n != "a1.npy"}, path),
    "longer": lambda members, path: zipped({**members, "a0.npy": members["a0.npy"] + b"\0"}, path),
    "columns": _fortran,
    "dates": lambda members, path: zipped(members, path, date=(2026, 1, 1, 0, 0, 0)),
    "order": lambda members, path: zipped(dict(reversed(members.items())), path),
    "spaces": _as_text(lambda text: text + b" "),
    "numbers": _as_text(lambda text: text.replace(b'"axis": 0', b'"axis": -0', 1)),
    "escapes": _as_text(lambda text: text.replace(b"litert", b"\\u006citert")),
    "surrogates": _as_text(lambda text: text.replace(b'"notes": []', b'"notes": [\n  "\\ud800"\n ]')),
}


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_byte_of_the_archive_is_accounted_for(archive: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    ARCHIVES[archive](members_of(path), path)
    with pytest.raises(bittrue.ModelFormatError):
        load_plan(path)


def test_changed_arrays(tmp_path: Path) -> None:
    path = saved(tmp_path)
    true = members_of(path)
    for name in true.keys() - {"plan.json"}:
        content = bytearray(true[name])
        content[-1] ^= 1
        zipped({**true, name: bytes(content)}, path)
        try:
            load_plan(path).save(path)
        except bittrue.ModelFormatError:
            continue
        # Other weights of the same bounds, and scales that decide nothing: another plan, and a true one.
        assert members_of(path)[name] == content, name


def test_another_version_wrote_it(tmp_path: Path) -> None:
    path = saved(tmp_path)
    rewritten(path, lambda d: d.update(version="99.0"))
    load_plan(path)
    rewritten(path, lambda d: d["steps"][0].update(work=1))
    with pytest.raises(bittrue.ModelFormatError, match=r"bittrue 99\.0 wrote this plan") as caught:
        load_plan(path)
    assert caught.value.code == "BT-PLAN-VERSION"
    assert "plan the model again" in caught.value.advice


def test_plans_that_follow_from_no_named_table_are_not_saved(tmp_path: Path) -> None:
    session = bittrue.load(bittrue.demo_model()).prepare(executor="reference")
    plan = session.plan
    step = replace(plan.steps[0], parameters={**plan.steps[0].parameters, "low": 3})
    table = replace(find("litert"), name="mine")
    others = [
        replace(plan, steps=(step, *plan.steps[1:])),
        replace(plan, source=None),
        bittrue.load(bittrue.demo_model()).prepare(table, executor="reference").plan,
    ]
    for other in others:
        with pytest.raises(bittrue.InputError) as caught:
            other.save(tmp_path / "other.plan")
        assert caught.value.code == "BT-PLAN-SAVE"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("executor", ["native", "reference"] if bittrue.isas() else ["reference"])
def test_plans_changed_in_memory_read_nothing_unwritten(executor: str) -> None:
    plan = bittrue.load(joined()).prepare(executor="reference").plan
    tensors = tuple(replace(t, kind="computed", value=None) if t.kind == "constant" else t for t in plan.tensors)
    with pytest.raises(bittrue.ModelFormatError, match="nothing has written it"):
        bittrue.api.Session(replace(plan, tensors=tensors), executor=executor)


@pytest.mark.parametrize("executor", ["native", "reference"] if bittrue.isas() else ["reference"])
@pytest.mark.parametrize("change", [lambda value: value[None], lambda value: value.astype(np.float64)])
def test_plans_changed_in_memory_hold_values_of_their_tensors(
    executor: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    plan = bittrue.load(joined()).prepare(executor="reference").plan
    tensors = tuple(t if t.value is None else replace(t, value=change(t.value)) for t in plan.tensors)
    with pytest.raises(bittrue.ModelFormatError, match="another type or shape"):
        bittrue.api.Session(replace(plan, tensors=tensors), executor=executor)


@pytest.mark.skipif(not bittrue.isas(), reason="the C++ core is not built")
def test_the_native_program_checks_its_memory() -> None:
    from bittrue import _native

    def attempt(steps: list[Any], *rows: Any) -> None:
        _native.Program(list(rows), steps, 256, 1, "portable", np.zeros(1, np.int64))

    def tensor(size: int, offset: int, ends: tuple[bool, bool] = (False, False), root: int = 0) -> tuple[Any, ...]:
        return ("s8", (size,), "arena", offset, -1, None, *ends, root)

    def step(inputs: list[int], outputs: list[int]) -> tuple[Any, ...]:
        return ("reshape", {}, {}, {}, inputs, outputs, None, True, 0, None)

    given, wanted = (True, False), (False, True)
    unwritten = "reads memory that nothing has written"
    for steps, first in (([], tensor(4, 0, given)), ([step([0], [1])], tensor(4, 0))):
        with pytest.raises(ValueError, match=unwritten):
            attempt(steps, first, tensor(8, 64, wanted, 1))

    # Two tensors in one place, the first of them read after the second was written.
    def overlapping(offset: int, root: int, last: list[int]) -> None:
        rows = tensor(8, 0, given), tensor(8, 64, root=1), tensor(8, offset, root=root), tensor(8, 192, wanted, 3)
        attempt([step([0], [1]), step([0], [2]), step(last, [3])], *rows)

    overlapping(128, 2, [1])
    overlapping(64, 2, [2])
    for offset in (64, 71, 57):
        with pytest.raises(ValueError, match="step 1 writes over a tensor that is still in use"):
            overlapping(offset, 2, [1])
    # Likewise in one tensor's memory, by a step that still reads it, and of inputs.
    with pytest.raises(ValueError, match="step 1 writes over"):
        overlapping(68, 1, [1])
    with pytest.raises(ValueError, match="step 0 writes over"):
        attempt([step([0], [1])], tensor(8, 0, given), tensor(8, 4, wanted, 1))
    with pytest.raises(ValueError, match="an input writes over"):
        attempt([], tensor(8, 0, given), tensor(8, 4, given, 1))
    # A joining step leaves its operand where it is.
    attempt([step([0], [1])], tensor(4, 0, given, 1), tensor(8, 0, wanted, 1))
    with pytest.raises(ValueError, match="one that does not exist"):
        attempt([], tensor(8, 0, (True, True), 5))


def test_the_documented_example_runs(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "plan_file.md").read_text()
    saved(tmp_path).rename(tmp_path / "m.plan")
    code = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    arrays = load_plan(tmp_path / "m.plan").steps[0].arrays
    assert f"multiplier {arrays['multiplier'].tolist()}\nshift {arrays['exponent'].tolist()}\n" in done.stdout


def test_json_has_the_members_of_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path)
    true = json.loads(members_of(path)["plan.json"])
    printed = CliRunner().invoke(cli, ["plan", str(path), "--json"])
    plan = json.loads(printed.output)
    assert plan.keys() == true.keys() - {"format", "version", "source"}
    assert plan["steps"][0].keys() == true["steps"][0].keys()
    assert plan["steps"][0]["arrays"]["multiplier"]["values"] == load_plan(path).steps[0].arrays["multiplier"].tolist()
    weights = next(t["value"] for t in plan["tensors"] if t["kind"] == "constant")
    assert weights.keys() == {"dtype", "shape", "sha256"}
    inspected = CliRunner().invoke(cli, ["inspect", str(path)])
    assert inspected.exit_code
    assert "bittrue plan" in f"{inspected.output}{inspected.exception}"
