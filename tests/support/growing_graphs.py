"""What grows random ONNX graphs node by node: names, constants, and which results a model has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper


class GrowingGraph:
    """Nodes, constants and inputs so far, and the names of `outputs` besides those that nothing reads."""

    def __init__(self, rng: np.random.Generator, opset: int) -> None:
        self.rng, self.opset = rng, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: set[str] = set()
        self.count = 0

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def reals(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def constant(self, array: Any) -> str:
        name = self.name("c")
        self.constants[name] = np.asarray(array)
        return name

    def several(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """The results of a new node."""
        names = [self.name(operator.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, self.name("n"), **attributes))
        return names

    def read(self) -> set[str]:
        return {name for node in self.nodes for name in node.input}

    def results(self) -> list[str]:
        """What nothing reads, and `outputs`."""
        read = self.read()
        names = [name for node in self.nodes for name in node.output]
        return [name for name in names if name in self.outputs or name not in read]
