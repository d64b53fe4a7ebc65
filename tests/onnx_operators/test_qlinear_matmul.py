"""matmul of quantized values, in the four forms of ONNX: random one-node models against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.onnx_models import KIND, MICROSOFT, Checks, integers, natively, odd_scale, scale, single, zero_point

U8, S8 = np.uint8, np.int8
Inputs = dict[str, "np.ndarray | None"]
_PAIRS = [(U8, U8), (U8, S8), (S8, S8)]


def shapes(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of two factors: matrices, batches that broadcast, vectors, now and then empty or with several batch axes."""
    m, k, n = (int(v) for v in rng.integers(1, 20, 3))
    empty = rng.random() < 0.05
    if empty:
        m, n = (0, n) if rng.random() < 0.5 else (m, 0)
    batch = tuple(int(v) for v in rng.integers(1, 4, rng.integers(3)))
    first, second = (*batch, m, k), (*batch, k, n)
    drawn = rng.random()
    if drawn < 0.4:
        second = (k, n)
    elif drawn < 0.5:
        first = (m, k)
    elif drawn < 0.6:
        second = (1,) * len(batch) + (k, n)
    elif drawn < 0.65:
        first = (k,)
    # Batches without matrices meet vectors in few versions of the runtime.
    elif drawn < 0.7 and not empty:
        second = (k,)
    return first, second


def columns(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of parameters of a right factor; one in twenty does not fit."""
    drawn = rng.random()
    if drawn < 0.5 or len(shape) < 2:
        return ((), (1,))[rng.integers(2)]
    if drawn < 0.95:
        return shape[1:] if len(shape) == 2 and drawn < 0.8 else (*shape[:-2], 1, shape[-1])
    return ((1, 1), shape[-1:], shape[-2:-1], (1, *shape[-1:]))[rng.integers(4)]


def single_shape(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of parameters of a left factor: one value; one in fifty is per row."""
    return shape[:-1] if rng.random() < 0.02 else ((), (1,))[rng.integers(2)]


def constants(rng: np.random.Generator, inputs: Inputs) -> list[str]:
    drawn = rng.random()
    if drawn < 0.1:
        return []
    return [name for name in inputs if name != "a" and (name != "b" or drawn < 0.7)]


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        first, second = _PAIRS[rng.integers(3)]
        left, right = shapes(rng)
        inputs: Inputs = {
            "a": integers(rng, left, first),
            "a_scale": odd_scale(rng, scale(rng, single_shape(rng, left))),
            "a_zero": zero_point(rng, first, single_shape(rng, left)),
            "b": integers(rng, right, second),
            "b_scale": odd_scale(rng, scale(rng, columns(rng, right))),
            "b_zero": zero_point(rng, second, columns(rng, right)),
            "y_scale": odd_scale(rng, scale(rng, ((), (1,))[rng.integers(2)]) * np.float32(16 * left[-1])),
            "y_zero": zero_point(rng, first),
        }
        if rng.random() < 0.2:
            with np.errstate(over="ignore"):
                inputs |= {n: a.astype(np.float16) for n, a in inputs.items() if n.endswith("scale") and a is not None}
        content, feeds = single("QLinearMatMul", inputs, [KIND[np.dtype(first)]], constants=constants(rng, inputs))
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_integer_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, 75)
    for rng in checks:
        first, second = rng.choice([U8, S8]), rng.choice([U8, S8])
        left, right = shapes(rng)
        inputs: Inputs = {"a": integers(rng, left, first), "b": integers(rng, right, second)}
        if rng.random() < 0.7:
            inputs["a_zero"] = zero_point(rng, first, single_shape(rng, left))
        if rng.random() < 0.6:
            inputs.setdefault("a_zero", None)
            inputs["b_zero"] = zero_point(rng, second, columns(rng, right))
        content, feeds = single("MatMulInteger", inputs, [KIND[np.dtype(np.int32)]], constants=constants(rng, inputs))
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}


def real(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Scales of any size, now and then 0, negative, infinite or NaN."""
    values = scale(rng, shape)
    odd = rng.choice(np.float32([0, -0.5, np.inf, np.nan, 3e38, 1e-40]), shape)
    return np.asarray(np.where(rng.random(shape) < 0.02, odd, values), np.float32)


def scale_shape(rng: np.random.Generator, shape: tuple[int, ...], result: tuple[int, ...]) -> tuple[int, ...]:
    """Of scales that are multiplied with the result: any shape that broadcasts to it. Others make the runtime write
    beyond its output.
    """
    if rng.random() < 0.5:
        kept = tuple(size if rng.random() < 0.5 else 1 for size in result)
        shape = kept[int(rng.integers(len(kept) + 1)) :]
    fits = len(shape) <= len(result) and all(p in (1, q) for p, q in zip(shape[::-1], result[::-1], strict=False))
    return shape if fits else ()


def test_scales_that_make_the_runtime_write_beyond_its_output() -> None:
    inputs: Inputs = {"a": np.zeros((3, 4), U8), "b": np.zeros((4, 1), U8), "a_scale": np.float32(1)}
    for shape in ((4,), (1, 3, 1), (2, 3, 1)):
        inputs["b_scale"] = np.ones(shape, np.float32)
        content, _ = single("MatMulIntegerToFloat", inputs, [KIND[np.dtype(np.float32)]], domain=MICROSOFT)
        with pytest.raises(bittrue.InvalidModelError, match="BT-SHAPE-BROADCAST"):
            bittrue.load(content).prepare("onnxruntime")


def test_random_real_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        first, second = _PAIRS[rng.integers(3)]
        left, right = shapes(rng)
        result = np.matmul(np.zeros(left), np.zeros(right)).shape
        inputs: Inputs = {
            "a": integers(rng, left, first),
            "b": integers(rng, right, second),
            "a_scale": real(rng, scale_shape(rng, ((), (1,))[rng.integers(2)], result)),
            "b_scale": real(rng, scale_shape(rng, columns(rng, right), result)),
        }
        if rng.random() < 0.7:
            inputs["a_zero"] = zero_point(rng, first, single_shape(rng, left))
        if rng.random() < 0.6:
            inputs.setdefault("a_zero", None)
            inputs["b_zero"] = zero_point(rng, second, columns(rng, right))
        if rng.random() < 0.5:
            inputs.setdefault("a_zero", None)
            inputs.setdefault("b_zero", None)
            count = (right[-1] if len(right) > 1 else 1) + (rng.random() < 0.05)
            inputs["bias"] = rng.standard_normal(count).astype(np.float32) * np.float32(100)
        content, feeds = single(
            "MatMulIntegerToFloat",
            inputs,
            [KIND[np.dtype(np.float32)]],
            domain=MICROSOFT,
            constants=constants(rng, inputs),
        )
        # Where there is nothing to compute, the runtime looks neither at the bias nor at zero points.
        idle = ("BT-BIAS-LENGTH", "BT-QUANT-AXIS") if 0 in result else ()
        checks.add(content, feeds, may_refuse=idle)
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_models_with_dynamic_scales(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=60)
    for rng in checks:
        second = rng.choice([U8, S8])
        left, right = shapes(rng)
        result = np.matmul(np.zeros(left), np.zeros(right)).shape
        a = rng.standard_normal(left).astype(np.float32) * scale(rng) + np.float32(rng.choice([0, 0, 1, -3]))
        if rng.random() < 0.2:
            a = np.where(rng.random(left) < 0.3, rng.choice(np.float32([0, 1e-45, np.inf, np.nan, 3e38, -3e38])), a)
        factors = real(rng, scale_shape(rng, columns(rng, right), result))
        if not np.isfinite(a).all():  # which of two NaNs stays is a limit of the numerics
            factors = np.where(np.isnan(factors), np.float32(3), factors)
        inputs: Inputs = {"a": a.astype(np.float32), "b": integers(rng, right, second), "b_scale": factors}
        if rng.random() < 0.6:
            inputs["b_zero"] = zero_point(rng, second, columns(rng, right))
        if rng.random() < 0.5:
            inputs.setdefault("b_zero", None)
            count = (right[-1] if len(right) > 1 else 1) + (rng.random() < 0.05)
            inputs["bias"] = rng.standard_normal(count).astype(np.float32) * np.float32(100)
        content, feeds = single(
            "DynamicQuantizeMatMul",
            inputs,
            [KIND[np.dtype(np.float32)]],
            domain=MICROSOFT,
            constants=constants(rng, inputs),
        )
        idle = ("BT-BIAS-LENGTH", "BT-QUANT-AXIS") if 0 in result else ()
        checks.add(content, feeds, may_refuse=idle)
    assert set(checks.outcomes) == {"equal", "refused"}


@pytest.mark.parametrize("numerics", ["onnxruntime", "onnxruntime-avx2", "onnx"])
def test_products_with_points_of_rows_and_columns_are_native(request: pytest.FixtureRequest, numerics: str) -> None:
    """Whatever is known while running only, and whatever rows, columns and matrices have of their own."""
    rng = np.random.default_rng(request.config.option.seed)
    for _ in range(40):
        first, second = (rng.choice([U8, S8]), rng.choice([U8, S8])) if numerics == "onnx" else _PAIRS[rng.integers(3)]
        m, k, n = int(rng.integers(1, 60)), int(rng.integers(1, 50)), int(rng.integers(1, 70))
        batch = (int(rng.integers(1, 4)),) * int(rng.integers(3))
        left, right = (*batch, m, k), [(k, n), (*batch, k, n)][rng.integers(2)]
        several = (n,) if len(right) == 2 and rng.random() < 0.7 else ()
        inputs: Inputs = {
            "a": integers(rng, left, first),
            "b": integers(rng, right, second),
            "a_zero": zero_point(rng, first, (m,) if numerics == "onnx" and not batch and rng.random() < 0.5 else ()),
            "b_zero": zero_point(rng, second, several),
        }
        late = [name for name in inputs if rng.random() < 0.5]
        operator, domain = "MatMulInteger", ""
        kind: type[np.generic] = np.int32
        if numerics != "onnx" and rng.random() < 0.5:
            operator, domain, kind = "MatMulIntegerToFloat", MICROSOFT, np.float32
            scales = {
                "a_scale": scale(rng),
                "b_scale": scale(rng, ((), (n,))[int(len(right) == 2 and rng.random() < 0.5)]),
            }
            inputs = {
                "a": inputs["a"],
                "b": inputs["b"],
                **scales,
                "a_zero": inputs["a_zero"],
                "b_zero": inputs["b_zero"],
            }
            if rng.random() < 0.5:
                inputs["bias"] = rng.standard_normal(n).astype(np.float32)
        elif numerics != "onnx" and rng.random() < 0.5:
            operator, kind, late = "QLinearMatMul", first, [name for name in ("a", "b") if rng.random() < 0.7]
            inputs = {
                "a": inputs["a"],
                "a_scale": scale(rng),
                "a_zero": inputs["a_zero"],
                "b": inputs["b"],
                "b_scale": scale(rng, several),
                "b_zero": inputs["b_zero"],
                "y_scale": scale(rng) * np.float32(16 * k),
                "y_zero": zero_point(rng, first),
            }
        known = [name for name in inputs if name not in (late or ["a"])]
        natively(*single(operator, inputs, [KIND[np.dtype(kind)]], domain=domain, constants=known), numerics)
