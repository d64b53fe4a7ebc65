"""A check rule: its page, and the function that looks for it. One file per rule under `bittrue.check.rules`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import BittrueError
from ..graph import Graph, ModelFile, Node, Tensor
from ..numerics import Numerics
from ..plan import Plan
from ..plan.first_plan import first_plan
from .finding import Finding


@dataclass(frozen=True, eq=False)
class Subject:
    """What is checked.

    Attributes:
        file: the model.
        numerics: the runtime that it is checked for.
        shapes: of inputs by name, for models that leave them open.
    """

    file: ModelFile
    numerics: Numerics
    shapes: Mapping[str, Sequence[int] | int] = field(default_factory=dict)

    @property
    def format(self) -> str:
        return self.file.format

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return self.file.graphs

    def nodes(self, *sources: str) -> Iterator[tuple[Graph, Node]]:
        """Every node of every graph, or those of some operators (as the file calls them)."""
        for graph in self.graphs:
            for node in graph.nodes:
                if not sources or node.source in sources:
                    yield graph, node

    @cached_property
    def planned(self) -> Plan | BittrueError:
        """The main graph's plan under `numerics`, for what only a plan knows (bounds, multipliers); or why not."""
        try:
            plan = first_plan(
                self.graphs[0], self.numerics, shapes=self.shapes, graphs=self.graphs, notes=self.file.notes
            )
        except BittrueError as error:
            return error
        return plan.later.error if plan.later is not None and plan.later.error is not None else plan


@dataclass(frozen=True)
class Rule:
    """One rule and its page.

    Attributes:
        code: ``"BT204"``: 1xx the file, 2xx types, ranges and zero points of the LiteRT 8-bit specification, 3xx its
            restrictions per operator, 4xx ONNX QuantizeLinear/DequantizeLinear, 5xx what runtimes do beyond or against
            the specifications, 6xx hazards.
        name: short, in words with hyphens.
        severity: the one that findings have as a rule.
        formats: formats that it applies to; empty for all.
        what: what it asks for, with the formula.
        why: what goes wrong otherwise.
        enforced: who checks it, who ignores it, who aborts; with the source.
        fix: how to fix a model.
        find: yields the findings of a subject.
        source: document or system, and whether it was read or run.
    """

    code: str
    name: str
    severity: str
    what: str
    why: str
    enforced: str
    fix: str
    find: Callable[[Subject], Iterator[Finding]]
    source: str
    formats: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Rule({self.code} {self.name}, {self.severity})"

    def to_dict(self) -> dict[str, Any]:
        """The page as plain data for JSON."""
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity,
            "formats": list(self.formats),
            "what": self.what,
            "why": self.why,
            "enforced": self.enforced,
            "fix": self.fix,
            "source": self.source,
        }

    def finding(
        self,
        message: str,
        *,
        graph: Graph | None = None,
        node: Node | None = None,
        tensor: Tensor | None = None,
        severity: str = "",
        place: str = "",
        expected: object = "",
        found: object = "",
        advice: str = "",
        numbers: dict[str, int | float | str] | None = None,
    ) -> Finding:
        """A finding of this rule."""
        return Finding(
            self.code,
            severity or self.severity,
            message,
            graph.name if graph is not None else "",
            node.index if node is not None else None,
            node.source if node is not None else "",
            tensor.name if tensor is not None else "",
            place,
            str(expected),
            str(found),
            advice,
            numbers or {},
        )
