"""Inputs for `bittrue run`: arrays, images, or seeded random values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..api import Port, Session
from ..errors import InputError
from ..graph import data_type
from ..quantization import quantize

_ARRAYS = (".npy", ".npz")


def gather(
    session: Session, files: tuple[str, ...], seed: int, image_range: tuple[float, float] | None
) -> tuple[dict[str, np.ndarray], list[str]]:
    """(input name -> array, remarks for the user).

    Each entry of `files` is ``FILE`` or ``NAME=FILE``; files without a name fill the inputs in order; an .npz fills
    all the names that it holds. Inputs that nothing fills get seeded random values.
    """
    ports = session.inputs
    values: dict[str, np.ndarray] = {}
    remarks: list[str] = []
    for text in files:
        name, path = _split(text, ports)
        if not path.is_file():
            raise InputError("BT-FILE-MISSING", f"no file '{path}'", place="--input")
        if path.suffix.lower() == ".npz":
            values.update(_read_archive(path, ports))
            continue
        port = _port(ports, name, values)
        if path.suffix.lower() == ".npy":
            values[port.name] = _fit(_read_array(path), port)
        else:
            values[port.name], remark = read_image(path, port, image_range)
            remarks.append(remark)
    rng = np.random.default_rng(seed)
    levels = _inputs_of_levels(session)
    for port in ports:
        if port.name in values:
            continue
        whole = port.name in levels
        values[port.name] = rng.integers(0, 256, port.shape).astype(port.dtype) if whole else random_input(rng, port)
        remarks.append(f"input '{port.name}': random {'levels 0..255' if whole else 'values'}, seed {seed}")
    return values, remarks


def _inputs_of_levels(session: Session) -> set[str]:
    """Inputs of real type that hold whole numbers: layers on such numbers read them."""
    plan = session.plan
    read = {step.inputs[0] for step in plan.steps if step.operator.startswith("whole_")}
    return {plan.tensors[index].name for index in plan.inputs if index in read}


def random_input(rng: np.random.Generator, port: Port) -> np.ndarray:
    """Uniform over the whole integer type, standard normal for floats, both values for bool."""
    if port.dtype.kind in "iu":
        info = np.iinfo(port.dtype)
        return rng.integers(info.min, info.max, port.shape, dtype=port.dtype, endpoint=True)
    if port.dtype.kind == "b":
        return rng.integers(0, 2, port.shape).astype(np.bool_)
    if port.dtype.kind == "f":
        return rng.standard_normal(port.shape).astype(port.dtype)
    raise InputError("BT-INPUT-TYPE", f"no random values for {port.dtype}", place=f"input '{port.name}'")


def _split(text: str, ports: list[Port]) -> tuple[str | None, Path]:
    for port in ports:
        if text.startswith(port.name + "="):
            return port.name, Path(text[len(port.name) + 1 :])
    name, separator, path = text.partition("=")
    if separator and not Path(text).exists():
        return name, Path(path)
    return None, Path(text)


def _port(ports: list[Port], name: str | None, taken: dict[str, np.ndarray]) -> Port:
    for port in ports:
        if port.name == name or (name is None and port.name not in taken):
            return port
    if name is not None:
        raise InputError("BT-INPUT-NAME", f"'{name}' is no input", advice=f"inputs: {', '.join(p.name for p in ports)}")
    raise InputError("BT-INPUT-COUNT", f"more files than inputs ({len(ports)})", place="--input")


def _read_array(path: Path) -> np.ndarray:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise InputError("BT-FILE-ARRAY", f"no readable .npy file: {error}", place=str(path)) from None


def _read_archive(path: Path, ports: list[Port]) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError) as error:
        raise InputError("BT-FILE-ARRAY", f"no readable .npz file: {error}", place=str(path)) from None
    if len(ports) == len(arrays) == 1:
        return {ports[0].name: _fit(next(iter(arrays.values())), ports[0])}
    by_name = {port.name: port for port in ports}
    unknown = [name for name in arrays if name not in by_name]
    if unknown:
        raise InputError(
            "BT-INPUT-NAME",
            f"the archive holds {', '.join(unknown)}",
            place=str(path),
            advice=f"inputs: {', '.join(by_name)}",
        )
    return {name: _fit(array, by_name[name]) for name, array in arrays.items()}


def _fit(array: np.ndarray, port: Port) -> np.ndarray:
    """The array under the input's shape when only extents of 1 differ; type and size stay the session's check."""
    squeezed = [extent for extent in array.shape if extent != 1]
    if array.shape != port.shape and squeezed == [extent for extent in port.shape if extent != 1]:
        return array.reshape(port.shape)
    return array


def read_image(path: Path, port: Port, image_range: tuple[float, float] | None) -> tuple[np.ndarray, str]:
    """An image file as an input array [1, height, width, channels] (1, 3 or 4 channels), and what was done.

    The picture is resized (bicubic, Pillow's default) to the input's height and width. Grey values 0..255 then become

    * with `image_range` (low, high): real numbers from low to high, quantized by the input's scale and zero point;
    * otherwise, for 8-bit inputs: the whole range of the type (p for uint8, p - 128 for int8), which is what the
      input's scale and zero point mean when they span the range that the model was trained on;
    * otherwise, for 16-bit and float inputs: real numbers from 0 to 1.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError("BT-IMAGE", "images need Pillow", place=str(path), advice="pip install pillow") from None
    if len(port.shape) != 4 or port.shape[0] != 1 or port.shape[3] not in (1, 3, 4):
        raise InputError(
            "BT-IMAGE",
            f"input '{port.name}' with shape {list(port.shape)} does not look like one picture [1, h, w, 1|3|4]",
            place=str(path),
            advice="pass an .npy file",
        )
    _, height, width, channels = port.shape
    try:
        with Image.open(path) as picture:
            original = picture.size
            mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
            resized = picture.convert(mode).resize((width, height), Image.Resampling.BICUBIC)
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError("BT-IMAGE", f"no readable image or array: {error}", place=str(path)) from None
    pixels = np.asarray(resized, np.uint8).reshape(port.shape)
    remark = f"image {path.name} {original[0]}x{original[1]} -> {port.dtype}{list(port.shape)}, "
    if image_range is None and port.dtype in (np.dtype(np.uint8), np.dtype(np.int8)):
        move = 128 if port.dtype == np.int8 else 0
        return (pixels.astype(np.int16) - move).astype(port.dtype), remark + (
            "grey value p stored as p - 128" if move else "grey values stored as they are"
        )
    low, high = image_range or (0.0, 1.0)
    real = (np.float32(low) + pixels.astype(np.float32) * np.float32((high - low) / 255)).astype(np.float32)
    remark += f"grey values 0..255 mean {low:g}..{high:g}"
    if port.dtype.kind == "f":
        return real.astype(port.dtype), remark
    if port.scale is None or port.zero_point is None:
        raise InputError("BT-IMAGE", f"input '{port.name}' has no scale to quantize an image with", place=str(path))
    return quantize(real, port.scale, port.zero_point, data_type(port.dtype.name).title), remark
