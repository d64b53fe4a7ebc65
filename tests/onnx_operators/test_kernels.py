"""Every operator that the installed runtime has a kernel for is implemented, or stands here with its reason."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as internals

from bittrue.importers.onnx_operators import _table

_RANDOM = "random: no two runs give the same bytes"
_TEXTS = "texts, no numbers"
_SEARCH = "a whole search in one node"
_OLD = "of experimental operators that no operator set has"
_ENGINE = "the runtime inserts it between devices; files have none"

REASONS: dict[str, dict[tuple[str, ...], str]] = {
    "": {
        ("Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"): _RANDOM,
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"): _TEXTS,
        ("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"): _OLD,
        ("MemcpyFromHost", "MemcpyToHost"): _ENGINE,
    },
    "com.microsoft": {
        ("SampleOp", "Sampling"): _RANDOM,
        ("MurmurHash3", "Tokenizer"): _TEXTS,
        ("BeamSearch", "GreedySearch", "WhisperBeamSearch"): _SEARCH,
        ("SparseAttention",): "its caches are inputs and outputs in one memory, which only bound buffers are",
        ("SparseToDenseMatMul",): "sparse tensors are not read",
        ("MatMulFpQ4",): "refused by the runtime where it was run",
    },
    "ai.onnx.ml": {("SVMClassifier", "SVMRegressor", "TreeEnsemble"): "classical models that few exporters write"},
}


def _without_mapping() -> Iterator[tuple[str, str]]:
    kernels = {
        (kernel.domain, kernel.op_name)
        for kernel in internals.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider"
    }
    assert len(kernels) > 300
    yield from kernels - _table().keys()


@pytest.mark.skipif(not onnxruntime.__version__.startswith("1.31."), reason="another version has other kernels")
def test_every_kernel_is_mapped_or_has_a_reason() -> None:
    reasons = {(domain, name) for domain, groups in REASONS.items() for names in groups for name in names}
    # On aarch64 kernels of other layouts stand in for those of the files' nodes.
    found = set(_without_mapping())
    laid_out = {one for one in found if one[0] == "com.ms.internal.nhwc" or one[1] == "NhwcFusedConv"}
    assert not laid_out or platform.machine() == "aarch64"
    assert found - laid_out == reasons
