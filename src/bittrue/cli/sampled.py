"""Options by which commands that take inputs take a sample of a data set instead."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from ..api import Port
from ..errors import InputError
from .clicking import GroupedOption

_GROUP = "Inputs from a data set"


def sample_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `sample_inputs` takes."""
    for name, more in reversed(
        (
            ("--data", {"metavar": "SOURCE", "help": "A data set, as `bittrue evaluate` takes it."}),
            ("--sample", {"type": click.IntRange(0), "metavar": "N", "help": "Which sample of it, counted from 0."}),
            ("--recipe", {"metavar": "NAME", "show_default": "raw", "help": "How the sample becomes the input."}),
            ("--sha256", {"metavar": "DIGITS", "help": "How the digest of the input begins; another one is an error."}),
        )
    ):
        command = click.option(name, cls=GroupedOption, group=_GROUP, **more)(command)
    return command


def sample_inputs(
    ports: Sequence[Port],
    others: Mapping[str, object],
    *,
    data: str | None,
    sample: int | None,
    recipe: str | None,
    sha256: str | None,
) -> tuple[list[tuple[dict[str, np.ndarray], str]], str] | None:
    """The inputs of every run of a sample, each with a few words on what it is, and options that give them again.

    None: no data set is named.

    Args:
        ports: the model's inputs.
        others: the options that choose other inputs, by name: none of them may have a value beside these.
        data, sample, recipe, sha256: what was given.

    Raises:
        InputError: options that do not go together, or as `inputs_of`.
    """
    if data is None or sample is None:
        for name, given in (("--data", data), ("--sample", sample), ("--recipe", recipe), ("--sha256", sha256)):
            if given is not None:
                raise InputError("BT-USAGE", "needs both --data and --sample", place=name)
        return None
    for name, other in others.items():
        if other not in (None, ()):
            raise InputError("BT-USAGE", "has no effect beside --data: the sample is the input", place=name)
    from ..evaluation.sampled import inputs_of

    inputs = inputs_of(data, sample, recipe or "raw", ports, sha256 or "")
    words = ["--data", data, "--sample", str(sample)]
    for name, value in (("--recipe", recipe), ("--sha256", sha256)):
        words += [name, value] if value else []
    text = f"sample {sample} of {data}"
    texts = [text] if len(inputs) == 1 else [f"{text}, run {number}" for number in range(1, len(inputs) + 1)]
    return list(zip(inputs, texts, strict=True)), shlex.join(words)
