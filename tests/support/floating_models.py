"""Random one-node models of operators on real numbers, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from .onnx_models import KIND, MICROSOFT, integers, run_runtime, single

F32 = np.float32
Model = tuple[bytes, list[np.ndarray]]
Generator = Callable[[np.random.Generator], Model]
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64


def reals(rng: np.random.Generator, shape: Any, spread: float = 3) -> np.ndarray:
    """Normal numbers over a few binades, some of them whole, some of them zero (of one sign)."""
    values = rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread))
    values = np.where(rng.random(shape) < 0.15, np.rint(values), values) + 0.0
    return np.asarray(values, F32)


def wild(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Numbers over the whole range, subnormal ones, infinities, NaNs and zeros of both signs."""
    values = reals(rng, shape, 6)
    values = np.where(rng.random(shape) < 0.2, values * np.exp2(rng.uniform(-140, 120, shape)), values)
    special = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 3.4e38], shape)
    with np.errstate(over="ignore"):
        return np.where(rng.random(shape) < 0.1, special, values).astype(F32)


def shape_of(rng: np.random.Generator, low: int = 1, high: int = 4, most: int = 9) -> tuple[int, ...]:
    return tuple(int(v) for v in rng.integers(1, most, rng.integers(low, high + 1)))


def partner(rng: np.random.Generator, shape: tuple[int, ...], one_way: bool = False) -> tuple[int, ...]:
    """A shape that broadcasts with `shape`."""
    rank = int(rng.integers(0, len(shape) + 1))
    part = tuple(1 if rng.random() < 0.3 else e for e in shape[len(shape) - rank :])
    return (
        part if one_way or rng.random() < 0.8 else (int(rng.integers(1, 4)), *((1,) * (len(shape) - len(part))), *part)
    )


def numbers(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """The same without NaN."""
    return np.asarray(np.nan_to_num(wild(rng, shape), nan=1.5, posinf=np.inf, neginf=-np.inf), F32)


def unary(
    op: str, draw: Callable[..., np.ndarray] = wild, opset: int = 21, domain: str = "", **ranges: Any
) -> Generator:
    """`ranges`: attribute to (low, high) of a real number that half of the models give."""

    def generate(rng: np.random.Generator) -> Model:
        attributes = {k: float(F32(rng.uniform(*v))) for k, v in ranges.items() if rng.random() < 0.6}
        most = 9 if rng.random() < 0.8 else 40
        x = draw(rng, shape_of(rng, 0, 3, most))
        return single(op, {"x": x}, [_FLOAT], attributes, opset=opset, domain=domain)

    return generate


def positive(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return np.asarray(np.abs(reals(rng, shape, 8)) + F32(1e-6), F32)


def small(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return reals(rng, shape, 3)


def binary(op: str, draw: Callable[..., np.ndarray] = wild, one_way: bool = False) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        shape = shape_of(rng, 0, 4)
        a, b = draw(rng, shape), draw(rng, partner(rng, shape, one_way))
        if not one_way and rng.random() < 0.5:
            a, b = b, a
        return single(op, {"a": a, "b": b}, [_FLOAT], constants=["b"] if rng.random() < 0.5 else [])

    return generate


def variadic(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        shape = shape_of(rng, 1, 4)
        operands = {f"x{i}": reals(rng, partner(rng, shape)) for i in range(int(rng.integers(1, 5)))}
        operands["whole"] = reals(rng, shape)
        try:
            np.broadcast_shapes(*(x.shape for x in operands.values()))
        except ValueError:
            operands = {"whole": operands["whole"]}
        return single(op, operands, [_FLOAT])

    return generate


def _clip(rng: np.random.Generator) -> Model:
    dtype = rng.choice([F32, F32, np.int8, np.uint8, np.int32, np.int64])
    old = dtype == F32 and rng.random() < 0.3
    x = wild(rng, shape_of(rng)) if dtype == F32 else integers(rng, shape_of(rng), dtype)
    ends = [wild(rng, ()) if dtype == F32 else integers(rng, (), dtype) for _ in range(2)]
    if old:
        ends = [e if np.isfinite(e) else F32(1) for e in ends]
        attributes = {n: float(e) for n, e in zip(("min", "max"), ends, strict=True) if rng.random() < 0.7}
        return single("Clip", {"x": x}, [_FLOAT], attributes, opset=10)
    low, high = (np.asarray(e) if rng.random() < 0.7 else None for e in ends)
    constants = ["low", "high"] if rng.random() < 0.7 else []
    kind = {np.dtype(np.int64): _INT64}.get(x.dtype) or KIND[x.dtype]
    return single("Clip", {"x": x, "low": low, "high": high}, [kind], constants=constants, opset=13)


def softmax(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        opset = int(rng.choice([10, 12, 13, 21]))
        shape = shape_of(rng, 1, 4, 12)
        axis = int(rng.integers(-len(shape), len(shape)))
        attributes = {"axis": axis} if rng.random() < 0.8 or (opset < 13 and len(shape) == 1) else {}
        if opset < 13 and attributes and rng.random() < 0.5:
            attributes["axis"] = int(rng.integers(len(shape)))
        return single(op, {"x": reals(rng, shape)}, [_FLOAT], attributes, opset=opset)

    return generate


def reduction(op: str, draw: Callable[..., np.ndarray] = reals, kinds: tuple[Any, ...] = (F32,)) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        dtype = kinds[rng.integers(len(kinds))]
        shape = shape_of(rng, 1, 4, 12)
        if np.dtype(dtype).kind == "f":
            x = draw(rng, shape).astype(dtype)
        else:
            x = (
                integers(rng, shape, dtype)
                if rng.random() < 0.5 and dtype != np.int64
                else rng.integers(-40 if dtype().dtype.kind == "i" else 0, 40, shape).astype(dtype)
            )
        opset = int(rng.choice([11, 13, 18, 20]))
        if dtype in (np.int8, np.uint8) and opset < 13:
            opset = 13
        count = int(rng.integers(1, len(shape) + 1))
        axes = np.sort(rng.permutation(len(shape))[:count]).astype(np.int64)
        axes = np.where(rng.random(count) < 0.3, axes - len(shape), axes)
        given = rng.random() < 0.85
        attributes: dict[str, Any] = {"keepdims": int(rng.integers(2))}
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        if opset >= (13 if op == "ReduceSum" else 18):
            if rng.random() < 0.2:
                attributes["noop_with_empty_axes"] = int(rng.integers(2))
            operand = axes if given else None
            constants = ["axes"] if rng.random() < 0.8 else []
            return single(op, {"x": x, "axes": operand}, [kind], attributes, opset=opset, constants=constants)
        if given:
            attributes["axes"] = [int(v) for v in axes]
        return single(op, {"x": x}, [kind], attributes, opset=opset)

    return generate


def window_attributes(
    rng: np.random.Generator, taps: tuple[int, ...], pool: bool, dilated: bool = True
) -> dict[str, Any]:
    rank = len(taps)
    found: dict[str, Any] = {}
    if rng.random() < 0.6:
        found["strides"] = [int(v) for v in rng.integers(1, 4, rank)]
    if dilated and rng.random() < 0.4:
        found["dilations"] = [int(v) for v in rng.integers(1, 3, rank)]
    draw = rng.random()
    if draw < 0.5:
        found["pads"] = [int(rng.integers(0, taps[i % rank] if pool else 3)) for i in range(2 * rank)]
    elif draw < 0.75:
        found["auto_pad"] = str(rng.choice(["VALID", "SAME_UPPER", "SAME_LOWER"]))
    return found


def _conv_parts(rng: np.random.Generator) -> tuple[dict[str, np.ndarray | None], dict[str, Any], list[str]]:
    """Operands, attributes, and names of constants."""
    rank = int(rng.choice([1, 2, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 2, 3]))
    depth, each = (int(v) for v in rng.integers(1, 6, 2))
    if rng.random() < 0.3:
        groups, depth, each = int(rng.integers(1, 20)), 1, int(rng.choice([1, 1, 2]))
    if rng.random() < 0.15:
        groups, depth, each = int(rng.choice([1, 1, 2])), int(rng.choice([16, 20, 32, 17, 136])), 16
    taps = tuple(int(v) for v in rng.integers(1, 4, rank))
    sizes = tuple(int(v) for v in rng.integers(4, 11 if rank < 3 else 7, rank))
    x = reals(rng, (int(rng.integers(1, 3)), groups * depth, *sizes))
    w = reals(rng, (groups * each, depth, *taps), 1)
    bias = reals(rng, (groups * each,)) if rng.random() < 0.6 else None
    attributes = {**window_attributes(rng, taps, False), "group": groups}
    if rng.random() < 0.5:
        attributes["kernel_shape"] = list(taps)
    constants = ["w", "bias"] if rng.random() < 0.8 else []
    return {"x": x, "w": w, "bias": bias}, attributes, constants


def _conv(rng: np.random.Generator) -> Model:
    operands, attributes, constants = _conv_parts(rng)
    if operands["bias"] is None:
        del operands["bias"]
    return single("Conv", operands, [_FLOAT], attributes, constants=constants)


def _fused_conv(rng: np.random.Generator) -> Model:
    """With an activation, or a fourth operand of the result's shape that its sums begin with."""
    operands, attributes, constants = _conv_parts(rng)
    if rng.random() < 0.4:
        if operands["bias"] is None:
            operands["bias"] = reals(rng, operands["w"].shape[:1])  # type: ignore[union-attr]
        attributes.pop("auto_pad", None)
        found = run_runtime(*single("Conv", operands, [_FLOAT], attributes))
        operands["sum"] = reals(rng, found["y0"].shape if isinstance(found, dict) else ())
    counts = {"Clip": 2, "HardSigmoid": 2, "LeakyRelu": 1}
    names = [
        "Relu",
        "Relu",
        "Sigmoid",
        "Tanh",
        "LeakyRelu",
        "Clip",
        "HardSigmoid",
        *([""] if "sum" in operands else []),
    ]
    name = str(rng.choice(names))
    if name:
        attributes["activation"] = name
    if name in counts:
        attributes["activation_params"] = sorted(float(F32(v)) for v in rng.uniform(-1, 1, counts[name]))
    if operands["bias"] is None:
        del operands["bias"]
    return single("FusedConv", operands, [_FLOAT], attributes, domain=MICROSOFT, constants=constants)


def _conv_transpose(rng: np.random.Generator) -> Model:
    rank = int(rng.choice([1, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 2]))
    depth, each = (int(v) for v in rng.integers(1, 5, 2))
    taps = tuple(int(v) for v in rng.integers(1, 4, rank))
    sizes = tuple(int(v) for v in rng.integers(1, 7, rank))
    x = reals(rng, (int(rng.integers(1, 3)), groups * depth, *sizes))
    w = reals(rng, (groups * depth, each, *taps), 1)
    bias = reals(rng, (groups * each,)) if rng.random() < 0.6 else None
    attributes = {**window_attributes(rng, taps, True), "group": groups}
    strides = attributes.get("strides", [1] * rank)
    if rng.random() < 0.3:
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    elif rng.random() < 0.2 and "pads" not in attributes:
        attributes["output_shape"] = [e * s + int(rng.integers(0, 2)) for e, s in zip(sizes, strides, strict=True)]
    return single(
        "ConvTranspose",
        {"x": x, "w": w, "bias": bias},
        [_FLOAT],
        attributes,
        constants=["w", "bias"] if rng.random() < 0.7 else [],
    )


def _matmul(rng: np.random.Generator) -> Model:
    m, k, n = (int(v) for v in rng.integers(1, 20, 3))
    if rng.random() < 0.2:
        k = int(rng.integers(20, 700))
    if rng.random() < 0.1:
        n = int(rng.integers(20, 200))
    batch = shape_of(rng, 0, 2, 4)
    a_shape: tuple[int, ...] = (*batch, m, k)
    b_shape: tuple[int, ...] = (k, n) if rng.random() < 0.6 else (*batch, k, n)
    if rng.random() < 0.1:
        a_shape = (k,)
    elif rng.random() < 0.1:
        b_shape = (k,)
    a, b = reals(rng, a_shape), reals(rng, b_shape)
    return single("MatMul", {"a": a, "b": b}, [_FLOAT], constants=["b"] if rng.random() < 0.6 else [])


_GEMM_ACTIVATIONS = (
    *("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu"),
    *("Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
)
_WITH_ALPHA = ("Elu", "HardSigmoid", "LeakyRelu", "Selu", "ThresholdedRelu")


def _gemm(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        m, k, n = (int(v) for v in rng.integers(1, 20, 3))
        if rng.random() < 0.2:
            k = int(rng.integers(20, 500))
        ta, tb = (int(v) for v in rng.integers(0, 2, 2))
        c = [(n,), (1, n), (m, n), (m, 1), (), (1,)][rng.integers(6)] if rng.random() < 0.8 else None
        attributes: dict[str, Any] = {"transA": ta, "transB": tb}
        if rng.random() < 0.3:
            attributes |= {"alpha": float(F32(rng.uniform(-2, 2))), "beta": float(rng.choice([0, 1, 0.5]))}
        operands = {
            "a": reals(rng, (k, m) if ta else (m, k)),
            "b": reals(rng, (n, k) if tb else (k, n)),
            "c": None if c is None else reals(rng, c),
        }
        if op == "FusedGemm":
            attributes["activation"] = name = str(rng.choice(_GEMM_ACTIVATIONS))
            more = {"HardSigmoid": ["beta"], "Selu": ["gamma"]}.get(name, [])
            for parameter in ["alpha", *more] if name in _WITH_ALPHA else []:
                attributes[f"activation_{parameter}"] = float(F32(rng.uniform(0, 1)))
        constants = ["b", "c"] if rng.random() < 0.7 else []
        domain = MICROSOFT if op == "FusedGemm" else ""
        return single(op, operands, [_FLOAT], attributes, domain=domain, constants=constants)

    return generate


def _fused_matmul(rng: np.random.Generator) -> Model:
    """Matrices transposed in all ways, perhaps with their rows before the batch axes; vectors."""
    m, k, n = (int(v) for v in rng.integers(1, 20, 3))
    if rng.random() < 0.2:
        k = int(rng.integers(20, 700))
    if rng.random() < 0.2:
        m = 1
    batch = shape_of(rng, 0, 2, 4)
    turned, behind, shapes = {}, {}, []
    ranks = [len(batch), len(batch) if rng.random() < 0.6 else 0]
    for side, matrix, rank in zip("AB", ((m, k), (k, n)), ranks, strict=True):
        turned[side] = int(rng.integers(0, 2))
        shape = (*batch[len(batch) - rank :], *(matrix[::-1] if turned[side] else matrix))
        behind[side] = int(rank > 0 and ranks[0] == ranks[1] and rng.random() < 0.3)
        if behind[side]:
            shape = (shape[-2], *shape[:-2], shape[-1])
        shapes.append((k,) if not rank and rng.random() < 0.1 else shape)
    attributes: dict[str, Any] = {f"trans{side}": turned[side] for side in "AB"}
    attributes |= {f"transBatch{side}": behind[side] for side in "AB"}
    if rng.random() < 0.5:
        attributes["alpha"] = float(F32(rng.uniform(-2, 2)))
    operands = {name: reals(rng, shape) for name, shape in zip("ab", shapes, strict=True)}
    constants = ["b"] if rng.random() < 0.5 else []
    op = "FusedMatMul"
    if not any(behind.values()) and rng.random() < 0.2:
        # Its name before it had batches.
        op = "TransposeMatMul"
        attributes = {name: value for name, value in attributes.items() if "Batch" not in name}
    return single(op, operands, [_FLOAT], attributes, domain=MICROSOFT, constants=constants)


def pool(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        rank = int(rng.choice([1, 2, 2, 3]))
        dtype = rng.choice([F32, F32, np.float64, np.int8, np.uint8]) if op == "MaxPool" else F32
        taps = tuple(int(v) for v in rng.integers(1, 4, rank))
        sizes = tuple(int(v) for v in rng.integers(4, 10 if rank < 3 else 7, rank))
        shape = (int(rng.integers(1, 3)), int(rng.integers(1, 20)), *sizes)
        real = np.dtype(dtype).kind == "f"
        x = reals(rng, shape).astype(dtype) if real else integers(rng, shape, dtype)
        opset = int(rng.choice([12, 19, 22])) if op != "LpPool" else int(rng.choice([18, 22]))
        attributes = {
            **window_attributes(rng, taps, True, dilated=opset >= 19 or op == "MaxPool"),
            "kernel_shape": list(taps),
        }
        if rng.random() < 0.4 and not attributes.get("auto_pad", "").startswith("SAME"):
            attributes["ceil_mode"] = 1
        outputs = [helper.np_dtype_to_tensor_dtype(np.dtype(dtype))]
        if op == "MaxPool" and rng.random() < 0.4:
            outputs.append(_INT64)
            if rng.random() < 0.5:
                attributes["storage_order"] = 1
        if op == "AveragePool" and rng.random() < 0.5:
            attributes["count_include_pad"] = int(rng.integers(2))
        if op == "LpPool" and rng.random() < 0.5:
            attributes["p"] = int(rng.choice([1, 2, 3, 4, 7, 0, -1, -2]))
        return single(op, {"x": x}, outputs, attributes, opset=opset)

    return generate


def images(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        shape = (int(rng.integers(1, 3)), int(rng.integers(1, 20)), *shape_of(rng, 1, 3, 12))
        return single(op, {"x": reals(rng, shape)}, [_FLOAT])

    return generate


def _batch(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, 2, 5)
    opset = int(rng.choice([7, 8, 9, 14, 15, 21]))
    attributes: dict[str, Any] = {"epsilon": float(F32(10.0 ** rng.uniform(-6, -2)))} if rng.random() < 0.5 else {}
    channels = shape[1:2]
    if opset < 9 and rng.random() < 0.5:
        attributes["spatial"], channels = 0, shape[1:]
    operands = {
        "x": reals(rng, shape),
        "scale": reals(rng, channels),
        "bias": reals(rng, channels),
        "mean": reals(rng, channels),
        "variance": np.abs(reals(rng, channels)),
    }
    constants = [n for n in operands if n != "x"] if rng.random() < 0.8 else []
    training = "spatial" not in attributes and rng.random() < 0.3
    if training:
        attributes["momentum"] = float(F32(rng.random()))
    if training and opset >= 14:
        attributes["training_mode"] = 1
    kind = np.dtype(np.float64 if training and rng.random() < 0.5 else F32)
    results = [helper.np_dtype_to_tensor_dtype(kind)] * (1 if not training else 3 if opset >= 14 else 5)
    operands = {name: value.astype(kind) for name, value in operands.items()}
    return single("BatchNormalization", operands, results, attributes, opset=opset, constants=constants)


def _spread(rng: np.random.Generator, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of a scale or bias: a row, or anything that broadcasts over x."""
    row = shape[axis:]
    draw = rng.random()
    if draw < 0.4:
        return row
    if draw < 0.5:
        return (*(1,) * int(rng.integers(0, len(shape) - len(row) + 1)), *row)
    kept = tuple(int(e) if rng.random() < 0.7 else 1 for e in shape)
    return kept[int(rng.integers(0, len(kept) + 1)) :]


def _layer(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, 1, 4, 20)
    axis = int(rng.integers(-len(shape), len(shape)))
    scale = _spread(rng, shape, axis)
    bias: tuple[int, ...] | None = scale if rng.random() < 0.6 else _spread(rng, shape, axis)
    op = str(rng.choice(["LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"], p=[0.6, 0.2, 0.2]))
    if op != "LayerNormalization" or (np.prod(scale) not in (1, np.prod(shape[axis:])) and rng.random() < 0.3):
        # A layer whose scale is a row crashes the runtime when it has no bias.
        bias = None
    operands = {"x": reals(rng, shape) + F32(rng.choice([0, 0, 5])), "scale": reals(rng, scale)}
    if bias is not None:
        operands["bias"] = reals(rng, bias)
    most = {"LayerNormalization": 3, "RMSNormalization": 1, "SimplifiedLayerNormalization": 2}[op]
    attributes: dict[str, Any] = {"axis": axis}
    if rng.random() < 0.5:
        attributes["epsilon"] = float(F32(10.0 ** rng.uniform(-6, -2)))
    constants = ["scale", "bias"] if rng.random() < 0.5 else []
    outputs = [_FLOAT] * (most if rng.random() < 0.3 else 1)
    return single(op, operands, outputs, attributes, constants=constants, opset=23)


def _instance(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, 3, 5, 7)
    operands = {"x": reals(rng, shape), "scale": reals(rng, shape[1:2]), "bias": reals(rng, shape[1:2])}
    return single("InstanceNormalization", operands, [_FLOAT], {"epsilon": 1e-3} if rng.random() < 0.5 else {})


def _group(rng: np.random.Generator) -> Model:
    groups = int(rng.integers(1, 4))
    channels = groups * int(rng.integers(1, 4))
    shape = (int(rng.integers(1, 3)), channels, *shape_of(rng, 0, 3, 7))
    opset = int(rng.choice([18, 21]))
    count = groups if opset < 21 else channels
    operands = {"x": reals(rng, shape), "scale": reals(rng, (count,)), "bias": reals(rng, (count,))}
    return single("GroupNormalization", operands, [_FLOAT], {"num_groups": groups}, opset=opset)


def _lp(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, 1, 4)
    attributes = {"axis": int(rng.integers(-len(shape), len(shape))), "p": int(rng.integers(1, 3))}
    return single("LpNormalization", {"x": reals(rng, shape)}, [_FLOAT], attributes)


def _lrn(rng: np.random.Generator) -> Model:
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, 9)), *shape_of(rng, 2, 2))
    attributes: dict[str, Any] = {"size": int(rng.choice([1, 3, 5, 7]))}
    if rng.random() < 0.6:
        beta = float(rng.choice([0.5, 0.75, 0.6, 1, 2, 3, 4, 7, 30]))
        attributes |= {"alpha": 0.3, "beta": beta, "bias": float(rng.choice([1, 2, 0.01]))}
    return single("LRN", {"x": reals(rng, shape)}, [_FLOAT], attributes)


def _pow(rng: np.random.Generator) -> Model:
    shape = shape_of(rng)
    exponent = (
        reals(rng, partner(rng, shape), 1)
        if rng.random() < 0.4
        else np.asarray(rng.choice([2, 3, 0.5, -1, 0, 1, 4]), F32)
    )
    return single(
        "Pow", {"a": positive(rng, shape), "b": exponent}, [_FLOAT], constants=["b"] if rng.random() < 0.7 else []
    )


def _biased(op: str) -> Generator:
    def generate(rng: np.random.Generator) -> Model:
        shape = shape_of(rng, 1, 3, 20)
        bias = reals(rng, shape[-1:]) if op == "BiasGelu" or rng.random() < 0.5 else None
        return single(op, {"x": small(rng, shape), "bias": bias}, [_FLOAT], domain=MICROSOFT)

    return generate


def _skip(rng: np.random.Generator) -> Model:
    shape = (*shape_of(rng, 2, 2, 5), int(rng.integers(1, 40)))
    operands = {
        "x": reals(rng, shape),
        "skip": reals(rng, shape),
        "gamma": reals(rng, shape[-1:]),
        "beta": reals(rng, shape[-1:]) if rng.random() < 0.7 else None,
        "bias": reals(rng, shape[-1:]) if rng.random() < 0.5 else None,
    }
    return single("SkipLayerNormalization", operands, [_FLOAT], {"epsilon": 1e-5}, domain=MICROSOFT)


_I32, _I64 = (np.int32, np.int64)
GENERATORS: Mapping[str, Generator] = {
    **{op: unary(op) for op in ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan")},
    "Abs": unary("Abs"),
    "Add": binary("Add", numbers),
    "AveragePool": pool("AveragePool"),
    "BatchNormalization": _batch,
    "BiasGelu": _biased("BiasGelu"),
    "Ceil": unary("Ceil"),
    "Celu": unary("Celu", alpha=(-2, 2)),
    "Clip": _clip,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Cos": unary("Cos", small),
    "Div": binary("Div", numbers),
    "Elu": unary("Elu", small, alpha=(-1, 2)),
    "Erf": unary("Erf", small),
    "Exp": unary("Exp", small),
    "FastGelu": _biased("FastGelu"),
    "Floor": unary("Floor"),
    "FusedConv": _fused_conv,
    "FusedGemm": _gemm("FusedGemm"),
    "FusedMatMul": _fused_matmul,
    "Gelu": unary("Gelu", small),
    "Gemm": _gemm("Gemm"),
    "GlobalAveragePool": images("GlobalAveragePool"),
    "GlobalMaxPool": images("GlobalMaxPool"),
    "GroupNormalization": _group,
    "HardSigmoid": unary("HardSigmoid", small, alpha=(-1, 1), beta=(-1, 1)),
    "HardSwish": unary("HardSwish", small),
    "InstanceNormalization": _instance,
    "LRN": _lrn,
    "LayerNormalization": _layer,
    "LeakyRelu": unary("LeakyRelu", alpha=(-1, 1)),
    "Log": unary("Log"),
    "LogSoftmax": softmax("LogSoftmax"),
    "LpNormalization": _lp,
    "LpPool": pool("LpPool"),
    "MatMul": _matmul,
    "MaxPool": pool("MaxPool"),
    "Mean": variadic("Mean"),
    "Mish": unary("Mish", small),
    "Mul": binary("Mul", numbers),
    "Neg": unary("Neg"),
    "PRelu": binary("PRelu", one_way=True),
    "Pow": _pow,
    "QuickGelu": unary("QuickGelu", small, domain=MICROSOFT, alpha=(0.5, 2)),
    "Reciprocal": unary("Reciprocal"),
    "ReduceL1": reduction("ReduceL1", kinds=(F32, np.float64, F32, _I32)),
    "ReduceL2": reduction("ReduceL2", kinds=(F32, np.float64, F32, _I32, _I64)),
    "ReduceLogSum": reduction("ReduceLogSum", positive, kinds=(F32, np.float64, F32, _I32, _I64)),
    "ReduceLogSumExp": reduction("ReduceLogSumExp", kinds=(F32, np.float64, F32, _I32, _I64)),
    "ReduceMax": reduction("ReduceMax", kinds=(F32, F32, _I32, _I64, np.int8, np.uint8)),
    "ReduceMean": reduction("ReduceMean", kinds=(F32, np.float64, F32, F32, _I32)),
    "ReduceMin": reduction("ReduceMin", kinds=(F32, F32, _I32, _I64, np.int8, np.uint8)),
    "ReduceProd": reduction("ReduceProd", kinds=(F32, np.float64, F32, _I32, _I64)),
    "ReduceSum": reduction("ReduceSum", kinds=(F32, np.float64, F32, _I32, _I64)),
    "ReduceSumSquare": reduction("ReduceSumSquare", kinds=(F32, np.float64, F32, _I32)),
    "Relu": unary("Relu"),
    "Round": unary("Round"),
    "Selu": unary("Selu", small, alpha=(0.5, 2), gamma=(0.5, 2)),
    "Sigmoid": unary("Sigmoid", small),
    "Sign": unary("Sign"),
    "Sin": unary("Sin", small),
    "SkipLayerNormalization": _skip,
    "Softmax": softmax("Softmax"),
    "Softplus": unary("Softplus"),
    "Softsign": unary("Softsign", small),
    "Sqrt": unary("Sqrt"),
    "Sub": binary("Sub", numbers),
    "Sum": variadic("Sum"),
    "Tanh": unary("Tanh", small),
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=(-1, 1)),
}
