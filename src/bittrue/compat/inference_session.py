"""onnxruntime.InferenceSession: the same methods, bittrue's results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..api import load
from ..graph import DataType, Tensor
from ..names import near_or_all
from ..numerics import default_of
from .options import PROVIDER, RunOptions, SessionOptions, thread_count
from .sessions import ArgumentError, Sessions, as_narrow, as_stored
from .values import IOBinding, OrtValue, type_name

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

# Everyday names of types that ONNX calls differently.
# From here on, initializers that are inputs, too, are defaults.
_IR_WITH_DEFAULTS = 4
_MADE_UP = "unk__"


@dataclass(frozen=True)
class NodeArg:
    """An input or output.

    Attributes:
        name: of the tensor.
        type: for example ``"tensor(uint8)"``.
        shape: dimensions; the name, or None, of those that are free.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """What the file says about itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A model, prepared under a numerics; prepared again for every new combination of input shapes.

    Args:
        path_or_bytes: file, or content of a file.
        sess_options: `SessionOptions` or onnxruntime's own; see there for what has an effect.
        providers, provider_options: accepted; bittrue runs on the CPU.
        numerics: whose arithmetic; None: ONNX Runtime's.
        executor: as for `bittrue.Model.prepare`.

    Raises:
        TypeError: neither a path nor bytes.
        ArgumentError: no such file.
        ModelFormatError, InvalidModelError, UnsupportedError: see `bittrue.load` and `bittrue.Model.prepare`.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        numerics: str | None = None,
        executor: str = "auto",
        **ignored: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._source = path_or_bytes
        self._options = sess_options if sess_options is not None else SessionOptions()
        model = load(path_or_bytes)
        self.numerics = numerics or default_of(model.format)
        self._sessions = Sessions(model, numerics=self.numerics, executor=executor, threads=thread_count(self._options))
        self._known: ModelProto | None = None
        self._sessions.check()
        graph = model.graph
        self._inputs = {graph.tensors[i].name: graph.tensors[i] for i in graph.inputs}
        self._outputs = {graph.tensors[i].name: graph.tensors[i] for i in graph.outputs}
        self._input_shapes: dict[str, list[int | str | None] | None] = {}

    # -- what the model is -----------------------------------------------------------------------------------------
    def get_inputs(self) -> list[NodeArg]:
        """Inputs that every run needs."""
        return [NodeArg(name, _type(tensor.type), self._shape(name) or []) for name, tensor in self._inputs.items()]

    def get_outputs(self) -> list[NodeArg]:
        """Results, in the order of `run`."""
        return [NodeArg(name, _type(t.type), self._output_shape(name, t)) for name, t in self._outputs.items()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Constants that a run may be given other values for."""
        names = self._defaults()
        return [NodeArg(t.name, _type(t.type), list(t.shape)) for t in self._sessions.graph.tensors if t.name in names]

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says about itself."""
        model = self._proto()
        return ModelMetadata(
            model.producer_name,
            model.graph.name,
            model.domain,
            model.doc_string,
            model.graph.doc_string,
            model.model_version,
            {entry.key: entry.value for entry in model.metadata_props},
        )

    def get_session_options(self) -> Any:
        """The options given."""
        return self._options

    def get_providers(self) -> list[str]:
        """What runs the model."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options."""
        return {PROVIDER: {}}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Accepted, without effect."""

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is nothing to fall back to."""

    # -- running ---------------------------------------------------------------------------------------------------
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | Any = None,
    ) -> list[np.ndarray]:
        """Run once.

        Args:
            output_names: which results, in which order; None or an empty list: all.
            input_feed: arrays by input name; constants that `get_overridable_initializers` lists may be among them.
            run_options: accepted.

        Returns:
            One array per output asked for. Narrow integers come as those of `ml_dtypes`.

        Raises:
            ArgumentError: names, types, ranks or dimensions that do not fit.
            RunError: values without a defined result.
        """
        if isinstance(output_names, str):
            raise TypeError("output_names is a list of names")
        missing = [name for name in self._inputs if name not in input_feed]
        if missing:
            raise ArgumentError(
                "BT-INPUT-MISSING",
                f"required inputs ({missing}) are missing from the input feed ({list(input_feed)})",
            )
        for name in output_names or ():
            if name not in self._outputs:
                raise ArgumentError(
                    "BT-OUTPUT-NAME", f"'{name}' is no output", advice=f"outputs: {', '.join(self._outputs)}"
                )
        feeds, replaced = {}, {}
        for name, value in input_feed.items():
            tensor = self._inputs.get(name)
            if tensor is None:
                tensor = self._default(name)
                replaced[name] = tensor
            feeds[name] = array = as_stored(value, tensor.type, f"input '{name}'")
            self._check_shape(name, tensor, array.shape)
        shapes = {name: feeds[name].shape for name in self._inputs}
        session = self._sessions.find(shapes, {name: feeds[name].shape for name in replaced})
        results = session.run(feeds)
        return [as_narrow(results[name], self._outputs[name].type) for name in output_names or self._outputs]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | Any = None,
    ) -> list[OrtValue]:
        """As `run`, on values."""
        feeds = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feeds, run_options)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that stay from run to run."""
        return IOBinding(tuple(self._outputs), self.run)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | Any = None) -> None:
        """Run on what `io_binding` of this session was given."""
        if not iobinding.belongs_to(self.run):
            raise ArgumentError("BT-COMPAT-BINDING", "the binding belongs to another session")
        iobinding.run()

    def _check_shape(self, name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
        if tensor.is_constant or tensor.shape_signature is None:
            # The reader does not tell a scalar from an input whose shape is open.
            if shape == tensor.shape or (not tensor.shape and not tensor.is_constant and self._shape(name) is None):
                return
            wanted: Sequence[int | str | None] = tensor.shape
        else:
            wanted = self._shape(name) or tensor.shape_signature
        if len(shape) != len(wanted):
            raise ArgumentError(
                "BT-INPUT-SHAPE", f"invalid rank: got {len(shape)}, expected {len(wanted)}", place=f"input '{name}'"
            )
        for axis, (got, size) in enumerate(zip(shape, wanted, strict=True)):
            if isinstance(size, int) and size not in (-1, got):
                raise ArgumentError(
                    "BT-INPUT-SHAPE",
                    f"invalid dimensions: index {axis}: got {got}, expected {size}",
                    place=f"input '{name}'",
                )

    # -- what only the file knows ----------------------------------------------------------------------------------
    def _proto(self) -> ModelProto:
        """The file, decoded once more: names of dimensions, defaults and descriptions are no part of a graph."""
        if self._known is None:
            from ..importers.onnx import onnx_package

            onnx = onnx_package()
            if self._sessions.model.format != "onnx":
                raise ArgumentError(
                    "BT-COMPAT-FORMAT", "only ONNX files hold this", advice="use bittrue.compat.Interpreter"
                )
            content = self._source
            if not isinstance(content, bytes):
                with open(content, "rb") as file:
                    content = file.read()
            model = onnx.ModelProto()
            model.ParseFromString(content)
            # Weights would only take memory.
            for initializer in model.graph.initializer:
                initializer.ClearField("raw_data")
            overrides = getattr(self._options, "free_dimensions", {})
            for info in (*model.graph.input, *model.graph.value_info, *model.graph.output):
                for dim in info.type.tensor_type.shape.dim if overrides else ():
                    if dim.dim_param in overrides:
                        dim.dim_value = overrides[dim.dim_param]
            self._known = model
        return self._known

    def _shape(self, name: str) -> list[int | str | None] | None:
        """The declared shape of an input; None when the file leaves even the rank open."""
        tensor = self._inputs[name]
        if tensor.shape_signature is None and tensor.shape:
            return list(tensor.shape)
        if self._sessions.model.format != "onnx":
            return [None if size == -1 else size for size in tensor.shape_signature or tensor.shape]
        if name not in self._input_shapes:
            self._input_shapes[name] = _declared(next(i for i in self._proto().graph.input if i.name == name))
        return self._input_shapes[name]

    def _output_shape(self, name: str, tensor: Tensor) -> list[int | str | None]:
        if self._sessions.is_fixed():
            port = next(port for port in self._sessions.find({}).outputs if port.name == name)
            return [None if size == -1 else size for size in port.shape]
        if self._sessions.model.format != "onnx":
            return [None if size == -1 else size for size in tensor.shape_signature or tensor.shape]
        info = next(info for info in self._proto().graph.output if info.name == name)
        shape = _declared(info)
        if shape is None or None in shape:
            from onnx.shape_inference import infer_shapes

            inferred = infer_shapes(self._proto(), data_prop=True).graph.output
            found = _declared(next(info for info in inferred if info.name == name))
            # Names that the inference made up say nothing.
            shape = [None if str(size).startswith(_MADE_UP) else size for size in found] if found else shape
        return shape or []

    def _defaults(self) -> set[str]:
        """Names of the constants that a feed may replace."""
        if self._sessions.model.format != "onnx" or self._proto().ir_version < _IR_WITH_DEFAULTS:
            return set()
        graph = self._proto().graph
        return {info.name for info in graph.input} & {initializer.name for initializer in graph.initializer}

    def _default(self, name: str) -> Tensor:
        if name not in self._defaults():
            raise ArgumentError(
                "BT-INPUT-NAME",
                f"'{name}' is no input",
                advice=near_or_all(name, self._inputs, "inputs"),
            )
        return next(tensor for tensor in self._sessions.graph.tensors if tensor.name == name)


def _type(dtype: DataType) -> str:
    return type_name(dtype.title)


def _declared(info: ValueInfoProto) -> list[int | str | None] | None:
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    kinds = [(dim, dim.WhichOneof("value")) for dim in tensor.shape.dim]
    return [
        dim.dim_value if kind == "dim_value" else dim.dim_param or None if kind == "dim_param" else None
        for dim, kind in kinds
    ]
