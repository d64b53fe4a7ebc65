"""A case taken apart into the arrays that every format writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import BittrueError, UnsupportedError
from ...graph import DATA_TYPES, DataType, Graph, Quantization, data_type
from ..suite import SUITE_VERSION, SuiteCase
from .describe import description, plain, plan_values, type_name
from .worked import Worked

# What a part is to the operator; the last four belong to accumulators and are written when asked for.
ROLES = ("input", "constant", "output", "accumulator", "multiplier", "exponent", "factor")


@dataclass(frozen=True, eq=False)
class Part:
    """One array of a case.

    Attributes:
        role: one of `ROLES`.
        number: among the parts of its role; for the four of accumulators that of their output.
        name: of the tensor.
        dtype: short type name; narrow integers take a byte per element in `value`.
        value: the array.
        quantization: of the tensor; None for tensors without.
        position: among the inputs or outputs of the case's only operator; None where it has several operators.
    """

    role: str
    number: int
    name: str
    dtype: str
    value: np.ndarray
    quantization: Quantization | None = None
    position: int | None = None

    @property
    def stem(self) -> str:
        """What files and identifiers call it: ``"input-0"``."""
        return f"{self.role}-{self.number}"

    @property
    def type(self) -> DataType:
        return data_type(self.dtype)

    def facts(self) -> dict[str, Any]:
        """Name, type, shape and quantization under the names that manifests use."""
        found: dict[str, Any] = {"name": self.name, "dtype": self.type.title, "shape": list(self.value.shape)}
        if self.quantization is not None:
            found["scale"] = plain(self.quantization.scales.reshape(-1))
            found["zero_point"] = plain(self.quantization.zero_points.reshape(-1))
            found["axis"] = self.quantization.axis
        return found


@dataclass(frozen=True, eq=False)
class Entry:
    """A case and what one numerics answers to it, worked out once for all formats.

    Attributes:
        with_accumulators: whether accumulators, multipliers, exponents and the plan are wanted.
    """

    case: SuiteCase
    numerics: str
    with_accumulators: bool = False
    worked: Worked = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "worked", Worked(self.case, self.numerics))

    @property
    def must_fail(self) -> bool:
        """A device must refuse the case; it has no outputs."""
        return bool(self.case.rejects)

    @cached_property
    def description(self) -> dict[str, Any]:
        """`describe` of the case, without what the numerics makes of it."""
        return description(self.case, None)

    @cached_property
    def plan(self) -> dict[str, Any] | None:
        """The decisions of the numerics as plain data; None for cases that must be refused."""
        return None if self.must_fail else plan_values(self.worked.plan)

    @cached_property
    def header(self) -> dict[str, Any]:
        """What every format says about a case, under the names that manifests use."""
        case = self.case
        found: dict[str, Any] = {
            "id": case.identity,
            "operator": case.operator,
            "types": case.types,
            "aim": case.aim,
            "note": case.note,
            "numerics": self.numerics,
            "sha256": case.sha256,
            "attributes": self.description["attributes"],
            "expected_failure": self.must_fail,
        }
        if self.must_fail:
            found["expected_failure_desc"] = case.rejects
            found["numerics_refuses"] = self.worked.refuses
        if self.with_accumulators and self.plan is not None:
            found["plan"] = self.plan
        return found

    @cached_property
    def graph(self) -> Graph | None:
        """None for files that must be refused and that bittrue's reader refuses."""
        try:
            return self.case.model.graph
        except BittrueError:
            if not self.must_fail:
                raise
            return None

    @cached_property
    def inputs(self) -> tuple[Part, ...]:
        """What is fed, in the order of the model's inputs."""
        known = self._facts
        order = [name for name in known if name in self.case.inputs]
        order += [name for name in self.case.inputs if name not in known]
        return tuple(self._part("input", i, name, self.case.inputs[name]) for i, name in enumerate(order))

    @cached_property
    def constants(self) -> tuple[Part, ...]:
        """Weights, biases, axes and what else the file holds, in the order of the operator's inputs."""
        if self.graph is None:
            return ()
        by_name = {tensor.name: tensor for tensor in self.graph.tensors}
        names = [tensor["name"] for tensor in self.description["tensors"] if tensor["role"] == "constant"]
        found: list[Part] = []
        for name in names:
            try:
                value = by_name[name].values()
            except ValueError:
                # A file that must be refused may claim a shape that its bytes do not fill.
                continue
            found.append(self._part("constant", len(found), name, value))
        return tuple(found)

    @cached_property
    def outputs(self) -> tuple[Part, ...]:
        """The expected ones, in the order of the model's outputs; none for a case that must be refused."""
        return tuple(self._part("output", i, name, v) for i, (name, v) in enumerate(self.worked.outputs.items()))

    @cached_property
    def sums(self) -> tuple[Part, ...]:
        """Accumulators with multipliers, exponents or factors, where they are wanted and the operator has them."""
        if not self.with_accumulators:
            return ()
        numbers = {name: i for i, name in enumerate(self.worked.outputs)}
        found: list[Part] = []
        for name, sums in self.worked.accumulators.items():
            number = numbers.get(name)
            if number is None:
                continue
            found.append(Part("accumulator", number, name, type_name(sums.values.dtype), sums.values))
            for role in ("multiplier", "exponent", "factor"):
                array = getattr(sums, role)
                if array is not None and array.dtype.kind in "iu":
                    # Encoded integers have at most 31 bits and a sign.
                    found.append(Part(role, number, name, "s32", array.reshape(-1).astype(np.int32)))
                elif array is not None:
                    found.append(Part(role, number, name, type_name(array.dtype), array.reshape(-1)))
        return tuple(found)

    @property
    def parts(self) -> Iterator[Part]:
        """All arrays."""
        for group in (self.inputs, self.constants, self.outputs, self.sums):
            yield from group

    @cached_property
    def operands(self) -> Sequence[Part | None]:
        """Inputs and constants in the operator's order, None for absent ones; in their own where it is several."""
        known: dict[int, Part] = {p.position: p for p in (*self.inputs, *self.constants) if p.position is not None}
        if len(known) != len(self.inputs) + len(self.constants):
            return [*self.inputs, *self.constants]
        return [known.get(position) for position in range(max(known, default=-1) + 1)]

    @cached_property
    def _facts(self) -> Mapping[str, Mapping[str, Any]]:
        return {tensor["name"]: tensor for tensor in self.description["tensors"]}

    @cached_property
    def _quantizations(self) -> Mapping[str, Quantization | None]:
        return {} if self.graph is None else {tensor.name: tensor.quantization for tensor in self.graph.tensors}

    def _part(self, role: str, number: int, name: str, value: np.ndarray) -> Part:
        facts = self._facts.get(name, {})
        dtype = facts.get("dtype", type_name(value.dtype))
        value = np.ascontiguousarray(value).reshape(value.shape)
        # Files that must be refused may say one type and be fed another.
        if dtype not in DATA_TYPES or data_type(dtype).numpy != value.dtype:
            dtype = type_name(value.dtype)
        if value.dtype.kind == "O":
            raise UnsupportedError(
                "BT-VECTORS-TYPE", f"texts ('{name}') are in no vector format", place=f"case '{self.case.identity}'"
            )
        position = facts.get("position") if "nodes" not in self.description else None
        return Part(role, number, name, dtype, value, self._quantizations.get(name), position)


def suite_facts(entry: Entry) -> dict[str, Any]:
    """Which suite and numerics a folder of vectors comes from, for the heads of manifests."""
    return {
        "suite": entry.case.suite,
        "suite_version": SUITE_VERSION,
        "numerics": entry.numerics,
    }
