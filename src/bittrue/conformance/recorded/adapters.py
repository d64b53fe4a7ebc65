"""Recorded cases as models: one adapter per framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ...errors import InputError
from ...graph import ModelFile
from .vectors import Case, Recorded

# The framework that vectors of our own suites name.
SUITE = "bittrue-suite"


@dataclass(frozen=True, eq=False)
class Trial:
    """A case, ready to run.

    Attributes:
        model: what is run; None for one that must be refused and that cannot even be read.
        feeds: one array per input of its graph.
        expected: one entry per output of its graph; None where nothing is expected.
        numerics: whose arithmetic the case was recorded with, where the framework has several.
        depends_on: what else the recorded result depends on, for example the CPU; such cases are listed apart.
        zero_signs: whether the recorded numbers keep the sign of zero.
        must_fail: a device must refuse the model; it has no outputs.
        refused: then, whether the numerics refuses it, too, which is what is looked at.
    """

    model: ModelFile | None
    feeds: Sequence[np.ndarray]
    expected: Sequence[Recorded | None]
    numerics: str | None = None
    depends_on: str = ""
    zero_signs: bool = True
    must_fail: bool = False
    refused: bool = True


@dataclass(frozen=True)
class Adapter:
    """How the cases of one framework are run.

    Attributes:
        module: of this folder; its function `trial` makes a Case a Trial.
        numerics: whose arithmetic they were recorded with, unless the trial says another one.
    """

    module: str
    numerics: str

    @property
    def trial(self) -> Callable[[Case], Trial]:
        found: Callable[[Case], Trial] = import_module(f".{self.module}", __package__).trial
        return found


# By the framework that a manifest names.
ADAPTERS: Mapping[str, Adapter] = {
    "caffe2": Adapter("caffe2_case", "caffe2"),
    "onnx": Adapter("onnx_case", "onnx"),
    "onnxruntime": Adapter("onnx_case", "onnxruntime"),
    "snps_caffe": Adapter("snps_caffe_case", "snps_caffe"),
    "mxnet": Adapter("mxnet_case", "mxnet"),
    "tvm-qnn": Adapter("tvm_qnn_case", "tvm-qnn"),
    # What `bittrue vectors` writes; every case names its numerics.
    SUITE: Adapter("suite_case", "litert"),
}


def find_adapter(framework: str) -> Adapter:
    """The adapter of a framework; InputError for one that has none."""
    if framework not in ADAPTERS:
        raise InputError(
            "BT-VECTORS-FRAMEWORK",
            f"vectors of '{framework}' cannot be replayed",
            advice=f"frameworks: {', '.join(ADAPTERS)}",
        )
    return ADAPTERS[framework]
