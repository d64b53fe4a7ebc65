"""What a recipe may do to a sample.

A function per step takes the step, the model's input and where the step stands, and gives what turns a value into
the next.
"""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError, UnsupportedError
from ...names import near_or_all
from ...ports import Port
from ..placement import Placement

# Library, as recipes call it -> module and package.
PACKAGES = {"pillow": ("PIL.Image", "pillow"), "opencv": ("cv2", "opencv-python-headless")}
_USUAL_LIBRARY = "pillow"
# What each step may say beside `do`.
KEYS = {
    "crop": ("fraction", "size"),
    "decode": ("colours", "library"),
    "letterbox": ("align", "fill", "library", "method", "size"),
    "move": ("axes",),
    "resize": ("library", "method", "shorter", "size"),
    "scale": ("deviation", "factor", "mean"),
    "values": ("type",),
}

_METHODS = {
    "pillow": {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC", "lanczos": "LANCZOS", "box": "BOX"},
    "opencv": {
        "nearest": "INTER_NEAREST",
        "bilinear": "INTER_LINEAR",
        "bicubic": "INTER_CUBIC",
        "area": "INTER_AREA",
        "lanczos": "INTER_LANCZOS4",
    },
}
_TYPES = tuple(
    f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64) if bits > 8 or kind != "float"
)
_COLOURS = ("rgb", "bgr", "grey")
# An image of more pixels is not decoded.
_MOST_PIXELS = 1 << 28


def library_of(step: Mapping[str, Any]) -> str:
    """The library that a step names; the usual one where it names none, which counts only for steps that take one."""
    return str(step.get("library", _USUAL_LIBRARY))


def _library(step: Mapping[str, Any], place: str) -> tuple[str, Any]:
    name = library_of(step)
    if name not in PACKAGES:
        raise InputError("BT-RECIPE", f"unknown library '{name}'", place=place, advice="pillow or opencv")
    module, package = PACKAGES[name]
    try:
        return name, importlib.import_module(module)
    except ImportError:
        raise UnsupportedError(
            "BT-PACKAGE", f"{package} is not installed", place=place, advice=f"pip install {package}"
        ) from None


def _decode(step: Mapping[str, Any], port: Port, place: str) -> Callable[[bytes], np.ndarray]:
    colours = _word(step, "colours", "rgb", _COLOURS, place)
    name, module = _library(step, place)

    def pillow(content: bytes) -> np.ndarray:
        try:
            with module.open(io.BytesIO(content)) as image:
                if image.width * image.height > _MOST_PIXELS:
                    raise InputError("BT-IMAGE", f"the image has {image.width} x {image.height} pixels")
                found = np.asarray(image.convert("L" if colours == "grey" else "RGB"))
        except InputError:
            raise
        except Exception as error:  # what Pillow raises of damaged files is of many types
            raise InputError("BT-IMAGE", f"the image cannot be decoded: {error}") from None
        return found[..., None] if colours == "grey" else found[..., ::-1] if colours == "bgr" else found

    def opencv(content: bytes) -> np.ndarray:
        flag = module.IMREAD_GRAYSCALE if colours == "grey" else module.IMREAD_COLOR
        found = None if not content else module.imdecode(np.frombuffer(content, np.uint8), flag)
        if found is None:
            raise InputError("BT-IMAGE", "the image cannot be decoded")
        return found[..., None] if colours == "grey" else found[..., ::-1] if colours == "rgb" else found

    return pillow if name == "pillow" else opencv


def _resize(step: Mapping[str, Any], port: Port, place: str) -> Callable[[np.ndarray], np.ndarray]:
    to, target = _resizer(step, place), _target(step, port, place)
    return lambda image: to(image, target(*image.shape[:2]))


def _resizer(step: Mapping[str, Any], place: str) -> Callable[[np.ndarray, tuple[int, int]], np.ndarray]:
    """What makes an image of so many rows and columns of an image."""
    name, module = _library(step, place)
    method = _word(step, "method", "bilinear", tuple(_METHODS[name]), place)
    flag = getattr(getattr(module, "Resampling", module), _METHODS[name][method])

    def resize(image: np.ndarray, target: tuple[int, int]) -> np.ndarray:
        if name == "opencv":
            found = module.resize(np.ascontiguousarray(image), target[::-1], interpolation=flag)
            return found.reshape(*target, image.shape[2])
        plane = image[..., 0] if image.shape[2] == 1 else image
        found = np.asarray(module.fromarray(np.ascontiguousarray(plane)).resize(target[::-1], flag))
        return found.reshape(*target, image.shape[2])

    return resize


def _target(step: Mapping[str, Any], port: Port, place: str) -> Callable[[int, int], tuple[int, int]]:
    """What rows and columns become."""
    if "shorter" not in step:
        size = _size(step, port, place)
        return lambda rows, columns: size
    shorter = int(step["shorter"])

    def target(rows: int, columns: int) -> tuple[int, int]:
        least = min(rows, columns)
        return int(rows * shorter / least), int(columns * shorter / least)

    return target


def _crop(step: Mapping[str, Any], port: Port, place: str) -> Callable[[np.ndarray], np.ndarray]:
    cut = _cut(step, port, place)

    def crop(image: np.ndarray) -> np.ndarray:
        top, left, height, width = cut(*image.shape[:2])
        return image[top : top + height, left : left + width]

    return crop


def _cut(step: Mapping[str, Any], port: Port, place: str) -> Callable[[int, int], tuple[int, int, int, int]]:
    """Where the middle of so many rows and columns begins, and its own."""
    fraction = step.get("fraction")
    size = None if fraction is not None else _size(step, port, place)

    def cut(rows: int, columns: int) -> tuple[int, int, int, int]:
        height, width = size or (int(rows * float(fraction)), int(columns * float(fraction)))  # type: ignore[arg-type]
        if height > rows or width > columns:
            raise InputError("BT-IMAGE", f"{height} x {width} cannot be cut out of {rows} x {columns}")
        return (rows - height) // 2, (columns - width) // 2, height, width

    return cut


def _letterbox(step: Mapping[str, Any], port: Port, place: str) -> Callable[[np.ndarray], np.ndarray]:
    to, frame = _resizer(step, place), _frame(step, port, place)
    fill = np.uint8(int(step.get("fill", 0)))

    def letterbox(image: np.ndarray) -> np.ndarray:
        inner, (top, left), size = frame(*image.shape[:2])
        found = np.full((*size, image.shape[2]), fill)
        found[top : top + inner[0], left : left + inner[1]] = to(image, inner)
        return found

    return letterbox


def _frame(
    step: Mapping[str, Any], port: Port, place: str
) -> Callable[[int, int], tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """What rows and columns become, where they stand, and the size of the whole."""
    size = _size(step, port, place)
    middle = _word(step, "align", "middle", ("middle", "corner"), place) == "middle"

    def frame(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        ratio = min(size[0] / rows, size[1] / columns)
        inner = max(1, round(rows * ratio)), max(1, round(columns * ratio))
        return inner, ((size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2) if middle else (0, 0), size

    return frame


def _scale(step: Mapping[str, Any], port: Port, place: str) -> Callable[[np.ndarray], np.ndarray]:
    numbers = {
        name: np.float32(step.get(name, usual)) for name, usual in (("factor", 1), ("mean", 0), ("deviation", 1))
    }
    return lambda x: (x.astype(np.float32) * numbers["factor"] - numbers["mean"]) / numbers["deviation"]


def _move(step: Mapping[str, Any], port: Port, place: str) -> Callable[[np.ndarray], np.ndarray]:
    axes = [int(axis) for axis in step.get("axes", ())]
    if sorted(axes) != list(range(len(axes))) or not axes:
        raise InputError("BT-RECIPE", f"axes {axes} are not every axis once", place=place)
    return lambda x: np.ascontiguousarray(x.transpose(axes))


def _values(step: Mapping[str, Any], port: Port, place: str) -> Callable[[bytes], np.ndarray]:
    kind = np.dtype(_word(step, "type", "", _TYPES, place)).newbyteorder("<")

    def values(content: bytes) -> np.ndarray:
        if len(content) != math.prod(port.shape) * kind.itemsize:
            raise InputError(
                "BT-DATA-SIZE",
                f"expected {math.prod(port.shape) * kind.itemsize} bytes for {list(port.shape)} of {step['type']}, "
                f"found {len(content)}",
                place=place,
            )
        return np.frombuffer(content, kind).astype(kind.newbyteorder("=")).reshape(port.shape)

    return values


def _size(step: Mapping[str, Any], port: Port, place: str) -> tuple[int, int]:
    size = step.get("size", "model")
    if size == "model":
        shape = port.shape[1:]
        if len(shape) != 3:
            raise InputError("BT-RECIPE", f"input '{port.name}' {list(port.shape)} is no batch of images", place=place)
        return (shape[0], shape[1]) if shape[2] in (1, 3, 4) else (shape[1], shape[2])
    if not (isinstance(size, Sequence) and len(size) == 2 and all(isinstance(n, int) and n > 0 for n in size)):
        raise InputError("BT-RECIPE", f'size is "model" or [rows, columns], found {size!r}', place=place)
    return size[0], size[1]


def _word(step: Mapping[str, Any], name: str, usual: str, known: Sequence[str], place: str) -> str:
    word = str(step.get(name, usual))
    if word not in known:
        raise InputError(
            "BT-RECIPE", f"unknown {name} '{word}'", place=place, advice=near_or_all(word, known, "there are")
        )
    return word


STEPS: dict[str, Callable[[Mapping[str, Any], Port, str], Callable[[Any], Any]]] = {
    "crop": _crop,
    "decode": _decode,
    "letterbox": _letterbox,
    "move": _move,
    "resize": _resize,
    "scale": _scale,
    "values": _values,
}


def _placed_resize(step: Mapping[str, Any], port: Port, place: str) -> Callable[[Placement], Placement]:
    target = _target(step, port, place)
    return lambda at: at.resized(*target(*at.size))


def _placed_crop(step: Mapping[str, Any], port: Port, place: str) -> Callable[[Placement], Placement]:
    cut = _cut(step, port, place)
    return lambda at: at.cut(*cut(*at.size))


def _placed_letterbox(step: Mapping[str, Any], port: Port, place: str) -> Callable[[Placement], Placement]:
    frame = _frame(step, port, place)

    def placed(at: Placement) -> Placement:
        inner, (top, left), size = frame(*at.size)
        return at.resized(*inner).cut(-top, -left, *size)

    return placed


# Where an image goes by the steps that move it.
PLACES: dict[str, Callable[[Mapping[str, Any], Port, str], Callable[[Placement], Placement]]] = {
    "crop": _placed_crop,
    "letterbox": _placed_letterbox,
    "resize": _placed_resize,
}
