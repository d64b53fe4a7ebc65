"""Outputs that a laboratory recorded offline from exported vectors, as a device.

Below the folder, the outputs of a case lie in a folder that is called like the case (``ADD/s8/ties/000``), in the form
that `folders` reads: ``output-0.npy``, ``output-0.bin``, ``outputs.npz`` or ``refused``; or all in one file
``ADD/s8/ties/000.npz``. A case that is not there was skipped: that is neither a refusal nor a fault, and it is reported
as such.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from ...errors import BittrueError, InputError
from ...runners import arrays
from ...visible import visible
from ..formats.exporter import path_of
from ..suite import SuiteCase
from .answers import answered
from .base import Answer, Device
from .folders import read_outputs
from .model import output_ports
from .values import OUTPUT_LIMIT, Unreadable, as_array, clean

NOT_RECORDED = "not recorded"


class Results(Device):
    """A folder of recorded outputs.

    Raises:
        InputError: there is no such folder.
    """

    def __init__(self, spec: str, folder: str) -> None:
        if not os.path.isdir(folder):
            raise InputError("BT-DEVICE", f"there is no folder '{clean(folder)}'", place=f"'{clean(spec)}'")
        self.spec = spec
        self.title = f"recorded outputs ({clean(visible(Path(folder).resolve().name))})"
        self._folder = Path(folder)

    def answer(self, case: SuiteCase) -> Answer:
        start = time.monotonic()
        place = _inside(self._folder, case.identity)
        archive = None if place is None else place.with_name(f"{place.name}.npz")
        if place is not None and place.is_dir():
            status, text, outputs = answered(lambda: read_outputs(place, output_ports(case)))
        elif archive is not None and archive.is_file() and not archive.is_symlink():
            status, text, outputs = answered(lambda: _members(archive, case))
        else:
            return Answer("skipped", {}, NOT_RECORDED)
        return Answer(status, outputs, text, time.monotonic() - start)


def _inside(root: Path, identity: str) -> Path | None:
    """Where a case's outputs are looked for; None when the way there leads through a link."""
    place = root
    for part in path_of(identity).split("/"):
        place = place / part
        if place.is_symlink():
            return None
    return place


def _members(path: Path, case: SuiteCase) -> dict[str, np.ndarray]:
    try:
        stored = arrays.members(path)
        ports = output_ports(case)
        names = {port.name: port.name if port.name in stored else f"output-{i}" for i, port in enumerate(ports)}
        names = names or {name: name for name in stored}
        missing = [name for name, member in names.items() if member not in stored]
        if missing:
            raise Unreadable(f"{path.name} has no member '{clean(missing[0])}'")
        size = sum(stored[m].dtype.itemsize * int(np.prod(stored[m].shape, dtype=object)) for m in names.values())
        if size > OUTPUT_LIMIT:
            raise Unreadable(f"{path.name} takes {size:,} bytes, the limit is {OUTPUT_LIMIT:,}")
        return {name: as_array(stored[member].load(), f"member '{clean(member)}'") for name, member in names.items()}
    except BittrueError as error:
        raise Unreadable(f"{path.name}: {error.message}") from None
