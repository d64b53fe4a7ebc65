"""NhwcMaxPool, which becomes transpose, max_pool, transpose: random one-node models against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.onnx_models import KIND, MICROSOFT, Checks, integers, single


def _attributes(rng: np.random.Generator, sizes: list[int]) -> dict[str, Any]:
    count = len(sizes)
    taps = [int(rng.integers(1, min(size, 4) + 2)) for size in sizes]
    attributes: dict[str, Any] = {"kernel_shape": taps}
    for name in ("strides", "dilations"):
        if rng.random() < 0.5:
            attributes[name] = [int(v) for v in rng.integers(1, 4, count)]
    if rng.random() < 0.5:
        attributes["pads"] = [int(rng.integers(0, taps[i % count])) for i in range(2 * count)]
    elif rng.random() < 0.5:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    if rng.random() < 0.5:
        attributes["ceil_mode"] = int(rng.integers(2))
    return attributes


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        dtype, count = (np.uint8, np.int8)[rng.integers(2)], int(rng.integers(1, 4))
        sizes = [int(v) for v in rng.integers(1, (30, 11, 7)[count - 1], count)]
        shape = (int(rng.integers(1, 3)), *sizes, int(rng.integers(1, 40)))
        x = integers(rng, shape, dtype)
        content, feeds = single("NhwcMaxPool", {"x": x}, [KIND[x.dtype]], _attributes(rng, sizes), domain=MICROSOFT)
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}
