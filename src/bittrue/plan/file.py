"""Plan files: a zip of NumPy arrays with one JSON description. No pickles, so reading one never runs code."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelFormatError
from ..graph import DATA_TYPES, Quantization
from ..operators import Bound, Step, find
from ..rules import rules, slots
from .plan import Plan, PlanTensor

FORMAT = "bittrue-plan-1"
_DESCRIPTION = "plan.json"
# A plan file holds constants about as large as the model; refuse archives that unpack to absurd sizes.
_MAX_UNPACKED = 4 << 30


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, value: np.ndarray | None) -> str | None:
        if value is None:
            return None
        name = f"a{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        return name


def save_plan(plan: Plan, path: object) -> None:
    """Write `plan` to `path` (str or PathLike). The same plan gives the same bytes."""
    writer = _Writer()
    description = {
        "format": FORMAT,
        "name": plan.name,
        "numerics": plan.numerics,
        "reproduces": plan.reproduces,
        "inputs": plan.inputs,
        "outputs": plan.outputs,
        "aliases": dict(plan.aliases),
        "folded": plan.folded,
        "arena": plan.arena,
        "notes": plan.notes,
        "tensors": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": t.shape,
                "kind": t.kind,
                "offset": t.offset,
                "first": t.first,
                "last": t.last,
                "value": writer.array(t.value),
                "scales": writer.array(t.quantization.scales) if t.quantization else None,
                "zero_points": writer.array(t.quantization.zero_points) if t.quantization else None,
                "axis": t.quantization.axis if t.quantization else None,
            }
            for t in plan.tensors
        ],
        "steps": [
            {
                "index": s.index,
                "operator": s.operator,
                "source": s.source,
                "inputs": s.inputs,
                "outputs": s.outputs,
                "rules": dict(s.rules),
                "parameters": dict(s.parameters),
                "arrays": {name: writer.array(array) for name, array in s.arrays.items()},
                "accumulator": [s.accumulator.magnitude, s.accumulator.wraps] if s.accumulator else None,
                "work": s.work,
            }
            for s in plan.steps
        ],
    }
    target = Path(os.fspath(path))  # type: ignore[call-overload]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DESCRIPTION, json.dumps(description, indent=1).encode())
        for name, array in writer.arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # A fixed date keeps the file reproducible.
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def load_plan(path: object) -> Plan:
    """Read a plan written by `save_plan`.

    Raises:
        InputError: the file does not exist.
        ModelFormatError: it is no plan file, or it names rules, operators or tensors that do not exist.
    """
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    if not source.is_file():
        raise InputError("BT-FILE-MISSING", f"no file '{source}'", place="plan")
    try:
        with zipfile.ZipFile(source) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MAX_UNPACKED:
                raise ModelFormatError("BT-PLAN-FILE", "the archive unpacks to more than 4 GiB", place=str(source))
            arrays = {
                info.filename[:-4]: np.load(io.BytesIO(archive.read(info)), allow_pickle=False)
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            description = json.loads(archive.read(_DESCRIPTION))
        if description.get("format") != FORMAT:
            raise ModelFormatError(
                "BT-PLAN-FILE",
                f"expected format '{FORMAT}', found {description.get('format')!r}",
                place=str(source),
                advice="write the plan again with this version of bittrue",
            )
        plan = _plan(description, arrays)
        _check(plan)
    except ModelFormatError:
        raise
    except (
        zipfile.BadZipFile,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        EOFError,
        OSError,
    ) as error:
        raise ModelFormatError(
            "BT-PLAN-FILE", f"not a readable plan file ({type(error).__name__}: {error})", place=str(source)
        ) from None
    return plan


def _plan(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Plan:
    def array(name: str | None) -> np.ndarray | None:
        return None if name is None else arrays[name]

    def quantization(entry: dict[str, Any]) -> Quantization | None:
        if entry["scales"] is None:
            return None
        return Quantization(arrays[entry["scales"]], arrays[entry["zero_points"]], entry["axis"])

    tensors = tuple(
        PlanTensor(
            str(t["name"]),
            str(t["dtype"]),
            tuple(int(e) for e in t["shape"]),
            str(t["kind"]),
            quantization(t),
            array(t["value"]),
            int(t["offset"]),
            int(t["first"]),
            int(t["last"]),
        )
        for t in description["tensors"]
    )
    steps = tuple(
        Step(
            int(s["index"]),
            str(s["operator"]),
            str(s["source"]),
            tuple(None if i is None else int(i) for i in s["inputs"]),
            tuple(int(i) for i in s["outputs"]),
            dict(s["rules"]),
            {key: _attribute(value) for key, value in s["parameters"].items()},
            {key: arrays[value] for key, value in s["arrays"].items()},
            Bound(int(s["accumulator"][0]), bool(s["accumulator"][1])) if s["accumulator"] else None,
            int(s["work"]),
        )
        for s in description["steps"]
    )
    return Plan(
        str(description["name"]),
        str(description["numerics"]),
        str(description["reproduces"]),
        tensors,
        steps,
        tuple(int(i) for i in description["inputs"]),
        tuple(int(i) for i in description["outputs"]),
        {str(k): int(v) for k, v in description["aliases"].items()},
        tuple(int(i) for i in description["folded"]),
        int(description["arena"]),
        tuple(str(n) for n in description["notes"]),
    )


def _attribute(value: Any) -> Any:
    return tuple(_attribute(v) for v in value) if isinstance(value, list) else value


def _check(plan: Plan) -> None:
    """Every index, type, operator and rule named by the file exists."""
    indices = range(len(plan.tensors))
    for tensor in plan.tensors:
        if tensor.dtype not in DATA_TYPES:
            raise ValueError(f"unknown type '{tensor.dtype}'")
        if tensor.value is not None and (tensor.value.shape != tensor.shape or tensor.value.dtype != tensor.type.numpy):
            raise ValueError(f"content of '{tensor.name}' does not fit its shape and type")
    ready = {i for i in indices if plan.tensors[i].value is not None or plan.tensors[i].kind in ("input", "variable")}
    used = [*plan.inputs, *plan.folded, *plan.aliases.values()]
    for step in plan.steps:
        if find(step.operator) is None:
            raise ValueError(f"unknown operator '{step.operator}'")
        for slot, rule in step.rules.items():
            if slot not in slots() or rule not in rules(slot):
                raise ValueError(f"unknown rule {slot}={rule}")
        if any(i is not None and i not in ready for i in step.inputs):
            raise ValueError(f"step {step.index} reads a tensor that is never computed")
        used += step.outputs
        ready.update(step.outputs)
    if any(i not in indices for i in used) or any(i not in ready for i in plan.outputs):
        raise ValueError("a tensor index is out of range or never computed")
