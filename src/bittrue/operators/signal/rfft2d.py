"""rfft2d: the two-dimensional Fourier transform of real matrices, computed in binary64 and rounded once.

out[k, l] = sum over y, x of in[y, x] * exp(-2 pi i (k y / height + l x / width)) for l <= width / 2.
The matrix is cut or filled up with zeros to [height, width]; both are powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import fourier
from ..core.base import Call, Lowered, Operator, Shape, Step

# Bytes of intermediate results at a time.
_BLOCK = 1 << 22


def _lengths(call: Call) -> tuple[int, int]:
    lengths = call.integers(1, "fft_length")
    shape = call.input(1).shape
    if shape != (2,):
        raise call.invalid(
            "BT-FFT-LENGTH", f"fft_length has shape {list(shape)}, expected two numbers: height and width"
        )
    if any(length < 1 or length & (length - 1) for length in lengths):
        raise call.invalid("BT-FFT-LENGTH", f"lengths {lengths} must be powers of two")
    return lengths[0], lengths[1]


def infer(call: Call) -> list[Shape]:
    """[..., y, x] gives [..., height, width / 2 + 1]."""
    call.expect(2)
    source = call.input(0)
    if source.rank < 2:
        raise call.invalid(
            "BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 2 or more, found {list(source.shape)}"
        )
    height, width = _lengths(call)
    return [(*source.shape[:-2], height, width // 2 + 1)]


def lower(call: Call) -> Lowered:
    """Height and width; the work is that of the usual estimate of transforms."""
    height, width = _lengths(call)
    size = math.prod(call.input(0).shape[:-2]) * height * width
    return Lowered(
        parameters={"height": height, "width": width, "shape": tuple(call.output.shape)},
        work=size * max(1, (height * width).bit_length()),
        scratch=8 * max(_BLOCK, 16 * height * (width + 2)),
    )


def _packed(x: np.ndarray, joined: bool) -> np.ndarray:
    """[..., width] -> [2, ..., max(1, width / 2)], the last frequency beside the first one."""
    if x.shape[-1] > 1:
        return fourier.real_transform(x, joined)
    return np.stack([x + 0.0, x - 0.0])


def _unpacked(z: np.ndarray, width: int) -> np.ndarray:
    """[2, n, height, width / 2] as the transform packs it -> [n, height, width / 2 + 1, 2].

    The first column holds the frequencies 0 and width / 2 as if they were one complex number; row k and height - k of
    its transform tell them apart.
    """
    _, count, height, columns = z.shape
    a = np.zeros((count, height, width + 2), np.float64)
    a[..., 0 : 2 * columns : 2], a[..., 1 : 2 * columns : 2] = z[0], z[1]
    half = height // 2
    for i in range(1, half):
        j = height - i
        a[:, j, 0] = 0.5 * (a[:, i, 0] - a[:, j, 0])
        a[:, i, 0] -= a[:, j, 0]
        a[:, j, 1] = 0.5 * (a[:, i, 1] + a[:, j, 1])
        a[:, i, 1] -= a[:, j, 1]
    for i in range(half + 1, height):
        j = height - i
        real, imaginary = a[:, i, 0].copy(), a[:, i, 1].copy()
        a[:, i, width], a[:, i, width + 1] = imaginary, real
        a[:, j, width], a[:, j, width + 1] = imaginary, -real
        a[:, i, 0], a[:, i, 1] = a[:, j, 0], -a[:, j, 1]
    last = a[:, 0, 1].copy()
    a[:, 0, width + 1] = a[:, 0, 1] = 0
    a[:, half, width] = a[:, half, 1]
    a[:, half, width + 1] = a[:, half, 1] = 0
    a[:, 0, width] = last
    a[..., 1::2] = -a[..., 1::2]
    return a[..., : 2 * (width // 2 + 1)].reshape(count, height, width // 2 + 1, 2)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows first, then columns, some matrices at a time."""
    joined = step.rules["multiply_add"] == "rounded_once"
    x, height, width = inputs[0], step["height"], step["width"]
    out = np.zeros(step["shape"], np.complex64)
    matrices = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
    results = out.reshape(-1, height, width // 2 + 1).view(np.float32).reshape(-1, height, width // 2 + 1, 2)
    rows, columns = min(height, x.shape[-2]), min(width, x.shape[-1])
    per_block = max(1, _BLOCK // (16 * height * (width + 2)))
    with np.errstate(all="ignore"):
        for start in range(0, len(matrices), per_block):
            block = matrices[start : start + per_block]
            filled = np.zeros((len(block), height, width), np.float64)
            filled[:, :rows, :columns] = block[:, :rows, :columns]
            z = _packed(filled, joined)
            if width > 1:
                z = fourier.transform(z.swapaxes(-1, -2), joined).swapaxes(-1, -2)
            results[start : start + len(block)] = _unpacked(z, width)
    return [out]


OPERATOR = Operator("rfft2d", ("multiply_add",), infer, lower, reference, "Fourier transform of real matrices")
