"""What both sides are fed: the same numbers, in each side's type and layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api import Port
from ..errors import InputError
from ..graph import data_type
from ..names import near_or_all
from ..quantization import dequantize, quantize
from ..runners.base import Runner
from ..runners.inputs import random_input
from ..runners.recording import Recorded, Recording
from .alignment import Layout, layouts

# Axes of images, channels last to channels first and back: what inputs of two formats differ by.
_IMAGES = ((0, 3, 1, 2), (0, 2, 3, 1))


@dataclass(frozen=True)
class InputSet:
    """One run of both sides.

    Attributes:
        a, b: values by input name; empty where that side's run is recorded already.
        recorded_a, recorded_b: such a run.
        text: what is fed, for people.
        options: what makes `bittrue explain` take the same inputs; empty when arrays came from the caller.
        ports: names of inputs of A and of B that get the same numbers.
        notes: what was done so that they fit.
    """

    a: Mapping[str, np.ndarray]
    b: Mapping[str, np.ndarray]
    recorded_a: Recording | None = None
    recorded_b: Recording | None = None
    text: str = ""
    options: str = ""
    ports: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Given:
    """Values that the user chose for one run.

    Attributes:
        values: by input name of either side; inputs that are missing get random values.
        seed: of those.
        text, options: as in `InputSet`.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    text: str = ""
    options: str = ""


def input_sets(a: Runner, b: Runner, given: Sequence[Given]) -> list[InputSet]:
    """The runs to compare: those that a trace holds, else one per entry of `given`.

    Raises:
        InputError: inputs that cannot be paired, or numbers that the other side's type or layout does not have.
    """
    recorded = a.recorded(), b.recorded()
    if not recorded[0] and not recorded[1]:
        return [_live(a.inputs, b.inputs, one, (a, b)) for one in given]
    chosen = [one for one in given if one.values]
    if recorded[0] and recorded[1]:
        if chosen:
            raise InputError("BT-COMPARE-INPUTS", "both sides are recorded already: there is nothing to feed")
        runs = zip(recorded[0], recorded[1], strict=False)
        return [InputSet({}, {}, one, two, f"run {i} of both traces") for i, (one, two) in enumerate(runs)]
    trace, live = (0, b) if recorded[0] else (1, a)
    if chosen and len(given) != len(recorded[trace]):
        raise InputError(
            "BT-COMPARE-INPUTS",
            f"the trace holds {len(recorded[trace])} runs, inputs are given for {len(given)}",
            advice="give the inputs of every run, in their order",
        )
    sets = []
    for i, recording in enumerate(recorded[trace]):
        one = given[i] if chosen else Given()
        values, ports, notes = _from_trace(recording, live, one)
        lacking = [port for port in live.inputs if port.name not in dict(ports)]
        recording = _with_inputs(recording, lacking, values)
        held = "inputs of the trace" if ports else "given inputs"
        ports += [(port.name, port.name) for port in lacking]
        pairs = tuple((p, t) if trace else (t, p) for p, t in ports)
        text = f"{held}, run {i}" + (f"; {one.text}" if one.values else "")
        # Whoever is told how to see it again needs all inputs as files.
        options = one.options if all(port.name in one.values for port in live.inputs) else ""
        if trace:
            sets.append(InputSet(values, {}, None, recording, text, options, pairs, tuple(notes)))
        else:
            sets.append(InputSet({}, values, recording, None, text, options, pairs, tuple(notes)))
    return sets


def _with_inputs(recording: Recording, missing: Sequence[Port], values: Mapping[str, np.ndarray]) -> Recording:
    """The recording, with the given inputs that it lacks: what reads them can then be looked at alone."""
    if not missing:
        return recording
    added = []
    for port in missing:
        value = values[port.name]
        dtype = data_type(value.dtype.name).name
        added.append(Recorded(port.name, dtype, value.shape, port.quantization, lambda value=value: value))  # type: ignore[misc]
    names = ", ".join(f"'{port.name}'" for port in missing)
    notes = (*recording.notes, f"the trace lacks {names}: taken from the given inputs")
    inputs = (*(port.name for port in missing), *recording.inputs)
    return Recording((*added, *recording.tensors), inputs, recording.outputs, notes)


def _live(ours: Sequence[Port], theirs: Sequence[Port], given: Given, runners: tuple[Runner, Runner]) -> InputSet:
    values: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = ({}, {})
    notes: list[str] = []
    unknown = set(given.values) - {port.name for port in (*ours, *theirs)}
    if unknown:
        known = list(dict.fromkeys(port.name for port in (*ours, *theirs)))
        raise InputError(
            "BT-INPUT-NAME",
            f"'{min(unknown)}' is no input of either side",
            advice=near_or_all(min(unknown), known, "inputs"),
        )
    rng = np.random.default_rng(given.seed)
    pairs = pair_ports(ours, theirs)
    for one, two in pairs:
        ports = one, two
        # Integers stand for real numbers exactly, not the other way round: they are what is drawn.
        place = 1 if one.dtype.kind == "f" and two.dtype.kind in "iu" else 0
        names = [i for i, port in enumerate(ports) if port.name in given.values]
        if names:
            place = names[0]
            value = np.asarray(given.values[ports[place].name])
            if value.dtype != ports[place].dtype and value.dtype == ports[1 - place].dtype:
                place = 1 - place
        else:
            value = _random(rng, ports[place], runners[place])
        values[place][ports[place].name] = value
        other, note = carry(value, ports[place], ports[1 - place])
        values[1 - place][ports[1 - place].name] = other
        notes += [f"{'BA'[place]}: {note}"] if note else []
    text = given.text or (f"random values, seed {given.seed}" if len(given.values) < len(pairs) else "given values")
    names_of = tuple((one.name, two.name) for one, two in pairs)
    return InputSet(values[0], values[1], None, None, text, given.options, names_of, tuple(notes))


def pair_ports(ours: Sequence[Port], theirs: Sequence[Port]) -> list[tuple[Port, Port]]:
    """Inputs of two models that stand for the same: by name, else by order.

    Raises:
        InputError: neither fits.
    """
    by_name = {port.name: port for port in theirs}
    if all(port.name in by_name for port in ours) and len(ours) == len(theirs):
        return [(port, by_name[port.name]) for port in ours]
    if len(ours) != len(theirs):
        raise InputError(
            "BT-COMPARE-INPUTS",
            f"A has {len(ours)} inputs, B has {len(theirs)}",
            place=f"A: {', '.join(p.name for p in ours)}; B: {', '.join(p.name for p in theirs)}",
            advice="compare models with the same inputs",
        )
    free = list(theirs)
    pairs = []
    for port in ours:
        named = [t for t in free if t.name == port.name or t.name.split(":")[0] == port.name.split(":")[0]]
        sized = [t for t in free if -1 not in (*t.shape, *port.shape) and math.prod(t.shape) == math.prod(port.shape)]
        chosen = (named or sized or free)[0]
        free.remove(chosen)
        pairs.append((port, chosen))
    return pairs


def carry(value: np.ndarray, source: Port, target: Port) -> tuple[np.ndarray, str]:
    """The numbers of one side's input as the other side's input takes them, and what was done.

    Raises:
        InputError: the other side's shape or type does not have them.
    """
    done = []
    place = f"input '{target.name}'"
    if value.dtype != target.dtype:
        value, text = _retyped(value, source, target, place)
        done.append(text)
    if not _matches(value.shape, target.shape) and not target.takes(value.shape):
        layout = _image(value.shape, target.shape)
        if layout is None:
            raise InputError(
                "BT-COMPARE-INPUTS",
                f"takes shape {list(target.shape)}, the other side's input '{source.name}' has {list(value.shape)}",
                place=place,
                advice="compare two forms of one network",
            )
        value = np.ascontiguousarray(layout(value))
        done.append(str(layout))
    return value, f"{place} gets the values of '{source.name}': {', '.join(done)}" if done else ""


def _retyped(value: np.ndarray, source: Port, target: Port, place: str) -> tuple[np.ndarray, str]:
    whole, real = value.dtype.kind in "iu", target.dtype.kind == "f"
    if whole and real and source.scale is not None and source.zero_point is not None:
        return dequantize(value, source.scale, source.zero_point).astype(target.dtype), "as real numbers"
    if value.dtype.kind == "f" and target.dtype.kind in "iu" and target.scale is not None:
        name = data_type(_short(target.dtype)).title
        return quantize(value, target.scale, target.zero_point or 0, name), "quantized, so rounded"
    if {str(value.dtype), str(target.dtype)} == {"int8", "uint8"}:
        return (value.view(np.uint8) ^ np.uint8(128)).view(target.dtype), "moved by 128"
    with np.errstate(all="ignore"):
        cast = value.astype(target.dtype)
        if value.dtype.kind in "fiub" and np.array_equal(cast.astype(value.dtype), value):
            return cast, f"as {target.dtype}"
    raise InputError(
        "BT-COMPARE-INPUTS",
        f"takes {target.dtype}, the other side's input '{source.name}' holds {value.dtype} values",
        place=place,
        advice="give values that both types have",
    )


def _short(dtype: np.dtype) -> str:
    return f"{dtype.kind.replace('i', 's')}{8 * dtype.itemsize}"


def _matches(shape: Sequence[int], pattern: Sequence[int]) -> bool:
    return len(shape) == len(pattern) and all(p in (-1, e) for e, p in zip(shape, pattern, strict=True))


def _image(shape: tuple[int, ...], pattern: tuple[int, ...]) -> Layout | None:
    for axes in _IMAGES:
        moved = tuple(shape[i] for i in axes) if len(shape) == 4 else ()
        if moved and _matches(moved, pattern):
            return Layout(moved, None, axes)
    return next(layouts(tuple(pattern), shape), None) if -1 not in pattern else None


def _random(rng: np.random.Generator, port: Port, runner: Runner) -> np.ndarray:
    """What `bittrue run` draws; float inputs that layers on integers read get 0..255."""
    if -1 not in port.shape and port.name in _inputs_of_levels(runner):
        return rng.integers(0, 256, port.shape).astype(port.dtype)
    return random_input(rng, port)


def _inputs_of_levels(runner: Runner) -> set[str]:
    """Inputs of real type that hold integers: layers on such numbers read them."""
    graph = None if runner.model is None else runner.model.graph
    if graph is None:
        return set()
    # Layers on integers in binary32 alone say whether they rescale.
    read = {node.inputs[0] for node in graph.nodes if "rescales" in node.attributes}
    return {graph.tensors[index].name for index in graph.inputs if index in read}


def _from_trace(
    recording: Recording, live: Runner, given: Given
) -> tuple[dict[str, np.ndarray], list[tuple[str, str]], list[str]]:
    """Values for a live side: those that the trace holds, under the same name, else the trace's inputs in order.

    Raises:
        InputError: the trace lacks an input that is not given either, or holds another value of one that is given.
    """
    known = [port.name for port in live.inputs]
    unknown = set(given.values) - set(known)
    if unknown:
        text = f"'{min(unknown)}' is no input of the other side than the trace"
        raise InputError("BT-INPUT-NAME", text, advice=near_or_all(min(unknown), known, "inputs"))
    values: dict[str, np.ndarray] = {}
    ports: list[tuple[str, str]] = []
    notes = []
    inputs = [name for name in recording.inputs if name in recording]
    for position, port in enumerate(live.inputs):
        name = port.name if port.name in recording else None
        if name is None and len(inputs) == len(live.inputs):
            name = inputs[position]
        if name is not None:
            stored = recording[name]
            source = Port(stored.name, data_type(stored.dtype).numpy, stored.shape, stored.quantization)
            values[port.name], note = carry(np.asarray(stored.load()), source, port)
            ports.append((port.name, name))
            notes += [note] if note else []
            if port.name in given.values:
                _check_held(port, values[port.name], np.asarray(given.values[port.name]))
        elif port.name in given.values:
            values[port.name] = np.asarray(given.values[port.name])
        else:
            raise InputError(
                "BT-COMPARE-INPUTS",
                f"the trace does not hold input '{port.name}'",
                advice="add it to the trace, or give the values that the device had with --input",
            )
    return values, ports, notes


def _check_held(port: Port, held: np.ndarray, value: np.ndarray) -> None:
    """An input that a trace holds and somebody gives as well has one value, or it is not known which one is meant."""
    if value.dtype == held.dtype and value.size == held.size and value.tobytes() == held.tobytes():
        return
    found = f"{value.dtype}{list(value.shape)} instead of {held.dtype}{list(held.shape)}"
    if value.dtype == held.dtype and value.shape == held.shape:
        differing = np.ascontiguousarray(value).view(np.uint8) != np.ascontiguousarray(held).view(np.uint8)
        differing = differing.reshape(*value.shape, value.dtype.itemsize).any(-1)
        found = f"{int(differing.sum()):,} of {value.size:,} elements differ"
    raise InputError(
        "BT-COMPARE-INPUTS",
        f"the trace holds this input with other values than those given: {found}",
        place=f"input '{port.name}'",
        advice="leave --input out to use the trace's own, or compare with the trace that belongs to this input",
    )
