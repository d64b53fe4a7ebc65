"""The ONNX form of .tflite cases: valid, the same ports, and near to the original in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from bittrue.check.specification import SPECIFICATION
from bittrue.conformance.expected import Expected
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.conformance.suite.qdq import MAPPERS, as_qdq_onnx, qdq_form
from bittrue.conformance.suite.tflite import Operand, one_operator
from support.onnx_models import Refused, run_runtime

SUITE = find_suite("litert")
# Off by more than one quantized value: LiteRT's tables and its bilinear weights are coarse.
COARSE = {"LOG_SOFTMAX": 6, "RESIZE_BILINEAR": 2}


def near(case: SuiteCase, most: int) -> None:
    content = as_qdq_onnx(case)
    assert content is not None, f"{case.identity}: {qdq_form(case).reason}"
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    theirs = run_runtime(content, [case.inputs[port.name] for port in model.graph.input])
    assert not isinstance(theirs, Refused), f"{case.identity}: {theirs.message}"
    for name, value in Expected(case, ["litert"]).outputs("litert").items():
        assert theirs[name].shape == value.shape, case.identity
        assert theirs[name].dtype == value.dtype, case.identity
        off = np.abs(theirs[name].astype(np.float64) - value.astype(np.float64))
        assert not off.size or off.max() <= most, f"{case.identity} ({case.note}): off by {off.max()}"


# Beyond the specification's operators, and without a form so far.
OPERATORS = tuple(operator for operator in SUITE.generators() if operator not in ("BATCH_MATMUL", "TRANSPOSE_CONV"))


@pytest.mark.in_turns(3, by="operator")
@pytest.mark.parametrize("operator", OPERATORS)
def test_cases_of_the_suite(operator: str) -> None:
    seen: dict[str, int] = {}
    for case in SUITE.cases([operator]):
        # A few of each aim; what is special about the others are their numbers.
        seen[case.aim] = seen.get(case.aim, 0) + 1
        if not case.rejects and seen[case.aim] <= 4 and qdq_form(case).reason != "batch dimensions":
            near(case, COARSE.get(operator, 1))
    assert seen


def _x(shape: tuple[int, ...], scale: float = 0.1, zero_point: int = 5, dtype: str = "s8") -> Operand:
    return Operand(dtype, shape, scale, zero_point)


def _axes(*values: int) -> Operand:
    return Operand("s32", (len(values),), data=np.array(values, np.int32))


_IMAGE = (1, 5, 6, 3)
_POOL = {"filter_width": 2, "filter_height": 3, "padding": "SAME", "stride_w": 2, "stride_h": 1}
SINGLES: tuple[tuple[str, list[Operand], Operand, dict[str, Any] | None], ...] = (
    ("AVERAGE_POOL_2D", [_x(_IMAGE)], _x((1, 5, 3, 3)), _POOL),
    ("MAX_POOL_2D", [_x(_IMAGE)], _x((1, 5, 3, 3)), _POOL),
    (
        "AVERAGE_POOL_2D",
        [_x(_IMAGE)],
        _x((1, 3, 3, 3)),
        {**_POOL, "padding": "VALID", "fused_activation_function": "RELU6"},
    ),
    ("L2_NORMALIZATION", [_x(_IMAGE)], _x(_IMAGE, 1 / 128, 0), {}),
    ("MEAN", [_x(_IMAGE), _axes(1, 2)], _x((1, 3)), {}),
    ("MEAN", [_x(_IMAGE, 0.1, 0, "s16"), _axes(1, -2)], _x((1, 1, 1, 3), 0.1, 0, "s16"), {"keep_dims": True}),
    ("SUM", [_x(_IMAGE), _axes(3)], _x((1, 5, 6), 0.3), {}),
    ("REDUCE_MAX", [_x(_IMAGE), _axes(3)], _x((1, 5, 6)), {}),
    ("QUANTIZE", [_x(_IMAGE)], _x(_IMAGE, 0.13, -3), None),
    ("DEQUANTIZE", [_x(_IMAGE)], Operand("f32", _IMAGE), None),
    ("LEAKY_RELU", [_x(_IMAGE)], _x(_IMAGE), {"alpha": 0.1}),
    ("RELU", [_x(_IMAGE)], _x(_IMAGE), None),
    ("RELU6", [_x(_IMAGE)], _x(_IMAGE), None),
    ("RELU_N1_TO_1", [_x(_IMAGE)], _x(_IMAGE), None),
    ("HARD_SWISH", [_x(_IMAGE)], _x(_IMAGE), None),
    ("DEPTH_TO_SPACE", [_x((1, 2, 3, 8))], _x((1, 4, 6, 2)), {"block_size": 2}),
    ("EXPAND_DIMS", [_x(_IMAGE), _axes(1)], _x((1, 1, 5, 6, 3)), None),
    ("ABS", [_x(_IMAGE)], _x(_IMAGE), None),
    ("ARG_MIN", [_x(_IMAGE), _axes(3)], Operand("s64", (1, 5, 6)), {"output_type": "INT64"}),
)


@pytest.mark.parametrize("number", range(len(SINGLES)))
def test_operators_beyond_the_suite(number: int) -> None:
    operator, inputs, output, options = SINGLES[number]
    x = np.random.default_rng(number).integers(-128, 128, inputs[0].shape)
    content = one_operator(operator, inputs, [output], options)
    value = x.astype(np.int16 if inputs[0].dtype == "s16" else np.int8)
    near(SuiteCase(operator, "litert", operator, "s8", "random", "tflite", content, {"input0": value}), 1)


def test_what_onnx_cannot_say_has_a_reason() -> None:
    reasons = {qdq_form(case).reason for case in SUITE.cases(["GATHER"])}
    assert "batch dimensions" in reasons
    assert qdq_form(next(find_suite("onnx").cases(["QLinearAdd"]))).reason == "it is a model of the format onnx"
    rejected = next(case for case in SUITE.cases(["CONV_2D"], aims=["rejects"]))
    assert as_qdq_onnx(rejected) is None
    assert qdq_form(rejected).reason == "a model that must be refused"


def test_every_operator_of_the_suite_has_a_form() -> None:
    assert set(SPECIFICATION) <= set(OPERATORS)
    for operator in OPERATORS:
        case = next(case for case in SUITE.cases([operator]) if not case.rejects)
        assert case.model.graph.nodes[0].operator in MAPPERS, operator
