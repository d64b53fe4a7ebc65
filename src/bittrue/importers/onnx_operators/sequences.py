"""Mappings of sequences of tensors: what an element is follows from the file, so nodes read the tensors themselves.

A sequence is a name for its elements, and no tensor of the graph; so is an optional value for the value, or for none.
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Tensor
from ..onnx_tensors import type_name
from .base import MOST_ELEMENTS, Mappers, Source


def _elements(source: Source, position: int = 0) -> tuple[int, ...]:
    index = source.inputs[position] if position < len(source.inputs) else None
    found = None if index is None or index in source.builder.stacks else source.builder.sequences.get(index)
    if found is None:
        raise source.unsupported(
            "BT-ONNX-SEQUENCE",
            f"input {position} is no sequence whose elements follow from the file",
            "sequences that pass through If, through Loop of rounds that no constant says, or inputs of the model have "
            "as many elements as only running tells",
        )
    return found


def _type(source: Source) -> str:
    """Of the elements of the first input."""
    return source.type(0)


def _give(source: Source, dtype: str, elements: tuple[int, ...]) -> None:
    """The node's result is a sequence."""
    (name,) = source.outputs
    source.give_sequence(name, dtype, elements)


def _integer(source: Source, position: int, role: str) -> list[int]:
    """The content of a constant of integers."""
    tensor = source.tensor(position)
    if not tensor.is_constant or tensor.dtype not in ("s32", "s64"):
        raise source.unsupported(
            "BT-ONNX-SEQUENCE", f"the {role} is no constant, so it is not known which elements there are",
            "simplify the model first, so that it becomes one",
        )  # fmt: skip
    return [int(value) for value in tensor.values().reshape(-1)]


def _place(source: Source, position: int, count: int, most: int) -> int:
    """The position that an input says, at most `most`; the last element where there is none."""
    if not source.present(position):
        return most
    given = _integer(source, position, "position")
    if len(given) != 1 or not -count <= given[0] <= most:
        raise source.invalid("BT-SEQUENCE-POSITION", f"position {given} of {count} elements")
    return given[0] + count if given[0] < 0 else given[0]


def _construct(source: Source) -> None:
    _give(source, source.type(0), tuple(index for index in source.inputs if index is not None))


def _empty(source: Source) -> None:
    _give(source, type_name(source.integer("dtype", 1), source.place), ())


def _insert(source: Source) -> None:
    elements = _elements(source)
    place = _place(source, 2, len(elements), len(elements))
    added = source.inputs[1]
    assert added is not None
    _give(source, _type(source), (*elements[:place], added, *elements[place:]))


def _erase(source: Source) -> None:
    elements = _elements(source)
    place = _place(source, 1, len(elements), len(elements) - 1)
    if not elements:
        raise source.invalid("BT-SEQUENCE-POSITION", "nothing can be taken out of an empty sequence")
    _give(source, _type(source), elements[:place] + elements[place + 1 :])


def _at(source: Source) -> None:
    elements = _elements(source)
    if not source.present(1):
        raise source.invalid("BT-NODE-INPUT", "the position is missing")
    place = _place(source, 1, len(elements), len(elements) - 1)
    source.emit("identity", _type(source), inputs=[elements[place]])


def _length(source: Source) -> None:
    count = source.constant(np.array(len(_elements(source)), np.int64), "length")
    source.emit("identity", "s64", inputs=[count])


def _sizes(source: Source, axis: int) -> list[int]:
    """Of all parts along the axis."""
    given = _integer(source, 1, "size of parts") if source.present(1) else [1]
    if source.present(1) and source.tensor(1).shape:
        return given
    shape = source.tensor(0).shape_signature or source.tensor(0).shape
    if not -len(shape) <= axis < len(shape) or shape[axis] < 0:
        raise source.unsupported(
            "BT-ONNX-SEQUENCE",
            f"the size of '{source.tensor(0).name}' along axis {axis} does not follow from the file",
            "export with a fixed size there, or with a list of sizes in place of one",
        )
    if len(given) != 1 or given[0] < 1:
        raise source.invalid("BT-SPLIT", f"parts of size {given}")
    size = shape[axis]
    return [given[0]] * (size // given[0]) + ([size % given[0]] if size % given[0] else [])


def _split(source: Source) -> None:
    axis, dtype = source.integer("axis", 0), source.type(0)
    keeps = source.flag("keepdims", True, True) or source.present(1)
    sizes = _sizes(source, axis)
    if not 0 < len(sizes) <= MOST_ELEMENTS:
        raise source.unsupported("BT-ONNX-SEQUENCE", f"{len(sizes)} elements, 1 to {MOST_ELEMENTS} are read")
    attributes: dict[str, Attribute] = {
        "axis": axis,
        "count": len(sizes),
        "keeps_axis": True,
        "open_size": False,
        "uneven": False,
        "of_sequence": True,
    }
    inputs = [source.inputs[0], source.constant(np.array(sizes, np.int64), "sizes")]
    names = [source.temporary(dtype, "part") for _ in sizes]
    parts = source.emit("split", [dtype] * len(sizes), attributes, inputs=inputs, outputs=names)
    if not keeps:
        axes = source.constant(np.array([axis], np.int64), "axis")
        parts = tuple(
            source.emit("squeeze", dtype, inputs=[part, axes], outputs=[source.temporary(dtype, "element")])[0]
            for part in parts
        )
    _give(source, dtype, parts)


def _concat(source: Source) -> None:
    stack = source.builder.stacks.get(-1 if source.inputs[0] is None else source.inputs[0])
    if stack is not None:
        _join_slices(source, stack)
        return
    elements, dtype, axis = _elements(source), _type(source), source.integer("axis", 0)
    if not elements:
        raise source.invalid("BT-NODE-INPUT", "an empty sequence cannot be joined")
    if source.flag("new_axis", False):
        axes = source.constant(np.array([axis], np.int64), "axis")
        elements = tuple(
            source.emit("expand_dims", dtype, inputs=[index, axes], outputs=[source.temporary(dtype, "layer")])[0]
            for index in elements
        )
    source.emit("concatenation", dtype, {"axis": axis, "activation": "none"}, inputs=elements)


def _join_slices(source: Source, stack: int) -> None:
    """The elements of a stack behind each other along their first axis; one element at least, as the runtime asks."""
    dtype = source.builder.tensors[stack].dtype
    if source.integer("axis", 0) != 0 or source.flag("new_axis", False):
        raise source.unsupported(
            "BT-ONNX-SEQUENCE", "elements whose number only running tells are joined along their first axis alone"
        )
    every: dict[str, Attribute] = {"of": "dimensions"}
    (shape,) = source.emit("shape", "s64", every, inputs=[stack], outputs=[source.temporary("s64", "shape")])
    ends = [source.constant(np.array([n], np.int64), "end") for n in (2, 2**63 - 1, 0, 1)]
    (rest,) = source.emit("slice_axes", "s64", inputs=[shape, *ends], outputs=[source.temporary("s64", "rest")])
    first = source.constant(np.array([-1], np.int64), "first")
    (joined,) = source.emit(
        "concatenation",
        "s64",
        {"axis": 0, "activation": "none"},
        inputs=[first, rest],
        outputs=[source.temporary("s64", "joined")],
    )
    source.emit("reshape", dtype, {"zeros": "kept"}, inputs=[stack, joined])


def _identity(source: Source) -> None:
    if source.inputs[0] in source.builder.sequences:
        if source.version < 14:
            raise source.invalid("BT-ONNX-TYPE", "Identity takes sequences since version 14")
        _give(source, _type(source), _elements(source))
    else:
        source.emit("identity", _type(source))


def _optional(source: Source) -> None:
    """A value that is there, or, without an input, is not, whose type only an attribute says."""
    kind = source.get("type", None, object)
    if not source.present(0) and not hasattr(kind, "tensor_type"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "without a value the attribute 'type' must say its type")
    known, (name,) = source.builder, source.outputs
    if name in known.names:
        raise source.invalid("BT-ONNX-NAME", f"tensor '{name}' is written twice")
    index = source.inputs[0] if source.present(0) else None
    if index in known.sequences:
        raise source.unsupported("BT-ONNX-SEQUENCE", "an optional sequence is not read", "give the sequence itself")
    dtype = "f32" if index is None else known.tensors[index].dtype
    known.optionals[known.add(Tensor(name, dtype, ()))] = index


def _check_optional(source: Source, index: int | None) -> None:
    if source.version < 18 and index not in source.builder.optionals:
        raise source.invalid("BT-ONNX-TYPE", "only an optional value is asked before version 18")


def _has_element(source: Source) -> None:
    """Whether a value is there follows from the file; one that is no optional always is, from version 18 on."""
    index = source.inputs[0] if source.present(0) else None
    _check_optional(source, index)
    there = index is not None and source.builder.optionals.get(index, index) is not None
    source.emit("identity", "bool", inputs=[source.constant(np.array(there), "there")])


def _get_element(source: Source) -> None:
    index = source.inputs[0] if source.present(0) else None
    _check_optional(source, index)
    element = None if index is None else source.builder.optionals.get(index, index)
    if element is None:
        raise source.invalid("BT-NODE-INPUT", "there is no value to get", "ask OptionalHasElement first")
    if element in source.builder.sequences:
        _give(source, _type(source), _elements(source))
        return
    source.emit("identity", source.builder.tensors[element].dtype, inputs=[element])


MAPPERS: Mappers = {
    ("", "ConcatFromSequence"): _concat,
    ("", "Identity"): _identity,
    ("", "Optional"): _optional,
    ("", "OptionalGetElement"): _get_element,
    ("", "OptionalHasElement"): _has_element,
    ("", "SequenceAt"): _at,
    ("", "SequenceConstruct"): _construct,
    ("", "SequenceEmpty"): _empty,
    ("", "SequenceErase"): _erase,
    ("", "SequenceInsert"): _insert,
    ("", "SequenceLength"): _length,
    ("", "SplitToSequence"): _split,
}
