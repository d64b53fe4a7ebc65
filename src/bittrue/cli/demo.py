"""`bittrue demo`: the main job on an embedded model, in a few seconds."""

from __future__ import annotations

import time

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import api, samples
from ..operators import Step
from ..quantization import dequantize, quantize
from ..rules import rescale, store
from .common import console, digest

_SHOWN = 8
_OTHER_RULES = ("q31_one_step_up", "q31_two_step_up_up", "binary32_multiply_even")


@click.command("demo")
@click.option("--plan", "show_plan", is_flag=True, help="Also print the whole plan.")
def command(show_plan: bool) -> None:
    """Recognise handwritten digits with an int8 network, and look into one of its roundings."""
    out = console()
    images, labels = samples.demo_digits()
    session = api.load(samples.demo_model()).prepare(numerics="litert")
    port = session.inputs[0]
    out.print(
        "[bold]bittrue demo[/bold]: an int8 network for 8x8 handwritten digits, run bit for bit as its runtime would"
    )
    out.print(
        f"numerics [bold]{session.plan.numerics}[/bold] = {session.plan.reproduces}\n"
        f"input {port.dtype}{list(port.shape)}, real = {port.scale:.9g} * (q - {port.zero_point}); "
        f"{len(session.plan.steps)} steps, {session.plan.work:,} multiply-accumulates",
        markup=True,
    )
    # Grey values 0..16 mean 0..1: real x / 16, then the input's own scale and zero point.
    inputs = _quantized(images, port)
    started = time.perf_counter()
    outputs = [next(iter(session.run(x[None]).values()))[0] for x in inputs]
    elapsed = time.perf_counter() - started
    guesses = np.array([int(np.argmax(o)) for o in outputs])
    shown = _choose(guesses, labels)
    out.print()
    out.print(_predictions(session, images, labels, outputs, guesses, shown, out.color_system in ("256", "truecolor")))
    right = int((guesses == labels).sum())
    out.print(
        f"[bold]{right} of {len(labels)}[/bold] held-out digits right ({100 * right / len(labels):.1f} %), "
        f"{1e6 * elapsed / len(labels):,.1f} us each with executor '{session.executor}'; "
        f"sha256 of all outputs {digest(np.stack(outputs))[:16]}"
    )
    _explain(out, session, inputs)
    if show_plan:
        out.print(str(session.plan), markup=False)
    out.print()
    out.print(
        "next: [bold]bittrue run MODEL.tflite --input PICTURE.jpg[/bold], [bold]bittrue plan MODEL.tflite[/bold], "
        "[bold]bittrue run --help[/bold]"
    )


def _quantized(images: np.ndarray, port: api.Port) -> np.ndarray:
    # The embedded model has both.
    assert port.scale is not None
    assert port.zero_point is not None
    return quantize(images.astype(np.float32) / 16, port.scale, port.zero_point, str(port.dtype))


def _choose(guesses: np.ndarray, labels: np.ndarray) -> list[int]:
    """The first picture of several digits, and a wrongly recognised one when there is any."""
    wrong = [int(i) for i in np.flatnonzero(guesses != labels)[:1]]
    firsts = sorted(int(np.flatnonzero(labels == label)[0]) for label in np.unique(labels))
    return [i for i in firsts if i not in wrong][: _SHOWN - len(wrong)] + wrong


def _picture(image: np.ndarray, coloured: bool) -> Text:
    """Grey values as coloured half blocks, two rows per line of text; as characters where there are no colours."""
    if not coloured:
        return Text("\n".join("".join(" .:-=+*#%@"[int(v) * 9 // 16] for v in row) for row in image[..., 0]))
    grey = 255 - (image[..., 0].astype(int) * 255 // 16)
    text = Text()
    for top, bottom in zip(grey[0::2], grey[1::2], strict=True):
        for a, b in zip(top, bottom, strict=True):
            text.append("▀", style=f"rgb({a},{a},{a}) on rgb({b},{b},{b})")
        text.append("\n")
    text.rstrip()
    return text


def _predictions(
    session: api.Session,
    images: np.ndarray,
    labels: np.ndarray,
    outputs: list[np.ndarray],
    guesses: np.ndarray,
    shown: list[int],
    coloured: bool,
) -> Table:
    table = Table(title="held-out digits", title_justify="left", padding=(0, 1))
    table.add_column("")
    for position in shown:
        table.add_column(f"#{position}", justify="center")
    port = session.outputs[0]
    scale, zero_point = port.scale or 1.0, port.zero_point or 0
    table.add_row("picture", *(_picture(images[i], coloured) for i in shown))
    table.add_row("label", *(str(int(labels[i])) for i in shown))
    table.add_row(
        "prediction",
        *(Text(str(guesses[i]), style="bold green" if guesses[i] == labels[i] else "bold red") for i in shown),
    )
    table.add_row("raw int8", *(str(int(outputs[i].max())) for i in shown))
    table.add_row("value", *(f"{float(dequantize(outputs[i], scale, zero_point).max()):.3f}" for i in shown))
    return table


def _explain(out: Console, session: api.Session, inputs: np.ndarray) -> None:
    """One convolution output where the rounding rule decides the stored integer, worked out by hand."""
    step = next(s for s in session.plan.steps if s.operator == "conv2d" and s["filter_h"] == 3)
    found = _rounding_witness(session, step, inputs)
    if found is None:
        return
    position, channel, acc, other = found
    arrays = {key: value.reshape(-1)[channel : channel + 1] for key, value in step.arrays.items()}
    multiplier, exponent = int(arrays["multiplier"][0]), int(arrays["exponent"][0])
    high = int(rescale.RULES["q31_one_step_up"].apply(np.array([acc]), {**arrays, "exponent": np.array([0])})[0])
    ours = _stored(step, step.rules["rescale"], acc, arrays)
    real = multiplier * 2.0 ** (exponent - 31)
    shape = "x".join(str(extent) for extent in session.plan.tensors[step.outputs[0]].shape[1:])
    lines = Table(
        title=f"one stored integer, step by step: {step.operator} to {shape}, picture #{position}, channel {channel}",
        title_justify="left",
        show_header=False,
    )
    lines.add_column()
    lines.add_column(justify="right", style="bold")
    lines.add_column(overflow="fold")
    lines.add_row("accumulator", f"{acc:,}", "sum of (q - zero point) * weight, plus bias: exact in 32 bits")
    lines.add_row("real multiplier", f"{real:.9g}", "input scale * weight scale / output scale")
    lines.add_row("multiplier, exponent", f"{multiplier:,}, {exponent}", "the same as multiplier * 2^(exponent - 31)")
    lines.add_row("exact product", f"{acc * real:.6f}", "what real numbers would give")
    lines.add_row("first rounding", f"{high:,}", "acc * multiplier / 2^31, ties up")
    lines.add_row(
        "second rounding", f"{ours[0]}", f"/ 2^{-exponent}, ties away from zero (rule {step.rules['rescale']})"
    )
    lines.add_row(
        "+ zero point, clamp",
        f"{ours[1]}",
        f"+ {step['output_zero_point']}, into [{step['low']}, {step['high']}]: stored",
    )
    for rule in _OTHER_RULES:
        prepared = {k: v[channel : channel + 1] if v.size > 1 else v for k, v in _prepared(step, rule).items()}
        value = _stored(step, rule, acc, prepared)[1]
        mark = "[red]another bit[/red]" if value != ours[1] else "same here"
        lines.add_row(f"with {rule}", f"{value}", mark)
    out.print()
    out.print(lines)
    out.print(
        f"This is how two runtimes part: same model, same input, but one rounds as {step.rules['rescale']}, "
        f"the other as {other}."
    )


def _real_multipliers(step: Step) -> np.ndarray:
    return step.arrays["multiplier"].astype(np.float64) * np.exp2(step.arrays["exponent"].astype(np.float64) - 31)


def _prepared(step: Step, rule: str) -> dict[str, np.ndarray]:
    return rescale.prepare(rule, _real_multipliers(step))


def _stored(step: Step, rule: str, acc: int, arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    rescaled = rescale.RULES[rule].apply(np.array([acc], np.int64), arrays)
    clamp = store.RULES[step.rules["store"]]
    return int(rescaled[0]), int(clamp(rescaled, step["output_zero_point"], step["low"], step["high"])[0])


def _rounding_witness(session: api.Session, step: Step, inputs: np.ndarray) -> tuple[int, int, int, str] | None:
    """(picture, channel, accumulator, other rule) of the first output that another rule stores differently."""
    clamp = store.RULES[step.rules["store"]]
    limits = (step["output_zero_point"], step["low"], step["high"])
    for position, x in enumerate(inputs):
        acc = _accumulators(session, step, session.trace(x[None]))
        ours = clamp(rescale.RULES[step.rules["rescale"]].apply(acc, step.arrays), *limits)
        for rule in _OTHER_RULES:
            theirs = clamp(rescale.RULES[rule].apply(acc, _prepared(step, rule)), *limits)
            different = np.argwhere(ours != theirs)
            if len(different):
                row, channel = (int(i) for i in different[0])
                return position, channel, int(acc[row, channel]), rule
    return None


def _accumulators(session: api.Session, step: Step, traced: dict[str, np.ndarray]) -> np.ndarray:
    """acc[pixel, channel] of a convolution, straight from its definition in int64."""
    tensors = session.plan.tensors
    source, weights, bias = (tensors[i] for i in step.inputs if i is not None)
    # Constants of the embedded model.
    assert weights.value is not None
    assert bias.value is not None
    x = traced[source.name].astype(np.int64) - step["input_zero_point"]
    x = np.pad(x, ((0, 0), (step["pad_top"], step["pad_bottom"]), (step["pad_left"], step["pad_right"]), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, (step["filter_h"], step["filter_w"]), axis=(1, 2))
    view = view[0, :: step["stride_h"], :: step["stride_w"]].transpose(0, 1, 3, 4, 2)
    patches = view.reshape(-1, weights.value[0].size)
    return patches @ weights.value.reshape(len(weights.value), -1).T.astype(np.int64) + bias.value


__all__ = ["command"]
