"""Cases of ONNX operators: a model of one node, read like any other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import DataType
from ...importers import read_model
from ...importers.onnx import onnx_package
from ...importers.onnx_tensors import TYPES, raw_bits
from .adapters import Trial
from .vectors import Case, Recorded, damaged

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto

_NUMBERS = {name: number for number, name in TYPES.items()}
_MICROSOFT = "com.microsoft"
_OPSET = 21
# The oldest that may leave initializers out of the graph's inputs, and has all types.
_IR_VERSION = 11
# Attributes of operators that the onnx package does not describe; integral ones may be written without a point.
_REALS = frozenset({"alpha", "beta", "epsilon", "gamma", "scale"})


def trial(case: Case) -> Trial:
    """A model of one node that is the case's operator; operands that were initializers are initializers.

    Fields of the case: ``domain`` and ``opset`` beside the usual ones, ``initializer`` of an input.
    """
    onnx = onnx_package()
    domain, opset = case.fields.get("domain"), case.fields.get("opset", _OPSET)
    if domain is None:
        domain = "" if onnx.defs.has(case.operator) else _MICROSOFT
    if not isinstance(domain, str) or type(opset) is not int:
        raise damaged("'domain' is a text and 'opset' a number", case.place)
    inputs, outputs = case.inputs(), case.outputs()
    names, results = _names(inputs, "input"), _names(outputs, "output")
    if set(names) & set(results) - {""}:
        results = [f"{name}:output" if name else "" for name in results]
    fed = [(name, given) for name, given in zip(names, inputs, strict=True) if given is not None]
    constants = [(name, given) for name, given in fed if given.fields.get("initializer")]
    variable = [(name, given) for name, given in fed if not given.fields.get("initializer")]
    wanted = [(name, given) for name, given in zip(results, outputs, strict=True) if given is not None]
    node = onnx.NodeProto(op_type=case.operator, domain=domain, name=case.identity, input=names, output=results)
    node.attribute.extend(_attributes(case, domain, opset))
    graph = onnx.GraphProto(name=case.identity, node=[node])
    graph.initializer.extend(_tensor(name, given) for name, given in constants)
    for declared, list_of in ((variable, graph.input), (wanted, graph.output)):
        for name, given in declared:
            shape = given.value.shape if list_of is graph.input else None
            list_of.append(onnx.helper.make_tensor_value_info(name, _NUMBERS[given.dtype.name], shape))
    model = onnx.ModelProto(graph=graph, ir_version=_IR_VERSION, producer_name="bittrue replay")
    model.opset_import.append(onnx.OperatorSetIdProto(domain="", version=opset))
    if domain:
        model.opset_import.append(onnx.OperatorSetIdProto(domain=domain, version=1))
    return Trial(
        read_model(model.SerializeToString()), [given.value for _, given in variable], [given for _, given in wanted]
    )


def _names(recorded: Sequence[Recorded | None], role: str) -> list[str]:
    """Names of tensors, those of the manifest where they are unique; empty for what is left out."""
    names = [given.name for given in recorded if given is not None]
    unique = "" not in names and len(set(names)) == len(names)
    return ["" if given is None else given.name if unique else f"{role}{i}" for i, given in enumerate(recorded)]


def _tensor(name: str, given: Recorded) -> TensorProto:
    proto: TensorProto = onnx_package().TensorProto(name=name, data_type=_NUMBERS[given.dtype.name])
    proto.dims.extend(given.value.shape)
    proto.raw_data = raw_bytes(given.value, given.dtype)
    return proto


def raw_bytes(array: np.ndarray, dtype: DataType) -> bytes:
    """Content as TensorProto.raw_data holds it: little-endian; narrow elements without gaps, low bits first."""
    width = raw_bits(dtype)
    if width >= 8:
        return np.ascontiguousarray(array).tobytes()
    quantized = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.packbits(
        np.unpackbits(quantized[:, None], axis=1, bitorder="little")[:, :width], bitorder="little"
    ).tobytes()


def _attributes(case: Case, domain: str, opset: int) -> list[AttributeProto]:
    onnx = onnx_package()
    try:
        described: Mapping[str, Any] = onnx.defs.get_schema(case.operator, opset, domain).attributes
    except onnx.defs.SchemaError:
        described = {}
    found = []
    for name, value in case.attributes.items():
        if value is None:
            continue
        kind = described[name].type.name if name in described else "FLOAT" if name in _REALS else ""
        try:
            attribute_type = onnx.AttributeProto.AttributeType.Value(kind) if kind else None
            found.append(onnx.helper.make_attribute(name, _attribute(value, kind), attr_type=attribute_type))
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            raise UnsupportedError(
                "BT-VECTORS-ATTRIBUTE", f"attribute '{name}' is {value!r}: {error}", place=case.place
            ) from None
    return found


def _attribute(value: Any, kind: str) -> Any:
    """JSON does not tell 1 from 1.0."""
    if isinstance(value, dict):
        raise TypeError("an object is no attribute")
    if kind == "FLOAT":
        return float(value)
    if kind == "FLOATS":
        return [float(v) for v in value]
    if kind == "INTS":
        return [_whole(v) for v in value]
    if kind == "INT":
        return _whole(value)
    return int(value) if isinstance(value, bool) else value


def _whole(value: Any) -> int:
    if isinstance(value, str) or int(value) != value:
        raise ValueError("an integer is needed")
    return int(value)
