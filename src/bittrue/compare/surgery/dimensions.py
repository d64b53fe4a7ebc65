"""Which axes of which tensors must have one extent, so that they can only be cropped together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Axis = tuple[str, int]


@dataclass(frozen=True)
class Dimension:
    """Axes that are cropped together.

    Attributes:
        extent: how many indices they have.
        axes: (tensor, axis) of inputs, constants and computed tensors.
        title: for people.
    """

    extent: int
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
        """These have one extent; where they have not, none of them may be cropped. Negative axes count from the end."""
        known = [(name, axis % len(shape)) for name, axis in axes if -len(shape := self._shapes[name]) <= axis < len(shape)]
        for axis in known:
            self._parent.setdefault(axis, axis)
            self._parent[self._root(axis)] = self._root(known[0])
        if len({self._shapes[name][axis] for name, axis in known}) > 1:
            self._fixed.update(known)

    def elementwise(self, names: Sequence[str]) -> None:
        """Tensors of one operation on elements, with broadcasting: axes from the end, those of extent 1 apart."""
        rank = max((len(self._shapes[name]) for name in names), default=0)
        for back in range(1, rank + 1):
            self.link((n, -back) for n in names if len(self._shapes[n]) >= back and self._shapes[n][-back] != 1)

    def dimensions(self, inputs: Sequence[str], constants: Iterable[str], rigid: Iterable[str] = ()) -> list[Dimension]:
        """What can be cropped, largest first.

        Args:
            inputs: names of inputs: all their axes count, linked or not.
            constants: names of constants: their axes count where they are linked.
            rigid: names of constants that cannot be cropped.
        """
        for name in inputs:
            for axis in range(len(self._shapes[name])):
                self._parent.setdefault((name, axis), (name, axis))
        groups: dict[Axis, list[Axis]] = {}
        for axis in self._parent:
            groups.setdefault(self._root(axis), []).append(axis)
        croppable, stiff = {*inputs, *constants}, set(rigid)
        found = []
        for axes in groups.values():
            name, axis = axes[0]
            extent = self._shapes[name][axis]
            free = not self._fixed.intersection(axes) and not any(n in stiff for n, _ in axes)
            if extent > 1 and free and any(n in croppable for n, _ in axes):
                found.append(Dimension(extent, tuple(axes), f"axis {axis} of '{name}'"))
        return sorted(found, key=lambda dimension: (min(axis for _, axis in dimension.axes) > 0, -dimension.extent))

    def _root(self, axis: Axis) -> Axis:
        while self._parent[axis] != axis:
            axis = self._parent[axis]
        return axis
