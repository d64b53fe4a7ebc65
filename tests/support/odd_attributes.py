"""Every attribute that the ONNX importer reads, with every odd value, on a model that is else well-formed.

`bases` has at least one model for every mapped operator; what the mappings read of it is recorded, so that an attribute
can not be forgotten.
"""

from __future__ import annotations

import ast
import functools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import bittrue
from bittrue.importers import onnx_operators
from bittrue.importers.onnx_operators import Source
from bittrue.importers.onnx_operators.classical import refused

from .contributed_models import GENERATORS
from .official_onnx import official_cases
from .onnx_models import CLASSICAL, MICROSOFT, build, single

_F32, _U8, _S32, _S64, _BOOL = 1, 2, 6, 7, 9
# What ONNX Runtime 1.31 knows.
_IR_VERSION, _OPSET = 11, 26
_PLAIN = "?bBhHiIlLfd"

INTEGERS = (
    0, 1, 2, 3, -1, -2, -7, 7, 16, 255, -128, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, (1 << 32) + 1, -(1 << 32),
    (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e-5, 3e38, -3e38, float("inf"), -float("inf"), float("nan"))
TEXTS = (
    b"", b"x", b"NOTSET", b"VALID", b"SAME_UPPER", b"SAME_LOWER", b"valid", b"linear", b"nearest", b"cubic",
    b"constant", b"edge", b"reflect", b"wrap", b"DCR", b"CRD", b"LEFT", b"RIGHT", b"none", b"add", b"mul", b"max",
    b"min", b"tanh",
    b"Tanh", b"Sigmoid", b"half_pixel", b"asymmetric", b"align_corners", b"pytorch_half_pixel", b"floor", b"ceil",
    b"round_prefer_ceil", b"forward", b"reverse", b"bidirectional", b"VALID\0", b"\xff\xfe", b"x" * 70_000,
)  # fmt: skip
LISTS = (
    (), (0,), (1,), (-1,), (2,), (0, 0), (0, 1), (1, 0), (-1, -1), (1, 1), (2, 2), (0, -1), (1, 1, 1), (0, 0, 0, 0),
    (1, 1, 1, 1), (-1, -1, -1, -1), ((1 << 63) - 1,), (-(1 << 63),), (1 << 31, 1 << 31), (1 << 32, 1), (1,) * 9,
)  # fmt: skip


@dataclass(frozen=True)
class Base:
    """A model that both run; `node` is the one whose attributes are drawn."""

    domain: str
    op_type: str
    content: bytes
    feeds: tuple[np.ndarray, ...]
    node: int = 0

    @property
    def name(self) -> str:
        return f"{self.domain.removeprefix('com.')}{'.' * bool(self.domain)}{self.op_type}"


def mapped() -> set[tuple[str, str]]:
    """(domain, op_type) of every operator that the importer maps, but for those that it refuses by name."""
    return {key for key, mapper in onnx_operators._table().items() if mapper is not refused}


def _made(op_type: str, operands: Mapping[str, Any], types: Sequence[int], **others: Any) -> Base:
    domain, opset, constants = others.pop("domain", ""), others.pop("opset", 21), others.pop("constants", ())
    content, feeds = single(op_type, operands, types, others, domain=domain, opset=opset, constants=constants)
    return Base(domain, op_type, content, tuple(feeds))


def _by_hand() -> Iterator[Base]:
    """Operators of ONNX Runtime's own, and versions that the package has no tests of any more."""
    x = np.float32([[3, -1, 3], [2, 5, -7], [3, 0, 1]])
    image = np.arange(100, dtype=np.float32).reshape(1, 4, 5, 5)
    elements = image.astype(np.uint8)
    s, z = np.float32(0.1), np.uint8(3)
    row = x[0]
    quantized = {"x": elements, "s": s, "z": z, "s2": s, "z2": z}
    ours = {"domain": MICROSOFT}
    yield _made("SimplifiedLayerNormalization", {"x": x, "scale": row}, [_F32], axis=-1)
    yield _made("RMSNormalization", {"x": x, "scale": row}, [_F32], opset=23)
    yield _made("GlobalLpPool", {"x": image}, [_F32], p=1)
    yield _made("Inverse", {"x": x}, [_F32], **ours)
    yield _made("CDist", {"x": x, "y": x[:2]}, [_F32], metric="euclidean", **ours)
    every = {name: np.abs(image[0]) for name in ("scale", "bias", "mean", "variance")}
    yield _made("BatchNormalization", {"x": image, **every}, [_F32], spatial=0, opset=8)
    regions = {"x": image, "b": np.float32([[0, 0, 2, 3]]), "n": np.int64([0])}
    yield _made("RoiAlign", regions, [_F32], mode="max", output_height=2, output_width=2, sampling_ratio=1,
                spatial_scale=0.5, coordinate_transformation_mode="half_pixel", opset=16)  # fmt: skip
    five = {"x": image, "b": np.float32([[0, 0, 0, 2, 3]])}
    yield _made("MaxRoiPool", five, [_F32], pooled_shape=[2, 2], spatial_scale=0.5)
    taps = {"x": image, "w": np.ones((2, image.shape[1], 1, 1), np.float32)}
    taps["o"] = np.full((image.shape[0], 2, *image.shape[2:]), 0.25, np.float32)
    yield _made("DeformConv", taps, [_F32], kernel_shape=[1, 1], strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1],
                group=1, offset_group=1, opset=19)  # fmt: skip
    for op_type in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2"):
        yield _made(op_type, {"x": x}, [_F32], axes=[1], keepdims=1, opset=11)
    yield _made("Squeeze", {"x": x[None]}, [_F32], axes=[0], opset=11)
    yield _made("Unsqueeze", {"x": x}, [_F32], axes=[0], opset=11)
    yield _made("Clip", {"x": x}, [_F32], min=-1.0, max=2.0, opset=10)
    yield _made("Pad", {"x": x}, [_F32], pads=[1, 0, 0, 2], mode="constant", value=1.5, opset=10)
    yield _made("Split", {"x": x}, [_F32, _F32], axis=1, split=[1, 2], opset=11)
    yield _made("Split", {"x": x}, [_F32, _F32], axis=1, num_outputs=2, opset=18)
    yield _made("Slice", {"x": x}, [_F32], axes=[0, 1], starts=[0, 1], ends=[2, 3], opset=9)
    yield _made("TopK", {"x": x}, [_F32, _S64], axis=1, k=2, opset=9)
    yield _made("Dropout", {"x": x}, [_F32], ratio=0.5, opset=11)
    yield _made("Dropout", {"x": x}, [_F32], seed=3, opset=13)
    yield _made("Upsample", {"x": image, "scales": np.float32([1, 1, 2, 2])}, [_F32], mode="nearest", opset=9,
                constants=("scales",))  # fmt: skip
    yield _made("Upsample", {"x": image}, [_F32], mode="linear", scales=[1.0, 1.0, 2.0, 2.0], opset=8)
    yield _made("Resize", {"x": image, "scales": np.float32([1, 1, 2, 2])}, [_F32], mode="nearest", opset=10,
                constants=("scales",))  # fmt: skip
    yield _made("Resize", {"x": image, "roi": np.float32([]), "scales": None, "sizes": np.int64([7, 7])}, [_F32],
                mode="linear", axes=[2, 3], coordinate_transformation_mode="half_pixel", opset=19,
                constants=("roi", "sizes"),
                keep_aspect_ratio_policy="stretch", extrapolation_value=1.0, exclude_outside=0, antialias=0,
                cubic_coeff_a=-0.75, nearest_mode="floor")  # fmt: skip
    for op_type in ("Softmax", "LogSoftmax"):
        yield _made(op_type, {"x": x}, [_F32], axis=1, opset=11)
    for op_type in ("GlobalAveragePool", "GlobalMaxPool"):
        yield _made(op_type, {"x": image}, [_F32])
    yield _made("Flatten", {"x": image}, [_F32], axis=1, opset=9)
    yield _made("OneHot", {"i": np.int64([1, 2]), "d": np.int64(3), "v": np.float32([0, 1])}, [_F32], axis=-1, opset=11)
    yield _made("GroupNormalization", {"x": image, "s": np.float32([1, 2]), "b": np.float32([1, 2])}, [_F32],
                num_groups=2, opset=18)  # fmt: skip
    yield _made("GroupNormalization", {"x": image, "s": np.ones(4, np.float32), "b": np.ones(4, np.float32)}, [_F32],
                num_groups=2, opset=21, stash_type=1)  # fmt: skip
    four = np.ones(4, np.float32)
    yield _made("BatchNormalization", {"x": image, "s": four, "b": four, "m": four, "v": four}, [_F32], opset=8,
                spatial=1, momentum=0.5)  # fmt: skip
    yield _made("BatchNormalization", {"x": image, "s": four, "b": four, "m": four, "v": four}, [_F32], opset=15,
                training_mode=0)  # fmt: skip
    yield _made("Gelu", {"x": x}, [_F32], approximate="none", opset=20)
    for op_type in ("And", "Or", "Xor"):
        yield _made(op_type, {"x": x > 0, "y": x > 2}, [_BOOL])
    yield _made("Not", {"x": x > 0}, [_BOOL])
    yield _made("Cast", {"x": x}, [_S32], to=_S32, opset=21)
    yield _made("CastLike", {"x": x, "y": np.int32([1])}, [_S32], opset=19)
    wave, wide = x.reshape(3, 1, 3), np.float32
    for op_type, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        w, r = np.full((1, gates * 2, 3), 0.25, wide), np.full((1, gates * 2, 2), -0.5, wide)
        yield _made(op_type, {"x": wave, "w": w, "r": r}, [_F32], hidden_size=2, opset=14)
    w, r = np.full((1, 3, 8), 5, np.uint8), np.full((1, 2, 8), 7, np.uint8)
    per = {"ws": np.float32([0.1]), "wz": np.uint8([3]), "rs": np.float32([0.1]), "rz": np.uint8([3])}
    yield _made("DynamicQuantizeLSTM", {"x": wave, "w": w, "r": r, **dict.fromkeys("bnhcp"), **per}, [_F32],
                hidden_size=2, constants=("w", "r", *per), **ours)  # fmt: skip
    for op_type in ("BiasGelu", "FastGelu"):
        yield _made(op_type, {"x": x, "b": row}, [_F32], **ours)
    yield _made("Gelu", {"x": x}, [_F32], **ours)
    yield _made("QuickGelu", {"x": x}, [_F32], alpha=1.5, **ours)
    yield _made("SkipLayerNormalization", {"x": x[None], "y": x[None], "g": row, "b": row}, [_F32], **ours)
    yield _made("SkipSimplifiedLayerNormalization", {"x": x[None], "y": x[None], "g": row}, [_F32], **ours)
    for flag in ("ceil_mode", "count_include_pad", "channels_last"):
        yield _made("QLinearAveragePool", quantized, [_U8], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 0, 0, 1],
                    **{flag: 1}, constants=("s", "z", "s2", "z2"), **ours)  # fmt: skip
    yield _made("QLinearGlobalAveragePool", quantized, [_U8], channels_last=0, constants=("s", "z", "s2", "z2"), **ours)
    yield _made("QLinearLeakyRelu", quantized, [_U8], alpha=0.1, constants=("s", "z", "s2", "z2"), **ours)
    yield _made("QLinearSigmoid", quantized, [_U8], constants=("s", "z", "s2", "z2"), **ours)
    yield _softmax(quantized)
    yield _made("QLinearReduceMean", quantized, [_U8], axes=[1], keepdims=1, constants=("s", "z", "s2", "z2"), **ours)
    yield _made("QLinearConcat", {"s2": s, "z2": z, "x": elements, "s": s, "z": z, "y": elements, "sy": s, "zy": z},
                [_U8], axis=1, constants=("s", "z", "s2", "z2", "sy", "zy"), **ours)  # fmt: skip
    pair = {"x": elements, "s": s, "z": z, "y": elements, "sy": s, "zy": z, "s2": s, "z2": z}
    for op_type in ("QLinearAdd", "QLinearMul"):
        yield _made(op_type, pair, [_U8], constants=("s", "z", "s2", "z2", "sy", "zy"), **ours)
    yield _made(
        "QLinearWhere", {"c": elements > 9, **pair}, [_U8], constants=("s", "z", "s2", "z2", "sy", "zy"), **ours
    )
    kernel = np.ones((4, 4, 2, 2), np.uint8)
    product = {"x": elements, "s": s, "z": z, "w": kernel, "sw": s, "zw": z, "s2": s, "z2": z}
    yield _made("QLinearConv", product, [_U8], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1],
                group=1, channels_last=0, constants=("w", "s", "z", "s2", "z2", "sw", "zw"), **ours)  # fmt: skip
    matrix = x.astype(np.int8).view(np.uint8)
    gemm = {"a": matrix, "s": s, "z": z, "b": matrix, "sb": s, "zb": z, "c": None, "s2": s, "z2": z}
    yield _made("QGemm", gemm, [_U8],
                transA=0, transB=1, alpha=1.0, constants=("s", "z", "b", "sb", "zb", "s2", "z2"), **ours)  # fmt: skip
    yield _made(
        "DynamicQuantizeMatMul", {"a": x, "b": matrix, "s": s, "z": z}, [_F32], constants=("b", "s", "z"), **ours
    )
    yield _made("MatMulIntegerToFloat", {"a": matrix, "b": matrix, "s": s, "t": s, "z": z, "y": z}, [_F32],
                constants=("b", "s", "t", "z", "y"), **ours)  # fmt: skip
    yield _made("MatMulNBits", {"a": np.ones((2, 32), np.float32), "b": np.full((3, 1, 16), 0x93, np.uint8),
                "s": np.float32([0.1, 0.2, 0.3])}, [_F32], K=32, N=3, bits=4, block_size=32, accuracy_level=0,
                constants=("b", "s"), **ours)  # fmt: skip
    yield _made("MatMulBnb4", {"a": np.ones((2, 32), np.float32), "b": np.full(48, 0x93, np.uint8),
                "s": np.float32([0.1, 0.2, 0.3])}, [_F32], K=32, N=3, block_size=32, quant_type=1, training_mode=0,
                transB=1, constants=("b", "s"), **ours)  # fmt: skip
    yield _made("GatherBlockQuantized", {"q": np.full((3, 16), 0x93, np.uint8), "i": np.int64([2, 0]),
                "s": np.float32([[0.1], [0.2], [0.3]])}, [_F32], gather_axis=0, quantize_axis=1, block_size=32, bits=4,
                constants=("q", "s"), **ours)  # fmt: skip
    yield _made("NhwcMaxPool", {"x": elements.transpose(0, 2, 3, 1).copy()}, [_U8], kernel_shape=[2, 2], strides=[1, 1],
                pads=[0, 0, 1, 1], dilations=[1, 1], **ours)  # fmt: skip
    per_axis = {"s": np.float32([0.1, 0.2, 0.3]), "z": np.uint8([1, 2, 3])}
    yield _made("QuantizeLinear", {"x": x, **per_axis}, [_U8], axis=1, constants=("s", "z"), **ours)
    yield _made("DequantizeLinear", {"x": matrix, **per_axis}, [_F32], axis=1, constants=("s", "z"), **ours)
    yield _made("QuantizeLinear", {"x": x, **per_axis}, [_U8], axis=1, block_size=0, saturate=1, opset=21)
    yield _made("QuantizeLinear", {"x": x, "s": s}, [_U8], output_dtype=_U8, precision=0, opset=23)
    yield _made("DequantizeLinear", {"x": matrix, **per_axis}, [_F32], axis=1, opset=21)
    yield _made("DequantizeLinear", {"x": matrix, "s": s, "z": z}, [_F32], output_dtype=_F32, opset=23)


def _transformers() -> Iterator[Base]:
    """Attention and what goes with it."""
    ours, wide = {"domain": MICROSOFT}, np.float32
    three = np.float32([[[3, -1, 3], [2, 5, -7], [3, 0, 1]]])
    x = np.linspace(-2, 3, 32, dtype=wide).reshape(1, 2, 16)
    w, b = np.linspace(1, -1, 27, dtype=wide).reshape(3, 9), np.linspace(0, 1, 9, dtype=wide)
    usual: dict[str, Any] = {"num_heads": 1, "unidirectional": 0, "mask_filter_value": -10000.0, **ours}
    yield _made("Attention", {"x": three, "w": w, "b": b}, [_F32], qkv_hidden_sizes=[3, 3, 3], scale=0.5,
                constants=("w", "b"), **usual)  # fmt: skip
    s, z = np.float32(0.1), np.uint8(3)
    quantized = {"x": x.astype(np.int8).view(np.uint8), "w": np.full((16, 48), 5, np.uint8), "b": x[0, 0].repeat(3),
                 "s": s, "sw": s, "m": None, "z": z, "zw": z}  # fmt: skip
    yield _made("QAttention", quantized, [_F32], scale=0.5, constants=("w", "b", "sw", "zw"), **usual)
    yield _made("MultiHeadAttention", dict.fromkeys("qkv", x), [_F32], scale=0.5, **usual)
    turned = {"cos": np.ones((4, 8), wide), "sin": np.full((4, 8), 0.5, wide)}
    numbers = {"lengths": np.int32([1]), "total": np.int32(2)}
    pairs = {"q": x.repeat(2, 2), "k": x, "v": x, "pk": None, "pv": None, **numbers, **turned}
    yield _made("GroupQueryAttention", pairs, [_F32] * 3, num_heads=2, kv_num_heads=1, do_rotary=1, softcap=5.0,
                rotary_interleaved=1, local_window_size=1, smooth_softmax=0, constants=("total", *turned),
                **ours)  # fmt: skip
    held = {"pk": x[None].astype(np.int8), "pv": x[None].astype(np.int8)}
    scales = {**dict.fromkeys(("cos", "sin", "p", "a", "h")), "ks": np.float32([0.1]), "vs": np.float32([0.1])}
    yield _made("GroupQueryAttention", {**dict.fromkeys("qkv", x), **held, **numbers, **scales},
                [_F32, TensorProto.INT8, TensorProto.INT8], num_heads=1, kv_num_heads=1, causal=1, qk_norm_epsilon=0.5,
                k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=8, sliding_window_cache=0,
                constants=("total",), **ours)  # fmt: skip
    decoded = {"q": x[:, :1], "k": x[:, :1], "v": x[:, :1], "m": None, "a": None, "pk": x[None], "pv": x[None]}
    yield _made("DecoderMaskedMultiHeadAttention", {**decoded, "past": np.int32([1])}, [_F32] * 3, num_heads=1,
                mask_filter_value=-10000.0, scale=0.5, past_present_share_buffer=1, output_qk=0, constants=("past",),
                **ours)  # fmt: skip
    yield _made("RotaryEmbedding", {"x": x, "p": np.int64([0]), **turned}, [_F32], interleaved=1, num_heads=1,
                scale=1.0, rotary_embedding_dim=0, constants=tuple(turned), **ours)  # fmt: skip
    ids, tables = np.int32([[1, 0]]), {"words": x[0], "places": x[0], "kinds": x[0]}
    norm = {"g": x[0, 0], "b": x[0, 1]}
    yield _made("EmbedLayerNormalization", {"i": ids, "t": ids, **tables, **norm, "m": ids}, [_F32, _S32],
                epsilon=1e-12, mask_index_type=0, constants=(*tables, *norm), **ours)  # fmt: skip
    known = {name: value.astype(np.int8).view(np.uint8) for name, value in (tables | norm).items()}
    scales, points = {f"s{name}": s for name in known}, {f"z{name}": z for name in known}
    yield _made("QEmbedLayerNormalization", {"i": ids, "t": ids, **known, "m": ids, **scales, **points}, [_F32, _S32],
                epsilon=1e-12, constants=(*known, *scales, *points), **ours)  # fmt: skip


def _fused() -> Iterator[Base]:
    """What the runtime's optimiser writes, images in blocks of channels among it."""
    ours, wide = {"domain": MICROSOFT}, np.float32
    x = np.float32([[3, -1, 3], [2, 5, -7], [3, 0, 1]])
    for op_type in ("FusedMatMul", "TransposeMatMul"):
        yield _made(op_type, {"a": x[None], "b": x[None]}, [_F32], alpha=1.0, transA=0, transB=1, **ours)
    yield _made("FusedMatMul", {"a": x[None], "b": x[None]}, [_F32], transBatchA=0, transBatchB=0, **ours)
    yield _made("FusedGemm", {"a": x, "b": x, "c": x[0]}, [_F32], alpha=1.0, beta=1.0, transA=0, transB=1,
                activation="Relu", **ours)  # fmt: skip
    yield _made("Trilu", {"x": x}, [_F32], upper=1, **ours)
    yield _made("CumProd", {"x": x, "a": np.int64(0)}, [_F32], exclusive=1, reverse=1, opset=26)
    yield _made("UnfoldTensor", {"x": x}, [_F32], dim=1, size=2, step=1, **ours)
    yield _made("NGramRepeatBlock", {"t": np.int64([[0, 1, 0]]), "s": x[:1]}, [_F32], ngram_size=2, **ours)
    yield _made("MatMulInteger16", {"a": x.astype(np.int16), "b": x.astype(np.int16)}, [_S32], **ours)
    crop = {"r": np.float32([[0, 0, 1, 1]]), "i": np.int32([0]), "size": np.int32([2, 2])}
    yield _made("CropAndResize", {"x": x[None, None], **crop}, [_F32], mode="bilinear", extrapolation_value=1.5,
                constants=("size",), **ours)  # fmt: skip
    image = np.linspace(-3, 5, 16 * 16, dtype=wide).reshape(1, 16, 4, 4)
    place = np.linspace(-1, 1, 8, dtype=wide).reshape(1, 2, 2, 2)
    yield _made("GridSample", {"x": image, "g": place}, [_F32], mode="bilinear", padding_mode="zeros", align_corners=0,
                **ours)  # fmt: skip
    weights = np.linspace(1, -1, 16 * 16 * 4, dtype=wide).reshape(16, 16, 2, 2)
    window = {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 1, 1], "dilations": [1, 1]}
    conv = {**window, "group": 1, "activation": "Relu"}
    yield _made("FusedConv", {"x": image, "w": weights}, [_F32], constants=("w",), **conv, **ours)
    domain = "com.microsoft.nchwc"
    middles: list[tuple[str, dict[str, Any]]] = [
        ("Conv", conv),
        ("Conv", {**conv, "activation": "LeakyRelu", "activation_params": [0.5]}),
        ("MaxPool", {**window, "ceil_mode": 0}),
        ("AveragePool", {**window, "ceil_mode": 0, "count_include_pad": 1}),
        ("GlobalMaxPool", {}),
        ("GlobalAveragePool", {}),
        ("Upsample", {"scales": [1, 1, 2, 2], "mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
    ]
    for op_type, attributes in middles:
        constants = {"w": weights} if op_type == "Conv" else {}
        nodes = [
            helper.make_node("ReorderInput", ["x"], ["b"], "in", domain=domain, channels_last=0),
            helper.make_node(op_type, ["b", *constants], ["c"], "node", domain=domain, **attributes),
            helper.make_node("ReorderOutput", ["c"], ["y"], "out", domain=domain, channels=16, channels_last=0),
        ]
        content, feeds = build(nodes, {"x": image}, {"y": _F32}, constants)
        yield Base(domain, op_type, content, tuple(feeds), 1)
        if op_type == "GlobalMaxPool":
            yield Base(domain, "ReorderInput", content, tuple(feeds), 0)
            yield Base(domain, "ReorderOutput", content, tuple(feeds), 2)


def _sequences() -> Iterator[Base]:
    """Nodes that give or take sequences of tensors, all of them in one model."""
    x, zero = np.float32([[3, -1, 3], [2, 5, -7]]), np.array(0, np.int64)
    nodes = [
        helper.make_node("SequenceEmpty", [], ["empty"], "empty", dtype=_F32),
        helper.make_node("SequenceInsert", ["empty", "x"], ["one"], "insert"),
        helper.make_node("SequenceAt", ["one", "zero"], ["a"], "at"),
        helper.make_node("SequenceConstruct", ["x", "a"], ["two"], "construct"),
        helper.make_node("ConcatFromSequence", ["two"], ["b"], "join", axis=0, new_axis=0),
        helper.make_node("SplitToSequence", ["x"], ["parts"], "split", axis=0, keepdims=1),
        helper.make_node("SequenceErase", ["parts", "zero"], ["fewer"], "erase"),
        helper.make_node("SequenceLength", ["fewer"], ["n"], "length"),
    ]
    content, feeds = build(nodes, {"x": x}, {"n": _S64, "b": _F32}, {"zero": zero})
    for position, node in enumerate(nodes):
        yield Base("", node.op_type, content, tuple(feeds), position)


def _softmax(quantized: Mapping[str, Any]) -> Base:
    """`opset` is an attribute of this one, too."""
    names = tuple(quantized)[1:]
    attributes = {"axis": -1, "opset": 13}
    content, feeds = single("QLinearSoftmax", quantized, [_U8], attributes, domain=MICROSOFT, constants=names)
    return Base(MICROSOFT, "QLinearSoftmax", content, tuple(feeds))


def _official() -> Iterator[Base]:
    known = mapped()
    for case in sorted(official_cases(), key=lambda case: (case.model.ByteSize(), case.name)):
        nodes = [(i, n) for i, n in enumerate(case.model.graph.node) if n.op_type != "Constant"]
        if len(nodes) != 1 or case.name.endswith("_expanded") or (nodes[0][1].domain, nodes[0][1].op_type) not in known:
            continue
        feeds = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for v in case.data_sets[0][0]]
        if not all(isinstance(v, np.ndarray | np.generic) and v.dtype.char in _PLAIN for v in feeds):
            continue
        if any(v.nbytes > 1 << 16 for v in feeds):
            continue
        model = ModelProto()
        model.CopyFrom(case.model)
        model.ir_version = min(model.ir_version, _IR_VERSION)
        for entry in model.opset_import:
            entry.version = min(entry.version, _OPSET)
        yield Base("", nodes[0][1].op_type, model.SerializeToString(), tuple(map(np.asarray, feeds)), nodes[0][0])


def _experts_and_others() -> Iterator[Base]:
    """Mixtures of experts, linear attention, and what moves elements."""
    rng, ours = np.random.default_rng(5), {"domain": MICROSOFT}

    def real(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    x, row, bytes_ = real(2, 4), np.float32([1, 2, 3, 4]), np.full((3, 8, 4), 120, np.uint8)
    chosen: dict[str, Any] = {"k": 2, "normalize_routing_weights": 1, "use_sparse_mixer": 1, **ours}
    gated = {"activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 7.0, "activation_alpha": 1.5}
    gated["activation_beta"] = 1.0
    experts = {"x": x, "scores": real(2, 3), "a": real(3, 8, 4), "none": None, "b": real(3, 4, 4)}
    yield _made("MoE", experts, [_F32], **chosen, **gated)
    wide = {"x": real(2, 4), "scores": real(2, 3), "a": bytes_, "s": real(3, 8), "none": None}
    wide |= {"b": bytes_[:, :4], "t": real(3, 4)}
    widths = {f"{name}expert_weight_bits": 8 for name in ("", "fc1_", "fc2_", "fc3_")}
    yield _made("QMoE", wide, [_F32], **chosen, **gated, **widths, block_size=0, accuracy_level=0, quant_type="int",
                weights_prepacked=0)  # fmt: skip
    yield _made("GatedAdd", {"x": x, "y": x, "g": x[:, :1]}, [_F32], **ours)
    yield _made("GatedRMSNorm", {"x": x, "s": row, "g": x}, [_F32], epsilon=1e-5, activation="silu", **ours)
    yield _made("LinearAttentionGate", {"x": x[None], "b": row, "s": row}, [_F32], **ours)
    streams = {"x": x[:2].reshape(1, -1), "g": x[:1, :2]}
    yield _made("HyperConnectionPreMix", streams, [_F32], num_branches=2, reduction_scale=0.5, **ours)
    yield _made("HyperConnectionPostMix", {"x": streams["x"], "b": x[:1], "g": streams["g"]}, [_F32], num_branches=2,
                **ours)  # fmt: skip
    yield _made("ScaledSiLU", {"x": x}, [_F32], alpha=1.5, **ours)
    past = {"q": x[None], "k": x[None], "v": x[None]}
    yield _made("LinearAttention", past, [_F32] * 2, q_num_heads=2, kv_num_heads=2, scale=0.5, update_rule="linear",
                chunk_size=64, state_window=0, **ours)  # fmt: skip
    yield _made("CausalConvWithState", {"x": x[None], "w": real(2, 1, 3)}, [_F32] * 2, activation="silu", ndim=1,
                dilation=1, state_window=0, channels_last=0, **ours)  # fmt: skip
    turned = {"x": real(1, 2, 8), "p": np.zeros((3, 1, 2), np.int64), "cos": real(4, 4), "sin": real(4, 4)}
    yield _made("MRotaryEmbedding", turned, [_F32], num_heads=1, rotary_embedding_dim=8, interleaved=0, scale=1.0,
                mrope_section=[1, 1, 2], mrope_layout=0, is_packed_batching=0, **ours)  # fmt: skip
    yield _made("ExpandDims", {"x": x, "a": np.int32(0)}, [_F32], constants=["a"], **ours)
    yield _made("GatherND", {"x": x, "i": np.int64([[0]])}, [_F32], **ours)
    yield _made("Pad", {"x": x, "p": np.int64([0, 1, 0, 1])}, [_F32], mode="constant", constants=["p"], **ours)
    ends = {"a": np.float32(0), "b": np.float32(3)}
    yield _made("Range", ends, [_F32], constants=list(ends), **ours)
    yield _made("Unique", {"x": row}, [_F32, _S64, _S64], **ours)
    kind = helper.make_tensor_type_proto(_F32, [2, 4])
    nodes = [
        helper.make_node("Optional", ["x"], ["o"], type=kind),
        helper.make_node("OptionalGetElement", ["o"], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": _F32})
    yield Base("", "Optional", content, tuple(feeds))


def _drawn(known: set[str]) -> Iterator[Base]:
    """Models of the random tests, of operators that are not among those known."""
    for draw in GENERATORS.values():
        for seed in range(8):
            content, feeds = draw(np.random.default_rng(seed))
            node = onnx.load_from_string(content).graph.node[0]
            if node.domain == MICROSOFT and node.op_type not in known:
                known.add(node.op_type)
                yield Base(MICROSOFT, node.op_type, content, tuple(feeds))


def _classical() -> Iterator[Base]:
    """Operators of ai.onnx.ml."""
    own: dict[str, Any] = {"domain": CLASSICAL, "opset": 17}
    x, whole = np.float32([[1, -2], [0, 3]]), np.int64([[1, -2], [0, 3]])
    yield _made("Scaler", {"x": x}, [_F32], offset=[1.0, 2.0], scale=[0.5, 3.0], **own)
    yield _made("Normalizer", {"x": x}, [_F32], norm="L2", **own)
    yield _made("Imputer", {"x": x}, [_F32], imputed_value_floats=[1.0, 2.0], replaced_value_float=3.0, **own)
    yield _made("Imputer", {"x": whole}, [_S64], imputed_value_int64s=[1, 2], replaced_value_int64=3, **own)
    yield _made("Binarizer", {"x": x}, [_F32], threshold=0.5, **own)
    yield _made("ArrayFeatureExtractor", {"x": x, "i": np.int64([1])}, [_F32], **own)
    yield _made("FeatureVectorizer", {"x": x, "y": whole}, [_F32], inputdimensions=[2, 1], **own)
    yield _made("LabelEncoder", {"x": whole}, [_F32], keys_int64s=[1, 3], values_floats=[0.5, 2.0], default_float=1.0,
                **own)  # fmt: skip
    yield _made("LabelEncoder", {"x": x}, [_S64], keys_floats=[1.0, 3.0], values_int64s=[5, 2], default_int64=1, **own)
    yield _made("OneHotEncoder", {"x": whole}, [_F32], cats_int64s=[1, 3, 0], zeros=1, **own)
    linear: dict[str, Any] = {"coefficients": [1.0, 2.0, -0.5, 3.0], "intercepts": [0.5, -1.0], **own}
    yield _made("LinearRegressor", {"x": x}, [_F32], targets=2, post_transform="NONE", **linear)
    yield _made("LinearClassifier", {"x": x}, [_S64, _F32], classlabels_ints=[4, 7], multi_class=0,
                post_transform="LOGISTIC", **linear)  # fmt: skip
    places: dict[str, Any] = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0]}
    nodes = places | {
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_hitrates": [1.0, 1.0, 1.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0],
        "post_transform": "NONE",
    }

    def weights(what: str) -> dict[str, Any]:
        lists = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 0], "weights": [0.25, 0.75]}
        return {f"{what}_{name}": values for name, values in lists.items()}

    yield _made("TreeEnsembleRegressor", {"x": x}, [_F32], n_targets=1, aggregate_function="AVERAGE", base_values=[1.0],
                **nodes, **weights("target"), **own)  # fmt: skip
    yield _made("TreeEnsembleClassifier", {"x": x}, [_S64, _F32], classlabels_int64s=[4, 7], base_values=[0.5],
                **nodes, **weights("class"), **own)  # fmt: skip


@functools.cache
def bases() -> tuple[Base, ...]:
    """Every base, at most two of the official ones with the same operator and the same attributes given."""
    chosen = [*_by_hand(), *_transformers(), *_fused(), *_sequences(), *_experts_and_others(), *_classical()]
    chosen += _drawn({base.op_type for base in chosen})
    forms: dict[Any, int] = {}
    for base in _official():
        model = onnx.load_from_string(base.content)
        given = tuple(sorted(attribute.name for attribute in model.graph.node[base.node].attribute))
        key = base.op_type, given
        if forms.setdefault(key, 0) < 1 and sum(n for (op, _), n in forms.items() if op == base.op_type) < 4:
            try:
                bittrue.load(base.content).prepare("onnxruntime")
            except bittrue.BittrueError:
                continue
            forms[key] += 1
            chosen.append(base)
    return tuple(chosen)


def reads(base: Base) -> dict[str, type | tuple[type, ...]]:
    """Attributes that the mapping asks for, with their Python types; those of graphs are left out."""
    found: dict[str, type | tuple[type, ...]] = {}
    get: Callable[..., Any] = Source.get

    def spy(source: Source, name: str, default: Any, kind: type | tuple[type, ...]) -> Any:
        found[name] = kind
        return get(source, name, default, kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "get", spy)
        bittrue.load(base.content)
    return found


def names_in_source() -> set[str]:
    """Every name of an attribute in the text of the mappings."""
    found = set()
    for path in Path(onnx_operators.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
                given = call.args[0]
                asks = call.func.attr in ("get", "integer", "flag", "real", "text", "integers", "has")
                of_source = isinstance(call.func.value, ast.Name) and call.func.value.id == "source"
                if asks and of_source and isinstance(given, ast.Constant):
                    found.add(str(given.value))
    return found


def odd_values(base: Base, name: str, kind: type | tuple[type, ...]) -> Iterator[AttributeProto | None]:
    """What attribute `name` may be given as; None: left out."""
    node = onnx.load_from_string(base.content).graph.node[base.node]
    usual = {attribute.name: attribute for attribute in node.attribute}.get(name)
    yield None
    values: list[Any] = []
    if kind is int:
        values += INTEGERS
    elif kind is float:
        values += REALS
    elif kind is str:
        values += TEXTS
    else:
        values += LISTS
        for entry in tuple(usual.ints) if usual is not None else ():
            plain = list(usual.ints)  # type: ignore[union-attr]
            values += [[*plain, entry], plain[:-1], plain[::-1], [-v for v in plain]]
            for position in range(len(plain)):
                values += [[*plain[:position], v, *plain[position + 1 :]] for v in (0, -1, 3, 1 << 31, (1 << 63) - 1)]
            break
    # Of another type than it should have.
    values += [1, 0.5, b"x", (1,), (0.5,), (b"x",)]
    seen = set()
    for value in values:
        made = _attribute(name, value)
        if (key := made.SerializeToString()) not in seen:
            seen.add(key)
            yield made
    made = AttributeProto(name=name, type=AttributeProto.TENSOR)
    made.t.CopyFrom(numpy_helper.from_array(np.int64([1])))
    yield made


def _attribute(name: str, value: Any) -> AttributeProto:
    if isinstance(value, list | tuple):
        entries = tuple(value)
        made = AttributeProto(name=name, type=AttributeProto.INTS)
        if entries and isinstance(entries[0], float):
            made.type = AttributeProto.FLOATS
            made.floats.extend(entries)
        elif entries and isinstance(entries[0], bytes):
            made.type = AttributeProto.STRINGS
            made.strings.extend(entries)
        else:
            made.ints.extend(entries)
        return made
    made = AttributeProto(name=name)
    if isinstance(value, bytes):
        made.type, made.s = AttributeProto.STRING, value
    elif isinstance(value, float):
        made.type, made.f = AttributeProto.FLOAT, value
    else:
        made.type, made.i = AttributeProto.INT, value
    return made


def schema_attributes(base: Base) -> dict[str, type]:
    """What the operator's schema names, where the package has one."""
    model = onnx.load_from_string(base.content)
    version = next((entry.version for entry in model.opset_import if entry.domain == base.domain), 1)
    try:
        schema = onnx.defs.get_schema(base.op_type, version, base.domain)
    except onnx.defs.SchemaError:
        return {}
    kinds = {"INT": int, "FLOAT": float, "STRING": str, "INTS": tuple, "FLOATS": tuple, "STRINGS": tuple}
    return {name: kinds[entry.type.name] for name, entry in schema.attributes.items() if entry.type.name in kinds}


@dataclass(frozen=True)
class OddCase:
    """One base with one attribute changed."""

    base: Base
    name: str
    value: str
    content: bytes

    def __str__(self) -> str:
        return f"{self.base.name}.{self.name}={self.value}"

    @property
    def number(self) -> int:
        """For samples that are the same everywhere."""
        return zlib.crc32(self.content)


def odd_cases(base: Base) -> Iterator[OddCase]:
    """All of a base."""
    for name, kind in {**schema_attributes(base), **reads(base)}.items():
        for value in odd_values(base, name, kind):
            model = onnx.load_from_string(base.content)
            node: NodeProto = model.graph.node[base.node]
            others = [attribute for attribute in node.attribute if attribute.name != name]
            del node.attribute[:]
            node.attribute.extend(others)
            if value is not None:
                node.attribute.append(value)
            said = "missing" if value is None else helper.printable_attribute(value)[:60]
            yield OddCase(base, name, said, model.SerializeToString())
