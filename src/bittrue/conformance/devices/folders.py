"""Cases and outputs as folders of plain files, for devices that are programs or laboratories.

A case is a folder with

``desc.json``
    the case as plain data, with the fields of the exported ``desc`` format: ``tag``, ``op``, ``model_file``,
    ``ifm_name`` and ``ifm_file`` (inputs), ``const_name`` and ``const_file`` (constants), ``ofm_name`` and ``ofm_file``
    (what is asked for); under ``meta`` the attributes, all tensors, and what the format's own runtime would compute
    with.
``parameters.txt``
    the same as lines ``name=value`` that POSIX shells read with ``. parameters.txt``: ``operator``, ``types``,
    ``input_0_file``, ``input_0_type``, ``input_0_shape='1 95'``, ``input_0_scale``, ``input_0_zero_point``,
    ``output_0_file`` ..., ``attribute_...``, ``step0_...``; numbers of a list are separated by spaces.
``model.tflite`` or ``model.onnx``, ``input-0.npy``, ``constant-0.npy`` ...
    the model, and the values; beside each .npy file the same as ``.bin``: raw values, little-endian, in C order, a byte
    per element for narrow types.

The answer is a folder with one file per output: ``output-0.npy`` or ``output-0.bin``, also under the output's own name;
an .npz file ``outputs.npz`` with such members; or a file ``refused`` with the reason.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...api import Port
from ...errors import BittrueError
from ...files import scratch_bytes
from ...runners import arrays
from ..formats.exporter import npy
from ..suite import SUITE_VERSION, SuiteCase
from .facts import Operand, operands, parameters, word
from .model import DeviceModel
from .refused import Refused
from .values import OUTPUT_LIMIT, Unreadable, as_array, clean

FORMAT = "bittrue-device-case-1"
REFUSED = "refused"
_ARCHIVE = "outputs.npz"
_REASON_BYTES = 4096
# Longer lists are in desc.json alone: shells hold no tables of a thousand numbers.
_LONGEST_LIST = 4096


def write_case(folder: Path, case: SuiteCase) -> None:
    """Make the folder of a case."""
    folder.mkdir(parents=True)
    model = DeviceModel(case)
    every = operands(model, case.inputs)
    file = f"model.{case.format}"
    scratch_bytes(folder / file, case.content)
    for operand in every:
        if operand.value is not None:
            _write(folder / operand.stem, operand.value)
    scratch_bytes(folder / "desc.json", (json.dumps(_desc(model, case, every, file), indent=1) + "\n").encode())
    scratch_bytes(folder / "parameters.txt", "".join(_lines(model, case, every, file)).encode())


def _write(path: Path, value: np.ndarray) -> None:
    scratch_bytes(path.with_suffix(".npy"), npy(value))
    scratch_bytes(path.with_suffix(".bin"), value.astype(value.dtype.newbyteorder("<")).tobytes())


def _desc(model: DeviceModel, case: SuiteCase, every: Sequence[Operand], file: str) -> dict[str, object]:
    found: dict[str, object] = {"format": FORMAT, "tag": case.identity, "op": case.operator, "model_file": file}
    for key, role in (("ifm", "input"), ("const", "constant"), ("ofm", "output")):
        chosen = [operand for operand in every if operand.role == role]
        found[f"{key}_name"] = [operand.name for operand in chosen]
        found[f"{key}_file"] = [f"{operand.stem}.npy" for operand in chosen]
    found["test_requirements"] = {"suite": case.suite, "suite_version": SUITE_VERSION, "types": case.types}
    known = model.description
    found["meta"] = {key: known[key] for key in ("attributes", "tensors", "nodes", "plan") if key in known}
    return found


def _lines(model: DeviceModel, case: SuiteCase, every: Sequence[Operand], file: str) -> Iterator[str]:
    yield _line("case", case.identity)
    yield _line("operator", case.operator)
    yield _line("types", case.types)
    yield _line("model_file", file)
    for role in ("input", "constant", "output"):
        chosen = [operand for operand in every if operand.role == role]
        yield _line(f"{role}s", len(chosen))
        for operand in chosen:
            prefix = word(operand.stem)
            yield _line(f"{prefix}_name", operand.name)
            yield _line(f"{prefix}_file", f"{operand.stem}.bin")
            yield _line(f"{prefix}_type", operand.dtype)
            yield _line(f"{prefix}_shape", *operand.shape)
            yield _line(f"{prefix}_size", math.prod(operand.shape))
            if operand.position is not None:
                yield _line(f"{prefix}_position", operand.position)
            if operand.scale:
                yield _line(f"{prefix}_scale", *operand.scale)
                yield _line(f"{prefix}_zero_point", *operand.zero_point)
            if operand.axis is not None:
                yield _line(f"{prefix}_axis", operand.axis)
    for name, value in parameters(model).items():
        if isinstance(value, str):
            yield _line(word(name), value)
        elif len(value) <= _LONGEST_LIST:
            yield _line(word(name), *value)


def _line(name: str, *values: object) -> str:
    return f"{name}={shlex.quote(' '.join(map(str, values)))}\n"


def is_empty(folder: Path) -> bool:
    """Whether a folder of outputs holds nothing."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def read_refusal(folder: Path) -> str | None:
    """The reason of a refusal; None without one."""
    path = folder / REFUSED
    if not _is_file(path):
        return None
    with path.open("rb") as file:
        return clean(file.read(_REASON_BYTES).decode(errors="replace"))


def read_outputs(folder: Path, ports: Sequence[Port]) -> dict[str, np.ndarray]:
    """The outputs in a folder, by the model's names.

    Args:
        folder: made for this case; links in it are not followed.
        ports: the model's outputs; empty where nobody knows them: whatever is there then, under its own names.

    Raises:
        Refused: the folder says so.
        Unreadable: outputs are missing, or no arrays.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise Unreadable("there is no folder of outputs")
    reason = read_refusal(folder)
    if reason is not None:
        raise Refused(reason)
    members: Mapping[str, arrays.Stored] = {}
    archive = folder / _ARCHIVE
    if _is_file(archive):
        try:
            members = arrays.members(archive)
        except BittrueError as error:
            raise Unreadable(f"{_ARCHIVE}: {error.message}") from None
    if not ports:
        return _whatever(folder, members)
    found = {port.name: _output(folder, port, i, members) for i, port in enumerate(ports)}
    total = sum(value.nbytes for value in found.values())
    if total > OUTPUT_LIMIT:
        raise Unreadable(f"its outputs take {total:,} bytes, the limit is {OUTPUT_LIMIT:,}")
    return found


def _output(folder: Path, port: Port, number: int, members: Mapping[str, arrays.Stored]) -> np.ndarray:
    names = [f"output-{number}", port.name]
    for name in names:
        # Names of tensors may hold anything.
        if "/" in name or "\0" in name or len(name.encode()) > 200:
            continue
        for suffix in (".npy", ".bin", ".raw"):
            path = folder / f"{name}{suffix}"
            if os.path.lexists(path):
                return _read(path, port)
    for name in names:
        if name in members:
            return _loaded(members[name], f"member '{clean(name)}' of {_ARCHIVE}")
    raise Unreadable(f"there is no output '{clean(port.name)}': neither output-{number}.npy nor output-{number}.bin")


def _read(path: Path, port: Port) -> np.ndarray:
    what = clean(path.name)
    if not _is_file(path):
        raise Unreadable(f"{what} is a link or no regular file")
    try:
        if path.suffix == ".npy":
            return _loaded(arrays.npy(path), what, port.dtype)
        # As declared: files of raw values do not say what they are.
        if any(size < 0 for size in port.shape):
            raise Unreadable(f"{what}: the shape is not known before the model runs; write an .npy file")
        return _loaded(arrays.raw(path, port.dtype, port.shape, None), what)
    except BittrueError as error:
        raise Unreadable(f"{what} {error.message}") from None


def _loaded(stored: arrays.Stored, what: str, dtype: np.dtype | None = None) -> np.ndarray:
    size = stored.dtype.itemsize * math.prod(stored.shape)
    if size > OUTPUT_LIMIT:
        raise Unreadable(f"{what} takes {size:,} bytes, the limit is {OUTPUT_LIMIT:,}")
    try:
        value = stored.load()
    except BittrueError as error:
        raise Unreadable(f"{what} {error.message}") from None
    if dtype is not None and dtype.kind == "V" and value.dtype == np.dtype((np.void, dtype.itemsize)):
        # Files have no names for types that NumPy does not know itself.
        value = value.view(dtype)
    return as_array(value, what)


def _whatever(folder: Path, members: Mapping[str, arrays.Stored]) -> dict[str, np.ndarray]:
    found = {name: _loaded(stored, f"member '{clean(name)}' of {_ARCHIVE}") for name, stored in members.items()}
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry, _ in zip(entries, range(1000), strict=False))
    for name in names:
        path = folder / name
        if path.suffix == ".npy" and _is_file(path):
            try:
                found[path.stem] = _loaded(arrays.npy(path), clean(name))
            except BittrueError as error:
                raise Unreadable(f"{clean(name)} {error.message}") from None
    if not found:
        raise Unreadable("it wrote no .npy file")
    return found


def _is_file(path: Path) -> bool:
    """A regular file and no link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
