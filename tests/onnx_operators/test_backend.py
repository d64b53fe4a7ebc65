"""`bittrue.onnx_backend`: the official backend tests of the onnx package, and the interface they go through."""

from __future__ import annotations

import re
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test import runner

import bittrue
import bittrue.onnx_backend
from bittrue.onnx_backend import BittrueBackend
from support.official_onnx import official_cases

# The official tests that must pass; of the others, all that can be prepared must give the expected values, too.
DEMANDED = re.compile(
    r"test_(quantizelinear|dequantizelinear|dynamicquantizelinear|qlinear(conv|matmul)|matmulinteger|(basic_)?convinteger)"
)


@pytest.fixture(scope="module", autouse=True)
def narrow_types() -> Iterator[None]:
    """Collecting its cases, which takes seconds, the package converts to narrow types beyond their range."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Vectors that say something else than the specification's text, and what the runtime gives.
CONTRADICTING = {
    # length_resized is "the length of the resized tensor", 2 and 3; the vectors were made with fractions, 2.4 and 3.2.
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
    # Positions count in an image that is smaller than output_shape; the runtime takes them as positions in the output.
    "test_maxunpool_export_with_output_shape",
}


# Sums of f32 that cancel: what the vectors say is 0 is small beside the largest value, in the runtime, too.
CANCELLING = re.compile(r"test_(dft|stft)")


def values_of(data: Any) -> Any:
    return numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)


def test_the_official_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own way to run them, unchanged: classes of unittest."""
    load = runner.load_model_tests
    # Making those of single nodes takes seconds.
    monkeypatch.setattr(
        runner, "load_model_tests", lambda kind: official_cases() if kind == "node" else load(kind=kind)
    )
    official = onnx.backend.test.BackendTest(bittrue.onnx_backend, __name__)
    official.include(DEMANDED.pattern + ".*_cpu$")
    names = re.compile(DEMANDED.pattern + ".*_cpu$")
    # Thousands of tests are left in them that were not asked for and only say so.
    suite = unittest.TestSuite(
        case(name) for case in official.test_cases.values() for name in vars(case) if names.match(name)
    )
    result = suite.run(unittest.TestResult())
    assert result is not None
    assert result.testsRun >= 45
    assert not [*result.failures, *result.errors, *result.skipped]


def test_every_official_test_that_can_be_prepared(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """Types and shapes as in the official tests, and the bytes, but for operators without bits of their own. What is
    not demanded is taken in turns, every second one by the seed.
    """
    option = request.config.option
    counts = {"equal": 0, "within the tests' tolerance": 0}
    demanded, refused = 0, []
    cases = [
        case
        for number, case in enumerate(official_cases())
        if option.deep or DEMANDED.match(case.name) or (number + option.seed) % 2 == 0
    ]
    for case in cases:
        if case.name in CONTRADICTING:
            continue
        try:
            prepared = bittrue.onnx_backend.prepare(case.model)
        except bittrue.UnsupportedError as error:
            refused.append(f"{case.name}: {error}")
            continue
        equal = True
        for inputs, expected in case.data_sets:
            try:
                results = prepared.run([values_of(value) for value in inputs])
            except bittrue.UnsupportedError as error:
                # Where shapes decide.
                refused.append(f"{case.name}: {error}")
                break
            for value, result in zip(map(values_of, expected), results, strict=True):
                assert (result.dtype, result.shape) == (value.dtype, value.shape), case.name
                if result.tobytes() != value.tobytes():
                    equal = False
                    # Real numbers whose last bits the package rounds in another order than ours.
                    assert result.dtype.kind == "f", case.name
                    atol = case.rtol * np.abs(value).max() if CANCELLING.match(case.name) else case.atol
                    np.testing.assert_allclose(result, value, case.rtol, atol, err_msg=case.name)
        else:
            counts["equal" if equal else "within the tests' tolerance"] += 1
            demanded += bool(DEMANDED.match(case.name))
            assert equal or not DEMANDED.match(case.name), case.name
    assert not [line for line in refused if DEMANDED.match(line)]
    assert demanded >= 45
    counts["refused"] = len(refused)
    record_property(
        "compared",
        f"official ONNX backend tests: {len(cases)}, {', '.join(f'{n} {what}' for what, n in counts.items())}; "
        f"{demanded} of quantization, all equal",
    )


def test_devices() -> None:
    assert BittrueBackend.supports_device("CPU")
    assert not BittrueBackend.supports_device("CUDA")
    with pytest.raises(bittrue.InputError, match="BT-DEVICE"):
        BittrueBackend.prepare(model(), "CUDA")


def model(rows: Any = "N") -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [rows, 2])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [2, rows])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("numerics", ["onnx", "onnxruntime"])
def test_inputs_and_results(numerics: str, tmp_path: Any) -> None:
    onnx.save(model(), tmp_path / "m.onnx")
    for source in (model(), model().SerializeToString(), tmp_path / "m.onnx"):
        prepared = bittrue.onnx_backend.prepare(source, numerics=numerics, rtol=1e-3)
        for rows in (3, 1, 0, 3):
            x = np.arange(2 * rows, dtype=np.uint8).reshape(rows, 2)
            for given in ([x], (x,), {"x": x}, x):
                results = prepared.run(given)
                assert isinstance(results, tuple)
                assert results[0].tolist() == results["y"].tolist() == results.y.tolist() == x.T.tolist()
    for given, code in (([], "BT-INPUT-COUNT"), ([x, x], "BT-INPUT-COUNT"), ({"q": x}, "BT-INPUT-NAME")):
        with pytest.raises(bittrue.InputError, match=code):
            prepared.run(given)
    with pytest.raises(bittrue.InputError, match="BT-INPUT-TYPE"):
        prepared.run([x.astype(np.int8)])
    assert bittrue.onnx_backend.run(model(), [x])[0].shape == (2, 3)
    with pytest.raises(bittrue.InputError, match="BT-NUMERICS"):
        bittrue.onnx_backend.prepare(model(), numerics="none")


def test_nodes() -> None:
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    x = np.uint8([[1, 2], [3, 4]])
    for info in (None, [(np.uint8, (2, 2))]):
        (y,) = bittrue.onnx_backend.run_node(node, [x], outputs_info=info, opset_version=13)
        assert y.tolist() == [[1, 3], [2, 4]]
    assert bittrue.onnx_backend.run_node(node, {"x": x}).y.tolist() == [[1, 3], [2, 4]]
    with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-TYPE"):
        bittrue.onnx_backend.run_node(node, [x], outputs_info=[(np.int8, (2, 2))])
    with pytest.raises(bittrue.InputError, match="BT-INPUT-COUNT"):
        bittrue.onnx_backend.run_node(node, [x, x])
    with pytest.raises(bittrue.InputError, match="BT-INPUT-TYPE"):
        bittrue.onnx_backend.run_node(node, [np.zeros(2, "datetime64[s]")])


def test_compatible() -> None:
    assert bittrue.onnx_backend.is_compatible(model())
    assert not bittrue.onnx_backend.is_compatible(model(), "CUDA")
    unknown = model()
    unknown.graph.node[0].op_type = "NoSuchOperator"
    assert not bittrue.onnx_backend.is_compatible(unknown)


@pytest.mark.parametrize(
    ("op_type", "attributes"), [("LogSoftmax", {}), ("Softmax", {}), ("ReduceLogSumExp", {"axes": [1]})]
)
def test_exponentials_of_any_numbers(op_type: str, attributes: dict[str, Any]) -> None:
    """Found by mutated files: differences far beyond what decimals can take to a power of e."""
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    prepared = bittrue.onnx_backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
    rng = np.random.default_rng(5)
    for scale in (1e3, 1e9, 1e20, 3e38):
        x = (rng.uniform(-1, 1, (100, 3)) * scale).astype(np.float32)
        (y,) = prepared.run([x])
        wide = x.astype(np.float64)
        largest = wide.max(1, keepdims=True)
        sums = np.exp(wide - largest).sum(1, keepdims=True)
        if op_type == "Softmax":
            assert (y.sum(1) > 0.999).all()
        else:
            expected = largest + np.log(sums) if op_type == "ReduceLogSumExp" else wide - largest - np.log(sums)
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(y, expected.astype(np.float32), rtol=1e-6, atol=1e-12)
