"""Samples that lie one after the other in an array: .npy, or .npz with labels beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import InputError
from ...runners.arrays import members, npy
from .base import Sample, Source, no_samples

# Names of arrays in .npz files that hold labels, in the order in which they are looked for.
_LABELS = ("labels", "label", "y_test", "y", "targets", "target")


class Arrays(Source):
    """An array with one sample after the other.

    Args:
        path: a .npy or .npz file. In .npz files, labels are the array called ``labels``, ``label``, ``y_test``, ``y``,
            ``targets`` or ``target``, and samples the only other one whose first size is theirs.

    Raises:
        InputError: the file is no such archive, or it is not clear which array holds the samples.
    """

    kind = "arrays"
    holds = "array"

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._labels: np.ndarray | None = None
        if path.suffix == ".npy":
            self._values = npy(path).load()
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
                    place=str(path),
                    advice="keep one array of samples and one called 'labels' of the same length",
                )
            self._values = stored[rest[0]].load()
        if self._values.ndim == 0 or not len(self._values):
            raise no_samples(str(path), "an array whose first axis counts the samples")
        self.alike = np.zeros_like(self._values[0])

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, position: int) -> Sample:
        label = None if self._labels is None else self._labels[position].tolist()
        return Sample(str(position), label, lambda: [self._values[position]])
