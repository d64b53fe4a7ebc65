"""What models are fed: arrays, images, or seeded random values; one set of inputs or several."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Port
from ..errors import InputError
from ..files import read_file
from ..graph import data_type
from ..names import near_or_all
from ..plan import Plan
from ..quantization import quantize
from . import arrays

_RAW = (".bin", ".raw")
_ARRAYS = (".npy", ".npz")
# A small file may hold a large image, and every pixel takes a few bytes when it is read.
_MOST_PIXELS = 50_000_000
# Others may start programs, as PostScript does.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


@dataclass
class InputSet:
    """Values for one run.

    Attributes:
        description: where they come from, in a few words.
        values: by input name, in the model's order.
        remarks: what was done to them.
    """

    description: str
    values: dict[str, np.ndarray] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def input_sets(
    ports: Sequence[Port],
    files: Sequence[str] = (),
    seeds: Sequence[int] = (),
    image_range: tuple[float, float] | None = None,
    levels: Collection[str] = (),
) -> list[InputSet]:
    """Sets of inputs: from files if there are any, else one random set per seed.

    Args:
        ports: the model's inputs.
        files: each ``FILE``, ``NAME=FILE`` or a folder, which stands for all arrays and images in it by name. A file
            without a name fills the first input that is still open, an .npz all those that it names. A file for an
            input that is filled begins the next set: of a model with one input, each file is a set.
        seeds: of random sets; seed 0 without any. Inputs that files leave open get random values of the one seed.
        image_range: see `read_image`.
        levels: inputs of real type that get integers 0..255 when they are random.

    Raises:
        InputError: a file is missing, unreadable, or names no input; seeds or an image range that change nothing.
    """
    if files and len(seeds) > 1:
        raise InputError(
            "BT-INPUT-SEED",
            "has no effect: the files of --input are the runs",
            place="--runs",
            advice="leave it out, or leave --input out for random values",
        )
    sets = sets_of_files(ports, files, image_range)
    if seeds and all(port.name in one_set.values for one_set in sets or [InputSet("")] for port in ports):
        why = "files fill every input" if ports else "the model has no inputs"
        raise InputError("BT-INPUT-SEED", f"has no effect: {why}", place="--seed", advice="leave it out")
    seeds = list(seeds) or [0]
    random = not sets
    if random:
        sets = [InputSet(f"random, seed {seed}") for seed in seeds]
    for one_set, seed in zip(sets, seeds if random else [seeds[0]] * len(sets), strict=True):
        rng = np.random.default_rng(seed)
        for port in ports:
            if port.name in one_set.values:
                continue
            whole = port.name in levels
            one_set.values[port.name] = (
                rng.integers(0, 256, _closed(port)).astype(port.dtype) if whole else random_input(rng, port)
            )
            kind = "levels 0..255" if whole else "zeros and ones" if _counts(port) else "values"
            one_set.remarks.append(f"input '{port.name}': random {kind}, seed {seed}")
        one_set.values = {port.name: one_set.values[port.name] for port in ports}
    return sets


def sets_of_files(
    ports: Sequence[Port], files: Sequence[str], image_range: tuple[float, float] | None = None
) -> list[InputSet]:
    """What files hold; inputs that they leave open are missing. Arguments and errors as for `input_sets`."""
    sets: list[InputSet] = []
    images = False
    for text in files:
        name, path = _split(text, ports)
        for one in _in_folder(path) if path.is_dir() else [path]:
            images = images or one.suffix.lower() not in (*_ARRAYS, *_RAW)
            found = _read(one, name, ports, sets[-1] if sets else None, image_range)
            if sets and not set(found.values) & set(sets[-1].values):
                sets[-1].values.update(found.values)
                sets[-1].remarks += found.remarks
                sets[-1].description += f", {found.description}"
            else:
                sets.append(found)
    if image_range is not None and not images:
        raise InputError("BT-INPUT-RANGE", "has no effect: no file of --input is an image", place="--image-range")
    return sets


def one_input_set(
    ports: Sequence[Port],
    files: Sequence[str],
    seed: int | None,
    image_range: tuple[float, float] | None,
    levels: Collection[str] = (),
) -> tuple[dict[str, np.ndarray], list[str]]:
    """(input name -> array, remarks) where a single run is wanted; InputError for more files than it has inputs.

    A `seed` of None is one that nobody chose: 0.
    """
    sets = input_sets(ports, files, () if seed is None else (seed,), image_range, levels)
    if len(sets) > 1:
        raise InputError("BT-INPUT-COUNT", f"more files than inputs ({len(ports)})", place="--input")
    return sets[0].values, sets[0].remarks


def inputs_of_levels(plan: Plan) -> set[str]:
    """Inputs of real type that hold integers: layers on such numbers read them."""
    read = {step.inputs[0] for step in plan.steps if step.parameters.get("arithmetic") == "whole"}
    return {plan.tensors[index].name for index in plan.inputs if index in read}


def random_input(rng: np.random.Generator, port: Port) -> np.ndarray:
    """Uniform over the whole type of quantized values, standard normal for floats, both values for bool.

    Integers of 32 and more bits without a scale are 0 or 1: as tokens, masks, lengths or positions nearly all models
    take these, and hardly any takes others at random.
    """
    shape = _closed(port)
    if port.dtype.kind in "iu":
        if _counts(port):
            return rng.integers(0, 2, shape, dtype=port.dtype)
        info = np.iinfo(port.dtype)
        return rng.integers(info.min, info.max, shape, dtype=port.dtype, endpoint=True)
    if port.dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if port.dtype.kind == "f":
        return rng.standard_normal(shape).astype(port.dtype)
    raise InputError("BT-INPUT-TYPE", f"no random values for {port.dtype}", place=f"input '{port.name}'")


def _counts(port: Port) -> bool:
    """Whether its integers stand for themselves: they count or name something."""
    return port.dtype.kind in "iu" and port.dtype.itemsize >= 4 and port.quantization is None


def _closed(port: Port) -> tuple[int, ...]:
    """The shape, where it is known."""
    if -1 in port.shape:
        shown = ", ".join("?" if size == -1 else str(size) for size in port.shape)
        raise InputError(
            "BT-INPUT-OPEN",
            f"the file does not say the shape of this input: [{shown}]",
            place=f"input '{port.name}'",
            advice="pass an .npy file",
        )
    return port.shape


def _split(text: str, ports: Sequence[Port]) -> tuple[str | None, Path]:
    for port in ports:
        if text.startswith(port.name + "="):
            return port.name, Path(text[len(port.name) + 1 :])
    name, separator, path = text.partition("=")
    if separator and not Path(text).exists():
        return name, Path(path)
    return None, Path(text)


def _in_folder(folder: Path) -> list[Path]:
    """Arrays and images of a folder by name."""
    found = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in (*_ARRAYS, *_IMAGES) and p.is_file()]
    if not found:
        known = ", ".join((*_ARRAYS, *_IMAGES))
        raise InputError("BT-FILE-MISSING", f"no file in it ends in one of {known}", place=str(folder))
    return found


def _read(
    path: Path,
    name: str | None,
    ports: Sequence[Port],
    before: InputSet | None,
    image_range: tuple[float, float] | None,
) -> InputSet:
    """What one file gives. Without a name it is for the first input that `before` leaves open, or for the first."""
    if not path.is_file():
        raise InputError("BT-FILE-MISSING", f"no file '{path}'", place="--input")
    if path.suffix.lower() == ".npz":
        return InputSet(path.name, _read_archive(path, ports))
    port = _port(ports, name, before.values if before else {})
    if path.suffix.lower() == ".npy":
        return InputSet(path.name, {port.name: _fit(_loaded(arrays.npy(path), port, path), port)})
    if path.suffix.lower() in _RAW:
        return InputSet(path.name, {port.name: _read_raw(path, port)})
    with warnings.catch_warnings():
        # Pillow warns of damaged files that it reads all the same.
        warnings.simplefilter("ignore")
        value, remark = read_image(path, port, image_range)
    return InputSet(path.name, {port.name: value}, [remark])


def _port(ports: Sequence[Port], name: str | None, taken: Collection[str]) -> Port:
    if not ports:
        raise InputError("BT-INPUT-COUNT", "more files than inputs (0)", place="--input")
    if name is None:
        return next((port for port in ports if port.name not in taken), ports[0])
    for port in ports:
        if port.name == name:
            return port
    names = [port.name for port in ports]
    raise InputError("BT-INPUT-NAME", f"'{name}' is no input", advice=near_or_all(name, names, "inputs"))


def _read_raw(path: Path, port: Port) -> np.ndarray:
    """Values as devices write them: little-endian, in C order, as many bytes as the input takes."""
    dtype = np.dtype(port.dtype)
    expected = math.prod(port.shape) * dtype.itemsize
    found = path.stat().st_size
    if min(port.shape, default=0) < 0 or found != expected:
        shape = ", ".join("?" if size < 0 else str(size) for size in port.shape)
        raise InputError(
            "BT-FILE-ARRAY",
            f"{found:,} bytes are no raw values of input '{port.name}', {dtype} [{shape}]",
            place=str(path),
            advice="pass an .npy file: it says its type and shape",
        )
    return np.frombuffer(read_file(path, 0, expected), dtype.newbyteorder("<")).astype(dtype).reshape(port.shape)


def _read_archive(path: Path, ports: Sequence[Port]) -> dict[str, np.ndarray]:
    found = arrays.members(path)
    if len(ports) == len(found) == 1:
        found = {ports[0].name: next(iter(found.values()))}
    by_name = {port.name: port for port in ports}
    unknown = [name for name in found if name not in by_name]
    if unknown:
        raise InputError(
            "BT-INPUT-NAME",
            f"the archive holds {', '.join(unknown)}"[:400],
            place=str(path),
            advice=near_or_all(unknown[0], by_name, "inputs"),
        )
    return {name: _fit(_loaded(stored, by_name[name], path), by_name[name]) for name, stored in found.items()}


def _loaded(stored: arrays.Stored, port: Port, path: Path) -> np.ndarray:
    """The array, unless it is larger than the input: members of archives say themselves how large they become."""
    open_sizes = -1 in port.shape or port.takes(stored.shape)
    if not open_sizes and math.prod(stored.shape) > math.prod(port.shape):
        raise InputError(
            "BT-INPUT-SHAPE",
            f"takes shape {port.shape_text()}, the file has {list(stored.shape)}",
            place=f"input '{port.name}', {path}",
            advice="`--shape` prepares the model for it; for a batch, session.run_batch(...) runs sample after sample",
        )
    return stored.load()


def _fit(array: np.ndarray, port: Port) -> np.ndarray:
    """The array under the input's shape when only dimensions of 1 differ; type and size stay the session's check."""
    squeezed = [size for size in array.shape if size != 1]
    if not port.takes(array.shape) and squeezed == [size for size in port.shape if size != 1]:
        return array.reshape(port.shape)
    return array


def read_image(path: Path, port: Port, image_range: tuple[float, float] | None) -> tuple[np.ndarray, str]:
    """An image file as an input array of 1, 3 or 4 channels, and what was done.

    The input is [1, height, width, channels] or [1, channels, height, width].

    The image is brought to 8 bits per channel (see `_eight_bits`) and resized (bicubic, Pillow's default) to the
    input's height and width. Values 0..255 then become

    * with `image_range` (low, high): real numbers from low to high, quantized by the input's scale and zero point;
    * otherwise, for 8-bit inputs: the whole range of the type (p for uint8, p - 128 for int8), which is what the
      input's scale and zero point mean when they span the range that the model was trained on;
    * otherwise, for 16-bit and float inputs: real numbers from 0 to 1.

    Raises:
        InputError: Pillow is missing; the input takes no image; the file is no image, has too many pixels (before they
            are decoded), or values that have no known range or mean nothing without a background.
    """
    try:
        from PIL import Image
    except ImportError:
        raise InputError("BT-IMAGE", "images need Pillow", place=str(path), advice="pip install pillow") from None
    last = len(port.shape) == 4 and port.shape[3] in (1, 3, 4)
    if len(port.shape) != 4 or port.shape[0] != 1 or not (last or port.shape[1] in (1, 3, 4)) or -1 in port.shape:
        raise InputError(
            "BT-IMAGE",
            f"input '{port.name}' with shape {list(port.shape)} does not take an image: "
            "that is [1, h, w, 1|3|4] or [1, 1|3|4, h, w]",
            place=str(path),
            advice="pass an .npy file",
        )
    height, width, channels = port.shape[1:] if last else (*port.shape[2:], port.shape[1])
    try:
        with Image.open(path, formats=_FORMATS) as image:
            original = image.size
            if math.prod(original) > _MOST_PIXELS:
                raise InputError(
                    "BT-IMAGE-SIZE",
                    f"{original[0]}x{original[1]} pixels, at most {_MOST_PIXELS:,} are read",
                    place=str(path),
                    advice=f"make the image smaller first: the input takes {width}x{height}",
                )
            converted, done = _eight_bits(image, {1: "L", 3: "RGB", 4: "RGBA"}[channels], path)
            resized = converted.resize((width, height), Image.Resampling.BICUBIC)
    except InputError:
        raise
    except Exception as error:  # whatever Pillow meets in a damaged file: TypeError, RuntimeError and EOFError too
        raise InputError("BT-IMAGE", f"no readable image or array: {error}", place=str(path)) from None
    pixels = np.asarray(resized, np.uint8).reshape(1, height, width, channels)
    if not last:
        pixels = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    remark = f"image {path.name} {original[0]}x{original[1]} -> {port.dtype}{list(port.shape)}, {done}"
    if image_range is None and port.dtype in (np.dtype(np.uint8), np.dtype(np.int8)):
        move = 128 if port.dtype == np.int8 else 0
        return (pixels.astype(np.int16) - move).astype(port.dtype), remark + (
            "value p stored as p - 128" if move else "values stored as they are"
        )
    low, high = image_range or (0.0, 1.0)
    real = (np.float32(low) + pixels.astype(np.float32) * np.float32((high - low) / 255)).astype(np.float32)
    remark += f"values 0..255 mean {low:g}..{high:g}"
    if port.dtype.kind == "f":
        return real.astype(port.dtype), remark
    if port.scale is None or port.zero_point is None:
        raise InputError("BT-IMAGE", f"input '{port.name}' has no scale to quantize an image with", place=str(path))
    return quantize(real, port.scale, port.zero_point, data_type(port.dtype.name).title), remark


def _eight_bits(image: Any, mode: str, path: Path) -> tuple[Any, str]:
    """The image in a mode of 8 bits per channel (L, RGB or RGBA), and what was done to get there.

    Pillow clips 16-bit grey values at 255 when it converts them; here their whole range becomes 0..255, rounded. Of
    16-bit colours it reads the upper byte.
    """
    found, tile = image.mode, str(image.tile)
    # Pillow calls 16-bit grey values of some formats "I", like 32-bit integers of unknown range.
    if found.startswith("I;16") or (found == "I" and image.format in ("PNG", "PPM")):
        from PIL import Image

        most = 4095 if "I;12" in tile else 65535
        grey = (np.clip(np.asarray(image).astype(np.int64), 0, most) * 255 + most // 2) // most
        return Image.fromarray(grey.astype(np.uint8)).convert(mode), f"values 0..{most} scaled to 0..255, "
    if found in ("I", "F"):
        kind = "32-bit integers" if found == "I" else "32-bit real numbers"
        raise InputError(
            "BT-IMAGE",
            f"its pixels are {kind}, and the file does not say which of them mean black and white",
            place=str(path),
            advice="save it with 8 or 16 bits per channel, or pass an .npy file",
        )
    if mode != "RGBA" and (found in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info):
        low, _ = image.convert("RGBA").getchannel("A").getextrema()
        if low < 255:
            raise InputError(
                "BT-IMAGE",
                "it has transparent pixels, and the input takes no transparency",
                place=str(path),
                advice="flatten it onto a background first",
            )
    # The only mark of 16-bit colours that is left: how Pillow unpacks them.
    done = "the upper 8 of 16 bits per channel, " if ";16" in tile else ""
    return image.convert(mode), done
