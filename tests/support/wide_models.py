"""Random one-node models of standard operators on types of 32 and 64 bits that few files hold, by name."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, load_from_string, numpy_helper

from .contributed_models import elements
from .floating_models import Generator, Model, partner, shape_of, wild
from .onnx_models import build, single

_WIDTHS = (
    (np.uint8, np.int8),
    (np.uint16, np.int16, np.float16),
    (np.uint32, np.int32, np.float32),
    (np.uint64, np.int64, np.float64),
)


def bit_cast(rng: np.random.Generator) -> Model:
    kinds = _WIDTHS[rng.integers(len(_WIDTHS))]
    before, after = (np.dtype(kinds[rng.integers(len(kinds))]) for _ in range(2))
    to = helper.np_dtype_to_tensor_dtype(after)
    return single("BitCast", {"x": elements(rng, shape_of(rng), before)}, [to], {"to": to}, opset=26)


def product(rng: np.random.Generator) -> Model:
    kind, left = np.dtype(rng.choice([np.int32, np.int64, np.uint32, np.uint64])), shape_of(rng, most=5)
    right: tuple[int, ...] = (left[-1],)
    if rng.random() < 0.8:
        right = (*(left[:-2] if rng.random() < 0.5 else ()), left[-1], int(rng.integers(1, 6)))
    inputs = {"a": elements(rng, left, kind), "b": elements(rng, right, kind)}
    return single("MatMul", inputs, [helper.np_dtype_to_tensor_dtype(kind)])


def product_of_doubles(rng: np.random.Generator) -> Model:
    """MatMul, or Gemm with all that it has; a quarter of them has several blocks of terms."""
    large = rng.random() < 0.25
    rows, depth, columns = (int(rng.integers(1, most)) for most in ((6, 300, 80) if large else (12, 20, 20)))
    constants = ["b", "c"] if rng.random() < 0.5 else []
    if rng.random() < 0.5:
        lead = shape_of(rng, most=4)[:2]
        a = rng.standard_normal((*lead, rows, depth) if rng.random() < 0.9 else depth)
        b = rng.standard_normal((*(lead if rng.random() < 0.5 else ()), depth, columns))
        b = b if rng.random() < 0.9 else b.reshape(-1)[:depth]
        return single("MatMul", {"a": a, "b": b}, [TensorProto.DOUBLE], constants=constants)
    turned = [int(rng.integers(2)) for _ in range(2)]
    inputs = {
        "a": rng.standard_normal((depth, rows) if turned[0] else (rows, depth)),
        "b": rng.standard_normal((columns, depth) if turned[1] else (depth, columns)),
    }
    if rng.random() < 0.6:
        shapes = [(columns,), (rows, columns), (rows, 1), (1,)]
        inputs["c"] = rng.standard_normal(shapes[rng.integers(4)])
    attributes = {"transA": turned[0], "transB": turned[1]}
    factors = {"alpha": float(rng.choice([1, 0.3])), "beta": float(rng.choice([1, 1, 0.5, 0]))}
    return single("Gemm", inputs, [TensorProto.DOUBLE], {**attributes, **factors}, constants=constants)


def sum_of_doubles(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, most=4)
    inputs = {f"x{i}": rng.standard_normal(partner(rng, shape)) for i in range(int(rng.integers(1, 5)))}
    return single("Sum", inputs, [TensorProto.DOUBLE])


def extreme_of_truth_values(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, most=4)
    inputs = {"x": rng.random(shape) < 0.5, "axes": rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)]}
    attributes = {"keepdims": int(rng.integers(0, 2)), "noop_with_empty_axes": int(rng.integers(0, 2))}
    operator = str(rng.choice(["ReduceMax", "ReduceMin"]))
    return single(operator, inputs, [TensorProto.BOOL], attributes, opset=20, constants=["axes"])


def rounding(rng: np.random.Generator) -> Model:
    x = wild(rng, shape_of(rng)).astype(np.float64) * rng.choice([1, 1e10, 0.5])
    return single(str(rng.choice(["Ceil", "Floor", "Relu", "Round", "Sign"])), {"x": x}, [TensorProto.DOUBLE])


def power(rng: np.random.Generator) -> Model:
    kind = np.dtype(rng.choice([np.int32, np.int64]))
    shape = shape_of(rng, most=5)
    base = rng.integers(-6, 12, shape).astype(kind) if rng.random() < 0.7 else elements(rng, shape, kind)
    exponents = np.asarray(rng.integers(-2, 12, partner(rng, shape) if rng.random() < 0.6 else ()))
    to = np.dtype(rng.choice([np.int32, np.int64, np.float32, np.float64]))
    inputs = {"x": base, "y": exponents.astype(to) / (2 if to.kind == "f" and rng.random() < 0.3 else 1)}
    inputs["y"] = np.asarray(inputs["y"], to)
    return single("Pow", inputs, [helper.np_dtype_to_tensor_dtype(kind)], opset=15)


def function(rng: np.random.Generator) -> Model:
    """Functions of binary64 numbers; angles of all sizes."""
    op = str(rng.choice(["Cos", "Exp", "Log", "Sigmoid", "Sin", "Tanh"]))
    x = wild(rng, shape_of(rng, 0, 3)).astype(np.float64) * rng.choice([1, 1, 1e3, 1e-3])
    x += rng.standard_normal(x.shape) * 1e-9
    return single(op, {"x": np.asarray(x)}, [TensorProto.DOUBLE])


def shares(rng: np.random.Generator) -> Model:
    """Softmax and its logarithm of binary64 numbers, of single rows and of many."""
    opset, shape = int(rng.choice([10, 12, 13, 21])), shape_of(rng, 1, 3, 12 if rng.random() < 0.7 else 40)
    x = rng.standard_normal(shape) * np.exp2(rng.uniform(-3, 6))
    axis = {"axis": int(rng.integers(-len(shape), len(shape)))}
    return single(str(rng.choice(["Softmax", "LogSoftmax"])), {"x": x}, [TensorProto.DOUBLE], axis, opset=opset)


def normalization(rng: np.random.Generator) -> Model:
    """Of binary64 numbers."""
    kind, shape = TensorProto.DOUBLE, shape_of(rng, 1, 4, 9 if rng.random() < 0.7 else 40)
    x = rng.standard_normal(shape) * np.exp2(rng.uniform(-3, 3))
    op = str(rng.choice(["LayerNormalization", "RMSNormalization", "LpNormalization", "BatchNormalization"]))
    axis = int(rng.integers(-len(shape), len(shape)))
    if op == "LpNormalization":
        return single(op, {"x": x}, [kind], {"axis": axis, "p": int(rng.integers(1, 3))})
    if op == "BatchNormalization":
        channels = shape[1] if len(shape) > 1 else 1
        parts = {name: rng.standard_normal(channels) for name in ("scale", "bias", "mean")}
        variance = {"variance": np.square(rng.standard_normal(channels))}
        constants = [*parts, *variance] if rng.random() < 0.5 else []
        return single(op, {"x": x, **parts, **variance}, [kind], opset=15, constants=constants)
    row = shape[axis:] if rng.random() < 0.7 else tuple(1 if rng.random() < 0.5 else size for size in shape)
    inputs = {"x": x, "scale": rng.standard_normal(row)}
    if op == "LayerNormalization" and rng.random() < 0.6:
        inputs["bias"] = rng.standard_normal(row)
    outputs = [kind, TensorProto.FLOAT, TensorProto.FLOAT][: int(rng.integers(1, 4)) if op[0] == "L" else 1]
    attributes = {"axis": axis, "epsilon": float(rng.choice([1e-5, 1e-3]))}
    return single(op, inputs, outputs, attributes, opset=23 if op[0] == "R" else 17)


def power_of_reals(rng: np.random.Generator) -> Model:
    """Where one of both may be binary64."""
    base, exponent = (np.dtype(t) for t in rng.choice(["f8 f8", "f8 f4", "f8 i4", "f8 i8", "f4 f8", "f4 f4"]).split())
    shape = shape_of(rng, most=5)
    x = wild(rng, shape).astype(base) if rng.random() < 0.5 else np.asarray(np.abs(rng.standard_normal(shape)), base)
    y = rng.choice([2, 3, 0.5, -1, 2, 3, 1, 0, 1.7, -2.5], partner(rng, shape) if rng.random() < 0.6 else ())
    outputs = [helper.np_dtype_to_tensor_dtype(base)]
    constants = ["y"] if rng.random() < 0.5 else []
    return single("Pow", {"x": x, "y": np.asarray(y).astype(exponent)}, outputs, opset=15, constants=constants)


def extremes(rng: np.random.Generator) -> Model:
    """Many zeros of both signs, and operands that are broadcast along any axes."""
    kind = rng.choice([np.dtype(np.float32), np.dtype(np.float64)])
    shape = tuple(int(rng.choice([1, 2, 3, 4, 5, 7, 8, 13])) for _ in range(int(rng.integers(0, 5))))
    operands = {}
    for name in ("x", "y", "z")[: 2 + (rng.random() < 0.2)]:
        own = tuple(1 if rng.random() < 0.3 else size for size in shape)[int(rng.integers(0, len(shape) + 1)) :]
        size = own if rng.random() < 0.6 else shape
        operands[name] = np.asarray(rng.choice([0.0, -0.0, -0.0, 0.0, 1, -1], size), kind)
    constants = ["y"] if rng.random() < 0.3 else []
    outputs = [helper.np_dtype_to_tensor_dtype(kind)]
    return single(str(rng.choice(["Max", "Min"])), operands, outputs, constants=constants)


def not_finite(rng: np.random.Generator) -> Model:
    """Numbers of 8 bits, which only casts bring into a model."""
    kinds = [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ]
    kind = kinds[rng.integers(len(kinds))]
    x = wild(rng, shape_of(rng))
    attributes = {f"detect_{sign}": int(rng.integers(2)) for sign in ("positive", "negative") if rng.random() < 0.5}
    nan = rng.random() < 0.5
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind, saturate=int(rng.integers(2))),
        helper.make_node("IsNaN" if nan else "IsInf", ["narrow"], ["y"], **({} if nan else attributes)),
    ]
    return build(nodes, {"x": x}, {"y": TensorProto.BOOL}, opset=20)


def extremes_along_axes(rng: np.random.Generator) -> Model:
    """Rows of NaN and of zeros of both signs, whose order in memory shows."""
    kind, rank = np.dtype(rng.choice(["f4", "f4", "f8"])), int(rng.integers(1, 6))
    shape = rng.integers(1, (200, 70, 16, 7, 5)[rank - 1], rank)
    shape = np.where(rng.random(rank) < 0.15, 1, shape)
    axes = np.flatnonzero(rng.random(rank) < 0.5)
    some = [0.0, -0.0, -1, -1, -1, 1, *[np.nan] * int(rng.integers(2))]
    inputs = {"x": rng.choice(some, shape).astype(kind), "axes": axes if len(axes) else rng.integers(0, rank, 1)}
    attributes = {"keepdims": int(rng.integers(2))}
    operator, output = str(rng.choice(["ReduceMax", "ReduceMin"])), helper.np_dtype_to_tensor_dtype(kind)
    return single(operator, inputs, [output], attributes, opset=int(rng.choice([18, 20])), constants=["axes"])


GENERATORS: dict[str, Generator] = {
    "BitCast": bit_cast,
    "IsNaN, IsInf": not_finite,
    "MatMul": product,
    "MatMul, Gemm": product_of_doubles,
    "Sum": sum_of_doubles,
    "LogSoftmax, Softmax": shares,
    "Max, Min": extremes,
    "Normalizations": normalization,
    "Pow": power,
    "Pow of reals": power_of_reals,
    "ReduceMax, ReduceMin": extreme_of_truth_values,
    "ReduceMax, ReduceMin of reals": extremes_along_axes,
    "Ceil, Floor, Relu, Round, Sign": rounding,
    "Cos, Exp, Log, Sigmoid, Sin, Tanh": function,
}


def doubled(model: Model, rng: np.random.Generator) -> Model:
    """A model with binary64 numbers in place of binary32 ones; those that are not whole get low bits."""
    content, feeds = model
    made = load_from_string(content)

    def wide(x: np.ndarray) -> np.ndarray:
        if x.dtype != np.float32:
            return x
        with np.errstate(all="ignore"):
            low = rng.uniform(-(2.0**-26), 2.0**-26, x.shape) * (x != np.rint(x))
            return np.asarray(x.astype(np.float64) * (1 + low))

    for info in (*made.graph.input, *made.graph.output):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in made.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(wide(numpy_helper.to_array(tensor)), tensor.name))
    return made.SerializeToString(), [wide(x) for x in feeds]
