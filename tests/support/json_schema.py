"""The part of JSON Schema that the shipped schemas use, checked without another package."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_KNOWN = frozenset(
    "$schema $id title description type required properties additionalProperties items enum const pattern "
    "minimum".split()
)


def problems(value: Any, schema: dict[str, Any], place: str = "$") -> list[str]:
    """What does not fit, each with its place."""
    strangers = set(schema) - _KNOWN
    assert not strangers, f"the schema uses {strangers}, which this checker does not know"
    found = []
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        fits = [isinstance(value, _TYPES[k]) and (k in ("boolean",) or not isinstance(value, bool)) for k in kinds]
        if not any(fits):
            return [f"{place}: {value!r:.60} is no {' or '.join(kinds)}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{place}: {value!r:.60} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r:.60} is none of {schema['enum']}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{place}: {value!r:.60} does not match {schema['pattern']}")
    if "minimum" in schema and isinstance(value, int) and value < schema["minimum"]:
        found.append(f"{place}: {value} is below {schema['minimum']}")
    if isinstance(value, dict):
        found += [f"{place}: no '{name}'" for name in schema.get("required", []) if name not in value]
        for name, one in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                found += problems(one, inner, f"{place}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            found += problems(one, schema["items"], f"{place}[{number}]")
    return found
