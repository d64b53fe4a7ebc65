"""Devices that compute one operator in several ways: which of them depends on something that the model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import BittrueError
from ..suite import SuiteCase
from .candidates import Answers, Candidate, key_of

# Fewer answers say nothing about a part.
_LEAST_ANSWERS = 3
# More parts than so many explain anything.
_MOST_PARTS = 3


@dataclass(frozen=True)
class Answered:
    """A question that was answered with outputs, which have this key."""

    case: SuiteCase
    key: object


@dataclass(frozen=True)
class Part:
    """Questions alike in something, and the numerics that give all their answers.

    Attributes:
        where: what they have in common: ``"weights per channel"``.
        numerics: names.
        answers: how many there were.
    """

    where: str
    numerics: tuple[str, ...]
    answers: int


def parts_of(answered: Sequence[Answered], candidates: Sequence[Candidate], known: Answers) -> tuple[Part, ...]:
    """The split into the fewest parts of which each has a numerics; empty where no single property gives one.

    Args:
        answered: all questions with outputs.
        candidates: numerics.
        known: what they give.
    """
    giving = [frozenset(c.name for c in candidates if _gives(c, one, known)) for one in answered]
    if not all(giving):
        return ()
    found: list[tuple[Part, ...]] = []
    described = [properties(one.case) for one in answered]
    for name in dict.fromkeys(name for words in described for name in words):
        groups: dict[str, list[frozenset[str]]] = {}
        for words, names in zip(described, giving, strict=True):
            groups.setdefault(words.get(name, f"no {name}"), []).append(names)
        common = {where: frozenset.intersection(*names) for where, names in groups.items()}
        if (
            1 < len(groups) <= _MOST_PARTS
            and all(common.values())
            and all(len(names) >= _LEAST_ANSWERS for names in groups.values())
        ):
            order = [candidate.name for candidate in candidates]
            found.append(
                tuple(
                    Part(where, tuple(sorted(names, key=order.index)), len(groups[where]))
                    for where, names in common.items()
                )
            )
    return min(found, key=len, default=())


def _gives(candidate: Candidate, one: Answered, known: Answers) -> bool:
    outputs = known.outputs(candidate, one.case)
    return outputs is not None and key_of(outputs) == one.key


def properties(case: SuiteCase) -> Mapping[str, str]:
    """What a device may look at before it chooses how to compute: property to its value in words."""
    try:
        graph = case.model.graph
    except BittrueError:
        return {}
    found = {}
    constants = [tensor.quantization for tensor in graph.tensors if tensor.is_constant and tensor.quantization]
    if constants:
        several = any(quantization.scales.size > 1 for quantization in constants)
        found["weights"] = f"weights per {'channel' if several else 'tensor'}"
    for node in graph.nodes:
        for name, value in node.attributes.items():
            said = _word(value)
            if said:
                found.setdefault(f"{node.operator} {name}", f"{name} {said}")
        for position, index in enumerate(node.inputs):
            kind = "absent" if index is None else "constant" if graph.tensors[index].is_constant else "computed"
            found.setdefault(f"{node.operator} operand {position}", f"operand {position} {kind}")
    for kind, indices in (("input", graph.inputs), ("output", graph.outputs)):
        points = [
            tensor.quantization.zero_points
            for tensor in (graph.tensors[index] for index in indices)
            if tensor.quantization is not None
        ]
        if points:
            zero = all(not np.any(point) for point in points)
            found[f"{kind} zero point"] = f"{kind} zero point {'0' if zero else 'not 0'}"
    shape = graph.tensors[graph.outputs[0]].shape
    found["axes"] = f"{len(shape)} axes"
    if shape:
        found["batch"] = f"batch {'1' if shape[0] == 1 else 'above 1'}"
    return found


def _word(value: object) -> str:
    """Numbers are 0, 1, or more; what is no single number or word is left out."""
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return str(value) if value in (0, 1) else "below 0" if value < 0 else "above 1"
    return ""
