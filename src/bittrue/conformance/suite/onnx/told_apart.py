"""Cases that the mutation score asked for, each with what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....graph import data_type
from ....rules.quantize import DEQUANTIZE
from ....rules.real_function import RULES as FUNCTIONS
from ..draft import Draft, generator
from ..onnx_aiming import separating
from ..onnx_layers import AIMED, TYPES, Layer, aimed, weight_point, window_counts
from ..onnx_model import one_node
from ..onnx_pairs import Codes, quantized
from .qlinear_conv import draft as convolution
from .qlinear_matmul import draft as product

_PAIRS = ("QLinearAdd", "QLinearMul", "QDQ Add", "QDQ Sub", "QDQ Mul")
_CONCATS = ("QLinearConcat", "QDQ Concat")
_CURVES = ("QLinearSigmoid", "QDQ Sigmoid", "QDQ Tanh")
_SOFTMAX = ("QLinearSoftmax", "QDQ Softmax")
_WHOLE = ("QLinearGlobalAveragePool", "QDQ GlobalAveragePool")
_WINDOWS = ("QLinearAveragePool", "QDQ AveragePool")
_CONVOLUTIONS = ("QLinearConv", "QDQ Conv")
_MATRICES = ("QLinearMatMul", "QDQ MatMul", "QGemm", "QDQ Gemm")
_GEMM = ("QGemm", "QDQ Gemm")


def further(operator: str, types: str) -> Iterator[Draft]:
    """What is added to the operator's own cases."""
    if operator in _PAIRS:
        yield _one_operand(operator, types)
        if operator == "QDQ Sub":
            yield from _far_differences(operator, types)
    elif operator in _CONCATS:
        yield _one_part(operator, types)
    elif operator in _CURVES:
        yield from _curves(operator, types)
    elif operator in _SOFTMAX:
        yield _lowest(operator, types)
        yield _alone(operator, types)
    elif operator in (*_WHOLE, *_WINDOWS):
        yield from _averages(operator, types)
    elif operator in (*_CONVOLUTIONS, *_MATRICES):
        yield from _layers(operator, types)
    elif operator in ("ConvInteger", "MatMulInteger"):
        yield _long_sum(operator, types)
    elif operator in ("QDQ Relu", "QDQ MaxPool"):
        yield from _real(operator, types)
        if operator == "QDQ MaxPool":
            yield from _dilated(operator, types)
    elif operator in ("QuantizeLinear", "DequantizeLinear") and types in ("s8", "u8"):
        yield _uneven_blocks(operator, types)


def _every(types: str) -> np.ndarray:
    kind = data_type(types)
    return np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)


def _middle(types: str) -> int:
    kind = data_type(types)
    return (kind.minimum + kind.maximum + 1) // 2


def _one_operand(operator: str, types: str) -> Draft:
    """Every quantized value of one operand, one of which the other, a constant, is 0 or 1: no quantized value may be
    taken for another.
    """
    elements, point = _every(types), _middle(types)
    other = np.array([point + int(operator.endswith("Mul"))], elements.dtype)
    operands = [Codes(elements, 0.5, point), Codes(other, 1.0, point, constant=True)]
    content, inputs = quantized(operator, types, operands, (elements.shape, 0.5, point))
    return Draft("codes", content, inputs, "every quantized value comes out as it went in")


def _far_differences(operator: str, types: str) -> Iterator[Draft]:
    """Differences that leave 32 bits as quotients, then binary32, of both signs; infinity less infinity is left out."""
    steps = np.array([-128, -127, -100, -64, -1, 0, 1, 63, 64, 100, 127])
    a, b = (part.reshape(-1)[1:] for part in np.meshgrid(steps, steps))
    kind, middle = data_type(types), _middle(types)
    first, second = ((part + middle).astype(kind.numpy) for part in (a, b))
    for scale, y_scale, note in (
        (1.0, 2.0**-25, "quotients on both sides of 2^31 and of -2^31"),
        # The largest number of binary32 is 32 steps of the result: one that is kept finite does not saturate.
        (2.0**121, 2.0**123, "operands and differences beyond binary32"),
    ):
        operands = [Codes(first, scale, middle), Codes(second, scale, middle)]
        content, inputs = quantized(operator, types, operands, (first.shape, y_scale, middle - 20))
        yield Draft("saturation", content, inputs, note)


def _one_part(operator: str, types: str) -> Draft:
    """Every quantized value of one part, in steps a little smaller than those of the result."""
    elements, point = np.roll(_every(types), 77), _middle(types)
    content, inputs = quantized(
        operator,
        types,
        [Codes(elements, 0.24, point)],
        (elements.shape, 0.25, point + 1),
        {"axis": 0},
        result_first=True,
    )
    return Draft("codes", content, inputs, "one part with every quantized value, scale 0.24 to 0.25")


def _curves(operator: str, types: str) -> Iterator[Draft]:
    kind, middle = data_type(types), _middle(types)
    steep = "the highest quantized value lies where the function is steep"
    rows: list[tuple[str, float, int, float, int, str]] = [("codes", 0.05, kind.maximum, 1 / 256, middle, steep)]
    if operator == "QDQ Tanh":
        rows += [("near ties", *chosen, "last bits decide") for chosen in _decisive(operator, types)]
        rows.append(("saturation", 0.05, middle, 1e-10, middle + 20, "quotients beyond 32 bits"))
    else:
        # Found by search: a reciprocal gives another code.
        rows.insert(0, ("near ties", 0.0423, middle, 0.00127, kind.minimum, "last bits of binary32 decide"))
    for aim, x_scale, zx, y_scale, zy, note in rows:
        elements = generator(operator, types, "further", x_scale).permutation(_every(types))
        elements = np.append(elements, elements[:3])
        content, inputs = quantized(operator, types, [Codes(elements, x_scale, zx)], (elements.shape, y_scale, zy))
        yield Draft(aim, content, inputs, note)


def _decisive(operator: str, types: str) -> Iterator[tuple[float, int, float, int]]:
    """Scales and zero points of operand and result for which the last bits of an operand, of its function or of the
    quotient decide: some element's quotient is a tie of the runtime's, or next to one.
    """
    kind, middle = data_type(types), _middle(types)
    axes = (
        np.array([0.0041, 0.0064, 0.0173], np.float32),
        np.array([middle - 26, middle + 41]),
        _every(types).astype(np.int64)[::3],
        np.arange(0.5, 60, 3),
        np.arange(-1, 2),
        np.array([middle, middle + 37, middle - 62]),
    )
    x_scale, zx, x, tie, step, zy = (part.reshape(-1) for part in np.meshgrid(*axes, indexing="ij"))
    functions = {name: rule.functions["tanh"] for name, rule in FUNCTIONS.items() if "tanh" in rule.functions}
    real = functions["binary32_fused_polynomials"](DEQUANTIZE["binary32_multiply"](x, x_scale, zx))
    with np.errstate(divide="ignore"):
        nearest = (np.abs(real) / tie).astype(np.float32)
    # A neighbour of binary32 is a neighbour of its bits.
    y_scale = (nearest.view(np.int32) + step.astype(np.int32)).view(np.float32)
    kept = nearest > 1e-5
    x_scale, zx, x, real, y_scale, zy = (part[kept] for part in (x_scale, zx, x, real, y_scale, zy))

    def stored(value: np.ndarray, first: int | np.ndarray = 0) -> np.ndarray:
        return np.clip(np.rint(value + np.float32(first)) + zy - first, kind.minimum, kind.maximum)

    quotient = real / y_scale
    answers = [stored(quotient), stored(quotient, zy), stored(real * (np.float32(1) / y_scale))]
    answers.append(stored(real.astype(np.float64) / y_scale))
    answers += [np.clip(rounded(quotient) + zy, kind.minimum, kind.maximum) for rounded in (_away, _up)]
    for dequantize in DEQUANTIZE.values():
        operand = dequantize(x, x_scale, zx).astype(np.float32)
        answers += [stored(function(operand) / y_scale) for function in functions.values()]
    for index in separating(answers, 12, generator(operator, types, "decisive"), 3, np.zeros(0, np.int64)):
        yield float(x_scale[index]), int(zx[index]), float(y_scale[index]), int(zy[index])


def _away(value: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(value) + 0.5), value)


def _up(value: np.ndarray) -> np.ndarray:
    return np.floor(value + 0.5)


def _lowest(operator: str, types: str) -> Draft:
    """Rows of two quantized values at the lowest end, and of both ends: shares that one step changes, and shares of
    0.
    """
    kind = data_type(types)
    lowest = kind.minimum + np.array([[0, 2], [0, 1], [1, 0], [0, 0], [0, 255], [255, 0], [0, 3], [2, 0]])
    more: dict[str, Any] = {} if operator.startswith("QDQ") else {"opset": 13}
    operand, result = Codes(lowest.astype(kind.numpy), 0.5, kind.minimum), (lowest.shape, 1 / 256, kind.minimum)
    content, inputs = quantized(operator, types, [operand], result, {"axis": -1}, more=more)
    return Draft("codes", content, inputs, "the lowest quantized value, and shares of 0")


def _alone(operator: str, types: str) -> Draft:
    """Rows of one element: the runtime's exponential of it times the result's steps leaves binary32."""
    kind, middle = data_type(types), _middle(types)
    more: dict[str, Any] = {} if operator.startswith("QDQ") else {"opset": 13}
    elements = np.array([[kind.minimum], [middle], [kind.maximum]], kind.numpy)
    operand, result = Codes(elements, 0.1, middle), (elements.shape, 1 / 256, middle)
    content, inputs = quantized(operator, types, [operand], result, {"axis": -1}, more=more)
    return Draft("saturation", content, inputs, "rows of one element, zero point in the middle")


def _averages(operator: str, types: str) -> Iterator[Draft]:
    """Whole images, which runtimes add up by themselves, then steps so fine that averages leave 16 and 32 bits."""
    kind, middle = data_type(types), _middle(types)
    near: tuple[tuple[tuple[int, ...], float, float], ...] = (
        ((1, 96, 7, 7), 0.49, 0.2),
        ((1, 96, 3, 5), 0.3, 0.2),
        ((1, 96, 3, 3), 0.023622047, 0.0078431377),
        ((1, 5, 5, 3), 0.3, 0.2),
        ((1, 64, 1, 2), 0.5, 0.5),
    )
    for number, (shape, x_scale, y_scale) in enumerate(near):
        elements = generator(operator, types, "further", number).integers(
            kind.minimum, kind.maximum, shape, kind.numpy, True
        )
        elements = (middle + (elements.astype(np.int64) - middle) // 3).astype(kind.numpy)
        yield _whole(operator, types, "near ties" if number < 4 else "ties", elements, x_scale, y_scale, middle - 3)
    elements = np.array([[0, 0], [0, 1], [1, 1], [255, 255], [254, 255]]) + kind.minimum
    yield _whole(
        operator, types, "codes", elements.astype(kind.numpy).reshape(1, 5, 1, 2), 0.5, 0.25, kind.minimum + 50
    )
    elements = generator(operator, types, "further", "far").integers(
        kind.minimum, kind.maximum, (1, 24, 2, 3), kind.numpy, True
    )
    yield _whole(operator, types, "saturation", elements, 1.0, 2.0**-10, middle - 3)
    # Runtimes take factors x_scale / (y_scale * count) below 256: it takes many numbers to leave 32 bits.
    elements = np.full((1, 2, 1, 34_000), kind.maximum, kind.numpy)
    elements[0, 1] = kind.minimum + 1
    yield _whole(operator, types, "saturation", elements, 1.0, 1 / (255 * 34_000), kind.minimum)
    if operator in _WINDOWS:
        elements = generator(operator, types, "further", "padding").integers(
            kind.minimum, kind.maximum, (1, 2, 8, 7), kind.numpy, True
        )
        attributes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        attributes |= {"ceil_mode": 1, "count_include_pad": 1}
        result = ((1, 2, 5, 4), 0.5, middle)
        content, inputs = quantized(operator, types, [Codes(elements, 0.5, kind.minimum)], result, attributes)
        yield Draft("padding", content, inputs, "windows beyond the padding, which counts")


def _whole(
    operator: str, types: str, aim: str, elements: np.ndarray, x_scale: float, y_scale: float, zero_point: int
) -> Draft:
    """One average per channel."""
    attributes = {} if operator in _WHOLE else {"kernel_shape": list(elements.shape[2:])}
    result = ((*elements.shape[:2], 1, 1), y_scale, _middle(types) + 20)
    content, inputs = quantized(operator, types, [Codes(elements, x_scale, zero_point)], result, attributes)
    return Draft(aim, content, inputs, f"{list(elements.shape)} as a whole, scales {x_scale:.8g} to {y_scale:.8g}")


def _layers(operator: str, types: str) -> Iterator[Draft]:
    yield _form(operator, _beyond(types))
    near = next(one for one in AIMED if one.note.startswith("multipliers from 2^-5"))
    for number in range(2):
        random = generator(operator, types, "further", number)
        yield _form(operator, aimed(types, near, random, operator in (*_CONVOLUTIONS, *_GEMM)))
    if operator in _GEMM:
        # The specification's sums of integers are those without a bias.
        for number, wanted in enumerate(one for one in AIMED if one.aim == "near ties"):
            yield _form(operator, aimed(types, wanted, generator(operator, types, "no bias", number), False))
        for size in (4, 5):
            # Number 1: weights lie transposed, and nothing but the numbers says so.
            yield product(operator, _square(operator, types, size), 1)


def _form(operator: str, layer: Layer) -> Draft:
    """A product of matrices, or a convolution of 1x1."""
    if operator not in _CONVOLUTIONS:
        return product(operator, layer, 0)
    rows, terms = layer.x.shape
    x = np.ascontiguousarray(layer.x.T).reshape(1, terms, 1, rows)
    w = layer.w.reshape(*layer.w.shape, 1, 1)
    return convolution(operator, replace(layer, x=x, w=w, attributes={"kernel_shape": [1, 1]}))


def _beyond(types: str) -> Layer:
    """Sums from -2^14 to 2^14 times 2^22, around nothing: of both signs, and 0."""
    x_type, w_type = TYPES[types]
    x_kind, w_kind, zw = data_type(x_type), data_type(w_type), weight_point(w_type)
    middle = _middle(x_type)
    elements = np.array([[1, 0], [-1, 0], [0, 0], [100, 0], [-100, 0], [3, -3], [90, 120], [-90, -120]]) + middle
    weights = np.array([[1, 1], [127, 2], [-127, 5], [0, 64]]) + zw
    return Layer(
        "saturation",
        "products by the multiplier leave 32 bits on both sides",
        x_type,
        w_type,
        elements.astype(x_kind.numpy),
        weights.astype(w_kind.numpy),
        None,
        2.0**10,
        middle,
        np.array([2.0**8], np.float32),
        np.array([zw], w_kind.numpy),
        2.0**-4,
        middle + 20,
    )


def _square(operator: str, types: str, size: int) -> Layer:
    """As many rows as terms and columns: no shape tells which operand lies transposed."""
    x_type, w_type = TYPES[types]
    x_kind, w_kind, zw = data_type(x_type), data_type(w_type), weight_point(w_type)
    random = generator(operator, types, "square", size)
    shape = (size, size)
    return Layer(
        "shapes",
        f"{size} rows, terms and columns",
        x_type,
        w_type,
        random.integers(x_kind.minimum, x_kind.maximum, shape, endpoint=True).astype(x_kind.numpy),
        (random.integers(-3, 4, shape) + zw).astype(w_kind.numpy),
        # Far enough apart that two of them cannot change places.
        (random.permutation(size) * 64 - 128).astype(np.int32),
        2.0**-5,
        _middle(x_type) + 3,
        np.array([2.0**-4], np.float32),
        np.array([zw], w_kind.numpy),
        2.0**-6,
        _middle(x_type) - 5,
    )


def _long_sum(operator: str, types: str) -> Draft:
    """Odd sums beyond 2^24, which binary32 does not hold."""
    x_type, w_type = TYPES[types]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    random = generator(operator, types, "long")
    x = (x_kind.maximum - random.integers(0, 3, (3, 1400))).astype(x_kind.numpy)
    w = (w_kind.maximum - random.integers(0, 3, (1400, 2))).astype(w_kind.numpy)
    shape: tuple[int, ...] = (3, 2)
    attributes: dict[str, Any] = {}
    if operator == "ConvInteger":
        # [1, c, 1, w] and [m, c, 1, 1].
        x, w = np.ascontiguousarray(x.T).reshape(1, 1400, 1, 3), np.ascontiguousarray(w.T).reshape(2, 1400, 1, 1)
        shape, attributes = (1, 2, 1, 3), {"kernel_shape": [1, 1]}
    points = (("x_zero_point", x_type, np.asarray(x_kind.minimum)), ("w_zero_point", w_type, np.asarray(0)))
    operands = [("x", x_type, x), ("w", w_type, w), *points]
    content = one_node(operator, operands, [("y", "s32", shape)], attributes, fed=["x"])
    return Draft("saturation", content, {"x": x}, "sums of 1,400 products, beyond 2^24")


def _real(operator: str, types: str) -> Iterator[Draft]:
    """An operator on real numbers between quantized values: quotients beyond 32 bits, whole ranges, awkward scales, odd
    ends.
    """
    kind, middle = data_type(types), _middle(types)
    rows: tuple[tuple[str, float, int, float, int], ...] = (
        ("saturation", 2.0**20, middle, 2.0**-20, middle + 20),
        ("codes", 0.5, middle, 0.5, middle),
        ("codes", 0.5, kind.minimum, 0.5, kind.minimum),
        ("near ties", 0.15, middle + 9, 0.1, middle - 60),
        ("near ties", 0.7, middle - 27, 0.2, middle - 70),
        ("near ties", 0.0117, middle - 3, 0.0078, middle - 40),
    )
    for aim, x_scale, zx, y_scale, zy in rows:
        elements = _every(types)
        attributes: dict[str, Any] = {}
        if operator == "QDQ MaxPool":
            elements = np.append(elements, elements[-1:]).reshape(1, 1, 1, 257)
            attributes = {"kernel_shape": [1, 1]}
        else:
            elements = np.append(elements, elements[-3:])
        result = (elements.shape, y_scale, zy)
        content, inputs = quantized(operator, types, [Codes(elements, x_scale, zx)], result, attributes)
        yield Draft(
            aim,
            content,
            inputs,
            f"every quantized value, scales {x_scale:.8g} to {y_scale:.8g}, zero points {zx}, {zy}",
        )


def _dilated(operator: str, types: str) -> Iterator[Draft]:
    """Windows whose taps lie apart, by another distance along each axis."""
    kind, point = data_type(types), _middle(types) + 9
    rows: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
        ((1, 3, 9, 11), {"kernel_shape": [3, 2], "dilations": [2, 3]}),
        ((1, 2, 8, 9), {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1], "pads": [1, 2, 0, 1]}),
    )
    for number, (shape, attributes) in enumerate(rows):
        random = generator(operator, types, "dilated", number)
        elements = random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True)
        result = ((*shape[:2], *window_counts(shape[2:], attributes)), 0.5, point)
        content, inputs = quantized(operator, types, [Codes(elements, 0.5, point)], result, attributes)
        yield Draft("padding" if "pads" in attributes else "shapes", content, inputs, f"{list(shape)}, {attributes}")


def _uneven_blocks(operator: str, types: str) -> Draft:
    """Seven numbers in a block of 5 and one of 2: blocks of 4 or of 6 would be as many."""
    kind = data_type(types)
    scales = np.array([[0.5, 8.0], [2.0, 0.25], [1.0, 0.125]], np.float32)
    points = np.array([[3, 1], [2, 5], [1, 7]]) + max(0, kind.minimum)
    attributes = {"axis": 1, "block_size": 5}
    random = generator(operator, types, "blocks")
    if operator == "QuantizeLinear":
        x = (random.integers(3, 60, (3, 7)) + 0.25).astype(np.float32)
        operands = [("x", "f32", x), ("y_scale", "f32", scales), ("y_zero_point", types, points)]
        content = one_node(operator, operands, [("y", types, x.shape)], attributes, fed=["x"], opset=21)
        return Draft("shapes", content, {"x": x}, "blocks of 5 and of 2 along axis 1")
    elements = random.integers(10, 120, (3, 7)).astype(kind.numpy)
    operands = [("x", types, elements), ("x_scale", "f32", scales), ("x_zero_point", types, points)]
    content = one_node(operator, operands, [("y", "f32", elements.shape)], attributes, fed=["x"], opset=21)
    return Draft("shapes", content, {"x": elements}, "blocks of 5 and of 2 along axis 1")
