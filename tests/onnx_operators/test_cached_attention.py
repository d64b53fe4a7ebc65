"""GroupQueryAttention with caches of integers, caches of a window, keys of another layer: random one-node models.

Stems: attention.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.attention_models import CACHES, normal
from support.onnx_models import MICROSOFT, Checks, check, single


@pytest.mark.parametrize("numbers", CACHES)
def test_random_models(request: pytest.FixtureRequest, numbers: str) -> None:
    checks = Checks(request, usual=12)
    for rng in checks:
        checks.add(*CACHES[numbers](rng))
    assert "equal" in checks.outcomes


_QUANTIZED = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
_SLIDING = {"sliding_window_cache": 1, "local_window_size": 3}


@pytest.mark.parametrize(
    ("attributes", "change"),
    [
        ({**_QUANTIZED, "v_quant_type": "PER_CHANNEL"}, {}),
        ({**_QUANTIZED, "kv_cache_bit_width": 2}, {}),
        ({**_QUANTIZED, "kv_cache_bit_width": 4}, {}),
        ({**_QUANTIZED, "k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL"}, {}),
        (_QUANTIZED, {"k_scale": None, "v_scale": None}),
        ({"kv_cache_bit_width": 8}, {}),
        ({"causal": 0, "local_window_size": 3}, {}),
        ({"causal": 2}, {}),
        ({"sliding_window_cache": 1}, {}),
        ({**_SLIDING, "local_window_size": 5}, {}),
        (_SLIDING, {"past_key": None, "past_value": None}),
        ({"qk_output": 3}, {}),
    ],
)
def test_what_the_runtime_refuses(attributes: dict[str, Any], change: dict[str, np.ndarray | None]) -> None:
    assert check(*_attends(attributes, change)) == "refused"


@pytest.mark.parametrize(
    ("attributes", "outputs", "said"),
    [
        (_SLIDING, 3, "rows of its caches behind the last key are 0"),
        ({"qk_output": 1}, 4, "scores behind the last key are 0"),
        ({}, 3, ""),
    ],
)
def test_plans_say_what_the_runtime_leaves_undefined(attributes: dict[str, Any], outputs: int, said: str) -> None:
    """As onnxruntime-genai exports windows: rows of a cache differ from run to run there."""
    notes = bittrue.load(_attends(attributes, {}, outputs)[0]).prepare("onnxruntime").plan.notes
    assert [said in note for note in notes if "GroupQueryAttention" in note] == [True] * bool(said)


def _attends(attributes: dict[str, Any], change: dict[str, np.ndarray | None], outputs: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    quantized = "k_quant_type" in attributes
    past = normal(rng, 1, 1, 4, 16)
    inputs: dict[str, np.ndarray | None] = {
        **{name: normal(rng, 1, 1, 16) for name in ("q", "k", "v")},
        "past_key": np.rint(past).astype(np.int8) if quantized else past,
        "past_value": np.rint(past).astype(np.int8) if quantized else past,
        "lengths": np.int32([4]),
        "total": np.asarray(5, np.int32),
        **dict.fromkeys(("cos", "sin", "positions", "added", "sink")),
        "k_scale": np.float32([0.1]),
        "v_scale": np.float32([0.1]),
        **change,
    }
    kind = TensorProto.INT8 if quantized else TensorProto.FLOAT
    return single(
        "GroupQueryAttention",
        inputs,
        [TensorProto.FLOAT, kind, kind, TensorProto.FLOAT][:outputs],
        {"num_heads": 1, "kv_num_heads": 1, **attributes},
        domain=MICROSOFT,
        constants=["total"],
    )
