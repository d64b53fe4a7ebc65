"""What a .tflite file says about its inputs and outputs: the buffer TFLITE_METADATA, and files zipped behind the model.

Tables as ``metadata_schema.fbs`` of tflite-support 0.4 (schema 1.1.0) has them, read; a field's slot is its position in
the row.
"""

from __future__ import annotations

import functools
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import ModelFormatError
from ..records import dataclass
from .flatbuffer import Field, FlatBuffer, Table, TableVector, parse_fields

NAME = "TFLITE_METADATA"
_IDENTIFIER = b"M001"
_ROWS = {
    "ModelMetadata": "name:string description:string version:string subgraph_metadata:[SubGraphMetadata] author:string "
    "license:string associated_files:[AssociatedFile] min_parser_version:string",
    "SubGraphMetadata": "name:string description:string input_tensor_metadata:[TensorMetadata] "
    "output_tensor_metadata:[TensorMetadata] associated_files:[AssociatedFile]",
    "TensorMetadata": "name:string description:string dimension_names:[string] content:Content "
    "process_units:[ProcessUnit] stats:Stats associated_files:[AssociatedFile]",
    "Content": "content_properties:ContentProperties range:ValueRange",
    "ImageProperties": "color_space:byte default_size:ImageSize",
    "ProcessUnit": "options:ProcessUnitOptions",
    "NormalizationOptions": "mean:[float] std:[float]",
    "AssociatedFile": "name:string description:string type:byte locale:string",
}
# Members of unions and enumerators that are read, by number.
_UNIONS = {"ContentProperties": (), "ProcessUnitOptions": ()}
_NORMALIZATION, _IMAGE = 1, 2
_GREY = 2
_LABELS = (2, 3)  # of an axis, of values
# A list of labels with more bytes is none.
_MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class Described:
    """What is known of the first input and of the classes.

    Attributes:
        mean, deviation: of the normalization ``(x - mean) / deviation``, a number per channel, or one; empty without.
        grey: whether the input is a grey image.
        labels: names of the classes by number; empty without.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    grey: bool
    labels: tuple[str, ...]


def read_description(content: bytes, model: bytes) -> Described:
    """The metadata of a model.

    Args:
        content: the buffer's bytes.
        model: the whole file, behind which the files lie that the metadata name.

    Raises:
        ModelFormatError: they are damaged.
        ResourceError: they ask for more work than their size allows.
    """
    if content[4:8] != _IDENTIFIER:
        raise ModelFormatError("BT-METADATA", f"expected {_IDENTIFIER!r}, found {content[4:8]!r}", place=NAME)
    root = FlatBuffer(np.frombuffer(content, np.uint8), _fields).root("ModelMetadata")
    graph = _first(root.tables("subgraph_metadata"))
    given = None if graph is None else _first(graph.tables("input_tensor_metadata"))
    mean, deviation = ((), ()) if given is None else _normalization(given)
    return Described(mean, deviation, given is not None and _is_grey(given), _labels(root, graph, model))


@functools.cache
def _fields(name: str) -> Mapping[str, Field]:
    return parse_fields(_ROWS[name], {}, _UNIONS)


def _first(vector: TableVector | None) -> Table | None:
    return vector[0] if vector is not None and len(vector) else None


def _normalization(given: Table) -> tuple[tuple[float, ...], tuple[float, ...]]:
    for unit in given.tables("process_units") or ():
        member, position = unit.union("options")
        if member == _NORMALIZATION and position:
            options = Table(unit.file, "NormalizationOptions", position)
            mean, deviation = (options.numbers(name) for name in ("mean", "std"))
            found = [(0.0,) if mean is None else tuple(mean.tolist()), (1.0,)]
            if deviation is not None:
                found[1] = tuple(deviation.tolist())
            if not all(np.isfinite(values).all() and len(values) for values in found) or not all(found[1]):
                raise ModelFormatError("BT-METADATA", f"no normalization: mean {found[0]}, std {found[1]}", place=NAME)
            return found[0], found[1]
    return (), ()


def _is_grey(given: Table) -> bool:
    content = given.table("content")
    member, position = (0, 0) if content is None else content.union("content_properties")
    if content is None or member != _IMAGE or not position:
        return False
    return bool(Table(content.file, "ImageProperties", position).number("color_space") == _GREY)


def _labels(root: Table, graph: Table | None, model: bytes) -> tuple[str, ...]:
    files = sorted(_files(root, graph), key=lambda file: bool(file.text("locale")))
    for file in files:
        if file.number("type") in _LABELS:
            name = (file.text("name") or b"").decode("utf-8", "replace")
            return tuple(_packed(model, name).decode("utf-8", "replace").rstrip("\r\n").splitlines())
    return ()


def _files(root: Table, graph: Table | None) -> Iterator[Table]:
    """Files of outputs, of the graph and of the model, in this order."""
    if graph is not None:
        for output in graph.tables("output_tensor_metadata") or ():
            yield from output.tables("associated_files") or ()
        yield from graph.tables("associated_files") or ()
    yield from root.tables("associated_files") or ()


def _packed(model: bytes, name: str) -> bytes:
    """A file that is zipped behind the model."""
    try:
        with zipfile.ZipFile(io.BytesIO(model)) as archive:
            size = archive.getinfo(name).file_size
            if size > _MOST_BYTES:
                raise ValueError(f"{size:,} bytes, the limit is {_MOST_BYTES:,}")
            return archive.read(name)
    except (zipfile.BadZipFile, zlib.error, LookupError, OSError, EOFError, RuntimeError, ValueError) as error:
        raise ModelFormatError(
            "BT-METADATA", f"the file '{name:.80}' that it names cannot be read: {error}", place=NAME
        ) from None
