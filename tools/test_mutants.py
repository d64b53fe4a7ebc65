"""The power of the tests: random single-token mutants of rules, operators and planning, and how many the tests notice.

    python tools/test_mutants.py                          # 20 mutants of each folder, seed 19
    python tools/test_mutants.py --seed 7 --count 5       # others, and fewer
    python tools/test_mutants.py --of plan/bounds.py      # of these, those of whose line this is a part
    python tools/test_mutants.py --examples 41            # more new examples per property, and all that runs in turns
    python tools/test_mutants.py --tree OTHER_CHECKOUT    # its tests

A first run of the whole suite, kept in build/mutants/reach by folder of tests, says which case of which test
executes which statements, and how long it takes. A mutant meets the cases that execute its statement (its file, where
only importing does), first short ones that execute little, then the others of their files, until one fails or the limit
is reached. All seconds are those of processors. What is mutated is a copy of the package.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import functools
import gc
import io
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
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
# The seed of properties' new examples, and of the turns: the cases of the first run are met.
EXAMPLES = 19
# Estimated seconds of the cases that one pytest runs: most mutants fail in the first.
PORTIONS = (4, 40, 1e9)
ENDLESS = "no end"


# ---- the mutants


@dataclass(frozen=True, order=True)
class Mutant:
    """One token of a file of the package, and what is written in its place."""

    file: str
    line: int
    column: int
    old: str
    new: str
    statement: str

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
    around = statements(text)
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
            line, column = max((begin for begin, end in around if begin <= place < end), default=(0, 0))
            statement = f"{file}:{line}:{column}" if line else ""
            found.append([Mutant(file, *token.start, word, other, statement) for other in new])
    return found


def statements(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the statements of functions begin and end, without those that nothing can be written before."""
    found, lines = set(), text.splitlines()
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            for suite in (getattr(node, name, ()) for name in ("body", "orelse", "finalbody")):
                for one in suite if isinstance(suite, list) else ():
                    decorators = getattr(one, "decorator_list", ())
                    first = min((one, *decorators), key=lambda part: part.lineno)
                    begin = first.lineno, first.col_offset - bool(decorators)
                    words = lines[begin[0] - 1].encode()[begin[1] :]
                    if isinstance(one, ast.stmt) and not words.startswith((b"elif", b'"""')):
                        found.add((begin, (one.end_lineno or 0, one.end_col_offset or 0)))
    return sorted(found)


def recording(text: str, file: str) -> str:
    """The same source; every statement of a function notes that it is executed."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for (number, column), _ in reversed(statements(text)):
        before, behind = lines[number - 1][:column], lines[number - 1][column:]
        end = b"; " if before.strip() else b"\n" + before
        lines[number - 1] = before + f"_executed('{file}:{number}:{column}')".encode() + end + behind
    # A docstring and imports from the future come first.
    body = ast.parse(text).body
    first = next((n for n in body if getattr(n, "module", "") != "__future__" and not isinstance(n, ast.Expr)), None)
    place = first.lineno - 1 - len(getattr(first, "decorator_list", ())) if first else len(lines)
    lines.insert(place, b"from bittrue._recorder import executed as _executed\n")
    return b"".join(lines).decode()


# ---- the plugin of the pytest that runs the tests


class Reaching:
    """Notes which case executes which statements, and its seconds. Each file starts anew: what another has cached is
    computed again.
    """

    def __init__(self) -> None:
        self.file, self.failed = "", set[str]()
        self.cases: dict[str, tuple[float, int]] = {}
        # By statement, a bit for each case.
        self.reached: dict[str, int] = defaultdict(int)

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
        start = sum(os.times()[:4])
        result = yield
        for statement in seen:
            self.reached[statement] |= 1 << len(self.cases)
        self.cases[item.nodeid] = sum(os.times()[:4]) - start, len(seen)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        reached = {statement: f"{cases:x}" for statement, cases in self.reached.items()}
        found = {"cases": self.cases, "failed": [*self.failed], "reached": reached}
        Path(os.environ["MUTANTS_REACH"]).write_text(json.dumps(found))


class Killing:
    """Runs the cases that MUTANTS_CASES lists, in that order, and says which failed."""

    def __init__(self) -> None:
        self.order = {case: i for i, case in enumerate(json.loads(Path(os.environ["MUTANTS_CASES"]).read_text()))}
        # A failure is enough; the smallest input that shows it is not looked for.
        settings.register_profile("power", settings.default, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("power")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        # With more examples, what runs in turns does so with all its parameters.
        named = _test if config.option.examples else str
        asked = [item for item in items if named(item.nodeid) in self.order]
        items[:] = sorted(asked, key=lambda item: self.order[named(item.nodeid)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            Path(os.environ["MUTANTS_FAILED"]).write_text(report.nodeid)


def _test(case: str) -> str:
    return case.partition("[")[0]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What makes this file a plugin."""
    config.pluginmanager.register(Killing() if "MUTANTS_CASES" in os.environ else Reaching())


# ---- the campaign


class Campaign:
    """A checkout, a copy of its package, and what its tests reach."""

    def __init__(self, tree: Path, examples: int | None, limit: float) -> None:
        self.tree, self.work = tree.resolve(), tree.resolve() / "build" / "mutants"
        self.source, self.copy = self.tree / "src" / "bittrue", self.work / "copy" / "bittrue"
        self.examples, self.limit = examples, limit
        self._renew()
        tests = self.tree / "tests"
        names = sorted({path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")})
        kept = {name: self.work / "reach" / f"{name}.json" for name in names}
        missing = [name for name in names if not kept[name].exists()]
        if missing:
            for path in (path for folder in FOLDERS for path in (self.copy / folder).rglob("*.py")):
                path.write_text(recording(path.read_text(encoding="utf-8"), str(path.relative_to(self.copy))))
            (self.copy / "_recorder.py").write_text("seen = set()\nexecuted = seen.add\n")
            kept[missing[0]].parent.mkdir(exist_ok=True)
            for name in missing:
                self.pytest(f"tests/{name}", MUTANTS_REACH=str(kept[name]))
            self._renew()
        self.reaches = [json.loads(path.read_text()) for path in kept.values()]
        # What fails without a mutant notices none.
        known = {case: found for reach in self.reaches for case, found in reach["cases"].items()}
        self.known = {
            case: known[case] for case in known.keys() - {case for reach in self.reaches for case in reach["failed"]}
        }

    def _renew(self) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.source, self.copy)
        compileall.compile_dir(self.copy, quiet=1)

    def drawn(self, folder: str, seed: int, count: int) -> list[Mutant]:
        """Random mutants of the folder's files."""
        places = [
            place
            for path in sorted((self.source / folder).rglob("*.py"))
            for place in mutants(path.read_text(encoding="utf-8"), str(path.relative_to(self.source)))
        ]
        draw = random.Random(f"{seed} {folder}")
        return [draw.choice(place) for place in draw.sample(places, count)]

    def pytest(self, *arguments: str, limit: int = resource.RLIM_INFINITY, **variables: str) -> int:
        """Its exit code; below 0 after the limit, in seconds of one process."""
        command = [
            sys.executable,
            *f"-m pytest -p test_mutants -p no:cacheprovider -q -n 0 --seed {EXAMPLES}".split(),
            *arguments,
        ]
        paths = [str(self.copy.parent), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        variables |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        with (self.work / "log.txt").open("w") as log:
            return subprocess.run(
                command,
                cwd=self.tree,
                env=os.environ | variables,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
            ).returncode

    def cases(self, mutant: Mutant) -> list[str]:
        """Those that execute its statement, or else its file, then the others of their files. First the short ones that
        execute little, and the first ones of many tests.
        """
        found = self._executing(mutant.statement) or self._executing(f"{mutant.file}:")
        files, met = {case.partition("::")[0] for case in found}, Counter[str]()
        costs = {case: math.prod(self.known[case]) for case in self.known if case.partition("::")[0] in files}
        keys = {}
        for case in sorted(costs, key=lambda case: (costs[case], case)):
            met[_test(case)] += 1
            keys[case] = case not in found, costs[case] * met[_test(case)], case
        return sorted(keys, key=keys.__getitem__)

    def _executing(self, place: str) -> set[str]:
        """Cases that execute a statement, or one of a file."""
        found = set[str]()
        for reach in self.reaches:
            bits = 0
            for statement, one in reach["reached"].items():
                if statement == place or (place.endswith(":") and statement.startswith(place)):
                    bits |= int(one, 16)
            found.update(case for i, case in enumerate(reach["cases"]) if bits >> i & 1 and case in self.known)
        return found

    def meet(self, mutant: Mutant) -> tuple[str, float, int]:
        """Which case failed first ("": none), the seconds that this took, and how many cases the limit has left out."""
        path, failed, spent = self.copy / mutant.file, self.work / "failed.txt", 0.0
        waiting = self.cases(mutant)
        path.write_text(mutant.applied((self.source / mutant.file).read_text()))
        start = sum(os.times()[:4])
        try:
            for portion in PORTIONS:
                now, planned = list[str](), 0.0
                while waiting and planned < portion and spent + planned < self.limit:
                    planned += self.known[waiting[0]][0]
                    now.append(waiting.pop(0))
                spent += planned
                if not now:
                    break
                more = () if self.examples is None else ("--examples", str(self.examples))
                asked = list(dict.fromkeys(map(_test, now))) if more else now
                (self.work / "cases.json").write_text(json.dumps(asked))
                failed.unlink(missing_ok=True)
                # Whole tests by name: of these, conftest chooses no turns.
                names = asked if more else sorted({case.partition("::")[0] for case in now})
                code = self.pytest(
                    *("-x", *more, *names),
                    limit=int(60 + 4 * planned * (20 if more else 1)),
                    MUTANTS_CASES=str(self.work / "cases.json"),
                    MUTANTS_FAILED=str(failed),
                )
                if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                    without_case = ENDLESS if code < 0 else "importing it"
                    told = failed.read_text() if failed.exists() else without_case
                    return told, sum(os.times()[:4]) - start, 0
            return "", sum(os.times()[:4]) - start, len(waiting)
        finally:
            shutil.copy2(self.source / mutant.file, path)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1], help="the checkout (default: this one)")
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--count", type=int, default=20, help="mutants of each folder (default: 20)")
    parser.add_argument(
        "--of", metavar="TEXT", action="append", help="only mutants of whose line in the table it is a part"
    )
    parser.add_argument("--examples", type=int, metavar="N", help="as pytest's, and all that runs in turns")
    parser.add_argument("--limit", type=float, default=120, help="seconds of cases that a mutant meets (default: 120)")
    asked = parser.parse_args()
    campaign, killed, endless = Campaign(asked.tree, asked.examples, asked.limit), 0, 0
    drawn = [one for folder in FOLDERS for one in campaign.drawn(folder, asked.seed, asked.count)]
    drawn = [one for one in drawn if not asked.of or any(text in str(one) for text in asked.of)]
    print("| mutant | written | seconds | noticed by |\n|---|---|---|---|")
    for mutant in drawn:
        case, seconds, left = campaign.meet(mutant)
        endless += case == ENDLESS
        killed += case not in ("", ENDLESS)
        print(f"| {mutant} | {seconds:.0f} | {case or (f'- ({left} cases left out)' if left else '-')} |", flush=True)
    print(f"{killed} of {len(drawn)} noticed, {endless} without an end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
