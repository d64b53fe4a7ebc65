"""Samples that lie one after the other in an array: .npy, or .npz with labels beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...runners.arrays import members, npy
from ...visible import visible
from .base import Held, Sample, Source, no_samples
from .places import on_disk

# Names of arrays in .npz files that hold labels, in the order in which they are looked for.
_LABELS = ("labels", "label", "y_test", "y", "targets", "target")


class Arrays(Source):
    """An array with one sample after the other.

    Args:
        path: a .npy or .npz file. In .npz files, labels are the array called ``labels``, ``label``, ``y_test``, ``y``,
            ``targets`` or ``target``, and samples the only other one whose first size is theirs.
        inputs: names of inputs, where there are several: each array that is called like one holds it.

    Raises:
        InputError: the file is no such archive, or it is not clear which array holds the samples.
    """

    kind = "arrays"
    holds = "array"

    def __init__(self, path: Path, inputs: Sequence[str] = ()) -> None:
        super().__init__(str(path))
        self._labels: np.ndarray | None = None
        with on_disk(path) as file:
            self._load(file, inputs)

    def _load(self, path: Path, inputs: Sequence[str]) -> None:
        if inputs:
            self._values = self._by_input(path, inputs)
            self.inputs = {name: Held("array", np.zeros_like(array[0])) for name, array in self._values.items()}
            return
        if path.suffix == ".npy":
            values = npy(path).load()
        else:
            stored = members(path)
            name = next((name for name in _LABELS if name in stored), None)
            rest = [other for other in stored if other != name]
            if name is not None:
                self._labels = stored[name].load()
                count = self._labels.shape[:1]
                rest = [other for other in rest if stored[other].shape[:1] == count]
            if len(rest) != 1:
                raise InputError(
                    "BT-DATA-ARRAYS",
                    f"which array holds the samples is not clear: {', '.join(stored) or 'there is none'}",
                    place=self.place,
                    advice="keep one array of samples and one called 'labels' of the same length",
                )
            values = stored[rest[0]].load()
        if values.ndim == 0 or not len(values):
            raise no_samples(self.place, "an array whose first axis counts the samples")
        self._values = {"": values}
        self.alike = np.zeros_like(values[0])

    def _by_input(self, path: Path, inputs: Sequence[str]) -> dict[str, np.ndarray]:
        stored = members(path) if path.suffix != ".npy" else {}
        missing = [name for name in inputs if name not in stored]
        if missing:
            raise InputError(
                "BT-DATA-ARRAYS",
                f"no array is called like input {', '.join(visible(name) for name in missing)}",
                place=self.place,
                advice=f"there are: {', '.join(map(visible, stored))}" if stored else "write an .npz file",
            )
        found = {name: stored[name].load() for name in inputs}
        label = next((name for name in _LABELS if name in stored and name not in inputs), None)
        if label is not None:
            self._labels = stored[label].load()
        lengths = {name: array.shape[:1] for name, array in found.items()}
        if self._labels is not None:
            lengths[str(label)] = self._labels.shape[:1]
        if len(set(lengths.values())) != 1:
            texts = ", ".join(f"'{visible(name)}' {list(length)}" for name, length in lengths.items())
            raise InputError("BT-DATA-ARRAYS", f"first axes have different sizes: {texts}", place=self.place)
        if set(lengths.values()) <= {(), (0,)}:
            raise no_samples(self.place, "arrays whose first axis counts the samples")
        return found

    def __len__(self) -> int:
        return len(next(iter(self._values.values())))

    def __getitem__(self, position: int) -> Sample:
        label = None if self._labels is None else self._labels[position].tolist()
        if self.inputs:
            return Sample(
                str(position), label, lambda: [{name: array[position] for name, array in self._values.items()}]
            )
        return Sample(str(position), label, lambda: [self._values[""][position]])
