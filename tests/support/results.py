"""Results to make reports of: made up, but of the real classes, so that their JSON is the real one."""

from __future__ import annotations

import json
import random
from typing import Any

from bittrue.check.finding import Finding
from bittrue.compare.result import (
    Cause,
    CompareResult,
    Downstream,
    Pair,
    Side,
    Statistics,
    Verdict,
    Worst,
)
from bittrue.explain.explanation import Explanation, Line

HOSTILE = "</script><b onclick=alert(1)>&amp;|`x` \u202e{{7*7}} \x00\x1b[31m --> ]]> '\" <svg/onload=alert(2)>"

ROUNDING = Cause(
    "rescale=q31_one_step_up",
    "B rescales in one step with ties up, where A rounds twice: the high half up, then the power of two away from zero",
    "rounding",
    True,
    "rescale",
    "q31_one_step_up",
    "q31_two_step_up_away",
    ("xnnpack",),
    80,
    "floor((acc * M + 2^(30 - e)) / 2^(31 - e))",
)
FAULT = Cause("input zero point ignored", "B takes the input's zero point for 0", "parameters", False, elements=300)


def plain(result: CompareResult) -> dict[str, Any]:
    """As it comes back from a file."""
    data: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    return data


def statistics(elements: int, differing: int, side: int = 16, channels: int = 8, largest: float = 1.0) -> Statistics:
    """Plausible ones for an image."""
    if not differing:
        return Statistics(elements, 0)
    numbers = random.Random(differing)
    share = differing / elements
    plane = tuple(tuple(min(1.0, share * numbers.expovariate(1)) for _ in range(side)) for _ in range(side))
    per_channel = tuple(min(1.0, share * numbers.expovariate(1)) for _ in range(channels))
    minus = differing // 3
    histogram = {"-1": minus, "1": differing - minus} if minus else {"1": differing}
    worst = Worst((0, 3, 5, 2), 12.0, 12.0 + largest)
    return Statistics(elements, differing, largest, differing / elements / 3, histogram, worst, per_channel, plane)


def witness(name: str, stored: int, theirs: int) -> dict[str, Any]:
    """One element under both rules."""
    start = (Line("accumulator", "48531", "sum of 27 products, and the bias"),)
    ours = (*start, Line("high half", "34316", "ties up"), Line("right shift by 9", "67", "ties away"))
    other = (*start, Line("one division", "66", "ties up: 66.4999"))
    numbers = {"accumulator": 48531, "multiplier": 1518500250, "exponent": -9, "tie_distance": 3.1e-5}
    common = name, (0, 3, 5, 2), "conv", "CONV_2D", 1
    a = Explanation(*common, "litert", {"rescale": "q31_two_step_up_away"}, ours, stored, numbers)
    b = Explanation(*common, "xnnpack", {"rescale": "q31_one_step_up"}, other, theirs)
    return {**a.to_dict(), "theirs": theirs, "other": b.to_dict()}


def verdict(name: str, differing: int, elements: int, cause: Cause | None = ROUNDING) -> Verdict:
    """Explained by this cause; by None: not at all."""
    numbers = random.Random(7)
    ties = [(numbers.uniform(0, 1e-3), 1.0) for _ in range(40)] + [(numbers.uniform(0, 0.5), 0.0) for _ in range(60)]
    unexplained = 0 if cause else differing
    end = f"all are explained by {cause.name}" if cause else f"{unexplained} are unexplained"
    text = f"{differing:,} of {elements:,} elements differ, all by 1; {end}"
    command = f"bittrue explain model.tflite --tensor {name.split(' ')[0]} --element 0,3,5,2"
    found = witness(name, 67, 66)
    if cause is None or not cause.rule:
        found["other"] = None
    causes = (cause,) if cause else ()
    range_ = (-48531, 61234, 1_234_567)
    return Verdict(differing, causes, bool(cause), unexplained, text, (), found, command, range_, tuple(ties))


def pair(
    name: str, position: int | None, cumulative: int, isolated: int | None, cause: Cause | None = ROUNDING, **more: Any
) -> Pair:
    """An image tensor [1, 16, 16, 8]."""
    shape, elements = (1, 16, 16, 8), 2048
    alone = None if isolated is None else statistics(elements, isolated)
    own = alone if alone is not None and isolated == cumulative else statistics(elements, cumulative, largest=3.0)
    judged = verdict(name, isolated, elements, cause) if isolated else None
    node = "", "" if position is None else "conv"
    if position is not None:
        node = "CONV_2D", "conv"
    types = ("s8", "s8", shape, "same", "name")
    return Pair(name, name, position, *node, *types, own, alone, judged, **more)


def sides() -> tuple[Side, Side]:
    """A model here, and the same under another runtime."""
    a = Side("A", "model.tflite", "bittrue 0.1.0, numerics litert", "litert", "model.tflite", "0b" * 32, "tflite")
    spec = "litert:xnnpack model.tflite"
    b = Side("B", spec, "LiteRT 2.3.0, XNNPACK", "xnnpack", "model.tflite", "0b" * 32, "tflite", ("1 thread",))
    return a, b


def compared(pairs: list[Pair], **more: Any) -> CompareResult:
    """A comparison with these tensors."""
    settings: dict[str, Any] = {"seconds": 3.2, "version": "0.1.0", "date": "2026-11-22T03:00:00+00:00", **more}
    return CompareResult(*sides(), ("random values, seed 0",), tuple(pairs), **settings)


def benign() -> CompareResult:
    """Several tensors, all explained by one rounding rule; with what `--amplify` and `--passes` add."""
    pairs = [pair("input", None, 0, None)]
    pairs += [pair(f"block_{i}/conv;block_{i}/relu", i, 80 * i, 80 if i % 3 else 0) for i in range(1, 12)]
    pairs += [pair("scores", 12, 700, 0, is_output=True)]
    names = [p.a for p in pairs]
    amplification = tuple(
        Downstream(
            p.a, tuple((n, 0.01 * k) for k, n in enumerate(names[i + 1 :], 1)), {"scores": p.cumulative}, ((1, 2),)
        )
        for i, p in enumerate(pairs)
        if p.verdict
    )
    passes = {
        "level": "extended",
        "first that differs": "ConvActivationFusion",
        "tried": [{"pass": "x", "equal": True}],
    }
    return compared(pairs, amplification=amplification, passes=passes, unmatched_a=("a/only",), notes=("a note",))


def fault() -> CompareResult:
    """A wrong zero point in the second tensor."""
    return compared([pair("first", 0, 0, 0), pair("second", 1, 300, 300, FAULT), pair("third", 2, 900, 0)])


def unexplained() -> CompareResult:
    """One tensor that no rule accounts for."""
    return compared([pair("first", 0, 0, 0), pair("second", 1, 300, 300, None)])


def not_judged() -> CompareResult:
    """Differences without any isolated one, as between two traces."""
    return compared([pair("first", None, 5, None, note="no model stands behind A"), pair("second", None, 9, None)])


def equal() -> CompareResult:
    """Nothing differs."""
    return compared([pair(f"tensor_{i}", i, 0, 0) for i in range(5)])


def nothing() -> CompareResult:
    """No tensor has a partner."""
    return compared([], unmatched_a=("x",), unmatched_b=("y",))


def real() -> CompareResult:
    """Real numbers, with values that are none."""
    histogram = {"-4": 3, "-1": 9, "1": 11, "2": 4, "other": 1}
    found = Statistics(1000, 28, None, None, histogram, Worst((7,), float("nan"), float("inf")), (0.5, 0.0))
    types = ("f32", "f32", (10, 100), "axes 1 0", "order and shape")
    return compared([Pair("y", "Y", 0, "SOFTMAX", "softmax", *types, found, found, None, "cannot be run alone")])


def many(count: int = 3000) -> CompareResult:
    """A very deep network, every tensor of which differs."""
    return compared([pair(f"layer_{i:04}/output", i, 1 + i % 2000, 1 + i % 40) for i in range(count)])


def hostile() -> CompareResult:
    """Every text that can come from a file is an attack."""
    bad = Cause(HOSTILE, HOSTILE, HOSTILE, True, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), 5, HOSTILE)
    a, b = (Side(s, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,)) for s in "AB")
    lines = (Line(HOSTILE, HOSTILE, HOSTILE),)
    told = Explanation(HOSTILE, (0, 1), HOSTILE, HOSTILE, 1, HOSTILE, {HOSTILE: HOSTILE}, lines, 1, {HOSTILE: 1})
    shown = {**told.to_dict(), "theirs": 2, "other": told.to_dict()}
    one = Statistics(
        2048, 5, 1.0, 0.0, {"1": 4, HOSTILE: 1}, Worst((0, 1, 2, 3), 1, 2), (0.1,) * 8, ((0.1,) * 16,) * 16
    )
    judged = Verdict(5, (bad,), True, 0, HOSTILE, (HOSTILE,), shown, HOSTILE, (-1, 2, 3), ((0.1, 1.0), (0.2, 0.0)))
    types = (HOSTILE, HOSTILE, (1, 16, 16, 8), HOSTILE, HOSTILE)
    pairs = tuple(
        Pair(HOSTILE + str(i), HOSTILE, i, HOSTILE, HOSTILE, *types, one, one, judged, HOSTILE, True) for i in range(3)
    )
    downstream = (Downstream(HOSTILE, ((HOSTILE, 0.5),), {HOSTILE: one}, ((1, 2),)),)
    unmatched = ((HOSTILE,), (HOSTILE,))
    passes = {HOSTILE: [HOSTILE, {HOSTILE: None}]}
    return CompareResult(a, b, (HOSTILE,), pairs, *unmatched, downstream, passes, 1.0, HOSTILE, HOSTILE, (HOSTILE,))


def checked(findings: list[Finding], **more: Any) -> dict[str, Any]:
    """A check's JSON."""
    rules = [
        {
            "code": code,
            "name": name,
            "severity": severity,
            "formats": ["tflite"],
            "what": "bias_scale = input_scale * weight_scale",
            "why": "The accumulator adds the bias as it is.",
            "enforced": "LiteRT checks it when it prepares the operator.",
            "fix": "Quantize the bias again.",
            "source": "specification, read",
        }
        for code, name, severity in (
            ("BT204", "bias-scale", "error"),
            ("BT601", "accumulator-overflow", "warning"),
            ("BT602", "dead-channel", "note"),
        )
    ]
    return {
        "format": "bittrue-check-1",
        "model": "model.tflite",
        "sha256": "0b" * 32,
        "model_format": "tflite",
        "numerics": "litert",
        "findings": [finding.to_dict() for finding in findings],
        "failures": [],
        "rules": rules,
        "notes": ["a note"],
        **more,
    }


def findings() -> list[Finding]:
    """Two of one rule, one of another."""
    bias = "the bias scale is 0.02, expected 0.01 = 0.1 * 0.1"
    return [
        Finding(
            "BT601",
            "warning",
            "channel 3 can reach 2^31",
            "main",
            2,
            "CONV_2D",
            "conv/output",
            "channel 3",
            numbers={"bound": 2**31},
        ),
        Finding("BT204", "error", bias, "main", 1, "CONV_2D", "conv/bias", "", "0.01", "0.02", "quantize it again"),
        Finding("BT204", "error", bias, "main", 4, "FULLY_CONNECTED", "dense/bias", "", "0.01", "0.02"),
    ]
