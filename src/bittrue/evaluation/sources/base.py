"""What every source of samples is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...errors import InputError

# What one input is made of: bytes (an encoded image, or values as they are) or an array; by the inputs' names, in the
# model's order, where a model has several.
Value: TypeAlias = bytes | np.ndarray
Part: TypeAlias = Value | Mapping[str, Value]


@dataclass(frozen=True)
class Held:
    """What a source holds for an input.

    Attributes:
        holds: ``"image"`` (an encoded one), ``"bytes"`` (values) or ``"array"``.
        alike: an array with the shape and type of that of every sample; None where they may differ.
    """

    holds: str
    alike: np.ndarray | None = None


@dataclass(slots=True)
class Sample:
    """One sample, not yet read.

    Attributes:
        id: its name within the source, the same in every run and on every machine.
        label: what the source says about it, as plain data for JSON: the number of a class, or whatever the task asks
            for; None where it says nothing.
        read: returns what the model is run on, one part for every run (mostly one). Called in a worker's thread.
        truth: reads what the label only names, such as a mask; None where the label is all. Called like `read`.
    """

    id: str
    label: Any
    read: Callable[[], Sequence[Part]]
    truth: Callable[[], Any] | None = None


class Source(ABC):
    """Samples in a fixed order.

    Attributes:
        kind: the prefix that names it.
        holds: what the parts of its samples are: ``"image"`` (an encoded one), ``"bytes"`` (values) or ``"array"``.
        place: what the user named.
        classes: names of the classes by number; empty where the source has none.
        alike: an array with the shape and type of every sample; None where they may differ.
        inputs: for models with several inputs: what there is for each, by name in the model's order; empty where parts
            are one value.
    """

    kind: str
    holds: str
    alike: np.ndarray | None = None
    inputs: Mapping[str, Held] = MappingProxyType({})

    def __init__(self, place: str, classes: Sequence[str] = ()) -> None:
        self.place = place
        self.classes = tuple(classes)

    @abstractmethod
    def __len__(self) -> int:
        """How many samples there are."""

    @abstractmethod
    def __getitem__(self, position: int) -> Sample:
        """The sample at a position from 0 on."""

    def samples(self, positions: range) -> Iterator[tuple[int, Sample]]:
        """The samples at these positions, each with its own, in order."""
        return ((position, self[position]) for position in positions)


def no_samples(place: str, expected: str) -> InputError:
    """The error of a source without samples."""
    return InputError("BT-DATA-EMPTY", f"no samples: expected {expected}", place=place)
