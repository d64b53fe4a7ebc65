"""Values that well-behaved generators never draw, in one place: every builder of test models draws from here.

`uglier` rewrites a model of a few operators that somebody built: quantization, shapes and names become what a file may
say and no converter writes. `differential.check` does that to a share of all models that properties draw, so that no
builder has to think of it, and no builder can leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import bittrue

from .build import NUMPY, PACKED, TYPES
from .values import random_values

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
# Beyond 32 bits: what is left of them when a runtime keeps an int must not matter to whoever reads the file.
WIDE_ZERO_POINTS = (*INT64, 2**31, -(2**31) - 1, 2**32, 2**32 + 5, -(2**40))
SCALES = (
    1.0,
    1e-45,  # the smallest subnormal number
    1e-39,
    float(np.finfo(np.float32).tiny),
    1e-20,
    1e-9,
    2.0**-31,
    255.0,
    65536.0,
    2.0**31,
    1e20,
    float(np.finfo(np.float32).max),
)
# No scale at all: what divides by it or compares with it must have been refused before.
NO_SCALES = (0.0, -0.0, -1.0, float("inf"), float("-inf"), float("nan"))
NAMES = (
    b"[bold]x[/bold]",
    b"[/x]",
    b"<b>&amp;</b>",
    b"\x1b[31mred\x1b[0m",
    b"\x1b]0;title\x07",
    b"a\x00b",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u202egpj.exe".encode(),
    "\u0085\u2028|".encode(),
    b"a|b`c",
    b"../../etc/passwd",
    b"{0}%s%n$HOME",
    b"x" * 300,
)
# Codes with which bittrue may refuse what the runtime runs once values are ugly. Each says why there is no result:
# overflows, shifts and conversions that C++ leaves undefined, reads beyond a buffer, scales that are not there (kernels
# take them for 0), zero points of which they keep the low bits, declared types that kernels override, and memory that
# is never written.
UNDEFINED = frozenset(
    {
        "BT-ACTIVATION-RANGE",
        "BT-ADD-POWERS",
        "BT-ARG-EMPTY",
        "BT-ARG-TYPE",
        "BT-BIAS-TYPE",
        "BT-COMPARE-SCALE",
        "BT-CONV-CHANNELS",
        "BT-DIAGONAL",
        "BT-DILATE",
        "BT-DIVIDE-RANGE",
        "BT-EMBEDDING",
        "BT-FC-DEPTH",
        "BT-GATHER",
        "BT-LSTM-CELL-SCALE",
        "BT-LSTM-SHAPE",
        "BT-MULTIPLIER",
        "BT-PAD",
        "BT-QUANT-AXIS",
        "BT-QUANT-MISSING",
        "BT-QUANT-OVERFLOW",
        "BT-QUANT-PER-AXIS",
        "BT-QUANT-ZERO-POINT",
        "BT-REDUCE-EMPTY",
        "BT-RUN-SHAPE",
        "BT-SHAPE-RANK",
        "BT-SHAPE-SAME",
        "BT-SOFTMAX-SCALE",
        "BT-SOFTMAX-SUM",
        "BT-STRIDED-SLICE",
        "BT-STRIDED-SLICE-RANGE",
        "BT-TABLE",
        "BT-TRANSPOSE",
        "BT-VARIABLE-SHAPE",
        "BT-WINDOW",
    }
)
_BY_NUMBER = {number: name for name, number in TYPES.items()}


def name(number: int) -> bytes:
    """The `number`-th name: ugly, and never the same as another one."""
    return NAMES[number % len(NAMES)] + str(number).encode()


def ends(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if dtype in PACKED:
        bits = PACKED[dtype]
        return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if np.dtype(NUMPY[dtype]).kind not in "iu":
        return (0, 1)
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def zero_points(dtype: str) -> tuple[int, ...]:
    """Zero points that a file may hold for a type: its ends, the values beside them, and the ends of 32 bits."""
    low, high = ends(dtype)
    return (*INT32, low, high, low - 1, high + 1, 0, 1, -1)


def uglier(content: bytes, seed: int) -> bytes:
    """One to three things of a model made ugly; the same seed gives the same file."""
    rng = np.random.default_rng(seed)
    model = schema.ModelT.InitFromPackedBuf(content)
    for _ in range(int(rng.choice([1, 1, 2, 2, 3]))):
        graph = model.subgraphs[0]
        _CHANGES[int(rng.integers(len(_CHANGES)))](model, graph, rng)
    for tensor in model.subgraphs[0].tensors:
        if tensor.quantization is not None and tensor.shape is not None and len(tensor.shape) == 1:
            # Files of old converters have another one there, which bittrue reads with a note and the runtime refuses.
            tensor.quantization.quantizedDimension = 0
    return written(model)


def written(model: Any) -> bytes:
    """The file of a model in the schema's own objects."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def feeds_like(content: bytes, feeds: Sequence[Sequence[np.ndarray] | None], seed: int) -> list[list[np.ndarray]]:
    """`feeds` of a model in the shapes that `uglier` gave its inputs: their own values, repeated or cut."""
    rng = np.random.default_rng(seed)
    graph = bittrue.load(content).graph
    found = []
    for given in (feed for feed in feeds if feed is not None):
        fresh = []
        for index, value in zip(graph.inputs, given, strict=True):
            tensor = graph.tensors[index]
            if value.dtype == tensor.type.numpy and value.size:
                fresh.append(np.resize(value, tensor.shape))
            else:
                fresh.append(random_values(rng, tensor.type.numpy, tensor.shape))
        found.append(fresh)
    return found


def _pick(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _quantized(graph: Any) -> list[Any]:
    return [t for t in graph.tensors if t.quantization is not None and t.quantization.scale is not None]


def _zero_point(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """One zero point, or those of all tensors of a type."""
    tensors = _quantized(graph)
    if not tensors:
        return
    chosen = _pick(rng, tensors)
    dtype = _BY_NUMBER[chosen.type]
    value = _pick(rng, WIDE_ZERO_POINTS if rng.random() < 0.1 else zero_points(dtype))
    same = [t for t in tensors if t.type == chosen.type] if rng.random() < 0.3 else [chosen]
    for tensor in same:
        points = np.zeros(len(tensor.quantization.scale), np.int64)
        if tensor.quantization.zeroPoint is not None and len(tensor.quantization.zeroPoint) == len(points):
            points[:] = tensor.quantization.zeroPoint
        if len(points) > 1 and rng.random() < 0.5:
            points[int(rng.integers(len(points)))] = value
        else:
            points[:] = value
        tensor.quantization.zeroPoint = points


def _scale(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """One scale, or those of all tensors of a type."""
    tensors = _quantized(graph)
    if not tensors:
        return
    chosen = _pick(rng, tensors)
    value = np.float32(_pick(rng, NO_SCALES if rng.random() < 0.15 else SCALES))
    same = [t for t in tensors if t.type == chosen.type] if rng.random() < 0.3 else [chosen]
    for tensor in same:
        scales = np.array(tensor.quantization.scale, np.float32)
        if len(scales) > 1 and rng.random() < 0.5:
            scales[int(rng.integers(len(scales)))] = value
        else:
            scales[:] = value
        tensor.quantization.scale = scales


def _granularity(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """Parameters that are gone, that belong to an axis, or where there were none."""
    tensor = _pick(rng, graph.tensors)
    kind = rng.integers(3)
    if kind == 0 or (tensor.shape is None or not len(tensor.shape)):
        tensor.quantization = None
        return
    quantization = schema.QuantizationParametersT()
    axis = int(rng.integers(len(tensor.shape)))
    count = int(tensor.shape[axis]) if kind == 1 else 1
    scales = np.exp2(rng.integers(-6, 2, max(count, 1))) * rng.choice([1, 1.25, 0.7])
    quantization.scale = scales.astype(np.float32)
    low, high = ends(_BY_NUMBER[tensor.type])
    point = int(rng.integers(max(low, -(2**31)), min(high, 2**31 - 1), endpoint=True)) if rng.random() < 0.5 else 0
    quantization.zeroPoint = np.full(len(scales), point, np.int64)
    quantization.quantizedDimension = axis if rng.random() < 0.8 else int(rng.integers(-2, 6))
    tensor.quantization = quantization


def _alike(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """All quantized tensors of a type with the parameters of one."""
    tensors = _quantized(graph)
    if not tensors:
        return
    chosen = _pick(rng, tensors)
    for tensor in tensors:
        if tensor.type == chosen.type:
            tensor.quantization = chosen.quantization


def _declared(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """A computed tensor whose file says another shape than the one that follows."""
    computed = [graph.tensors[i] for node in graph.operators for i in node.outputs if i >= 0]
    if not computed:
        return
    tensor = _pick(rng, computed)
    shape = [int(size) for size in (tensor.shape if tensor.shape is not None else ())]
    others = [[], [1], [0], shape[::-1], [1, *shape], shape[:-1], [*shape, 1], [1] * len(shape), [-1] * len(shape)]
    others += [[*shape[:i], shape[i] + 1, *shape[i + 1 :]] for i in range(len(shape))]
    tensor.shape = np.array(_pick(rng, others), np.int32)


def _reshape(model: Any, tensor: Any, shape: Sequence[int]) -> None:
    """Another shape for a tensor; constants are repeated or cut to fit it."""
    tensor.shape = np.array(shape, np.int32)
    buffer = model.buffers[tensor.buffer] if tensor.buffer else None
    if buffer is None or buffer.data is None:
        return
    dtype = _BY_NUMBER[tensor.type]
    count = int(np.prod(shape))
    if dtype in PACKED:
        data = np.resize(buffer.data, -(-count * PACKED[dtype] // 8))
    else:
        data = np.resize(np.array(buffer.data, np.uint8).view(NUMPY[dtype]), count).view(np.uint8)
    fresh = schema.BufferT()
    fresh.data = data
    model.buffers.append(fresh)
    tensor.buffer = len(model.buffers) - 1


def _shape(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """Another dimension in one or all tensors: 0, 1, one more; more axes up to rank 8; none."""
    inputs = [graph.tensors[i] for node in graph.operators for i in node.inputs if i >= 0]
    if not inputs:
        return
    chosen = _pick(rng, inputs)
    shape = [int(size) for size in (chosen.shape if chosen.shape is not None else ())]
    kind = int(rng.integers(5))
    if kind == 0:
        _reshape(model, chosen, [])
    elif kind == 1 and shape:
        _reshape(model, chosen, shape[1:] if rng.random() < 0.5 else shape[:-1])
    elif kind == 2:
        more = [int(rng.integers(1, 3)) for _ in range(int(rng.integers(1, 9)))][: 8 - len(shape)]
        for tensor in inputs if rng.random() < 0.5 else [chosen]:
            _reshape(model, tensor, [*more, *(int(e) for e in (tensor.shape if tensor.shape is not None else ()))])
    elif shape:
        axis = int(rng.integers(len(shape)))
        size = int(_pick(rng, (0, 0, 1, shape[axis] + 1, 2)))
        alike = [t for t in inputs if t.shape is not None and len(t.shape) == len(shape)]
        for tensor in alike if rng.random() < 0.6 else [chosen]:
            if tensor is chosen or int(tensor.shape[axis]) == shape[axis]:
                _reshape(model, tensor, [*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]])


def _names(model: Any, graph: Any, rng: np.random.Generator) -> None:
    """Names that mean something to terminals, reports and shells, or that are no text."""
    for number, tensor in enumerate(graph.tensors):
        tensor.name = name(number + int(rng.integers(len(NAMES))) * 100)


_CHANGES: tuple[Callable[[Any, Any, np.random.Generator], None], ...] = (
    _zero_point,
    _zero_point,
    _scale,
    _scale,
    _granularity,
    _alike,
    _declared,
    _shape,
    _shape,
    _names,
)
