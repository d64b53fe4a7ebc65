"""Groups of arrays in HDF5 files (`data/GROUP/0`, `data/GROUP/1`, ...), which h5py reads in a process of its own.

The HDF5 library is not made for files of unknown origin: what ends it ends that process, and is a typed error here.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np

from ..errors import ModelFormatError, UnsupportedError
from ..visible import visible
from . import hdf5_process

SECONDS = 60


def read_groups(content: np.ndarray | bytes | memoryview) -> dict[str, list[np.ndarray]]:
    """Binary32 arrays of every group of `data`, in the order of their numbers.

    Raises:
        UnsupportedError: h5py is not installed, or an array has other than numbers.
        ModelFormatError: the file is damaged, or holds something else.
    """

    def damaged(why: str) -> ModelFormatError:
        return ModelFormatError(
            "BT-HDF5", f"HDF5 file: {why}", place="weights", advice="the weight file is damaged; fetch it again"
        )

    command = [sys.executable, hdf5_process.__file__]
    try:
        child = subprocess.run(command, input=bytes(content), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise damaged(f"it is not read within {SECONDS} seconds") from None
    if child.returncode == hdf5_process.NO_PACKAGE:
        raise UnsupportedError(
            "BT-HDF5-PACKAGE",
            "reading these weights needs the package 'h5py', which is not installed",
            place="weights",
            advice='pip install "bittrue[hdf5]"',
        )
    if child.returncode == hdf5_process.DAMAGED:
        raise damaged(visible(child.stderr.decode(errors="replace").strip()[-300:]))
    if child.returncode:
        raise damaged("the HDF5 library ended while it was read")
    with np.load(io.BytesIO(child.stdout), allow_pickle=False) as archive:
        names = json.loads(archive["names"].tobytes())
        return {name: [archive[f"{at}/{i}"] for i in range(count)] for at, (name, count) in enumerate(names)}
