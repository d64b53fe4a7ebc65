"""Models of binary32 numbers made into models of binary16 ones: whole, or node by node with casts of the file's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

_HALF = "tensor(float16)"


def halved(content: bytes, rng: np.random.Generator, share: float) -> bytes:
    """The model with a share of its nodes on binary16 numbers.

    Args:
        content: a model whose nodes all have schemas.
        rng: chooses the nodes.
        share: 1 makes the inputs and outputs of the graph binary16, too; less leaves them, and casts stand between.
    """
    model = onnx.load_from_string(content)
    model = onnx.shape_inference.infer_shapes(model)
    graph = model.graph
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    types = _types(graph)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    whole = share >= 1
    halves: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    made = []
    given = {info.name for info in graph.input}
    results = {info.name for info in graph.output}
    # What is binary16 under its own name.
    turned: set[str] = {name for name in given if types.get(name) == TensorProto.FLOAT} if whole else set()

    def half(name: str) -> str:
        if name in turned:
            return name
        if name not in halves:
            halves[name] = f"{name}_half"
            if name in constants and rng.random() < 0.8:
                array = numpy_helper.to_array(constants[name])
                with np.errstate(over="ignore"):
                    made.append(numpy_helper.from_array(array.astype(np.float16), halves[name]))
            else:
                nodes.append(helper.make_node("Cast", [name], [halves[name]], to=TensorProto.FLOAT16))
        return halves[name]

    singles: dict[str, str] = {}

    def single(name: str) -> str:
        if name not in turned:
            return name
        if name not in singles:
            singles[name] = f"{name}_single"
            nodes.append(helper.make_node("Cast", [name], [singles[name]], to=TensorProto.FLOAT))
        return singles[name]

    for node in graph.node:
        variable = _variables(node, opsets, types)
        if not variable or (not whole and rng.random() >= share):
            node.input[:] = [single(name) if name else "" for name in node.input]
            nodes.append(node)
            continue
        inputs, outputs = (
            [kind in variable and types.get(name) == TensorProto.FLOAT for name, kind in zip(names, kinds, strict=True)]
            for names, kinds in _formal(node, opsets)
        )
        node.input[:] = [
            half(name) if is_half else single(name) if name else ""
            for name, is_half in zip(node.input, inputs, strict=True)
        ]
        after = []
        for position, is_half in enumerate(outputs):
            name = node.output[position]
            if not is_half or not name:
                continue
            if whole or (name not in results and rng.random() < 0.5):
                turned.add(name)
            else:
                node.output[position] = halves[name] = f"{name}_half"
                after.append(helper.make_node("Cast", [halves[name]], [name], to=TensorProto.FLOAT))
        nodes += [node, *after]
    for info in (*graph.input, *graph.output):
        if info.name in turned:
            info.type.tensor_type.elem_type = TensorProto.FLOAT16
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(made)
    read = {name for node in nodes for name in node.input} | results
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return bytes(model.SerializeToString())


def fed(content: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What to feed the new model, from what the old one was fed."""
    model = onnx.load_from_string(content)
    constants = {tensor.name for tensor in model.graph.initializer}
    infos = [info for info in model.graph.input if info.name not in constants]
    kinds = [helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type) for info in infos]
    with np.errstate(over="ignore"):
        return [array.astype(kind) for array, kind in zip(feeds, kinds, strict=True)]


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    infos = (*graph.input, *graph.output, *graph.value_info)
    found = {info.name: info.type.tensor_type.elem_type for info in infos}
    return found | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _formal(node: onnx.NodeProto, opsets: Mapping[str, int]) -> list[tuple[list[str], list[str]]]:
    """Names and type variables of the node's inputs, and of its outputs."""
    schema = defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    return [
        (list(names), [formals[min(position, len(formals) - 1)].type_str for position in range(len(names))])
        for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs))
    ]


def _variables(node: onnx.NodeProto, opsets: Mapping[str, int], types: Mapping[str, int]) -> set[str]:
    """The type variables of the node that are binary32 and may be binary16."""
    try:
        schema = defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except defs.SchemaError:
        return set()
    may = {entry.type_param_str for entry in schema.type_constraints if _HALF in entry.allowed_type_strs}
    used = {
        kind
        for names, kinds in _formal(node, opsets)
        for name, kind in zip(names, kinds, strict=True)
        if types.get(name) == TensorProto.FLOAT
    }
    return set() if node.op_type in ("Cast", "If", "Loop") else used & may


def branched(content: bytes, rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """The model with all nodes in both branches of an If, and what feeds the inputs that this adds.

    Some constants go along. Half of the models have a product of binary16 numbers outside, whose weights are widened.
    """
    model = onnx.load_from_string(content)
    graph = model.graph
    inner = [tensor for tensor in graph.initializer if rng.random() < 0.5]
    names = {tensor.name for tensor in inner}
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    branch = helper.make_graph(list(graph.node), "branch", [], list(graph.output), inner)
    branch.value_info.extend(graph.value_info)
    results = [info.name for info in graph.output]
    del graph.node[:], graph.value_info[:], graph.initializer[:]
    graph.node.append(helper.make_node("If", ["chosen"], results, then_branch=branch, else_branch=branch))
    graph.initializer.extend(kept)
    graph.input.append(helper.make_tensor_value_info("chosen", TensorProto.BOOL, []))
    feeds = [np.array(rng.random() < 0.5)]
    if rng.random() < 0.5:
        graph.node.append(helper.make_node("MatMul", ["beside", "weights"], ["product"]))
        graph.initializer.append(numpy_helper.from_array(rng.standard_normal((4, 3)).astype(np.float16), "weights"))
        graph.input.append(helper.make_tensor_value_info("beside", TensorProto.FLOAT16, [2, 4]))
        graph.output.append(helper.make_tensor_value_info("product", TensorProto.FLOAT16, None))
        feeds.append(rng.standard_normal((2, 4)).astype(np.float16))
    return model.SerializeToString(), feeds
