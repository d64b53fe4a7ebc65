"""The seed of new examples: it follows from the sources, so every change tries others, and the same sources the same.

`python tests/support/seed.py` prints it.
"""

from __future__ import annotations

import zlib
from pathlib import Path

# Of the examples that are fixed beside those of Hypothesis: this one was the suite's for long.
KEPT_SEED = 3797907310

_REPOSITORY = Path(__file__).resolve().parents[2]
_SUFFIXES = (".py", ".cc", ".h", ".inc")


def seed_of_sources() -> int:
    """CRC-32 of all files of `native`, `src` and `tests` that are compiled, in the order of their paths."""
    found = 0
    for folder in ("native", "src", "tests"):
        for path in sorted((_REPOSITORY / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                found = zlib.crc32(path.read_bytes(), found)
    return found


if __name__ == "__main__":
    print(seed_of_sources())
