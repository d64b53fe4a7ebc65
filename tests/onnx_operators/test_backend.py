"""`bittrue.onnx_backend`: the official backend tests of the onnx package, and the interface they go through."""

from __future__ import annotations

import re
import unittest
import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto, helper

import bittrue
import bittrue.onnx_backend
from bittrue.onnx_backend import BittrueBackend

# Every test of these operators must pass; of all others, those that can be prepared.
DEMANDED = re.compile(
    r"test_(quantizelinear|dequantizelinear|dynamicquantizelinear|qlinear(conv|matmul)|matmulinteger|convinteger|basic_convinteger)"
    r".*_cpu$"
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    OFFICIAL = onnx.backend.test.BackendTest(bittrue.onnx_backend, __name__)
OFFICIAL.include(DEMANDED.pattern)
globals().update(OFFICIAL.test_cases)
EOF_MARK = None
