"""OpenVINO on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Model, load
from ..errors import InvalidModelError
from ..graph import data_type
from ..ports import Port, pair
from .base import Opened, Peer, Progress, Runner, fitting, given, input_ports, matches, ports_for, quiet
from .recording import Recorded, Recording
from .spool import Spool

# Operators whose results are no tensors of a run.
_NO_RESULTS = ("Constant", "Parameter", "Result")


@cache
def _core(module: Any) -> Any:
    """Loading the plugins takes longer than compiling a small model."""
    return module.Core()


def _compiled(module: Any, path: Path, ports: Sequence[Port], threads: int, every: bool = False) -> tuple[Any, Opened]:
    """The compiled model, ready to run."""
    core = _core(module)
    model = core.read_model(str(path))
    names = [[*port.get_names()] for port in model.inputs]
    order = pair([port.name for port in ports], names, "inputs")
    shapes = [_sizes(port.get_partial_shape()) for port in model.inputs]
    # Sizes that runs do not change are closed: that is faster, and what cannot be compiled says so now. With open ones
    # it fails in a run, or gives outputs without elements.
    wanted = [tuple(None if axis in p.free else size for axis, size in enumerate(p.shape)) for p in ports]
    closed = {
        model.inputs[i]: [-1 if size is None else size for size in shape]
        for port, shape, i in zip(ports, wanted, order, strict=True)
        if shape != shapes[i] and (path.suffix != ".onnx" or matches(port.shape, shapes[i]))
    }
    if closed:
        model.reshape(closed)
    if every:
        ends = {port.get_node().input_value(0) for port in model.outputs}
        nodes = [node for node in model.get_ordered_ops() if node.get_type_name() not in _NO_RESULTS]
        model.add_outputs([port for node in nodes for port in node.outputs() if port not in ends and port.get_names()])
    options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads)}
    compiled, notes = _compile(core, model, options)
    theirs = [compiled.inputs[i] for i in order]
    fit, remarks = fitting(ports, [(p.get_element_type().to_dtype(), _sizes(p.get_partial_shape())) for p in theirs])
    outputs, request = list(compiled.outputs), compiled.create_infer_request()

    def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = request.infer(dict(zip(order, values, strict=True)), share_inputs=True)
        return [results[port] for port in outputs]

    return compiled, Opened(fit, run, tuple(map(_name, outputs)), (*notes, *remarks), request.reset_state)


def _compile(core: Any, model: Any, options: dict[str, str]) -> tuple[Any, tuple[str, ...]]:
    """The model as the CPU plugin compiles it by itself, else with real numbers in binary32, and a remark on that.

    A processor with bfloat16 makes it the plugin's choice, even where ONEDNN_MAX_CPU_ISA leaves no kernels for it.
    """
    try:
        return core.compile_model(model, "CPU", options), ()
    except RuntimeError:
        hint = {"INFERENCE_PRECISION_HINT": "f32"}
        try:
            compiled = core.compile_model(model, "CPU", {**options, **hint})
        except RuntimeError:
            compiled = None
        if compiled is None:
            raise
        return compiled, ("with INFERENCE_PRECISION_HINT=f32, as it does not compile the model without",)


def _open_openvino(module: Any, path: Path, ports: Sequence[Port], threads: int) -> Opened:
    return _compiled(module, path, ports, threads)[1]


def _name(port: Any) -> str:
    return next(iter(sorted(port.get_names())), "")


def _sizes(shape: Any) -> tuple[int | None, ...]:
    """Dimensions of an OpenVINO shape; None where they are open."""
    return tuple(None if size.is_dynamic else size.get_length() for size in shape)


OPENVINO = Peer("openvino", "OpenVINO", "openvino", "openvino", ("tflite", "onnx"), _open_openvino)


class OpenVino(Runner):
    """A model in OpenVINO's CPU plugin.

    Args:
        every: also show inner tensors. The plugin fuses around what is asked for, so this can change its results.
        threads: that it may use.
    """

    model: Model

    def __init__(self, spec: str, path: Path, model: Model, every: bool = False, threads: int = 1) -> None:
        OPENVINO.check(model.format)
        self.spec = spec
        self.path = path
        self.model = model
        self.format = model.format
        self.inputs = input_ports(model)
        self.title = f"OpenVINO {OPENVINO.version()}{', every tensor asked for' if every else ''}"
        self.arithmetic = None
        self._every = every
        self._threads = threads
        self._module = OPENVINO.load()

    def with_model(self, path: Path) -> OpenVino:
        return OpenVino(self.spec_with(path), path, load(path), self._every, self._threads)

    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        values = given(self.inputs, inputs)
        plain, remarks = self._run(values, False)
        found = dict(plain)
        notes = [*remarks]
        if self._every:
            found = self._run(values, True)[0]
            different = [n for n, v in plain.items() if n not in found or v.tobytes() != found[n].tobytes()]
            changed = f"gives other bytes for output {', '.join(map(repr, different))}" if different else "agrees"
            notes.append(f"asking for inner tensors changes what is fused; the plain run {changed}")
        else:
            notes.append("outputs only: asking for inner tensors changes what is fused; ?tensors=all asks for them")
        spool = Spool()
        known = {tensor.name: tensor.quantization for tensor in self.model.graph.tensors}
        tensors = []
        for name, value in {**values, **{n: v for n, v in found.items() if n not in values}}.items():
            # Inner tensors are real numbers here, whatever they are in the file.
            quantization = known.get(name) if value.dtype.kind in "iu" else None
            dtype = data_type(value.dtype.name).name
            tensors.append(Recorded(name, dtype, value.shape, quantization, spool.keep(name, value)))
        return Recording(tuple(tensors), tuple(values), tuple(plain), tuple(notes))

    def _run(self, values: Mapping[str, np.ndarray], every: bool) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Values by name, the model's outputs under its own names, and what was done to the inputs."""
        graph = self.model.graph
        try:
            with quiet():
                inputs = ports_for(self.inputs, values)
                compiled, opened = _compiled(self._module, self.path, inputs, self._threads, every)
                ports = list(compiled.outputs)
                arrays = [np.array(value) for value in opened.run(opened.fit([*values.values()]))]
        except Exception as error:
            text = " ".join(str(error).split())[:600] or type(error).__name__
            raise InvalidModelError("BT-RUNNER-REFUSED", f"{self.title}: {text}", place=str(self.path)) from None
        count = len(graph.outputs)
        ours = [graph.tensors[i].name for i in graph.outputs]
        order = pair(ours, [[*port.get_names()] for port in ports[:count]], "outputs")
        found = {name: arrays[i] for name, i in zip(ours, order, strict=True)}
        for port, value in zip(ports[count:], arrays[count:], strict=True):
            found.setdefault(_name(port), value)
        return found, opened.remarks
