"""Slot `channel_parameters`: which elements of a result a parameter per channel goes with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# (values, one per channel; shape of the result; its axis of channels) to something that broadcasts to the shape.
ChannelParameters = Callable[[np.ndarray, Sequence[int], int], np.ndarray]


def of_axis(values: np.ndarray, shape: Sequence[int], axis: int) -> np.ndarray:
    """Channel c goes with index c of the axis.

    >>> of_axis(np.array([10, 20]), (2, 2, 1), 1).tolist()
    [[[10], [20]]]
    """
    return values.reshape([-1 if at == axis else 1 for at in range(len(shape))])


def of_equal_slices(values: np.ndarray, shape: Sequence[int], axis: int) -> np.ndarray:
    """Channel c goes with the c-th of as many equal slices of the whole memory: right for one image only.

    Source: docs/facts/snps_caffe.md 1, verified by running.

    >>> of_equal_slices(np.array([10, 20]), (2, 2, 1), 1).tolist()
    [[[10], [10]], [[20], [20]]]
    """
    return np.repeat(values, int(np.prod(shape)) // values.size).reshape(shape)


RULES: dict[str, ChannelParameters] = {"of_axis": of_axis, "of_equal_slices": of_equal_slices}
