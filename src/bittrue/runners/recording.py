"""What a run leaves behind: every tensor that can be seen, in execution order, its content read only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..graph import Quantization, data_type


@dataclass(frozen=True, eq=False)
class Recorded:
    """One tensor of a run.

    Attributes:
        name: as the runner calls it; unique within its recording.
        dtype: short type name, for example ``"s8"``.
        shape: of the value.
        quantization: as far as the runner knows it.
        load: reads the value: an array of this type and shape that nobody writes into. It may be a view of a file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    quantization: Quantization | None
    load: Callable[[], np.ndarray]

    @property
    def bytes(self) -> int:
        """Size of the value."""
        return int(np.prod(self.shape, dtype=np.int64)) * data_type(self.dtype).numpy.itemsize


@dataclass(frozen=True, eq=False)
class Recording:
    """One run of one side.

    Attributes:
        tensors: in execution order, inputs first.
        inputs, outputs: names among `tensors`.
        notes: what was done to inputs, what is not shown and why.
    """

    tensors: tuple[Recorded, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    _by_name: dict[str, Recorded] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update({tensor.name: tensor for tensor in self.tensors})

    def __getitem__(self, name: str) -> Recorded:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self.tensors)
