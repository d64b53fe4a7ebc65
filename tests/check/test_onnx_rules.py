"""Rules BT4xx: what they say of onnx.checker and ONNX Runtime, run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import bittrue
from support import linear_models as models
from support.findings import findings, only
from support.onnx_models import Refused, run_runtime


def feeds(content: bytes) -> list[np.ndarray]:
    """Random inputs, the same for every run."""
    rng = np.random.default_rng(1)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    kinds: dict[str, Any] = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int32)": np.int32}
    return [rng.integers(0, 256, port.shape).astype(kinds[port.type]) for port in session.get_inputs()]


def run(content: bytes) -> np.ndarray | Refused:
    """The first output, or the error of loading or running."""
    results = run_runtime(content, feeds(content))
    return results if isinstance(results, Refused) else next(iter(results.values()))


def run_unoptimised(content: bytes) -> np.ndarray:
    """The first output, node by node."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    return np.asarray(session.run(None, dict(zip(names, feeds(content), strict=True)))[0])


@pytest.mark.parametrize("code", ["BT401", "BT402", "BT403", "BT404", "BT405", "BT406", "BT408", "BT409", "BT412"])
def test_the_checker_does_not_look(code: str) -> None:
    for content in models.FIXTURES[code][0]:
        model = onnx.shape_inference.infer_shapes(onnx.load_from_string(content), strict_mode=True, data_prop=True)
        onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("code", ["BT401", "BT402", "BT403", "BT404", "BT411"])
def test_errors_fail_when_the_model_runs(code: str) -> None:
    """What is an error loads and fails when it runs (negative block sizes at load); what is right runs."""
    wrong, right = models.FIXTURES[code]
    for content in wrong:
        severe = any(f.severity != "note" for f in findings(content, code))
        negative = any(isinstance(v, int) and v < 0 for f in findings(content, code) for v in f.numbers.values())
        if negative:
            with pytest.raises(Exception, match="block_size"):
                onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        else:
            assert isinstance(run(content), Refused) == severe
    for content in right:
        assert not isinstance(run(content), Refused)


def test_refused_plans_have_these_words_alone() -> None:
    """Rules of their own about these parameters stand in for the general one."""
    for code in ("BT401", "BT402", "BT404", "BT411"):
        for content in models.FIXTURES[code][0]:
            with pytest.raises(bittrue.InvalidModelError):
                bittrue.load(content).prepare("onnxruntime")
            quiet = [f for f in findings(content, "BT501") if "block_size" not in f.message]
            assert quiet == []


def test_operator_set_10_runs_several_scales() -> None:
    assert not isinstance(run(models.FIXTURES["BT405"][0][0]), Refused)


def test_zero_points_of_sums_are_used_and_those_of_floats_are_not() -> None:
    zero, five = (run(models.dequantize(1.0, np.int32(point), models.CODES)) for point in (0, 5))
    assert not isinstance(zero, Refused)
    assert not isinstance(five, Refused)
    assert (zero - five == 5).all()
    plain, shifted = (run(models.quantize(0.1, models.float8(point))) for point in (0, 1))
    assert not isinstance(plain, Refused)
    assert not isinstance(shifted, Refused)
    assert plain.tobytes() == shifted.tobytes()


def test_precision_is_not_read() -> None:
    rng = np.random.default_rng(2)
    data = rng.uniform(0, 20, (64, 64)).astype(np.float32)
    asked = models.quantize(0.07, opset=23, precision=onnx.TensorProto.FLOAT16, data=data)
    plain = models.quantize(0.07, opset=23, data=data)
    theirs = [run_runtime(content, [data]) for content in (asked, plain)]
    assert not any(isinstance(result, Refused) for result in theirs)
    first, second = (next(iter(result.values())) for result in theirs if not isinstance(result, Refused))
    assert (first == second).all()
    told = next(iter(bittrue.load(asked).prepare("onnx").run(data).values()))
    assert (told != first).any()


@pytest.mark.parametrize(
    ("factor", "severity", "fused"), [(1.0, "", True), (1.005, "note", True), (1.05, "warning", False)]
)
def test_biases_of_convolutions(factor: float, severity: str, fused: bool, tmp_path: Any) -> None:
    content = models.layer("Conv", bias=factor)
    assert [f.severity for f in findings(content, "BT409")] == [severity] * bool(severity)
    assert ("QLinearConv" in optimised(content, tmp_path)) == fused


def test_biases_of_matrix_products_are_taken_as_they_are() -> None:
    content = models.layer("Gemm", bias=3.0, trans_b=True)
    assert only(content, "BT409").severity == "error"
    fused = run(content)
    assert not isinstance(fused, Refused)
    assert (fused != run_unoptimised(content)).any()
    right = models.layer("Gemm", bias=1.0, trans_b=True)
    assert np.array_equal(np.asarray(run(right)), run_unoptimised(right))


def optimised(content: bytes, folder: Any) -> list[str]:
    """Operators of ONNX Runtime's optimised graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]


@pytest.mark.parametrize("number", range(4))
def test_scales_along_the_wrong_axis_change_results(number: int) -> None:
    """The optimised graph takes the scales of input channels for those of output channels."""
    wrong = models.FIXTURES["BT412"][0][number]
    assert only(wrong, "BT412").severity == "error"
    fused, plain = run(wrong), run_unoptimised(wrong)
    assert not isinstance(fused, Refused)
    assert np.abs(fused.astype(int) - plain.astype(int)).max() > 1


def test_scales_along_another_axis_of_another_length() -> None:
    wrong = models.FIXTURES["BT412"][0][4]
    assert only(wrong, "BT412").severity == "warning"
    assert isinstance(run(wrong), Refused)
    assert run_unoptimised(wrong).size


def test_movement_between_different_scales_stays_real(tmp_path: Any) -> None:
    wrong, right = models.FIXTURES["BT410"]
    assert only(wrong[0], "BT410").source == "Transpose"
    assert optimised(wrong[0], tmp_path) == ["DequantizeLinear", "Transpose", "QuantizeLinear"]
    assert optimised(right[0], tmp_path) == ["Transpose"]


def test_pairs_run_as_they_are() -> None:
    content = models.pair(0.2)
    result = run_runtime(content, [np.arange(4, dtype=np.float32)])
    assert not isinstance(result, Refused)
    assert np.allclose(result["y"], [0, 2, 4, 6])
    assert only(content, "BT408").severity == "warning"
