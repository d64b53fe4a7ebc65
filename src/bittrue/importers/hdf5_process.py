"""The process that reads an HDF5 file with h5py: the file from standard input, its arrays to standard output.

They are an archive of NumPy. Links to other files, and datasets that lie elsewhere, are not followed.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any

import numpy as np

# Exit codes.
NO_PACKAGE, DAMAGED = 3, 4
# Bytes of arrays to those of the file: what its compression can reach.
MOST_TIMES = 1100
_MOST_AXES = 32


def _arrays(content: bytes) -> tuple[list[tuple[str, int]], dict[str, np.ndarray]]:
    """Names with how many arrays each has, and the arrays; ValueError for what is no such file."""
    import h5py

    def own(group: Any, name: str, kind: type, what: str) -> Any:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{what} '{name}' lies in another place or file")
        found = group[name]
        if not isinstance(found, kind):
            raise ValueError(f"{what} '{name}' is something else")
        return found

    names: list[tuple[str, int]] = []
    arrays: dict[str, np.ndarray] = {}
    left = MOST_TIMES * len(content)
    with h5py.File(io.BytesIO(content), "r") as file:
        if "data" not in file:
            raise ValueError("there is no group 'data': its arrays are not those of a network's layers")
        data = own(file, "data", h5py.Group, "group")
        for at, name in enumerate(data):
            group = own(data, name, h5py.Group, "layer")
            if set(group) != {str(i) for i in range(len(group))}:
                raise ValueError(f"layer '{name}' holds other arrays than those from 0 on")
            for i in range(len(group)):
                dataset = own(group, str(i), h5py.Dataset, f"layer '{name}', array")
                if dataset.is_virtual or dataset.external:
                    raise ValueError(f"array {i} of layer '{name}' lies in another file")
                if dataset.dtype.kind not in "fiu" or dataset.shape is None or dataset.ndim > _MOST_AXES:
                    raise ValueError(f"array {i} of layer '{name}' holds no numbers")
                left -= dataset.nbytes
                if left < 0:
                    raise ValueError("its arrays are larger than the file can hold")
                with np.errstate(all="ignore"):
                    arrays[f"{at}/{i}"] = np.asarray(dataset[()]).astype(np.float32)
            names.append((name, len(group)))
    return names, arrays


def _main() -> int:
    # The folder of this file has modules named like packages.
    sys.path.pop(0)
    try:
        import h5py  # noqa: F401
    except ImportError:
        return NO_PACKAGE
    try:
        names, arrays = _arrays(sys.stdin.buffer.read())
        listed = np.frombuffer(json.dumps(names).encode(), np.uint8)
    except Exception as error:
        # Whatever the library says of a damaged file.
        os.write(2, (str(error) or type(error).__name__).encode(errors="replace"))
        return DAMAGED
    np.savez(sys.stdout.buffer, names=listed, **arrays)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(_main())
