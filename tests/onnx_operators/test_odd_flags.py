"""Integer attributes that mean yes or no, with other integers: what the runtime makes of them, or a typed refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bittrue
from support.onnx_models import MICROSOFT, Refused, check, run_runtime, single

_F32, _U8, _S32, _S64 = 1, 2, 6, 7
_X = np.float32([[3, -1, 3], [2, 5, -7], [3, 0, 1]])
_IMAGE = np.arange(100, dtype=np.float32).reshape(1, 4, 5, 5)
_LEVELS = _IMAGE.astype(np.uint8)
_SCALE, _POINT = np.float32(0.1), np.uint8(3)
_POOL = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 0, 0, 1]}
_AXES = {"x": _X, "axes": np.int64([1])}
_POOLED = {"x": _LEVELS, "s": _SCALE, "z": _POINT, "s2": _SCALE, "z2": _POINT}
_LAYER = {"x": _LEVELS, "s": _SCALE, "z": _POINT, "w": _LEVELS[..., :2, :2], "sw": _SCALE, "zw": _POINT}
_LAYER |= {"s2": _SCALE, "z2": _POINT}
_ATTENDED = {"x": _X[None], "w": _X.repeat(3, 1), "b": _X.reshape(-1)}
_TURNED = {"x": _X[None, :, :2], "p": np.int64([0]), "cos": _X[:, :1], "sin": _X[:, 1:2]}

# operator, operands, types of results, the flag, other attributes, domain
CASES: list[tuple[str, dict[str, Any], list[int], str, dict[str, Any], str]] = [
    *(("Reduce" + kind, _AXES, [_F32], "keepdims", {}, "") for kind in ("L1", "L2", "Max", "Mean", "Prod", "Sum")),
    *(("Reduce" + kind, {"x": _X}, [_F32], "noop_with_empty_axes", {}, "") for kind in ("L1", "Mean", "Min", "Sum")),
    *(("Arg" + kind, {"x": _X}, [_S64], flag, {}, "") for kind in ("Max", "Min") for flag in ("keepdims",)),
    *(("Arg" + kind, {"x": _X}, [_S64], "select_last_index", {}, "") for kind in ("Max", "Min")),
    ("TopK", {"x": _X, "k": np.int64([2])}, [_F32, _S64], "largest", {}, ""),
    ("Trilu", {"x": _X}, [_F32], "upper", {}, ""),
    ("Gemm", {"a": _X, "b": _X + 1}, [_F32], "transA", {}, ""),
    ("Gemm", {"a": _X, "b": _X + 1}, [_F32], "transB", {}, ""),
    ("CumSum", {"x": _X, "axis": np.int64(0)}, [_F32], "exclusive", {}, ""),
    ("CumSum", {"x": _X, "axis": np.int64(0)}, [_F32], "reverse", {}, ""),
    ("Mod", {"a": np.int32([-5, 5]), "b": np.int32([3, -3])}, [_S32], "fmod", {}, ""),
    ("IsInf", {"x": np.float32([1, np.inf, -np.inf])}, [9], "detect_negative", {}, ""),
    ("IsInf", {"x": np.float32([1, np.inf, -np.inf])}, [9], "detect_positive", {}, ""),
    ("Reshape", {"x": _X[:0], "shape": np.int64([0, 3])}, [_F32], "allowzero", {}, ""),
    *(("MaxPool", {"x": _IMAGE}, [_F32], flag, _POOL, "") for flag in ("ceil_mode", "storage_order")),
    *(("AveragePool", {"x": _IMAGE}, [_F32], flag, _POOL, "") for flag in ("ceil_mode", "count_include_pad")),
    ("LpPool", {"x": _IMAGE}, [_F32], "ceil_mode", _POOL, ""),
    *(
        ("QLinearAveragePool", _POOLED, [_U8], flag, _POOL, MICROSOFT)
        for flag in ("ceil_mode", "count_include_pad", "channels_last")
    ),
    ("QLinearConv", _LAYER, [_U8], "channels_last", {}, MICROSOFT),
    ("QLinearGlobalAveragePool", _POOLED, [_U8], "channels_last", {}, MICROSOFT),
    ("Unique", {"x": np.float32([3, 1, 3, 2])}, [_F32], "sorted", {}, ""),
    ("AffineGrid", {"t": _X[None, :2], "size": np.int64([1, 1, 2, 3])}, [_F32], "align_corners", {}, ""),
    ("MaxpoolWithMask", {"x": _IMAGE, "m": _LEVELS.astype(np.int32)}, [_F32], "storage_order", _POOL, MICROSOFT),
    *(
        ("Attention", _ATTENDED, [_F32], flag, {"num_heads": 1}, MICROSOFT)
        for flag in ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
    ),
    ("RotaryEmbedding", _TURNED, [_F32], "is_packed_batching", {}, MICROSOFT),
]
VALUES = (0, 1, 2, -1, 255, 1 << 31, 1 << 32, (1 << 32) + 1, -(1 << 63))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}")
def test_flags(case: tuple[str, dict[str, Any], list[int], str, dict[str, Any], str]) -> None:
    operator, operands, types, flag, others, domain = case
    ran = 0
    for value in VALUES:
        content, feeds = single(operator, operands, types, {**others, flag: value}, domain=domain)
        theirs = run_runtime(content, feeds)
        if isinstance(theirs, Refused):
            with pytest.raises(bittrue.BittrueError):
                bittrue.load(content).prepare("onnxruntime").run(*feeds)
            continue
        ours = bittrue.load(content).prepare("onnxruntime").run(*feeds)
        for name, array in theirs.items():
            assert (ours[name].dtype, ours[name].shape) == (array.dtype, array.shape), value
            assert ours[name].tobytes() == array.tobytes(), value
        ran += 1
    assert ran >= 2


@pytest.mark.parametrize("value", [2, -1, 1 << 40])
def test_no_defined_result(value: int) -> None:
    """The runtime gives whatever lies in memory."""
    content, _ = single("Cast", {"x": _X}, [_S32], {"to": _S32, "saturate": value})
    with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-ATTRIBUTE"):
        bittrue.load(content)


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_reductions_of_other_names_are_none(operator: str) -> None:
    operands = {"x": _X, "i": np.int64([[0], [2]]), "u": _X[:2, :1] if operator == "ScatterElements" else _X[:2] + 1}
    for name in ("none", "sum", "ADD"):
        assert check(*single(operator, operands, [_F32], {"reduction": name}, opset=18)) == "equal"


def test_parameters_of_other_activations_are_passed_over() -> None:
    attributes = {"activation": "LeakyRelu", **{f"activation_{name}": 0.5 for name in ("alpha", "beta", "gamma")}}
    assert check(*single("FusedGemm", {"a": _X, "b": _X}, [_F32], attributes, domain=MICROSOFT)) == "equal"


@pytest.mark.parametrize("operator", ["Softsign", "Mish"])
def test_signs_of_nan(operator: str) -> None:
    x = np.float32([np.nan, -np.nan, 1]).repeat(7)
    content, feeds = single(operator, {"x": x}, [_F32], opset=22)
    assert check(content, feeds) == "equal"


def test_lists_of_sizes() -> None:
    """Empty ones, and those that contradict each other, are refused as in the runtime."""
    weights = np.ones((4, 4, 2, 2), np.float32)
    for operator, operands, others in (
        ("MaxPool", {"x": _IMAGE}, {"kernel_shape": [2, 2]}),
        ("Conv", {"x": _IMAGE, "w": weights}, {}),
        ("ConvTranspose", {"x": _IMAGE, "w": weights}, {}),
    ):
        for odd in ({"pads": [0]}, {"auto_pad": "SAME_UPPER", "pads": [0]}, {"strides": [1]}, {"dilations": [1, 1, 1]}):
            content, feeds = single(operator, operands, [_F32], {**others, **odd})
            assert isinstance(run_runtime(content, feeds), Refused)
            with pytest.raises(bittrue.BittrueError):
                bittrue.load(content).prepare("onnxruntime").run(*feeds)
