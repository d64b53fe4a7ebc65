"""The specification as data says what the published texts say, operator by operator."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from bittrue.check.specification import SPECIFICATION, Operand, Specified
from support.shared import SHARED

CURRENT = SHARED / "spec" / "litert_8bit_quantization_spec.txt"
OLDER = SHARED / "spec" / "tflite_8bit_quantization_spec_older.txt"
SAME = "Inputandoutputsmustallhavesamescale/zero_point"
BIAS = "(scale,zero_point)=(input0_scale*input1_scale[...],0)"

needs_texts = pytest.mark.skipif(
    not (CURRENT.is_file() and OLDER.is_file()), reason=f"the specification's texts are not at {CURRENT.parent}"
)


@dataclass
class Tensor:
    side: str
    position: str
    role: str
    dtype: str
    span: str
    granularity: str
    axis: str
    restriction: str


def parse(text: str) -> dict[str, list[Tensor]]:
    """Operator -> its tensors, from a text whose white space means nothing."""
    text = re.sub(r"\s+", "", without_line_numbers(text[text.index("int8 tflite kernels:") :]))
    parts = re.split(r"([A-Z][A-Z0-9_]+)(?:\(Requantization\))?(?=Input(?:\d|\.\.\.))", text)
    found = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        pieces = re.split(r"(Input|Output)(\d|\.\.\.)(?:\((Weight|Bias)\))?:data_type:", body)
        tensors = []
        for side, position, role, rest in zip(*(pieces[k::4] for k in range(1, 5)), strict=True):
            form = re.match(
                r"(int8|int32)range:\[([^\]]+)\]granularity:per-(tensor|axis)(?:\(dim=(\d)\))?"
                rf"(?:restriction:({re.escape(SAME)}|zero_point=0|\(scale,zero_point\)=\([^)]*\)))?",
                rest,
            )
            assert form, rest[:200]
            tensors.append(
                Tensor(side.lower(), position, (role or "activation").lower(), *(x or "" for x in form.groups()))
            )
        found[name] = tensors
    return found


def without_line_numbers(text: str) -> str:
    """The older text was copied from a page that numbers its lines, all in one line."""
    found = re.search(r"kernels: (\d+) (\d+)", text)
    if found is None:
        return text
    number, place = int(found[1]), 0
    while (place := text.find(f" {number}", place)) >= 0:
        text = text[:place] + " " + text[place + 1 + len(str(number)) :]
        number += 1
    return text


def written(operator: Specified, operand: Operand, older: bool) -> Tensor:
    """A line of the data in the words of the text."""
    restriction = ""
    if operand.role == "weight":
        restriction = "zero_point=0"
    elif operand.role == "bias":
        restriction = BIAS
    elif operand.side == "output" and operator.same:
        restriction = SAME
    elif operand.side == "output" and operator.fixed:
        fixed = operator.fixed
        restriction = f"(scale,zero_point)=({fixed.numerator}.0/{fixed.denominator}.0,{fixed.zero_point})"
    granularity, axis = operand.granularity, operand.axis
    if older and operand.older_granularity:
        granularity, axis = operand.older_granularity, None
    return Tensor(
        operand.side,
        "..." if operand.position is None else str(operand.position),
        operand.role,
        {"s8": "int8", "s32": "int32"}[operand.dtype],
        "int32_min,int32_max" if operand.dtype == "s32" else f"{operand.low},{operand.high}",
        granularity.removeprefix("per-"),
        "" if axis is None else str(axis),
        restriction,
    )


@needs_texts
@pytest.mark.parametrize("older", [False, True], ids=["current", "older"])
def test_data_says_what_the_text_says(older: bool) -> None:
    text = parse((OLDER if older else CURRENT).read_text(encoding="utf-8"))
    assert list(text) == list(SPECIFICATION)
    assert len(text) == 38
    for name, operator in SPECIFICATION.items():
        assert [written(operator, operand, older) for operand in operator.operands] == text[name], name


@needs_texts
def test_versions_differ_in_one_line_only() -> None:
    current, older = parse(CURRENT.read_text(encoding="utf-8")), parse(OLDER.read_text(encoding="utf-8"))
    different = [
        (name, position)
        for name in current
        for position, pair in enumerate(zip(current[name], older[name], strict=True))
        if pair[0] != pair[1]
    ]
    assert different == [("FULLY_CONNECTED", 1)]
