"""One test of a device: a model of one operator, what it is fed, and what it is aimed at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...api import Model

# What a case is aimed at; random ones show what a suite without aim would find.
AIMS = ("ties", "near ties", "saturation", "zero points", "padding", "shapes", "codes", "random", "rejects")


@dataclass(frozen=True, eq=False)
class SuiteCase:
    """One test: equal bytes on every machine and in every run of the same suite version.

    Attributes:
        identity: ``"CONV_2D/s8/ties/03"``; unique in its suite and a relative path without surprises.
        suite: ``"litert"`` or ``"onnx"``.
        operator: as files call it: ``"CONV_2D"``, ``"QLinearConv"``.
        types: what verdicts are grouped by, beside the operator: ``"s8"``, ``"u8"``, ``"s16"``, ``"s8-u8"``.
        aim: one of `AIMS`.
        format: of `content`: ``"tflite"`` or ``"onnx"``.
        content: the model file.
        inputs: values by input name.
        note: one line for people: what about this case is special.
        rejects: why a device must refuse this model; empty for models that must run.
        advisory: of those: only the words of the specification forbid the model, the runtime that the suite is about
            runs it. What a device makes of it is counted apart and costs it nothing.
        seeks: for aimed cases: what the elements are there to tell apart, as plain data, for example
            ``{"accumulators": [..]}``; for reports only.
    """

    identity: str
    suite: str
    operator: str
    types: str
    aim: str
    format: str
    content: bytes
    inputs: Mapping[str, np.ndarray]
    note: str = ""
    rejects: str = ""
    seeks: Mapping[str, Any] = field(default_factory=dict)
    advisory: bool = False

    @cached_property
    def model(self) -> Model:
        """The model as bittrue reads it; BittrueError for most of those that a device must refuse."""
        # Processes of devices hold cases, too, and most never read a model.
        from ...api import load

        return load(self.content)

    def fed(self, inputs: Mapping[str, np.ndarray], identity: str = "") -> SuiteCase:
        """The same model, which is read once for both, with other inputs.

        Args:
            inputs: values by input name.
            identity: that of this case when empty.

        Raises:
            BittrueError: bittrue cannot read the model.
        """
        found = replace(self, inputs=inputs, identity=identity or self.identity)
        found.__dict__["model"] = self.model
        return found

    @cached_property
    def sha256(self) -> str:
        """Of the model file and the inputs."""
        found = hashlib.sha256(self.content)
        for name in sorted(self.inputs):
            value = np.ascontiguousarray(self.inputs[name])
            found.update(f"{name} {value.dtype.str} {value.shape}".encode())
            found.update(value.tobytes())
        return found.hexdigest()
