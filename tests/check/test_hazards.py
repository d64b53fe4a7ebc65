"""Rules BT6xx: each finds what it is about, is quiet beside it, and what it claims happens when the model runs."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from bittrue.check.sums import Sums, layers
from bittrue.check.surveys import survey
from support.build import T, chain
from support.findings import findings, only, subject_of
from support.hazard_models import (
    between_pairs,
    convolution,
    fully_connected,
    island,
    products,
    quantized,
    requantized,
    reshaped,
    transposed,
)

S32_MAX = 2**31 - 1


def layer_of(content: bytes) -> Sums:
    return next(iter(layers(survey(subject_of(content)))))


def run(content: bytes, x: np.ndarray) -> np.ndarray:
    session = bittrue.load(content).prepare(executor="reference")
    return np.asarray(next(iter(session.run(x.astype(session.inputs[0].dtype)).values())))


def litert(content: bytes, x: np.ndarray) -> np.ndarray:
    """What LiteRT's reference kernels make of an input."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.astype(np.int8))
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@pytest.mark.parametrize("sign", [1, -1])
def test_overflow_is_reached(sign: int) -> None:
    """The witness wraps: by plain integers, in the reference executor, and in LiteRT itself."""
    weights = np.array([[1, 2, 3], [5, -6, 7], [0, 0, 1]])
    content = fully_connected(weights, [10, sign * (S32_MAX - 100), 0])
    finding = only(content, "BT601")
    assert (finding.severity, finding.place, finding.node) == ("error", "channel 1", 0)
    x = layer_of(content).witness(1, sign > 0)
    assert x is not None
    exact = int(((x.reshape(-1) - 3) * weights[1]).sum()) + sign * (S32_MAX - 100)
    assert exact == finding.numbers["accumulator"]
    assert not -(2**31) <= exact <= S32_MAX
    wrapped = (exact + 2**31) % 2**32 - 2**31
    assert wrapped == finding.numbers["wraps_to"]
    assert np.sign(wrapped) == -sign
    stored = run(content, x)
    # The exact sum saturates at one end, the wrapped one at the other.
    assert stored[0, 1] == (-128 if sign > 0 else 127)
    assert (litert(content, x) == stored).all()


def test_no_overflow_at_the_very_end() -> None:
    # 5 * (127 - 3) = 620 more than the bias is the largest sum.
    assert findings(fully_connected([[5]], [S32_MAX - 620]), "BT601") == []
    assert only(fully_connected([[5]], [S32_MAX - 619]), "BT601").numbers["accumulator"] == S32_MAX + 1


def test_overflow_behind_another_layer_is_a_warning_and_knows_its_clamp() -> None:
    inner = T("s8", (1, 2), 0.01, -128)

    def model(bias: int, activation: int) -> bytes:
        w = np.array([[1, 1]], np.int8)
        first = np.eye(2, dtype=np.int8)
        options = ("FullyConnectedOptions", {"fusedActivationFunction": activation})
        before = [T("s8", (1, 2), 0.5, 3), T("s8", (2, 2), 0.25, data=first), T("s32", (2,), 0.125, data=np.zeros(2))]
        behind = [inner, T("s8", (1, 2), 0.25, data=w), T("s32", (1,), 0.0025, data=np.array([bias]))]
        return chain(
            [
                ("FULLY_CONNECTED", options, before, [inner], 4),
                ("FULLY_CONNECTED", ("FullyConnectedOptions", {}), behind, [T("s8", (1, 1), 4.0, 0)], 4),
            ]
        )

    assert only(model(S32_MAX - 509, 0), "BT601").severity == "warning"
    # RELU_N1_TO_1 leaves quantized values up to -28: sums up to 200.
    assert findings(model(S32_MAX - 509, 2), "BT601") == []
    assert findings(model(S32_MAX - 200, 2), "BT601") == []
    assert only(model(S32_MAX - 199, 2), "BT601").numbers["accumulator"] == S32_MAX + 1


def test_bounds_without_witnesses_are_notes() -> None:
    finding = only(transposed(S32_MAX), "BT601")
    assert (finding.severity, finding.numbers["magnitude"]) == ("note", S32_MAX + 5 * 131)


def test_sums_beyond_24_bits() -> None:
    rows = np.full((1, 1100), 127)
    finding = only(fully_connected(rows, [0], zeros=(-128, 0), scales=(0.5, 0.25, 1e5)), "BT602")
    assert finding.numbers["magnitude"] == 1100 * 127 * 255
    assert np.float32(finding.numbers["magnitude"]) != 1100 * 127 * 255 or 1100 * 127 * 255 > 2**24
    assert findings(fully_connected(rows[:, :500], [0], zeros=(-128, 0), scales=(0.5, 0.25, 1e5)), "BT602") == []


def test_saturating_pairs_saturate() -> None:
    content = products(np.int8([[65, 1], [64, 1]]))
    finding = only(content, "BT603")
    assert (finding.numbers["first_weight"], finding.numbers["total"]) == (65, 255 * 129)
    x, model = np.full((1, 2), 255, np.uint8), bittrue.load(content)
    exact, clamped = (
        next(iter(model.prepare(name, executor="reference").run(x).values()))
        for name in ("onnxruntime", "onnxruntime-avx2")
    )
    assert exact[0, 0] - clamped[0, 0] == finding.numbers["loss"] == 255 * 129 - 32767
    assert findings(products(np.int8([[64, 1], [64, 1]])), "BT603") == []
    assert findings(products(np.uint8([[165], [164]])), "BT603") == []


def test_rescale_overflow_is_reached() -> None:
    # M = 0.5 * 0.25 / 2e-5 = 6250: sums are shifted left by 13 bits; 2^18 is too much for that.
    content = convolution(np.full((1, 30), 127), [0], 2e-5)
    finding = only(content, "BT604")
    assert finding.severity == "error"
    x = layer_of(content).witness(0, finding.numbers["end"] == "high")
    assert x is not None
    stored = run(content, x).item()
    assert stored == finding.numbers["stored"]
    exact = int(((x.reshape(-1) - 3) * 127).sum())
    assert exact == finding.numbers["accumulator"]
    assert stored != np.clip(round(exact * 0.125 / 2e-5) - 7, -128, 127)
    assert litert(content, x).item() == stored
    assert findings(convolution(np.full((1, 30), 127), [0], 2e-3), "BT604") == []
    # Fully-connected layers multiply in binary64: the product is right, but its conversion to 32 bits is not.
    content = fully_connected(np.full((1, 30), 127), [0], scales=(0.5, 0.25, 2e-5))
    x = layer_of(content).witness(0, only(content, "BT604").numbers["end"] == "high")
    assert x is not None
    assert litert(content, x).item() == run(content, x).item() == only(content, "BT604").numbers["stored"]
    assert findings(fully_connected(np.full((1, 30), 127), [0], scales=(0.5, 0.25, 1e-4)), "BT604") == []


def test_extreme_multipliers() -> None:
    assert findings(convolution([[1, 2]], [0], 0.126), "BT605") == []
    large = only(convolution([[1, 2]], [0], 0.125), "BT605")
    assert (large.severity, large.numbers["multiplier"]) == ("note", 1.0)
    none = only(convolution([[1, 2]], [0], 1e9), "BT605")
    assert none.severity == "warning"
    content = convolution([[1, 2]], [0], 1e9)
    for code in (-128, 127):
        assert run(content, np.full((1, 1, 1, 2), code)).item() == -7
    assert findings(convolution([[0, 0]], [0], 1e9), "BT605") == []


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30])
def test_degenerate_scales(scale: float) -> None:
    found = findings(reshaped(scale), "BT606")
    assert len(found) == 2
    assert {f.severity for f in found} == {"warning"}
    assert findings(reshaped(0.007), "BT606") == []


def test_scales_of_idle_channels_mean_nothing() -> None:
    assert findings(fully_connected([[0, 0], [1, 2]], [0, 0], weight_scale=[1e-30, 0.1]), "BT606") == []
    one = only(fully_connected([[0, 1], [1, 2]], [0, 0], weight_scale=[1e-30, 0.1]), "BT606")
    assert (one.severity, one.place) == ("warning", "scale 0")


def test_degenerate_scale_operands() -> None:
    for scale in (0.0, -1.0, np.inf, np.nan):
        assert only(quantized(scale), "BT606").severity == "error"
    assert only(quantized(1e-20), "BT606").severity == "warning"
    assert findings(quantized(0.02), "BT606") == []


def test_constant_channels_are_constant() -> None:
    rng = np.random.default_rng(5)
    weights = rng.integers(-127, 128, (6, 8))
    weights[1] = 0
    weights[4] = 1
    bias = np.array([0, 1500, 0, 100_000_000, -100_000, 5])
    content = fully_connected(weights, bias)
    finding = only(content, "BT607")
    assert (finding.severity, finding.numbers["channels"], finding.numbers["all_weights_zero"]) == ("note", 3, 1)
    constant = (1, 3, 4)
    seen = np.concatenate([run(content, rng.choice([-128, 3, 50, 127], (1, 8))) for _ in range(200)])
    assert [c for c in range(6) if np.unique(seen[:, c]).size == 1] == list(constant)
    assert f"1 ({seen[0, 1]}), 3 ({seen[0, 3]}), 4 ({seen[0, 4]})" in finding.message
    assert only(fully_connected(weights[1:2], [3]), "BT607").severity == "warning"
    assert findings(fully_connected(weights[:1], [3]), "BT607") == []


def test_channels_that_wrap_are_not_called_constant() -> None:
    """Both ends of the range store one quantized value, sums in between wrap to another."""
    content = fully_connected([[127] * 4], [S32_MAX - 60_000])
    assert findings(content, "BT607") == []


def test_saturated_biases() -> None:
    assert only(fully_connected([[1], [1]], [5, S32_MAX]), "BT608").place == "channel 1"
    assert only(fully_connected([[1], [1]], [-S32_MAX, 5]), "BT608").place == "channel 0"
    assert findings(fully_connected([[1], [1]], [5, S32_MAX - 1]), "BT608") == []


def test_float_islands() -> None:
    inside = only(island(True), "BT609")
    assert (inside.severity, inside.numbers["operators"]) == ("warning", 1)
    assert "1 ADD" in inside.message


def test_real_ends_of_a_graph_are_notes() -> None:
    assert only(island(False), "BT609").severity == "note"
    # Weights that are kept small in the file do not make a quantized graph.
    assert findings(island(False, constant=True), "BT609") == []
    assert findings(fully_connected([[1]], [0]), "BT609") == []


def test_lossy_requantization() -> None:
    finding = only(requantized(0.25), "BT610")
    every = np.arange(-128, 128).reshape(256)
    assert np.unique(run(requantized(0.25), every)).size == finding.numbers["kept"]
    cut = only(requantized(0.1, 100), "BT610")
    assert cut.numbers["saturated"] == 100
    assert np.unique(run(requantized(0.1, 100), every)).size == cut.numbers["kept"] == 156
    assert findings(requantized(0.12), "BT610") == []
    real = T("f32", (4,))
    before, behind = T("s8", (4,), 0.1, 0), T("s8", (4,), 0.3, 0)
    pair = chain([("DEQUANTIZE", None, [before], [real]), ("QUANTIZE", None, [real], [behind])])
    assert only(pair, "BT610").numbers["values"] == 256


def test_unused_weight_range() -> None:
    good = [[127, 1], [-64, 3]]
    assert findings(fully_connected(good, [0, 0]), "BT611") == []
    assert findings(fully_connected([[127, 1], [-3, 3]], [0, 0]), "BT611") == [], "one scale for all channels"
    one = only(fully_connected([[127, 1], [-31, 3]], [0, 0], weight_scale=[0.1, 0.2]), "BT611")
    assert (one.place, one.found) == ("channel 1", "31")
    assert findings(fully_connected([[127, 1], [-32, 3]], [0, 0], weight_scale=[0.1, 0.2]), "BT611") == []
    assert only(fully_connected([[20, 1], [-31, 3]], [0, 0]), "BT611").found == "31"


def test_clamped_to_one_value() -> None:
    rng = np.random.default_rng(3)
    content = fully_connected([[127, 1]], [0], zeros=(3, 127), activation=1)
    assert only(content, "BT612").severity == "error"
    seen = {run(content, rng.integers(-128, 128, (1, 2))).item() for _ in range(50)}
    assert seen == {127}
    assert findings(fully_connected([[127, 1]], [0], zeros=(3, 126), activation=1), "BT612") == []


def test_stays_float() -> None:
    assert "1 Tanh (no integer kernel)" in only(between_pairs("Tanh"), "BT613").message
    assert findings(between_pairs("Sigmoid"), "BT613") == []
