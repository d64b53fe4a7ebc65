"""The named arithmetics of runtimes: one table file per runtime, no arithmetic of their own."""

from __future__ import annotations

import importlib

from ..errors import InputError
from ..names import near_or_all
from .table import Numerics, Row

# name -> module of this folder and the attribute that holds the table
_TABLES = {
    "litert": ("litert", "LITERT"),
    "litert-as-compiled": ("litert_as_compiled", "LITERT_AS_COMPILED"),
    "litert-optimized": ("litert_optimized", "LITERT_OPTIMIZED"),
    "xnnpack": ("xnnpack", "XNNPACK"),
    "xnnpack-avx2": ("xnnpack_avx2", "XNNPACK_AVX2"),
    "litert@aarch64": ("aarch64.litert", "LITERT_AARCH64"),
    "litert-optimized@aarch64": ("aarch64.litert_optimized", "LITERT_OPTIMIZED_AARCH64"),
    "xnnpack@aarch64": ("aarch64.xnnpack", "XNNPACK_AARCH64"),
    "litert@1.2": ("litert_1_2", "LITERT_1_2"),
    "single-rounding": ("single_rounding", "SINGLE_ROUNDING"),
    "onnx": ("onnx", "ONNX"),
    "onnxruntime": ("onnxruntime", "ONNXRUNTIME"),
    "onnxruntime-avx2": ("onnxruntime_avx2", "ONNXRUNTIME_AVX2"),
    "onnxruntime-defaults": ("onnxruntime_defaults", "ONNXRUNTIME_DEFAULTS"),
    "onnxruntime-avx2-defaults": ("onnxruntime_defaults", "ONNXRUNTIME_AVX2_DEFAULTS"),
    "onnxruntime@aarch64": ("aarch64.onnxruntime", "ONNXRUNTIME_AARCH64"),
    "snps_caffe": ("snps_caffe", "SNPS_CAFFE"),
    "snps_caffe-ev": ("snps_caffe", "SNPS_CAFFE_EV"),
    "snps_caffe-sr": ("snps_caffe", "SNPS_CAFFE_SR"),
    "snps_caffe-document": ("snps_caffe", "SNPS_CAFFE_DOCUMENT"),
    "caffe2": ("caffe2", "CAFFE2"),
    "caffe2-avx2": ("caffe2", "CAFFE2_AVX2"),
    "caffe2-dnnlowp": ("caffe2", "CAFFE2_DNNLOWP"),
    "caffe2-dnnlowp-avx2": ("caffe2", "CAFFE2_DNNLOWP_AVX2"),
    "mxnet": ("mxnet", "MXNET"),
    "mxnet-avx2": ("mxnet_avx2", "MXNET_AVX2"),
    "mxnet-native": ("mxnet_native", "MXNET_NATIVE"),
    "tvm-qnn": ("tvm_qnn", "TVM_QNN"),
    "tvm-qnn-tonearest": ("tvm_qnn", "TVM_QNN_TONEAREST"),
    "tvm-qnn-float32": ("tvm_qnn", "TVM_QNN_FLOAT32"),
    "tvm-qnn-float32-tonearest": ("tvm_qnn", "TVM_QNN_FLOAT32_TONEAREST"),
    "tvm-qnn-float64": ("tvm_qnn", "TVM_QNN_FLOAT64"),
    "tvm-qnn-float64-tonearest": ("tvm_qnn", "TVM_QNN_FLOAT64_TONEAREST"),
}

DEFAULT = "litert"
# What people mean who name no numerics, by the format of their model file.
_BY_FORMAT = {
    "tflite": "litert",
    "onnx": "onnxruntime",
    "caffe": "snps_caffe",
    "caffe2": "caffe2",
    "mxnet": "mxnet",
    "qnn": "tvm-qnn",
}


def default_of(file_format: str) -> str:
    """The numerics of the runtime that a format comes with."""
    return _BY_FORMAT.get(file_format, DEFAULT)


def names() -> tuple[str, ...]:
    """All numerics that `find` knows."""
    return tuple(_TABLES)


def distinct() -> tuple[str, ...]:
    """The numerics that are told apart by results: those that complete another one are left out."""
    return tuple(name for name in _TABLES if not find(name).completes)


def find(name: str) -> Numerics:
    """The numerics called `name`; InputError for an unknown name."""
    if name not in _TABLES:
        advice = near_or_all(name, _TABLES, "choose one of")
        raise InputError("BT-NUMERICS", f"unknown numerics '{name}'", advice=advice)
    module, attribute = _TABLES[name]
    table: Numerics = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return table


__all__ = ["DEFAULT", "Numerics", "Row", "default_of", "distinct", "find", "names"]
