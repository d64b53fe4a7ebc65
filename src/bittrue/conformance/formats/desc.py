"""The format desc: one folder per case with a desc.json whose fields are called as in TOSA's conformance tests.

The form is described by ``schemas/bittrue-desc-1.json``.
"""

from __future__ import annotations

from typing import Any

from .entry import Entry, Part
from .exporter import Exporter, json_bytes, npy, path_of

FORMAT = "bittrue-desc-1"
DESC = "desc.json"


class Desc(Exporter):
    """desc.json, the model, and .npy files of inputs, constants, outputs."""

    name = "desc"
    title = "one folder per case: desc.json as in TOSA, model, .npy files"
    per_case = True

    def add(self, entry: Entry) -> None:
        """The case's folder."""
        case, header = entry.case, entry.header
        place = path_of(case.identity)
        model = f"model.{case.format}"
        self.folder.write(f"{place}/{model}", case.content)
        groups = {"ifm": entry.inputs, "const": entry.constants, "ofm": entry.outputs}
        if entry.with_accumulators:
            groups["acc"] = tuple(part for part in entry.sums if part.role == "accumulator")
        files: dict[str, Any] = {}
        for word, parts in groups.items():
            files[f"{word}_name"] = [part.name for part in parts]
            files[f"{word}_file"] = [f"{part.stem}.npy" for part in parts]
            for part in parts:
                self.folder.write(f"{place}/{part.stem}.npy", npy(part.value))
        tensors = {part.name: {"mode": "EXACT", "data_type": _tosa_type(part)} for part in entry.outputs}
        found = {
            "format": FORMAT,
            "tag": case.identity,
            "op": case.operator,
            "model_file": model,
            **files,
            "expected_failure": entry.must_fail,
            "expected_failure_desc": case.rejects,
            "test_requirements": {
                "suite": case.suite,
                "suite_version": entry.description["suite_version"],
                "numerics": entry.numerics,
                "types": case.types,
            },
            "meta": {
                "aim": case.aim,
                "note": case.note,
                "sha256": case.sha256,
                "attributes": header["attributes"],
                "tensors": entry.description["tensors"],
                "compliance": {"tensors": tensors},
            },
        }
        if entry.must_fail:
            found["meta"]["numerics_refuses"] = header["numerics_refuses"]
        if "plan" in header:
            found["meta"]["plan"] = header["plan"]
        self.folder.write(f"{place}/{DESC}", json_bytes(found))

    def finish(self) -> None:
        """Every folder stands alone."""


def _tosa_type(part: Part) -> str:
    """TOSA's name of an element type: INT8, FP32."""
    kind = part.type
    title = kind.title.upper()
    return f"FP{kind.bits}" if kind.name in ("f16", "f32", "f64") else title
