"""The power of the tests: random single-token mutants of rules, operators and planning, and how many the tests notice.

    python tools/test_mutants.py                          # 20 mutants of each folder, seed 19; an hour or two
    python tools/test_mutants.py --seed 7 --count 5       # others, and fewer
    python tools/test_mutants.py --tree OTHER_CHECKOUT    # its tests

A first run, kept in build/mutants, says which tests run which functions: three cases of every test, two examples of
every property. A mutant meets the tests that run its function (its file, where only importing does), first short ones
that run few functions. What is mutated is a copy of the package.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import functools
import gc
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, settings

FOLDERS = ("rules", "operators", "plan")
WORDS = "+:- -:+ *:+ //:* %:// >>:<< <<:>> &:| |:& +=:-= -=:+= *=:+= <:<= <=:< >:>= >=:> ==:!= !=:== and:or or:and"
NAMES = "True:False False:True min:max max:min minimum:maximum maximum:minimum floor:ceil ceil:floor any:all all:any"
SWAPS = dict(pair.split(":") for pair in f"{WORDS} {NAMES}".split())
# Of properties, in the run that says which tests run which functions.
EXAMPLES = 2
# Estimated seconds of the tests that one pytest runs: most mutants fail in the first.
PORTIONS = (5, 60, 1e9)
LIMIT = "the time limit"


# ---- the mutants


@dataclass(frozen=True, order=True)
class Mutant:
    """One token of a file of the package, and what is written in its place."""

    file: str
    line: int
    column: int
    old: str
    new: str
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column} | `{self.old}` → `{self.new}`"

    def applied(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "".join(lines)


def mutants(text: str, file: str) -> list[list[Mutant]]:
    """What may be written for each token, without tokens that no run reads."""
    tree, tokens = ast.parse(text), list(tokenize.generate_tokens(io.StringIO(text).readline))
    unread: list[ast.AST | None] = []
    for node in ast.walk(tree):
        # Messages; what only types are for; what the interpreter checks.
        if isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            unread.append(node)
        elif isinstance(node, ast.FunctionDef):
            unread += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            unread += node.decorator_list
        elif isinstance(node, ast.arg | ast.AnnAssign):
            unread.append(node if isinstance(node, ast.arg) else node.annotation)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            unread.append(node)
    spans = [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in unread if n is not None]
    values = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    values |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    kinds = {
        f.name: ast.unparse(f.args) + ast.unparse(f.returns or f.args)
        for f in tree.body
        if isinstance(f, ast.FunctionDef)
    }
    functions = sorted((n.lineno, n.end_lineno) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    found = []
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        word, new = token.string, []
        if token.type == tokenize.NUMBER and word.isdecimal():
            new = [str(int(word) + 1), str(int(word) - 1)]
        elif word in values or after.string == "=":
            continue
        elif word in SWAPS and (word != "*" or before.string not in "([{,:"):
            new = [SWAPS[word]]
        elif word in kinds and before.string not in ("def", "."):
            new = [other for other, kind in kinds.items() if other != word and kind == kinds[word]]
        place = token.start[0], len(token.line[: token.start[1]].encode())
        if new and not any(start <= place < end for start, end in spans):
            around = [first for first, last in functions if first <= place[0] <= last]
            function = f"{file}:{around[-1] if around else 0}"
            found.append([Mutant(file, *token.start, word, other, function) for other in new])
    return found


def recording(text: str, file: str) -> str:
    """The same source; every function notes that it is called."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[-1] if len(node.body) == 1 else node.body[ast.get_docstring(node) is not None]
            line = lines[first.lineno - 1]
            note = f"__import__('bittrue._recorder')._recorder.seen.add('{file}:{node.lineno}')"
            end = "; " if line[: first.col_offset].strip() else f"\n{line[: first.col_offset]}"
            lines[first.lineno - 1] = f"{line[: first.col_offset]}{note}{end}{line[first.col_offset :]}"
    return "".join(lines) + f"__import__('bittrue._recorder')._recorder.seen.add('{file}:0')\n"


# ---- the plugin of the pytest that runs the tests


class Reaching:
    """Notes which test runs which functions. Each file starts anew: what another one has cached is computed again."""

    def __init__(self) -> None:
        self.file, self.seconds = "", defaultdict(float)
        self.reached: dict[str, list[str]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from bittrue._recorder import seen

        # What importing runs, and what is outside of functions: no test of its own.
        self.reached.update((function, []) for function in seen)
        cases = defaultdict(list)
        for item in items:
            cases[_test(item.nodeid)].append(item)
        # The first, the one in the middle and the last; of doctests all.
        items[:] = [
            item
            for test, those in cases.items()
            for item in (those if "doctest" in test else dict.fromkeys((those[0], those[len(those) // 2], those[-1])))
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        from bittrue._recorder import seen

        file = item.nodeid.partition("::")[0]
        if self.file != file:
            self.file = file
            for one in gc.get_objects():
                if isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith("bittrue"):
                    one.cache_clear()
        seen.clear()
        result = yield
        for function in seen:
            self.reached[function].append(_test(item.nodeid))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[_test(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        Path(os.environ["MUTANTS_REACH"]).write_text(json.dumps({"seconds": self.seconds, "reached": self.reached}))


class Killing:
    """Runs the tests that MUTANTS_TESTS lists, in that order, and says which failed."""

    def __init__(self) -> None:
        self.order = {test: i for i, test in enumerate(json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text()))}
        # A failure is enough; the smallest input that shows it is not looked for.
        settings.register_profile("power", settings.default, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("power")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        asked = [item for item in items if _test(item.nodeid) in self.order]
        items[:] = sorted(asked, key=lambda item: self.order[_test(item.nodeid)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            Path(os.environ["MUTANTS_FAILED"]).write_text(report.nodeid)


def _test(nodeid: str) -> str:
    return nodeid.partition("[")[0]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What makes this file a plugin."""
    config.pluginmanager.register(Killing() if "MUTANTS_TESTS" in os.environ else Reaching())


# ---- the campaign


class Campaign:
    """A checkout, a copy of its package, and what its tests reach."""

    def __init__(self, tree: Path) -> None:
        self.tree, self.work = tree.resolve(), tree.resolve() / "build" / "mutants"
        self.source, self.copy = self.tree / "src" / "bittrue", self.work / "copy" / "bittrue"
        self._renew()
        if not (self.work / "reach.json").exists():
            for path in (path for folder in FOLDERS for path in (self.copy / folder).rglob("*.py")):
                path.write_text(recording(path.read_text(encoding="utf-8"), str(path.relative_to(self.copy))))
            (self.copy / "_recorder.py").write_text("seen = set()\n")
            self.pytest("--examples", str(EXAMPLES), "tests", MUTANTS_REACH=str(self.work / "reach.json"))
            self._renew()
        reach = json.loads((self.work / "reach.json").read_text())
        self.seconds: dict[str, float] = reach["seconds"]
        self.reached = {function: set(tests) for function, tests in reach["reached"].items()}
        self.breadth = Counter(test for tests in self.reached.values() for test in tests)

    def _renew(self) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.source, self.copy)
        compileall.compile_dir(self.copy, quiet=1)

    def drawn(self, folder: str, seed: int, count: int) -> list[Mutant]:
        """Random mutants of the folder's lines that tests run."""
        places = [
            place
            for path in sorted((self.source / folder).rglob("*.py"))
            for place in mutants(path.read_text(encoding="utf-8"), str(path.relative_to(self.source)))
            if place[0].function in self.reached
        ]
        draw = random.Random(f"{seed} {folder}")
        return [draw.choice(place) for place in draw.sample(places, count)]

    def pytest(self, *arguments: str, limit: float | None = None, **variables: str) -> int:
        """Its exit code; -1 after the limit."""
        command = ["nice", sys.executable, *"-m pytest -p test_mutants -p no:cacheprovider -q -n 0".split(), *arguments]
        paths = [str(self.copy.parent), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        variables |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        with (self.work / "log.txt").open("w") as log:
            process = subprocess.Popen(
                command, cwd=self.tree, env=os.environ | variables, stdout=log, stderr=log, start_new_session=True
            )
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return -1

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that run its function, or else its file; first the short ones that run few functions."""
        found = self.reached.get(mutant.function) or set().union(
            *(tests for function, tests in self.reached.items() if function.startswith(f"{mutant.file}:"))
        )
        return sorted(found, key=lambda test: (self.breadth[test] * self.seconds[test], test))

    def meet(self, mutant: Mutant, limit: float) -> tuple[str, float]:
        """Which test failed first ("": none), and the seconds that it took."""
        start, path, failed = time.perf_counter(), self.copy / mutant.file, self.work / "failed.txt"
        path.write_text(mutant.applied((self.source / mutant.file).read_text()))
        try:
            waiting = self.tests(mutant)
            for portion in PORTIONS:
                now: list[str] = []
                while waiting and sum(self.seconds[test] for test in now) < portion:
                    now.append(waiting.pop(0))
                failed.unlink(missing_ok=True)
                (self.work / "tests.json").write_text(json.dumps(now))
                files = sorted({test.partition("::")[0] for test in now})
                left = limit - (time.perf_counter() - start)
                variables = {"MUTANTS_TESTS": str(self.work / "tests.json"), "MUTANTS_FAILED": str(failed)}
                code = self.pytest("-x", *files, limit=left, **variables) if now else 0
                if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                    without_test = LIMIT if code == -1 else "importing it"
                    return failed.read_text() if failed.exists() else without_test, time.perf_counter() - start
            return "", time.perf_counter() - start
        finally:
            shutil.copy2(self.source / mutant.file, path)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1], help="the checkout (default: this one)")
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--count", type=int, default=20, help="mutants of each folder (default: 20)")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a mutant (default: 600)")
    asked = parser.parse_args()
    campaign, killed, undecided = Campaign(asked.tree), 0, 0
    print("| mutant | written | seconds | killed by |\n|---|---|---|---|")
    mutants = [one for folder in FOLDERS for one in campaign.drawn(folder, asked.seed, asked.count)]
    for mutant in mutants:
        test, seconds = campaign.meet(mutant, asked.limit)
        undecided += test == LIMIT
        killed += test not in ("", LIMIT)
        print(f"| {mutant} | {seconds:.0f} | {test or '-'} |", flush=True)
    print(f"{killed} of {len(mutants)} killed, {undecided} undecided")
    return 0


if __name__ == "__main__":
    sys.exit(main())
