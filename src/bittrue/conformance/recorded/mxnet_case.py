"""Cases of MXNet operators: a symbol of one node with its parameters, read like any other file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...importers import read_model
from ...importers.mxnet_params import TYPES
from .adapters import Trial
from .vectors import Case, Recorded, damaged

_NUMERICS = {"onednn": "mxnet", "onednn-avx2": "mxnet-avx2", "native": "mxnet-native"}
_NUMBERS = {name: number for number, name in enumerate(TYPES)}
# Operands of fused nodes that are no parameters.
_COMPUTED = ("data", "sum")
_DEPENDS = {"int16 pair saturation": "the processor: kernels that add pairs of products in 16 bits"}


def trial(case: Case) -> Trial:
    """A symbol of one node that is the case's operator; weights and ranges of fused nodes are parameters.

    Fields of the case: ``path`` (onednn, onednn-avx2 or native) and ``fused_ops`` among the attributes.
    """
    inputs = [given for given in case.inputs() if given is not None]
    outputs = case.outputs()
    attributes = dict(case.attributes)
    fused = attributes.pop("fused_ops", None)
    names = [given.name for given in inputs]
    if len(set(names)) != len(names) or not all(names):
        raise damaged("operands need names of their own", case.place)
    computed = _COMPUTED if fused is not None else names
    model = symbol(case.operator, attributes, inputs, computed, len(outputs), fused, case.place)
    parameters = {f"arg:{given.name}": given.value for given in inputs if given.name not in computed}
    notes = str(case.fields.get("notes") or "")
    return Trial(
        read_model(model, params_file(parameters)),
        [given.value for given in inputs if given.name in computed],
        outputs,
        _NUMERICS.get(str(case.fields.get("path", "onednn"))),
        next((reason for note, reason in _DEPENDS.items() if note in notes), ""),
    )


def symbol(
    operator: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[Recorded],
    computed: Sequence[str],
    outputs: int,
    fused: Any,
    place: str,
) -> bytes:
    """A symbol JSON of one node; `fused`: the operators inside of it."""
    nodes: list[dict[str, Any]] = []
    for given in inputs:
        hints = {"__dtype__": str(_NUMBERS[given.dtype.name]), "__shape__": str(tuple(given.value.shape))}
        nodes.append({"op": "null", "name": given.name, "attrs": hints if given.name in computed else {}, "inputs": []})
    node: dict[str, Any] = {
        "op": operator,
        "name": "node",
        "attrs": {key: _text(value, place) for key, value in attributes.items() if value is not None},
        "inputs": [[i, 0, 0] for i in range(len(inputs))],
    }
    if fused is not None:
        node["subgraphs"] = [_chain(fused, place)]
    nodes.append(node)
    heads = [[len(inputs), i, 0] for i in range(outputs)]
    content = {"nodes": nodes, "arg_nodes": list(range(len(inputs))), "heads": heads}
    return json.dumps({**content, "attrs": {"mxnet_version": ["int", 10901]}}).encode()


def _chain(fused: Any, place: str) -> dict[str, Any]:
    """The subgraph of a fused node: every operator reads the one before it."""
    if not isinstance(fused, list) or not all(isinstance(one, dict) for one in fused):
        raise damaged("'fused_ops' is no list of operators", place)
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "data0", "inputs": []}]
    for number, one in enumerate(fused):
        attributes = one.get("attrs") or {}
        if not isinstance(attributes, dict):
            raise damaged("an operator's 'attrs' are no object", place)
        nodes.append(
            {
                "op": str(one.get("op")),
                "name": f"inner{number}",
                "attrs": {str(key): _text(value, place) for key, value in attributes.items()},
                "inputs": [[len(nodes) - 1, 0, 0]],
            }
        )
    return {"nodes": nodes, "arg_nodes": [0], "heads": [[len(nodes) - 1, 0, 0]]}


def _text(value: Any, place: str) -> str:
    """An attribute as symbols hold it."""
    if isinstance(value, list):
        return str(tuple(value))
    if not isinstance(value, bool | int | float | str):
        raise UnsupportedError("BT-VECTORS-ATTRIBUTE", f"an attribute is {str(value)[:60]}", place=place)
    return str(value)


def params_file(parameters: Mapping[str, np.ndarray]) -> bytes:
    """A .params file with these arrays.

    >>> len(params_file({"arg:w": np.zeros(3, np.int8)}))
    80
    """
    parts = [struct.pack("<QQQ", 0x112, 0, len(parameters))]
    for array in parameters.values():
        kind = _NUMBERS[{"float32": "f32", "int8": "s8", "uint8": "u8", "int32": "s32"}[array.dtype.name]]
        shape = array.shape
        parts.append(struct.pack(f"<Iii{len(shape)}qiii", 0xF993FAC9, 0, len(shape), *shape, 1, 0, kind))
        parts.append(np.ascontiguousarray(array).tobytes())
    parts.append(struct.pack("<Q", len(parameters)))
    for name in parameters:
        parts.append(struct.pack("<Q", len(name.encode())) + name.encode())
    return b"".join(parts)
