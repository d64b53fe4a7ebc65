"""One sample again: the very inputs that it became, and the command that explains a flip."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..api import Port
from ..errors import InputError
from ..runners.named import full_name, read_name
from .digests import digest_of
from .recipes import find_recipe
from .sources import open_source

# Digits of a digest that a command repeats.
_DIGITS = 16


def inputs_of(
    data: str, position: int, recipe: str, ports: Sequence[Port], sha256: str = ""
) -> list[dict[str, np.ndarray]]:
    """The inputs by name that the sample at a position becomes, for each of its runs.

    Args:
        data, recipe: as for `evaluate`.
        position: of the sample in the data, counted from 0.
        ports: the model's inputs.
        sha256: how the digest of the inputs begins, as a row's ``input`` says; empty: it is not checked.

    Raises:
        InputError: no such sample, a broken one, or one whose inputs have another digest.
    """
    source = open_source(data, [port.name for port in ports] if len(ports) > 1 else ())
    if position >= len(source):
        raise InputError(
            "BT-SAMPLE", f"the data has {len(source):,} samples, counted from 0", place=f"sample {position}"
        )
    found = find_recipe(recipe, source.holds)
    found.check_all(source, ports)
    sample = source[position]
    made = [found.made(part, ports)[0] for part in sample.read()]
    digest = digest_of(made)
    if not digest.startswith(sha256.lower()):
        raise InputError(
            "BT-SAMPLE-DIGEST",
            f"the input has SHA-256 {digest[:_DIGITS]}..., expected {sha256}",
            place=f"sample {position}, '{sample.id}'",
            advice="the data, the recipe or the version of a library that it uses is another one now",
        )
    return [dict(x) if isinstance(x, Mapping) else {ports[0].name: x} for x in made]


def add_commands(found: dict[str, Any]) -> None:
    """Give every flip that a result lists the ``command`` that explains it; empty where there is none."""
    for pair in found["flips"]:
        for flip in pair["samples"]:
            flip["command"] = _command(found, pair["pair"], flip)


def _command(found: Mapping[str, Any], pair: list[str], flip: Mapping[str, Any]) -> str:
    given = found["given"]
    # The first values of variables are those of `compare`; what came before a sample is not known any more.
    if not found["reset"] or not all(given[name] for name in ("model", "data", "recipe")):
        return ""
    model = given["model"]
    if not os.path.isabs(model) and (":" in model or model.startswith("-")):
        model = f"./{model}"
    words = ["bittrue", "compare", *(_side(model, name, found) for name in pair), "--data", given["data"]]
    if given["recipe"] != "raw":
        words += ["--recipe", given["recipe"]]
    words += ["--sample", str(flip["position"]), "--sha256", flip["input"][:_DIGITS]]
    return shlex.join(words)


def _side(model: str, name: str, found: Mapping[str, Any]) -> str:
    """The model under an arithmetic or in a runtime, as `bittrue compare` takes it."""
    if name not in found["against"]:
        return f"{model}@{name}"
    runtime, options = read_name(name)
    # A side of a comparison may not take all that a runtime may here.
    options.pop("timeout", None)
    word, _, query = full_name(runtime, options).partition("?")
    return f"{word}:{model}" + (f"?{query}" if query else "")
