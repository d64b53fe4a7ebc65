"""New questions made of old ones: other values of a case's inputs, other scales and constants of its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...errors import BittrueError
from ...importers import tflite_schema
from ...importers.flatbuffer import FlatBuffer, Table
from ...importers.onnx import onnx_package
from ..suite import SuiteCase
from ..suite.draft import generator

# Of so many variations one is made by changing values alone.
_VALUES_ALONE = 2


def variations(case: SuiteCase, start: int = 0, seed: str = "") -> Iterator[SuiteCase]:
    """Without end: the case with other values, and with other parameters; the same ones on every machine.

    Models that bittrue cannot read any more are left out by whoever plans them.
    """
    number = start
    while True:
        random = generator("identify", *([seed] if seed else ()), case.sha256, number)
        content = case.content if number % _VALUES_ALONE else _other_model(case, random)
        inputs = {name: _other_values(case, name, value, random) for name, value in case.inputs.items()}
        yield replace(
            case,
            identity=f"{case.identity}/variation/{number:03d}",
            content=content,
            inputs=inputs,
            note=f"{case.identity} with other {'values' if content is case.content else 'parameters and values'}",
            seeks={},
        )
        number += 1


def _other_values(case: SuiteCase, name: str, value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Quantized values in bands of random place and width, real numbers of the same size; whatever may be an index
    stays.
    """
    if value.dtype.kind == "f":
        size = float(np.abs(value[np.isfinite(value)]).max(initial=1.0)) * 2.0 ** random.integers(-4, 3)
        with np.errstate(over="ignore"):
            return (random.standard_normal(value.shape) * size).astype(value.dtype)
    if value.dtype.kind == "b":
        return random.integers(0, 2, value.shape).astype(bool)
    if value.dtype.kind in "iu" and (value.dtype.itemsize <= 2 or _is_quantized(case, name)):
        bounds = np.iinfo(value.dtype)
        low, high = (bounds.min, bounds.max) if value.dtype.itemsize <= 2 else (value.min(initial=0), value.max())
        one, two = sorted(int(v) for v in random.integers(low, high, 2, np.int64, endpoint=True))
        if random.integers(0, 2):
            one, two = int(low), int(high)
        return random.integers(one, two, value.shape, np.int64, endpoint=True).astype(value.dtype)
    return value


def _is_quantized(case: SuiteCase, name: str) -> bool:
    graph = case.model.graph
    return any(tensor.name == name and tensor.quantization is not None for tensor in graph.tensors)


def _other_model(case: SuiteCase, random: np.random.Generator) -> bytes:
    made = _other_tflite(case.content, random) if case.format == "tflite" else _other_onnx(case.content, random)
    return made or case.content


def _other_tflite(content: bytes, random: np.random.Generator) -> bytes | None:
    """The file with one kind of numbers changed where they lie: scales of the inputs (with the bias's), of the outputs,
    or the bias.
    """
    data = np.frombuffer(content, np.uint8).copy()
    try:
        model = FlatBuffer(data, tflite_schema.fields).root("Model")
        graphs, buffers = model.tables("subgraphs"), model.tables("buffers")
        if graphs is None or buffers is None:
            return None
        tensors = list(graphs[0].tables("tensors") or ())
        inputs, outputs = (set(graphs[0].integers(side) or ()) for side in ("inputs", "outputs"))
    except BittrueError:
        return None
    wide = tflite_schema.TYPES.index("s32"), tflite_schema.TYPES.index("s64")
    biases = [
        (tensor, buffers[tensor.number("buffer")])
        for position, tensor in enumerate(tensors)
        if position not in inputs | outputs and tensor.number("type") in wide and _scales(tensor) is not None
    ]
    what = random.permutation(3)[0]
    if what == 0 and biases:
        for tensor, buffer in biases:
            raw = buffer.numbers("data")
            if raw is not None and raw.size:
                kind = np.dtype(np.int32 if tensor.number("type") == wide[0] else np.int64)
                values = raw.view(kind)
                reach = int(min(max(int(np.abs(values.astype(np.float64)).max()), 64), 1 << 20))
                values[:] = random.integers(-reach, reach, values.shape, np.int64, endpoint=True).astype(kind)
        return data.tobytes()
    # Nearly every number in between is as good; a factor of two and more moves what saturates.
    factor = np.float32(2.0 ** random.uniform(-2, 2))
    changed = inputs if what == 1 else outputs
    for position in changed:
        scales = _scales(tensors[position])
        if scales is not None:
            scales *= factor if what == 2 else np.float32(2.0 ** random.uniform(-1, 1)) if not biases else factor
    if what == 1:
        for tensor, _ in biases:
            scales = _scales(tensor)
            if scales is not None:
                scales *= factor
    return data.tobytes()


def _scales(tensor: Table) -> np.ndarray | None:
    """A view into the file, to be written; None for tensors that have none."""
    quantization = tensor.table("quantization")
    found = None if quantization is None else quantization.numbers("scale")
    return None if found is None or not found.size else found


def _other_onnx(content: bytes, random: np.random.Generator) -> bytes | None:
    """The file with one scale, or the bias, changed: initializers that are real numbers, or 32-bit integers with as
    many axes as a bias has.
    """
    onnx = onnx_package()
    model = onnx.ModelProto.FromString(content)
    found = [one for one in model.graph.initializer if _may_change(onnx, one)]
    if not found:
        return None
    chosen = found[int(random.integers(0, len(found)))]
    values = onnx.numpy_helper.to_array(chosen)
    if values.dtype.kind == "f":
        values = (values * 2.0 ** random.uniform(-2, 2)).astype(values.dtype)
    else:
        reach = int(min(max(int(np.abs(values.astype(np.float64)).max(initial=0)), 64), 1 << 20))
        values = random.integers(-reach, reach, values.shape, np.int64, endpoint=True).astype(values.dtype)
    chosen.CopyFrom(onnx.numpy_helper.from_array(values, chosen.name))
    return bytes(model.SerializeToString(deterministic=True))


def _may_change(onnx: object, initializer: object) -> bool:
    kinds = onnx.TensorProto  # type: ignore[attr-defined]
    kind, axes = initializer.data_type, len(initializer.dims)  # type: ignore[attr-defined]
    return (kind == kinds.FLOAT and axes <= 1) or (kind == kinds.INT32 and axes == 1)
