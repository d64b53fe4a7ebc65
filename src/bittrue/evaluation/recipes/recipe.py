"""Recipes: how a sample becomes a model's input, as data.

A recipe is a list of steps in TOML. Nothing is implicit: what is not written does not happen, except that the batch
axis is added where it is missing and that real numbers for a quantized input are quantized as the last thing
(``rounding`` says by whose arithmetic).

.. code-block:: toml

    rounding = "litert"               # of real numbers to the input's type; or "onnx"

    [[step]]
    do = "decode"                     # an encoded image to uint8 [rows, columns, channels]
    library = "pillow"                # or "opencv"
    colours = "rgb"                   # or "bgr", "grey"

    [[step]]
    do = "crop"                       # the middle of it
    fraction = 0.875                  # or size = [224, 224]; size = "model" is the model's own

    [[step]]
    do = "resize"
    size = "model"                    # or [224, 224]; or shorter = 256, which keeps the proportions
    method = "bilinear"               # nearest, bilinear, bicubic, area (opencv), lanczos
    library = "pillow"

    [[step]]
    do = "letterbox"                  # instead of resize: keeps the proportions and adds what is missing
    size = "model"
    fill = 0
    align = "middle"                  # or "corner": all of it is added below and on the right

    [[step]]
    do = "scale"                      # float32: (x * factor - mean) / deviation
    factor = 0.00392156862745098
    mean = [0.485, 0.456, 0.406]
    deviation = [0.229, 0.224, 0.225]

    [[step]]
    do = "move"                       # channels first
    axes = [2, 0, 1]

    [task]                            # what the task takes
    ignore = 255

    [[step]]
    do = "values"                     # instead of decode: bytes to numbers, the lowest byte first
    type = "float32"                  # or int8, uint16 ...

    [[input.mask.step]]               # the steps of one of several inputs; those without any of their own take [[step]]
    do = "decode"
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...errors import InputError, UnsupportedError
from ...names import near_or_all
from ...ports import Port, checked
from ...quantization import dequantize, quantize
from ..placement import Placement
from ..sources import Held, Part, Source
from .steps import KEYS, PACKAGES, PLACES, STEPS, library_of

# Rows and columns of the image that a recipe is tried on before the first sample.
_TRIED = (1024, 1024)
# Where fewer than one in so many quantized values are used, or real numbers held, a factor is missing.
_ONE_IN = 32
# Where a step stands, and what it does to a value.
_Function = tuple[str, Callable[[Any], Any]]
# The input of a model, or its inputs by name.
Made: TypeAlias = np.ndarray | Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Recipe:
    """How a sample becomes an input; see the top of this file.

    Attributes:
        name: of a built-in one, or the file's.
        steps: what is done, in order.
        rounding: the numerics that real numbers are quantized by.
        task: what it says about the task: keys of its class.
        inputs: recipes of inputs that have steps of their own, by name.
    """

    name: str
    steps: tuple[Mapping[str, Any], ...] = ()
    rounding: str = "litert"
    task: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Recipe] = field(default_factory=dict)
    _made: dict[Port, list[_Function]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of all but the name."""
        content = {"steps": self.steps, "rounding": self.rounding, **({"task": self.task} if self.task else {})}
        if self.inputs:
            content["inputs"] = {name: recipe.steps for name, recipe in self.inputs.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def libraries(self) -> dict[str, str]:
        """Packages that the steps use, with the versions that are installed."""
        steps = [step for recipe in (self, *self.inputs.values()) for step in recipe.steps]
        used = {library_of(step) for step in steps if "library" in KEYS[step["do"]]}
        return {PACKAGES[name][1]: importlib.metadata.version(PACKAGES[name][1]) for name in sorted(used)}

    def to_dict(self) -> dict[str, Any]:
        """What a result says of it, as plain data."""
        return {"name": self.name, "digest": self.digest, "libraries": self.libraries(), "task": dict(self.task)}

    def check_all(self, source: Source, ports: Sequence[Port]) -> None:
        """Raises InputError where what a source holds cannot become the inputs of a model."""
        names = [port.name for port in ports]
        for name in self.inputs:
            if name not in names:
                advice = near_or_all(name, names, "there are")
                raise InputError("BT-RECIPE", f"the model has no input '{name}'", place=self.name, advice=advice)
        if len(ports) > 1 and list(source.inputs) != names:
            there = ", ".join(source.inputs) or "one value per sample"
            raise InputError(
                "BT-EVALUATE-INPUTS",
                f"the model has the inputs {', '.join(names)}, and the data has {there}",
                place=source.place,
            )
        for port in ports:
            held = source.inputs.get(port.name) or Held(source.holds, source.alike)
            self.of(port).check(held.holds, port, held.alike)

    def of(self, port: Port) -> Recipe:
        """That of one of the inputs."""
        return self.inputs.get(port.name, self)

    def made(self, part: Part, ports: Sequence[Port]) -> tuple[Made, Placement | None]:
        """What a model is run on, and where the image went: that of the first input that is one.

        Raises:
            InputError: as `apply`.
        """
        if isinstance(part, bytes | np.ndarray):
            return self.of(ports[0]).placed(part, ports[0])
        found = {port.name: self.of(port).placed(part[port.name], port) for port in ports}
        placement = next((placement for _, placement in found.values() if placement is not None), None)
        return {name: x for name, (x, _) in found.items()}, placement

    def check(self, holds: str, port: Port, alike: np.ndarray | None = None) -> None:
        """Raises InputError where samples of this kind cannot become this input, whatever they hold.

        Args:
            holds: what samples are; see `Source`.
            port: the input.
            alike: an array with the shape and type of every sample, where all have the same.
        """
        try:
            quantize(np.zeros(1, np.float32), 1.0, 0, np.int8, numerics=self.rounding)
        except InputError as error:
            raise InputError("BT-RECIPE", error.message, place=f"{self.name}, rounding", advice=error.advice) from None
        first = str(self.steps[0]["do"]) if self.steps else ""
        if holds == "image" and first != "decode":
            raise InputError(
                "BT-RECIPE",
                "the samples are encoded images, and the recipe does not decode them",
                place=self.name,
                advice='name another recipe, or a .toml file that begins with a step do = "decode"',
            )
        if holds != "image" and first == "decode":
            raise InputError("BT-RECIPE", "the recipe decodes images, and the samples are values", place=self.name)
        if any(step["do"] in ("decode", "values") for step in self.steps[1:]):
            raise InputError("BT-RECIPE", "decode and values can only be the first step", place=self.name)
        if holds != "bytes" and first == "values":
            raise InputError("BT-RECIPE", "the recipe takes bytes, and the samples are arrays", place=self.name)
        functions = self._functions(port)
        if holds == "image":
            self._check_images(functions[1:], port)
        elif alike is not None:
            self._check_fit("a sample", alike, functions, port)

    def _check_images(self, functions: Sequence[_Function], port: Port) -> None:
        if not any(step["do"] in PLACES and "shorter" not in step for step in self.steps):
            raise InputError(
                "BT-RECIPE",
                f"nothing gives images the size of input '{port.name}' {list(port.shape)}",
                place=self.name,
                advice='add a step do = "resize", size = "model"',
            )
        # A black and a white image stand for all of them: colours, layout, size and type depend on nothing else, and
        # what other images become lies between.
        channels = 1 if self.steps[0].get("colours") == "grey" else 3
        tried = [np.full((*_TRIED, channels), value, np.uint8) for value in (0, 255)]
        for image in tried:
            self._check_fit("an image", image, functions, port)
        made = [self._through(image, functions) for image in tried]
        if port.scale is None or any(value.dtype.kind != "f" for value in made):
            return
        limits = np.iinfo(port.dtype)
        ends = dequantize(np.array([limits.min, limits.max], port.dtype), port.scale, port.zero_point or 0)
        low, high = min(value.min() for value in made), max(value.max() for value in made)
        common = min(high, ends[1]) - max(low, ends[0])
        if common * _ONE_IN < max(high - low, ends[1] - ends[0]):
            raise InputError(
                "BT-RECIPE",
                f"it makes real numbers from {low:.4g} to {high:.4g} of images, and those of input '{port.name}' go "
                f"from {ends[0]:.4g} to {ends[1]:.4g}",
                place=self.name,
                advice='give the step do = "scale" the factor, mean and deviation that the model was trained with',
            )

    def _check_fit(self, what: str, value: np.ndarray, functions: Sequence[_Function], port: Port) -> None:
        try:
            self._finished(value, functions, port)
        except InputError as error:
            raise InputError(
                "BT-RECIPE",
                f"what it makes of {what} does not fit: {error.message}",
                place=self.name,
                advice=error.advice if self.steps else "name a recipe that makes inputs of such samples",
            ) from None

    def apply(self, value: bytes | np.ndarray, port: Port) -> np.ndarray:
        """The input that a sample becomes.

        Raises:
            InputError: the sample is broken, or the result has another type or shape than the input.
        """
        return self._finished(value, self._functions(port), port)

    def placed(self, value: bytes | np.ndarray, port: Port) -> tuple[np.ndarray, Placement | None]:
        """The input that a sample becomes, and where the image went; None for samples that are no images.

        Raises:
            InputError: as `apply`.
        """
        functions = self._functions(port)
        if not self.steps or self.steps[0]["do"] != "decode":
            return self._finished(value, functions, port), None
        image = self._through(value, functions[:1])
        return self._finished(image, functions[1:], port), self.placement(image.shape[0], image.shape[1], port)

    def placement(self, rows: int, columns: int, port: Port) -> Placement:
        """Where an image of so many rows and columns goes on its way to an input."""
        placement = Placement.whole(rows, columns)
        for number, step in enumerate(self.of(port).steps, 1):
            if step["do"] in PLACES:
                placement = PLACES[step["do"]](step, port, f"{self.name}, step {number}")(placement)
        return placement

    def _functions(self, port: Port) -> list[_Function]:
        made = self._made.get(port)
        if made is None:
            made = []
            for number, step in enumerate(self.steps, 1):
                place = f"{self.name}, step {number}"
                try:
                    made.append((place, STEPS[step["do"]](step, port, place)))
                except (TypeError, ValueError, OverflowError) as error:
                    raise InputError("BT-RECIPE", f"a value that the step cannot take: {error}", place=place) from None
            self._made[port] = made
        return made

    def _through(self, value: Any, functions: Sequence[_Function]) -> Any:
        for place, function in functions:
            try:
                value = function(value)
            except (TypeError, ValueError, ArithmeticError, LookupError) as error:
                raise InputError("BT-RECIPE", f"the step cannot take the sample: {error}", place=place) from None
        return value

    def _finished(self, value: Any, functions: Sequence[_Function], port: Port) -> np.ndarray:
        value = self._through(value, functions)
        if isinstance(value, bytes):
            value = _values(value, port)
        if value.shape == port.shape[1:] and port.shape[:1] == (1,):
            value = value[None]
        if value.dtype.kind == "f" and port.dtype.kind in "iu" and port.scale is not None:
            value = quantize(value, port.scale, port.zero_point or 0, port.dtype, numerics=self.rounding)
        return checked(port, value)


def _values(content: bytes, port: Port) -> np.ndarray:
    size = math.prod(port.shape) * port.dtype.itemsize
    if len(content) != size:
        raise InputError(
            "BT-DATA-SIZE", f"expected {size} bytes for {port.dtype}{list(port.shape)}, found {len(content)}"
        )
    return np.ndarray(port.shape, port.dtype.newbyteorder("<"), content).astype(port.dtype, copy=False)


def read_recipe(text: str, name: str) -> Recipe:
    """A recipe from TOML.

    Raises:
        InputError: it is none.
    """
    tomllib = _toml()
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("BT-RECIPE", f"no TOML: {error}", place=name) from None
    for key in found:
        if key not in ("step", "rounding", "name", "task", "input"):
            raise InputError(
                "BT-RECIPE", f"unknown key '{key}'", place=name, advice="there are: name, rounding, step, task, input"
            )
    task = found.get("task", {})
    if not isinstance(task, dict):
        raise InputError("BT-RECIPE", f"task is a table, found {task!r:.80}", place=name, advice="write [task]")
    sections = found.get("input", {})
    if not isinstance(sections, dict):
        advice = "write [[input.NAME.step]]"
        raise InputError("BT-RECIPE", f"input is a table, found {sections!r:.80}", place=name, advice=advice)
    rounding = str(found.get("rounding", "litert"))
    inputs = {}
    for which, section in sections.items():
        place = f"{name}, input '{which}'"
        if not isinstance(section, dict) or set(section) - {"step"}:
            raise InputError("BT-RECIPE", "an input has steps only", place=place, advice="write [[input.NAME.step]]")
        inputs[which] = Recipe(place, _steps(section, place), rounding)
    return Recipe(str(found.get("name", name)), _steps(found, name), rounding, task, inputs)


def _steps(found: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    steps = found.get("step", [])
    if not isinstance(steps, list):
        raise InputError("BT-RECIPE", f"step is a list of tables, found {steps!r}", place=name, advice="write [[step]]")
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict) or not isinstance(step.get("do"), str) or step["do"] not in STEPS:
            word = step.get("do") if isinstance(step, dict) else step
            raise InputError(
                "BT-RECIPE",
                f"unknown step {word!r}",
                place=f"{name}, step {number}",
                advice=near_or_all(str(word), STEPS, "do is one of"),
            )
        for key in step:
            if key != "do" and key not in KEYS[step["do"]]:
                raise InputError(
                    "BT-RECIPE",
                    f"step '{step['do']}' knows no '{key}'",
                    place=f"{name}, step {number}",
                    advice=near_or_all(key, KEYS[step["do"]], "there are"),
                )
    return tuple(steps)


def _toml() -> Any:
    try:
        return importlib.import_module("tomllib")
    except ImportError:  # Python 3.10
        try:
            return importlib.import_module("tomli")
        except ImportError:
            raise UnsupportedError("BT-PACKAGE", "tomli is not installed", advice="pip install tomli") from None
