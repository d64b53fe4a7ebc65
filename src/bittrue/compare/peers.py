"""Other runtimes, as they are installed here. None is a dependency: a missing one says how to install it."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnsupportedError

# What messages call the files of formats that have no extension of their own.
_FILES = {"caffe": "a Caffe network", "caffe2": "a Caffe2 network", "mxnet": "an MXNet symbol"}


@dataclass(frozen=True)
class Feed:
    """One input.

    Attributes:
        name: of the input in the model that bittrue runs.
        value: the array that bittrue gets.
        real: the real numbers that `value` stands for, for peers whose model takes floats; None when there are none.
    """

    name: str
    value: np.ndarray
    real: np.ndarray | None = None


@dataclass(frozen=True)
class Opened:
    """A model in a peer, ready to run.

    Attributes:
        run: sets the inputs, runs, and returns private arrays of all outputs.
        outputs: their names, in the order of `run`.
        remarks: what was done to the inputs so that they fit.
    """

    run: Callable[[], list[np.ndarray]]
    outputs: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peer:
    """One way to run a model with another runtime.

    Attributes:
        name: for command lines.
        title: for people.
        package: what to install with pip.
        module: what to import then.
        reads: formats of model files, the preferred one first.
        prepare: (module, path, feeds, threads) -> Opened.
    """

    name: str
    title: str
    package: str
    module: str
    reads: tuple[str, ...]
    prepare: Callable[[Any, Path, Sequence[Feed], int], Opened]

    def version(self) -> str | None:
        """Installed version; None without the package."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def open(self, files: Mapping[str, Path], feeds: Sequence[Feed], threads: int) -> Opened:
        """The model in this peer.

        Args:
            files: format to path; the same network in every format.
            feeds: the inputs, in the model's order; shapes are changed to theirs where the peer can.
            threads: how many it may use.

        Raises:
            UnsupportedError: the package is missing, or no file has a format that the peer reads.
            Exception: whatever the peer raises about the model.
        """
        try:
            module = importlib.import_module(self.module)
        except ImportError as error:
            reason = "not installed" if self.version() is None else f"cannot be imported: {error}"
            raise UnsupportedError("BT-PEER-MISSING", reason, advice=f"pip install {self.package}") from None
        path = next((files[kind] for kind in self.reads if kind in files), None)
        if path is None:
            given = " or ".join(_FILES.get(kind, f".{kind}") for kind in files)
            advice = "" if files else "pass the model itself"
            raise UnsupportedError(
                "BT-PEER-FORMAT",
                f"reads {' or '.join('.' + kind for kind in self.reads)}, {f'not {given}' if given else 'not plans'}",
                advice="pass the same network with --onnx FILE" if "onnx" in self.reads else advice,
            )
        with _quiet():
            return self.prepare(module, path, feeds, threads)


def _open_litert(resolver: str) -> Callable[[Any, Path, Sequence[Feed], int], Opened]:
    def prepare(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
        interpreter = module.Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=getattr(module.OpResolverType, resolver),
            num_threads=threads,
        )
        details = interpreter.get_input_details()
        order = pair([f.name for f in feeds], [d["name"] for d in details], "inputs")
        for feed, position in zip(feeds, order, strict=True):
            if tuple(details[position]["shape"]) != feed.value.shape:
                interpreter.resize_tensor_input(details[position]["index"], list(feed.value.shape))
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        values, remarks = _fit(feeds, [(details[i]["dtype"], tuple(details[i]["shape"])) for i in order])
        indices = [details[i]["index"] for i in order]
        outputs = interpreter.get_output_details()

        def run() -> list[np.ndarray]:
            for index, value in zip(indices, values, strict=True):
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            return [interpreter.get_tensor(output["index"]) for output in outputs]

        return Opened(run, tuple(output["name"] for output in outputs), remarks)

    return prepare


def _open_openvino(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
    core = module.Core()
    model = core.read_model(str(path))
    names = [[*port.get_names()] for port in model.inputs]
    order = pair([f.name for f in feeds], names, "inputs")
    shapes = [_extents(port.get_partial_shape()) for port in model.inputs]
    if (
        any(not _matches(f.value.shape, shapes[i]) for f, i in zip(feeds, order, strict=True))
        and path.suffix != ".onnx"
    ):
        model.reshape({model.inputs[i]: list(f.value.shape) for f, i in zip(feeds, order, strict=True)})
    options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads)}
    compiled = core.compile_model(model, "CPU", options)
    ports = [compiled.inputs[i] for i in order]
    values, remarks = _fit(feeds, [(p.get_element_type().to_dtype(), _extents(p.get_partial_shape())) for p in ports])
    inputs = dict(zip(order, values, strict=True))
    outputs = list(compiled.outputs)

    def run() -> list[np.ndarray]:
        results = compiled(inputs)
        return [results[port] for port in outputs]

    return Opened(run, tuple(next(iter(sorted(port.get_names())), "") for port in outputs), remarks)


def _open_onnxruntime(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Graphs of s8 activations are fused as those of u8 are: the setting whose bits numerics `onnxruntime` reproduces.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ports = session.get_inputs()
    order = pair([f.name for f in feeds], [port.name for port in ports], "inputs")
    wanted = []
    for port in (ports[i] for i in order):
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        shape = tuple(extent if isinstance(extent, int) else None for extent in port.shape)
        wanted.append((np.dtype({"float": "float32", "double": "float64"}.get(kind, kind)), shape))
    values, remarks = _fit(feeds, wanted)
    inputs = {ports[i].name: value for i, value in zip(order, values, strict=True)}

    def run() -> list[np.ndarray]:
        return list(session.run(None, inputs))

    return Opened(run, tuple(port.name for port in session.get_outputs()), remarks)


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "litert",
            "LiteRT reference kernels",
            "ai-edge-litert",
            "ai_edge_litert.interpreter",
            ("tflite",),
            _open_litert("BUILTIN_REF"),
        ),
        Peer(
            "xnnpack",
            "LiteRT with XNNPACK",
            "ai-edge-litert",
            "ai_edge_litert.interpreter",
            ("tflite",),
            _open_litert("AUTO"),
        ),
        Peer("onnxruntime", "ONNX Runtime", "onnxruntime", "onnxruntime", ("onnx",), _open_onnxruntime),
        Peer("openvino", "OpenVINO", "openvino", "openvino", ("tflite", "onnx"), _open_openvino),
    )
}


def pair(ours: Sequence[str], theirs: Sequence[str | list[str]], what: str) -> list[int]:
    """For each of our names the position among theirs: by name where all are found, else in order."""
    known = {name: i for i, names in enumerate(theirs) for name in ([names] if isinstance(names, str) else names)}
    if len(set(ours)) == len(ours) and all(name in known for name in ours):
        return [known[name] for name in ours]
    if len(ours) != len(theirs):
        raise UnsupportedError("BT-PEER-PORTS", f"its model has {len(theirs)} {what}, ours {len(ours)}")
    return list(range(len(ours)))


def _fit(
    feeds: Sequence[Feed], wanted: Sequence[tuple[Any, tuple[int | None, ...]]]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The inputs in the types and shapes that a peer's model wants, and what was done to them."""
    values, remarks = [], []
    for feed, (dtype, shape) in zip(feeds, wanted, strict=True):
        value = feed.value
        if value.dtype != np.dtype(dtype):
            if np.dtype(dtype) != np.float32 or feed.real is None:
                raise UnsupportedError(
                    "BT-PEER-INPUT", f"takes {np.dtype(dtype)} for input '{feed.name}', the model takes {value.dtype}"
                )
            value = np.ascontiguousarray(feed.real, np.float32)
            remarks.append(f"input '{feed.name}' as the real numbers (float32) that its {feed.value.dtype} stands for")
        if not _matches(value.shape, shape):
            if value.ndim != 4 or not _matches((value.shape[0], value.shape[3], *value.shape[1:3]), shape):
                raise UnsupportedError(
                    "BT-PEER-INPUT",
                    f"takes shape {['?' if e is None else e for e in shape]} for input '{feed.name}', "
                    f"the model takes {list(value.shape)}",
                )
            value = np.ascontiguousarray(value.transpose(0, 3, 1, 2))
            remarks.append(f"input '{feed.name}' with channels first")
        values.append(value)
    return values, tuple(remarks)


def _matches(shape: Sequence[int], pattern: Sequence[int | None]) -> bool:
    return len(shape) == len(pattern) and all(p is None or e == p for e, p in zip(shape, pattern, strict=True))


def _extents(shape: Any) -> tuple[int | None, ...]:
    """Extents of an OpenVINO shape; None where they are open."""
    return tuple(None if extent.is_dynamic else extent.get_length() for extent in shape)


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on standard error: runtimes announce their delegates there; their errors come as exceptions."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
