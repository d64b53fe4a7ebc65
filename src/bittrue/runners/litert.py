"""LiteRT: its reference kernels, its optimised kernels, and its default kernels with the XNNPACK delegate.

The interpreter of a recording runs in a process of its own: checks that fail inside of it end the process that it runs
in, and some models make it write past its buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Model, load
from ..errors import InvalidModelError
from ..files import read_file, scratch
from ..graph import data_type
from ..numerics import find as find_numerics
from ..ports import Port, pair
from .base import Opened, Peer, Progress, Runner, fitting, given, input_ports
from .process import Worker
from .processor import numerics_here
from .recording import Recorded, Recording
from .spool import Spool

# What users type: the interpreter's name for it, the numerics that stands for it, and what people call it.
RESOLVERS = {
    "builtin_ref": ("BUILTIN_REF", "litert", "reference kernels"),
    "optimized": ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-optimized", "optimised kernels"),
    "xnnpack": ("AUTO", "xnnpack", "with XNNPACK"),
}


# Where a table QuantizationParameters has its quantized_dimension (schema.fbs).
_QUANTIZED_DIMENSION = 16


def _interpreter(module: Any, content: bytes, resolver: str, threads: int, every_tensor: bool = False) -> Any:
    # Not the path: the interpreter would map the file, and die when somebody cuts it off.
    return module.Interpreter(
        model_content=content,
        experimental_op_resolver_type=getattr(module.OpResolverType, RESOLVERS[resolver][0]),
        experimental_preserve_all_tensors=every_tensor,
        num_threads=threads,
    )


def _allocated(interpreter: Any, ports: Sequence[Port]) -> tuple[Any, list[int]]:
    """The interpreter, ready for inputs of these shapes, and where each of them is among its own."""
    details = interpreter.get_input_details()
    order = pair([port.name for port in ports], [detail["name"] for detail in details], "inputs")
    for port, position in zip(ports, order, strict=True):
        if tuple(details[position]["shape"]) != port.shape:
            interpreter.resize_tensor_input(details[position]["index"], list(port.shape))
    interpreter.allocate_tensors()
    return interpreter, order


def open_litert(resolver: str) -> Callable[[Any, Path, Sequence[Port], int], Opened]:
    """Opens models as users run them, with these kernels: inner tensors are not kept."""

    def prepare(module: Any, path: Path, ports: Sequence[Port], threads: int) -> Opened:
        content = read_file(path)
        interpreter, order = _allocated(_interpreter(module, content, resolver, threads), ports)
        details = interpreter.get_input_details()
        fit, remarks = fitting(ports, [(details[i]["dtype"], tuple(details[i]["shape"])) for i in order])
        indices = [details[i]["index"] for i in order]
        outputs = interpreter.get_output_details()
        # Resetting brings back variable tensors only; an interpreter keeps resource variables as long as it lives.
        resources = any(detail["dtype"] is np.object_ for detail in interpreter.get_tensor_details())

        def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
            for index, value in zip(indices, values, strict=True):
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            return [interpreter.get_tensor(output["index"]) for output in outputs]

        def reset() -> None:
            nonlocal interpreter
            if resources:
                interpreter, _ = _allocated(_interpreter(module, content, resolver, threads), ports)
            else:
                interpreter.reset_all_variables()

        return Opened(fit, run, tuple(output["name"] for output in outputs), remarks, reset)

    return prepare


def _peer(name: str, title: str, resolver: str) -> Peer:
    return Peer(name, title, "ai-edge-litert", "ai_edge_litert.interpreter", ("tflite",), open_litert(resolver))


LITERT = _peer("litert", "LiteRT reference kernels", "builtin_ref")
XNNPACK = _peer("xnnpack", "LiteRT with XNNPACK", "xnnpack")


class LiteRT(Runner):
    """A .tflite model in LiteRT, every tensor of its main graph.

    Args:
        resolver: one of `RESOLVERS`.
        threads: that the interpreter may use.
        timeout: seconds that a run may take.
        repair: run a copy in which tensors of one axis have quantized dimension 0. Old converters gave biases that of
            the weights; the interpreter refuses that, its kernels never look at it.
        worker: a process to share; a new one by default.
    """

    model: Model

    def __init__(
        self,
        spec: str,
        path: Path,
        model: Model,
        resolver: str,
        threads: int = 1,
        timeout: float = 600,
        repair: bool = False,
        worker: Worker | None = None,
    ) -> None:
        LITERT.check(model.format, "LiteRT")
        self.spec = spec
        self.path = path
        self.model = model
        self.format = model.format
        kernels, numerics, title = RESOLVERS[resolver]
        self.title = f"LiteRT {LITERT.version()}, {title} ({kernels})"
        self.arithmetic = find_numerics(numerics_here(numerics))
        self.inputs = input_ports(model)
        self._options: dict[str, Any] = {"path": str(path), "resolver": resolver, "threads": threads, "repair": repair}
        self._timeout = timeout
        self._worker = worker or Worker("LiteRT", __name__)

    def with_model(self, path: Path) -> LiteRT:
        return LiteRT(
            self.spec_with(path),
            path,
            load(path),
            self._options["resolver"],
            self._options["threads"],
            self._timeout,
            self._options["repair"],
            self._worker,
        )

    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        graph = self.model.graph
        values = given(self.inputs, inputs)
        spool = Spool()
        feeds, shown = spool.file(), spool.file()
        answer = self._worker.ask(
            {
                **self._options,
                "feeds": _write(feeds, values.values()),
                "feeds_file": str(feeds),
                "wanted": list(_order(self.model)),
                "values_file": str(shown),
            },
            self._timeout,
            spool.folder / "messages",
        )
        feeds.unlink()
        if "refused" in answer:
            text = " ".join(answer["refused"].split())
            advice = "bittrue check says what the specification has against it"
            if "quantized_dimension" in text and not self._options["repair"]:
                advice = "?repair=1 runs a copy in which tensors of one axis have quantized dimension 0"
            raise InvalidModelError(
                "BT-RUNNER-REFUSED",
                f"{self.title} refuses this model or its inputs: {text[:400]}{'...' if len(text) > 400 else ''}",
                place=str(self.path),
                advice=advice,
            )
        tensors, hidden = [], []
        for entry in answer["values"]:
            tensor = graph.tensors[entry["index"]]
            dtype = data_type(tensor.dtype)
            if not dtype.bits or entry["dtype"] != dtype.numpy.name or dtype.is_packed:
                hidden.append(f"'{tensor.name}' ({dtype.title})")
                continue
            load = spool.reader(shown, dtype.numpy, entry["shape"], entry["start"])
            tensors.append(Recorded(tensor.name, tensor.dtype, tuple(entry["shape"]), tensor.quantization, load))
        names = {tensor.name for tensor in tensors}
        outputs = tuple(name for i in graph.outputs if (name := graph.tensors[i].name) in names)
        if progress is not None:
            progress(len(graph.nodes), len(graph.nodes))
        return Recording(tuple(tensors), tuple(values), outputs, tuple(_notes(self.model, answer, hidden)))

    def close(self) -> None:
        self._worker.close()


def _notes(model: Model, answer: Mapping[str, Any], hidden: Sequence[str]) -> list[str]:
    notes = []
    if answer["repaired"]:
        notes.append(
            f"run from a copy in which {answer['repaired']} tensors of one axis have quantized dimension 0 instead of "
            "one past their rank"
        )
    if hidden:
        notes.append(f"not shown, the interpreter has no array for it: {', '.join(hidden)}")
    if answer["unread"]:
        names = ", ".join(f"'{model.graph.tensors[i].name}'" for i in answer["unread"])
        notes.append(f"not shown, has no memory after the run or is unpacked by a delegate for itself: {names}")
    if len(model.graphs) > 1:
        notes.append("tensors of called graphs are not shown: the interpreter does not say which of them ran")
    if any(t.is_variable for t in model.graph.tensors):
        notes.append("variable tensors start from their first values")
    if answer["different"]:
        names = ", ".join(f"'{model.graph.tensors[i].name}'" for i in answer["different"])
        notes.append(f"a run that keeps every tensor gives other bytes than a plain run for output {names}")
    return notes


def _order(model: Model) -> dict[int, None]:
    """Tensors that are not constants, in execution order: inputs, then what each node writes; outputs in any case."""
    graph = model.graph
    found = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        found.update(dict.fromkeys(node.outputs))
        found.update(dict.fromkeys(i for i in node.inputs if i is not None and graph.tensors[i].is_variable))
    found.update(dict.fromkeys(graph.outputs))
    return {i: None for i in found if data_type(graph.tensors[i].dtype).bits}


def _write(path: Path, values: Any) -> list[dict[str, Any]]:
    """All values in one file; where each one begins."""
    entries = []
    with scratch(path) as file:
        for value in values:
            entries.append({"dtype": value.dtype.name, "shape": list(value.shape), "start": file.tell()})
            file.write(np.ascontiguousarray(value).tobytes())
    return entries


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """One recording: what the process that runs the interpreter does for `LiteRT.record`."""
    from .spool import read_values

    try:
        module = LITERT.load()
        path, resolver, threads = Path(request["path"]), request["resolver"], request["threads"]
        feeds = [
            read_values(Path(request["feeds_file"]), np.dtype(f["dtype"]), f["shape"], f["start"])
            for f in request["feeds"]
        ]
        repaired, model = _repaired(path) if request["repair"] else (0, read_file(path))
        full, plain = (
            _invoked(_interpreter(module, model, resolver, threads, every), feeds) for every in (True, False)
        )
        values, unread = [], []
        with scratch(request["values_file"]) as file:
            skipped = _unpacked(full)
            for index in request["wanted"]:
                value = None if index in skipped else _read(full, index)
                if value is None:
                    unread.append(index)
                    continue
                values.append(
                    {"index": index, "dtype": value.dtype.name, "shape": list(value.shape), "start": file.tell()}
                )
                file.write(np.ascontiguousarray(value).tobytes())
    except Exception as error:
        return {"refused": f"{error}".strip() or type(error).__name__}
    outputs = [detail["index"] for detail in full.get_output_details()]
    different = [i for i in outputs if not _same(full, plain, i)]
    return {"values": values, "unread": unread, "different": different, "repaired": repaired}


def _repaired(path: Path) -> tuple[int, bytes]:
    """How many quantized dimensions of tensors with one axis became 0, and the model's bytes with them."""
    from ai_edge_litert import schema_py_generated as schema

    content, count = bytearray(read_file(path)), 0
    model = schema.Model.GetRootAs(content, 0)
    for graph in (model.Subgraphs(i) for i in range(model.SubgraphsLength())):
        for tensor in (graph.Tensors(i) for i in range(graph.TensorsLength())):
            details = tensor.Quantization()
            if tensor.ShapeLength() == 1 and details is not None and details.QuantizedDimension() > 0:
                start = details._tab.Pos + details._tab.Offset(_QUANTIZED_DIMENSION)
                content[start : start + 4] = bytes(4)
                count += 1
    return count, bytes(content)


def _invoked(interpreter: Any, feeds: Sequence[np.ndarray]) -> Any:
    details = interpreter.get_input_details()
    for detail, feed in zip(details, feeds, strict=True):
        if tuple(detail["shape"]) != feed.shape:
            interpreter.resize_tensor_input(detail["index"], list(feed.shape))
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return interpreter


def _read(interpreter: Any, index: int) -> np.ndarray | None:
    try:
        return np.asarray(interpreter.get_tensor(index))
    except ValueError as error:
        details = interpreter._get_tensor_details(index, 0)
        # The binding takes empty tensors whose shape was found while running for broken ones.
        if "Invalid tensor size" in str(error) and 0 in details["shape"]:
            return np.empty(details["shape"], details["dtype"])
        return None


def _unpacked(interpreter: Any) -> set[int]:
    """Tensors of the main graph that a delegate never writes: it unpacks constants for itself, and their memory holds
    anything.
    """
    # Not `_get_ops_details`, which reads the names of tensors: the binding refuses those that are no UTF-8.
    inner = interpreter._interpreter
    nodes = [
        (inner.NodeName(index), set(map(int, inner.NodeInputs(index))), set(map(int, inner.NodeOutputs(index))))
        for index in range(inner.NumNodes())
    ]
    taken = {index for name, _, results in nodes if name == "DELEGATE" for index in results}
    made = set(map(int, inner.InputIndices())).union(*(results for _, _, results in nodes))
    found: set[int] = set()
    for name, sources, results in nodes:
        if name in ("DEQUANTIZE", "DENSIFY") and not sources & (made - found):
            found |= results & taken
    return found


def _same(one: Any, two: Any, index: int) -> bool:
    a, b = _read(one, index), _read(two, index)
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
