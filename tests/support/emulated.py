"""Records ONNX Runtime on a processor without VNNI, in the form of shared/golden: manifest.json and one npz.

    cd tests && qemu-x86_64 -cpu Haswell-v1 python -m support.emulated FOLDER [CASES]

Random one-node models of u8 activations and s8 weights, whose pairs of products often leave 16 bits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from .onnx_models import KIND, MICROSOFT, Refused, integers, run_runtime, scale, single, zero_point

U8, S8, F32, S32 = np.uint8, np.int8, np.float32, np.int32
FOLDER = Path(__file__).resolve().parents[1] / "data" / "recorded" / "onnxruntime-avx2"
Inputs = dict[str, "np.ndarray | None"]
Draw = tuple[str, str, Inputs, dict[str, Any], Any]


def _quantized(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Over the whole type, or near its ends, where pairs saturate."""
    if rng.random() < 0.4:
        return integers(rng, shape, dtype)
    info = np.iinfo(dtype)
    near = rng.integers(0, 40, shape)
    return np.where(rng.random(shape) < 0.7, info.max - near, info.min + near).astype(dtype)


def _maybe(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if rng.random() < 0.4 else ()


def _convolution(rng: np.random.Generator, real: bool) -> Draw:
    axes = int(rng.choice([1, 2, 2, 3]))
    groups, depth, each = int(rng.choice([1, 1, 2, 3])), int(rng.integers(1, 8)), int(rng.integers(1, 7))
    if rng.random() < 0.2:
        groups, depth, each = int(rng.integers(1, 9)), 1, int(rng.integers(1, 3))
    taps = tuple(int(v) for v in rng.integers(1, 4, axes))
    attributes: dict[str, Any] = {"group": groups}
    if rng.random() < 0.5:
        attributes["pads"] = [int(v) for v in rng.integers(0, 2, 2 * axes)]
    if rng.random() < 0.4:
        attributes["strides"] = [int(v) for v in rng.integers(1, 3, axes)]
    sizes = tuple(int(v) for v in rng.integers(3, 7, axes))
    x = _quantized(rng, (int(rng.integers(1, 3)), groups * depth, *sizes), U8)
    filters = groups * each
    w = _quantized(rng, (filters, depth, *taps), S8)
    if not real:
        # Here the weights are the left factor.
        x, w = x.view(S8) ^ S8(-128), w.view(U8) ^ U8(128)
        inputs: Inputs = {"x": x, "w": w, "x_zero": zero_point(rng, S8), "w_zero": zero_point(rng, U8)}
        return "ConvInteger", "", inputs, attributes, S32
    domain = MICROSOFT if rng.random() < 0.4 else ""
    if domain and rng.random() < 0.6:
        attributes["channels_last"] = 1
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    per_channel = _maybe(rng, (filters,))
    inputs = {
        "x": x,
        "x_scale": scale(rng),
        "x_zero": zero_point(rng, U8),
        "w": w,
        "w_scale": scale(rng, per_channel),
        "w_zero": zero_point(rng, S8, per_channel) if rng.random() < 0.3 else np.zeros(per_channel, S8),
        "y_scale": scale(rng) * F32(32 * depth * np.prod(taps)),
        "y_zero": zero_point(rng, U8),
    }
    if rng.random() < 0.5:
        inputs["bias"] = rng.integers(-(2**14), 2**14, filters).astype(S32)
    return "QLinearConv", domain, inputs, attributes, U8


def _product(rng: np.random.Generator, op_type: str) -> Draw:
    m, k, n = int(rng.choice([1, 1, 2, 3, 7])), int(rng.integers(1, 40)), int(rng.integers(1, 40))
    batch = tuple(int(v) for v in rng.integers(1, 3, rng.integers(2))) if op_type != "QGemm" else ()
    attributes: dict[str, Any] = {}
    left, right = (*batch, m, k), (*batch, k, n) if rng.random() < 0.5 else (k, n)
    if op_type == "QGemm":
        attributes = {"transA": int(rng.random() < 0.3), "transB": int(rng.random() < 0.5), "alpha": 0.7}
        left, right = left[:: -1 if attributes["transA"] else 1], (n, k) if attributes["transB"] else (k, n)
    a, b = _quantized(rng, left, U8), _quantized(rng, right, S8)
    columns = _maybe(rng, (n,) if len(right) == 2 else (*right[:-2], 1, n))
    a_zero, b_zero = zero_point(rng, U8), zero_point(rng, S8, columns)
    a_scale, b_scale = scale(rng), scale(rng, columns)
    y_scale, y_zero = scale(rng) * F32(32 * k), zero_point(rng, U8)
    bias = rng.standard_normal(n).astype(F32)
    if op_type == "MatMulInteger":
        return op_type, "", {"a": a, "b": b, "a_zero": a_zero, "b_zero": b_zero}, {}, S32
    if op_type == "MatMulIntegerToFloat":
        names = ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias")
        values = (a, b, a_scale, b_scale, a_zero, b_zero, bias)
        return op_type, MICROSOFT, dict(zip(names, values, strict=True)), {}, F32
    if op_type == "DynamicQuantizeMatMul":
        reals = (a.astype(F32) - F32(int(a_zero))) * a_scale
        return op_type, MICROSOFT, {"a": reals, "b": b, "b_scale": b_scale, "b_zero": b_zero, "bias": bias}, {}, F32
    both: Inputs = {
        "a": a,
        "a_scale": a_scale,
        "a_zero": a_zero,
        "b": b,
        "b_scale": b_scale,
        "b_zero": b_zero,
    }
    if op_type == "QGemm":
        both["c"] = rng.integers(-999, 999, n).astype(S32)
        return op_type, MICROSOFT, {**both, "y_scale": y_scale, "y_zero": y_zero}, attributes, U8
    return op_type, "", {**both, "y_scale": y_scale, "y_zero": y_zero}, {}, U8


OPERATORS = (
    "QLinearConv",
    "ConvInteger",
    "QLinearMatMul",
    "MatMulInteger",
    "QGemm",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
)


def known_example() -> Draw:
    """One pair of 255 * 127 twice beside seven of 255 * 127 once: 103 where sums are exact, 92 where pairs saturate."""
    a = np.array([[255, 255, *[255, 0] * 7]], U8)
    b = np.full((16, 1), 127, S8)
    y_scale = F32((2 * 255 + 7 * 255) * 127 / 103)
    names = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero")
    values = (a, F32(1), U8(0), b, F32(1), S8(0), y_scale, U8(0))
    inputs: Inputs = {name: np.asarray(value) for name, value in zip(names, values, strict=True)}
    return "QLinearMatMul", "", inputs, {}, U8


def draws(count: int, seed: int = 0) -> Iterator[tuple[Draw, list[str]]]:
    """The known example, then random nodes, the operators in turn; and the names of their constants."""
    example = known_example()
    yield example, [name for name in example[2] if name != "a"]
    for number in range(count):
        rng = np.random.default_rng([20261121, seed, number])
        op_type = OPERATORS[number % len(OPERATORS)]
        convolution = op_type in ("QLinearConv", "ConvInteger")
        drawn = _convolution(rng, op_type == "QLinearConv") if convolution else _product(rng, op_type)
        known = rng.random()
        first = next(iter(drawn[2]))
        weights = "w" if convolution else "b"
        constants = [n for n in drawn[2] if n != first and (n != weights or known < 0.7)] if known > 0.1 else []
        yield drawn, constants


def recorded() -> Iterator[tuple[str, bytes, list[np.ndarray], np.ndarray]]:
    """Name, model, inputs and result of every recorded case."""
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    with np.load(FOLDER / "cases.npz") as arrays:
        for case in manifest["cases"]:
            result = arrays[case["outputs"][0]["key"]]
            content, feeds = single(
                case["operator"],
                {entry["name"]: arrays[entry["key"]] for entry in case["inputs"]},
                [KIND[result.dtype]],
                case["attributes"],
                domain=case["domain"],
                opset=case["opset"],
                constants=[entry["name"] for entry in case["inputs"] if entry["initializer"]],
            )
            yield case["id"], content, feeds, result


def main(folder: Path, count: int, seed: int) -> None:
    """Runs the models here and writes what they gave."""
    arrays: dict[str, np.ndarray] = {}
    cases = []
    for number, ((op_type, domain, inputs, attributes, out), constants) in enumerate(draws(count, seed)):
        content, feeds = single(op_type, inputs, [KIND[np.dtype(out)]], attributes, domain=domain, constants=constants)
        answer = run_runtime(content, feeds)
        assert not isinstance(answer, Refused), answer.message
        case: dict[str, Any] = {
            "id": f"{op_type}/{number:03}",
            "file": "cases.npz",
            "operator": op_type,
            "domain": domain,
            "opset": 21,
            "attributes": attributes,
            "isa_sensitive": True,
        }
        for side, values in (("input", inputs), ("output", {"y": answer["y0"]})):
            entries = []
            for name, value in values.items():
                assert value is not None
                array = np.asarray(value)
                arrays[f"c{number:03}/{side}/{name}"] = array
                entry: dict[str, Any] = {"name": name, "key": f"c{number:03}/{side}/{name}", "dtype": array.dtype.name}
                entry["shape"] = list(array.shape)
                if side == "input":
                    entry["initializer"] = name in constants
                entries.append(entry)
            case[f"{side}s"] = entries
        cases.append(case)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "cases.npz", **arrays)
    manifest = {
        "format": "bittrue-vectors-1",
        "framework": "onnxruntime",
        "version": f"onnxruntime {onnxruntime.__version__} under qemu-x86_64 -cpu Haswell-v1 (no VNNI), one thread",
        "cases": cases,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 140, int(sys.argv[3]) if len(sys.argv) > 3 else 0
    )
