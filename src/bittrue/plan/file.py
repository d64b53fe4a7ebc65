"""Plan files: a zip of NumPy arrays with one JSON description. No pickles, so reading one never runs code."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MISFITS, BittrueError, InputError, ModelFormatError, ResourceError
from ..graph import DATA_TYPES, Graph, Quantization, find_disorder
from ..numerics import find as find_numerics
from ..operators import Bound, Step, find
from ..operators.spatial import is_possible, spatial_bytes, spatial_shape, step_windows
from ..rules import rules, slots
from .graph_file import attribute, check_quantization, graph_entry, read_graph
from .plan import Later, Nested, Plan, PlanTensor, Source
from .planner import DEFAULT_MEMORY_LIMIT, MAX_RANK
from .schedule import Schedule
from .support import check_graph

FORMAT = "bittrue-plan-2"
# Model files have 32 bits for it.
_MAX_EXTENT = 2**31 - 1
# Axes in which the weights of layers have the extents of the filter.
_FILTERS = {
    **dict.fromkeys(("conv2d", "depthwise_conv2d", "transpose_conv"), slice(1, 3)),
    **dict.fromkeys(("conv3d", "conv3d_transpose"), slice(0, 3)),
}
# Operators with windows over channels-first tensors: the input with the weights.
_SPATIAL = {
    "conv": 1,
    "conv_integer": 1,
    **dict.fromkeys(("qlinear_conv", "whole_conv"), 3),
    **dict.fromkeys(("average_levels", "average_pool", "lp_pool", "max_pool", "qlinear_average_pool")),
}
_DESCRIPTION = "plan.json"
_KINDS = frozenset({"input", "constant", "folded", "variable", "computed", "unknown", "later", "unused"})


class _Writer:
    """Arrays by name. Those of graphs are mostly those of their plans, so equal memory is written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def array(self, value: np.ndarray | None) -> str | None:
        if value is None:
            return None
        if value.dtype.isbuiltin == 2:
            # .npy files have no name for types that other packages define.
            value = value.view(f"u{value.dtype.itemsize}")
        key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str)
        if not value.size or key not in self._names:
            self._names[key] = f"a{len(self.arrays)}"
            self.arrays[self._names[key]] = np.ascontiguousarray(value).reshape(value.shape)
        return self._names[key]

    def quantization(self, value: Quantization | None) -> dict[str, Any]:
        return {
            "scales": self.array(value.scales) if value else None,
            "zero_points": self.array(value.zero_points) if value else None,
            "axis": value.axis if value else None,
        }


def save_plan(plan: Plan, path: object) -> None:
    """Write `plan` to `path` (str or PathLike). The same plan gives the same bytes."""
    writer = _Writer()
    description = {"format": FORMAT, **_plan_entry(plan, writer), "source": _source_entry(plan.source, writer)}
    target = Path(os.fspath(path))  # type: ignore[call-overload]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DESCRIPTION, json.dumps(description, indent=1).encode())
        for name, array in writer.arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def _plan_entry(plan: Plan, writer: _Writer) -> dict[str, Any]:
    return {
        "name": plan.name,
        "numerics": plan.numerics,
        "reproduces": plan.reproduces,
        "inputs": plan.inputs,
        "outputs": plan.outputs,
        "aliases": dict(plan.aliases),
        "folded": plan.folded,
        "arena": plan.arena,
        "memory": plan.memory,
        "notes": plan.notes,
        "scope": plan.scope,
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
                **writer.quantization(t.quantization),
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
                "inexact": s.inexact,
            }
            for s in plan.steps
        ],
        "nested": [{"graph": nested.graph, "plan": _plan_entry(nested.plan, writer)} for nested in plan.nested],
        "later": None
        if plan.later is None
        else {"graph": graph_entry(plan.later.graph, writer), "reason": plan.later.reason},
    }


def _source_entry(source: Source | None, writer: _Writer) -> dict[str, Any] | None:
    if source is None:
        return None
    return {
        "numerics": source.numerics.name,
        "memory_limit": source.memory_limit,
        "graphs": [graph_entry(graph, writer) for graph in source.graphs],
    }


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # A fixed date keeps the file reproducible.
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def load_plan(path: object, *, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> Plan:
    """Read a plan written by `save_plan`.

    Args:
        path: str or PathLike.
        memory_limit: bytes of live activations that a run may need, for every stage.

    Raises:
        InputError: the file does not exist.
        ModelFormatError: it is no plan file, or it names rules, operators or tensors that do not exist.
        ResourceError: a run would exceed `memory_limit`.
    """
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    if not source.is_file():
        raise InputError("BT-FILE-MISSING", f"no file '{source}'", place="plan")
    try:
        with zipfile.ZipFile(source) as archive:
            # Plans are stored as they are, so nothing in them may become larger than the file.
            if sum(info.file_size for info in archive.infolist()) > source.stat().st_size:
                raise ModelFormatError("BT-PLAN-FILE", "the archive unpacks to more than its size", place=str(source))
            arrays = {
                info.filename[:-4]: _read_array(archive.read(info))
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
        plan = _Reader(arrays, description["source"], memory_limit).plan(description)
    except (ModelFormatError, ResourceError):
        raise
    except MemoryError:
        raise ResourceError("BT-MEMORY", "out of memory", place=str(source)) from None
    except (*MISFITS, BittrueError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise ModelFormatError(
            "BT-PLAN-FILE", f"not a readable plan file ({type(error).__name__}: {error})", place=str(source)
        ) from None
    return plan


def _read_array(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"arrays of version {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    # Nothing is allocated for what is not there.
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell() or min(shape, default=0) < 0:
        raise ValueError("an array that does not fill its file")
    if dtype.kind not in "biufcV" or dtype.names is not None or dtype.subdtype is not None or not dtype.isnative:
        raise ValueError(f"an array of type {dtype}")
    return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))


class _Reader:
    """Plans from their descriptions, which are untrusted: whatever does not fit raises one of the usual errors."""

    def __init__(self, arrays: dict[str, np.ndarray], source: dict[str, Any] | None, memory_limit: int) -> None:
        self._arrays = arrays
        self._memory_limit = memory_limit
        self.source: Source | None = None
        if source is not None:
            graphs = tuple(self.graph(entry) for entry in source["graphs"])
            limit = min(memory_limit, int(source["memory_limit"]))
            self.source = Source(find_numerics(source["numerics"]), graphs, limit)

    def array(self, name: str | None, dtype: object) -> np.ndarray | None:
        """An array as the type called `dtype` has it."""
        if name is None:
            return None
        found, kind = self._arrays[name], DATA_TYPES.get(str(dtype))
        if kind is None or not isinstance(kind.array, str) or found.dtype.str[1:] != f"u{kind.numpy.itemsize}":
            return found
        return found.view(kind.numpy)

    def quantization(self, entry: dict[str, Any]) -> Quantization | None:
        if entry["scales"] is None:
            return None
        axis = entry["axis"]
        if axis is not None and not isinstance(axis, int):
            raise TypeError("an axis is no integer")
        return Quantization(self._arrays[entry["scales"]], self._arrays[entry["zero_points"]], axis)

    def graph(self, entry: dict[str, Any]) -> Graph:
        return read_graph(entry, self.array, self.quantization)

    def plan(self, description: dict[str, Any]) -> Plan:
        tensors = tuple(
            PlanTensor(
                str(t["name"]),
                str(t["dtype"]),
                tuple(int(e) for e in t["shape"]),
                str(t["kind"]),
                self.quantization(t),
                self.array(t["value"], t["dtype"]),
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
                {key: attribute(value) for key, value in s["parameters"].items()},
                {key: self._arrays[value] for key, value in s["arrays"].items()},
                Bound(int(s["accumulator"][0]), bool(s["accumulator"][1])) if s["accumulator"] else None,
                int(s["work"]),
                bool(s.get("inexact", False)),
            )
            for s in description["steps"]
        )
        later = description["later"]
        plan = Plan(
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
            int(description["memory"]),
            tuple(str(n) for n in description["notes"]),
            str(description["scope"]),
            tuple(Nested(int(n["graph"]), self.plan(n["plan"])) for n in description["nested"]),
            None if later is None else Later(self.graph(later["graph"]), str(later["reason"])),
            self.source,
        )
        _check(plan)
        _check_memory(plan, self._memory_limit)
        for step in plan.steps:
            if step.operator in _SPATIAL:
                _check_spatial(plan, step, self._memory_limit)
        return plan


def _check(plan: Plan) -> None:
    """Every index, type, operator and rule named by the file exists."""
    indices = range(len(plan.tensors))
    for tensor in plan.tensors:
        if tensor.dtype not in DATA_TYPES:
            raise ValueError(f"unknown type '{tensor.dtype}'")
        if tensor.value is not None and (tensor.value.shape != tensor.shape or tensor.value.dtype != tensor.type.numpy):
            raise ValueError(f"content of '{tensor.name}' does not fit its shape and type")
        if tensor.kind not in ("unknown", "later") and any(extent < 0 for extent in tensor.shape):
            raise ValueError(f"'{tensor.name}' has a negative extent")
        if len(tensor.shape) > MAX_RANK or any(extent > _MAX_EXTENT for extent in tensor.shape):
            raise ValueError(f"'{tensor.name}' has an impossible shape")
        if tensor.kind not in _KINDS:
            raise ValueError(f"unknown kind '{tensor.kind}'")
        if tensor.quantization is not None:
            check_quantization(tensor.name, tensor.quantization)
    ready = {i for i in indices if plan.tensors[i].value is not None or plan.tensors[i].kind in ("input", "variable")}
    used = [*plan.folded, *plan.aliases.values()]
    for step in plan.steps:
        if find(step.operator) is None:
            raise ValueError(f"unknown operator '{step.operator}'")
        for slot, rule in step.rules.items():
            if slot not in slots() or rule not in rules(slot):
                raise ValueError(f"unknown rule {slot}={rule}")
        if any(i is not None and i not in ready for i in step.inputs):
            raise ValueError(f"step {step.index} reads a tensor that is never computed")
        _check_sizes(plan, step)
        for index in step.outputs:
            if index in step.inputs or (index in ready and plan.tensors[index].kind != "variable"):
                raise ValueError(f"step {step.index} writes what is there already")
            ready.add(index)
        used += step.outputs
    if any(
        i not in indices or plan.tensors[i].kind != "input" or plan.tensors[i].value is not None for i in plan.inputs
    ):
        raise ValueError("an input is none, or has a value")
    if any(i not in indices for i in used) or any(i not in ready for i in plan.outputs):
        raise ValueError("a tensor index is out of range or never computed")
    if any(plan.tensors[i].value is None for i in plan.folded):
        raise ValueError("a folded tensor has no value")
    _check_beyond(plan)


def _check_memory(plan: Plan, limit: int) -> None:
    """A run stays within the limit, as the planner found."""
    needed = Schedule(plan, plan.steps).offsets()[1] + sum(t.bytes for t in plan.tensors if t.kind == "variable")
    if needed > limit:
        raise ResourceError(
            "BT-MEMORY",
            f"a run would need {needed:,} bytes of activations, the limit is {limit:,}",
            place=f"graph '{plan.name}'",
            advice="pass the memory_limit that the plan was prepared with to load_plan()",
        )


def _check_sizes(plan: Plan, step: Step) -> None:
    """Sizes in a step are those of its tensors, so that no loop is longer and no temporary larger than they allow."""
    p = step.parameters
    outputs = [plan.tensors[i] for i in step.outputs]
    sizes = {math.prod(t.shape) for t in outputs if t.kind != "unknown"}
    for name in ("shape", "output_shape"):
        if name in p and sizes and math.prod(step[name]) not in sizes:
            raise ValueError(f"step {step.index} has another result than its tensor")
    if "segments" in p and outputs[0].shape[:1] != (step["segments"],):
        raise ValueError(f"step {step.index} has another result than its tensor")
    if "out_h" in p and step.operator not in _SPATIAL and (step["out_h"], step["out_w"]) != outputs[0].shape[1:3]:
        raise ValueError(f"step {step.index} has another result than its tensor")
    if step.operator in _FILTERS:
        weights = plan.tensors[step.inputs[1] or 0].shape
        extents = step["filter"] if "filter" in p else (step["filter_h"], step["filter_w"])
        if extents != weights[_FILTERS[step.operator]]:
            raise ValueError(f"step {step.index} has weights of another filter")
    if step.operator in _SPATIAL:
        return
    for axis, sides in (("h", ("top", "bottom")), ("w", ("left", "right"))):
        for side in (side for side in sides if f"pad_{side}" in p and f"filter_{axis}" in p):
            # A window that lies in the padding alone has no place in the output.
            if not 0 <= step[f"pad_{side}"] <= (step[f"filter_{axis}"] - 1) * p.get(f"dilation_{axis}", 1):
                raise ValueError(f"step {step.index} pads more than its filter")


def _check_spatial(plan: Plan, step: Step, limit: int) -> None:
    """Windows over channels-first tensors are those of its tensors, and what they reach over stays within the limit."""
    shapes = [plan.tensors[i].shape for i in (step.inputs[0] or 0, *step.outputs)]
    if any(not 3 <= len(shape) <= 5 or len(shape) != len(shapes[0]) for shape in shapes):
        raise ValueError(f"step {step.index} has tensors without spatial axes")
    if step.parameters.get("channels_last"):
        shapes = [(shape[0], shape[-1], *shape[1:-1]) for shape in shapes]
    count = len(shapes[0]) - 2
    if ("filter_d" in step.parameters) != (count == 3):
        raise ValueError(f"step {step.index} has windows over another number of axes")
    windows = step_windows(step, shapes[0])
    if any(one.extent and not is_possible(one) for one in windows):
        raise ValueError(f"step {step.index} has impossible windows")
    if any(shape[2:] != spatial_shape(windows)[3 - count :] for shape in shapes[1:]):
        raise ValueError(f"step {step.index} has another result than its tensor")
    taps = tuple(one.taps for one in windows)
    at = _SPATIAL[step.operator]
    if at is not None and plan.tensors[step.inputs[at] or 0].shape[2:] != taps[3 - count :]:
        raise ValueError(f"step {step.index} has weights of another filter")
    # Pools unfold their input.
    unfolded = 0 if at is not None else 24 * math.prod(shapes[1]) * math.prod(taps)
    if spatial_bytes(windows, shapes[0][1], 8) + unfolded > limit:
        raise ValueError(f"step {step.index} has windows that need more than the limit")


def _check_beyond(plan: Plan) -> None:
    """Called graphs and later stages fit the graphs that they are planned from."""
    if plan.source is None:
        if plan.nested or plan.later is not None:
            raise ValueError("the graphs of the model are missing")
        return
    for nested in plan.nested:
        if not 0 <= nested.graph < len(plan.source.graphs):
            raise ValueError("a graph index is out of range")
        graph = plan.source.graphs[nested.graph]
        free = {i for i in graph.inputs if nested.plan.tensors[i].value is None}
        if free != set(nested.plan.inputs) or len(nested.plan.tensors) != len(graph.tensors):
            raise ValueError(f"the plan of graph {nested.graph} has other inputs")
        if nested.plan.results != graph.outputs:
            raise ValueError(f"the plan of graph {nested.graph} has other results")
        check_graph(graph, plan.source)
    if plan.later is not None:
        graph = plan.later.graph
        if len(plan.tensors) != len(graph.tensors) or graph.inputs != plan.outputs:
            raise ValueError("the later stage does not fit what comes before it")
        # What an earlier stage folded is there as well.
        known = [
            t if p.value is None else replace(t, data=p.value) for t, p in zip(graph.tensors, plan.tensors, strict=True)
        ]
        if find_disorder(known, graph.nodes, graph.inputs, graph.outputs) is not None:
            raise ValueError("the later stage reads what is never computed")
        check_graph(graph, plan.source)
