"""ONNX's backend interface (onnx.backend.base), so that its official tests run unchanged.

::

    import bittrue.onnx_backend as backend

    outputs = backend.prepare(model).run([x])
    tests = onnx.backend.test.BackendTest(backend, __name__)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .api import load
from .compat.sessions import Sessions, as_narrow, as_stored
from .errors import BittrueError, InputError
from .graph import data_type
from .importers.onnx import NEWEST_OPSET, onnx_package
from .importers.onnx_tensors import TYPES

onnx_package()

from onnx.backend.base import Backend, BackendRep, namedtupledict  # noqa: E402 (a typed error comes first)

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_NUMERICS = "onnx"
_IR_VERSION = 11


class PreparedModel(BackendRep):
    """What `prepare` returns; prepared again for every new combination of input shapes."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        graph = sessions.graph
        self._inputs = [graph.tensors[i] for i in graph.inputs]
        self._outputs = [graph.tensors[i] for i in graph.outputs]
        self._results = namedtupledict("Outputs", [tensor.name for tensor in self._outputs])

    def run(self, inputs: Any, **ignored: Any) -> tuple[Any, ...]:
        """Run once.

        Args:
            inputs: arrays in the order of the graph's inputs (initializers excluded), a mapping by name, or one array.
            ignored: accepted.

        Returns:
            A tuple of arrays that also knows them by output name. Narrow integers are those of `ml_dtypes`.

        Raises:
            InputError, RunError: as for `bittrue.Session.run`.
        """
        names = [tensor.name for tensor in self._inputs]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) != len(names):
                raise InputError("BT-INPUT-COUNT", f"{len(values)} arrays given, the model has {len(names)} inputs")
            given = dict(zip(names, values, strict=True))
        if set(given) != set(names):
            raise InputError("BT-INPUT-NAME", f"expected inputs {names}, found {list(given)}")
        feeds = {t.name: as_stored(given[t.name], t.type, f"input '{t.name}'") for t in self._inputs}
        session = self._sessions.find({name: array.shape for name, array in feeds.items()})
        results = session.run(feeds)
        return self._results(*(as_narrow(results[t.name], t.type) for t in self._outputs))


class BittrueBackend(Backend):
    """bittrue as an ONNX backend."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **options: Any) -> bool:
        """Whether the model can be prepared: every operator is known under the numerics."""
        try:
            cls.prepare(model, device, **options)
        except BittrueError:
            return False
        return True

    @classmethod
    def prepare(
        cls,
        model: ModelProto | bytes | str | os.PathLike[str],
        device: str = "CPU",
        numerics: str = _NUMERICS,
        executor: str = "auto",
        threads: int = 1,
        **ignored: Any,
    ) -> PreparedModel:
        """Read and prepare a model.

        Args:
            model: a ModelProto, the bytes of one, or a path.
            device: ``"CPU"``.
            numerics: whose arithmetic; ``"onnx"`` is the specification's.
            executor, threads: as for `bittrue.Model.prepare`.
            ignored: options of other backends.

        Raises:
            InputError, ModelFormatError, InvalidModelError, UnsupportedError: see `bittrue.load` and
                `bittrue.Model.prepare`.
        """
        if not cls.supports_device(device):
            raise InputError("BT-DEVICE", f"no device '{device}'", advice="use 'CPU'")
        source = model if isinstance(model, bytes | str | os.PathLike) else model.SerializeToString()
        sessions = Sessions(load(source), numerics=numerics, executor=executor, threads=threads)
        sessions.check()
        return PreparedModel(sessions)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """`prepare` and `PreparedModel.run` in one."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Run one node.

        Args:
            node: the operator.
            inputs: one array per input that is not left out, in order; or a mapping by name.
            outputs_info: type and shape of every output; checked, not needed.
            options: `opset_version` (the newest by default), and those of `prepare`.
        """
        onnx = onnx_package()
        names = list(dict.fromkeys(name for name in node.input if name))
        values = [inputs[name] for name in names] if isinstance(inputs, Mapping) else inputs
        arrays = [np.asarray(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
        if len(arrays) != len(names):
            raise InputError("BT-INPUT-COUNT", f"{len(arrays)} arrays given, the node has {len(names)} inputs")
        infos = [
            onnx.helper.make_tensor_value_info(name, _number(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [name for name in node.output if name]
        known: list[tuple[int, Any]] = [(_number(np.dtype(kind)), shape) for kind, shape in outputs_info or ()]
        graph = onnx.helper.make_graph(
            [node],
            "node",
            infos,
            [
                onnx.helper.make_tensor_value_info(name, kind, shape)
                for name, (kind, shape) in zip(results, known or [(0, None)] * len(results), strict=True)
            ],
        )
        imports = [onnx.helper.make_opsetid("", int(options.pop("opset_version", NEWEST_OPSET)))]
        if node.domain:
            imports.append(onnx.helper.make_opsetid(node.domain, 1))
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
        return cls.run_model(model, arrays, device, **options)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only the CPU."""
        return device.partition(":")[0] == "CPU"


def _number(dtype: np.dtype) -> int:
    """TensorProto.DataType of an array's type."""
    for number, short in TYPES.items():
        if number and dtype.name in (data_type(short).title, data_type(short).array):
            return number
    raise InputError("BT-INPUT-TYPE", f"{dtype} is no element type of ONNX")


is_compatible = BittrueBackend.is_compatible
prepare = BittrueBackend.prepare
run = BittrueBackend.run_model
run_model = BittrueBackend.run_model
run_node = BittrueBackend.run_node
supports_device = BittrueBackend.supports_device
