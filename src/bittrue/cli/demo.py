"""`bittrue demo`: the main job on an embedded model, in a few seconds."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click
import numpy as np
from rich.table import Table
from rich.text import Text

from .. import api, samples
from ..compare.archive import write_arrays
from ..explain import explain_element, explain_under, first_different, numerics_against
from ..files import write_bytes, write_text, writing, written
from ..operators import Step
from ..plan import Plan
from ..quantization import dequantize, quantize
from .common import console, digest, print_lines
from .explain import show
from .plain import say
from .terminal import Terminal

# Columns of the terminal that a digit takes, and the words before them.
_DIGIT, _WORDS = 11, 12
# The digit that --save writes: a 4.
_SAVED = 24
_RECIPE = """# Grey values from 0 to 16 become real numbers from 0 to 1; the model's input quantizes them.

[[step]]
do = "scale"
factor = 0.0625
"""
_OTHER_RULES = ("q31_one_step_up", "q31_two_step_up_up", "binary32_multiply_even")


@click.command("demo")
@click.option("--plan", "show_plan", is_flag=True, help="Also print the whole plan.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write the model, one of its inputs, its labels and a small data set into FOLDER, for the other commands.",
)
def command(show_plan: bool, save: Path | None) -> None:
    """Recognise handwritten digits with an int8 network, and look into one of its roundings."""
    out = console()
    images, labels = samples.demo_digits()
    session = api.load(samples.demo_model()).prepare(numerics="litert")
    port = session.inputs[0]
    out.print(
        "[bold]bittrue demo[/bold]: an int8 network for 8x8 handwritten digits, run bit for bit as its runtime would",
        markup=True,
    )
    out.print(
        f"numerics [bold]{session.plan.numerics}[/bold] = {session.plan.reproduces}\n"
        f"input {port.dtype}{list(port.shape)}, real = {port.scale:.9g} * (q {_minus(port.zero_point)}); "
        f"{len(session.plan.steps)} steps, {session.plan.work:,} multiply-accumulates",
        markup=True,
    )
    # Grey values 0..16 mean 0..1: real x / 16, then the input's own scale and zero point.
    inputs = _quantized(images, port)
    started = time.perf_counter()
    outputs = [next(iter(session.run(x[None]).values()))[0] for x in inputs]
    elapsed = time.perf_counter() - started
    guesses = np.array([int(np.argmax(o)) for o in outputs])
    shown = _choose(guesses, labels, max((out.width - _WORDS) // _DIGIT, 1))
    out.print()
    out.print(_predictions(session, images, labels, outputs, guesses, shown, out.color_system in ("256", "truecolor")))
    right = int((guesses == labels).sum())
    out.print(
        f"[bold]{right} of {len(labels)}[/bold] held-out digits right ({100 * right / len(labels):.1f} %), "
        f"{1e6 * elapsed / len(labels):,.1f} us each with executor '{session.executor}'; "
        f"sha256 of all outputs {digest(np.stack(outputs))[:16]}",
        markup=True,
    )
    _explain(out, session, inputs)
    if save is not None:
        _save(save, inputs[_SAVED])
        say(f"saved digits.tflite, digit.npy, labels.txt, digits.npz and digits.toml in {save}")
    if show_plan:
        print_lines(str(session.plan))
    out.print()
    if save is None:
        out.print("next: bittrue demo --save .   # the model and a digit as files, to try other commands on")
        return
    files = ("digits.tflite", "digit.npy", "digits.npz", "digits.toml")
    model, digit, data, recipe = (shlex.quote(str(save / name)) for name in files)
    for words in (
        f"run {model} --input {digit} --top 3",
        f"explain {model} --tensor 0 --input {digit}",
        f"check {model}",
        f"compare {model} {model}@xnnpack --runs 5",
        f"evaluate {model} --data {data} --recipe {recipe} --numerics litert,xnnpack",
    ):
        out.print(f"next: bittrue {words}", soft_wrap=True)


def _save(folder: Path, x: np.ndarray) -> None:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / "digits.tflite", samples.demo_model())
    with written(folder / "digit.npy") as file:
        np.save(file, x[None], allow_pickle=False)
    write_text(folder / "labels.txt", "".join(f"{label}\n" for label in range(10)))
    images, labels = samples.demo_digits()
    with written(folder / "digits.npz") as file:
        write_arrays(file, {"images": images, "labels": labels})
    write_text(folder / "digits.toml", _RECIPE)


def _minus(zero_point: int | None) -> str:
    shift = -(zero_point or 0)
    return f"+ {shift}" if shift > 0 else f"- {-shift}"


def _quantized(images: np.ndarray, port: api.Port) -> np.ndarray:
    # The embedded model has both.
    assert port.scale is not None
    assert port.zero_point is not None
    return quantize(images.astype(np.float32) / 16, port.scale, port.zero_point, str(port.dtype))


def _choose(guesses: np.ndarray, labels: np.ndarray, count: int) -> list[int]:
    """The first image of several digits, and a wrongly recognised one when there is any."""
    wrong = [int(i) for i in np.flatnonzero(guesses != labels)[:1]]
    firsts = sorted(int(np.flatnonzero(labels == label)[0]) for label in np.unique(labels))
    return [i for i in firsts if i not in wrong][: max(count - len(wrong), 0)] + wrong


def _image(image: np.ndarray, coloured: bool) -> Text:
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
    table.add_row("image", *(_image(images[i], coloured) for i in shown))
    table.add_row("label", *(str(int(labels[i])) for i in shown))
    table.add_row(
        "prediction",
        *(Text(str(guesses[i]), style="bold green" if guesses[i] == labels[i] else "bold red") for i in shown),
    )
    table.add_row("raw int8", *(str(int(outputs[i].max())) for i in shown))
    table.add_row("value", *(f"{float(dequantize(outputs[i], scale, zero_point).max()):.3f}" for i in shown))
    return table


def _explain(out: Terminal, session: api.Session, inputs: np.ndarray) -> None:
    """One convolution output where the rounding rule decides the quantized value, worked out by hand."""
    step = next(s for s in session.plan.steps if s.parameters.get("filter_h") == 3 and s.accumulator is not None)
    tensor = session.plan.tensors[step.outputs[0]].name
    others = {rule: _plan_with(session, step, rule) for rule in _OTHER_RULES}
    for position, x in enumerate(inputs):
        traced = session.trace(x[None])
        for rule, other in others.items():
            found = first_different(session.plan, other, traced, tensor)
            if found is None:
                continue
            explained = explain_element(session, traced, tensor, found[0])
            out.print()
            out.print(f"one integer that the network computes for image #{position}, step by step:")
            show(out, explained)
            for name, plan in others.items():
                stored = explain_under(plan, traced, explained).stored
                mark = "same here" if stored == explained.stored else "[red]another bit[/red]"
                out.print(f"with {name}: {stored}, {mark}", markup=True)
            out.print(
                f"This is how two runtimes differ: same model, same input, but one rounds as {step.rules['rescale']}, "
                f"the other as {rule}."
            )
            return


def _plan_with(session: api.Session, step: Step, rule: str) -> Plan:
    numerics = numerics_against(session.plan, step, rule)
    return api.load(samples.demo_model()).prepare(numerics, executor="reference").plan


__all__ = ["command"]
