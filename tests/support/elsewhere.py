"""What the runtime of another processor answers to recorded cases, and what that says of our rows.

    BITTRUE_RECORD=FOLDER BITTRUE_RECORD_CASES=20 pytest -n 0 --numerics xnnpack tests/operators     # here
    BITTRUE_RECORD=FOLDER BITTRUE_RECORD_CASES=20 pytest -n 0 tests/onnx_operators
    cd tests && python -m support.elsewhere suite onnx FOLDER/suite.npz
    cd tests && ../tools/python_aarch64.sh -m support.elsewhere answer FOLDER/xnnpack.npz ARM.npz BUILTIN
    cd tests && ../tools/python_aarch64.sh -m support.elsewhere answer FOLDER/onnxruntime.npz ARM.npz onnxruntime
    cd tests && python -m support.elsewhere judge xnnpack ARM.npz ... --keep data/recorded/xnnpack@aarch64.npz
    cd tests && python -m support.elsewhere keep xnnpack-avx2 FOLDER/xnnpack.npz data/recorded/xnnpack-avx2.npz   # here

`judge` writes src/bittrue/numerics/aarch64.json: for every row of a numerics, how many models took it that gave our
bytes there, how many that gave the same but for the bits of NaNs, and how many that differ; rows that no answer is
about keep their counts. It keeps equal cases of every row as vectors, those first that are vectors already. `keep` does
so for a processor that runs the tests itself, with rows that are not those of the usual one.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from . import recorded
from .oracle import Answer

TABLE = Path(__file__).resolve().parents[2] / "src" / "bittrue" / "numerics" / "aarch64.json"
# Emulated ones take a minute to begin.
_SECONDS = 180
# Models of a row alone that gave equal bytes, from which on a difference in a larger model is laid to its other rows.
_PROVEN = 8
# Vectors are kept of one row per operator and type of the result, of these types and of at most so many bytes; of
# more if they tell a row of that processor.
_TYPES, _LARGEST, _LARGEST_THAT_TELLS = ("int8", "uint8", "int16", "float32"), 2500, 8000


def _serve(pipe: Any, resolver: str) -> None:
    """As the oracle does."""
    from . import oracle

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    oracle._answer(pipe, resolver)


def _serve_onnx(pipe: Any, _: str) -> None:
    """Answers with the outputs, by the indices that bittrue gives them."""
    from .onnx_models import indexed, run_runtime

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        content, feeds, _ = pipe.recv()
        given = indexed(content, run_runtime(content, feeds[-1]))
        pipe.send(("values", given.values) if given.ran else ("refused", given.refused))


def suite(name: str, target: Path) -> None:
    """The cases of a conformance suite, of its own types, without answers."""
    from bittrue.conformance.suite import find_suite

    found = recorded.Recorder()
    for case in find_suite(name).cases():
        if not case.rejects:
            graph = case.model.graph
            feed = [case.inputs[graph.tensors[i].name] for i in graph.inputs]
            found.cases.append(recorded.Case(case.identity, case.content, [feed], Answer(refused="not asked")))
    found.write(target)


def answer(source: Path, target: Path, resolver: str) -> None:
    """The cases of a file again, with what the runtime installed here answers."""
    import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it

    serve = _serve_onnx if resolver == "onnxruntime" else _serve
    # An emulated process that was forked cannot start threads.
    context = multiprocessing.get_context("spawn")
    worker, found = None, recorded.Recorder()
    for case in recorded.read(source):
        if worker is None:
            pipe, child = context.Pipe()
            worker = context.Process(target=serve, args=(child, resolver), daemon=True)
            worker.start()
            child.close()
        try:
            pipe.send((case.content, case.feeds, list(case.answer.values)))
            if not pipe.poll(_SECONDS):
                raise EOFError
            kind, payload = pipe.recv()
            given = Answer(values=payload) if kind == "values" else Answer(refused=payload)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            worker.kill()
            worker.join()
            worker, given = None, Answer(refused="aborted")
        given.values = {key: value for key, value in given.values.items() if value is not None}
        found.cases.append(dataclasses.replace(case, answer=given))
    found.write(target)


def judge(name: str, answers: list[Path], keep: Path | None) -> None:
    """Counts by row, into the table; equal cases into `keep`, and for rows of that processor one that tells them.

    Cases that `keep` has already are not counted: they are those that were equal.
    """
    from bittrue.numerics import find
    from bittrue.numerics.processors import identity

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    kept, seen, differing = recorded.Recorder(), set[tuple[str, np.dtype]](), list[set[str]]()
    equal_alone: Counter[str] = Counter()
    table, base = find(name), find(name.removesuffix("@aarch64"))
    own = [row for row in table.rows if row not in base.rows]
    ruled = {identity(row) for row in table.rows if row.rules}
    import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it

    vectors = list(recorded.read(keep)) if keep and keep.exists() else []
    for number, case in enumerate(itertools.chain(vectors, *map(recorded.read, answers))):
        if not case.answer.ran:
            continue
        rows, found = outcome(table, case)
        if not rows:
            continue
        taken = {identity(row) for row in rows}
        if number < len(vectors):
            pass
        elif found == "differ":
            differing.append(taken)
        else:
            for row in taken:
                counts[row][found] += 1
            equal_alone.update(taken if len(taken) == 1 else ())
        small = len(case.content) + sum(a.nbytes for a in (*case.answer.values.values(), *itertools.chain(*case.feeds)))
        kind = next(iter(case.answer.values.values())).dtype
        kinds = {(row.operator, kind) for row in rows if kind in _TYPES}
        telling = {(identity(row), kind) for row in rows if row in own}
        if found != "equal" or small >= _LARGEST_THAT_TELLS:
            continue
        tells = not telling <= seen and outcome(base, case)[1] in ("differ", "nan")
        if small >= _LARGEST and not tells and number >= len(vectors):
            continue
        if tells or not kinds <= seen or number < len(vectors):
            seen |= (telling if tells else set()) | kinds
            kept.cases.append(case)
    # Of several rows those are to blame that differ in a model of their own, else those that have few equal ones, with
    # rules if there are such: movement and comparisons have none.
    alone = {row for rows in differing if len(rows) == 1 for row in rows}
    proven = {row for row, count in equal_alone.items() if count >= _PROVEN} - alone
    for together in differing:
        for one in together & alone or (together - proven) & ruled or together - proven or together:
            counts[one]["differ"] += 1
    everything = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    # What was counted before of rows that are still there stays, where fewer models or none were answered now, unless
    # one of the row alone differs.
    known = {identity(row) for row in table.rows}
    for row, found in everything.get(name, {}).items():
        if row in known and (
            row not in counts or (not ("differ" in found or row in alone) and sum(found.values()) > counts[row].total())
        ):
            counts[row] = Counter(found)
    everything[name] = {row: dict(sorted(found.items())) for row, found in sorted(counts.items())}
    TABLE.write_text(json.dumps(everything, indent=0, sort_keys=True) + "\n")
    if keep:
        kept.write(keep)
    print(name, len(counts), "rows", sum((Counter(c) for c in counts.values()), Counter()), len(kept.cases), "kept")


def base_of(name: str) -> str:
    """The numerics of the same runtime on the usual processor."""
    return name.removesuffix("@aarch64").removesuffix("-avx2")


def keep(name: str, source: Path, target: Path) -> None:
    """Equal cases of rows that the numerics has for this processor alone, most of them such as tell these rows."""
    import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it

    from bittrue.numerics import find
    from bittrue.numerics.processors import identity

    table, base = find(name), find(base_of(name))
    own = [row for row in table.rows if row not in base.rows]
    kept, counts = recorded.Recorder(), Counter[tuple[str, bool]]()
    for case in recorded.read(source):
        rows, found = outcome(table, case)
        taken = [row for row in rows if row in own]
        if not case.answer.ran or found != "equal" or not taken:
            continue
        tells = outcome(base, case)[1] != "equal"
        kinds = {(identity(row), tells) for row in taken}
        if all(counts[kind] >= (2 * _PROVEN if tells else _PROVEN // 2) for kind in kinds):
            continue
        counts.update(kinds)
        kept.cases.append(case)
    kept.write(target)
    for (row, tells), count in sorted(counts.items()):
        print(f"{count:3} {'tell it' if tells else 'are alike'}: {row[:110]}")


def outcome(table: Any, case: recorded.Case) -> tuple[list[Any], str]:
    """The rows that a model takes, and how its answer agrees: "equal", "nan", "differ"; no rows where ours refuses,
    where nothing was answered, or where nodes are known to be others there, whatever their rows say.
    """
    import bittrue
    from bittrue.graph import UNREPRODUCED
    from bittrue.plan import planner

    rows: list[Any] = []
    choose = planner._choose
    unlike = False

    def chosen(call: Any, *about: Any) -> Any:
        nonlocal unlike
        unlike = unlike or UNREPRODUCED in call.node.attributes
        rows.append(choose(call, *about))
        return rows[-1]

    planner._choose = chosen
    try:
        model = bittrue.load(case.content)
        graph = model.graph
        shapes = {graph.tensors[i].name: f.shape for i, f in zip(graph.inputs, case.feeds[0], strict=True)}
        session = model.prepare(table, shapes=shapes)
        for feed in case.feeds:
            traced = session.trace(*feed)
    except (bittrue.BittrueError, ValueError):
        return [], ""
    finally:
        planner._choose = choose
    if unlike or not case.answer.values:
        return [], ""
    outcomes = {"equal"}
    for key, value in case.answer.values.items():
        if isinstance(key, tuple) or graph.tensors[key].name not in traced:
            continue
        ours = traced[graph.tensors[key].name]
        if ours.tobytes() != value.tobytes():
            # 0 and -0 are two numbers here.
            same = (
                (value.dtype.kind == "f" or value.dtype.name == "bfloat16")
                and np.array_equal(ours, value, equal_nan=True)
                and np.array_equal(np.signbit(ours) & (ours == 0), np.signbit(value) & (value == 0))
            )
            outcomes.add("nan" if same else "differ")
    return rows, "differ" if "differ" in outcomes else "nan" if "nan" in outcomes else "equal"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    answering = commands.add_parser("answer")
    answering.add_argument("source", type=Path)
    answering.add_argument("target", type=Path)
    answering.add_argument("resolver")
    models = commands.add_parser("suite")
    models.add_argument("name")
    models.add_argument("target", type=Path)
    judging = commands.add_parser("judge")
    judging.add_argument("numerics")
    judging.add_argument("answers", type=Path, nargs="+")
    judging.add_argument("--keep", type=Path)
    keeping = commands.add_parser("keep")
    keeping.add_argument("numerics")
    keeping.add_argument("source", type=Path)
    keeping.add_argument("target", type=Path)
    given = parser.parse_args()
    if given.command == "answer":
        answer(given.source, given.target, given.resolver)
    elif given.command == "keep":
        keep(given.numerics, given.source, given.target)
    elif given.command == "suite":
        suite(given.name, given.target)
    else:
        judge(given.numerics, given.answers, given.keep)


if __name__ == "__main__":
    main()
