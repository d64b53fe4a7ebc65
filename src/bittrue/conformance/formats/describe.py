"""A case as plain data: what a device is asked to compute, and the integers that one arithmetic computes it with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import BittrueError
from ...graph import Graph, Node, Quantization, data_type
from ...operators import Step
from ...plan import Plan
from ..suite import SUITE_VERSION, SuiteCase
from .worked import Sums, Worked

# Bits behind the point of encoded multipliers; other rules name theirs: q15_one_step_up.
_Q31 = 31
_CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")
_NAMED_BITS = re.compile(r"q(\d+)_")


def describe(case: SuiteCase, numerics: str | None = None, *, accumulators: bool = False) -> dict[str, Any]:
    """A case as plain data, ready for JSON: lists, dicts, texts, numbers.

    Args:
        case: any case; of one that a device must refuse, the parts that can be read.
        numerics: adds ``"plan"``: what this arithmetic computes the case with.
        accumulators: adds ``"accumulators"``: what the sums of each output hold before they are rescaled, and how far
            each is from a tie; needs `numerics`, and is empty for operators that do not accumulate.

    Returns:
        ``id, suite, suite_version, operator, types, aim, note, rejects, seeks, format, sha256``: as the case has them.
        ``attributes``: of the operator, as the file has them, in bittrue's words.
        ``tensors``: one object each, with ``role`` (``input``, ``constant``, ``output``, ``inner``), ``name``,
        ``position`` (among the operator's inputs or outputs), ``dtype`` (``"s8"``), ``shape``, ``scale`` and
        ``zero_point`` (lists of one number or one per index of ``axis``; real = scale * (q - zero_point); null where
        there are none) and ``axis``.
        ``nodes``: operators with their operands, where the case's operator is made of several nodes.
        ``plan``: ``numerics``, ``reproduces``, ``steps``. A step has ``operator``, ``rules`` by slot, ``parameters``,
        ``arrays``, ``clamp``, ``accumulator``, and ``multipliers``: ``multiplier`` and ``exponent`` as the plan holds
        them, and ``power`` such that the real factor is exactly multiplier * 2^power.

    Raises:
        BittrueError: the numerics cannot run the case (never for one that must be refused).
    """
    worked = None if numerics is None else Worked(case, numerics)
    return description(case, worked, accumulators=accumulators)


def description(case: SuiteCase, worked: Worked | None, *, accumulators: bool = False) -> dict[str, Any]:
    """`describe`, for a case whose answers are worked out already."""
    found: dict[str, Any] = {
        "id": case.identity,
        "suite": case.suite,
        "suite_version": SUITE_VERSION,
        "operator": case.operator,
        "types": case.types,
        "aim": case.aim,
        "note": case.note,
        "rejects": case.rejects,
        "seeks": plain(case.seeks),
        "format": case.format,
        "sha256": case.sha256,
        **_model(case),
    }
    if worked is not None and not case.rejects:
        found["plan"] = plan_values(worked.plan)
        if accumulators:
            found["accumulators"] = {name: _sums(sums) for name, sums in worked.accumulators.items()}
    return found


def _model(case: SuiteCase) -> dict[str, Any]:
    try:
        graph = case.model.graph
    except BittrueError as error:
        if not case.rejects:
            raise
        # A device must refuse the file, and so does bittrue's reader.
        return {"attributes": {}, "tensors": [_fed(case, name) for name in case.inputs], "refusal": str(error)}
    several = len(graph.nodes) > 1
    named = [node for node in graph.nodes if node.source == case.operator]
    # Around an operator on real numbers stand those that make quantized values of them.
    inner = [node for node in graph.nodes if node.source not in _CONVERSIONS]
    chosen = next((nodes[0] for nodes in (named, inner, list(graph.nodes)) if len(nodes) == 1), None)
    found: dict[str, Any] = {
        "attributes": {} if chosen is None else _attributes(chosen),
        "tensors": _tensors(graph, None if several else chosen),
    }
    if several:
        found["nodes"] = [_node(graph, node) for node in graph.nodes]
    return found


def _attributes(node: Node) -> dict[str, Any]:
    return {name: plain(value) for name, value in sorted(node.attributes.items())}


def _node(graph: Graph, node: Node) -> dict[str, Any]:
    names = [[None if i is None else graph.tensors[i].name for i in side] for side in (node.inputs, node.outputs)]
    return {"operator": node.source, "attributes": _attributes(node), "inputs": names[0], "outputs": names[1]}


def _fed(case: SuiteCase, name: str) -> dict[str, Any]:
    value = case.inputs[name]
    return {
        "role": "input",
        "name": name,
        "position": None,
        "dtype": type_name(value.dtype),
        "shape": list(value.shape),
        "scale": None,
        "zero_point": None,
        "axis": None,
    }


def type_name(dtype: np.dtype) -> str:
    """bittrue's name of an array's type.

    >>> type_name(np.dtype(np.int8)), type_name(np.dtype(np.float32))
    ('s8', 'f32')
    """
    try:
        return data_type(dtype.name).name
    except KeyError:
        return str(dtype)


def _tensors(graph: Graph, only: Node | None) -> list[dict[str, Any]]:
    """Operands in the order of the nodes; `only`: the graph's one node, whose operands have positions."""
    places: dict[int, int | None] = {}
    for node in graph.nodes:
        for side in (node.inputs, node.outputs):
            for number, index in enumerate(side):
                if index is not None:
                    places.setdefault(index, None if only is None else number)
    for index in (*graph.inputs, *graph.outputs):
        places.setdefault(index, None)
    found = []
    for index, position in places.items():
        tensor = graph.tensors[index]
        known = (
            ("constant", tensor.is_constant),
            ("input", index in graph.inputs),
            ("output", index in graph.outputs),
            ("inner", True),
        )
        found.append(
            {
                "role": next(role for role, fits in known if fits),
                "name": tensor.name,
                "position": position,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                **_quantization(tensor.quantization),
            }
        )
    order = ("input", "constant", "inner", "output")
    return sorted(found, key=lambda tensor: order.index(tensor["role"]))


def _quantization(quantization: Quantization | None) -> dict[str, Any]:
    if quantization is None:
        return {"scale": None, "zero_point": None, "axis": None}
    return {
        "scale": plain(quantization.scales.reshape(-1)),
        "zero_point": plain(quantization.zero_points.reshape(-1)),
        "axis": quantization.axis,
    }


def plan_values(plan: Plan) -> dict[str, Any]:
    """All decisions of a plan as plain data."""
    return {
        "numerics": plan.numerics,
        "reproduces": plan.reproduces,
        "steps": [_step(plan, step) for step in plan.steps],
    }


def _step(plan: Plan, step: Step) -> dict[str, Any]:
    names = [[None if i is None else plan.tensors[i].name for i in side] for side in (step.inputs, step.outputs)]
    bound = step.accumulator
    low, high = step.parameters.get("low"), step.parameters.get("high")
    return {
        "operator": step.operator,
        "source": step.source,
        "inputs": names[0],
        "outputs": names[1],
        "rules": dict(step.rules),
        "parameters": {name: plain(value) for name, value in step.parameters.items()},
        "clamp": None if low is None or high is None else {"low": plain(low), "high": plain(high)},
        "accumulator": None if bound is None else {"magnitude": bound.magnitude, "wraps": bound.wraps},
        "multipliers": multipliers(step),
        "arrays": {
            name: {"dtype": type_name(array.dtype), "shape": list(array.shape), "values": plain(array.reshape(-1))}
            for name, array in step.arrays.items()
        },
    }


def multipliers(step: Step) -> list[dict[str, Any]]:
    """The step's encoded multipliers: integers, exponents, and the power of two that makes them real numbers.

    Pairs of arrays ``<name>multiplier`` and ``<name>exponent``. The real factor is multiplier * 2^power with
    power = exponent - 31 (15 where the step's rules are called q15). Where no rule names its bits, pairs whose integers
    do not use all 31 are left out: their rule may give them a meaning of its own.
    """
    named = {int(match[1]) for match in map(_NAMED_BITS.match, step.rules.values()) if match}
    bits = min(named) if len(named) == 1 else _Q31
    # Rules that name their bits may fold a count into the integer; of others, encoded integers use all their bits.
    least = 0 if len(named) == 1 else 2 ** (bits - 1)
    found = []
    for name, array in step.arrays.items():
        exponent = step.arrays.get(name.removesuffix("multiplier") + "exponent")
        if not name.endswith("multiplier") or exponent is None or array.dtype.kind not in "iu":
            continue
        integers, exponents = array.reshape(-1).astype(object), exponent.reshape(-1).astype(object)
        if any(m and not least <= abs(m) <= 2**bits for m in integers):
            continue
        found.append(
            {
                "name": name.removesuffix("multiplier").rstrip("_"),
                "multiplier": plain(array.reshape(-1)),
                "exponent": plain(exponent.reshape(-1)),
                "power": [int(e) - bits for e in exponents],
                "meaning": f"real factor = multiplier * 2^power, power = exponent - {bits}",
            }
        )
    return found


def _sums(sums: Sums) -> dict[str, Any]:
    return {
        "shape": list(sums.values.shape),
        "channel_axis": sums.channel_axis,
        "values": plain(sums.values.reshape(-1)),
        "tie_distance": None if sums.tie_distance is None else plain(sums.tie_distance.reshape(-1)),
    }


def plain(value: Any) -> Any:
    """`value` as JSON holds it. Reals that JSON has no word for become texts: ``"nan"``, ``"inf"``, ``"-inf"``."""
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()] if value.ndim else plain(value.item())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(one) for one in value]
    return str(value)
