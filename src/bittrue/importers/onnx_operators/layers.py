"""Mappings of matrix products and convolutions on integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph import Attribute
from .base import CAST, MICROSOFT, PLAIN, Mappers, Parts, Source
from .windows import convolution_attributes

_BLOCKS = (16, 32, 64, 128, 256)
_FP4 = np.array([0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25], np.float32)
_NF4 = np.array(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
    np.float32,
)
_FOUR_BITS = (np.concatenate([_FP4, -_FP4]), _NF4)


def _product(
    source: Source, positions: tuple[int | None, ...], needed: int, kind: str, attributes: Mapping[str, Attribute]
) -> None:
    """A product whose operands, in the order of `matmul`, are these inputs of the node; the first ones are `needed`."""
    for position in range(needed):
        source.tensor(position)
    most = len(positions) - positions.count(None)
    if len(source.inputs) > most:
        raise source.invalid("BT-NODE-ARITY", f"expected at most {most} inputs, found {len(source.inputs)}")
    found = [None if p is None or not source.present(p) else source.inputs[p] for p in positions]
    source.emit("matmul", kind, attributes, inputs=found)


def _qlinear_matmul(source: Source) -> None:
    _product(source, (0, 3, None, 1, 2, 4, 5, 6, 7), 8, source.type(7), {})


def _matmul_integer(source: Source) -> None:
    _product(source, (0, 1, None, None, 2, None, 3), 2, "s32", {})


def _matmul_integer_16(source: Source) -> None:
    """Products of wider numbers, whose sums wrap."""
    attributes: dict[str, Attribute] = {"saturate": True, "round_mode": "up"}
    wide = [
        source.emit("convert", "s32", attributes, inputs=[given], outputs=[source.temporary("s32", name)])[0]
        for given, name in zip(source.ordered(0, 1), ("left", "right"), strict=True)
    ]
    source.emit("matmul", "s32", inputs=wide)


def _matmul_integer_to_float(source: Source) -> None:
    _product(source, (0, 1, 6, 2, 4, 3, 5), 4, source.type(2), {})


def _convolution(source: Source) -> dict[str, Attribute]:
    last = source.flag("channels_last", False, False) if source.domain == MICROSOFT else False
    return {**convolution_attributes(source), "channels_last": last}


def _qlinear_conv(source: Source) -> None:
    source.emit("conv", source.type(7), _convolution(source), inputs=source.ordered(0, 3, 8, 1, 2, 4, 5, 6, 7))


def _conv_integer(source: Source) -> None:
    absent = len(source.inputs)
    operands = source.ordered(0, 1, absent, absent, 2, absent, 3)
    source.emit("conv", "s32", _convolution(source), inputs=operands)


def _qgemm(source: Source) -> None:
    attributes = {
        "alpha": source.real("alpha", 1.0),
        "beta": 1.0,
        "transpose_a": source.flag("transA", False, True),
        "transpose_b": source.flag("transB", False, True),
        "matrices": True,
    }
    kind = source.type(8) if source.present(8) else "f32"
    _product(source, (0, 3, 6, 1, 2, 4, 5, 7, 8), 6, kind, attributes)


def _dynamic_quantize_matmul(source: Source) -> None:
    """Two nodes: what is quantized, and the product."""
    names = [source.temporary("u8", "a"), source.temporary("f32", "a_scale"), source.temporary("u8", "a_zero_point")]
    a, scale, point = source.emit(
        "dynamic_quantize_linear", ("u8", "f32", "u8"), inputs=source.inputs[:1], outputs=names
    )
    b, b_scale, b_point, bias = (*source.inputs[1:], None, None)[:4]
    source.emit("matmul", "f32", inputs=(a, b, bias, scale, point, b_scale, b_point))


def _matmul_n_bits(source: Source) -> None:
    """Whether weights are packed for another processor is passed over."""
    names = {"n": "N", "k": "K", "block_size": "block_size"}
    attributes: dict[str, Attribute] = {ours: source.integer(theirs, 0) for ours, theirs in names.items()}
    attributes |= {"bits": source.integer("bits", 4), "accuracy_level": source.integer("accuracy_level", 0)}
    attributes["partly_written"] = False
    source.integer("weight_prepacked", 0)
    a, quantized, scale, point, order, bias = (*source.inputs, *[None] * 6)[:6]
    if order is not None:
        _in_another_order(source)
        return
    source.emit("matmul", source.type(0), attributes, inputs=(a, quantized, bias, None, None, scale, point))


def _in_another_order(source: Source) -> None:
    """Every weight says whose scale and zero point it has: f32(f32(q * scale) - f32(scale * zero point)).

    The runtime reads real zero points alone; packed ones count as 8.
    """
    n, k, block = (source.integer(name, 0) for name in ("N", "K", "block_size"))
    if source.type(0) != "f32" or source.integer("bits", 4) != 4:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "g_idx is read with f32 and 4 bits alone", "export in order")
    if min(n, k) < 1 or block not in _BLOCKS:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"weights of {n} by {k} elements in blocks of {block}")
    blocks = -(-k // block)
    bytes_ = _values(source, 1, "u8", n * blocks * block // 2).reshape(n, -1, 1)
    scales = _values(source, 2, "f32", n * blocks).reshape(n, blocks)
    points = np.full((n, blocks), 8, np.float32)
    if source.present(3) and source.type(3) == "f32":
        points = _values(source, 3, "f32", n * blocks).reshape(n, blocks)
    groups = _values(source, 4, "s32", k, blocks * block)[:k]
    if groups.min() < 0 or groups.max() >= blocks:
        raise source.invalid("BT-NODE-INPUT", f"g_idx must lie in 0 to {blocks - 1}")
    quantized = _halves(bytes_, (0, 4)).reshape(n, -1)[:, :k].astype(np.float32)

    def step(operator: str, *operands: int) -> int:
        result = [source.temporary("f32", operator)]
        return source.emit(operator, "f32", {"activation": "none"}, inputs=operands, outputs=result)[0]

    scale = source.constant(np.ascontiguousarray(scales[:, groups]), "scales")
    scaled = step("mul", source.constant(quantized, "quantized"), scale)
    shift = step("mul", scale, source.constant(np.ascontiguousarray(points[:, groups]), "points"))
    _by_rows(source, step("sub", scaled, shift), 5)


def _matmul_bnb4(source: Source) -> None:
    """Weights are numbers of a table, the first of a byte in its high bits, times the largest number of their block.

    Blocks go through the whole matrix [N, K].
    """
    n, k, block, table = (source.integer(name, 0) for name in ("N", "K", "block_size", "quant_type"))
    source.integer("training_mode", 0)
    if not source.flag("transB", True, True) or table not in (0, 1) or block not in _BLOCKS or min(n, k) < 1:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE",
            f"'quant_type' {table}, {n} by {k} weights in blocks of {block}",
            f"'quant_type' is 0 or 1, 'transB' 1, and blocks are {', '.join(map(str, _BLOCKS))}",
        )
    parts, place = Parts(source), np.arange(n * k).reshape(n, k)
    pairs = _FOUR_BITS[table][_halves(np.arange(256, dtype=np.uint8)[:, None], (4, 0))]
    if source.type(1) != "u8" or source.type(2) != "f32":
        raise source.invalid("BT-NODE-TYPE", f"weights are {source.type(1)}, scaled by {source.type(2)}")
    if source.tensor(1).is_constant:
        bytes_ = _values(source, 1, "u8", at_least=-(-n * k // 2))
        values = source.constant(pairs[bytes_].reshape(-1)[place], "values")
    else:
        numbers = parts.step("convert", "s64", [source.inputs[1]], **CAST)
        values = _taken(source, parts.step("gather", "f32", [source.constant(pairs, "pairs"), numbers], **_ROWS), place)
    if source.tensor(2).is_constant:
        largest = source.constant(_values(source, 2, "f32", at_least=-(-n * k // block))[place // block], "largest")
    else:
        largest = _taken(source, source.inputs[2], place // block)
    _by_rows(source, parts.step("mul", "f32", [values, largest], **PLAIN), None)


_ROWS: dict[str, Attribute] = {"axis": 0, "batch_dims": 0, "from_either_end": False}


def _taken(source: Source, x: int | None, places: np.ndarray) -> int:
    """Elements of a computed tensor, whatever its shape."""
    parts = Parts(source)
    flat = parts.step("reshape", "f32", [x, parts.list(-1)], zeros="copied")
    return parts.step("gather", "f32", [flat, source.constant(places, "places")], **_ROWS)


def _experts(source: Source, quantized: bool) -> dict[str, Attribute]:
    """What both mixtures of experts say; one whose columns are not interleaved, or a third layer, has no kernel."""
    activation = source.text("activation_type", "relu")
    fusion = source.integer("swiglu_fusion", 0)
    if fusion != 1 if activation == "swiglu" else quantized and fusion:
        raise source.unsupported(
            "BT-ONNX-ATTRIBUTE",
            f"'swiglu_fusion' is {fusion} with the activation '{activation}'",
            "1 belongs to swiglu, whose columns take turns; 0 to all others",
        )
    limit = source.real("swiglu_limit", math.inf)
    if not limit >= 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'swiglu_limit' is {limit}", "give the largest number of a range")
    chosen = source.integer("k", 1)
    if source.integer("use_sparse_mixer", 0) == 1 and chosen != 2:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'use_sparse_mixer' asks two experts, not {chosen}")
    return {
        "k": chosen,
        "normalized": source.flag("normalize_routing_weights", False, False),
        "activation": activation,
        "alpha": source.real("activation_alpha", 1.0),
        "beta": source.real("activation_beta", 0.0),
        "limit": limit,
        "bits": 0,
        "block_size": 0,
        "accuracy_level": 0,
    }


def _moe(source: Source) -> None:
    if source.present(6) or source.present(7):
        raise source.unsupported("BT-NODE-INPUT", "a third layer of experts is not read", "fuse it into the first")
    attributes = _experts(source, False)
    source.emit("mixture_of_experts", source.type(0), attributes, inputs=source.ordered(0, 1, 2, 4, 3, 5))


def _qmoe(source: Source) -> None:
    attributes = _experts(source, True)
    bits, block = source.integer("expert_weight_bits", 4), source.integer("block_size", 0)
    level = source.integer("accuracy_level", 0)
    own = {source.integer(f"fc{layer}_expert_weight_bits", bits) for layer in (1, 2, 3)}
    source.text("quant_type", "int")
    if own != {bits} or bits not in (2, 4, 8):
        raise source.unsupported(
            "BT-BLOCK-BITS", f"experts have weights of {bits} bits", "give all of them 2, 4 or 8 bits"
        )
    if block and (block < 16 or block & (block - 1)):
        raise source.invalid("BT-BLOCK-SIZE", f"block_size {block} is no power of 2 of 16 or more")
    source.integer("weights_prepacked", -1)
    # Scales of whole experts, inputs 15 to 20, are passed over.
    if any(map(source.present, (8, 9, 10, 13))):
        raise source.unsupported("BT-NODE-INPUT", "a third layer of experts is not read", "fuse it into the first")
    integers = block and (bits == 8 or (bits == 4 and level == 4))
    attributes |= {"bits": bits, "block_size": block, "accuracy_level": 4 if integers else 0}
    inputs = source.ordered(0, 1, 2, 5, 4, 7, 3, 6, 11, 12, 14)
    source.emit("mixture_of_experts", source.type(0), attributes, inputs=inputs)


def _values(source: Source, position: int, dtype: str, *sizes: int, at_least: int = 0) -> np.ndarray:
    """Numbers of a constant operand, one after the other: as many as one of the sizes says, or the first of at least so
    many.
    """
    tensor = source.tensor(position)
    if not tensor.is_constant or tensor.dtype != dtype:
        raise source.unsupported(
            "BT-NODE-INPUT", f"input {position} is no constant of type {dtype}", "make it an initializer"
        )
    values: np.ndarray[Any, Any] = tensor.values().reshape(-1)
    if values.size not in sizes if sizes else values.size < at_least:
        expected = sizes[0] if sizes else at_least
        raise source.invalid("BT-BLOCK-SHAPE", f"input {position} has {values.size} elements, expected {expected}")
    return values[: at_least or None]


def _halves(bytes_: np.ndarray, shifts: tuple[int, int]) -> np.ndarray:
    """Numbers of 4 bits [..., 2] of bytes [..., 1]."""
    return bytes_ >> np.array(shifts, np.uint8) & 15


def _by_rows(source: Source, weights: int, bias: int | None) -> None:
    """A product with rows of weights that are computed in every run."""
    attributes: dict[str, Attribute] = {"transpose_b": True, "computed_weights": (1,)}
    added = source.inputs[bias] if bias is not None and source.present(bias) else None
    source.emit("matmul", "f32", attributes, inputs=[source.inputs[0], weights, added])


MAPPERS: Mappers = {
    ("", "ConvInteger"): _conv_integer,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_quantize_matmul,
    (MICROSOFT, "MatMulBnb4"): _matmul_bnb4,
    (MICROSOFT, "MatMulNBits"): _matmul_n_bits,
    (MICROSOFT, "MatMulInteger16"): _matmul_integer_16,
    (MICROSOFT, "MatMulIntegerToFloat"): _matmul_integer_to_float,
    (MICROSOFT, "MoE"): _moe,
    (MICROSOFT, "QGemm"): _qgemm,
    (MICROSOFT, "QMoE"): _qmoe,
    (MICROSOFT, "QLinearConv"): _qlinear_conv,
}
