"""What findings say: severities outside of int8, numbers, graphs, results as plain data."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.build import T, single

sys.path.insert(0, str(Path(__file__).parent))
import fixtures_specification as made


def only(content: bytes, code: str) -> bittrue.check.Finding:  # type: ignore[name-defined]
    (finding,) = bittrue.check_model(content, select=[code]).findings
    return finding


def test_bias_scale_says_how_far_off() -> None:
    finding = only(made.conv(b={"scale": [0.125, 0.5, 0.125]}), "BT301")
    assert finding.severity == "error"
    assert finding.numbers["channels"] == 2
    assert finding.numbers["channel"] == 1
    assert finding.numbers["ratio"] == 2.0
    assert finding.numbers["expected"] == 0.25
    # Channel 0 is right; |q| * |error| / output scale: 2 * 0.25 and 3 * 0.0625.
    assert finding.numbers["output_steps"] == 0.5
    assert finding.place == "channel 1"
    assert "2 times as large" in finding.message
    assert "2 of 3 channels" in finding.message


def test_one_unit_in_the_last_place_is_a_warning_and_four_are_an_error() -> None:
    for units, severity in ((1, "warning"), (-1, "warning"), (3, "warning"), (4, "error"), (-4, "error")):
        scale = (np.array([0.25], np.float32).view(np.int32) + units).view(np.float32)[0]
        finding = only(made.conv(b={"scale": [0.125, scale, 0.0625]}), "BT301")
        assert finding.severity == severity
        assert finding.numbers["units_in_the_last_place"] == abs(units)
        assert finding.numbers["channel"] == 1


def test_per_tensor_bias_of_per_axis_weights_is_compared_in_every_channel() -> None:
    finding = only(made.conv(b={"scale": 0.125}), "BT301")
    assert finding.numbers["channels"] == 2
    same = made.conv(w={"scale": [0.25, 0.25, 0.25]}, b={"scale": 0.125})
    assert not bittrue.check_model(same, select=["BT3"]).findings


def test_other_schemes_get_warnings() -> None:
    for content, code in (
        (made.conv_u8(scale=0.25), "BT301"),
        (made.conv_s16(b={"scale": [1.0, 1.0, 1.0]}), "BT301"),
        (made.conv_s16(w={"data": np.full(6, -128)}), "BT204"),
        (made.reshape(T("u8", [4], 0.5), T("u8", [4], 0.25)), "BT305"),
        (made.fixed("SOFTMAX", "u8", 0.5, 0), "BT306"),
    ):
        assert only(content, code).severity == "warning"


def test_types_that_the_runtime_runs_are_warnings() -> None:
    late = only(made.late_softmax(), "BT201")
    assert (late.severity, late.expected, late.found) == ("warning", "int8", "int16")
    assert only(made.conv(b={"dtype": "s64"}), "BT201").severity == "error"


def test_versions_of_the_specification_are_no_error() -> None:
    for content, found in ((made.dense(), "per-tensor"), (made.dense_per_axis(), "per-axis")):
        finding = only(content, "BT209")
        assert (finding.severity, finding.found) == ("note", found)
        assert "neither is an error" in finding.message
        assert not bittrue.check_model(content).errors


def test_faults_in_later_graphs_are_found_there() -> None:
    finding = only(made.two_graphs(), "BT305")
    assert finding.graph == "second"
    assert [f.node for f in bittrue.check_model(made.two_layers(), select=["BT305"]).findings] == [0, 1]


def test_refusals_that_open_sizes_explain_are_notes() -> None:
    x = T("s8", [1, 4], 0.5, name="x", signature=[-1, 4])
    shape = T("s32", [1], data=np.array([84]))
    content = single("RESHAPE", ("ReshapeOptions", {"newShape": [84]}), [x, shape], [T("s8", [84], 0.5, name="y")])
    finding = only(content, "BT501")
    assert finding.severity == "note"
    assert "open sizes of x were taken as 1, give them with --shape" in finding.message
    assert not bittrue.check_model(content, shapes={"x": (21, 4)}).findings
    (wrong,) = bittrue.check_model(content, shapes={"x": (3, 4)}).findings
    assert (wrong.code, wrong.severity) == ("BT501", "error")


def test_sources_of_every_kind(tmp_path: Path) -> None:
    content = made.conv(w={"data": np.full(6, -128)})
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    by_path = bittrue.check_model(path)
    assert by_path.model == str(path)
    assert by_path.sha256
    # Commands that findings advise name the model where it has a name.
    findings = tuple(replace(found, advice=found.advice.replace(str(path), "MODEL")) for found in by_path.findings)
    assert findings != by_path.findings
    for source in (content, io.BytesIO(content), bytearray(content)):
        result = bittrue.check_model(source)
        assert (result.model, result.sha256, result.findings) == ("", by_path.sha256, findings)
    loaded = bittrue.check_model(bittrue.load(path))
    assert (loaded.model, loaded.sha256, loaded.findings) == ("", "", findings)


def test_result_is_valid_json() -> None:
    # A weight scale of 0 for a channel of zeros makes the ratio infinite.
    quantized = np.array([[1, -2], [0, 0], [-127, 4]]).reshape(3, 1, 1, 2)
    content = made.conv(w={"scale": [0.25, 0.0, 0.125], "data": quantized}, b={"scale": [0.125, 0.25, 0.0625]})
    result = bittrue.check_model(content)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["format"] == "bittrue-check-1"
    assert plain["errors"] == plain["counts"]["error"] == result.errors > 0
    found = next(finding for finding in plain["findings"] if finding["code"] == "BT301")
    assert found["numbers"]["ratio"] == "inf"
    assert {rule["code"] for rule in plain["rules"]} >= {finding["code"] for finding in plain["findings"]}


@pytest.mark.parametrize("quantized", [False, True])
def test_onnx_models_are_checked_too(quantized: bool) -> None:
    result = bittrue.check_model(made.onnx_model(quantized))
    assert result.model_format == "onnx"
    assert result.numerics == "onnxruntime"
    assert {rule.code for rule in result.rules}.isdisjoint({"BT204", "BT301"})
    assert ("BT102" in {finding.code for finding in result.findings}) != quantized
    assert not result.failures


def reference(content: bytes) -> np.ndarray:
    """What LiteRT's reference kernels make of ones."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for port in interpreter.get_input_details():
        interpreter.set_tensor(port["index"], np.ones(port["shape"], port["dtype"]))
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


REFUSED = {
    "BT205": lambda: made.conv(w={"zero_point": [0, 0, 1]}),
    "BT207": lambda: made.dense({"scale": [0.25, 0.5], "axis": 1}),
    "BT303": lambda: made.conv(b={"shape": [2], "scale": 0.125, "data": np.ones(2)}),
    "BT304": lambda: made.conv(b={"axis": 3}),
    "BT305": lambda: made.concatenation(0.25),
    "BT307": lambda: made.fixed("LOGISTIC", "s8", 1 / 128, -128),
    "BT309": lambda: made.fixed("L2_NORMALIZATION", "s8", 1 / 64, 0),
    "BT310": lambda: made.fixed("LOG_SOFTMAX", "s8", 1 / 8, 127),
}
IGNORED = {
    "BT204": lambda: made.conv(w={"data": np.full(6, -128)}),
    "BT206": lambda: made.conv(x={"scale": [0.5, 0.25], "axis": 3}),
    "BT207": lambda: made.depthwise({"scale": [0.25, 0.5], "axis": 1}),
    "BT301": lambda: made.conv(b={"scale": [1.25, 2.5, 0.625]}),
    "BT302": lambda: made.conv(b={"zero_point": [0, 4, 0]}),
    "BT305": lambda: made.reshape(T("s8", [4], 0.5), T("s8", [4], 0.25)),
    "BT307": lambda: made.fixed("LOGISTIC", "s8", 1 / 256, 0),
    "BT308": lambda: made.fixed("TANH", "s8", 1 / 64, 5),
}


@pytest.mark.parametrize("code", sorted(REFUSED))
def test_pages_say_what_the_runtime_refuses(code: str) -> None:
    content = REFUSED[code]()
    assert only(content, code).severity == "error"
    with pytest.raises((RuntimeError, ValueError)):
        reference(content)


@pytest.mark.parametrize("code", sorted(IGNORED))
def test_pages_say_what_the_runtime_ignores(code: str) -> None:
    content = IGNORED[code]()
    assert only(content, code).severity == "error"
    reference(content)


def test_what_the_runtime_makes_of_ignored_parameters() -> None:
    right = reference(made.conv())
    assert (reference(IGNORED["BT301"]()) == right).all()
    assert (reference(IGNORED["BT302"]()) == right).all()
    # Only the zero point of the output is left.
    assert (reference(IGNORED["BT206"]()) == 7).all()
