"""Where an image went on its way to a model's input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Placement:
    """A region of the image, which may reach beyond its edges, became all that the model sees.

    Attributes:
        image: rows and columns of the decoded image.
        top, left, height, width: the region, in the image's pixels.
        size: rows and columns that it has become.

    >>> Placement.whole(100, 50).resized(200, 100).cut(50, 0, 100, 100)
    Placement(image=(100, 50), top=25.0, left=0.0, height=50.0, width=50.0, size=(100, 100))
    """

    image: tuple[int, int]
    top: float
    left: float
    height: float
    width: float
    size: tuple[int, int]

    @staticmethod
    def whole(rows: int, columns: int) -> Placement:
        """Of an image as it is."""
        return Placement((rows, columns), 0.0, 0.0, float(rows), float(columns), (rows, columns))

    def resized(self, rows: int, columns: int) -> Placement:
        """The same region in another size."""
        return replace(self, size=(rows, columns))

    def cut(self, top: int, left: int, rows: int, columns: int) -> Placement:
        """A part of what there is, from `top` and `left` on; negative numbers are padding."""
        down, right = self.height / self.size[0], self.width / self.size[1]
        return Placement(
            self.image,
            self.top + top * down,
            self.left + left * right,
            rows * down,
            columns * right,
            (rows, columns),
        )

    def nearest(self, plane: np.ndarray, size: tuple[int, int], outside: int) -> np.ndarray:
        """Values of the region at the centres of so many rows and columns of equal parts.

        Args:
            plane: a value per pixel of the image.
            size: rows and columns of the result.
            outside: the value of whatever is not in the image.
        """
        rows, columns = size
        down = np.floor(self.top + (np.arange(rows) + 0.5) * (self.height / rows)).astype(np.int64)
        right = np.floor(self.left + (np.arange(columns) + 0.5) * (self.width / columns)).astype(np.int64)
        there = ((down >= 0) & (down < plane.shape[0]))[:, None] & (right >= 0) & (right < plane.shape[1])
        found = plane[down.clip(0, plane.shape[0] - 1)][:, right.clip(0, plane.shape[1] - 1)]
        return np.where(there, found, outside)

    def spread(self, plane: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """Values of equal parts of the region, at the centres of so many rows and columns of equal parts of the image.

        Args:
            plane: a value per part of the region.
            size: rows and columns of the result; what the region does not reach has -1.
        """
        y, x = ((np.arange(count) + 0.5) * (whole / count) for count, whole in zip(size, self.image, strict=True))
        rows, columns = plane.shape
        down = np.floor((y - self.top) / self.height * rows).astype(np.int64)
        right = np.floor((x - self.left) / self.width * columns).astype(np.int64)
        there = ((down >= 0) & (down < rows))[:, None] & (right >= 0) & (right < columns)
        return np.where(there, plane[down.clip(0, rows - 1)][:, right.clip(0, columns - 1)], -1)

    def points(self, parts: np.ndarray, count: tuple[int, ...], size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Where equal parts of the region are among so many rows and columns of the image; those beyond it at its edge.

        Args:
            parts: numbers of their rows, and of their columns.
            count: how many rows and columns of them there are.
            size: rows and columns of the image.
        """
        y, x = (
            (start + (one + 0.5) * (length / all_of_them)) * (few / whole)
            for start, length, one, all_of_them, few, whole in zip(
                (self.top, self.left), (self.height, self.width), parts, count, size, self.image, strict=True
            )
        )
        down, right = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
        return down.clip(0, size[0] - 1), right.clip(0, size[1] - 1)

    def box(self, top: float, left: float, bottom: float, right: float) -> tuple[float, float, float, float]:
        """A box given in parts of the region, from 0 to 1, in the image's pixels and within its edges."""
        rows, columns = self.image
        return (
            min(max(self.top + top * self.height, 0.0), float(rows)),
            min(max(self.left + left * self.width, 0.0), float(columns)),
            min(max(self.top + bottom * self.height, 0.0), float(rows)),
            min(max(self.left + right * self.width, 0.0), float(columns)),
        )
