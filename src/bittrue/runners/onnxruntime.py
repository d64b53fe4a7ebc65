"""ONNX Runtime on the CPU, at any level of its optimiser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Model, load
from ..errors import InvalidModelError, RunError
from ..files import scratch_bytes
from ..graph import data_type
from ..numerics import Numerics
from ..numerics import find as find_numerics
from ..ports import Port, pair
from .base import Opened, Peer, Progress, Runner, fitting, given, input_ports, quiet
from .layouts import Layouts, in_model_layout
from .processor import onnxruntime_here
from .recording import Recorded, Recording
from .spool import MEMORY, Spool

# What users type: the runtime's name for it.
LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
# What the numerics does to a graph at levels that do less than its own: go from node to node, or fold constants only.
_REWRITES = {
    "disable": ("cast_last", "clear_overwritten", "keep_planes", "mark_planes"),
    "basic": (
        "settle_constants",
        "fold_constants",
        "prepare_pairs",
        "cast_last",
        "clear_overwritten",
        "keep_planes",
        "mark_planes",
    ),
}
# Levels that lay images out anew; the level before them has the same nodes with the model's own layout.
_LAID_OUT, _PLAIN = ("layout", "all"), "extended"
_TYPES = {"float": "float32", "double": "float64"}
# Types of tensors that the package gives as arrays.
_SHOWN = ("bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "f32", "f64")
# Constants from this size on go to a file of their own, so that models beyond 2 GB can be written.
_LARGE = 1 << 16


@dataclass(frozen=True)
class Settings:
    """How a model is opened.

    Attributes:
        level: one of `LEVELS`.
        disable: optimisers to leave out, by their names in the runtime.
        threads: that one operator may use.
        integers: ``session.qdqisint8allowed``: graphs of s8 activations are fused as those of u8 are. That is the
            setting whose bits the numerics `onnxruntime` reproduces; the runtime's own default on x86-64 is off, whose
            bits `onnxruntime-defaults` has.
    """

    level: str = "all"
    disable: tuple[str, ...] = ()
    threads: int = 1
    integers: bool = True


def _session(module: Any, model: Path | bytes, settings: Settings, optimised: Path | None = None) -> Any:
    options = module.SessionOptions()
    options.graph_optimization_level = getattr(module.GraphOptimizationLevel, LEVELS[settings.level])
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdqisint8allowed", "1" if settings.integers else "0")
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", f"{optimised.stem}.weights")
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", str(_LARGE))
    return module.InferenceSession(
        model if isinstance(model, bytes) else str(model),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=list(settings.disable),
    )


def _type(port: Any) -> str:
    """Type name of an input or output; empty for what is no tensor."""
    if not port.type.startswith("tensor("):
        return ""
    kind = port.type.removeprefix("tensor(").removesuffix(")")
    return _TYPES.get(kind, kind)


def open_onnxruntime(module: Any, path: Path, ports: Sequence[Port], settings: Settings) -> Opened:
    """The model as users run it: nothing is written out, inner tensors stay inside."""
    session = _session(module, path, settings)
    theirs = session.get_inputs()
    order = pair([port.name for port in ports], [port.name for port in theirs], "inputs")
    names = [theirs[i].name for i in order]
    wanted = []
    for port in (theirs[i] for i in order):
        shape = tuple(size if isinstance(size, int) else None for size in port.shape)
        wanted.append((np.dtype(_type(port)), shape))
    fit, remarks = fitting(ports, wanted)

    def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(session.run(None, dict(zip(names, values, strict=True))))

    return Opened(fit, run, tuple(port.name for port in session.get_outputs()), remarks)


def _open_peer(module: Any, path: Path, ports: Sequence[Port], threads: int) -> Opened:
    return open_onnxruntime(module, path, ports, Settings(threads=threads))


ONNXRUNTIME = Peer("onnxruntime", "ONNX Runtime", "onnxruntime", "onnxruntime", ("onnx",), _open_peer)


@dataclass(frozen=True)
class _Opened:
    """A model, and what is run to see inside of it.

    Attributes:
        plain: runs the model as users do.
        every: runs the optimised model with every tensor an output.
        nodes: of the optimised model.
        before: for levels that lay images out anew: like `every` before that; None for other levels.
        layouts: what became of which tensor then.
        idle: optimisers left out that make no difference.
        spool: whose folder holds the files.
    """

    plain: Any
    every: Any
    nodes: Sequence[Any]
    before: Any
    layouts: Layouts | None
    idle: Sequence[str]
    spool: Spool


class OnnxRuntime(Runner):
    """An .onnx model in ONNX Runtime: every tensor of the graph that its optimiser makes.

    The optimised model is written and run again without optimisation, all of its tensors outputs. That this gives
    the outputs of a plain run is checked every time; if not, the recording has the inputs and outputs alone.

    Images that the runtime keeps with channels last are shown with channels first under the name that they have
    before the runtime lays them out; those that it keeps in blocks of channels are left out.
    """

    model: Model

    def __init__(self, spec: str, path: Path, model: Model, settings: Settings, memory: int = MEMORY) -> None:
        ONNXRUNTIME.check(model.format)
        self.spec = spec
        self.path = path
        self.model = model
        self.format = model.format
        self.inputs = input_ports(model)
        self.settings = settings
        self.memory = memory
        off = f", without {', '.join(settings.disable)}" if settings.disable else ""
        self.title = f"ONNX Runtime {ONNXRUNTIME.version()}, level {settings.level}{off}"
        self.arithmetic = _arithmetic(settings)
        self._module = ONNXRUNTIME.load()
        self._opened: _Opened | None = None

    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        opened = self._open()
        values = given(self.inputs, inputs)
        names = [port.name for port in opened.plain.get_inputs()]
        order = pair(list(values), names, "inputs")
        feeds = {names[i]: value for i, value in zip(order, values.values(), strict=True)}
        outputs = self._run(opened.plain, [port.name for port in opened.plain.get_outputs() if _short(port)], feeds)
        spool = Spool(self.memory)
        found = {name: self._recorded(spool, name, value) for name, value in values.items()}
        different = []
        for group in self._every(opened, feeds, progress):
            different += [name for name, value in group.items() if name in outputs and not _same(outputs[name], value)]
            for name, value in self._in_model_layout(opened, feeds, group).items():
                found.setdefault(name, self._recorded(spool, name, value))
        here = onnxruntime_here()
        notes = [*filter(None, [here.unsure])]
        if not self.settings.integers and here.with_options(integers=False) == here.numerics:
            notes.append(f"session.qdqisint8allowed is 0, whose bits no numerics has; '{here.numerics}' means 1")
        if different:
            notes.append(
                "inner tensors are not shown: the optimised model, written and run again, gives other bytes for output "
                + ", ".join(f"'{name}'" for name in different)
            )
            found = {name: self._recorded(spool, name, value) for name, value in {**values, **outputs}.items()}
        else:
            # Outputs that are inputs or constants.
            found.update({n: self._recorded(spool, n, v) for n, v in outputs.items() if n not in found})
            notes += _layout_notes(opened.layouts)
        for name in opened.idle:
            notes.append(
                f"leaving out {name} makes no difference: it does nothing to this model, or there is no such optimiser"
            )
        hidden = [port.name for port in opened.every.get_outputs() if not _short(port)]
        if hidden:
            notes.append(f"not shown, the package has no array for it: {', '.join(repr(name) for name in hidden)}")
        if any(attribute.HasField("g") for node in opened.nodes for attribute in node.attribute):
            notes.append("tensors of called graphs are not shown")
        return Recording(tuple(found.values()), tuple(values), tuple(outputs), tuple(notes))

    def nodes(self) -> Sequence[Any]:
        """The nodes of the optimised model (`onnx.NodeProto`), in execution order."""
        return self._open().nodes

    def node_by_node(self, content: bytes, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """What another model gives that nothing has optimised.

        Raises:
            RunError: the runtime refuses it, or it fails.
        """
        try:
            with quiet():
                session = _session(self._module, content, replace(self.settings, level="disable", disable=()))
        except Exception as error:
            raise RunError("BT-RUNNER-RUN", f"{self.title}: {_message(error)}", place=str(self.path)) from None
        names = [port.name for port in session.get_outputs()]
        return list(self._run(session, names, {port.name: values[port.name] for port in session.get_inputs()}).values())

    def with_model(self, path: Path) -> OnnxRuntime:
        return OnnxRuntime(self.spec_with(path), path, load(path), self.settings, self.memory)

    def _every(
        self, opened: _Opened, feeds: Mapping[str, np.ndarray], progress: Progress | None
    ) -> Iterator[dict[str, np.ndarray]]:
        """Every tensor of the optimised model, in execution order, as many at once as memory takes."""
        ports = [port for port in opened.every.get_outputs() if _short(port)]
        done = 0
        for group in _groups(ports, _bound(opened.plain.get_inputs(), feeds), self.memory):
            yield self._run(opened.every, group, feeds)
            done += len(group)
            if progress is not None:
                progress(done, len(ports))

    def _in_model_layout(
        self, opened: _Opened, feeds: Mapping[str, np.ndarray], group: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        if opened.layouts is None:
            return group
        wanted = [opened.layouts.names[name] for name in group if name in opened.layouts.names]
        return in_model_layout(group, opened.layouts, self._run(opened.before, wanted, feeds) if wanted else {})

    def _open(self) -> _Opened:
        if self._opened is None:
            spool = Spool()
            try:
                with quiet():
                    plain, every, nodes = self._visible(spool, self.settings)
                    before, layouts = None, None
                    if self.settings.level in _LAID_OUT:
                        _, before, old = self._visible(spool, replace(self.settings, level=_PLAIN))
                        layouts = Layouts(nodes, old)
                    idle = [
                        name
                        for name in self.settings.disable
                        if _same_nodes(nodes, self._nodes(spool, [o for o in self.settings.disable if o != name]))
                    ]
            except Exception as error:
                raise InvalidModelError(
                    "BT-RUNNER-REFUSED", f"{self.title} refuses this model: {_message(error)}", place=str(self.path)
                ) from None
            self._opened = _Opened(plain, every, nodes, before, layouts, idle, spool)
        return self._opened

    def _nodes(self, spool: Spool, disable: Sequence[str]) -> Sequence[Any]:
        """Nodes of the optimised model with these optimisers left out."""
        optimised, marked = spool.folder / "other.onnx", spool.folder / "other.marked.onnx"
        _session(self._module, self.path, replace(self.settings, disable=tuple(disable)), optimised)
        return _mark_outputs(optimised, marked)

    def _visible(self, spool: Spool, settings: Settings) -> tuple[Any, Any, Sequence[Any]]:
        """A plain session, one of the optimised model with every tensor an output, and the nodes of that model."""
        optimised, marked = (spool.folder / f"{settings.level}.{part}.onnx" for part in ("optimised", "marked"))
        plain = _session(self._module, self.path, settings, optimised)
        nodes = _mark_outputs(optimised, marked)
        return plain, _session(self._module, marked, replace(settings, level="disable", disable=())), nodes

    def _run(self, session: Any, names: list[str], feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            with quiet():
                return {n: np.asarray(v) for n, v in zip(names, session.run(names, dict(feeds)), strict=True)}
        except Exception as error:
            raise RunError("BT-RUNNER-RUN", f"{self.title}: {_message(error)}", place=str(self.path)) from None

    def _recorded(self, spool: Spool, name: str, value: np.ndarray) -> Recorded:
        known = {tensor.name: tensor.quantization for tensor in self.model.graph.tensors}
        dtype = data_type(value.dtype.name).name
        return Recorded(name, dtype, value.shape, known.get(name), spool.keep(name, value))


def _layout_notes(layouts: Layouts | None) -> list[str]:
    if layouts is None:
        return []
    notes = []
    if layouts.names:
        notes.append(
            f"{len(layouts.names)} tensors that the runtime has laid out anew are shown in the model's layout, under "
            f"their names at level {_PLAIN}"
        )
    if layouts.blocked:
        notes.append(f"{len(layouts.blocked)} tensors that are kept in blocks of channels are not shown as such")
    return notes


def _arithmetic(settings: Settings) -> Numerics:
    here = onnxruntime_here()
    if settings.level in _REWRITES:
        # Nothing is fused there, whatever is allowed.
        return replace(find_numerics(here.numerics), rewrites=_REWRITES[settings.level])
    # The numerics itself, which a command line can name.
    return find_numerics(here.with_options(settings.integers))


def _same_nodes(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whatever their names: those of reordered images change places from session to session."""
    return [_unnamed(node) for node in one] == [_unnamed(node) for node in other]


def _unnamed(node: Any) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    copy.ClearField("name")
    return copy


def _mark_outputs(optimised: Path, marked: Path) -> list[Any]:
    """Write the model with every node's results as outputs; its nodes."""
    from ..importers.onnx import onnx_package

    model = onnx_package().load(str(optimised), load_external_data=False)
    known = {port.name for port in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                model.graph.output.add(name=name)
    # In execution order.
    order = {name: i for i, name in enumerate(name for node in model.graph.node for name in node.output)}
    ports = sorted(model.graph.output, key=lambda port: order.get(port.name, -1))
    del model.graph.output[:]
    model.graph.output.extend(ports)
    scratch_bytes(marked, model.SerializeToString())
    return list(model.graph.node)


def _short(port: Any) -> str:
    """Short type name of an output that can be shown, else nothing."""
    try:
        name = data_type(_type(port)).name
    except KeyError:
        return ""
    return name if name in _SHOWN else ""


def _bound(ports: Iterable[Any], feeds: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Dimensions that the model has names for, as the inputs have them."""
    return {
        name: size
        for port in ports
        for name, size in zip(port.shape, feeds[port.name].shape, strict=False)
        if isinstance(name, str)
    }


def _groups(ports: Sequence[Any], sizes: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """Outputs to be computed together, so that their values take `limit` bytes at most as far as that is known."""
    group: list[str] = []
    size = 0
    for port in ports:
        # What nobody knows counts as 64.
        shape = [dimension if isinstance(dimension, int) else sizes.get(dimension, 64) for dimension in port.shape]
        bytes_ = data_type(_type(port)).numpy.itemsize * int(np.prod(shape, dtype=np.float64))
        if group and size + bytes_ > limit:
            yield group
            group, size = [], 0
        group.append(port.name)
        size += bytes_
    if group:
        yield group


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


def _message(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 600 else f"{text[:600]} ..."
