"""What an operator's schema says: how many operands a node has, and the types of results of nodes without a mapping.

So a model with one foreign operator is refused for that operator, and not for what comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UnsupportedError
from ..onnx_schemas import ANY, find_schema
from ..onnx_tensors import TYPES
from .base import Source

if TYPE_CHECKING:
    from onnx.defs import OpSchema

UNKNOWN = "variant"
# Attributes that name the type of the results.
_NAMING = ("to", "dtype", "output_dtype")


def result_types(source: Source) -> list[str]:
    """Types of all results; ``"variant"`` where the schema leaves them open, or there is none."""
    import onnx.defs

    try:
        schema = onnx.defs.get_schema(source.op_type, source.version, source.domain)
    except onnx.defs.SchemaError:
        return [UNKNOWN] * len(source.outputs)
    bound = _bound(schema, source)
    return [_result(schema, position, bound, source) for position in range(len(source.outputs))]


def check_arity(source: Source) -> None:
    """Refuses more or fewer inputs and outputs than the schema has; operators without a schema are let through.

    Raises:
        InvalidModelError: there are too many or too few.
    """
    schema = find_schema(source.domain, source.op_type, source.version)
    if schema is None:
        return
    for what, count, (low, high) in (
        ("inputs", len(source.inputs), schema.inputs),
        ("outputs", len(source.outputs), schema.outputs),
    ):
        if not low <= count <= high:
            expected = f"{low}" if low == high else f"{low} to {high}" if high < ANY else f"at least {low}"
            code = "BT-NODE-INPUT" if what == "inputs" and count < low else "BT-NODE-ARITY"
            raise source.invalid(code, f"{count} {what}, expected {expected}")


def check_attributes(source: Source) -> None:
    """Refuses attributes that the schema does not have, or has with another type, and required ones that are missing.

    Raises:
        InvalidModelError, UnsupportedError: where one does not fit.
    """
    schema = find_schema(source.domain, source.op_type, source.version)
    if schema is None:
        return
    for name, kind in source.kinds.items():
        wanted = schema.kinds.get(name)
        if wanted is None:
            raise unknown_attribute(source, name)
        if kind != wanted:
            raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is of kind {kind}, expected {wanted}")
    missing = sorted(schema.required - source.kinds.keys())
    if missing:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{missing[0]}' is missing")


def unknown_attribute(source: Source, name: str) -> UnsupportedError:
    """The error for an attribute that nobody reads."""
    return source.unsupported(
        "BT-ONNX-ATTRIBUTE",
        f"attribute '{name}' is not known for {source.op_type} version {source.version}",
        "remove it, or export the model for an opset that has it",
    )


def _bound(schema: OpSchema, source: Source) -> dict[str, str]:
    """What the types of the operands say about the schema's type variables."""
    found: dict[str, str] = {}
    for position, index in enumerate(source.inputs):
        if index is not None and schema.inputs:
            formal = schema.inputs[min(position, len(schema.inputs) - 1)]
            if formal.is_homogeneous:
                found.setdefault(formal.type_str, source.builder.tensors[index].dtype)
    return found


def _result(schema: OpSchema, position: int, bound: dict[str, str], source: Source) -> str:
    if not schema.outputs:
        return UNKNOWN
    formal = schema.outputs[min(position, len(schema.outputs) - 1)]
    variable = formal.type_str
    if not formal.is_homogeneous:
        return UNKNOWN
    for name in _NAMING:
        number = source.attributes.get(name)
        if isinstance(number, int) and number in TYPES and number:
            return TYPES[number]
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable), [variable])
    single = _type_of(next(iter(allowed))) if len(allowed) == 1 else UNKNOWN
    return bound.get(variable, single)


def _type_of(text: str) -> str:
    """Our name of, for example, ``"tensor(float)"``."""
    if not text.startswith("tensor("):
        return UNKNOWN
    import onnx

    title = {"float": "FLOAT", "double": "DOUBLE"}.get(text[7:-1], text[7:-1].upper())
    number = dict(onnx.TensorProto.DataType.items()).get(title, 0)
    return TYPES[number] if number in TYPES and number else UNKNOWN
