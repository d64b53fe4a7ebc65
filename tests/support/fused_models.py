"""ONNX Runtime's optimised graphs: their structure in bittrue's words, and the value of every tensor in them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import bittrue
from bittrue.graph import Graph, Node
from bittrue.operators import find

from .differential import assert_same
from .onnx_models import options

# What changes neither integers nor which nodes there are for them: fusions of real operators, moved transposes.
_OFF = ("ConvActivationFusion", "GemmActivationFusion", "MatmulTransposeFusion", "SkipLayerNormFusion")
_OFF += ("TransposeOptimizer",)
# Real sums whose order depends on the layout that the runtime chooses for the whole graph: not seen in a plain run.
_LAID_OUT = ("conv", "conv_transpose", "matmul", "average_pool")
_IGNORED = (
    "computed",
    "computed_weights",
    "domain",
    "kernel_shape",
    "auto_pad",
    "made",
    "saturate",
    "precision",
    "storage_order",
)


def optimised(content: bytes, level: str = "EXTENDED", off: Sequence[str] = _OFF, **entries: str) -> bytes:
    """The model as ONNX Runtime runs it. Raises what the runtime raises when it refuses the model."""
    with tempfile.TemporaryDirectory() as folder:
        chosen, path = options(level, **entries), Path(folder) / "model.onnx"
        chosen.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"], disabled_optimizers=list(off))
        return path.read_bytes()


def all_values(content: bytes, feeds: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor of the model `content`, run as it is."""
    model = onnx.load_from_string(content)
    known = {value.name for value in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    chosen = options()
    chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), chosen, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    results = session.run(None, dict(zip(names, feeds, strict=True)))
    return {value.name: np.asarray(array) for value, array in zip(session.get_outputs(), results, strict=True)}


# -- structure -----------------------------------------------------------------------------------------------------
@dataclass
class _Writer:
    """Writes what computes a tensor as text, constants by content."""

    graph: Graph
    writers: dict[int, tuple[Node, int]] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.graph.nodes:
            self.writers |= {index: (node, place) for place, index in enumerate(node.outputs)}

    def text(self, index: int | None) -> str:
        if index is None:
            return "-"
        if index not in self.done:
            text = self._text(index)
            self.done[index] = text if len(text) < 3000 else "#" + hashlib.md5(text.encode()).hexdigest()
        return self.done[index]

    def _text(self, index: int) -> str:
        tensor, value = self.graph.tensors[index], self._value(index)
        if value is not None:
            return _constant(tensor.dtype, value)
        if index in self.graph.inputs:
            return f"${tensor.name}"
        node, place = self.writers[index]
        if node.operator == "identity":
            return self.text(node.inputs[0])
        if node.operator == "transpose":
            return self._transposed(node)
        attributes = {k: _plain(k, v) for k, v in sorted(node.attributes.items()) if k not in _IGNORED}
        if node.operator in ("quantize", "dequantize"):
            attributes = {"type": tensor.dtype}
        operands = [self.text(i) for i in node.inputs]
        # A transposed matrix is the same as one that the product transposes.
        if node.operator == "matmul" and attributes.get("transpose_b") is True:
            attributes["transpose_b"], operands[1] = False, self._turned(node.inputs[1], [1, 0])
        parts = ", ".join(operands)
        return f"{node.operator}{place or ''}{attributes or ''}({parts})"

    def _value(self, index: int | None) -> np.ndarray | None:
        """A constant, or constants that are quantized."""
        if index is None or self.graph.tensors[index].is_constant:
            return None if index is None else self.graph.tensors[index].values()
        node = self.writers[index][0] if index in self.writers else None
        if node is None or node.operator != "quantize" or len(node.inputs) != 3:
            return None
        x, size, zero = map(self._value, node.inputs)
        if x is None or size is None or zero is None:
            return None
        info = np.iinfo(zero.dtype)
        quantized = np.rint(np.clip(x / size, -1e6, 1e6)) + zero.astype(np.int64)
        return np.asarray(np.clip(quantized, info.min, info.max).astype(zero.dtype))

    def _transposed(self, node: Node) -> str:
        order, before = None, None
        while True:
            given = node.inputs[1] if len(node.inputs) > 1 else None
            axes = None if given is None else self.graph.tensors[given].values()
            if axes is None:
                return f"transpose({self.text(node.inputs[0])})"
            order = axes if order is None else axes[order]
            source = node.inputs[0]
            before = self.writers.get(source) if source is not None else None
            if before is None or before[0].operator != "transpose":
                return self._turned(source, [int(axis) for axis in order])
            node = before[0]

    def _turned(self, index: int | None, order: list[int]) -> str:
        """A transposed tensor; constants are transposed, before a dequantization if there is one for all of them."""
        value = self._value(index)
        if value is not None and index is not None:
            return _constant(self.graph.tensors[index].dtype, value.transpose(order))
        node = self.writers[index][0] if index in self.writers else None
        if node is not None and node.operator == "transpose" and order == [1, 0]:
            # There and back.
            return self.text(node.inputs[0])
        if node is not None and node.operator == "dequantize" and node.inputs[0] is not None:
            values = [self._value(i) for i in node.inputs]
            if all(v is not None and (v.size == 1 or not place) for place, v in enumerate(values)):
                parts = [self._turned(node.inputs[0], order), *map(self.text, node.inputs[1:])]
                return f"dequantize{{'type': 'f32'}}({', '.join(parts)})"
        return f"transpose[{order}]({self.text(index)})"


def _constant(dtype: str, values: np.ndarray) -> str:
    shape = [] if values.size == 1 else list(values.shape)
    shown = f"={values.reshape(-1)[0]}" if values.size == 1 else ""
    return f"[{dtype}{shape}{shown} {hashlib.md5(values.tobytes()).hexdigest()[:8]}]"


def _plain(name: str, value: object) -> object:
    """Lists of defaults as the empty list, reals as binary32."""
    neutral = {"strides": 1, "dilations": 1, "pads": 0}
    if isinstance(value, tuple) and name in neutral and all(v == neutral[name] for v in value):
        return ()
    return float(np.float32(value)) if isinstance(value, float) else value


def structure(graph: Graph) -> dict[str, str]:
    """Output name to a text of everything that it is computed from."""
    writer = _Writer(graph)
    return {graph.tensors[i].name: writer.text(i) for i in graph.outputs}


# -- bytes ---------------------------------------------------------------------------------------------------------
@dataclass
class Tally:
    """What a comparison of whole models saw."""

    tensors: int = 0
    values: int = 0
    inexact: int = 0
    operators: dict[str, int] = field(default_factory=dict)


def compare_steps(session: bittrue.Session, theirs: Mapping[str, np.ndarray], tally: Tally) -> None:
    """Every exact step, run on the runtime's own values, gives the runtime's bytes.

    Args:
        session: of the model that `theirs` was made from.
        theirs: every tensor of the runtime's optimised model, and what was fed.
        tally: counts what was compared.
    """
    plan = session.plan
    for step in plan.steps:
        operands = [_operand(plan, index, theirs) for index in step.inputs]
        names = [plan.tensors[index].name for index in step.outputs]
        if any(i is not None and o is None for i, o in zip(step.inputs, operands, strict=True)):
            continue
        if not any(name in theirs for name in names):
            continue
        if step.inexact or (step.operator in _LAID_OUT and operands[0].dtype.kind == "f"):
            tally.inexact += 1
            continue
        operator = find(step.operator)
        assert operator is not None
        for name, value in zip(names, operator.reference(step, operands), strict=True):
            if name in theirs:
                assert_same(f"{name} ({step.operator})", value, theirs[name])
                tally.tensors += 1
                tally.values += value.size
        tally.operators[step.operator] = tally.operators.get(step.operator, 0) + 1


def _operand(plan: bittrue.Plan, index: int | None, theirs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    if index is None:
        return None
    tensor = plan.tensors[index]
    return tensor.value if tensor.value is not None else theirs.get(tensor.name)


def compare_outputs(
    session: bittrue.Session,
    feeds: Sequence[np.ndarray],
    theirs: Mapping[str, np.ndarray],
    unsure: Sequence[str] = (),
) -> int:
    """Outputs that follow from exact steps alone are equal in bytes; how many there are.

    `unsure`: operators that do not count as exact.
    """
    inexact: set[int] = set()
    for step in session.plan.steps:
        taken = inexact.intersection(i for i in step.inputs if i is not None)
        if step.inexact or step.operator in unsure or taken:
            inexact.update(step.outputs)
    results = session.run(*feeds)
    exact = [i for i in session.plan.outputs if i not in inexact]
    for index in exact:
        name = session.plan.tensors[index].name
        assert_same(name, results[name], theirs[name])
    return len(exact)
