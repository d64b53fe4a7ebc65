"""Cases of Caffe2 operators and small nets: an init net and a predict net, read like any other files.

The scale and the zero point of every output are part of the recorded result: they are outputs of the graph, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import ModelFile, Tensor, data_type
from ...importers import read_model
from ...importers.caffe2_schema import messages
from .adapters import Trial
from .vectors import Case, Recorded, damaged

_REALS = frozenset("Y_scale alpha epsilon height_scale spatial_scale width_scale".split())
# Operators whose first operand alone is fed; the others come from the init net, as in models.
_LAYERS = frozenset(
    "Int8Conv Int8ConvRelu Int8ConvTranspose Int8FC Int8FCRelu Int8Gather Int8SpatialBN Int8SpatialBNRelu".split()
)
_FILLS = {"Int8GivenTensorFill": "u8", "Int8GivenIntTensorFill": "s32"}
_SERVER, _SERVER_NUMERICS = "DNNLOWP", {"": "caffe2-dnnlowp", "avx2": "caffe2-dnnlowp-avx2"}


@dataclass(frozen=True)
class _Call:
    """One operator of a case."""

    operator: str
    engine: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


def trial(case: Case) -> Trial:
    """A net of one operator, or of the operators that ``nodes`` lists, whose results are all outputs.

    Field ``processor`` of a case is ``avx2`` where that of the engine DNNLOWP had no VNNI.
    """
    parts = _Parts(case)
    predict, init = parts.nets()
    model = read_model(predict.SerializeToString(), init.SerializeToString())
    feeds = [given.value for given in parts.inputs if given.name not in parts.constants]
    server = len(parts.calls) == 1 and parts.calls[0].engine == _SERVER
    numerics = _SERVER_NUMERICS.get(str(case.fields.get("processor", ""))) if server else None
    return _with_parameters(model, feeds, parts.outputs, numerics)


def nets(case: Case) -> tuple[Any, Any]:
    """The predict net and the init net of a case, NetDef messages."""
    return _Parts(case).nets()


class _Parts:
    """What a case is made of."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.inputs = [given for given in case.inputs() if given is not None]
        self.outputs = [given for given in case.outputs() if given is not None]
        self.calls = _calls(case, self.inputs, self.outputs)
        self.constants = {name for call in self.calls if call.operator in _LAYERS for name in call.inputs[1:]}
        self.values: dict[str, Any] = {}
        if len(self.calls) == 1 and self.calls[0].operator in _FILLS and self.inputs:
            # What is recorded as an input is an argument.
            self.values, self.inputs = {"values": self.inputs[0].value}, []
            self.calls = [replace(self.calls[0], inputs=[])]

    def nets(self) -> tuple[Any, Any]:
        """The predict net and the init net."""
        place = self.case.place
        init, predict = messages()["NetDef"](name="init"), messages()["NetDef"](name=self.case.identity)
        for given in self.inputs:
            _fill(init, given, filled=given.name in self.constants, place=place)
        predict.external_input.extend(given.name for given in self.inputs)
        predict.external_output.extend(given.name for given in self.outputs)
        for call in self.calls:
            operator = predict.op.add(type=call.operator, engine=call.engine, input=call.inputs, output=call.outputs)
            for name, value in {**call.attributes, **self.values}.items():
                _argument(operator.arg.add(name=name), name, value, place)
        return predict, init


def _calls(case: Case, inputs: Sequence[Recorded], outputs: Sequence[Recorded]) -> list[_Call]:
    entries = case.fields.get("nodes")
    if entries is None:
        names = [[given.name for given in side] for side in (inputs, outputs)]
        if names[0] and set(names[0]) & set(names[1]):
            raise damaged("an output is called like an input", case.place)
        entries = [{"operator": case.operator, "inputs": names[0], "outputs": names[1], **_of(case)}]
    if not isinstance(entries, list) or not entries:
        raise damaged("'nodes' is no list of operators", case.place)
    calls = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise damaged("a node is no object", case.place)
        call = _Call(
            entry.get("operator", ""),
            entry.get("engine") or "",
            entry.get("inputs", []),
            entry.get("outputs", []),
            entry.get("attributes") or {},
        )
        texts = [call.operator, call.engine, *call.inputs, *call.outputs, *call.attributes]
        if not all(isinstance(text, str) for text in texts) or not isinstance(call.attributes, dict):
            raise damaged("a node needs texts as names and an object of attributes", case.place)
        calls.append(call)
    return calls


def _of(case: Case) -> dict[str, Any]:
    return {"engine": case.fields.get("engine", ""), "attributes": case.attributes}


def _parameters(given: Recorded, place: str) -> tuple[np.float32, int] | None:
    """Scale and zero point that the manifest says of an operand."""
    exact, zero_point = given.fields.get("scale_hex"), given.fields.get("zero_point", 0)
    scale = given.fields.get("scale")
    try:
        if scale is None and exact is None:
            return None
        return np.float32(float(scale or 0) if exact is None else float.fromhex(exact)), int(zero_point)
    except (TypeError, ValueError, OverflowError):
        raise damaged(f"scale and zero point of '{given.name}' are no numbers", place) from None


def _fill(init: Any, given: Recorded, filled: bool, place: str) -> None:
    """A fill of the init net: a constant, or without values the declaration of an input."""
    parameters, dtype = _parameters(given, place), given.dtype.name
    kinds = {
        ("u8", True): "Int8GivenTensorFill",
        ("s32", True): "Int8GivenIntTensorFill",
        ("f32", False): "GivenTensorFill",
        ("s32", False): "GivenTensorIntFill",
        ("s64", False): "GivenTensorInt64Fill",
    }
    kind = kinds.get((dtype, parameters is not None))
    if kind is None:
        raise UnsupportedError("BT-VECTORS-TYPE", f"no fill makes '{given.name}' of {dtype}", place=place)
    operator = init.op.add(type=kind, output=[given.name])
    operator.arg.add(name="shape").ints.extend(given.value.shape)
    if parameters is not None:
        operator.arg.add(name="Y_scale").f = float(parameters[0])
        operator.arg.add(name="Y_zero_point").i = parameters[1]
    if filled:
        _argument(operator.arg.add(name="values"), "values", given.value, place)


def _argument(argument: Any, name: str, value: Any, place: str) -> None:
    """JSON does not tell 1 from 1.0."""
    try:
        if isinstance(value, np.ndarray):
            flat = value.reshape(-1)
            if flat.dtype == np.uint8:
                argument.s = flat.tobytes()
            elif flat.dtype.kind == "f":
                argument.floats.extend(flat.tolist())
            else:
                argument.ints.extend(flat.tolist())
        elif isinstance(value, str):
            argument.s = value.encode()
        elif isinstance(value, list):
            argument.ints.extend(value)
        elif name in _REALS or isinstance(value, float):
            argument.f = value
        else:
            argument.i = value
    except (TypeError, ValueError, OverflowError) as error:
        raise damaged(f"attribute '{name}' is {value!r}: {error}", place) from None


def _with_parameters(
    model: ModelFile, feeds: Sequence[np.ndarray], outputs: Sequence[Recorded], numerics: str | None
) -> Trial:
    """The trial, with scale and zero point of every quantized output as further outputs."""
    graph = model.graphs[0]
    tensors, results, expected = list(graph.tensors), list(graph.outputs), list(outputs)
    for given, index in zip(outputs, graph.outputs, strict=True):
        wanted = _parameters(given, f"output '{given.name}'")
        if wanted is None:
            continue
        found = graph.tensors[index].quantization
        scale = np.full(1, np.nan, np.float32) if found is None else found.scales.astype(np.float32)
        zero_point = np.full(1, -1, np.int64) if found is None else found.zero_points
        right: np.ndarray
        value: np.ndarray
        for role, value, right in (
            ("scale", scale, np.full(1, wanted[0], np.float32)),
            ("zero_point", zero_point, np.full(1, wanted[1], np.int64)),
        ):
            dtype = data_type(value.dtype.name)
            name = f"{given.name}:{role}"
            results.append(len(tensors))
            tensors.append(Tensor(name, dtype.name, value.shape, data=value))
            expected.append(Recorded(name, dtype, right))
    graph = replace(graph, tensors=tuple(tensors), outputs=tuple(results))
    return Trial(replace(model, graphs=(graph,)), feeds, expected, numerics=numerics)
