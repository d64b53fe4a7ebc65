"""`onnxruntime-avx2`: pairs of u8 by s8 products in 16 bits, against vectors recorded under emulation and plain loops.

The vectors: cd tests && qemu-x86_64 -cpu Haswell-v1 python -m support.emulated data/recorded/onnxruntime-avx2 105
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import bittrue
from support import emulated
from support.onnx_models import HERE, KIND, MICROSOFT, Checks, check, integers, single, zero_point

# Whether the runtime that is installed adds up in pairs here.
PAIRS_HERE = HERE == "onnxruntime-avx2"


def test_recorded_vectors(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    exact_ones = 0
    for name, content, feeds, expected in emulated.recorded():
        outcome = check(content, feeds, numerics="onnxruntime-avx2", expected=lambda y=expected: {"y0": y})
        assert outcome == "equal", name
        counts[name.split("/")[0]] += 1
        exact = bittrue.load(content).prepare("onnxruntime", executor="reference").run(*feeds)["y0"]
        exact_ones += bool(np.array_equal(exact, expected, equal_nan=True))
    assert set(counts) == set(emulated.OPERATORS)
    # The vectors tell the two numerics apart.
    assert exact_ones < sum(counts.values()) // 2
    record_property("compared", f"onnxruntime-avx2: {sum(counts.values())} recorded models equal")


def test_92_instead_of_103() -> None:
    op_type, domain, inputs, attributes, out = emulated.known_example()
    content, feeds = single(op_type, inputs, [KIND[np.dtype(out)]], attributes, domain=domain)
    results = {}
    for numerics in ("onnxruntime", "onnxruntime-avx2", "onnx"):
        results[numerics] = int(bittrue.load(content).prepare(numerics).run(*feeds)["y0"][0, 0])
    assert results == {"onnxruntime": 103, "onnxruntime-avx2": 92, "onnx": 103}
    name, _, _, recorded = next(emulated.recorded())
    assert (name, int(recorded[0, 0])) == ("QLinearMatMul/000", 92)


def plain(x: list[int], w: list[int], x_zero: int, w_zero: int) -> int:
    """One sum as the formula says it, product by product."""
    total = -x_zero * sum(w) - w_zero * sum(x) + len(x) * x_zero * w_zero
    for p in range(0, len(x), 2):
        pair = sum(a * b for a, b in zip(x[p : p + 2], w[p : p + 2], strict=True))
        total += min(max(pair, -(2**15)), 2**15 - 1)
    return (total + 2**31) % 2**32 - 2**31


def test_random_products(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        m, k, n = (int(v) for v in rng.integers(1, 7, 3))
        first, second = rng.choice([np.uint8, np.int8]), rng.choice([np.uint8, np.int8])
        inputs = {
            "a": integers(rng, (m, k), first),
            "b": integers(rng, (k, n), second),
            "a_zero": zero_point(rng, first),
            "b_zero": zero_point(rng, second, (n,)),
        }
        a, b, a_zero, b_zero = (inputs[name].astype(np.int64) for name in inputs)
        expected = ((a - a_zero) @ (b - b_zero)).astype(np.int32)
        if (first, second) == (np.uint8, np.int8):
            for i, j in np.ndindex(m, n):
                expected[i, j] = plain(a[i].tolist(), b[:, j].tolist(), int(a_zero), int(b_zero[j]))
        content, feeds = single("MatMulInteger", inputs, [KIND[np.dtype(np.int32)]], constants=["b", "b_zero"])
        checks.add(content, feeds, numerics="onnxruntime-avx2", expected=lambda y=expected: {"y0": y})


def test_random_convolutions(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        groups, depth, each, taps, width = (int(v) for v in rng.integers(1, 4, 5))
        pad, width = int(rng.integers(0, 2)), width + 2
        one = np.float32(1)
        inputs = {
            "x": integers(rng, (1, groups * depth, width), np.uint8),
            "x_scale": one,
            "x_zero": zero_point(rng, np.uint8),
            # Weights of 7 bits saturate nowhere.
            "w": integers(rng, (groups * each, depth, taps), np.int8) // rng.choice(np.int8([1, 1, 2])),
            "w_scale": one,
            "w_zero": zero_point(rng, np.int8, ((), (groups * each,))[rng.integers(2)]),
            "y_scale": np.float32(2048),
            "y_zero": np.uint8(128),
        }
        attributes = {"group": groups, "pads": [pad, pad]}
        x_zero, w_zeros = int(inputs["x_zero"]), np.broadcast_to(inputs["w_zero"], groups * each).astype(int)
        x = np.pad(inputs["x"].astype(np.int64), ((0, 0), (0, 0), (pad, pad)), constant_values=x_zero)[0]
        out = np.empty((1, groups * each, width + 2 * pad - taps + 1), np.uint8)
        for _, o, place in np.ndindex(out.shape):
            channels = slice(o // each * depth, o // each * depth + depth)
            # Tap by tap, and in each its channels.
            quantized = x[channels, place : place + taps].T.reshape(-1).tolist()
            filters = inputs["w"][o].T.reshape(-1).astype(int).tolist()
            # Alone, if all filters have one zero point.
            if depth == each == 1 and len(set(w_zeros)) == 1:
                total = sum((a - x_zero) * (b - w_zeros[o]) for a, b in zip(quantized, filters, strict=True))
            else:
                total = plain(quantized, filters, x_zero, w_zeros[o])
            # 2048 is a power of two: the quotient is exact.
            out[0, o, place] = min(max(round(total / 2048) + 128, 0), 255)
        content, feeds = single(
            "QLinearConv",
            inputs,
            [KIND[np.dtype(np.uint8)]],
            attributes,
            constants=("w", "w_zero")[: rng.integers(1, 3)],
        )
        checks.add(content, feeds, numerics="onnxruntime-avx2", expected=lambda y=out: {"y0": y})


def test_dynamic_quantize_lstm_saturates() -> None:
    """Recorded from onnxruntime 1.31.1 on a machine with VNNI, and under qemu-x86_64 -cpu Haswell-v1."""
    operands = {
        "x": np.float32([[[1, 0.9, 1, 0.8]], [[0.1, 1, 1, -0.2]]]),
        "w": np.full((1, 4, 4), 127, np.int8),
        "r": np.full((1, 1, 4), -100, np.int8),
        **dict.fromkeys(("b", "lengths", "h", "c", "p")),
        "w_scale": np.float32([0.005]),
        "w_zero": np.zeros(1, np.int8),
        "r_scale": np.float32([0.01]),
        "r_zero": np.zeros(1, np.int8),
    }
    constants = [name for name in operands if name[0] in "wr"]
    content, feeds = single(
        "DynamicQuantizeLSTM", operands, [1], {"hidden_size": 1}, domain=MICROSOFT, constants=constants
    )
    recorded = {
        "onnxruntime": ["0x1.4dc76cp-1", "0x1.cd8712p-2"],
        "onnxruntime-avx2": ["0x1.88863p-2", "0x1.aa4e58p-2"],
    }
    for numerics, texts in recorded.items():
        found = bittrue.load(content).prepare(numerics).run(*feeds)["y0"]
        assert found.reshape(-1).tolist() == [float.fromhex(text) for text in texts]


# Channels, filters, taps, groups, attributes: neighbours lie in one tap, in two taps of a line, or in two lines.
CONVOLUTIONS = {
    "lines": (4, 18, (3, 3), 1, {"pads": [1, 1, 1, 1]}),
    "two lines": (3, 9, (3, 3), 1, {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    "taps far apart": (5, 7, (3, 2), 1, {"dilations": [2, 3]}),
    "wide taps": (260, 3, (2, 2), 1, {"pads": [1, 1, 0, 0]}),
    "pixels": (7, 33, (1, 1), 1, {}),
    "a line": (3, 5, (5,), 1, {"pads": [2, 2]}),
    "groups": (12, 8, (3, 3), 4, {"pads": [1, 1, 1, 1]}),
    "filters of one channel": (3, 6, (3, 3), 3, {}),
}


def natively(content: bytes, feeds: list[np.ndarray]) -> None:
    """All instruction sets give the bytes of the reference, and those of the runtime where it has pairs, natively."""
    check(content, feeds, numerics="onnxruntime-avx2", native=False, expected=None if PAIRS_HERE else dict)
    model = bittrue.load(content)
    (expected,) = model.prepare("onnxruntime-avx2", executor="reference").run(*feeds).values()
    for isa in bittrue.isas():
        session = model.prepare("onnxruntime-avx2", isa=isa)
        assert "runs on the reference" not in str(session.plan)
        assert "s16_pairs_s32_wrap" in str([step.rules for step in session.plan.steps])
        (found,) = session.run(*feeds).values()
        assert found.tobytes() == expected.tobytes(), isa


@pytest.mark.parametrize("point", [0, -3])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_native(name: str, point: int) -> None:
    channels, filters, taps, groups, attributes = CONVOLUTIONS[name]
    rng = np.random.default_rng(channels)
    inputs = {
        "x": rng.choice(np.uint8([0, 200, 255]), (2, channels, *(9,) * len(taps))),
        "x_scale": np.float32(0.5),
        "x_zero": np.uint8(100),
        "w": rng.integers(-128, 128, (filters, channels // groups, *taps), np.int8),
        "w_scale": rng.uniform(0.01, 0.02, filters).astype(np.float32),
        "w_zero": np.full(filters, point, np.int8),
        "y_scale": np.float32(10),
        "y_zero": np.uint8(128),
        "b": rng.integers(-30000, 30000, filters, np.int32),
    }
    constants = [key for key in inputs if key != "x"]
    natively(
        *single("QLinearConv", inputs, [KIND[np.dtype(np.uint8)]], {"group": groups, **attributes}, constants=constants)
    )


# Shapes of both factors, and whether the second one is a constant.
PRODUCTS = {
    "a layer": ((5, 37), (37, 20), True),
    "one row": ((1, 2051), (2051, 17), True),
    "computed": ((2, 3, 26), (2, 26, 33), False),
    "matrices": ((2, 3, 9), (2, 9, 4), True),
}


@pytest.mark.parametrize("operator", ["QLinearMatMul", "MatMulInteger"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_native(name: str, operator: str) -> None:
    first, second, known = PRODUCTS[name]
    rng = np.random.default_rng(len(name))
    a, b = rng.choice(np.uint8([3, 255]), first), rng.choice(np.int8([-128, 5, 127]), second)
    points = {"a_zero": np.uint8(100), "b_zero": np.int8(2)}
    inputs, out = {"a": a, "b": b, **points}, np.int32
    if operator == "QLinearMatMul":
        scales = [np.float32(0.1), np.float32(0.2), np.float32(40)]
        inputs = {"a": a, "as": scales[0], "az": points["a_zero"], "b": b, "bs": scales[1], "bz": points["b_zero"]}
        inputs |= {"ys": scales[2], "yz": np.uint8(9)}
        out = np.uint8
    constants = [key for key in inputs if key != "a" and (known or key != "b")]
    natively(*single(operator, inputs, [KIND[np.dtype(out)]], constants=constants))
    if operator == "MatMulInteger":
        # The same with a zero point of this run.
        late = [key for key in constants if key != "a_zero"]
        natively(*single(operator, inputs, [KIND[np.dtype(out)]], constants=late))
