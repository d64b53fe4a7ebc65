"""The two sides of a comparison, from what users type.

``MODEL``
    bittrue, with the numerics that the file's format comes with; beside ``ort:`` the one that has ONNX Runtime's
    bits on the processor at hand.
``MODEL@NUMERICS``
    bittrue, with another numerics, for example ``model.tflite@xnnpack``.
``litert:RESOLVER MODEL``
    LiteRT as it is installed here; RESOLVER is builtin_ref (the default), optimized or xnnpack. Also written
    ``litert:RESOLVER:MODEL``, ``litert:MODEL`` and ``litert:MODEL?resolver=RESOLVER``. Options: threads, timeout
    (seconds that a run may take), repair (1: see `litert.LiteRT`). On a command line the other side may name the file
    for both: ``litert:builtin_ref litert:xnnpack MODEL``.
``ort:MODEL``
    ONNX Runtime as it is installed here. Options: level (disable, basic, extended, layout or all), disable (names of
    optimisers, separated by commas), threads, integers (1 or 0: ``session.qdqisint8allowed``; 1 by default, which is
    what the numerics reproduce that do not end in -defaults).
``openvino:MODEL``
    OpenVINO's CPU plugin as it is installed here. Options: tensors (outputs, or all: see `openvino.OpenVino`), threads.
``trace:DIR``
    What a device, or `bittrue run --trace`, left behind; see `bittrue.runners.trace` for the form.

Options follow the file as ``?name=value&name=value``. A file whose name looks like one of these is named by its path:
``./litert:model``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import numerics as numerics_tables
from ..api import load
from ..errors import InputError
from ..names import near, near_or_all
from .base import Runner, input_ports
from .litert import RESOLVERS, LiteRT
from .onnxruntime import LEVELS, OnnxRuntime, Settings
from .openvino import OpenVino
from .ours import Ours
from .processor import delegate_here, onnxruntime_here, processor_note
from .trace import Trace

__all__ = ["Runner", "join_words", "open_side", "open_sides"]


@dataclass(frozen=True)
class _Scheme:
    """What stands before the colon.

    Attributes:
        options: names of what may follow the question mark.
        variants: what may stand between the colon and the file.
        variant: the option that they are values of.
        make: (spec, target, options, weights) -> Runner.
    """

    make: Callable[[str, str, dict[str, str], Any], Runner]
    options: tuple[str, ...]
    variants: tuple[str, ...] = ()
    variant: str = ""


def open_side(text: str, weights: Any = None) -> Runner:
    """The runner that a text stands for; see the top of this file.

    Args:
        text: what the user typed.
        weights: the second file of formats that have one; see `bittrue.load`.

    Raises:
        InputError: an unknown runner, numerics or option, or no such file.
        UnsupportedError: the runtime is not installed, or does not read files of this format.
        BittrueError: whatever is wrong with the model.
    """
    name, _, rest = text.strip().partition(":")
    scheme = _scheme(text.strip())
    if scheme is None:
        return _ours(text.strip(), weights)
    target, options = _options(name, scheme, rest)
    if not target:
        raise InputError("BT-SIDE", "no file is named", place=f"'{text}'", advice=f"write {_form(name, scheme)}")
    return scheme.make(text, target, options, weights)


def open_sides(texts: Sequence[str], shapes: Mapping[str, Sequence[int] | int] | None = None) -> list[Runner]:
    """The runners of several sides that are compared. Errors as for `open_side`; then none is left open.

    `shapes` are what random values have: shapes by input, sizes by free dimension, of any side that has the name.
    Where ONNX Runtime is among them, an ONNX model for which no numerics is named gets the one of this processor
    and its options, so that nothing is reported that only tells two processors apart.
    """
    with ExitStack() as stack:
        opened: list[Runner] = []
        for text in texts:
            opened.append(open_side(text))
            stack.callback(opened[-1].close)
        if theirs := next((runner for runner in opened if isinstance(runner, OnnxRuntime)), None):
            here = onnxruntime_here().with_options(theirs.settings.integers)
            opened = [_as_processed(runner, here) for runner in opened]
        if delegate_here().numerics in {runner.numerics for runner in opened if isinstance(runner, LiteRT)}:
            # What is named stays, but whoever names the delegate of another processor is told.
            opened = [
                runner.told(processor_note(runner.numerics))
                if isinstance(runner, Ours) and runner.format == "tflite"
                else runner
                for runner in opened
            ]
        if shapes:
            _size_inputs(opened, shapes)
        stack.pop_all()
    return opened


def _as_processed(runner: Runner, here: str) -> Runner:
    """A side beside ONNX Runtime: a model of ours for which no numerics is named gets the one that the runtime has."""
    if not isinstance(runner, Ours) or runner.format != "onnx" or _numerics(runner.spec)[1] or runner.numerics == here:
        return runner
    usual = f"{runner.spec}@{runner.numerics}"
    return runner.told(f"{here} is ONNX Runtime on this processor; {usual} compares the usual one", here)


def _size_inputs(runners: Sequence[Runner], shapes: Mapping[str, Sequence[int] | int]) -> None:
    """Gives inputs other shapes; InputError for names that no side has."""
    names: set[str] = set()
    for runner in runners:
        if runner.model is not None:
            graph = runner.model.graph
            inputs = [graph.tensors[index] for index in graph.inputs]
            known = {name for tensor in inputs for name in (tensor.name, *(tensor.symbols or ())) if name}
            names |= known
            own = {name: shape for name, shape in shapes.items() if name in known}
            runner.inputs = input_ports(runner.model, own) if own else runner.inputs
    for name in shapes:
        if name not in names:
            text = f"'{name}' is no input and no free dimension of either side"
            raise InputError("BT-INPUT-NAME", text, advice=near_or_all(name, sorted(names), "inputs and dimensions"))


def join_words(words: Sequence[str]) -> list[str]:
    """Words of a command line, with ``litert:xnnpack model.tflite`` as one of them though the shell makes it two.

    A side that names a runner alone has the file of the side behind it, or of the one before.

    Raises:
        InputError: an unknown variant, numerics or option, in a side whose file another one has, too.

    >>> join_words(["litert:builtin_ref", "a.tflite", "a.tflite@xnnpack", "litert:b.tflite"])
    ['litert:builtin_ref a.tflite', 'a.tflite@xnnpack', 'litert:b.tflite']
    >>> join_words(["litert:builtin_ref", "litert:xnnpack", "a.tflite"])
    ['litert:builtin_ref a.tflite', 'litert:xnnpack a.tflite']
    """
    found: list[str] = []
    for word in words:
        if found and _lacks_file(found[-1]) and not _scheme(word):
            found[-1] += f" {word}"
        else:
            found.append(word)
    alone = [position for position, side in enumerate(found) if _lacks_file(side)]
    for position in alone:
        others = found[position + 1 :] + found[:position][::-1]
        if file := next((_file(side) for side in others if not _lacks_file(side)), ""):
            found[position] += f" {file}"
    return found


def _scheme(text: str) -> _Scheme | None:
    name, colon, _ = text.partition(":")
    return _SCHEMES.get(name) if colon else None


def _lacks_file(text: str) -> bool:
    """Whether a text is a runner without its file."""
    scheme, rest = _scheme(text), text.partition(":")[2]
    if scheme is None or not rest or rest in scheme.variants:
        return scheme is not None
    # What looks like a misspelt variant is one: `open_side` says so.
    return rest.isidentifier() and not os.path.exists(rest) and bool(near(rest, scheme.variants))


def _file(text: str) -> str:
    name, _, rest = text.partition(":")
    scheme = _scheme(text)
    return _numerics(text)[0] if scheme is None else _options(name, scheme, rest)[0]


def _form(name: str, scheme: _Scheme) -> str:
    variants = f"[{'|'.join(scheme.variants)}] " if scheme.variants else ""
    return f"{name}:{variants}{'DIR' if name == 'trace' else 'MODEL'}"


def _options(name: str, scheme: _Scheme, rest: str) -> tuple[str, dict[str, str]]:
    """File and options of what follows the colon."""
    target, options = rest.strip(), dict[str, str]()
    for variant in scheme.variants:
        if target.startswith((f"{variant} ", f"{variant}:")) or target == variant:
            target, options = target[len(variant) + 1 :].strip(), {scheme.variant: variant}
            break
    else:
        word = target.partition(" ")[0]
        if scheme.variants and word.isidentifier() and not os.path.exists(target):
            raise InputError(
                "BT-SIDE",
                f"'{word}' is neither a file nor a {scheme.variant} of {name}",
                advice=near_or_all(word, scheme.variants, "choose one of"),
            )
    if "?" in target and not os.path.exists(target):
        target, _, query = target.rpartition("?")
        for key, value in query_options(name, query, scheme.options).items():
            if key in options:
                raise InputError("BT-SIDE-OPTION", f"{key} is given twice", place=f"'{name}:{rest}'")
            options[key] = value
    return target, options


def query_options(name: str, query: str, known: Sequence[str]) -> dict[str, str]:
    """Options by name, of what follows the question mark behind `name`."""
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            # A name without a value is no misspelt one.
            advice = near_or_all(key if equals else "", known, "options")
            raise InputError("BT-SIDE-OPTION", f"'{part}' is no option of {name}", advice=advice)
        if key in options:
            raise InputError("BT-SIDE-OPTION", f"{key} is given twice", place=f"'{name}?{query}'")
        options[key] = value
    return options


def _ours(text: str, weights: Any) -> Runner:
    path, numerics = _numerics(text)
    name, colon, rest = text.partition(":")
    if colon and not os.path.exists(path) and name.isidentifier():
        close = near(name, _SCHEMES, 1)
        known = ", ".join(f"{_form(key, scheme)}" for key, scheme in _SCHEMES.items())
        raise InputError(
            "BT-SIDE",
            f"'{name}' is no runner, and there is no file '{path}'",
            advice=f"did you mean {close[0]}:{rest}?" if close else f"write MODEL, MODEL@NUMERICS, {known}",
        )
    model = load(path, weights)
    return Ours(text, Path(path), model, numerics or numerics_tables.default_of(model.format))


def _numerics(text: str) -> tuple[str, str]:
    """(path, numerics or nothing) of MODEL@NUMERICS; names of files and of numerics may hold '@' themselves."""
    if os.path.exists(text):
        return text, ""
    known = [name for name in numerics_tables.names() if text.endswith(f"@{name}")]
    if known:
        name = max(known, key=len)
        return text[: -len(name) - 1], name
    parts = text.split("@")
    for count in range(1, len(parts)):
        path = "@".join(parts[:count])
        if os.path.isfile(path):
            # Unknown: says which ones there are.
            numerics_tables.find("@".join(parts[count:]))
    return text, ""


def choice(options: Mapping[str, str], key: str, allowed: Sequence[str], default: str) -> str:
    """The value of an option that has few."""
    value = options.get(key, default)
    if value not in allowed:
        advice = near_or_all(value, allowed, "choose one of")
        raise InputError("BT-SIDE-OPTION", f"{key} cannot be '{value}'", advice=advice)
    return value


def number(options: Mapping[str, str], key: str, default: int, most: int) -> int:
    """The value of an option that is a count."""
    text = options.get(key, str(default))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
        raise InputError("BT-SIDE-OPTION", f"{key} cannot be '{text}'", advice=f"a number from 1 to {most}")
    return int(text)


def _litert(spec: str, target: str, options: dict[str, str], weights: Any) -> Runner:
    resolver = choice(options, "resolver", tuple(RESOLVERS), "builtin_ref")
    threads, timeout = number(options, "threads", 1, 1024), number(options, "timeout", 600, 10**6)
    repair = choice(options, "repair", ("0", "1"), "0") == "1"
    return LiteRT(spec, Path(target), load(target, weights), resolver, threads, timeout, repair)


def _onnxruntime(spec: str, target: str, options: dict[str, str], weights: Any) -> Runner:
    settings = Settings(
        choice(options, "level", tuple(LEVELS), "all"),
        tuple(filter(None, options.get("disable", "").split(","))),
        number(options, "threads", 1, 1024),
        choice(options, "integers", ("1", "0"), "1") == "1",
    )
    return OnnxRuntime(spec, Path(target), load(target, weights), settings)


def _openvino(spec: str, target: str, options: dict[str, str], weights: Any) -> Runner:
    every = choice(options, "tensors", ("outputs", "all"), "outputs") == "all"
    return OpenVino(spec, Path(target), load(target, weights), every, number(options, "threads", 1, 1024))


_SCHEMES = {
    "litert": _Scheme(_litert, ("resolver", "threads", "timeout", "repair"), tuple(RESOLVERS), "resolver"),
    "openvino": _Scheme(_openvino, ("tensors", "threads")),
    "trace": _Scheme(lambda spec, target, options, weights: Trace(spec, Path(target)), ()),
    "ort": _Scheme(_onnxruntime, ("level", "disable", "threads", "integers")),
}
