"""The format onnx: folders in the form of ONNX's backend tests, model.onnx and test_data_set_0 with .pb files.

Beside them stands a manifest of the form ``bittrue-vectors-1``, which says whose outputs the expected ones are.

Cases of .tflite models are written as DequantizeLinear, the operator on real numbers, and QuantizeLinear. That is
another arithmetic, so their expected outputs are those of an ONNX runtime. What ONNX cannot say is left out; the
manifest says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import BittrueError
from ...importers.onnx import onnx_package
from ...importers.onnx_tensors import TYPES
from ..recorded.onnx_case import raw_bytes
from ..suite import SUITES
from ..suite.qdq import qdq_form
from .entry import Entry, Part
from .exporter import word_of
from .manifest import WithManifest

_NUMBERS = {name: number for number, name in TYPES.items()}


class OnnxTests(WithManifest):
    """``test_<case>/model.onnx``, ``test_data_set_0/input_0.pb``, ``output_0.pb``.

    Cases that a device must refuse stand in ``rejects/``, where runners of backend tests do not look.
    """

    name = "onnx"
    title = "model.onnx with test_data_set_0/*.pb, as ONNX's backend tests"
    writes_sums = False
    per_case = True

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self.left_out: list[dict[str, str]] = []

    def add(self, entry: Entry) -> None:
        """The case, or its form in ONNX."""
        if entry.case.format == "onnx":
            super().add(entry)
            return
        form = qdq_form(entry.case)
        if form.content is None:
            self.left_out.append({"case": entry.case.identity, "reason": form.reason})
            return
        numerics = entry.numerics if entry.numerics in SUITES["onnx"].admitted else SUITES["onnx"].numerics
        case = replace(entry.case, format="onnx", content=form.content)
        written = Entry(case, numerics, entry.with_accumulators)
        try:
            super().add(written)
        except BittrueError as error:
            self.left_out.append({"case": case.identity, "reason": str(error)})

    def finish(self) -> None:
        """The manifest."""
        if self.left_out:
            self.extra["left_out"] = self.left_out
        super().finish()

    def model(self, entry: Entry) -> dict[str, Any]:
        """The test's model.onnx."""
        name = f"{_folder(entry)}/model.onnx"
        self.folder.write(name, entry.case.content)
        return {"file": name}

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """A TensorProto; constants are in the model alone."""
        name = f"{_folder(entry)}/test_data_set_0/{part.role}_{part.number}.pb"
        self.folder.write(name, tensor_proto(part))
        return {"file": name}

    def _operand(self, entry: Entry, part: Part) -> dict[str, Any]:
        if part.role == "constant":
            return {**part.facts(), "initializer": True}
        return super()._operand(entry, part)


def _folder(entry: Entry) -> str:
    name = f"test_{word_of(entry.case.identity)}"
    return f"rejects/{name}" if entry.must_fail else name


def tensor_proto(part: Part) -> bytes:
    """The array as a serialized TensorProto."""
    proto = onnx_package().TensorProto(name=part.name, data_type=_NUMBERS[part.dtype])
    proto.dims.extend(part.value.shape)
    proto.raw_data = raw_bytes(part.value, part.type)
    return bytes(proto.SerializeToString(deterministic=True))
