"""SNPS Caffe, CPU paths: layers on binary32 blobs that hold integers.

`snps_caffe-ev` and `snps_caffe-sr` are the same with the environment variable CAFFE_QUANTIZED_ROUND set to EV or SR;
`snps_caffe-document` is what the system's own document says instead.
"""

from __future__ import annotations

from ..table import Numerics, Row
from . import convolutions, elementwise, movement, pooling

_VERSION = "SNPS Caffe, commit 977ba36a, CPU, binary32 blobs"
_RUN = "1414 recorded layers of the built system, and whole networks of them"

_SHARED: tuple[Row, ...] = (*elementwise.ROWS, *movement.ROWS, *pooling.ROWS)

SNPS_CAFFE = Numerics("snps_caffe", _VERSION, _RUN, (*convolutions.ROWS, *_SHARED))
SNPS_CAFFE_EV = Numerics(
    "snps_caffe-ev", f"{_VERSION}, CAFFE_QUANTIZED_ROUND=EV", _RUN, (*convolutions.EV_ROWS, *_SHARED)
)
SNPS_CAFFE_SR = Numerics(
    "snps_caffe-sr", f"{_VERSION}, CAFFE_QUANTIZED_ROUND=SR", _RUN, (*convolutions.SR_ROWS, *_SHARED)
)
SNPS_CAFFE_DOCUMENT = Numerics(
    "snps_caffe-document",
    "QUANTIZED_OP.md of SNPS Caffe, as written",
    "read; where the document says nothing, rows are those of `snps_caffe`",
    (*convolutions.DOCUMENT_ROWS, *elementwise.DOCUMENT_ROWS, *pooling.DOCUMENT_ROWS, *_SHARED),
)
