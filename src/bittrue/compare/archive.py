"""Arrays by name in an .npz file, whatever the names are."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import IO

import numpy as np


def write_arrays(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """As `numpy.savez`, which takes no array that is called ``file``. Dates are fixed: equal arrays, equal bytes."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
