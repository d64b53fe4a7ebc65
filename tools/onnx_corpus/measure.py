"""Run every model of a corpus in ONNX Runtime and in bittrue, and count: equal bytes, different, refused.

    python tools/onnx_corpus/measure.py FOLDER [--only PART] [--table FILE.md]

Each model runs in a process of its own, on three random samples (the last one of another size where dimensions are
free), with one thread, under the numerics of ONNX Runtime on the processor at hand, which the table names. Results
stand in FOLDER/measured.json; each model that is not equal is printed with its reason.
"""

import argparse
import collections
import json
import multiprocessing
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from samples import sample

import bittrue
from bittrue.runners.processor import onnxruntime_here

TIME_LIMIT = 120  # seconds for one model
KINDS = ("equal", "differs", "refused", "marked", "no answer")


def _bytes(values: Any) -> list[tuple[Any, ...]]:
    return [(np.asarray(v).dtype.str, np.asarray(v).shape, np.asarray(v).tobytes()) for v in values]


def measure(path: Path, described: dict[str, Any]) -> tuple[str, str]:
    """A word of KINDS and the reason; "marked" is a difference that the plan announces (`plan.inexact`)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    try:
        theirs = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "no answer", f"ONNX Runtime: {error}"
    types = {"tensor(float16)": np.float16, "tensor(int32)": np.int32}
    rng, session = np.random.default_rng(0), None
    for turn in range(3):
        free = (
            {d: size + (turn == 2) for d, size in described["free"].items()}
            if not described["fixed"]
            else described["free"]
        )
        values = sample(described["inputs"], free, rng)
        wanted = {i.name: types.get(i.type) for i in theirs.get_inputs()}
        values = {n: v.astype(wanted[n] or v.dtype) for n, v in values.items() if n in wanted}
        try:
            expected = theirs.run(None, values)
        except Exception as error:
            return "no answer", f"ONNX Runtime: {error}"
        try:
            session = session or bittrue.load(str(path)).prepare(onnxruntime_here().numerics)
            found = list(session.run(values).values())
        except bittrue.BittrueError as error:
            return "refused", str(error)
        if _bytes(expected) != _bytes(found):
            wrong = [i for i, (a, b) in enumerate(zip(_bytes(expected), _bytes(found), strict=True)) if a != b]
            marked = session.plan.inexact
            place = f"outputs {wrong} of sample {turn}"
            return ("marked", f"{place}; inexact: {', '.join(marked)}") if marked else ("differs", place)
    return "equal", ""


def _apart(path: Path, described: dict[str, Any], pipe: Any) -> None:
    warnings.simplefilter("ignore")
    pipe.send(measure(path, described))


def main() -> None:
    """Measure the models that are asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose file name contains this")
    parser.add_argument("--table", type=Path, help="write the counts as a table here")
    arguments = parser.parse_args()
    rows: dict[str, tuple[str, str]] = {}
    described: dict[str, Any] = {}
    for path in sorted(arguments.folder.glob("*.onnx")):
        if arguments.only not in path.name:
            continue
        described[path.name] = json.loads(path.with_name(".".join(path.name.split(".")[:2]) + ".json").read_text())
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=_apart, args=(path, described[path.name], theirs))
        process.start()
        theirs.close()
        found = ("no answer", f"took more than {TIME_LIMIT} s")
        if ours.poll(TIME_LIMIT):
            try:
                found = ours.recv()
            except EOFError:
                found = ("no answer", "the process died")
        process.kill()
        process.join()
        rows[path.name] = found
        if found[0] != "equal":
            print(f"{path.name}: {found[0]}: {found[1][:300]}".replace("\n", " "), flush=True)
    (arguments.folder / "measured.json").write_text(json.dumps(rows, indent=1))
    table = _table(rows, {name: d["family"] for name, d in described.items()})
    print(table)
    if arguments.table:
        arguments.table.write_text(table + "\n")


def _table(rows: dict[str, tuple[str, str]], families: dict[str, str]) -> str:
    count: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, (word, _) in rows.items():
        quantization = name.split(".")[2]
        for row in (families[name], "all"):
            for column in (quantization, "all"):
                count[row, column][word] += 1
    columns = [*sorted({name.split(".")[2] for name in rows}), "all"]
    here = onnxruntime_here().numerics
    lines = [f"{len(rows)} models under {here}: {' / '.join(KINDS)} (a count of 0 at the end is left out)", ""]
    lines += ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in [*sorted(set(families.values())), "all"]:
        cells = ["/".join(str(count[row, c][k]) for k in KINDS) for c in columns]
        lines.append(
            f"| {row} | "
            + " | ".join(c.removesuffix("/0").removesuffix("/0") if c.strip("0/") else "–" for c in cells)
            + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
