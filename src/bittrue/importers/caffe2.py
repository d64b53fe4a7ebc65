"""Caffe2 networks to graphs: a predict net and its init net, NetDef messages in binary or text form.

The init net's fills become constants. What a predict net takes from outside and nobody fills is an input: of real
numbers, unless the init net declares it by a fill without values (a bittrue convention: NetDef messages cannot say what
scale and zero point an input has, and the runtime takes them from the blob that it is fed).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError
from ..graph import Graph, ModelFile, Tensor, find_disorder
from .caffe2_operators import GraphBuilder, Source, fills, map_operator
from .caffe2_operators.base import SERVER
from .caffe2_schema import messages
from .protobuf import parse

_MOST_NODES = 100_000
_WRITE_AGAIN = "the file is damaged or no Caffe2 network; fetch or export it again"
# Kinds of nets that run their operators one after the other, or with the same results.
_KINDS = frozenset(("", "simple", "dag", "async_dag", "async_scheduling", "async_simple", "simple_refcount"))
_ENGINES = frozenset(("", SERVER))
# Operators that the server engine has; it leaves others to the default one.
_OF_SERVER = frozenset(
    "Int8Add Int8AveragePool Int8BatchMatMul Int8ChannelShuffle Int8Concat Int8Conv Int8ConvRelu Int8Dequantize Int8FC "
    "Int8FCRelu Int8Gather Int8MaxPool Int8Mul Int8Quantize Int8Relu Int8Sigmoid Int8SpatialBN Int8SpatialBNRelu "
    "Int8Sum Int8SumRelu Int8Tanh".split()
)
_CPU = 0


def read_caffe2(network: np.ndarray, weights: np.ndarray | None) -> ModelFile:
    """Reads a Caffe2 network.

    Args:
        network: the predict net, a NetDef.
        weights: the init net, a NetDef; None when there is none.

    Raises:
        ModelFormatError: the bytes are no NetDef.
        InvalidModelError: the network contradicts itself, or the runtime refuses it.
        UnsupportedError: it uses operators, arguments or engines that bittrue does not know, or the package
            `protobuf` is missing.
    """
    predict = parse(messages()["NetDef"], network, "Caffe2 NetDef (predict net)")
    init = None if weights is None else parse(messages()["NetDef"], weights, "Caffe2 NetDef (init net)", "weights")
    size = int(network.size) + (0 if weights is None else int(weights.size))
    return _Reader(predict, init).read(size)


class _Reader:
    """State of one reading."""

    def __init__(self, predict: Any, init: Any) -> None:
        self._predict = predict
        self._init = init
        self._builder = GraphBuilder()
        self._notes: list[str] = []
        self._given: dict[str, fills.Filled] = {}
        self._inputs: list[int] = []

    def read(self, size: int) -> ModelFile:
        if not self._predict.op:
            raise InvalidModelError("BT-MODEL-EMPTY", "the predict net has no operators", advice=_WRITE_AGAIN)
        if self._init is not None:
            self._fills()
        _check_net(self._predict, "predict net")
        builder = self._builder
        known = set(self._predict.external_input)
        operators = list(self._predict.op)
        for name in self._predict.external_input:
            if name in builder.blobs:
                raise InvalidModelError("BT-CAFFE2-NAME", f"the external input '{name}' is given twice")
            self._external(name)
        for operator in operators:
            for name in operator.output:
                builder.writes[name] = builder.writes.get(name, 0) + 1
        for position, operator in enumerate(operators):
            self._operator(operator, position, bool(known))
        outputs = [self._output(name) for name in self._output_names()]
        disorder = find_disorder(builder.tensors, builder.nodes, self._inputs, outputs)
        if disorder is not None:
            tensor = builder.tensors[disorder.tensor].name
            raise InvalidModelError(disorder.code, disorder.message, place=f"{disorder.where}, tensor '{tensor}'")
        name = self._predict.name or "main"
        graph = Graph(name, tuple(builder.tensors), tuple(builder.nodes), tuple(self._inputs), tuple(outputs))
        return ModelFile("caffe2", "", (graph,), {}, tuple(self._notes), size)

    # -- blobs -----------------------------------------------------------------------------------------------------
    def _fills(self) -> None:
        """What the init net fills, in order: a later fill of a name counts."""
        _check_net(self._init, "init net")
        if not self._init.op and _has_more(self._init):
            message = "no init net: it has no fills"
            raise ModelFormatError("BT-CAFFE2-FORMAT", message, place="weights", advice=_WRITE_AGAIN)
        for position, operator in enumerate(self._init.op):
            source = self._source(operator, [], f"init net, operator {position}")
            if operator.type not in fills.FILLS:
                raise source.unsupported(
                    "BT-CAFFE2-OPERATOR",
                    f"the init net runs '{operator.type}', only fills are read there",
                    f"known: {', '.join(sorted(fills.FILLS))}; the model is the predict net, the init net its weights",
                )
            self._given[source.outputs[0] if source.outputs else ""] = fills.fill(source)

    def _external(self, name: str) -> int:
        """The tensor of a blob from outside: a constant, or an input."""
        builder, given = self._builder, self._given.get(name)
        if given is None:
            # Nobody says its shape, not even its rank.
            index = builder.add(Tensor(name, "f32", (0,), (-1,)))
            self._inputs.append(index)
        elif given.value is None:
            index = builder.add(Tensor(name, given.dtype, given.shape or (), quantization=given.quantization))
            self._inputs.append(index)
        else:
            value = np.ascontiguousarray(given.value)
            data = value.reshape(-1)
            index = builder.add(Tensor(name, given.dtype, value.shape, quantization=given.quantization, data=data))
        builder.blobs[name] = index
        return index

    def _blob(self, name: str, place: str, declared: bool) -> int:
        """The tensor that `name` stands for; where external inputs are not listed, unknown names are inputs."""
        if name in self._builder.blobs:
            return self._builder.blobs[name]
        if name in self._given or not declared:
            return self._external(name)
        raise InvalidModelError(
            "BT-NODE-ORDER",
            f"input '{name}' is neither computed before, nor filled, nor an external input",
            place=place,
            advice="pass the init net, too, or list the blob as an external_input",
        )

    def _output_names(self) -> list[str]:
        names = list(self._predict.external_output)
        if names:
            return names
        # Without a list: what nobody reads.
        read = {name for operator in self._predict.op for name in operator.input}
        found = dict.fromkeys(name for operator in self._predict.op for name in operator.output if name not in read)
        return list(found) or list(self._predict.op[-1].output)

    def _output(self, name: str) -> int:
        if name in self._builder.blobs:
            return self._builder.blobs[name]
        if name in self._given:
            return self._external(name)
        raise InvalidModelError("BT-CAFFE2-NAME", f"nothing computes the external output '{name}'")

    # -- operators -------------------------------------------------------------------------------------------------
    def _operator(self, operator: Any, position: int, declared: bool) -> None:
        if len(self._builder.nodes) >= _MOST_NODES:
            raise UnsupportedError("BT-NODES", f"more than {_MOST_NODES:,} nodes")
        place = f"node {len(self._builder.nodes)} ({operator.type}, operator {position})"
        inputs = [self._blob(name, place, declared) for name in operator.input]
        source = self._source(operator, inputs, f"operator {position}")
        if operator.type in fills.FILLS:
            # A constant of the predict net.
            filled = fills.fill(source)
            if filled.value is None:
                raise source.invalid("BT-CAFFE2-DATA", "argument 'values' is missing")
            self._given[source.outputs[0]] = filled
            self._constant(source.outputs[0], filled)
            return
        map_operator(source)

    def _constant(self, name: str, filled: fills.Filled) -> None:
        builder = self._builder
        index = builder.write(name, filled.dtype, filled.quantization)
        value = np.ascontiguousarray(filled.value)
        tensor = builder.tensors[index]
        builder.tensors[index] = Tensor(
            tensor.name, filled.dtype, value.shape, quantization=filled.quantization, data=value.reshape(-1)
        )

    def _source(self, operator: Any, inputs: list[int], label: str) -> Source:
        name = operator.name or (operator.output[0] if operator.output else label)
        engine = operator.engine
        arguments: dict[str, Any] = {}
        source = Source(operator.type, name, engine, inputs, list(operator.output), arguments, self._builder)
        for argument in operator.arg:
            if argument.name in arguments:
                raise source.invalid("BT-CAFFE2-ARGUMENT", f"argument '{argument.name}' is given twice")
            arguments[argument.name] = argument
        if engine not in _ENGINES:
            raise source.unsupported(
                "BT-CAFFE2-ENGINE", f"the engine '{engine}' is not known", f"the default one and {SERVER} are"
            )
        if operator.type not in _OF_SERVER:
            source.engine = ""
        if operator.HasField("device_option") and operator.device_option.device_type != _CPU:
            raise source.unsupported(
                "BT-CAFFE2-DEVICE", f"device type {operator.device_option.device_type} is not the CPU (0)"
            )
        if not all(operator.output) or not operator.output or len(set(operator.output)) != len(operator.output):
            raise source.invalid("BT-CAFFE2-NAME", "an operator needs outputs, each with a name of its own")
        return source


def _has_more(net: Any) -> bool:
    """Whether a message has fields that a NetDef has not."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    return len(UnknownFieldSet(net)) > 0


def _check_net(net: Any, what: str) -> None:
    """Refuses nets that run in another way."""
    if net.type not in _KINDS:
        raise UnsupportedError("BT-CAFFE2-NET", f"a net of type '{net.type}' is not read", place=what)
    if net.HasField("device_option") and net.device_option.device_type != _CPU:
        raise UnsupportedError(
            "BT-CAFFE2-DEVICE", f"device type {net.device_option.device_type} is not the CPU (0)", place=what
        )
    if len(net.op) > _MOST_NODES:
        raise UnsupportedError("BT-NODES", f"more than {_MOST_NODES:,} operators", place=what)
