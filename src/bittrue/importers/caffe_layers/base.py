"""What a mapping of one layer works with: the layer as it is read, and the graph as it grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, Node, Tensor
from ...records import dataclass, field, replace
from ..mapping import Growing, Refusing

# SaturateMethod: what outputs are limited to, and the type that holds it.
SATURATE: Mapping[int, tuple[int, int] | None] = {
    0: None,
    1: (-2048, 2047),
    2: (0, 4095),
    3: (-128, 127),
    4: (0, 255),
}
_EIGHT = {3: "s8", 4: "u8"}
# QuantizeMethod, as an attribute that rows look at.
METHODS = {0: "tflite", 1: "onnx", 2: "caffe2"}
# Of any blob.
MOST_AXES = 32


@dataclass(frozen=True, eq=False)
class Blob:
    """A learned array of a layer: binary32 numbers, and whether its shape is given in the old form of four
    dimensions.
    """

    values: np.ndarray
    legacy: bool = False


@dataclass
class Builder(Growing):
    """The graph that is being read.

    Attributes:
        blobs: the tensor that a blob's name stands for at this point.
        free: blobs that no layer has taken yet.
    """

    inputs: list[int] = field(default_factory=list)
    blobs: dict[str, int] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)


@dataclass
class Layer(Refusing):
    """One layer of the file while it is mapped.

    Attributes:
        proto: its LayerParameter.
        bottoms: tensor indices.
        learned: arrays of the weight file, in order.
        builder: the graph so far.
    """

    proto: Any
    bottoms: list[int]
    learned: list[Blob]
    builder: Builder
    written: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return str(self.proto.name)

    @property
    def type(self) -> str:
        return str(self.proto.type)

    @property
    def tops(self) -> list[str]:
        """Names of the blobs that it writes."""
        return list(self.proto.top)

    # -- operands --------------------------------------------------------------------------------------------------
    def expect(self, bottoms: int | tuple[int, int | None], tops: int | tuple[int, int | None] = 1) -> None:
        """Check how many blobs it reads and writes; (low, None) means at least."""
        for what, found, wanted in (("bottom", len(self.bottoms), bottoms), ("top", len(self.tops), tops)):
            low, high = (wanted, wanted) if isinstance(wanted, int) else wanted
            if found < low or (high is not None and found > high):
                text = str(low) if low == high else f"{low} to {high}" if high is not None else f"at least {low}"
                raise self.invalid("BT-NODE-ARITY", f"expected {text} {what} blobs, found {found}")

    def bottom(self, position: int = 0) -> Tensor:
        return self.builder.tensors[self.bottoms[position]]

    def dtype(self, position: int = 0) -> str:
        """Type of a bottom: u8 or s8 where a layer before limits it so, else f32."""
        return self.bottom(position).dtype

    @property
    def in_place(self) -> bool:
        """Whether a top overwrites a bottom."""
        return any(top in self.proto.bottom for top in self.tops)

    def refuse_in_place(self, quantized: bool) -> None:
        """For layers that restore a quantized input behind them: in place, that quantizes the result again."""
        if self.in_place and quantized:
            raise self.unsupported(
                "BT-CAFFE-IN-PLACE",
                f"a quantized {self.type} layer in place: the system quantizes its result a second time",
                "give its top a name of its own",
            )

    def learn(self, position: int, shape: Sequence[int], role: str) -> np.ndarray:
        """Learned array `position` with this shape; -1 stands for any dimension.

        Shapes in the old form of four dimensions may have 1s ahead.

        Raises:
            InvalidModelError: there is none, or it has another shape.
        """
        if position >= len(self.learned):
            raise self.invalid(
                "BT-CAFFE-WEIGHTS",
                f"blob {position} ({role}) is missing: the weights hold {len(self.learned)} for this layer",
                "pass the .caffemodel that belongs to the network (weights=...), or check the names of layers",
            )
        blob = self.learned[position]
        found = blob.values.shape
        if blob.legacy:
            ahead, rest = found[: len(found) - len(shape)], found[len(found) - len(shape) :]
            if all(size == 1 for size in ahead):
                found = rest
        if len(found) != len(shape) or any(w not in (-1, f) for f, w in zip(found, shape, strict=True)):
            wanted = ", ".join("any" if size == -1 else str(size) for size in shape)
            raise self.invalid(
                "BT-CAFFE-WEIGHTS",
                f"blob {position} ({role}) has shape {list(blob.values.shape)}, expected [{wanted}]",
                "the weight file belongs to another network",
            )
        return blob.values.reshape(found)

    # -- parameters ------------------------------------------------------------------------------------------------
    def result_type(self, saturate: int, whole: bool) -> str:
        """Type of a top: u8 or s8 where integers are limited so, else f32 as the system holds it."""
        return _EIGHT.get(saturate, "f32") if whole else "f32"

    def saturation(self, saturate: int) -> tuple[float, float]:
        """Attributes `low` and `high`; infinities where nothing is limited."""
        found = SATURATE.get(saturate)
        return (float("-inf"), float("inf")) if found is None else (float(found[0]), float(found[1]))

    def scales(self, *pairs: tuple[float, int]) -> list[int | None]:
        """Constants of a scale and a zero point for each pair; nothing where all of them are 1 and 0."""
        if all(pair == (1, 0) for pair in pairs):
            return []
        return [
            self.constant(value, what)
            for scale, zero_point in pairs
            for value, what in ((np.float64(scale), "scale"), (np.int32(zero_point), "zero point"))
        ]

    def scales_of(self, parameter: Any, *names: str) -> list[int | None]:
        """`scales` of the fields `{name}_scale` and `{name}_zero_point`."""
        return self.scales(
            *((getattr(parameter, f"{name}_scale"), getattr(parameter, f"{name}_zero_point")) for name in names)
        )

    # -- result ----------------------------------------------------------------------------------------------------
    def constant(self, array: Any, role: str) -> int:
        """A new constant."""
        return self.builder.constant(array, f"{self.name}/{role}")

    def emit(
        self,
        operator: str,
        dtype: str,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        inputs: Sequence[int | None] | None = None,
        top: int | None = 0,
        role: str = "",
    ) -> int:
        """Adds a node of one output; the tensor index of it.

        Args:
            operator: stem.
            dtype: of the output.
            attributes: all that the operator asks for.
            inputs: tensor indices; None: the bottoms.
            top: which of the layer's tops it writes; None for a value between two nodes of a mapping, named by `role`.
        """
        builder = self.builder
        if top is None:
            result = builder.add(Tensor(builder.unique(f"{self.name}/{role}"), dtype, ()))
        else:
            result = self.write(self.tops[top], Tensor("", dtype, ()))
        given = tuple(self.bottoms if inputs is None else inputs)
        builder.nodes.append(Node(len(builder.nodes), operator, self.type, 1, attributes or {}, given, (result,)))
        return result

    def write(self, blob: str, tensor: Tensor) -> int:
        """A new tensor that the blob's name stands for from here on.

        The last one that is written to a blob bears its name (inputs keep theirs).
        """
        builder = self.builder
        self._claim(blob)
        before = builder.blobs.get(blob)
        if before is not None and before not in builder.inputs and builder.tensors[before].name == blob:
            moved = builder.unique(f"{blob}@before {self.name}")
            builder.names.add(moved)
            builder.names.remove(blob)
            builder.tensors[before] = replace(builder.tensors[before], name=moved)
        name = blob if blob not in builder.names else builder.unique(f"{blob}@{self.name}")
        index = builder.add(replace(tensor, name=name))
        builder.blobs[blob] = index
        return index

    def alias(self, top: int, index: int) -> None:
        """Top `top` is an existing tensor."""
        blob = self.tops[top]
        self._claim(blob)
        self.builder.blobs[blob] = index

    def _claim(self, blob: str) -> None:
        known = blob in self.builder.blobs
        if not blob or blob in self.written or (known and blob not in self.proto.bottom):
            raise self.invalid("BT-CAFFE-BLOB", f"top blob '{blob}' is written twice, or has no name")
        self.written.add(blob)
        self.builder.free.add(blob)

    # -- errors ----------------------------------------------------------------------------------------------------
    @property
    def place(self) -> str:
        return f"node {len(self.builder.nodes)} ({self.type}), layer '{self.name}'"


@dataclass
class Chain:
    """Operators of one layer, each of which takes the result of the one before; the last one writes the top.

    Attributes:
        start: a tensor index.
    """

    layer: Layer
    start: int
    _links: list[tuple[str, str, Mapping[str, Attribute], Callable[[int], Sequence[int | None]]]] = field(
        default_factory=list
    )

    def then(
        self,
        stem: str,
        *others: int | None,
        known: Mapping[str, Attribute] | None = None,
        dtype: str = "f32",
        first: bool = True,
    ) -> None:
        """Adds an operator of what there is and `others`, which come behind it, or before it without `first`."""
        self._links.append((stem, dtype, known or {}, lambda index: (index, *others) if first else (*others, index)))

    def limit(self, saturate: int, dtype: str) -> None:
        """Adds the limits of a SaturateMethod, and the type that holds them."""
        if SATURATE.get(saturate) is not None:
            ends = (self.layer.constant(np.float32(end), "limit") for end in self.layer.saturation(saturate))
            self.then("clip", *ends, dtype=dtype)

    def write(self) -> None:
        """Emits all of them."""
        index = self.start
        for position, (stem, dtype, known, inputs) in enumerate(self._links):
            top = 0 if position == len(self._links) - 1 else None
            index = self.layer.emit(stem, dtype, known, inputs=inputs(index), top=top, role=stem)


Mapper = Callable[[Layer], None]
# Layer type to its mapping.
Mappers = Mapping[str, Mapper]
