"""The house's arrows: who may import whom, where runtimes may be named, and who writes files."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from bittrue.importers import caffe2_operators, caffe_layers, mxnet_operators, onnx_operators
from bittrue.importers.tflite_schema import STEMS
from support.shared import REPOSITORY

PACKAGE = REPOSITORY / "src" / "bittrue"
# Left to right: a folder may import itself and what stands left of it, and all may import what `ANYWHERE` names.
# `errors` imports nothing of ours, `files` and `names` nothing but errors; the modules beside the folders form the
# public API, which the command line alone imports.
ANYWHERE = {"visible", "records", "deferred", "uncollected"}
ORDER = ("errors", "files", "names", "graph", "arithmetic", "rules", "operators", "numerics", "importers")
ORDER += (
    "rewrites",
    "plan",
    "runtime",
    "ports",
    "api",
    "runners",
    "report",
    "check",
    "explain",
    "compare",
    "evaluation",
    "measure",
    "conformance",
)
# What looks at whole models from outside opens them as users do.
OUTSIDE = {"importers", "quantization", *ORDER}
ALLOWED_EXCEPTIONS = {
    # importers build graphs and know nothing of operators, rules or numerics
    "importers": {"errors", "files", "graph", "importers"},
    "graph": {"graph", "names"},
    # recorded cases become model files, or graphs that the public builder makes; results say which version made
    # them, and the embedded model is among those that devices run
    "conformance": {"__version__", "qnn", "samples", *OUTSIDE},
    **{
        # results say which version made them
        folder: {"__version__", "quantization", *OUTSIDE.intersection({"importers", *ORDER[: ORDER.index(folder) + 1]})}
        for folder in ("runners", "check", "explain", "compare", "evaluation", "measure")
    },
    # pages are made of plain data
    "report": {"errors", "files", "names", "report"},
    "rewrites": {"errors", "graph", "operators", "rewrites"},
    "arithmetic": {"arithmetic"},
    "rules": {"arithmetic", "rules"},
    # plan files say which version wrote them
    "plan": {"__version__", *ORDER[: ORDER.index("plan") + 1]} - {"importers"},
    # the C++ module
    "runtime": {"_native", *ORDER} - {"importers"},
}
# Inside conformance, likewise; what stands beside these folders judges devices, and imports none of `BESIDE`.
CONFORMANCE = ("suite", "expected", "recorded", "formats", "devices")
BESIDE = {"mutation": {"suite", "expected"}, "identification": {*CONFORMANCE, "causes", "properties", "result"}}
NAMES = re.compile(r"litert|tflite|xnnpack|onnx|caffe|mxnet|openvino|tvm", re.IGNORECASE)
QUIET = ("arithmetic", "rules", "operators", "runtime", "plan", "graph", "rewrites")
# Rooms inside of quiet ones that say in their names whose way they follow.
NAMED = ("rewrites/onnxruntime_optimizer",)
# Says what a node keeps of its file.
EXAMPLES_OF_NAMES = {("graph.py", 'source: what the file calls it, for example ``"CONV_2D"``.')}


def python_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call | ast.Attribute]:
    """Of a file, those that tests look at."""
    looked_at = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    return [node for node in ast.walk(parsed(path)) if isinstance(node, looked_at)]


def imported(path: Path) -> set[str]:
    """Top-level folders or modules of bittrue that a file imports."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    here = list(parts[:-1])
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bittrue.")}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                if node.module and node.module.startswith("bittrue"):
                    found |= {node.module.split(".")[1]} if "." in node.module else {a.name for a in node.names}
                continue
            base = here[: len(here) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            found |= {target[0]} if target else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("folder", [name for name in ORDER[1:] if name != "api"])
def test_arrows(folder: str) -> None:
    allowed = ALLOWED_EXCEPTIONS.get(folder) or set(ORDER[: ORDER.index(folder) + 1]) - {"importers"} | {folder}
    for path in python_files(PACKAGE / folder):
        strangers = imported(path) - allowed - ANYWHERE
        assert not strangers, f"{path.relative_to(REPOSITORY)} imports {sorted(strangers)}, allowed: {sorted(allowed)}"


def conformance_arrows() -> dict[str, set[str]]:
    """Every folder or module of conformance to those that it imports."""
    root = PACKAGE / "conformance"
    found: dict[str, set[str]] = {}
    for path in python_files(root):
        parts = path.relative_to(root).with_suffix("").parts
        targets = found.setdefault(parts[0], set())
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(parts):
                target = [*parts[: len(parts) - node.level], *(node.module or "").split(".")]
                names = [name for name in target if name]
                targets |= {names[0]} if names else {alias.name for alias in node.names}
        targets -= {parts[0]}
    return found


def test_arrows_inside_conformance() -> None:
    arrows = conformance_arrows()
    assert {*CONFORMANCE, *BESIDE} <= arrows.keys()
    for number, folder in enumerate(CONFORMANCE):
        assert arrows[folder] <= {*CONFORMANCE[:number]}, folder
    for folder, allowed in BESIDE.items():
        assert arrows[folder] <= allowed, folder
    for name, targets in arrows.items():
        assert not targets & {"mutation", "identification", "certificate"}, name
    # Raises CycleError, which names them.
    list(TopologicalSorter(arrows).static_order())


_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


@cache
def imported_modules() -> dict[str, set[str]]:
    """Every module of bittrue to those that it imports, inside of functions too, but not for annotations alone."""
    names = {}
    for path in python_files(PACKAGE):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    arrows: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        todo: list[ast.AST] = [parsed(path)]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                todo += node.orelse
                continue
            # Imports are statements: expressions hold none.
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, _STATEMENTS)]
            if isinstance(node, ast.ImportFrom) and node.level:
                base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
                for alias in node.names:
                    parts = [part for part in base if part]
                    full = ".".join([*parts, alias.name])
                    arrows[name].add(full if full in names else ".".join(parts))
    return {name: targets & names.keys() - {name} for name, targets in arrows.items()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor once their functions run: such imports are arrows like any other."""
    # Raises CycleError, which names them.
    list(TopologicalSorter(imported_modules()).static_order())


def test_themes_of_operators() -> None:
    """All stand on `core`, which knows none of them; who admits nodes stands above all. C++ has the same themes."""
    operators = {name: targets for name, targets in imported_modules().items() if name.startswith("operators.")}
    themes = {name.split(".")[1] for name in operators}
    for name, targets in operators.items():
        theme = name.split(".")[1]
        reached = {target.split(".")[1] for target in targets if target.startswith("operators.")} - {theme}
        assert theme != "core" or not reached, f"{name} imports {reached}"
        assert "admission" not in reached, f"{name} imports what stands above it"
    native = {path.name for path in (REPOSITORY / "native" / "operators").iterdir()}
    assert native <= themes
    assert "core" in native


def test_oracle_imports_nothing_of_ours() -> None:
    assert imported(PACKAGE / "arithmetic" / "exact.py") == set()
    for name in ANYWHERE:
        assert imported(PACKAGE / f"{name}.py") == set()


def test_nothing_is_printed_but_through_the_sink() -> None:
    """`cli/plain.py` and `cli/terminal.py` make text visible; nothing else writes where a terminal may listen."""
    for path in python_files(PACKAGE):
        if path.parent.name == "cli" and path.name in ("plain.py", "terminal.py"):
            continue
        text = path.read_text()
        if not re.search(r"print|Console|echo|std(out|err)|TextColumn", text):
            continue
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            writes = re.search(r"std(out|err)__?\.(write|buffer)|\bstd(out|err)\.(write|buffer)", called)
            if called in ("print", "Console", "click.echo", "click.secho", "rich.print") or writes:
                raise AssertionError(
                    f"{path.relative_to(REPOSITORY)}:{node.lineno} calls {called}: use plain or terminal"
                )
            if called.endswith("TextColumn") and not any(word.arg == "markup" for word in node.keywords):
                raise AssertionError(f"{path.relative_to(REPOSITORY)}:{node.lineno}: a TextColumn reads markup")


def quiet_files(folder: str) -> Iterator[Path]:
    for path in python_files(PACKAGE / folder):
        if not str(path.relative_to(PACKAGE)).startswith(NAMED):
            yield path


def _without_sources(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines but those that cite a page or a file."""
    for number, line in lines:
        if not re.search(r"source:|facts/|https?://|\w\.(cc|h|py)\b", line, re.IGNORECASE):
            yield number, line


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of comments and texts in a file of Python, of comments in one of C++; none where no name stands at all."""
    if not _names_a_node(path.read_text()):
        return
    if path.suffix == ".py":
        with path.open() as stream:
            for token in tokenize.generate_tokens(stream.readline):
                if token.type in (tokenize.COMMENT, tokenize.STRING):
                    yield from enumerate(token.string.splitlines(), token.start[0])
    else:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield number, line.partition("//")[2]


@cache
def _node_names() -> frozenset[str]:
    """Names of nodes in files that are no English words (QLinearAdd, CONV_2D)."""
    mapped = (onnx_operators, caffe_layers, caffe2_operators, mxnet_operators)
    names = {key if isinstance(key, str) else key[-1] for module in mapped for key in module._table()}
    odd = {name for name in {*names, *STEMS} if re.search(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Z]_[A-Z0-9]", name)}
    assert {"QLinearAdd", "CONV_2D", "MatMulNBits", "TopK", "Int8Conv"} <= odd
    assert all(re.fullmatch(r"\w+", name) for name in odd)
    return frozenset(odd)


def _names_a_node(text: str) -> bool:
    """Whether one of `_node_names` stands there as a word, or what counts their versions."""
    words = re.findall(r"\w+", text)
    return not _node_names().isdisjoint(words) or bool(
        re.search(r"(?<!\w)((Depthwise)?Conv[123]D|ORT|[Oo]psets?|operator sets?)(?!\w)", text)
    )


@pytest.mark.parametrize("folder", QUIET)
def test_runtimes_are_not_named_below_numerics(folder: str) -> None:
    for path in quiet_files(folder):
        for number, line in _without_sources(enumerate(path.read_text().splitlines(), 1)):
            if NAMES.search(line):
                raise AssertionError(f"{path.relative_to(REPOSITORY)}:{number} names a runtime: {line.strip()}")


@pytest.mark.parametrize("folder", [*QUIET, "native"])
def test_nodes_of_files_are_not_named_below_numerics(folder: str) -> None:
    files = sorted((REPOSITORY / folder).rglob("*.[hc]*")) if folder == "native" else quiet_files(folder)
    for path in files:
        for number, line in _without_sources(_said(path)):
            if _names_a_node(line) and (path.name, line.strip()) not in EXAMPLES_OF_NAMES:
                raise AssertionError(f"{path.relative_to(REPOSITORY)}:{number} names a node of a file: {line.strip()}")


def test_runtimes_are_not_named_in_native_code() -> None:
    for path in sorted((REPOSITORY / "native").rglob("*.[hc]*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not NAMES.search(line), f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"


# What writes, or maps what others may write, but in `files`; others write into streams, or what a child process says.
WRITES = {"write_text", "write_bytes", "tofile", "save", "savez", "savez_compressed", "ZipFile", "dump", "rename"}
WRITES |= {"memmap", "mmap", "copy2", "copyfile", "copytree", "truncate", "symlink_to", "hardlink_to"}
STREAMS = {
    # Into its standard output.
    "importers/hdf5_process.py": {"savez"},
    "plan/saving.py": {"ZipFile", "save"},
    # The null device, and the report of an internal error.
    "cli/endings.py": {"O_WRONLY", "open"},
    "cli/demo.py": {"save"},
    # Plan.save, which goes through it.
    "cli/plan.py": {"save"},
    # The null device.
    "evaluation/cluster.py": {"O_WRONLY"},
    # Into memory.
    "evaluation/tasks/segmentation.py": {"save"},
    "evaluation/thumbnails.py": {"save"},
    "runtime/trace.py": {"save"},
    "compare/archive.py": {"ZipFile", "open"},
    "conformance/formats/exporter.py": {"ZipFile"},
    "runners/base.py": {"O_WRONLY"},
    "runners/process.py": {"O_CREAT", "O_WRONLY"},
}


def writes(path: Path) -> set[str]:
    """Calls that write or map files, by their names."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and node.attr in ("O_CREAT", "O_RDWR", "O_WRONLY"):
            found.add(node.attr)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}
        if name in ("open", "ZipFile"):
            if any(re.fullmatch(r"(?=.*[wax+])[rwaxbt+]{1,3}", mode) for mode in modes):
                found.add(name)
        # Of modules and paths: a plain name is a function of `files`.
        elif isinstance(node.func, ast.Attribute) and name in WRITES:
            found.add(name)
        if any(keyword.arg == "mmap_mode" for keyword in node.keywords):
            found.add("mmap_mode")
    return found


def test_files_are_written_by_one_module() -> None:
    for path in python_files(PACKAGE):
        name = str(path.relative_to(PACKAGE))
        if name != "files.py":
            strangers = writes(path) - STREAMS.get(name, set())
            assert not strangers, f"{name}: {sorted(strangers)}; bittrue.files writes whole files or none"
    assert writes(PACKAGE / "files.py") >= {"O_CREAT", "O_WRONLY", "truncate", "rename"}
