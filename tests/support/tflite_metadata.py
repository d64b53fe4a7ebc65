"""TFLite metadata, written with the FlatBuffers package alone, apart from bittrue's reader."""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np


class Writer:
    """Tables by slots."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(256)

    def text(self, value: str) -> int:
        return int(self.builder.CreateString(value))

    def floats(self, values: Sequence[float]) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, np.float32)))

    def vector(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def table(self, offsets: dict[int, int], numbers: dict[int, int] | None = None) -> int:
        self.builder.StartObject(12)
        for slot, offset in offsets.items():
            self.builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for slot, number in (numbers or {}).items():
            self.builder.PrependInt8Slot(slot, number, 0)
        return int(self.builder.EndObject())


def metadata(
    mean: Sequence[float] = (0.0,),
    deviation: Sequence[float] = (16.0,),
    grey: bool = True,
    files: Sequence[tuple[str, str]] = (("labels.txt", ""),),
) -> bytes:
    """Files are those of labels, each with its locale."""
    w = Writer()
    image = w.table({}, {0: 2 if grey else 1})
    content = w.table({1: image}, {0: 2})
    options = w.table({0: w.floats(mean), 1: w.floats(deviation)})
    given = w.table({3: content, 4: w.vector([w.table({1: options}, {0: 1})])})
    named = [w.table({0: w.text(name), **({3: w.text(where)} if where else {})}, {2: 2}) for name, where in files]
    gives = w.table({0: w.text("digit"), 6: w.vector(named)})
    graph = w.table({2: w.vector([given]), 3: w.vector([gives])})
    w.builder.Finish(w.table({0: w.text("digits"), 3: w.vector([graph])}), b"M001")
    return bytes(w.builder.Output())
