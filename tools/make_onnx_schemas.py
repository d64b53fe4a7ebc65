"""Writes src/bittrue/importers/onnx_schemas.txt: what the package `onnx` says of its operators.

python tools/make_onnx_schemas.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import onnx
from onnx import defs

TARGET = Path(__file__).parents[1] / "src" / "bittrue" / "importers" / "onnx_schemas.txt"
# Schemas give such a number where any number will do.
MANY = 1 << 30


def lines() -> Iterator[str]:
    """The file's lines, as `onnx_schemas.py` reads them."""
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    for domain, group in groupby(schemas, lambda schema: schema.domain):
        yield f"[{domain}]"
        for schema in group:
            ends = schema.min_input, schema.max_input, schema.min_output, schema.max_output
            attributes = [
                f"{name}:{str(entry.type).rpartition('.')[2]}{'!' * entry.required}"
                for name, entry in sorted(schema.attributes.items())
            ]
            counts = ["*" if end > MANY else str(end) for end in ends]
            yield " ".join([schema.name, str(schema.since_version), *counts, *attributes])


def text() -> str:
    """The whole file."""
    what = "name, version, inputs and outputs from and to, attributes (! required)"
    return "\n".join([f"# Operators of onnx {onnx.__version__}: {what}", *lines(), ""])


if __name__ == "__main__":
    TARGET.write_text(text())
