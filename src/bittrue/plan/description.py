"""What a plan file says about a plan, as plain data: `docs/plan_file.md` explains every member."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import Graph, Quantization

if TYPE_CHECKING:
    from .plan import Plan, Source

Entry = dict[str, Any]


def plain_array(value: np.ndarray) -> np.ndarray:
    """`value` in C order; types that other packages define, which .npy files have no name for, as their codes."""
    if value.dtype.isbuiltin == 2:
        value = value.view(f"u{value.dtype.itemsize}")
    return np.ascontiguousarray(value).reshape(value.shape)


def as_bytes(value: np.ndarray) -> np.ndarray:
    """The bytes of an array in C order."""
    return value.reshape(-1).view(np.uint8)


def _digest(value: np.ndarray) -> str:
    return hashlib.sha256(as_bytes(value).data).hexdigest()


class NamedArrays:
    """Arrays kept beside the description, by names that count them. Equal arrays are kept once.

    Attributes:
        arrays: every array by name.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[tuple[object, ...], str] = {}
        # Names of memory that is still there: constants come once with the plan and once with its graph.
        self._seen: dict[tuple[object, ...], tuple[np.ndarray, str]] = {}

    def constant(self, value: np.ndarray) -> Any:
        """Weights and other values of tensors."""
        return self.array(value)

    def array(self, value: np.ndarray) -> Any:
        """What was decided: multipliers, tables, scales."""
        value = plain_array(value)
        place = value.ctypes.data, value.dtype.str, value.shape
        if not value.size or place not in self._seen:
            kind = value.dtype.str, value.shape, _digest(value)
            name = self._names.setdefault(kind, f"a{len(self._names)}")
            self.arrays.setdefault(name, value)
            self._seen[place] = value, name
        return self._seen[place][1]


class InlineArrays:
    """Arrays inside of the description: type, shape, SHA-256 of the bytes, and the values; weights' only if asked."""

    def __init__(self, constants: bool) -> None:
        self._constants = constants

    def constant(self, value: np.ndarray) -> Any:
        return self._entry(value, self._constants)

    def array(self, value: np.ndarray) -> Any:
        return self._entry(value, True)

    def _entry(self, value: np.ndarray, values: bool) -> Entry:
        value = plain_array(value)
        entry: Entry = {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "sha256": _digest(value),
        }
        if values:
            if value.dtype.kind == "c":
                # Real and imaginary part side by side.
                value = value.view(value.real.dtype).reshape(*value.shape, 2)
            entry["values"] = plain(value.tolist())
        return entry


def plain(value: Any) -> Any:
    """Numbers, texts and lists as JSON has them; numbers that JSON has no name for as ``{"float": "nan"}``."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def plan_entry(plan: Plan, arrays: NamedArrays | InlineArrays) -> Entry:
    """The plan, without what it was planned from."""
    return {
        "name": plan.name,
        "numerics": plan.numerics,
        "reproduces": plan.reproduces,
        "inputs": plain(plan.inputs),
        "outputs": plain(plan.outputs),
        "aliases": dict(plan.aliases),
        "folded": plain(plan.folded),
        "arena": plan.arena,
        "memory": plan.memory,
        "notes": plain(plan.notes),
        "scope": plan.scope,
        "tensors": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": plain(t.shape),
                "kind": t.kind,
                "offset": t.offset,
                "first": t.first,
                "last": t.last,
                "value": None if t.value is None else arrays.constant(t.value),
                **_quantization(t.quantization, arrays),
            }
            for t in plan.tensors
        ],
        "steps": [
            {
                "index": s.index,
                "operator": s.operator,
                "source": s.source,
                "inputs": plain(s.inputs),
                "outputs": plain(s.outputs),
                "rules": dict(s.rules),
                "parameters": _plain_values(s.parameters),
                "arrays": {name: arrays.array(array) for name, array in s.arrays.items()},
                "accumulator": [s.accumulator.magnitude, s.accumulator.wraps] if s.accumulator else None,
                "work": s.work,
                "inexact": s.inexact,
            }
            for s in plan.steps
        ],
        "nested": [{"graph": nested.graph, "plan": plan_entry(nested.plan, arrays)} for nested in plan.nested],
        "later": None
        if plan.later is None
        else {"graph": graph_entry(plan.later.graph, arrays), "reason": plan.later.reason},
    }


def source_entry(source: Source, arrays: NamedArrays | InlineArrays) -> Entry:
    """What a plan was planned from."""
    return {
        "numerics": source.numerics.name,
        "memory_limit": source.memory_limit,
        "main": source.main,
        "shapes": [{"input": index, "shape": plain(shape)} for index, shape in sorted(source.shapes.items())],
        "graphs": [graph_entry(graph, arrays) for graph in source.graphs],
    }


def graph_entry(graph: Graph, arrays: NamedArrays | InlineArrays) -> Entry:
    """A graph as it was planned: after the rewrites of the numerics."""
    return {
        "name": graph.name,
        "signature": graph.signature,
        "inputs": plain(graph.inputs),
        "outputs": plain(graph.outputs),
        "aliases": dict(graph.aliases),
        "tensors": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": plain(t.shape),
                "shape_signature": plain(t.shape_signature),
                # Packed integers and texts stay as they are in the model; other values are those of the plan's tensor.
                "data": None
                if t.data is None
                else arrays.constant(t.data if t.type.bits < 8 else t.data.reshape(t.shape)),
                "variable": t.is_variable,
                **_quantization(t.quantization, arrays),
            }
            for t in graph.tensors
        ],
        "nodes": [
            {
                "index": n.index,
                "operator": n.operator,
                "source": n.source,
                "version": n.version,
                "attributes": _plain_values(n.attributes),
                "inputs": plain(n.inputs),
                "outputs": plain(n.outputs),
                "intermediates": plain(n.intermediates),
            }
            for n in graph.nodes
        ],
    }


def _quantization(value: Quantization | None, arrays: NamedArrays | InlineArrays) -> Entry:
    return {
        "scales": arrays.array(value.scales) if value else None,
        "zero_points": arrays.array(value.zero_points) if value else None,
        "axis": value.axis if value else None,
    }


def _plain_values(values: Mapping[str, Any]) -> Entry:
    return {name: plain(value) for name, value in values.items()}
