"""Which axes of which tensors must have one size, so that they can only be cropped together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...names import short

Axis = tuple[str, int]


@dataclass(frozen=True)
class Dimension:
    """Axes that are cropped together.

    Attributes:
        size: how many indices they have.
        axes: (tensor, axis) of inputs, constants and computed tensors.
        title: for people.
    """

    size: int
    axes: tuple[Axis, ...]
    title: str


class Links:
    """Gathers what goes along with what (union-find).

    Args:
        shapes: of all tensors, by name.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self._shapes = shapes
        self._parent: dict[Axis, Axis] = {}
        self._fixed: set[Axis] = set()

    def link(self, axes: Iterable[Axis]) -> None:
        """These have one size; where they have not, none of them may be cropped.

        Negative axes count from the end; axes that a tensor lacks, and tensors of unknown shape, are passed over.
        """
        known = []
        for name, axis in axes:
            rank = len(self._shapes.get(name, ()))
            if -rank <= axis < rank:
                known.append((name, axis % rank))
        for member in known:
            self._parent.setdefault(member, member)
            self._parent[self._root(member)] = self._root(known[0])
        if len({self._shapes[name][axis] for name, axis in known}) > 1:
            self._fixed.update(known)

    def elementwise(self, names: Sequence[str]) -> None:
        """Tensors of one operation on elements, with broadcasting: axes from the end, those of size 1 apart."""
        known = {name: self._shapes[name] for name in names if name in self._shapes}
        for back in range(1, max(map(len, known.values()), default=0) + 1):
            self.link((name, -back) for name, shape in known.items() if len(shape) >= back and shape[-back] != 1)

    def dimensions(self, inputs: Sequence[str], constants: Iterable[str], rigid: Iterable[str] = ()) -> list[Dimension]:
        """What can be cropped, largest first.

        Args:
            inputs: names of inputs: all their axes count, linked or not.
            constants: names of constants: their axes count where they are linked.
            rigid: names of constants that cannot be cropped.
        """
        for name in inputs:
            for axis in range(len(self._shapes.get(name, ()))):
                self._parent.setdefault((name, axis), (name, axis))
        groups: dict[Axis, list[Axis]] = {}
        for member in self._parent:
            groups.setdefault(self._root(member), []).append(member)
        croppable, stiff = {*inputs, *constants}, set(rigid)
        found = []
        for axes in groups.values():
            size = self._shapes[axes[0][0]][axes[0][1]]
            free = not self._fixed.intersection(axes) and not any(name in stiff for name, _ in axes)
            if size > 1 and free and any(name in croppable for name, _ in axes):
                name, axis = min(axes, key=lambda one: (one[0] not in inputs, one[0] in croppable))
                found.append(Dimension(size, tuple(axes), f"axis {axis} of '{short(name)}'"))
        return sorted(found, key=lambda dimension: (min(axis for _, axis in dimension.axes) > 0, -dimension.size))

    def _root(self, axis: Axis) -> Axis:
        while self._parent[axis] != axis:
            axis = self._parent[axis]
        return axis
