"""tf.lite.Interpreter (ai_edge_litert.interpreter.Interpreter): the same methods, bittrue's results."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..api import Model, Session, load
from ..errors import RunError
from ..graph import Graph, Tensor
from .sessions import ArgumentError, Sessions


class OpResolverType(enum.Enum):
    """Which of LiteRT's kernels a program asks for."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


# LiteRT takes the XNNPACK delegate unless a program asks for something else.
_NUMERICS = {
    "AUTO": "xnnpack",
    "BUILTIN": "xnnpack",
    "BUILTIN_REF": "litert",
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "litert-optimized",
}
# Tensors without numbers.
_OPAQUE = ("resource", "variant")

Details = dict[str, Any]


class Interpreter:
    """A TFLite model, prepared under a numerics.

    Args:
        model_path, model_content: one of them.
        experimental_delegates: must be empty.
        num_threads: as for `bittrue.Model.prepare`.
        experimental_op_resolver_type: whose kernels, where `numerics` is None: ``AUTO`` means the numerics
            ``"xnnpack"``, ``BUILTIN_REF`` ``"litert"``, ``BUILTIN_WITHOUT_DEFAULT_DELEGATES`` ``"litert-optimized"``.
        experimental_preserve_all_tensors: `get_tensor` knows intermediate tensors, too.
        numerics, executor: as for `bittrue.Model.prepare`.
        ignored: further experimental options; none has an effect.

    Raises:
        ValueError: as the package's own: neither or both of path and content, a bad number of threads.
        InputError, ModelFormatError, InvalidModelError, UnsupportedError: see `bittrue.load`.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        *,
        numerics: str | None = None,
        executor: str = "auto",
        **ignored: Any,
    ) -> None:
        if bool(model_path) == bool(model_content):
            both = "only one of" if model_path else "one of"
            raise ArgumentError("BT-COMPAT-MODEL", f"{both} model_path and model_content must be given")
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
            raise ArgumentError("BT-THREADS", f"num_threads must be an integer from 1, found {num_threads!r}")
        if experimental_delegates:
            raise ArgumentError(
                "BT-COMPAT-DELEGATE", "delegates cannot be loaded", advice="choose a numerics instead, e.g. 'xnnpack'"
            )
        resolver = getattr(experimental_op_resolver_type, "name", None)
        if resolver not in _NUMERICS:
            raise ArgumentError("BT-COMPAT-RESOLVER", f"{experimental_op_resolver_type!r} is no op resolver type")
        self.numerics = numerics or _NUMERICS[resolver]
        self._model: Model = load(model_path or model_content)
        self._options: dict[str, Any] = {"numerics": self.numerics, "executor": executor, "threads": num_threads or 1}
        self._sessions = Sessions(self._model, **self._options)
        self._sessions.check()
        self._keeps = bool(experimental_preserve_all_tensors)
        graph = self._sessions.graph
        self._shapes: dict[int, tuple[int, ...]] = {i: graph.tensors[i].shape for i in graph.inputs}
        self._session: Session | None = None
        self._inputs: dict[int, np.ndarray] = {}
        self._results: dict[int, np.ndarray] = {}

    # -- what the model is -----------------------------------------------------------------------------------------
    def get_input_details(self) -> list[Details]:
        """Name, index, shape, type and quantization of every input."""
        return [self._details(index) for index in self._sessions.graph.inputs]

    def get_output_details(self) -> list[Details]:
        """The same of every output."""
        return [self._details(index) for index in self._sessions.graph.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """The same of every tensor of a subgraph."""
        if not 0 <= subgraph_index < len(self._model.graphs):
            raise ArgumentError(
                "BT-GRAPH", f"subgraph_index is out of range: {subgraph_index} of {len(self._model.graphs)}"
            )
        graph = self._model.graphs[subgraph_index]
        found = [i for i, tensor in enumerate(graph.tensors) if tensor.dtype not in _OPAQUE]
        if subgraph_index:
            return [_describe(i, graph.tensors[i], graph.tensors[i].shape) for i in found]
        return [self._details(i) for i in found]

    def num_subgraphs(self) -> int:
        """Number of graphs in the file."""
        return len(self._model.graphs)

    def _details(self, index: int) -> Details:
        tensor = self._sessions.graph.tensors[index]
        shape = self._shapes.get(index, tensor.shape)
        if self._session is not None and index not in self._shapes:
            planned = self._session.plan.tensors[index]
            if planned.kind in ("computed", "folded", "constant"):
                shape = planned.shape
        return _describe(index, tensor, shape)

    # -- running ---------------------------------------------------------------------------------------------------
    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Give an input a new shape; `allocate_tensors` must follow.

        Args:
            input_index: tensor index.
            tensor_size: the shape.
            strict: only dimensions may change that the file leaves free.
        """
        tensor = self._input(input_index)
        shape = tuple(int(size) for size in np.asarray(tensor_size).reshape(-1))
        if strict:
            free = tensor.shape_signature or tensor.shape
            if len(free) != len(shape) or any(f not in (-1, s) for f, s in zip(free, shape, strict=True)):
                raise ArgumentError(
                    "BT-INPUT-SHAPE",
                    f"shape {list(shape)} changes a fixed dimension of {list(free)}",
                    place=f"input '{tensor.name}'",
                )
        if shape != self._shapes[input_index]:
            self._shapes[input_index] = shape
            self._session = None

    def allocate_tensors(self) -> None:
        """Prepare the model for the shapes of its inputs."""
        if self._session is not None:
            return
        graph = self._sessions.graph
        self._session = self._sessions.find({graph.tensors[i].name: shape for i, shape in self._shapes.items()})
        self._session.reset(resources=False)
        self._inputs = {
            i: np.zeros(shape, graph.tensors[i].type.numpy)
            if i not in self._inputs or self._inputs[i].shape != shape
            else self._inputs[i]
            for i, shape in self._shapes.items()
        }
        self._results = {}

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy an array into an input."""
        tensor = self._input(tensor_index)
        self._ready()
        _copy_into(self._inputs[tensor_index], value, tensor)

    def invoke(self) -> None:
        """Run once, on what the inputs hold."""
        session = self._ready()
        graph = self._sessions.graph
        feeds = {graph.tensors[i].name: array for i, array in self._inputs.items()}
        if self._keeps:
            values = session.trace(feeds)
            self._results = {i: values[t.name] for i, t in enumerate(graph.tensors) if t.name in values}
        else:
            values = session.run(feeds)
            self._results = {i: values[graph.tensors[i].name] for i in graph.outputs}

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray:
        """A copy of an input, an output or a constant; with `experimental_preserve_all_tensors` of any tensor."""
        if subgraph_index:
            raise ArgumentError("BT-GRAPH", "only tensors of the main graph can be read", place="subgraph_index")
        return _taken(self._value(tensor_index))

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that gives the array itself. What is written into an input's array is what `invoke` sees."""
        return lambda: self._value(tensor_index)

    def reset_all_variables(self) -> None:
        """Put variable tensors back to their first values."""
        if self._session is not None:
            self._session.reset(resources=False)

    # -- signatures ------------------------------------------------------------------------------------------------
    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Names of inputs and outputs by signature key."""
        return {
            key: {"inputs": sorted(inputs), "outputs": sorted(outputs)}
            for key, (_, inputs, outputs) in self._signatures().items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function from named inputs to named outputs; the key may be left out where there is one signature only."""
        signatures = self._signatures()
        if signature_key is None and len(signatures) == 1:
            (signature_key,) = signatures
        if signature_key not in signatures:
            raise ArgumentError(
                "BT-COMPAT-SIGNATURE",
                f"no signature {signature_key!r}",
                advice=f"signatures: {', '.join(signatures) or 'none'}",
            )
        graph, inputs, outputs = signatures[signature_key]
        sessions = self._sessions if graph == 0 else Sessions(self._model, graph, **self._options)
        return SignatureRunner(sessions, inputs, outputs)

    def _signatures(self) -> dict[str, tuple[int, dict[str, int], dict[str, int]]]:
        """Graph, inputs and outputs (argument name to tensor index) by key."""
        found = {}
        for number, graph in enumerate(self._model.graphs):
            if graph.signature:
                sides = (graph.inputs, graph.outputs)
                inputs, outputs = ({name: i for name, i in graph.aliases.items() if i in side} for side in sides)
                found[graph.signature] = (number, inputs, outputs)
        return found

    # -- helpers ---------------------------------------------------------------------------------------------------
    def _ready(self) -> Session:
        if self._session is None:
            raise RunError("BT-COMPAT-ALLOCATE", "the model is not ready", advice="call allocate_tensors() first")
        return self._session

    def _input(self, index: int) -> Tensor:
        graph: Graph = self._sessions.graph
        if index not in graph.inputs:
            raise ArgumentError("BT-INPUT-NAME", f"tensor {index} is no input", advice=f"inputs: {graph.inputs}")
        return graph.tensors[index]

    def _value(self, index: int) -> np.ndarray:
        graph = self._sessions.graph
        if not 0 <= index < len(graph.tensors):
            raise ArgumentError("BT-COMPAT-TENSOR", f"no tensor {index}, the graph has {len(graph.tensors)}")
        tensor = graph.tensors[index]
        if tensor.is_constant:
            return tensor.values()
        found = self._inputs.get(index)
        if found is None:
            found = self._results.get(index)
        if self._session is not None and found is None and index in graph.outputs and not self._results:
            # Before the first run; like memory that nobody wrote.
            shape = self._session.plan.tensors[index].shape
            found = None if min(shape, default=0) < 0 else np.zeros(shape, tensor.type.numpy)
        if self._session is None or found is None:
            kept = "run allocate_tensors() and invoke() first"
            if self._session is not None and self._results and not self._keeps:
                kept = "pass experimental_preserve_all_tensors=True"
            raise ArgumentError("BT-COMPAT-TENSOR", "the tensor has no value", place=f"'{tensor.name}'", advice=kept)
        return found


class SignatureRunner:
    """Runs one signature: call it with arrays by argument name."""

    def __init__(self, sessions: Sessions, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        self._sessions = sessions
        self._inputs = inputs
        self._outputs = outputs

    def __call__(self, **arguments: Any) -> dict[str, np.ndarray]:
        """Results by name."""
        if set(arguments) != set(self._inputs):
            raise ArgumentError(
                "BT-INPUT-NAME", f"expected arguments {sorted(self._inputs)}, found {sorted(arguments)}"
            )
        tensors = self._sessions.graph.tensors
        arrays = {self._inputs[name]: np.asarray(value) for name, value in arguments.items()}
        feeds = {}
        for index, array in arrays.items():
            feeds[tensors[index].name] = stored = np.empty(array.shape, tensors[index].type.numpy)
            _copy_into(stored, array, tensors[index])
        results = self._sessions.find({name: array.shape for name, array in feeds.items()}).run(feeds)
        return {name: _taken(results[tensors[index].name]) for name, index in self._outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """Name, index, shape, type and quantization of every input, by argument name."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, Details]:
        """The same of every output."""
        return self._details(self._outputs)

    def _details(self, side: Mapping[str, int]) -> dict[str, Details]:
        tensors = self._sessions.graph.tensors
        return {name: _describe(index, tensors[index], tensors[index].shape) for name, index in side.items()}


def _taken(value: np.ndarray) -> Any:
    """A copy; of rank 0 a NumPy scalar, as the package gives."""
    return value.copy()[()] if value.ndim == 0 else value.copy()


def _copy_into(target: np.ndarray, value: Any, tensor: Tensor) -> None:
    array = np.asarray(value)
    place = f"input '{tensor.name}'"
    if array.dtype != target.dtype:
        raise ArgumentError("BT-INPUT-TYPE", f"expected {target.dtype}, found {array.dtype}", place=place)
    if array.shape != target.shape:
        raise ArgumentError(
            "BT-INPUT-SHAPE",
            f"expected shape {list(target.shape)}, found {list(array.shape)}",
            place=place,
            advice="resize_tensor_input() and allocate_tensors() change it",
        )
    target[...] = array


def _describe(index: int, tensor: Tensor, shape: tuple[int, ...]) -> Details:
    quantization = tensor.quantization
    scales = np.empty(0, np.float32) if quantization is None else quantization.scales.astype(np.float32)
    points = np.empty(0, np.int32) if quantization is None else quantization.zero_points.astype(np.int32)
    single = scales.size == 1
    return {
        "name": tensor.name,
        "index": index,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(tensor.shape_signature or shape, np.int32),
        "dtype": np.bytes_ if tensor.dtype == "string" else tensor.type.numpy.type,
        "quantization": (float(scales[0]), int(points[0])) if single else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": points,
            "quantized_dimension": (quantization.axis or 0) if quantization is not None else 0,
            "block_size": 0,
        },
        "sparsity_parameters": {},
    }
