"""QLinearConv and ConvInteger: random one-node models against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.onnx_models import KIND, MICROSOFT, Checks, integers, natively, odd_scale, scale, single, zero_point

U8, S8 = np.uint8, np.int8


def geometry(rng: np.random.Generator) -> tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], int]:
    """Attributes, shape of the input with channels first, shape of the weights, and products of one sum."""
    axes = int(rng.choice([1, 2, 2, 2, 3]))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    depth, filters = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    if rng.random() < 0.25:
        groups, depth, filters = int(rng.integers(1, 12)), 1, int(rng.integers(1, 3))
    taps = [int(v) for v in rng.integers(1, 4, axes)]
    sizes = [int(v) for v in rng.integers(1, 9 - 2 * axes + 3, axes)]
    attributes: dict[str, Any] = {}
    if rng.random() < 0.5:
        attributes["strides"] = [int(v) for v in rng.integers(1, 4, axes)]
    if rng.random() < 0.3:
        attributes["dilations"] = [int(v) for v in rng.integers(1, 3, axes)]
    if rng.random() < 0.4:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    elif rng.random() < 0.6:
        attributes["pads"] = [int(v) for v in rng.integers(0, 3, 2 * axes)]
    if groups > 1 or rng.random() < 0.5:
        attributes["group"] = groups
    if rng.random() < 0.5:
        attributes["kernel_shape"] = taps if rng.random() < 0.95 else [*taps[:-1], taps[-1] + 1]
    batch = int(rng.integers(0, 4))
    return (
        attributes,
        (batch, groups * depth, *sizes),
        (groups * filters, depth, *taps),
        depth * int(np.prod(taps)),
    )


def names_of(rng: np.random.Generator, inputs: dict[str, Any]) -> list[str]:
    """Operands that become constants: usually all but the activations, sometimes none."""
    drawn = rng.random()
    if drawn < 0.1:
        return []
    return [name for name in inputs if name != "x" and (drawn < 0.8 or name != "w")]


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        first, second, out = [(U8, U8, U8), (U8, S8, U8), (S8, S8, S8)][rng.integers(3)]
        attributes, shape, weights, products = geometry(rng)
        domain = MICROSOFT if rng.random() < 0.3 else ""
        x = integers(rng, shape, first)
        if domain and rng.random() < 0.7:
            attributes["channels_last"] = 1
            x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        scales = weights[:1] if rng.random() < 0.5 else ((), (1,))[rng.integers(2)]
        points = weights[:1] if rng.random() < 0.3 else ((), (1,))[rng.integers(2)]
        inputs: dict[str, np.ndarray | None] = {
            "x": x,
            "x_scale": odd_scale(rng, scale(rng)),
            "x_zero": zero_point(rng, first),
            "w": integers(rng, weights, second),
            "w_scale": odd_scale(rng, scale(rng, scales)),
            "w_zero": zero_point(rng, second, points),
            "y_scale": odd_scale(rng, scale(rng) * np.float32(16 * products)),
            "y_zero": zero_point(rng, out),
        }
        if rng.random() < 0.6:
            inputs["bias"] = rng.integers(-(2**16), 2**16, weights[0]).astype(np.int32)
        content, feeds = single(
            "QLinearConv",
            inputs,
            [KIND[np.dtype(out)]],
            attributes,
            domain=domain,
            constants=names_of(rng, inputs),
        )
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_integer_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        first, second = rng.choice([U8, S8]), rng.choice([U8, S8])
        attributes, shape, weights, _ = geometry(rng)
        inputs: dict[str, np.ndarray | None] = {"x": integers(rng, shape, first), "w": integers(rng, weights, second)}
        if rng.random() < 0.7:
            inputs["x_zero"] = zero_point(rng, first)
        if rng.random() < 0.5:
            inputs.setdefault("x_zero", None)
            inputs["w_zero"] = zero_point(rng, second, ((), (1,), weights[:1])[rng.integers(3)])
        content, feeds = single(
            "ConvInteger", inputs, [KIND[np.dtype(np.int32)]], attributes, constants=names_of(rng, inputs)
        )
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}


@pytest.mark.parametrize("numerics", ["onnxruntime", "onnxruntime-avx2", "onnx"])
@pytest.mark.parametrize("taps", [(3,), (2, 3), (1, 1), (2, 1, 3)])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_computed_filters_are_native(taps: tuple[int, ...], groups: int, numerics: str) -> None:
    """Filters, bias and zero points that only running tells, padding, strides and dilations: sums, and bytes."""
    rng = np.random.default_rng(10 * groups + len(taps))
    attributes: dict[str, Any] = {
        "group": groups,
        "strides": [int(v) for v in rng.integers(1, 3, len(taps))],
        "dilations": [int(v) for v in rng.integers(1, 3, len(taps))],
        "pads": [int(v) for v in rng.integers(0, 3, 2 * len(taps))],
    }
    for first, second in ((U8, U8), (U8, S8), (S8, S8)):
        x = integers(rng, (2, 6, *(int(v) for v in rng.integers(6, 12, len(taps)))), first)
        w = integers(rng, (12, 6 // groups, *taps), second)
        zeros = {"x_zero": zero_point(rng, first), "w_zero": zero_point(rng, second)}
        inputs: dict[str, Any] = {"x": x, "w": w, **zeros}
        for known in ([], ["x_zero"], ["w"]):
            content, feeds = single("ConvInteger", inputs, [KIND[np.dtype(np.int32)]], attributes, constants=known)
            natively(content, feeds, numerics)
        if numerics == "onnx":
            continue
        inputs = {
            "x": x,
            "x_scale": scale(rng),
            "x_zero": zeros["x_zero"],
            "w": w,
            "w_scale": scale(rng, (12,)),
            "w_zero": zero_point(rng, second, (12,)),
            "y_scale": scale(rng) * np.float32(100),
            "y_zero": zero_point(rng, first),
            "bias": rng.integers(-(2**12), 2**12, 12).astype(np.int32),
        }
        for late in (("x", "w"), ("x", "w", "bias"), ("x",)):
            constants = [name for name in inputs if name not in late]
            natively(*single("QLinearConv", inputs, [KIND[np.dtype(first)]], attributes, constants=constants))
