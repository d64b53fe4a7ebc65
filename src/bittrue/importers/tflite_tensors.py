"""Tensors of a TFLite file: type, shape, quantization and constant content, each checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, ResourceError, UnsupportedError
from ..graph import DATA_TYPES, Node, Quantization, Tensor, data_type, unpack_integers
from ..records import replace
from ..visible import visible
from . import tflite_schema as schema
from .flatbuffer import FlatBuffer, Table, TableVector

MAX_OBJECTS = 100_000
MAX_RANK = 64
MAX_ELEMENTS = 1 << 40
CONVERT_AGAIN = "convert the model again, or report it to whoever wrote the converter"


def clip(text: str) -> str:
    """A name fit for a message: short, and without line breaks or terminal escapes of a hostile file."""
    text = visible(text[:200])
    return text if len(text) <= 120 else text[:117] + "..."


def limit_objects(count: int, what: str) -> None:
    """Refuses models with more than `MAX_OBJECTS` of one kind."""
    if count > MAX_OBJECTS:
        message = f"the model has {count} {what}, the reader takes at most {MAX_OBJECTS}"
        raise ResourceError("BT-FILE-LIMIT", message, place=what, advice="split the model")


class Notes:
    """Accepted deviations, one line per kind however often it occurs."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, text: str, place: str) -> None:
        """Records one occurrence at `place`."""
        first, count = self._found.get(text, (place, 0))
        self._found[text] = first, count + 1

    def lines(self) -> tuple[str, ...]:
        """One line per kind, with its first place and the number of the others."""
        return tuple(
            f"{first}{f' and {count - 1} more' if count > 1 else ''}: {text}"
            for text, (first, count) in self._found.items()
        )


def decode_text(raw: bytes | None, notes: Notes, place: str) -> str:
    """Text of a string field; bytes that are not UTF-8 become backslash escapes, with a note."""
    if raw is None:
        return ""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        notes.add("text is not UTF-8; the wrong bytes are shown as backslash escapes", place)
        return raw.decode(errors="backslashreplace")


def enumerator(names: Sequence[str], number: int, what: str, place: str) -> str:
    """The name with this number. Raises InvalidModelError for a number that the schema does not have."""
    if 0 <= number < len(names):
        return names[number]
    raise InvalidModelError(
        "BT-MODEL-ENUM",
        f"{what} is {number}, expected 0..{len(names) - 1}",
        place=place,
        advice="the file is corrupt or newer than this reader",
    )


class Buffers:
    """The model's table of constant buffers; each is looked at once, when a tensor first asks for it."""

    def __init__(self, file: FlatBuffer, vector: TableVector) -> None:
        limit_objects(len(vector), "buffers")
        self._file = file
        self._vector = vector
        self._found: dict[int, np.ndarray | None] = {}

    def content(self, index: int, place: str) -> np.ndarray | None:
        """Bytes of a buffer as a view of the file, None when it has no data. Buffer 0 never has."""
        if index >= len(self._vector) and index:
            message = f"buffer index {index} is out of range, the model has {len(self._vector)} buffers"
            raise InvalidModelError("BT-MODEL-INDEX", message, place=place, advice=CONVERT_AGAIN)
        if index == 0:
            return None
        if index not in self._found:
            self._found[index] = self._read(index)
        return self._found[index]

    def _read(self, index: int) -> np.ndarray | None:
        table = self._vector[index]
        inside = table.numbers("data")
        if inside is not None:
            return inside
        # Data of files beyond 2 GB lies after the FlatBuffer; offsets 0 and 1 mean "none".
        offset, size = table.number("offset"), table.number("size")
        return self._file.span(offset, size, f"Buffer[{index}].offset") if offset > 1 else None


class TensorReader:
    """Reads the tensors of all subgraphs of one model."""

    def __init__(self, file: FlatBuffer, buffers: Buffers, notes: Notes) -> None:
        self._file = file
        self._buffers = buffers
        self._notes = notes
        self._count = 0
        self._sparse: dict[int, tuple[Table, str]] = {}
        self._dense_bytes = 0

    def read(self, vector: TableVector, subgraph: str) -> list[Tensor]:
        """All tensors of one subgraph, with names made unique; `make_dense` completes the sparse ones."""
        self._sparse.clear()
        self._count += len(vector)
        limit_objects(self._count, "tensors")
        taken: set[str] = set()
        return [self._tensor(table, index, subgraph, taken) for index, table in enumerate(vector)]

    def _tensor(self, table: Table, index: int, subgraph: str, taken: set[str]) -> Tensor:
        place = f"{subgraph}, tensor {index}"
        name = self._name(table, index, place, taken)
        place = f"{place} '{clip(name)}'"
        dtype = enumerator(schema.TYPES, table.number("type"), "tensor type", place)
        shape = self._shape(table, place)
        if table.table("sparsity") is not None:
            self._sparse[index] = table, place
        if table.number("external_buffer"):
            raise UnsupportedError(
                "BT-TENSOR-EXTERNAL",
                "the tensor's data is in another file (external buffer)",
                place=place,
                advice="write the model with its weights inside the file",
            )
        details = table.table("quantization")
        quantization = self._quantization(details, shape, place) if details is not None else None
        variable = table.number("is_variable")
        data = None if index in self._sparse else self._data(table, dtype, shape, variable, place)
        if quantization is not None:
            self._check_scales(quantization, data, dtype, shape, place)
        return Tensor(name, dtype, shape, self._signature(table, shape, place), quantization, data, variable)

    def _name(self, table: Table, index: int, place: str, taken: set[str]) -> str:
        name = decode_text(table.text("name"), self._notes, place)
        if not name or name in taken:
            reason = "shares its name with an earlier tensor" if name else "has no name"
            self._notes.add(f"{reason}; ':' and its index are appended", place)
            name = f"{name or 'tensor'}:{index}"
            while name in taken:
                name += "'"
        taken.add(name)
        return name

    def _shape(self, table: Table, place: str) -> tuple[int, ...]:
        sizes = table.numbers("shape")
        if sizes is None:
            return ()
        if sizes.size > MAX_RANK:
            message = f"the shape has {sizes.size} dimensions, the reader takes at most {MAX_RANK}"
            raise ResourceError("BT-FILE-LIMIT", message, place=place, advice=CONVERT_AGAIN)
        self._file.spend_objects(sizes.size, place)
        shape = tuple(sizes.tolist())
        if any(size < 0 for size in shape):
            raise InvalidModelError(
                "BT-TENSOR-SHAPE", f"shape {shape} has a negative dimension", place=place, advice=CONVERT_AGAIN
            )
        # Zeros must not hide an overflow of the other dimensions.
        if math.prod(size or 1 for size in shape) > MAX_ELEMENTS:
            raise InvalidModelError(
                "BT-TENSOR-SHAPE", f"shape {shape} has more than 2^40 elements", place=place, advice=CONVERT_AGAIN
            )
        return shape

    def _signature(self, table: Table, shape: tuple[int, ...], place: str) -> tuple[int, ...] | None:
        sizes = table.numbers("shape_signature")
        if sizes is None or sizes.size == 0:
            return None
        if sizes.size != len(shape) or bool((sizes < -1).any()):
            self._notes.add("the shape signature does not fit the shape; it is ignored", place)
            return None
        self._file.spend_objects(sizes.size, place)
        return tuple(sizes.tolist())

    def _quantization(self, table: Table, shape: tuple[int, ...], place: str) -> Quantization | None:
        member, _ = table.union("details")
        if member:
            technique = enumerator(schema.UNIONS["QuantizationDetails"], member, "kind of quantization details", place)
            raise UnsupportedError(
                "BT-QUANT-DETAILS",
                f"the tensor uses {technique}; only one scale per tensor or per slice of one axis is implemented",
                place=place,
                advice="convert with per-tensor or per-channel quantization",
            )
        scales, zero_points = table.numbers("scale"), table.numbers("zero_point")
        if scales is None or scales.size == 0:
            return None
        zero_point_count = 0 if zero_points is None else zero_points.size
        if zero_points is None or zero_point_count != scales.size:
            message = f"{scales.size} scale(s) but {zero_point_count} zero point(s), expected the same number"
            raise InvalidModelError("BT-QUANT-COUNT", message, place=place, advice=CONVERT_AGAIN)
        self._file.spend_bytes(scales.nbytes + zero_points.nbytes, place)
        scales, zero_points = _aligned(scales), _aligned(zero_points)
        least, most = _ends(zero_points)
        if least < -(2**31) or most >= 2**31:
            worst = int(((zero_points < -(2**31)) | (zero_points >= 2**31)).argmax())
            raise InvalidModelError(
                "BT-QUANT-ZERO-POINT",
                f"zero_point[{worst}] is {int(zero_points[worst])}, which does not fit the 32 bits that kernels keep",
                place=place,
                advice=CONVERT_AGAIN,
            )
        declared = table.number("quantized_dimension")
        corrected = self._corrected(declared, scales.size, shape, place)
        axis = self._axis(corrected, scales.size, shape, place)
        return Quantization(scales, zero_points, axis, None if corrected == declared else declared)

    def _check_scales(
        self, quantization: Quantization, data: np.ndarray | None, dtype: str, shape: tuple[int, ...], place: str
    ) -> None:
        """Scales are finite and positive; 0 passes for channels of constants that hold nothing but zeros."""
        scales = quantization.scales
        least, most = _ends(scales)
        if least > 0 and most < math.inf:  # NaN is neither
            return
        good, dead = np.isfinite(scales) & (scales > 0), scales == 0
        if quantization.axis is not None and data is not None and (good | dead).all():
            # Converters write this for channels whose weights were all pruned away; any scale means the same there.
            values = unpack_integers(data, data_type(dtype), math.prod(shape)) if data_type(dtype).is_packed else data
            if not np.compress(dead, values.reshape(shape), axis=quantization.axis).any():
                self._notes.add("channels that hold only zeros have scale 0; their results are the zero point", place)
                return
        worst = int(good.argmin())
        raise InvalidModelError(
            "BT-QUANT-SCALE",
            f"scale[{worst}] is {float(scales[worst])!r}, expected a finite number greater than 0",
            place=place,
            advice="quantize the model again: such scales come from tensors that were never calibrated or always 0",
        )

    def _corrected(self, axis: int, count: int, shape: tuple[int, ...], place: str) -> int:
        if len(shape) == 1 and axis >= 1 and count in (1, shape[0]):
            # Old converters copied the weights' axis to the bias. LiteRT 2.3 refuses such files; their kernels, and
            # those of TFLM, never read a bias' axis.
            self._notes.add("the quantized dimension of a 1-D tensor lies past its rank; dimension 0 is used", place)
            return 0
        return axis

    def _axis(self, axis: int, count: int, shape: tuple[int, ...], place: str) -> int | None:
        if axis < 0 or (shape and axis >= len(shape)):
            message = f"quantized dimension {axis} is out of range for shape {shape}"
            raise InvalidModelError("BT-QUANT-AXIS", message, place=place, advice=CONVERT_AGAIN)
        if count == 1:
            return None
        if not shape or shape[axis] != count:
            expected = f"1 or {shape[axis]} (size of dimension {axis})" if shape else "1 (the tensor is a scalar)"
            message = f"{count} scales for shape {shape}, expected {expected}"
            raise InvalidModelError("BT-QUANT-COUNT", message, place=place, advice=CONVERT_AGAIN)
        return axis

    def _data(self, table: Table, dtype: str, shape: tuple[int, ...], variable: bool, place: str) -> np.ndarray | None:
        content = self._buffers.content(table.number("buffer"), place)
        if content is None:
            return None
        kind = DATA_TYPES[dtype]
        if not content.size and kind.bits and math.prod(shape):
            self._notes.add("the buffer is present but empty; the tensor counts as computed, not constant", place)
            return None
        if variable:
            if not content.size:
                return None
            message = f"a variable tensor has {content.size} bytes of constant data"
            raise InvalidModelError("BT-TENSOR-VARIABLE", message, place=place, advice=CONVERT_AGAIN)
        if not kind.bits:
            return content
        expected = (math.prod(shape) * kind.bits + 7) // 8
        if content.size != expected:
            message = f"{content.size} bytes of constant data, expected {expected} for {kind.title} of shape {shape}"
            raise InvalidModelError("BT-TENSOR-DATA", message, place=place, advice=CONVERT_AGAIN)
        if kind.is_packed:
            return content
        return content.view(kind.numpy)

    def make_dense(self, tensors: list[Tensor], nodes: Sequence[Node]) -> None:
        """Gives the sparse tensors of the subgraph that was read last their dense content, in place."""
        if not self._sparse:
            return
        for node in nodes:
            for index in node.inputs if node.source != "DENSIFY" else ():
                if index in self._sparse:
                    raise _sparse_error(self._sparse[index][1])
        densified = {index for node in nodes if node.source == "DENSIFY" for index in node.inputs}
        for index, (table, place) in self._sparse.items():
            if index not in densified:
                raise _sparse_error(place)
            tensors[index] = replace(tensors[index], data=self._dense(table, tensors[index], place))

    def _dense(self, table: Table, tensor: Tensor, place: str) -> np.ndarray:
        content, kind = self._buffers.content(table.number("buffer"), place), tensor.type
        sparsity = table.table("sparsity")
        possible = kind.name in ("f32", "f16", "s8") and not tensor.is_variable
        if content is None or sparsity is None or not possible or content.size % kind.numpy.itemsize:
            message = f"a sparse tensor must be constant and float32, float16 or int8, found {kind.title}"
            raise InvalidModelError("BT-TENSOR-SPARSE-FORM", message, place=place, advice=CONVERT_AGAIN)
        from .tflite_sparse import MAX_DENSE_BYTES, make_dense

        left = MAX_DENSE_BYTES - self._dense_bytes
        dense = make_dense(self._file, sparsity, content.view(kind.numpy), tensor.shape, left, place)
        self._dense_bytes += dense.nbytes
        return dense


def _sparse_error(place: str) -> UnsupportedError:
    return UnsupportedError(
        "BT-TENSOR-SPARSE",
        "the tensor is stored sparsely, which only the operator DENSIFY may read",
        place=place,
        advice="convert the model without sparsity, or densify it",
    )


def _ends(numbers: np.ndarray) -> tuple[float, float]:
    """The least and the greatest of some numbers, NaN where one is; most tensors have one."""
    if numbers.size == 1:
        return (numbers.item(),) * 2
    return numbers.min().item(), numbers.max().item()


def _aligned(values: np.ndarray) -> np.ndarray:
    """The same values, copied only when their address is not a multiple of their size."""
    if values.flags.aligned:
        return values
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def require_vector(table: Table, name: str) -> TableVector:
    """A vector of tables without which there is no model."""
    found = table.tables(name)
    if found is None:
        raise ModelFormatError(
            "BT-FILE-MISSING", f"{table.name} has no {name}", place=table.place(name), advice=CONVERT_AGAIN
        )
    return found
