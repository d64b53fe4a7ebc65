"""Rules BT5xx: what they say of runtimes, run."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import bittrue
from support import runtime_models as models
from support.build import T, single
from support.findings import findings, only
from support.shared import SHARED, needs_shared


def litert(content: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    """What LiteRT's reference kernels make of inputs."""
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array.astype(details["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def test_every_refused_node_is_named() -> None:
    assert [f.node for f in findings(models.refused_twice(), "BT501")] == [0, 1]
    finding = findings(models.refused_twice(), "BT501")[1]
    with pytest.raises(bittrue.InvalidModelError) as error:
        bittrue.load(models.refused_twice()).prepare()
    assert (finding.found, finding.severity) == (error.value.code, "error")


def test_what_is_refused_is_refused() -> None:
    with pytest.raises((RuntimeError, ValueError)):
        litert(models.softmax(0.01), np.zeros((1, 5)))


@pytest.mark.parametrize("scales", [(0.5, 0.25), (0.5, 3.0)])
def test_quantized_values_are_copied(scales: tuple[float, float]) -> None:
    """The bytes are the same whatever the output's parameters are."""
    x = np.array([-128, 5, 127], np.int8)
    assert litert(models.tile(scales[0]), x)[0].tolist() == litert(models.tile(scales[1]), x)[0].tolist()
    halves = np.array([-128, 5, 127, 9], np.int8)
    one, two = (litert(models.split(scale), halves) for scale in scales)
    assert [part.tolist() for part in one] == [part.tolist() for part in two] == [[-128, 5], [127, 9]]
    chosen = litert(models.select(scales[1]), np.array([True, False, True]), x, x)[0]
    assert chosen.tolist() == x.tolist()


def test_activation_is_ignored() -> None:
    x = [np.full((2, 3), 60), np.full((2, 3), 90)]
    plain, fused = litert(models.add(1.0), *x)[0], litert(models.add(1.0, 4), *x)[0]
    assert plain.tolist() == fused.tolist()
    # tanh would leave 1 at most.
    assert plain.max() > 1


def test_negation_ignores_zero_points() -> None:
    content = models.unary("NEG", 0.5, 1, T("s8", (3,), 0.5, 1))
    assert litert(content, np.array([-128, 5, 1]))[0].tolist() == [-128, -5, -1]


def test_ordered_comparisons_of_wide_codes_ignore_scales() -> None:
    # 3 * 0.5 is more than 4 * 0.25, but 3 is less than 4.
    x = [np.full(3, 3), np.full(3, 4)]
    assert litert(models.less("s16", 0.25), *x)[0].tolist() == [True] * 3
    assert litert(models.less("s8", 0.25), *x)[0].tolist() == [False] * 3


def test_casts_give_codes() -> None:
    content = models.unary("CAST", 0.5, 0, T("f32", (3,)))
    assert litert(content, np.array([-3, 0, 7]))[0].tolist() == [-3.0, 0.0, 7.0]


def test_reference_sum_is_broken() -> None:
    x = np.array([[-10, 20, 30], [1, 2, 3]], np.int8)
    real = (x.astype(np.float64) - 3) * 0.1
    meant = np.clip(np.round(real.sum(axis=1) / 0.4) + 3, -128, 127)
    assert litert(models.total("s8"), x)[0].reshape(-1).tolist() != meant.tolist()


def test_depth_multiplier_is_not_read() -> None:
    x = np.arange(8).reshape(1, 2, 2, 2)
    results = [litert(models.depthwise(multiplier), x)[0].tolist() for multiplier in (0, 1, 2)]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("number", [0, 1])
def test_where_other_kernels_refuse(number: int) -> None:
    """What is refused elsewhere does not load there, and loads with reference kernels."""
    wrong, right = models.FIXTURES["BT506"]
    finding = only(wrong[number], "BT506")
    assert finding.numbers["numerics"] == "xnnpack"
    with pytest.raises((RuntimeError, ValueError)):
        Interpreter(model_content=wrong[number]).allocate_tensors()
    reference = OpResolverType.BUILTIN_REF
    Interpreter(model_content=wrong[number], experimental_op_resolver_type=reference).allocate_tensors()
    for content in right:
        Interpreter(model_content=content).allocate_tensors()


def test_notes_count_operators() -> None:
    found = findings(models.fully_connected(), "BT505")
    assert [f.numbers["numerics"] for f in found] == ["litert-optimized", "xnnpack"]
    assert "1 FULLY_CONNECTED (rescale binary64_multiply_away against binary32_multiply_even)" in found[1].message
    assert [f.found for f in findings(models.fully_connected(), "BT505", "xnnpack")] == ["litert", "litert-optimized"]


def test_inexact_operators_are_named() -> None:
    axes = T("s32", (1,), data=np.int32([0]))
    content = single("SUM", ("ReducerOptions", {"keepDims": False}), [T("s8", (64,), 0.5), axes], [T("s8", (), 8.0)])
    finding = only(content, "BT507", "litert")
    assert (finding.node, finding.severity) == (0, "note")
    assert findings(content, "BT507", "xnnpack") == []


@needs_shared
def test_microcontroller_svdf() -> None:
    found = findings((SHARED / "models" / "tflm_keyword_scrambled_8bit.tflite").read_bytes(), "BT502")
    assert len(found) == 7
    assert {(f.source, f.severity) for f in found} == {("SVDF", "error")}
    assert all("micro" in f.advice.lower() for f in found)
