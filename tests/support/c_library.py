"""What the C library of another processor gives: for tests of functions that are pinned to the bit.

    cd tests && python -m support.c_library ask /tmp/asked.npz                       # here
    cd tests && ../tools/python_aarch64.sh -m support.c_library answer /tmp/asked.npz data/c_library/aarch64.npz

Asked are arguments of every exponent and of everyday size, and such at which joined products make another result.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np

AARCH64 = Path(__file__).resolve().parents[1] / "data" / "c_library" / "aarch64.npz"
ONE = "acos acosh asin asinh atan atanh cos cosh erfc exp expm1 log log1p sin sinh tan tanh".split()
TWO = ["power", "atan2"]
WIDE = "cos exp log power sin tanh".split()
# Those of binary32 that give other numbers when products are joined.
_TOLD = {*ONE, "atan2"} - {"cos", "exp", "log", "sin"}
# Names of the C library that are not ours.
_NAMES = {"power": "pow"}


def arguments(kind: type[np.floating[Any]], seed: int, count: int) -> np.ndarray:
    """Random bit patterns, numbers around 1 and of everyday size, and special ones."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 2**32 if kind is np.float32 else 2**64, count, dtype=np.uint64)
    bits: np.ndarray = patterns.astype(np.uint32 if kind is np.float32 else np.uint64).view(kind)
    everyday = rng.standard_normal(count) * np.exp(rng.uniform(-3, 4, count))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1, 0.5, 2, -2, 3, -3, 1e-38, 1e38]
    made: np.ndarray = np.concatenate([everyday, rng.uniform(-1.1, 1.1, count), special]).astype(kind)
    with np.errstate(invalid="ignore"):
        # No signalling NaN.
        return np.concatenate([bits, made]) * kind(1)


def two(kind: type[np.floating[Any]], seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, some of whose second numbers are whole."""
    rng = np.random.default_rng(seed)
    x, y = (rng.permutation(arguments(kind, seed + i, count)) for i in range(2))
    with np.errstate(invalid="ignore"):
        return x, np.where(rng.random(y.size) < 0.3, np.rint(np.clip(y, -50, 50)), y)


def call(library: ctypes.CDLL, name: str, *x: np.ndarray) -> np.ndarray:
    """The function of these arguments, in their type."""
    single = x[0].dtype == np.float32
    function = getattr(library, _NAMES.get(name, name) + ("f" if single else ""))
    kind = ctypes.c_float if single else ctypes.c_double
    function.restype, function.argtypes = kind, [kind] * len(x)
    return np.array([function(*values) for values in zip(*(v.tolist() for v in x), strict=True)], x[0].dtype)


def ask(target: str) -> None:
    from bittrue.arithmetic import circular, elementary

    found = dict[str, np.ndarray]()
    for kind, names in ((np.float32, ONE), (np.float32, TWO), (np.float64, WIDE)):
        for name in names:
            pair = name in (*TWO, "power")
            asked = np.stack(two(kind, 5, 300) if pair else [arguments(kind, 1, 600)])
            if kind is np.float32 and name in _TOLD:
                function = getattr(elementary, name, None) or getattr(circular, name)
                x = np.stack(two(kind, 6, 20_000) if pair else [arguments(kind, 6, 600_000)])
                differs = function(*x, joined=True).view(np.uint32) != function(*x).view(np.uint32)
                asked = np.concatenate([asked, x[:, differs & ~np.isnan(function(*x))][:, :20]], axis=1)
            found[f"{kind.__name__} {name}"] = asked
    np.savez_compressed(target, **found)  # type: ignore[arg-type]


def answer(source: str, target: str) -> None:
    library = ctypes.CDLL("libm.so.6")
    with np.load(source) as asked:
        found = {key: np.concatenate([x, call(library, key.split()[1], *x)[None]]) for key, x in asked.items()}
    np.savez_compressed(target, **found)  # type: ignore[arg-type]


if __name__ == "__main__":
    (ask if sys.argv[1] == "ask" else answer)(*sys.argv[2:])
