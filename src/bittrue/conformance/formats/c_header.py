"""The format c: a C99 header per operator with a table of its cases, and one with the types that they use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...visible import visible_ascii
from .describe import multipliers
from .entry import Entry, Part
from .exporter import Exporter, word_of

TYPES_HEADER = "bittrue_vectors.h"
_C_TYPES = {
    "s8": "int8_t",
    "u8": "uint8_t",
    "s16": "int16_t",
    "u16": "uint16_t",
    "s32": "int32_t",
    "u32": "uint32_t",
    "s64": "int64_t",
    "u64": "uint64_t",
    "f32": "float",
    "f64": "double",
    "bool": "uint8_t",
    "s4": "int8_t",
    "s2": "int8_t",
    "u4": "uint8_t",
    "u2": "uint8_t",
}
_PER_LINE = 32
_TYPES_TEXT = """\
/* Types of the vectors in the headers beside this one. C99. */
#ifndef BITTRUE_VECTORS_H
#define BITTRUE_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* One tensor. real = scale * (q - zero_point). */
typedef struct {
  const char *name;
  const char *dtype;         /* "s8", "u8", "s16", "s32", "s64", "f32", ...; s4 takes a byte per element */
  int32_t rank;
  const int32_t *shape;      /* rank dimensions; NULL for rank 0 */
  size_t count;              /* elements */
  const void *data;          /* in C order, of the type that dtype names; NULL when there are none */
  int32_t parameters;        /* scales and zero points: 0, 1, or one per index of axis */
  int32_t axis;              /* -1: one scale for all */
  const float *scale;
  const int32_t *zero_point;
} bittrue_tensor;

/* One attribute of the operator: integers where it is a number, a truth value or several integers; else a text. */
typedef struct {
  const char *name;
  const char *text;
  size_t count;              /* of integers */
  const int64_t *integers;
} bittrue_attribute;

/* Encoded multipliers: the real factor of channel c is multiplier[c] * 2^power[c], power = exponent - 31 (rules called
   q15: - 15). */
typedef struct {
  const char *name;          /* "" for the one that rescales the result */
  size_t channels;
  const int32_t *multiplier;
  const int32_t *exponent;
  const int32_t *power;
} bittrue_multiplier;

/* What a step of the plan does in one of its slots. */
typedef struct {
  const char *slot;
  const char *rule;
} bittrue_rule;

typedef struct {
  const char *identity;
  const char *op;
  const char *types;
  const char *aim;
  const char *note;
  const char *numerics;      /* whose outputs are the expected ones */
  int expected_failure;      /* a device must refuse the case: it has no outputs */
  const char *why;           /* it must be refused */
  size_t input_count;        /* what is fed, in the order of the model's inputs */
  const bittrue_tensor *inputs;
  size_t constant_count;     /* weights, biases, axes, in the order of the operator's inputs */
  const bittrue_tensor *constants;
  size_t output_count;
  const bittrue_tensor *outputs;
  size_t accumulator_count;  /* of the outputs with the same names, before they are rescaled */
  const bittrue_tensor *accumulators;
  size_t factor_count;       /* what accumulators are multiplied by, where that is a real number */
  const bittrue_tensor *factors;
  size_t attribute_count;
  const bittrue_attribute *attributes;
  size_t multiplier_count;
  const bittrue_multiplier *multipliers;
  size_t rule_count;
  const bittrue_rule *rules;
  int has_clamp;
  int64_t low;
  int64_t high;
} bittrue_case;

#endif
"""


class CHeader(Exporter):
    """One header per operator."""

    name = "c"
    title = "C99 header per operator with arrays, parameters and a table of cases"

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self._operator = ""
        self._text: list[str] = []
        self._rows: list[str] = []

    def add(self, entry: Entry) -> None:
        """The case's arrays, and its row of the table."""
        if entry.case.operator != self._operator:
            self._flush()
            self._operator = entry.case.operator
        words = word_of(entry.case.identity)
        row, text = _case(entry, words)
        self._text += text
        self._rows.append(row)

    def _flush(self) -> None:
        if not self._operator:
            return
        word = word_of(self._operator)
        guard = f"BITTRUE_VECTORS_{word.upper()}_H"
        lines = [
            f"/* Test vectors of {_comment(self._operator)}: {len(self._rows)} cases in {word}_cases. */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            f'#include "{TYPES_HEADER}"',
            "",
            *self._text,
            "",
            f"#define {word.upper()}_CASE_COUNT {len(self._rows)}",
            f"static const bittrue_case {word}_cases[{len(self._rows)}] = {{",
            *self._rows,
            "};",
            "",
            "#endif",
            "",
        ]
        self.folder.write(f"{word}.h", "\n".join(lines).encode())
        self._text, self._rows = [], []

    def finish(self) -> None:
        """The last operator and the types."""
        self._flush()
        self.folder.write(TYPES_HEADER, _TYPES_TEXT.encode())


def _case(entry: Entry, word: str) -> tuple[str, list[str]]:
    """A row of the table of cases, and the arrays that it points at."""
    case = entry.case
    text = [f"/* {_comment(case.identity)}: {_comment(case.note)} */"]
    counted = []
    groups: tuple[Sequence[Part], ...] = (
        entry.inputs,
        entry.constants,
        entry.outputs,
        [part for part in entry.sums if part.role == "accumulator"],
        [part for part in entry.sums if part.role == "factor"],
    )
    for role, parts in zip(("inputs", "constants", "outputs", "accumulators", "factors"), groups, strict=True):
        rows = [_tensor(part, f"{word}_{part.role}_{part.number}", text) for part in parts]
        counted.append(_table("bittrue_tensor", f"{word}_{role}", rows, text))
    attributes = [
        _attribute(name, value, f"{word}_attribute_{i}", text)
        for i, (name, value) in enumerate(entry.header["attributes"].items())
    ]
    counted.append(_table("bittrue_attribute", f"{word}_attributes", attributes, text))
    steps = () if entry.must_fail else entry.worked.plan.steps
    found: list[str] = []
    rules: list[str] = []
    clamp = "0, 0, 0"
    for step in steps:
        for one in multipliers(step):
            arrays = []
            for key in ("multiplier", "exponent", "power"):
                name = f"{word}_{key}_{len(found)}"
                text.append(f"static const int32_t {name}[] = {{{', '.join(_integer(v) for v in one[key])}}};")
                arrays.append(name)
            found.append(f"{{{_string(one['name'])}, {len(one['multiplier'])}, {', '.join(arrays)}}}")
        rules += [f"{{{_string(slot)}, {_string(rule)}}}" for slot, rule in step.rules.items()]
        low, high = step.parameters.get("low"), step.parameters.get("high")
        if type(low) is int and type(high) is int:
            clamp = f"1, {_integer(low)}, {_integer(high)}"
    counted.append(_table("bittrue_multiplier", f"{word}_multipliers", found, text))
    counted.append(_table("bittrue_rule", f"{word}_rules", rules, text))
    names = (case.identity, case.operator, case.types, case.aim, case.note, entry.numerics)
    head = ", ".join(map(_string, names))
    row = f"  {{{head}, {int(entry.must_fail)}, {_string(case.rejects)}, {', '.join(counted)}, {clamp}}},"
    return row, text


def _table(kind: str, name: str, rows: Sequence[str], text: list[str]) -> str:
    """The count and the name of an array of `rows`."""
    if not rows:
        return "0, NULL"
    text.append(f"static const {kind} {name}[] = {{")
    text.extend(f"  {row}," for row in rows)
    text.append("};")
    return f"{len(rows)}, {name}"


def _tensor(part: Part, word: str, text: list[str]) -> str:
    shape = data = scale = zero_point = "NULL"
    if part.value.ndim:
        shape = f"{word}_shape"
        text.append(f"static const int32_t {shape}[] = {{{', '.join(str(e) for e in part.value.shape)}}};")
    kind = _C_TYPES.get(part.dtype)
    value = part.value
    if kind is None:
        # Types that C has not: their codes.
        kind, value = f"uint{8 * value.dtype.itemsize}_t", value.view(f"u{value.dtype.itemsize}")
        if value.dtype.itemsize > 8:
            kind, value = "uint8_t", np.frombuffer(value.tobytes(), np.uint8)
    if value.size:
        data = f"{word}_data"
        text.append(f"static const {kind} {data}[] = {{")
        text.extend(_values(value))
        text.append("};")
    count, axis = 0, -1
    if part.quantization is not None:
        scales, points = part.quantization.scales.reshape(-1), part.quantization.zero_points.reshape(-1)
        count, axis = scales.size, -1 if part.quantization.axis is None else part.quantization.axis
        scale, zero_point = f"{word}_scale", f"{word}_zero_point"
        text.append(f"static const float {scale}[] = {{{', '.join(_real(v, 'f') for v in scales.tolist())}}};")
        text.append(f"static const int32_t {zero_point}[] = {{{', '.join(_integer(v) for v in points.tolist())}}};")
    name, dtype = _string(part.name), _string(part.dtype)
    where = f"{part.value.size}, {data}, {count}, {axis}, {scale}, {zero_point}"
    return f"{{{name}, {dtype}, {part.value.ndim}, {shape}, {where}}}"


def _attribute(name: str, value: Any, word: str, text: list[str]) -> str:
    integers = [int(value)] if isinstance(value, int) else value if isinstance(value, list) else []
    if not integers or not all(isinstance(v, int) for v in integers):
        return f"{{{_string(name)}, {_string(str(value))}, 0, NULL}}"
    text.append(f"static const int64_t {word}[] = {{{', '.join(_integer(v) for v in integers)}}};")
    return f"{{{_string(name)}, {_string(str(value))}, {len(integers)}, {word}}}"


def _values(value: np.ndarray) -> Iterator[str]:
    flat = value.reshape(-1).tolist()
    if value.dtype.kind == "f":
        suffix = "f" if value.dtype.itemsize == 4 else ""
        texts = [_real(v, suffix) for v in flat]
    elif value.dtype.kind == "b":
        texts = ["1" if v else "0" for v in flat]
    elif value.dtype.itemsize == 8:
        texts = [_integer(v) if v < 2**63 else f"UINT64_C({v})" for v in flat]
    else:
        texts = [_integer(v) for v in flat] if value.dtype.itemsize == 4 else [str(v) for v in flat]
    for start in range(0, len(texts), _PER_LINE):
        yield ",".join(texts[start : start + _PER_LINE]) + ","


def _integer(value: int) -> str:
    if value == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    if -(2**31) < value < 2**31:
        return str(value)
    return f"UINT32_C({value})" if 0 <= value < 2**32 else f"{'-' if value < 0 else ''}INT64_C({abs(value)})"


def _real(value: float, suffix: str) -> str:
    """Exact: hexadecimal."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{float(value).hex()}{suffix}"


_STRANGE = re.compile(r"[^ !#->@-\[\]-~]")


def _string(text: str) -> str:
    """A string literal; what is not plain ASCII, and question marks, which could form trigraphs, as octal escapes."""
    escaped = _STRANGE.sub(lambda m: "".join(f"\\{byte:03o}" for byte in m[0].encode("utf-8", "replace")), text)
    return f'"{escaped}"'


def _comment(text: str) -> str:
    """Text that neither begins nor ends a comment."""
    return visible_ascii(text).replace("*", "x")
