"""Dynamically quantized transformers against ONNX Runtime: equal, or the runtime's fusions are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import bittrue
from bittrue.compare import search
from bittrue.compare.hypotheses.case import Case, Hypothesis
from bittrue.compare.joined import Joined
from bittrue.compare.result import CompareResult
from bittrue.rewrites.onnxruntime_optimizer import fuse_reals
from support.onnx_models import HERE, needs_measured
from support.transformers import encoder

pytestmark = needs_measured
ARM = HERE.endswith("@aarch64")
# Nothing differs there without the rules that these tests take away.
needs_other_bits = pytest.mark.skipif(ARM, reason="on aarch64 the bits are the same without the rule")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder(tmp_path_factory.mktemp("encoder") / "model.onnx", layers=2)


@pytest.mark.parametrize("bias_first", [False, True])
@pytest.mark.parametrize("opset", [13, 17])
def test_equal(tmp_path: Path, opset: int, bias_first: bool) -> None:
    """Also where the runtime's products hold their bias, which is then not added behind the residual."""
    path = encoder(tmp_path / "model.onnx", opset=opset, bias_first=bias_first)
    result = bittrue.compare_models(path, f"ort:{path}", seeds=range(3))
    assert result.equal
    assert {pair.how for pair in result.pairs} == {"name"}


@pytest.fixture
def predictions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a hypothesis has been computed: one entry."""
    count, predict = [0], Case.predict

    def counted(self: Case, *given: object) -> np.ndarray | None:
        count[0] += 1
        return predict(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Case, "predict", counted)
    return count


def _names(result: CompareResult) -> set[str]:
    """Names of the causes; every difference has a proven one."""
    verdicts = [pair.verdict for pair in result.pairs if pair.verdict is not None and pair.verdict.differing]
    assert verdicts
    assert all(v.exact and not v.unexplained for v in verdicts)
    assert not any("instead of `onnxruntime`" in v.text for v in verdicts)
    return {cause.name for v in verdicts for cause in v.causes}


@pytest.mark.parametrize("level", ["disable", "basic", "extended"])
def test_levels(model: Path, level: str) -> None:
    result = bittrue.compare_models(model, f"ort:{model}?level={level}")
    if level == "extended":
        assert result.equal
    else:
        single = {"operators=matmul + div", "operators=div + erf + add + mul + mul"}
        # On aarch64 normalizations have the same bits, but a product holds its bias there.
        other = "scale_back=binary32_product_of_scales" if ARM else "operators=LayerNormalization"
        assert _names(result) == {*single, other}


@needs_other_bits
def test_fusion_that_is_not_modelled(model: Path, monkeypatch: pytest.MonkeyPatch, predictions: list[int]) -> None:
    """Node by node the runtime gives A's bits: its fused operator is the whole difference."""
    monkeypatch.setattr(fuse_reals, "join_skipped_sums", lambda *_: None)
    result = bittrue.compare_models(model, f"ort:{model}")
    assert _names(result) == {"operators=SkipLayerNormalization"}
    verdicts = [p.verdict for p in result.pairs if p.verdict is not None and p.verdict.differing]
    assert all(
        "makes of Add + LayerNormalization: one by one, these give the other side's bits" in v.text for v in verdicts
    )
    # Rules that tables have, and nothing else: faults are thousands.
    assert predictions[0] < 40 * len(verdicts)


@needs_other_bits
def test_fusion_of_the_side_that_judges(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that its numerics does not reproduce judges nobody; what it has joined is said."""
    monkeypatch.setattr(fuse_reals, "join_skipped_sums", lambda *_: None)
    result = bittrue.compare_models(f"ort:{model}", model)
    notes = [pair.note for pair in result.pairs if "not reproduced" in pair.note]
    assert len(notes) == 4
    assert all(
        "SkipLayerNormalization, which its optimiser makes of Add + LayerNormalization" in note for note in notes
    )


@needs_other_bits
def test_search_in_vain(model: Path, monkeypatch: pytest.MonkeyPatch, predictions: list[int]) -> None:
    """What nothing explains is searched on two tensors of one form, and the others say so."""
    monkeypatch.setattr(fuse_reals, "join_skipped_sums", lambda *_: None)
    monkeypatch.setattr(Joined, "cause", lambda *_: None)
    # One of them is that the fused operator sums first, which is the truth, and so is a rule for the row's sums.
    monkeypatch.setattr(search, "RARE", ())
    predict = Case.predict

    def without(self: Case, hypotheses: Sequence[Hypothesis], position: int) -> np.ndarray | None:
        true = any(h.cause.name == "real_normalization=binary64_running" for h in hypotheses)
        return None if true else predict(self, hypotheses, position)

    monkeypatch.setattr(Case, "predict", without)
    said: list[tuple[str, int]] = []
    result = bittrue.compare_models(model, f"ort:{model}", progress=lambda text, done, _: said.append((text, done)))
    searched = [text for text, _ in said if "causes tried" in text]
    # A bar that shows this moves while a tensor is searched.
    assert len(set(searched)) > 100
    verdicts = [p.verdict for p in result.pairs if p.verdict is not None and p.verdict.differing]
    assert len(verdicts) == 4
    assert all(v.unexplained == v.differing for v in verdicts)
    assert ["not searched" in v.text for v in verdicts] == [False, False, True, True]
    assert not any("instead of `onnxruntime`" in v.text for v in verdicts)
    assert any(note.startswith("2 tensors were not searched") for note in result.notes)


@needs_other_bits
def test_bias_that_moved_into_a_product(model: Path, monkeypatch: pytest.MonkeyPatch, predictions: list[int]) -> None:
    """A adds the bias last, B holds it in the product: sums with and without it are no partners."""
    monkeypatch.setattr("bittrue.rewrites.onnxruntime_optimizer.real_groups.is_integer_product", lambda *_: False)
    result = bittrue.compare_models(model, f"ort:{model}")
    assert _names(result) == {"operators=DynamicQuantizeMatMul + SkipLayerNormalization"}
    assert all(pair.a == pair.b for pair in result.pairs)
    assert not any("MatMul_output_0" in pair.a and not pair.cumulative.equal for pair in result.pairs)
    verdicts = [p.verdict for p in result.pairs if p.verdict is not None and p.verdict.differing]
    assert predictions[0] < 40 * len(verdicts)


def test_another_file_is_no_fusion(model: Path, tmp_path: Path) -> None:
    """Of a file with another constant the runtime's fusion explains nothing."""
    proto = onnx.load(model)
    weight = next(t for t in proto.graph.initializer if t.name == "encoder.layer.0.attention.LayerNorm.weight")
    values = numpy_helper.to_array(weight).copy()
    values[3] *= 1.5
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(proto, tmp_path / "other.onnx")
    result = bittrue.compare_models(model, f"ort:{tmp_path / 'other.onnx'}")
    verdicts = [p.verdict for p in result.pairs if p.verdict is not None and p.verdict.differing]
    assert len(verdicts) == 1
    assert verdicts[0].exact
    assert not any(cause.name.startswith("operators=") for cause in verdicts[0].causes)
    assert "LayerNorm.weight" in verdicts[0].text
