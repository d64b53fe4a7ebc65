"""Numerics `caffe2` and `caffe2-dnnlowp`, each also with `-avx2`: the Int8 operators of Caffe2 as PyTorch 1.8.1 has
them, x86-64.

Caffe2 has two engines for them, and a file names one operator by operator: the default one, which runs QNNPACK in
fixed point, and DNNLOWP, which runs FBGEMM and rescales in binary32. `caffe2` goes by the file; `caffe2-dnnlowp` takes
DNNLOWP for every operator that it has, whatever the file says. Scales and zero points of tensors are those of the file
as its own engines set them. With `-avx2` they are those of a processor without VNNI.
"""

from __future__ import annotations

from ...records import replace
from ..table import Numerics, Row
from .avx2 import ROWS as _AVX2
from .default import ROWS as _DEFAULT
from .dnnlowp import ROWS as _DNNLOWP

_WANTED = ("attribute_is", "engine", "DNNLOWP")


def _where_asked_for(row: Row) -> Row:
    return replace(row, when=(_WANTED, *row.when))


CAFFE2 = Numerics(
    "caffe2",
    "Caffe2's Int8 operators of PyTorch 1.8.1, the engine that the file names for each, x86-64",
    "vectors recorded from PyTorch 1.8.1: every operator, and small nets with all intermediate tensors",
    (*map(_where_asked_for, _DNNLOWP), *_DEFAULT),
)

CAFFE2_DNNLOWP = Numerics(
    "caffe2-dnnlowp",
    "Caffe2's Int8 operators of PyTorch 1.8.1, engine DNNLOWP wherever it exists, x86-64 with VNNI, one thread",
    "vectors recorded from PyTorch 1.8.1: every operator, and small nets with all intermediate tensors",
    (*_DNNLOWP, *_DEFAULT),
)

_RUN = "run against PyTorch 1.8.1 on a processor with AVX2: recorded vectors and random layers"

CAFFE2_AVX2 = Numerics(
    "caffe2-avx2",
    "Caffe2's Int8 operators of PyTorch 1.8.1, the engine that the file names for each, x86-64 with AVX2 without VNNI",
    _RUN,
    (*map(_where_asked_for, _AVX2), *_DEFAULT),
)

CAFFE2_DNNLOWP_AVX2 = Numerics(
    "caffe2-dnnlowp-avx2",
    "Caffe2's Int8 operators of PyTorch 1.8.1, engine DNNLOWP wherever it exists, x86-64 with AVX2 without VNNI",
    _RUN,
    (*_AVX2, *_DEFAULT),
)
