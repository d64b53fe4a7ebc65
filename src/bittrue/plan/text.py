"""The printable form of a plan: one line per step with the integers that hardware would be programmed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..operators import Step
from ..visible import visible
from .inexact import counted, without_steps

if TYPE_CHECKING:
    from .plan import Plan

_GEOMETRY = ("filter_h", "filter_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
_PADDING = ("pad_top", "pad_bottom", "pad_left", "pad_right")
# Shown through other words, or too long for a line.
_HIDDEN = frozenset({*_GEOMETRY, *_PADDING, "out_h", "out_w"})
_CLAMP = frozenset({"low", "high"})


def plan_text(plan: Plan) -> str:
    """Header, inputs, steps, outputs, then the graphs that steps call and what comes later."""
    lines = [
        f"plan of '{plan.name}' under numerics '{plan.numerics}' ({plan.reproduces})",
        *_body(plan),
    ]
    lines += _nested_lines(plan, set())
    if plan.notes:
        lines += ["", *(f"note: {note}" for note in plan.notes)]
    if plan.execution:
        lines += ["", *plan.execution]
    return "\n".join(map(visible, lines))


def _body(plan: Plan) -> list[str]:
    lines = [
        f"{len(plan.steps)} steps, {plan.work:,} multiply-accumulates or elements, arena {plan.arena:,} bytes, "
        f"constants {sum(t.bytes for t in plan.tensors if t.kind == 'constant'):,} bytes",
    ]
    for title, indices in (("input", plan.inputs), ("output", plan.results)):
        lines += [f"{title:6} {tensor_text(plan, index)}" for index in indices]
    if plan.folded:
        lines.append(f"folded at plan time: {', '.join(plan.tensors[i].name for i in plan.folded)}")
    lines.append("")
    for step in plan.steps:
        lines += step_lines(plan, step)
    if plan.later is not None:
        count = len(plan.later.graph.nodes)
        lines += [
            "",
            f"later: {count} operator{'s' if count > 1 else ''}, planned while running, because {plan.later.reason}",
            *(f"    needs {tensor_text(plan, index)}" for index in plan.outputs),
        ]
    if others := without_steps(plan):
        lines += ["", f"folded or later, and may differ from the runtime in bits: {counted(others)}"]
    if shifts := [step.source for step in plan.steps if _shifts_undefined(step)]:
        lines += ["", f"shifts that C++ leaves undefined, with the bits of the builds named above: {counted(shifts)}"]
    return lines


def _shifts_undefined(step: Step) -> bool:
    """Whether the step asks for shifts without a meaning, or may for some operands."""
    # Of a quotient, values decide.
    return any(name.endswith("undefined_shift") for name in step.arrays) or "modulo_32" in step.rules.get("divide", "")


def _nested_lines(plan: Plan, shown: set[int]) -> list[str]:
    """Called graphs, each once, those that they call behind them."""
    lines = []
    for number, nested in enumerate(plan.nested):
        if id(nested.plan) not in shown:
            shown.add(id(nested.plan))
            caller = f" of '{plan.name}'" if plan.scope else ""
            lines += ["", f"graph {number}{caller}: '{nested.plan.scope.removesuffix('::')}'", *_body(nested.plan)]
            lines += _nested_lines(nested.plan, shown)
    return lines


def tensor_text(plan: Plan, index: int) -> str:
    """Name, type, shape and quantization of one tensor."""
    tensor = plan.tensors[index]
    quantization = f"  {tensor.quantization}" if tensor.quantization is not None else ""
    return f"{tensor.name}  {tensor.dtype}{list(tensor.shape)}{quantization}"


def step_lines(plan: Plan, step: Step) -> list[str]:
    """A few lines that describe one step."""
    shapes = " -> ".join(
        ", ".join(f"{plan.tensors[i].dtype}{list(plan.tensors[i].shape)}" for i in indices if i is not None)
        for indices in ([i for i in step.inputs if i is None or plan.tensors[i].kind != "constant"], step.outputs)
    )
    names = ", ".join(plan.tensors[i].name for i in step.outputs)
    lines = [f"#{step.index} {step.operator}  {shapes}".removesuffix("   -> "), *([f"    -> {names}"] if names else [])]
    if step.rules:
        lines.append("    rules      " + "  ".join(f"{slot}={rule}" for slot, rule in step.rules.items()))
    details = _details(step)
    if details:
        lines.append("    parameters " + "  ".join(details))
    for name, array in step.arrays.items():
        lines.append(f"    {name:10} {array_text(array)}")
    if step.accumulator is not None:
        lines.append(f"    acc        {step.accumulator}")
    if step.inexact:
        show = f"bittrue numerics show {plan.numerics} --operator {step.operator}"
        lines.append(f"    limit      results may differ from the runtime's in bits: {show}")
    return lines


def _details(step: Step) -> list[str]:
    p = step.parameters
    details = []
    if "filter_h" in p:
        sizes = (("window", "filter"), ("stride", "stride"), ("dilation", "dilation"))
        details.append(
            " ".join(f"{word} {p[f'{key}_h']}x{p.get(f'{key}_w')}" for word, key in sizes if f"{key}_h" in p)
        )
        details.append("pad " + ",".join(str(p[key]) for key in _PADDING if key in p))
    zero_points = [f"{key[:-11]} {p[key]}" for key in p if key.endswith("_zero_point")]
    if zero_points:
        details.append("zero points " + " ".join(zero_points))
    if p.keys() >= _CLAMP:
        details.append(f"clamp [{p['low']}, {p['high']}]")
    hidden = _HIDDEN | _CLAMP if p.keys() >= _CLAMP else _HIDDEN
    details += [f"{key} {value}" for key, value in p.items() if key not in hidden and not key.endswith("_zero_point")]
    return details


def array_text(array: np.ndarray) -> str:
    """A few leading values, and the length where these are not all.

    >>> array_text(np.arange(6)), array_text(np.arange(7))
    ('0 1 2 3 4 5', '0 1 2 3 4 5 ... (7)')
    """
    flat = array.reshape(-1)
    shown = " ".join(f"{v:.9g}" if flat.dtype.kind == "f" else str(v) for v in flat[:6].tolist())
    return shown if flat.size <= 6 else f"{shown} ... ({flat.size})"
