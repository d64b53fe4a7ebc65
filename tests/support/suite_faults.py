"""The faults of `network_faults` in devices that run the models of a suite, one operator each.

Models are read without bittrue, and computed by `faulty_device`: what a device has no way for, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from bittrue.conformance.conform import ask
from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.expected import same_bytes
from bittrue.conformance.identification.identify import _finding
from bittrue.conformance.identification.questions import Inquiry
from bittrue.conformance.judging import judge
from bittrue.conformance.result import EXACT
from bittrue.conformance.suite import SuiteCase, find_suite

from . import faulty_device as device
from .network_faults import USUAL, Fault
from .network_formats import FORMATS, Array, Format, Net, first, last, product_factors, real_factors
from .planted.layers import _ACTIVATIONS
from .planted.reading import Operation, Tensor, read

# Tensors of the network, and the operators that make them.
_TFLITE = {
    "c": "CONV_2D",
    "d": "DEPTHWISE_CONV_2D",
    "y": "FULLY_CONNECTED",
    "s": "ADD",
    "m": "MAX_POOL_2D",
    "p": "AVERAGE_POOL_2D",
}
_QOPERATOR = {"c": "QLinearConv", "d": "QLinearConv", "y": "QGemm", "s": "QLinearAdd", "p": "QLinearAveragePool"}
_QDQ = {"c": "QDQ Conv", "d": "QDQ Conv", "y": "QDQ Gemm", "s": "QDQ Add", "m": "QDQ MaxPool", "p": "QDQ AveragePool"}


@dataclass(frozen=True)
class Kind:
    """One sort of device.

    Attributes:
        suite, types: whose models it runs.
        form: how it computes.
        operators: by the network's tensors.
        single: real multipliers of fully-connected layers with one scale, where they are formed in another way.
        bits: of multipliers of fully-connected layers.
        activations: of layers; others are refused.
        largest: a layer with a real multiplier from here on is refused.
    """

    suite: str
    types: str
    form: Format
    operators: dict[str, str]
    single: Any = None
    bits: int = 31
    activations: tuple[str, ...] = ("none", "relu", "relu6")
    largest: float = np.inf


_LITERT, _ORT = FORMATS["tflite"], FORMATS["qoperator"]


def _in_one_step(a: Array, b: Array, net: Net, **wrong: Any) -> Array:
    return _LITERT.add(a, b, net, rounding=device.one_step, **wrong)


KINDS: dict[str, Kind] = {
    "litert": Kind(
        "litert",
        "s8",
        replace(_LITERT, rounding={**_LITERT.rounding, "dense": device.binary64_away}),
        _TFLITE,
        bits=53,
    ),
    "single-rounding": Kind(
        "litert",
        "s8",
        replace(_LITERT, rounding=dict.fromkeys(_LITERT.rounding, device.one_step), add=_in_one_step),
        _TFLITE,
        product_factors,
    ),
    "xnnpack": Kind(
        "litert",
        "s8",
        replace(_LITERT, rounding=dict.fromkeys(_LITERT.rounding, device.real_even), factors=real_factors),
        {at: name for at, name in _TFLITE.items() if at in "cdym"},
        activations=("none", "relu"),
        largest=256,
    ),
    "onnxruntime s8": Kind("onnx", "s8", _ORT, _QOPERATOR),
    "onnxruntime u8": Kind("onnx", "u8", replace(_ORT, dtype="uint8"), _QOPERATOR),
    "onnxruntime QDQ": Kind("onnx", "s8", _ORT, _QDQ),
}


# Those of docs/faults.md.
PAGE = ("litert", "onnxruntime s8")
# Cases in which a fault shows, cases in which it does not, and questions.
_SHOWN, _HIDDEN, _QUESTIONS = 12, 6, 12


class Unable(Exception):
    """The device has no way for this model."""


@dataclass(frozen=True)
class _Task:
    """A model: the network's tensor that it makes, the tensors before, and what is stored where."""

    at: str
    net: Net
    tensors: dict[str, Array]
    output: str
    stored: Callable[[Array], Array]


class Faulty(Device):
    """Right, but for a fault."""

    def __init__(self, kind: Kind, fault: Fault | None = None) -> None:
        self.kind, self.fault = kind, fault
        self.reads = (find_suite(kind.suite).format,)
        self.spec = self.title = "a device" if fault is None else fault.title

    def answer(self, case: SuiteCase) -> Answer:
        form = self.kind.form
        try:
            if case.rejects:
                raise Unable("refused")
            task = _of_tflite(self.kind, case) if case.format == "tflite" else _of_onnx(form, case)
            planted = USUAL[task.at]
            if self.fault is not None and self.kind.operators[self.fault.at] == self.kind.operators[task.at]:
                # Both kinds of convolution are one operator in ONNX; the fault is in all of them.
                planted = self.fault.planted
            found = planted(form, task.net, task.tensors)
        except Unable as error:
            return Answer("refused", text=str(error))
        return Answer("outputs", {task.output: np.ascontiguousarray(task.stored(np.asarray(found)))})


def _able(said: str, *conditions: bool) -> None:
    if not all(conditions):
        raise Unable(said)


def _task(at: str, scales: dict[str, float], zeros: dict[str, int], output: str, stored: Any, **more: Any) -> _Task:
    """What is not given plays no part in this operator."""
    layer, tensors = more.pop("layer", None), more.pop("tensors")
    shape = tuple(next(iter(tensors.values())).shape)
    net = Net(shape, more.pop("inner", shape), scales, zeros, layer, layer, layer, **more)
    return _Task(at, net, tensors, output, stored)


def _pads(size: Any, out: Any, taps: Any, stride: Any, dilation: Any) -> tuple[int, int, int, int]:
    """Of windows that are padded so that `out` of them fit, the greater half behind."""
    found: list[int] = []
    for k in range(2):
        total = max(0, (out[k] - 1) * stride[k] + (taps[k] - 1) * dilation[k] + 1 - size[k])
        found += [total // 2, total - total // 2]
    return found[0], found[1], found[2], found[3]


def _value(tensor: Tensor | None) -> Array:
    assert tensor is not None
    assert tensor.value is not None
    return tensor.value


def _of_tflite(own: Kind, case: SuiteCase) -> _Task:
    op = read(case.content, dict(case.inputs))
    at = {name: at for at, name in own.operators.items()}.get(op.name, "")
    _able(f"no {op.name}", bool(at))
    activation = _ACTIVATIONS[op.options.fusedActivationFunction].lower()
    _able(f"no {activation}", activation in (own.activations if at in "cdy" else ("none",)))
    y = op.output

    def stored(value: Array) -> Array:
        return value.reshape(y.shape)

    if at == "s":
        pairs = list(zip("cds", (op.x, op.get(1), y), strict=True))
        scales, zeros = ({k: getattr(t, name) for k, t in pairs} for name in ("scale", "zero"))
        return _task(at, scales, zeros, y.name, stored, tensors={"c": _value(op.x), "d": _value(op.get(1))})
    if at in "mp":
        taps, stride = (op.options.filterHeight, op.options.filterWidth), (op.options.strideH, op.options.strideW)
        _able("square windows alone", taps[0] == taps[1], stride[0] == stride[1])
        pads = _pads(op.x.shape[1:3], y.shape[1:3], taps, stride, (1, 1))
        name = "s" if at == "m" else "m"
        return _task(
            at,
            {name: float(op.x.scale), at: float(y.scale)},
            {name: op.x.zero, at: y.zero},
            y.name,
            stored,
            tensors={name: _value(op.x)},
            inner=y.shape,
            pool=pads,
            taps=taps[0],
            step=stride[0],
        )
    return _layer_of_tflite(own, op, at, activation, stored)


def _layer_of_tflite(own: Kind, op: Operation, at: str, activation: str, stored: Any) -> _Task:
    form, x, w, bias, y = own.form, op.x, op.get(1), op.get(2), op.output
    assert w is not None
    weights = _value(w)
    kind = {"c": "conv", "d": "depthwise", "y": "dense"}[at]
    filters = weights.shape[3] if at == "d" else weights.shape[0]
    window: dict[str, Any] = {}
    if at != "y":
        _able("no groups", at == "d" or weights.shape[3] == x.shape[3])
        stride, dilation = (
            (op.options.strideH, op.options.strideW),
            (
                op.options.dilationHFactor,
                op.options.dilationWFactor,
            ),
        )
        pads = _pads(x.shape[1:3], y.shape[1:3], weights.shape[1:3], stride, dilation)
        window = {"stride": stride, "dilation": dilation, "pads": pads, "out_size": y.shape[1:3]}
    layer = device.Layer(
        kind,
        weights,
        np.zeros(filters, np.int64) if bias is None else _value(bias).astype(np.int64),
        float(x.scale),
        x.zero,
        np.broadcast_to(w.scales, filters).astype(np.float32),
        float(y.scale),
        y.zero,
        activation=activation,
        factors=own.single if own.single is not None and at == "y" and w.scales.size == 1 else form.factors,
        usual=form.rounding[kind],
        dtype=form.dtype,
        bits=own.bits if at == "y" else 31,
        **window,
    )
    factors = layer.factors(layer.in_scale, layer.weight_scales, layer.out_scale)
    _able("no such multipliers", bool((factors < own.largest).all()))
    given = _value(x) if at != "y" else _value(x).reshape(-1, weights.shape[1])
    return _task(at, {}, {}, op.output.name, stored, layer=layer, tensors={"x": given, "c": given, "p": given})


def _of_onnx(form: Format, case: SuiteCase) -> _Task:
    graph = onnx.ModelProto.FromString(case.content).graph
    known = {one.name: numpy_helper.to_array(one) for one in graph.initializer} | dict(case.inputs)
    reals = {n.output[0]: list(n.input) for n in graph.node if n.op_type == "DequantizeLinear"}
    last_one = graph.node[-1] if graph.node[-1].op_type == "QuantizeLinear" else None
    nodes = [n for n in graph.node if n.op_type not in ("DequantizeLinear", "QuantizeLinear")]
    _able("one operator alone", len(nodes) == 1)
    (node,) = nodes
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    kind = node.op_type.removeprefix("QLinear").removeprefix("Q")
    _able(f"no {node.op_type}", kind in ("Conv", "Gemm", "Add", "AveragePool", "MaxPool"))
    _able("no channels last", not attributes.get("channels_last"))
    operands: list[tuple[Array, Array, Array]] = []
    bias: Array | None = None
    if last_one is not None:
        for name in node.input:
            value, scale, zero = (*(known[i] for i in reals[name]), np.zeros((), np.int8))[:3]
            if value.dtype == np.int32:
                bias = value
            else:
                operands.append((value, scale, zero))
        result = known[last_one.input[1]], known[last_one.input[2]]
    else:
        _able("scales and zero points are given", all(name in known for name in node.input if name))
        given = [known[name] if name else None for name in node.input]
        bias = given.pop(8) if kind == "Conv" and len(given) > 8 else given.pop(6) if kind == "Gemm" else None
        _able("the result is quantized", len(given) >= 5)
        *parts, scale, zero = given
        operands = [tuple(parts[k : k + 3]) for k in range(0, len(parts), 3)]  # type: ignore[misc]
        result = scale, zero  # type: ignore[assignment]
    scales = [np.asarray(o[1], np.float32) for o in operands]
    zeros = [np.asarray(o[2]).reshape(-1) for o in operands]
    _able("one zero point", all((z == z[0]).all() for z in zeros))
    points = [int(z[0]) for z in zeros]
    out_scale, out_zero = float(np.asarray(result[0])), int(np.asarray(result[1]).reshape(-1)[0])
    name = graph.output[0].name
    shape = tuple(int(d.dim_value) for d in graph.output[0].type.tensor_type.shape.dim)
    values = [o[0] for o in operands]
    if kind == "Add":
        return _task(
            "s",
            dict(zip("cds", (*map(float, scales), out_scale), strict=True)),
            dict(zip("cds", (*points, out_zero), strict=True)),
            name,
            lambda v: v,
            tensors={"c": values[0], "d": values[1]},
        )
    if kind == "Gemm":
        weights = values[1] if attributes.get("transB") else values[1].T
        plain = attributes.get("alpha", 1.0) == 1.0 and attributes.get("beta", 1.0) == 1.0
        _able("no factors", plain, not attributes.get("transA"))
        layer = _onnx_layer(form, "dense", weights, bias, scales, points, out_scale, out_zero)
        return _task("y", {}, {}, name, lambda v: v, layer=layer, tensors={"p": values[0]})
    _able("images alone", values[0].ndim == 4)
    window = _window(attributes, values[0].shape[2:], values[1].shape[2:] if kind == "Conv" else ())
    x = last(values[0])
    if kind == "Conv":
        groups, weights = int(attributes.get("group", 1)), values[1]
        depthwise = groups > 1 and groups == x.shape[3] and weights.shape[1] == 1
        _able("no groups", groups == 1 or depthwise)
        window.pop("taps")
        layer = _onnx_layer(
            form,
            "depthwise" if depthwise else "conv",
            np.ascontiguousarray(weights.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))),
            bias,
            scales,
            points,
            out_scale,
            out_zero,
            **window,
            out_size=shape[2:],
        )
        return _task("d" if depthwise else "c", {}, {}, name, first, layer=layer, tensors={"x": x, "c": x})
    taps, stride = window["taps"], window["stride"]
    _able("square windows alone", taps[0] == taps[1], stride[0] == stride[1], window["dilation"] == (1, 1))
    _able("windows are counted down", not attributes.get("ceil_mode"))
    counts = bool(attributes.get("count_include_pad"))
    _able("padding is not counted", not counts)
    alike = float(scales[0]) == out_scale and points[0] == out_zero
    _able("no averages of whole images", kind == "MaxPool" or tuple(taps) != tuple(values[0].shape[2:]))
    _able("maxima are not rescaled", alike or kind == "AveragePool")
    at, before = ("m", "s") if kind == "MaxPool" else ("p", "m")
    return _task(
        at,
        {before: float(scales[0]), at: out_scale},
        {before: points[0], at: out_zero},
        name,
        first,
        tensors={before: x},
        inner=(shape[0], *shape[2:], shape[1]),
        pool=window["pads"],
        taps=taps[0],
        step=stride[0],
    )


def _window(attributes: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...]) -> dict[str, Any]:
    taps = tuple(attributes.get("kernel_shape") or taps)
    stride = tuple(attributes.get("strides") or (1, 1))
    dilation = tuple(attributes.get("dilations") or (1, 1))
    auto = attributes.get("auto_pad", b"NOTSET")
    top, left, bottom, right = attributes.get("pads") or (0, 0, 0, 0)
    pads = (top, bottom, left, right)
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        pads = _pads(size, [-(-size[k] // stride[k]) for k in range(2)], taps, stride, dilation)
        pads = pads if auto == b"SAME_UPPER" else (pads[1], pads[0], pads[3], pads[2])
    return {"taps": taps, "stride": stride, "dilation": dilation, "pads": pads}


def _onnx_layer(
    form: Format,
    kind: str,
    weights: Array,
    bias: Array | None,
    scales: list[Array],
    points: list[int],
    out_scale: float,
    out_zero: int,
    **window: Any,
) -> device.Layer:
    filters = weights.shape[3] if kind == "depthwise" else weights.shape[0]
    return device.Layer(
        kind,
        weights,
        np.zeros(filters, np.int64) if bias is None else bias.reshape(-1).astype(np.int64),
        float(scales[0]),
        points[0],
        np.broadcast_to(scales[1].reshape(-1), filters).astype(np.float32),
        out_scale,
        out_zero,
        weight_zero=points[1],
        factors=form.factors,
        usual=form.rounding[kind],
        dtype=form.dtype,
        **window,
    )


@cache
def cases_of(kind: str, at: str) -> tuple[SuiteCase, ...]:
    """The models of one operator that a device may answer."""
    own = KINDS[kind]
    return tuple(c for c in find_suite(own.suite).cases([own.operators[at]], [own.types]) if not c.rejects)


@dataclass(frozen=True)
class Said:
    """What is said of a device.

    Attributes:
        names: of the cause, or of the rule; those that fit as well behind it. None where nothing explains the device.
        text: of what is seen where nothing does.
    """

    names: tuple[str, ...]
    text: str = ""


@cache
def chosen(kind: str, fault: Fault) -> tuple[SuiteCase, ...]:
    """Cases in which the fault shows, and some in which it does not: with all of them the page would take hours."""
    device_, right = Faulty(KINDS[kind], fault), Faulty(KINDS[kind])
    shown: tuple[list[SuiteCase], list[SuiteCase]] = [], []
    for case in cases_of(kind, fault.at):
        found, wanted = device_.answer(case), right.answer(case)
        if found.status == "outputs":
            shown[same_bytes(found.outputs, wanted.outputs)].append(case)
    return tuple(
        case
        for cases, most in zip(shown, (_SHOWN, _HIDDEN), strict=True)
        for case in cases[:: -(-len(cases) // most) or 1]
    )


def conformed(kind: str, fault: Fault) -> Said:
    """What `bittrue conform` says."""
    own = KINDS[kind]
    device_, suite = Faulty(own, fault), find_suite(own.suite)
    records = [ask(device_, case, 1) for case in chosen(kind, fault)]
    found = judge(suite, own.operators[fault.at], own.types, records)
    if found.verdict == EXACT:
        return Said(found.names)
    names = () if found.cause is None else (found.cause.name, *found.cause.also)
    return Said(names, "; ".join(found.described))


def identified(kind: str, fault: Fault) -> Said:
    """What `bittrue identify` says."""
    own = KINDS[kind]
    suite, cases = find_suite(own.suite), list(chosen(kind, fault))
    inquiry = Inquiry(Faulty(own, fault).answer, cases, (suite.numerics, *suite.admitted), _QUESTIONS, "")
    inquiry.run()
    found = _finding(inquiry, suite, own.operators[fault.at], own.types)
    if found.verdict == "named":
        return Said(found.numerics)
    if found.verdict == "other rules":
        # "rescale = a instead of b"
        return Said(tuple(change.split(" instead of ")[0].replace(" = ", "=") for change in found.changes))
    nearest = found.nearest
    if nearest is None:
        return Said((), found.verdict)
    return Said((nearest.cause, *nearest.also) if nearest.cause else (), "; ".join(nearest.described))


def reason(kind: str, fault: Fault) -> str:
    """Why nobody can see the fault in the models of a suite; empty where one can."""
    own = KINDS[kind]
    if fault.at not in own.operators:
        return "the device has no such operator"
    device_, right = Faulty(own, fault), Faulty(own)
    answers = ((device_.answer(case), right.answer(case)) for case in chosen(kind, fault))
    return "no answer differs" if all(same_bytes(a.outputs, b.outputs) for a, b in answers) else ""


def cell(kind: str, fault: Fault) -> str:
    """What stands in docs/faults.md."""
    why = reason(kind, fault)
    if why:
        return f"({why})"
    one, two = conformed(kind, fault), identified(kind, fault)
    texts = [
        said.names[0] if said.names else f"unexplained{': ' if said.text else ''}{said.text}" for said in (one, two)
    ]
    return texts[0] if texts[1] in (texts[0], *one.names) else "; ".join(texts)
