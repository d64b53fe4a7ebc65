"""Random one-node models of mixtures of experts, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .attention_models import normal
from .floating_models import F32, Generator, Model
from .onnx_models import MICROSOFT, single

_ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")


def _attributes(rng: np.random.Generator, experts: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {"k": int(rng.integers(1, min(experts, 6) + 1))}
    attributes["activation_type"] = str(rng.choice(_ACTIVATIONS))
    if rng.random() < 0.5:
        attributes["normalize_routing_weights"] = 1
    if attributes["activation_type"] == "swiglu":
        attributes["swiglu_fusion"] = 1
        if rng.random() < 0.7:
            attributes |= {"activation_alpha": 1.702, "activation_beta": 1.0}
        if rng.random() < 0.5:
            attributes["swiglu_limit"] = float(rng.choice([7.0, 1.0]))
    return attributes


def _some(rng: np.random.Generator, most: int = 9) -> int:
    return int(rng.integers(1, most))


def moe(rng: np.random.Generator) -> Model:
    experts = _some(rng, 9 if rng.random() < 0.9 else 40)
    rows, hidden, inner = _some(rng), _some(rng, 40), _some(rng, 40)
    attributes = _attributes(rng, experts)
    outer = inner * (2 if attributes["activation_type"] == "swiglu" else 1)
    x = normal(rng, rows, hidden) if rng.random() < 0.6 else normal(rng, 1, rows, hidden)
    scores = normal(rng, rows, experts)
    if rng.random() < 0.2:
        scores = np.rint(scores)
    inputs = {
        "x": x,
        "scores": scores,
        "first": normal(rng, experts, outer, hidden),
        "first_bias": normal(rng, experts, outer) if rng.random() < 0.5 else None,
        "second": normal(rng, experts, hidden, inner),
        "second_bias": normal(rng, experts, hidden) if rng.random() < 0.5 else None,
    }
    return single("MoE", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT)


def qmoe(rng: np.random.Generator, by_blocks: bool = False) -> Model:
    """With `by_blocks` kernels that know of blocks take part."""
    experts = _some(rng, 9 if rng.random() < 0.9 else 40)
    bits, block = int(rng.choice([2, 4, 8])), int(rng.choice([16, 32, 64])) if by_blocks or rng.random() < 0.5 else 0
    each, unit = 8 // bits, block or 8 // bits
    most = 4 if block else 30
    rows, hidden, inner = _some(rng, 20), _some(rng, most) * unit, _some(rng, most) * unit
    if by_blocks and bits == 2:
        # Layers of 128 columns have kernels of their own.
        hidden, inner, experts = 128 * _some(rng, 3), 64 * _some(rng, 4), _some(rng, 4)
    kind = F32 if rng.random() < 0.7 else np.float16
    attributes = {**_attributes(rng, experts), "expert_weight_bits": bits}
    if block:
        attributes["block_size"] = block
    if rng.random() < 0.5:
        attributes["accuracy_level"] = int(rng.choice([0, 4]))
    outer = inner * (2 if attributes["activation_type"] == "swiglu" else 1)
    pointed = rng.random() < 0.5

    def layer(name: str, columns: int, depth: int) -> dict[str, np.ndarray | None]:
        blocks = depth // block if block else 1
        shape = (experts, columns, blocks) if block else (experts, columns)
        packed = (experts, columns, -(-blocks // each)) if block else (experts, -(-columns // each))
        return {
            name: rng.integers(0, 256, (experts, columns, depth // each)).astype(np.uint8),
            f"{name}_scale": np.exp2(rng.uniform(-6, -3, shape)).astype(kind),
            f"{name}_bias": normal(rng, experts, columns).astype(kind) if rng.random() < 0.5 else None,
            f"{name}_point": rng.integers(0, 256, packed).astype(np.uint8) if pointed else None,
        }

    scores = normal(rng, rows, experts)
    if rng.random() < 0.2:
        scores = np.rint(scores)
    given = {"x": normal(rng, rows, hidden).astype(kind), "scores": scores.astype(kind)}
    given |= {**layer("first", outer, hidden), **layer("second", hidden, inner)}
    if rng.random() < 0.3:
        given["counts"] = np.abs(normal(rng, rows, experts)).astype(kind)
    names = (
        "x scores first first_scale first_bias second second_scale second_bias - - - first_point second_point - counts"
    )
    inputs = {name if name != "-" else f"-{i}": given.get(name) for i, name in enumerate(names.split())}
    constants = [name for name in given if given[name] is not None and name.startswith(("first", "second"))]
    if not by_blocks:
        # Without constant scales there are no such kernels.
        constants = [name for name in constants if not name.endswith("_scale") and (not block or rng.random() < 0.5)]
    output = TensorProto.FLOAT if kind is F32 else TensorProto.FLOAT16
    return single("QMoE", inputs, [output], attributes, domain=MICROSOFT, constants=constants)


def qmoe_by_blocks(rng: np.random.Generator) -> Model:
    return qmoe(rng, True)


GENERATORS: dict[str, Generator] = {"MoE": moe, "QMoE": qmoe}
