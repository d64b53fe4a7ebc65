"""What the check says about real models: the known faults, and no error about the good ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import bittrue
from support.shared import needs_shared, shared_models

# Models with true errors, and how many of each rule.
FAULTY = {
    # 14 biases of one dimension whose scales are said to belong to dimension 3.
    "tflm_person_detect": {"BT304": 14},
    # Seven SVDF of int8 state, which LiteRT's kernel reads as int16; five layers with a weight of -128.
    "tflm_keyword_scrambled_8bit": {"BT502": 7, "BT204": 5},
}
UINT8 = {"coral_deeplabv3_mnv2_dm05_pascal_quant", "coral_mobilenet_v1_0.25_128_quant", "coral_split_concat"}


# Rules have fixtures of their own; real models are looked at in turns.
@pytest.mark.in_turns(2)
@needs_shared
@pytest.mark.parametrize("path", shared_models(), ids=lambda path: path.stem)
def test_known_faults_and_no_other_errors(path: Path) -> None:
    result = bittrue.check_model(path)
    assert not result.failures
    errors = Counter(finding.code for finding in result.findings if finding.severity == "error")
    assert errors == Counter(FAULTY.get(path.stem, {}))
    notes = {finding.code for finding in result.findings if finding.severity == "note"}
    assert ("BT103" in notes) == (path.stem in UINT8)
    assert "BT102" not in notes


@needs_shared
def test_person_detect_is_told_how_to_mend_it() -> None:
    path = next(path for path in shared_models() if path.stem == "tflm_person_detect")
    found = bittrue.check_model(path, select=["bias-dimension"]).findings
    first = found[0]
    assert (first.node, first.source, first.severity) == (0, "DEPTHWISE_CONV_2D", "error")
    assert first.tensor == "MobilenetV1/MobilenetV1/Conv2d_0/Conv2D_bias"
    assert (first.expected, first.found) == ("0", "3")
    assert "LiteRT 2.3 refuses to load the file" in first.message
    assert "set quantized_dimension of this tensor to 0" in first.advice
    # The advice is right: with it followed, nothing is found, and LiteRT takes the file.
    mended = _with_dimension_0(path.read_bytes())
    assert bittrue.check_model(mended, select=["BT3"]).findings == ()
    _accepted(mended)
    with pytest.raises(ValueError, match="quantized_dimension"):
        _accepted(path.read_bytes())


def _with_dimension_0(content: bytes) -> bytes:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content)
    for tensor in model.subgraphs[0].tensors:
        if len(tensor.shape) == 1 and tensor.quantization is not None:
            tensor.quantization.quantizedDimension = 0
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _accepted(content: bytes) -> None:
    from ai_edge_litert.interpreter import Interpreter

    Interpreter(model_content=content).allocate_tensors()


@needs_shared
def test_scrambled_weights_are_found_with_channel_and_element() -> None:
    path = next(path for path in shared_models() if path.stem == "tflm_keyword_scrambled_8bit")
    result = bittrue.check_model(path, select=["BT204"])
    graph = bittrue.load(path).graph
    for finding in result.findings:
        weight = next(tensor for tensor in graph.tensors if tensor.name == finding.tensor)
        values = weight.values()
        assert finding.numbers["count"] == (values == -128).sum() > 0
        element = tuple(int(i) for i in finding.place.removeprefix("element [").rstrip("]").split(","))
        assert values[element] == -128
        assert finding.numbers["channel"] == element[0]
