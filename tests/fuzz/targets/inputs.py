"""What models are fed: .npy, .npz, raw values and images."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from damage import spoiled
from oracle import choice, tried
from packed import join, split

from bittrue import Port
from bittrue.runners.inputs import input_sets

SUFFIXES = (".npy", ".npz", ".bin", ".png", ".bmp", ".gif", ".jpg", ".tif", ".webp", ".ppm")
# One image each, of all kinds of types and layouts.
PORTS = (
    Port("x", np.dtype(np.int8), (1, 8, 6, 3), None),
    Port("x", np.dtype(np.float32), (1, 3, 8, 6), None),
    Port("x", np.dtype(np.uint8), (1, 8, 6, 1), None),
    Port("x", np.dtype(np.float16), (1, 8, 6, 4), None),
)


def seeds(folder: Path) -> Iterable[bytes]:
    """One file of each kind, images in several modes."""
    from PIL import Image

    rng = np.random.default_rng(0)
    value = rng.integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    for save, suffix in ((np.save, ".npy"), (np.savez_compressed, ".npz"), (np.savez, ".npz")):
        buffer = io.BytesIO()
        save(buffer, value)
        yield join({suffix: buffer.getvalue()})
    yield join({".bin": value.tobytes()})
    for suffix in SUFFIXES[3:]:
        for mode in ("RGB", "L", "RGBA", "I;16", "P", "1"):
            pixels = rng.integers(0, 256, (8, 6, {"RGB": 3, "RGBA": 4}.get(mode, 1))).astype(np.uint8)
            buffer = io.BytesIO()
            try:
                image = Image.fromarray(
                    pixels.squeeze().astype(np.uint16) * 257 if mode == "I;16" else pixels.squeeze()
                )
                (image if mode == "I;16" else image.convert(mode)).save(buffer, Image.registered_extensions()[suffix])
            except OSError:
                continue
            yield join({suffix: buffer.getvalue()})


def change(content: bytes, seed: int) -> bytes:
    """The first bytes, which describe the rest; one time in four any."""
    numbers = random.Random(seed)
    suffix, data = next(iter(split(content).items()))
    head = 128 if seed % 4 else len(data)
    if seed % 32 == 0:
        suffix = numbers.choice(SUFFIXES)
    return join({suffix: spoiled(data[:head], numbers) + data[head:]})


def attempt(content: bytes, folder: Path) -> str:
    suffix, data = next(iter(split(content).items()), ("", b""))
    path = folder / ("x" + (suffix if suffix in SUFFIXES else choice(content, SUFFIXES)))
    path.write_bytes(data)
    port = choice(content, PORTS)
    wide = choice(content[::-1], (None, (-1.0, 1.0)))

    def call() -> str:
        return f"{len(input_sets([port], [str(path)], image_range=wide))} sets"

    try:
        return tried(call)
    finally:
        path.unlink()
