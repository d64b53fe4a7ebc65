"""What the specification says of a node of ONNX: its operator's version, how many operands, which attributes.

`onnx_schemas.txt` has it from the package `onnx` (tools/make_onnx_schemas.py): to ask that takes longer than to read a
model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from functools import cache

from ..records import dataclass

# Stands for any number of operands.
ANY = 1 << 30


@dataclass(frozen=True)
class Schema:
    """One version of an operator.

    Attributes:
        version: of the operator set that it came with.
        inputs: how many there are, at least and at most.
        outputs: likewise.
        kinds: of attributes, by name, as AttributeProto.AttributeType calls them.
        required: attributes that must be there.
    """

    version: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    kinds: Mapping[str, str]
    required: Set[str]


@cache
def find_schema(domain: str, operator: str, newest: int) -> Schema | None:
    """The operator's schema in version `newest` of its set; None where there is none.

    >>> found = find_schema("", "Cast", 8)
    >>> found.version, found.inputs, found.kinds, set(found.required)
    (6, (1, 1), {'to': 'INT'}, {'to'})
    """
    for text in reversed(_known().get((domain, operator), ())):
        version, *ends = text.split(" ")[:5]
        if int(version) <= newest:
            low, high, least, most = (ANY if end == "*" else int(end) for end in ends)
            pairs = [pair.split(":") for pair in text.split(" ")[5:]]
            kinds = {name: kind.rstrip("!") for name, kind in pairs}
            required = frozenset(name for name, kind in pairs if kind.endswith("!"))
            return Schema(int(version), (low, high), (least, most), kinds, required)
    return None


@cache
def _known() -> dict[tuple[str, str], list[str]]:
    """What the file says behind an operator's name, the oldest version first."""
    with open(os.path.join(os.path.dirname(__file__), "onnx_schemas.txt"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    found: dict[tuple[str, str], list[str]] = {}
    domain = ""
    for line in lines[1:]:
        if line.startswith("["):
            domain = line[1:-1]
        else:
            name, _, rest = line.partition(" ")
            found.setdefault((domain, name), []).append(rest)
    return found
