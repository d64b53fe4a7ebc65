"""TFLite (LiteRT) model files, schema version 3, to graphs. Constants stay where they are in the file's bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError
from ..graph import Attribute, Graph, ModelFile, Node, Tensor, find_disorder
from ..records import dataclass, field, replace
from . import tflite_schema as schema
from .flatbuffer import ADVICE, Field, FlatBuffer, Table, TableVector
from .recognise import IDENTIFIER, as_bytes, recognise
from .tflite_forms import FORMS, with_bodies
from .tflite_tensors import (
    CONVERT_AGAIN,
    Buffers,
    Notes,
    TensorReader,
    clip,
    decode_text,
    enumerator,
    limit_objects,
    require_vector,
)

if TYPE_CHECKING:
    from .tflite_custom import Custom

VERSION = 3


def read_tflite(data: bytes | memoryview | np.ndarray) -> ModelFile:
    """Reads a TFLite model from its bytes.

    Constants of the result are views of `data`, which therefore must not change afterwards.

    Raises:
        ModelFormatError: the bytes are not a well-formed TFLite file.
        InvalidModelError: the file is well-formed but contradicts itself.
        UnsupportedError: it uses a part of the format that bittrue does not read.
        ResourceError: it has more objects, or shares them more often, than the reader takes.
    """
    content = as_bytes(data)
    if content[4:8].tobytes() != IDENTIFIER:
        raise ModelFormatError(
            "BT-FILE-FORMAT",
            "expected a TFLite file (bytes 4 to 7 are 'TFL3'), an ONNX model or a network of Caffe, Caffe2 or MXNet, "
            f"found {recognise(content)[0]}",
            advice=recognise(content)[1],
        )
    return _Reader(FlatBuffer(content, schema.fields)).read()


@dataclass
class _OperatorCode:
    """One row of the model's operator table."""

    operator: schema.Operator
    version: int
    custom_code: str


@dataclass
class _Signatures:
    """What the signatures say about one subgraph."""

    key: str = ""
    aliases: dict[str, int] = field(default_factory=dict)


class _Reader:
    """State of one reading."""

    def __init__(self, file: FlatBuffer) -> None:
        self._file = file
        self._notes = Notes()
        self._model = file.root("Model")
        version = self._model.number("version")
        if version != VERSION:
            raise ModelFormatError(
                "BT-FILE-VERSION",
                f"schema version {version}, expected {VERSION}",
                place=self._model.place("version"),
                advice="convert the model with TensorFlow 1.9 or later" if version < VERSION else ADVICE,
            )
        # LiteRT insists on the vector of buffers only; a missing one is tolerated as long as nobody refers to it.
        self._buffers = Buffers(file, require_vector(self._model, "buffers"))
        self._tensors = TensorReader(file, self._buffers, self._notes)
        self._codes = self._model.tables("operator_codes")
        self._known_codes: dict[int, _OperatorCode] = {}
        self._node_count = 0

    def read(self) -> ModelFile:
        subgraphs = require_vector(self._model, "subgraphs")
        if not len(subgraphs):
            raise InvalidModelError("BT-MODEL-EMPTY", "the model has no subgraph", advice=CONVERT_AGAIN)
        limit_objects(len(subgraphs), "subgraphs")
        signatures = self._signatures(len(subgraphs))
        graphs = with_bodies(
            [self._graph(table, index, signatures.get(index, _Signatures())) for index, table in enumerate(subgraphs)]
        )
        producer = decode_text(self._model.text("description"), self._notes, "model description")
        metadata = self._metadata()
        return ModelFile("tflite", producer, graphs, metadata, self._notes.lines(), self._file.size)

    def _metadata(self) -> dict[str, bytes]:
        vector = self._model.tables("metadata")
        if vector is None:
            return {}
        limit_objects(len(vector), "metadata entries")
        found: dict[str, bytes] = {}
        for index, table in enumerate(vector):
            place = f"metadata {index}"
            name = decode_text(table.text("name"), self._notes, place) or f"metadata:{index}"
            content = self._buffers.content(table.number("buffer"), f"{place} '{clip(name)}'")
            if name in found:
                self._notes.add("a metadata name occurs twice; the last one is kept", place)
            if content is None:
                found[name] = b""
                continue
            self._file.spend_bytes(content.size, place)
            found[name] = content.tobytes()
        return found

    def _signatures(self, subgraph_count: int) -> dict[int, _Signatures]:
        found: dict[int, _Signatures] = {}
        vector = self._model.tables("signature_defs")
        if vector is None:
            return found
        limit_objects(len(vector), "signatures")
        for index, table in enumerate(vector):
            place = f"signature {index}"
            raw = table.text("signature_key")
            if raw is None:
                message = "the signature has no key"
                raise InvalidModelError("BT-MODEL-SIGNATURE", message, place=place, advice=CONVERT_AGAIN)
            key = decode_text(raw, self._notes, place)
            place = f"{place} '{clip(key)}'"
            subgraph = table.number("subgraph_index")
            if subgraph >= subgraph_count:
                message = f"subgraph index {subgraph} is out of range, the model has {subgraph_count}"
                raise InvalidModelError("BT-MODEL-INDEX", message, place=place, advice=CONVERT_AGAIN)
            if subgraph in found:
                self._notes.add("a subgraph has several signatures; the first one gives its name", place)
            entry = found.setdefault(subgraph, _Signatures(key))
            for name in ("inputs", "outputs"):
                self._aliases(table.tables(name), entry.aliases, place)
        return found

    def _aliases(self, vector: TableVector | None, aliases: dict[str, int], place: str) -> None:
        for table in vector if vector is not None else ():
            name = decode_text(table.text("name"), self._notes, place)
            tensor = table.number("tensor_index")
            if aliases.setdefault(name, tensor) != tensor:
                self._notes.add("an argument name stands for two tensors; the first one is kept", place)

    def _graph(self, table: Table, index: int, signatures: _Signatures) -> Graph:
        place = f"subgraph {index}"
        name = decode_text(table.text("name"), self._notes, place) or ("main" if index == 0 else f"subgraph_{index}")
        vector = require_vector(table, "tensors")
        tensors = self._tensors.read(vector, place)
        inputs = self._indices(table, "inputs", len(tensors), f"{place}, inputs")
        outputs = self._indices(table, "outputs", len(tensors), f"{place}, outputs")
        for alias, tensor in signatures.aliases.items():
            if tensor >= len(tensors):
                message = f"tensor index {tensor} is out of range, the subgraph has {len(tensors)} tensors"
                alias_place = f"{place}, signature argument '{clip(alias)}'"
                raise InvalidModelError("BT-MODEL-INDEX", message, place=alias_place, advice=CONVERT_AGAIN)
        operators = table.tables("operators")
        nodes: tuple[Node, ...] = ()
        if operators is not None:
            self._node_count += len(operators)
            limit_objects(self._node_count, "nodes")
            nodes = tuple(self._node(entry, at, len(tensors), place) for at, entry in enumerate(operators))
        self._tensors.make_dense(tensors, nodes)
        _materialise_empty(tensors, nodes, inputs)
        problem = _order_problem(tensors, nodes, inputs, outputs, place)
        if problem is not None:
            # Other graphs may never be called; the planner refuses those that are.
            if index == 0:
                raise problem
            self._notes.add(f"{problem.message}; this subgraph cannot be executed", problem.place)
        return Graph(name, tuple(tensors), nodes, inputs, outputs, signatures.key, signatures.aliases)

    def _indices(self, table: Table, name: str, count: int, place: str) -> tuple[int, ...]:
        """A vector of tensor indices, none of which may be absent."""
        found = table.integers(name) or ()
        for position, index in enumerate(found):
            if not 0 <= index < count:
                raise _bad_index(index, position, name, count, place, absent_allowed=False)
        return found

    def _code(self, index: int, place: str) -> _OperatorCode:
        """A row of the operator table, read when a node first refers to it."""
        known = self._known_codes.get(index)
        if known is not None:
            return known
        count = 0 if self._codes is None else len(self._codes)
        if self._codes is None or index >= count:
            message = f"operator code index {index} is out of range, the model has {count}"
            raise InvalidModelError("BT-MODEL-INDEX", message, place=place, advice=CONVERT_AGAIN)
        table = self._codes[index]
        # Codes beyond 127 came later in a wider field; old readers see a placeholder in the narrow one.
        number = max(table.number("deprecated_builtin_code"), table.number("builtin_code"))
        source = enumerator(schema.ENUMS["BuiltinOperator"], number, "builtin operator code", place)
        version, raw = table.number("version"), table.text("custom_code")
        message = ""
        if source == "PLACEHOLDER_FOR_GREATER_OP_CODES":
            message = "the operator code is the placeholder 127, the real one is missing"
        elif source == "CUSTOM" and not raw:
            message = "a custom operator has no custom code"
        elif version < 1:
            message = f"operator version {version}, expected at least 1"
        if message:
            code_place = f"{place}, operator code {index}"
            raise InvalidModelError("BT-MODEL-OPERATOR", message, place=code_place, advice=CONVERT_AGAIN)
        custom = decode_text(raw, self._notes, f"operator code {index}") if source == "CUSTOM" else ""
        known = self._known_codes[index] = _OperatorCode(schema.operator(number), version, custom)
        return known

    def _node(self, table: Table, index: int, tensor_count: int, subgraph: str) -> Node:
        place = f"{subgraph}, node {index}"
        code = self._code(table.number("opcode_index"), place)
        source = f"CUSTOM:{code.custom_code}" if code.custom_code else code.operator.source
        place = f"{place} ({clip(source)})"
        inputs = table.integers("inputs") or ()
        for position, tensor in enumerate(inputs):
            if not -1 <= tensor < tensor_count:
                raise _bad_index(tensor, position, "inputs", tensor_count, place, absent_allowed=True)
        known = _known(code.custom_code)
        return Node(
            index,
            known.stem if known else code.operator.stem,
            source,
            code.version,
            self._attributes(table, code, place),
            code.operator.operands(inputs),
            self._indices(table, "outputs", tensor_count, place),
            self._indices(table, "intermediates", tensor_count, place),
        )

    def _attributes(self, table: Table, code: _OperatorCode, place: str) -> dict[str, Attribute]:
        if code.custom_code:
            content = self._custom_options(table, place)
            known = _known(code.custom_code)
            if known is not None:
                return known.attributes(content, place)
            return {"custom_code": code.custom_code, "custom_options": content}
        options = self._options(table, code.operator, place)
        read = {name: self._attribute(options, field, place) for name, field in code.operator.fields}
        form = FORMS.get(code.operator.options)
        return {**(read if form is None else form(read)), **code.operator.attributes}

    def _custom_options(self, table: Table, place: str) -> tuple[int, ...]:
        """The bytes that only the custom operator itself understands."""
        found = table.integers("custom_options")
        offset = table.number("large_custom_options_offset")
        if found is None and offset > 1:
            content = self._file.span(offset, table.number("large_custom_options_size"), place)
            self._file.spend_objects(content.size, place)
            return tuple(content.tolist())
        return found or ()

    def _options(self, table: Table, operator: schema.Operator, place: str) -> Table | None:
        """The operator's options table; None when it is absent, so that the schema's defaults hold."""
        result = None
        for name, union in (("builtin_options", "BuiltinOptions"), ("builtin_options_2", "BuiltinOptions2")):
            member, position = table.union(name)
            if not member:
                continue
            kind = enumerator(schema.UNIONS[union], member, f"kind of {name}", place)
            if kind == operator.options:
                result = Table(self._file, kind, position) if position else None
                self._check_options(result, operator, place)
            elif operator.fields:
                raise InvalidModelError(
                    "BT-MODEL-OPTIONS",
                    f"the node carries {kind}, expected {operator.options}",
                    place=place,
                    advice=CONVERT_AGAIN,
                )
            else:
                self._notes.add(f"{kind} on an operator that has no options; they are ignored", place)
        return result

    def _check_options(self, options: Table | None, operator: schema.Operator, place: str) -> None:
        """Nothing is set that this reader would drop without knowing what it does."""
        if options is None:
            return
        for name in operator.refused:
            if options.has(name):
                raise UnsupportedError(
                    "BT-MODEL-OPTION-UNKNOWN",
                    f"the option {name} is set, whose effect is not known",
                    place=place,
                    advice="convert the model without it",
                )
        if options.has_unknown_fields():
            self._notes.add(f"{options.name} has fields newer than this reader; they are ignored", place)

    def _attribute(self, options: Table | None, field: Field, place: str) -> Attribute:
        """One option in bittrue's words: enumerators and types by name, vectors as tuples."""
        if field.kind == "number":
            value = field.default if options is None else options.number(field.name)
            number = int(value) if field.enum else 0
            if field.enum == "TensorType":
                return enumerator(schema.TYPES, number, field.name, place)
            if field.enum:
                return enumerator(schema.ENUMS[field.enum], number, field.name, place).lower()
            return cast(Attribute, value)
        if field.kind == "text":
            return "" if options is None else decode_text(options.text(field.name), self._notes, place)
        return () if options is None else options.integers(field.name) or ()


def _known(custom_code: str) -> Custom | None:
    """How the options of a custom operator are read; None where nobody here knows it, and for ""."""
    if not custom_code:
        return None
    from .tflite_custom import CUSTOM

    return CUSTOM.get(custom_code)


def _bad_index(
    index: int, position: int, name: str, count: int, place: str, *, absent_allowed: bool
) -> InvalidModelError:
    absent = ", or -1 for an absent one" if absent_allowed else ""
    message = f"{name}[{position}] is tensor {index}, expected 0..{count - 1}{absent}"
    return InvalidModelError("BT-MODEL-INDEX", message, place=place, advice=CONVERT_AGAIN)


def _materialise_empty(tensors: list[Tensor], nodes: Iterable[Node], inputs: tuple[int, ...]) -> None:
    """Makes tensors of no elements that nobody computes constants of no elements.

    Converters give such a tensor (the new shape of a reshape to a scalar) no buffer, and LiteRT reads nothing from it.
    """
    written = {index for node in nodes for index in node.outputs}.union(inputs)
    for index, tensor in enumerate(tensors):
        if tensor.data is None and 0 in tensor.shape and index not in written and not tensor.is_variable:
            kind = tensor.type
            empty = np.empty(0, np.uint8 if kind.is_packed or not kind.bits else kind.numpy)
            empty.flags.writeable = False
            tensors[index] = replace(tensor, data=empty)


def _order_problem(
    tensors: list[Tensor], nodes: Iterable[Node], inputs: tuple[int, ...], outputs: tuple[int, ...], place: str
) -> InvalidModelError | None:
    found = find_disorder(tensors, nodes, inputs, outputs)
    if found is None:
        return None
    at = f"{place}, {clip(found.where)}, tensor {found.tensor} '{clip(tensors[found.tensor].name)}'"
    return InvalidModelError(found.code, found.message, place=at, advice=CONVERT_AGAIN)
