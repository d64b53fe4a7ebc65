"""A source whose classes have a model's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...errors import InputError
from .base import Sample, Source


def renumbered(source: Source, names: Sequence[str]) -> Source:
    """The source with its classes numbered as in `names`; as it is where none of its classes is called so.

    Raises:
        InputError: some classes are called so, and others are not.
    """
    numbers = {name: number for number, name in reversed(list(enumerate(names)))}
    missing = [name for name in source.classes if name not in numbers]
    if len(missing) == len(source.classes) or tuple(names) == source.classes:
        return source
    if missing:
        raise InputError(
            "BT-DATA-LABELS",
            f"the model has no class '{missing[0]}'",
            place=source.place,
            advice="call classes as the model's metadata do, or give another recipe than 'metadata'",
        )
    return _Renumbered(source, names, [numbers[name] for name in source.classes])


class _Renumbered(Source):
    def __init__(self, source: Source, names: Sequence[str], numbers: Sequence[int]) -> None:
        super().__init__(source.place, names)
        self.kind, self.holds, self.alike, self.inputs = source.kind, source.holds, source.alike, source.inputs
        self._source, self._numbers = source, numbers

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, position: int) -> Sample:
        return self._renumbered(self._source[position])

    def samples(self, positions: range) -> Iterator[tuple[int, Sample]]:
        return ((position, self._renumbered(sample)) for position, sample in self._source.samples(positions))

    def _renumbered(self, sample: Sample) -> Sample:
        label = sample.label
        known = type(label) is int and 0 <= label < len(self._numbers)
        return replace(sample, label=self._numbers[label]) if known else sample
