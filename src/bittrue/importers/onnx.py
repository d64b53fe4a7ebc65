"""ONNX model files to graphs: operator sets 7 to 28, external data, initializers, local functions, subgraphs.

The protobuf is decoded by messages of the `onnx` package (an extra: ``pip install "bittrue[onnx]"``), whose other parts
are imported where a model needs them: local functions, definitions of operators by others, inference of shapes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError
from ..graph import Attribute, Graph, ModelFile, Tensor, data_type, find_disorder
from ..records import dataclass, field, replace
from .onnx_checks import check_functions
from .onnx_functions import CONTRIBUTED, EXPANDED, EXPANDED_BY_TYPE, EXPANDED_WINDOWS, UNEXPANDED, expand
from .onnx_operators import Arrange, Called, GraphBuilder, Source, check_schema, map_node
from .onnx_operators.base import MICROSOFT
from .onnx_order import free_names, in_order
from .onnx_schemas import find_schema
from .onnx_tensors import TYPES, constant, is_no_shape, type_name
from .protobuf import check_texts, set_apart
from .recognise import as_bytes

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OLDEST_OPSET, NEWEST_OPSET = 7, 28
_DEFAULT_DOMAIN = "ai.onnx"
# Dimensions of a tensor, at most.
_RANK = 64
_MOST_NODES = 100_000
# The IR version since which initializers may be what inputs are by default.
_DEFAULTS = 4
_MOST_OPSETS = 1 << 20
# Attributes of Constant: whether they hold several numbers, what these are in Python, and their type.
_CONSTANTS: dict[str, tuple[bool, type, str]] = {
    "value_float": (False, float, "f32"),
    "value_floats": (True, float, "f32"),
    "value_int": (False, int, "s64"),
    "value_ints": (True, int, "s64"),
}
# ModelProto.graph, GraphProto.initializer, TensorProto.raw_data; and the bytes from which on these are not copied.
_INITIALIZERS, _LARGE = (7, 5, 9), 1 << 16
_RENAME = "give each node a name of its own, or none"
_DAMAGED = "the file is damaged or no ONNX model; fetch or export it again"


def read_onnx(content: np.ndarray | bytes | memoryview, folder: str | None = None) -> ModelFile:
    """Reads an ONNX model. Large initializers of its main graph stay in `content`.

    Args:
        content: the bytes of a ModelProto.
        folder: where external data lies; None when the model did not come from a file.

    Raises:
        ModelFormatError: the bytes are no ModelProto, or external data is missing.
        InvalidModelError: the model contradicts itself.
        UnsupportedError: it uses a part of the format that bittrue does not read, or the `onnx` package is missing.
    """
    model = messages().ModelProto()
    from google.protobuf.message import DecodeError

    whole = as_bytes(content)
    try:
        raw, large = set_apart(whole, _INITIALIZERS, _LARGE)
        model.ParseFromString(raw)
        if model.functions and large:
            model.ParseFromString(bytes(whole))
            large = {}
    except (DecodeError, RuntimeError) as error:
        raise ModelFormatError("BT-ONNX-FORMAT", f"no ONNX model: {error}", advice=_DAMAGED) from None
    if not model.HasField("graph"):
        raise ModelFormatError("BT-ONNX-FORMAT", "the model holds no graph", advice=_DAMAGED)
    return _Reader(model, folder, whole.size, large).read()


@cache
def messages() -> Any:
    """The message classes of the package `onnx`, without the rest of it, which takes four times as long to import.

    Raises:
        UnsupportedError: there is no such package.
    """
    package = None if "onnx" in sys.modules else PathFinder.find_spec("onnx")
    if package is not None:
        spec = PathFinder.find_spec("onnx.onnx_ml_pb2", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            # Not kept in sys.modules, where it would be a part of a package that is not there. Whoever imports the
            # package later makes these classes again, and is given the same ones.
            module = ModuleType(spec.name)
            spec.loader.exec_module(module)
            return module
    return onnx_package()


def onnx_package() -> Any:
    """The package `onnx`; UnsupportedError without it."""
    try:
        import onnx
    except ImportError:
        raise UnsupportedError(
            "BT-ONNX-PACKAGE",
            "reading ONNX models needs the package 'onnx', which is not installed",
            advice='pip install "bittrue[onnx]"',
        ) from None
    return onnx


def _check_node_names(proto: GraphProto) -> None:
    """Names of nodes may be left out; those that are given are unique in their graph, as the format asks.

    Those of Constant do not count: the runtime makes initializers of these nodes before it looks at names.
    """
    known = set()
    for node in proto.node:
        if node.op_type == "Constant":
            continue
        if node.name in known:
            raise InvalidModelError(
                "BT-ONNX-NAME", f"two nodes are called '{node.name}'", place=f"graph '{proto.name}'", advice=_RENAME
            )
        known.update([node.name] if node.name else [])
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _check_node_names(attribute.g)


def _hand_in_shapes(proto: GraphProto, outside: Mapping[str, TensorProto]) -> None:
    """Gives called graphs what may be shapes among the constants outside, where the package does not look for them.

    What a graph gives and is a constant gets the constant's shape.
    """
    constants = {tensor.name: tensor for tensor in proto.initializer}
    for info in proto.output:
        if info.name in constants and not info.type.tensor_type.HasField("shape"):
            info.type.tensor_type.elem_type = constants[info.name].data_type
            for size in constants[info.name].dims:
                info.type.tensor_type.shape.dim.add().dim_value = size
    for name in sorted(outside.keys() & set(free_names(proto))):
        proto.initializer.add().CopyFrom(outside[name])
    known = {tensor.name: tensor for tensor in proto.initializer if len(tensor.dims) == 1 and tensor.dims[0] <= _RANK}
    for node in proto.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.HasField("t") and len(attribute.t.dims) == 1:
                for name in node.output:
                    attribute.t.name = name
                    known[name] = attribute.t
            elif attribute.HasField("g"):
                _hand_in_shapes(attribute.g, known)


def _side_by_side(one: GraphProto, other: GraphProto) -> Iterator[tuple[GraphProto, GraphProto]]:
    """Two graphs of the same nodes and the graphs that these call, in pairs."""
    yield one, other
    for nodes in zip(one.node, other.node, strict=True):
        for first, second in zip(nodes[0].attribute, nodes[1].attribute, strict=True):
            if first.HasField("g"):
                yield from _side_by_side(first.g, second.g)


@dataclass
class _Reader:
    """State of one reading.

    Attributes:
        large: content of initializers of the main graph that the message does not hold, by their place.
    """

    model: ModelProto
    folder: str | None
    size: int
    large: Mapping[int, np.ndarray]
    notes: list[str] = field(default_factory=list)
    graphs: list[Graph | None] = field(default_factory=list)
    opsets: dict[str, int] = field(default_factory=dict)
    nodes: int = 0

    def read(self) -> ModelFile:
        check_texts(self.model, "BT-ONNX-FORMAT")
        _check_node_names(self.model.graph)
        if self.model.functions:
            self._inline()
        self._read_opsets()
        self._graph(self.model.graph)
        producer = f"{self.model.producer_name} {self.model.producer_version}".strip()
        return ModelFile(
            "onnx",
            producer,
            tuple(graph for graph in self.graphs if graph is not None),
            {entry.key: entry.value.encode() for entry in self.model.metadata_props},
            tuple(self.notes),
            self.size,
        )

    def _inline(self) -> None:
        import onnx.inliner

        check_functions(self.model, _MOST_NODES)
        try:
            self.model = onnx.inliner.inline_local_functions(self.model)
        except Exception as error:
            # The package's own C++ code raises what it likes.
            raise InvalidModelError("BT-ONNX-FUNCTION", f"its local functions cannot be expanded: {error}") from None

    def _read_opsets(self) -> None:
        for entry in self.model.opset_import:
            domain = "" if entry.domain == _DEFAULT_DOMAIN else entry.domain
            if not 0 <= entry.version < _MOST_OPSETS or self.opsets.get(domain, entry.version) != entry.version:
                raise InvalidModelError(
                    "BT-ONNX-OPSET", f"version {entry.version} of domain '{domain}' is no version, or a second one"
                )
            self.opsets[domain] = entry.version
        version = self.opsets.get("", NEWEST_OPSET if self.opsets else 1)
        if not OLDEST_OPSET <= version <= NEWEST_OPSET:
            raise UnsupportedError(
                "BT-ONNX-OPSET",
                f"operator set {version} is asked for, {OLDEST_OPSET} to {NEWEST_OPSET} are read",
                place="opset_import",
                advice="convert the model with onnx.version_converter",
            )

    # -- graphs ----------------------------------------------------------------------------------------------------
    def _graph(self, proto: GraphProto, outside: Sequence[Tensor] = (), arrange: Arrange | None = None) -> int:
        """Reads a graph and those that its nodes call; its index.

        Args:
            outside: values of the calling graph that it uses; they become inputs behind its own, but for constants.
            arrange: makes the outputs from its own ones and the inputs for `outside`.
        """
        place = f"graph '{proto.name}'"
        number = len(self.graphs)
        self.graphs.append(None)
        claims, inferred = self._claims(proto)
        builder = GraphBuilder(claims=claims, inferred=inferred, notes=self.notes)
        # Before IR version 4 every initializer had to be listed as an input; since then those that are listed are
        # what an input is without a value.
        given = {info.name for info in proto.input} if self.model.ir_version >= _DEFAULTS else set[str]()
        large = {} if number else self.large
        for position, initializer in enumerate(proto.initializer):
            if not initializer.name or initializer.name in builder.names:
                raise InvalidModelError("BT-ONNX-NAME", f"initializer '{initializer.name}' is given twice", place=place)
            value = constant(initializer, initializer.name, self.folder, large.get(position))
            builder.add(replace(value, is_default=initializer.name in given))
        defaults = sum(tensor.is_default for tensor in builder.tensors)
        if defaults:
            self.notes.append(
                f"{place}: {defaults} initializers stand among its inputs too, where callers of ONNX Runtime may"
                " replace them: its optimiser takes them for no constants"
            )
        if proto.sparse_initializer:
            raise UnsupportedError("BT-ONNX-SPARSE", "sparse initializers are not read", place=place)
        inputs = []
        for info in proto.input:
            if info.name in builder.names and builder.tensors[builder.names[info.name]].is_constant:
                continue
            if not info.name or info.name in builder.names:
                raise InvalidModelError("BT-ONNX-NAME", f"input '{info.name}' is given twice", place=place)
            inputs.append(builder.add(self._declared(info)))
        added = [builder.add(tensor) for tensor in outside]
        taken = [index for index in added if not builder.tensors[index].is_constant]
        inputs += taken
        # A called graph out of order is refused, as the runtime does.
        nodes, is_sorted = (proto.node, False) if number else in_order(proto, place)
        if is_sorted:
            self.notes.append(f"{place}: its nodes do not stand behind those that they need; they are sorted")
        for node in nodes:
            self._node(builder, node)
        outputs = []
        for info in proto.output:
            if info.name not in builder.names:
                raise InvalidModelError("BT-ONNX-NAME", f"nothing computes output '{info.name}'", place=place)
            for known, what in ((builder.sequences, "a sequence of tensors"), (builder.optionals, "an optional value")):
                if builder.names[info.name] in known:
                    raise UnsupportedError("BT-ONNX-SEQUENCE", f"output '{info.name}' is {what}", place=place)
            outputs.append(builder.names[info.name])
        if not outputs:
            raise InvalidModelError("BT-ONNX-OUTPUT", "the graph has no output", place=place)
        if arrange is not None:
            outputs = arrange(outputs, taken)
        disorder = find_disorder(builder.tensors, builder.nodes, inputs, outputs)
        if disorder is not None:
            tensor = builder.tensors[disorder.tensor].name
            raise InvalidModelError(disorder.code, disorder.message, place=f"{disorder.where}, tensor '{tensor}'")
        self.graphs[number] = Graph(
            proto.name,
            tuple(builder.tensors),
            tuple(builder.nodes),
            tuple(inputs),
            tuple(outputs),
            version=self.opsets.get("", 0),
            is_sorted=is_sorted,
        )
        return number

    def _claims(self, proto: GraphProto) -> tuple[Mapping[str, Tensor], Set[str]]:
        """Types and shapes that the file declares, and of which tensors inference says them; checked, not believed."""
        found = {}
        for info in (*proto.value_info, *proto.output):
            if info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.elem_type:
                found[info.name] = self._declared(info)
        cut = {node.input[0] for node in proto.node if node.op_type == "SplitToSequence" and node.input}
        # What a runtime's inference knows of what called graphs give decides which nodes behind it are joined.
        read = {name for node in proto.node for name in node.input}
        calling = (node for node in proto.node if any(attribute.HasField("g") for attribute in node.attribute))
        cut |= {name for node in calling for name in node.output if name in read or node.op_type == "Scan"}
        cut -= {name for name, tensor in found.items() if tensor.shape}
        if cut:
            infos = next((infos for known, infos in self._inferred if known is proto), ())
            inferred = (info for info in infos if info.name in cut)
            found |= {i.name: self._declared(i) for i in inferred if i.type.WhichOneof("value") == "tensor_type"}
        return found, cut

    @cached_property
    def _inferred(self) -> Sequence[tuple[GraphProto, Sequence[ValueInfoProto]]]:
        """What the specification's shape inference says of each graph's tensors; nothing where it fails."""
        import onnx.shape_inference

        model = type(self.model)()
        model.CopyFrom(self.model)
        for node in model.graph.node:
            # Another domain's are not known there, and keep the shape all the same.
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                node.domain = ""
        _hand_in_shapes(model.graph, {})
        try:
            graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        except Exception:
            # The package's own C++ code raises what it likes; then the sizes count as unknown.
            return ()
        found = []
        for proto, inferred in _side_by_side(self.model.graph, graph):
            infos = (*inferred.value_info, *inferred.output)
            for info in infos:
                for dim in info.type.tensor_type.shape.dim:
                    # Names that the package makes up say nothing.
                    if dim.dim_param.startswith("unk__"):
                        dim.Clear()
            found.append((proto, infos))
        return found

    def _declared(self, info: ValueInfoProto) -> Tensor:
        place = f"tensor '{info.name}'"
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            raise UnsupportedError(
                "BT-ONNX-TYPE", f"a {(kind or 'missing').replace('_', ' ')} where a tensor is needed", place=place
            )
        tensor = info.type.tensor_type
        dtype = type_name(tensor.elem_type, place)
        if not tensor.HasField("shape"):
            return Tensor(info.name, dtype, ())
        sizes = [dim.dim_value if dim.WhichOneof("value") == "dim_value" else -1 for dim in tensor.shape.dim]
        if is_no_shape([0 if size == -1 else size for size in sizes]):
            raise InvalidModelError("BT-ONNX-SHAPE", f"shape {sizes[:8]} is no shape", place=place)
        free = -1 in sizes
        shape = tuple(1 if size == -1 else size for size in sizes)
        symbols = tuple(dim.dim_param for dim in tensor.shape.dim) if free else None
        return Tensor(info.name, dtype, shape, tuple(sizes) if free or not sizes else None, symbols=symbols)

    # -- nodes -----------------------------------------------------------------------------------------------------
    def _node(self, builder: GraphBuilder, proto: NodeProto) -> None:
        self.nodes += 1
        domain = "" if proto.domain == _DEFAULT_DOMAIN else proto.domain
        label = proto.name or (proto.output[0] if proto.output else proto.op_type)
        place = f"node {len(builder.nodes)} ({proto.op_type} '{label}')"
        if self.nodes > _MOST_NODES:
            raise UnsupportedError("BT-NODES", f"more than {_MOST_NODES:,} nodes", place=place)
        attributes, kinds = {}, {}
        for attribute in proto.attribute:
            if attribute.name in attributes:
                raise InvalidModelError(
                    "BT-ONNX-ATTRIBUTE", f"attribute '{attribute.name}' is given twice", place=place
                )
            attributes[attribute.name] = self._attribute(attribute, place)
            kinds[attribute.name] = attribute.AttributeType.Name(attribute.type)
        if (domain, proto.op_type) == ("", "Constant"):
            self._constant(builder, proto, attributes, place)
            return
        inputs: list[int | None] = []
        for name in proto.input:
            if name and name not in builder.names:
                raise InvalidModelError(
                    "BT-NODE-ORDER", f"input '{name}' is not computed before it is used", place=place
                )
            inputs.append(builder.names[name] if name else None)
        version = self._version(domain, proto.op_type)
        source = Source(
            proto.op_type, domain, version, label, inputs, list(proto.output), attributes, kinds, builder, self._call
        )
        definition, first = self._definition(source, proto), len(builder.nodes)
        for node in definition:
            self._node(builder, node)
        if not definition:
            map_node(source)
        # Runtimes put definitions in place when they have folded constants.
        whole = f"{proto.op_type} {self.nodes}"
        for position in range(first if definition else len(builder.nodes), len(builder.nodes)):
            made = builder.nodes[position]
            marks: dict[str, Attribute] = {"computed": True, "defines": whole}
            builder.nodes[position] = replace(made, attributes={**made.attributes, **marks})

    def _definition(self, source: Source, proto: NodeProto) -> list[NodeProto]:
        """The nodes that stand for one without a kernel, where the specification defines it by others."""
        tensors = source.builder.tensors
        types = ["-" if index is None else tensors[index].dtype for index in source.inputs]
        halves = "f16" in types and source.op_type not in UNEXPANDED
        if source.op_type == "LayerNormalization" and source.version < 17 and len(types) > 1:
            halves = types[0] != types[1]
        defined = source.op_type in EXPANDED or not set(EXPANDED_BY_TYPE.get(source.op_type, ())).isdisjoint(types)
        if source.op_type in EXPANDED_WINDOWS and not source.domain:
            kind = TYPES.get(source.integer("output_datatype", 1))
            defined = kind in EXPANDED_WINDOWS[source.op_type]
        if source.domain == MICROSOFT:
            halves, defined = halves and source.op_type in CONTRIBUTED, False
        elif source.domain:
            return []
        if not halves and not defined:
            return []
        check_schema(source)
        try:
            return expand(proto, self.opsets[""], types, source.builder.unique)
        except Exception as error:
            # The package's own C++ code raises what it likes.
            raise source.invalid("BT-ONNX-FUNCTION", f"its definition cannot be expanded: {error}") from None

    def _call(self, builder: GraphBuilder, protos: Sequence[GraphProto], arrange: Arrange | None) -> Called:
        """Reads the graphs that a node calls; all get the same values of the graph at hand."""
        used = dict.fromkeys(name for proto in protos for name in free_names(proto) if name in builder.names)
        found = [builder.tensors[builder.names[name]] for name in used]
        fixed = [tensor.is_constant and not tensor.is_default for tensor in found]
        outside = [
            replace(t, outside=t.outside + 1) if is_fixed else Tensor(t.name, t.dtype, (), outside=t.outside + 1)
            for t, is_fixed in zip(found, fixed, strict=True)
        ]
        numbers = tuple(self._graph(proto, outside, arrange) for proto in protos)
        types = []
        for number in numbers:
            graph = self.graphs[number]
            assert graph is not None
            types.append(tuple(graph.tensors[index].dtype for index in graph.outputs))
        values = tuple(builder.names[t.name] for t, is_fixed in zip(found, fixed, strict=True) if not is_fixed)
        return Called(numbers, values, tuple(types))

    def _version(self, domain: str, op_type: str) -> int:
        """The schema's since_version under the model's operator set; 1 for operators that it does not have."""
        if domain not in self.opsets:
            # Runtimes of their own accept their own domains without an import.
            if domain == "":
                raise InvalidModelError("BT-ONNX-OPSET", "the model imports no version of the default operator set")
            return 1
        schema = find_schema(domain, op_type, self.opsets[domain])
        return 1 if schema is None else schema.version

    def _constant(self, builder: GraphBuilder, proto: NodeProto, attributes: Mapping[str, Any], place: str) -> None:
        """A node without inputs whose attribute is its value."""
        if len(attributes) != 1 or len(proto.output) != 1 or not proto.output[0] or proto.output[0] in builder.names:
            raise InvalidModelError(
                "BT-ONNX-CONSTANT", "a constant needs one attribute and one new output", place=place
            )
        ((kind, value),) = attributes.items()
        name = proto.output[0]
        if kind == "value" and isinstance(value, Tensor):
            builder.add(Tensor(name, value.dtype, value.shape, data=value.data))
            return
        several, entry, dtype = _CONSTANTS.get(kind, (False, type(None), ""))
        entries = value if isinstance(value, tuple) else (value,)
        if isinstance(value, tuple) != several or not all(isinstance(found, entry) for found in entries):
            raise UnsupportedError("BT-ONNX-CONSTANT", f"a constant given as '{kind}' is not read", place=place)
        array = np.asarray(value, data_type(dtype).numpy)
        builder.add(Tensor(name, dtype, array.shape, data=array.reshape(-1)))

    def _attribute(self, proto: AttributeProto, place: str) -> Any:
        kind = proto.AttributeType.Name(proto.type) if proto.type else "UNDEFINED"
        if proto.ref_attr_name:
            raise InvalidModelError(
                "BT-ONNX-ATTRIBUTE", f"attribute '{proto.name}' means one of a function outside of any", place=place
            )
        if kind == "FLOAT":
            return float(proto.f)
        if kind == "INT":
            return int(proto.i)
        if kind == "STRING":
            return proto.s.decode("utf-8", "replace")
        if kind == "FLOATS":
            return tuple(float(v) for v in proto.floats)
        if kind == "INTS":
            return tuple(int(v) for v in proto.ints)
        if kind == "STRINGS":
            return tuple(v.decode("utf-8", "replace") for v in proto.strings)
        if kind == "TENSOR":
            return constant(proto.t, proto.name, self.folder)
        if kind == "GRAPH":
            return proto.g
        if kind == "TYPE_PROTO":
            return proto.tp
        raise UnsupportedError("BT-ONNX-ATTRIBUTE", f"attribute '{proto.name}' of kind {kind} is not read", place=place)
