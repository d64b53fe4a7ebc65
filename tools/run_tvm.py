"""Cases of relay.qnn in the form of recorded ones, run in a TVM that still has relay.

    python tools/run_tvm.py FOLDER

by the Python of an environment that has such a TVM (docs/facts/tvm_qnn.md, section 13). ``FOLDER/manifest.json`` has
the form of recorded vectors. Cases without outputs get those of the run, or the field ``error``; of the others the
differences are printed, and the exit code is 1 where there are any. Each case runs in a process of its own, which may
crash.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

# Before the import: TVM would look for tuned schedules in the net, which change no result of integers.
os.environ.setdefault("TOPHUB_LOCATION", "NONE")
os.environ.setdefault("TVM_NUM_THREADS", "1")
import tvm
from tvm import relay
from tvm.contrib import graph_executor

Values = dict[str, np.ndarray]
# Operands that are inputs of the graph, as is what is computed; all others are constants of it.
DATA = {"data", "x", "y", "lhs", "rhs"}
ENTRY = re.compile(r"(.+)_(\d+)")
# Arguments of concatenate that are tuples.
TUPLES = {"data": "data", "input_scale": "input_scales", "input_zero_point": "input_zero_points"}
# What recorders call an argument whose name the functions do not share.
OTHER = {"data": "x", "x": "data", "kernel": "weight", "weight": "kernel", "scale": "input_scale"}
OTHER |= {"input_scale": "scale", "zero_point": "input_zero_point", "input_zero_point": "zero_point"}


def call(function: Any, given: dict[str, Any]) -> Any:
    """A function of arguments by the names that recorders have for them."""
    known = inspect.signature(function).parameters
    return function(**{OTHER[k] if k not in known and k in OTHER else k: v for k, v in given.items()})


def expression(case: dict[str, Any], values: Values) -> tuple[Any, Values]:
    """The operator of a case with its epilogue, and the values of the graph's inputs."""
    steps = [step.rsplit(".", 1)[-1] for step in case["attributes"].get("epilogue", [])]
    feeds: Values = {}
    now: dict[str, Any] = {}
    later: dict[str, Any] = {}
    for operand in case["inputs"]:
        name, value = operand["name"], values[operand["key"]]
        entry = ENTRY.fullmatch(name)
        stem = entry[1] if entry else name
        if name == "bias" or name.startswith(tuple(f"{step}_" for step in steps)):
            later[name] = relay.const(value)
            continue
        fed = stem in DATA or operand.get("computed")
        if fed:
            feeds[name] = value
        made = relay.var(name, shape=value.shape, dtype=str(value.dtype)) if fed else relay.const(value)
        if entry and stem in TUPLES:
            now.setdefault(TUPLES[stem], []).append(made)
        else:
            now[name] = made
    for name, value in case["attributes"].items():
        if name not in ("epilogue", "requantize_config"):
            own = name.startswith(tuple(f"{step}_" for step in steps))
            (later if own else now)[name] = tuple(value) if isinstance(value, list) else value
    now = {name: relay.Tuple(value) if isinstance(value, list) else value for name, value in now.items()}
    name = case["operator"].rsplit(".", 1)[-1]
    found = call(getattr(relay.nn if case["operator"].startswith("nn.") else relay.qnn.op, name), now)
    for step in steps:
        own = {name.removeprefix(f"{step}_"): value for name, value in later.items() if name.startswith(f"{step}_")}
        if step == "bias_add":
            found = relay.nn.bias_add(found, later["bias"], **own)
        elif step == "requantize":
            found = relay.qnn.op.requantize(found, input_zero_point=relay.const(np.int32(0)), **own)
        else:
            found = getattr(relay if hasattr(relay, step) else relay.nn, step)(found, **own)
    return found, feeds


def run(case: dict[str, Any], values: Values) -> np.ndarray:
    """What TVM compiles for the case's target gives."""
    found, feeds = expression(case, values)
    config = case["attributes"].get("requantize_config")
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(found), found))
    with relay.qnn.op.requantize_config(**config) if config else nullcontext(), tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, target=case["target"])
    executor = graph_executor.GraphModule(built["default"](tvm.cpu(0)))
    for name, value in feeds.items():
        executor.set_input(name, value)
    executor.run()
    return np.asarray(executor.get_output(0).numpy())


def apart(case: dict[str, Any], values: Values, answer: Any) -> None:
    """`run` in a process that nobody else needs."""
    try:
        answer.put(run(case, values))
    except Exception as error:
        lines = str(error).strip().splitlines()
        answer.put(lines[-1] if lines else type(error).__name__)


def outcome(case: dict[str, Any], values: Values) -> np.ndarray | str:
    """The result, or what went wrong."""
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    own = {operand["key"]: values[operand["key"]] for operand in case["inputs"]}
    child = context.Process(target=apart, args=(case, own, answer))
    child.start()
    while answer.empty() and child.is_alive():
        child.join(0.02)
    found: np.ndarray | str = f"ended by signal {-(child.exitcode or 0)}" if answer.empty() else answer.get()
    child.join()
    return found


def main(folder: Path) -> int:
    """Exit code 1 where a recorded result is not that of the run."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    archives: dict[str, Values] = {}
    wrong = recorded = 0
    for case in manifest["cases"]:
        name = case["file"]
        if name not in archives:
            archives[name] = dict(np.load(folder / name))
        values = archives[name]
        found = outcome(case, values)
        if case["outputs"]:
            expected = values[case["outputs"][0]["key"]]
            same = isinstance(found, np.ndarray) and (found.dtype, found.shape, found.tobytes()) == (
                expected.dtype,
                expected.shape,
                expected.tobytes(),
            )
            recorded, wrong = recorded + 1, wrong + (not same)
            if not same:
                print(case["id"], found if isinstance(found, str) else "other bytes", flush=True)
        elif isinstance(found, str):
            case["error"] = found
        else:
            key = f"{case['id']}/output"
            values[key] = found
            case["outputs"] = [{"name": "output", "key": key, "dtype": str(found.dtype), "shape": list(found.shape)}]
    if recorded < len(manifest["cases"]):
        for name, values in archives.items():
            np.savez_compressed(folder / name, **values)  # type: ignore[arg-type]
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    failed = sum("error" in case for case in manifest["cases"])
    print(f"{len(manifest['cases'])} cases, {recorded} recorded, {wrong} other, {failed} fail there")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
