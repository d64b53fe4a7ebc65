"""Mappings of If, Loop and Scan: values of the graph around a called graph become inputs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from ...records import replace
from ..onnx_tensors import TYPES
from .base import MOST_ELEMENTS, Arrange, Called, Mappers, Source

_ENDLESS = 2**63 - 1


def _if(source: Source) -> None:
    called = source.called("then_branch", "else_branch", inputs=0)
    attributes: dict[str, Attribute] = {
        "then_graph": called.numbers[0],
        "else_graph": called.numbers[1],
        "plans_both": False,
    }
    inferred = tuple(place for place, name in enumerate(source.outputs) if name in source.builder.inferred)
    if inferred:
        attributes["inferred_results"] = inferred
    source.emit("if", called.types[0], attributes, inputs=[*source.inputs[:1], *called.outside])


def _loop(source: Source) -> None:
    carried = source.inputs[2:]
    if None in carried:
        raise source.invalid("BT-NODE-INPUT", "values that a loop carries may not be missing")
    source = _typed(source, 2)
    if not source.builder.sequences.keys().isdisjoint(carried):
        _growing_sequences(source)
        return
    called = source.called("body", inputs=2 + len(carried), arrange=_kept(len(carried)))
    _repeat(source, called, _control(source), carried, source.outputs)


def _typed(source: Source, first: int) -> Source:
    """The node with the types of its operands, from the `first` on, where its body declares no others."""
    body: Any = source.attributes.get("body")
    if all(value.type.WhichOneof("value") for value in getattr(body, "input", ())):
        return source
    proto = type(body)()
    proto.CopyFrom(body)
    known = source.builder
    for value, index in zip(proto.input[first:], source.inputs[first:], strict=False):
        if index is not None and value.type.WhichOneof("value") is None:
            declared = value.type.sequence_type.elem_type if index in known.sequences else value.type
            kind = known.tensors[index].dtype
            declared.tensor_type.elem_type = next(number for number, name in TYPES.items() if name == kind)
    return replace(source, attributes={**source.attributes, "body": proto})


def _control(source: Source) -> list[int | None]:
    """The most rounds of a loop, and its condition."""
    rounds = source.inputs[0] if source.present(0) else source.constant(np.array(_ENDLESS, np.int64), "rounds")
    return [rounds, source.inputs[1] if source.present(1) else source.constant(np.array(True), "condition")]


def _growing_sequences(source: Source) -> None:
    """A loop whose rounds put elements behind sequences, as often as constants say: a loop of one round for each.

    It stays a loop: the runtime moves nothing into a graph that a node calls, or out of it.
    """
    source.read.add("body")
    body: Any = source.attributes.get("body")
    known, carried = source.builder, source.inputs[2:]
    if len(getattr(body, "input", ())) != 2 + len(carried):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute 'body' must be a graph with {2 + len(carried)} inputs")
    writers = {name: node for node in body.node for name in node.output}
    going = source.tensor(1) if source.present(1) else None
    rounds = (
        source.tensor(0).values().reshape(-1) if source.present(0) and source.tensor(0).is_constant else np.zeros(0)
    )
    constant = going is None or (going.is_constant and going.values().all())
    if len(body.output) != 1 + len(carried):
        raise source.unsupported("BT-ONNX-SEQUENCE", "a loop of sequences gives slices")
    added, gone = _added(source, body, writers)
    if len(rounds) != 1 or not constant or not _goes_on(source, body, writers):
        _stacked_elements(source, body, added, gone)
        return
    if rounds[0] > MOST_ELEMENTS:
        raise source.unsupported("BT-ONNX-SEQUENCE", "a loop of sequences has too many rounds")
    sequences = [known.sequences.get(index) for index in carried if index is not None]
    values = [index for index in carried if index not in known.sequences]
    kinds = [known.tensors[index].dtype for index in carried if index is not None]
    new = [kind for kind, names in zip(kinds, added, strict=True) for _ in names]
    types = [value for value, names in zip(body.input[2:], added, strict=True) for _ in names]
    alone = [place for place, elements in enumerate(sequences) if elements is None]
    for number in range(int(rounds[0])):
        proto = type(body)()
        proto.CopyFrom(body)
        del proto.input[1:], proto.output[1:]
        proto.input.extend([body.input[1], *(body.input[2 + place] for place in alone)])
        proto.output.extend(body.output[1 + place] for place in alone)
        # Every round is the first one of its loop.
        proto.input[0].name = known.unique(f"{source.label}/first")
        nodes = [node for node in body.node if not set(node.output) & set(gone)]
        del proto.node[:]
        value = proto.node.add(op_type="Constant", output=[body.input[0].name]).attribute.add()
        if len(body.input[0].type.tensor_type.shape.dim) == 1:  # the runtime gives what the body declares
            value.name, value.type = "value_ints", 7
            value.ints.append(number)
        else:
            value.name, value.type, value.i = "value_int", 2, number
        proto.node.extend(nodes)
        for place, name in enumerate(name for names in added for name in names):
            element = known.unique(f"{source.label}/element{place}")
            proto.node.add(op_type="Identity", input=[name], output=[element])
            before = proto.input.add(name=f"{element}/before").type
            before.CopyFrom(types[place].type.sequence_type.elem_type)
            before.tensor_type.ClearField("shape")
            proto.output.add(name=element)
        called = source.call(known, [proto], _kept(len(alone) + len(new)))
        once = [source.constant(np.array(1, np.int64), "rounds"), source.constant(np.array(True), "condition")]
        given = [*values, *(source.constant(np.zeros((), data_type(kind).numpy), "before") for kind in new)]
        names = [source.temporary(kind, "kept") for kind in (*(kinds[place] for place in alone), *new)]
        results = list(_repeat(source, called, once, given, names))
        values, fresh = [*results[: len(alone)]], results[len(alone) :]
        for place, elements in enumerate(sequences):
            if elements is not None:
                sequences[place] = (*elements, *fresh[: len(added[place])])
                del fresh[: len(added[place])]
    for name, kind, elements in zip(source.outputs, kinds, sequences, strict=False):
        if elements is not None and name:
            source.give_sequence(name, kind, elements)
    for place, index in zip(alone, values, strict=True):
        if source.outputs[place]:
            source.emit("identity", kinds[place], inputs=[index], outputs=[source.outputs[place]])


def _added(source: Source, body: Any, writers: dict[str, Any]) -> tuple[list[list[str]], list[str]]:
    """What a body puts behind each carried sequence in a round, and the names that its sequences have on the way."""
    added: list[list[str]] = []
    gone: list[str] = []
    known = source.builder
    for index, before, after in zip(source.inputs[2:], body.input[2:], body.output[1:], strict=True):
        name, found = after.name, []
        while index in known.sequences and name != before.name:
            node = writers.get(name)
            if node is None or node.op_type not in ("Identity", "SequenceInsert") or len(node.input) > 2:
                raise source.unsupported("BT-ONNX-SEQUENCE", f"'{after.name}' is not '{before.name}' with more behind")
            found += node.input[1:]
            gone.append(name)
            name = node.input[0]
        added.append(found[::-1])
    return added, gone


def _stacked_elements(source: Source, body: Any, added: list[list[str]], gone: list[str]) -> None:
    """A loop that puts one element behind empty sequences in every round, however many: its slices."""
    known, carried = source.builder, source.inputs[2:]
    alone = [place for place, index in enumerate(carried) if index not in known.sequences]
    grown = [place for place, index in enumerate(carried) if index in known.sequences]
    if any(known.sequences.get(index) or index in known.stacks for index in carried if index is not None) or any(
        len(added[place]) != 1 for place in grown
    ):
        raise source.unsupported(
            "BT-ONNX-SEQUENCE", "only running tells how many elements this loop puts into a sequence"
        )
    proto = type(body)()
    proto.CopyFrom(body)
    del proto.input[2:], proto.output[1:], proto.node[:]
    proto.input.extend(body.input[2 + place] for place in alone)
    proto.output.extend(body.output[1 + place] for place in alone)
    proto.node.extend(node for node in body.node if not set(node.output) & set(gone))
    for place in grown:
        slices = known.unique(f"{source.label}/element{place}")
        proto.node.add(op_type="Identity", input=added[place], output=[slices])
        proto.output.add(name=slices)
    called = source.call(known, [proto], _kept(len(alone)))
    names = [source.outputs[place] for place in alone]
    kinds = [known.tensors[index].dtype for index in (carried[place] for place in grown) if index is not None]
    stacks = [source.temporary(kind, "elements") for kind in kinds]
    results = _repeat(source, called, _control(source), [carried[place] for place in alone], [*names, *stacks])
    for place, kind, stack in zip(grown, kinds, results[len(alone) :], strict=True):
        if source.outputs[place]:
            source.give_sequence(source.outputs[place], kind, (), stack)


def _goes_on(source: Source, body: Any, writers: dict[str, Any]) -> bool:
    """Whether the condition that a body gives is the one that it got, or a constant that is true."""
    name = body.output[0].name
    while name in writers and writers[name].op_type == "Identity":
        name = writers[name].input[0]
    given = next((value for value in body.initializer if value.name == name), None)
    if name in writers and writers[name].op_type == "Constant":
        given = writers[name].attribute[0].t
    if given is not None or name in writers:
        return given is not None and [*given.int32_data, *given.raw_data][:1] == [1]
    outer = source.builder.names.get(name)
    tensor = None if outer is None else source.builder.tensors[outer]
    return name == body.input[1].name or bool(tensor is not None and tensor.is_constant and tensor.values().all())


def _kept(count: int) -> Arrange:
    """The body gets (round, condition, values, outside) and returns (condition, condition, values, outside, slices)."""

    def arrange(outputs: list[int], outside: list[int]) -> list[int]:
        # Repeating the condition puts every value at the place of the input that it is in the next round.
        return [outputs[0], *outputs[: 1 + count], *outside, *outputs[1 + count :]]

    return arrange


def _repeat(
    source: Source,
    called: Called,
    control: Sequence[int | None],
    carried: Sequence[int | None],
    outputs: Sequence[str],
) -> tuple[int, ...]:
    """The node of a loop; tensors of its results."""
    count, (types,) = len(carried), called.types
    kept = types[2 : 2 + count]
    slices = types[2 + count + len(called.outside) :]
    attributes = {"body_graph": called.numbers[0], "carried": count}
    inputs = [*control, *carried, *called.outside]
    return source.emit("loop", (*kept, *slices), attributes, inputs=inputs, outputs=outputs)


def _scan(source: Source) -> None:
    """A loop with as many rounds as scanned operands have slices, which are taken in the body."""
    if source.version < 9:
        raise source.unsupported("BT-ONNX-VERSION", "Scan of operator set 8 is not read", "convert the model to 9")
    source = _typed(source, 0)
    source.read.add("body")
    body: Any = source.attributes.get("body")
    scanned = source.integer("num_scan_inputs", 0)
    count = len(source.inputs) - scanned
    given = len(getattr(body, "input", ()))
    if None in source.inputs or not 1 <= scanned <= len(source.inputs) or given != len(source.inputs):
        raise source.invalid("BT-NODE-ARITY", f"{scanned} of {len(source.inputs)} inputs for a graph with {given}")
    if not count <= len(source.outputs) == len(body.output):
        raise source.invalid("BT-NODE-ARITY", f"{len(source.outputs)} results, the graph has {len(body.output)}")
    axes = _listed(source, "scan_input_axes", scanned)
    backwards = _listed(source, "scan_input_directions", scanned)
    operands = [index for index in source.inputs[count:] if index is not None]
    rounds = _rounds(source, operands, axes)
    proto = type(body)()
    proto.CopyFrom(body)
    del proto.input[:], proto.node[:], proto.output[:]
    names = {name: source.builder.unique(f"{source.label}/{name}") for name in ("round", "condition", "last")}
    for name, kind in (("round", 7), ("condition", 9)):
        proto.input.add(name=names[name]).type.tensor_type.elem_type = kind
        proto.input[-1].type.tensor_type.shape.SetInParent()
    proto.input.extend(body.input[:count])
    if any(backwards):
        one = source.constant(np.array(1, np.int64), "one")
        source.emit("sub", "s64", {"activation": "none"}, inputs=[rounds, one], outputs=[names["last"]])
        turned = f"{names['last']}/round"
        proto.node.add(op_type="Sub", input=[names["last"], names["round"]], output=[turned])
    for operand, axis, back, value in zip(operands, axes, backwards, body.input[count:], strict=True):
        # Names inside may be those of operands.
        alias = source.temporary(source.builder.tensors[operand].dtype, "scanned")
        source.emit("identity", source.builder.tensors[operand].dtype, inputs=[operand], outputs=[alias])
        node = proto.node.add(op_type="Gather", input=[alias, turned if back else names["round"]], output=[value.name])
        node.attribute.add(name="axis", i=axis, type=2)
    proto.node.extend(body.node)
    proto.output.add().CopyFrom(proto.input[1])
    proto.output.extend(body.output)
    called = source.call(source.builder, [proto], _kept(count))
    going = source.constant(np.array(True), "condition")
    slices = source.outputs[count:]
    types = called.types[0][len(called.types[0]) - len(slices) :]
    moves = [
        (axis, back, value)
        for axis, back, value in zip(
            _listed(source, "scan_output_axes", len(slices)),
            _listed(source, "scan_output_directions", len(slices)),
            body.output[count:],
            strict=True,
        )
    ]
    plain = [
        source.temporary(dtype, "slices") if name and (axis or back) else name
        for name, dtype, (axis, back, _) in zip(slices, types, moves, strict=True)
    ]
    results = _repeat(source, called, [rounds, going], source.inputs[:count], [*source.outputs[:count], *plain])
    for place, (name, dtype, (axis, back, value)) in enumerate(zip(slices, types, moves, strict=True)):
        if name and (axis or back):
            _move(source, results[count + place], name, dtype, axis, back, value)


def _listed(source: Source, name: str, count: int) -> tuple[int, ...]:
    found = source.integers(name, (0,) * count) or ()
    if len(found) != count or (name.endswith("directions") and not {0, 1}.issuperset(found)):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'{name}' is {list(found)}, expected {count} of them")
    return found


def _rounds(source: Source, operands: Sequence[int], axes: Sequence[int]) -> int:
    """The number of slices, as a scalar: the largest one, so that an operand with fewer of them is an error."""
    every: dict[str, Attribute] = {"of": "dimensions"}
    one: dict[str, Attribute] = {"axis": 0, "batch_dims": 0, "from_either_end": True}
    most: int | None = None
    for operand, axis in zip(operands, axes, strict=True):
        (shape,) = source.emit("shape", "s64", every, inputs=[operand], outputs=[source.temporary("s64", "shape")])
        inputs = [shape, source.constant(np.array(axis, np.int64), "axis")]
        (size,) = source.emit("gather", "s64", one, inputs=inputs, outputs=[source.temporary("s64", "size")])
        if most is not None:
            (size,) = source.emit("maximum", "s64", inputs=[most, size], outputs=[source.temporary("s64", "rounds")])
        most = size
    assert most is not None
    return most


def _move(source: Source, slices: int, name: str, dtype: str, axis: int, back: int, value: Any) -> None:
    """Slices lie along the first axis, from the first one on."""
    if back:
        operands = [source.constant(np.array([n], np.int64), "turned") for n in (-1, -_ENDLESS, 0, -1)]
        result = source.temporary(dtype, "turned") if axis else name
        (slices,) = source.emit("slice_axes", dtype, inputs=[slices, *operands], outputs=[result])
    if not axis:
        return
    shape, claim = value.type.tensor_type, source.builder.claims.get(name)
    if shape.HasField("shape"):
        rank = len(shape.shape.dim) + 1
    elif claim is not None and not claim.is_unranked:
        rank = len(claim.shape)
    else:
        raise source.unsupported("BT-ONNX-SHAPE", f"the rank of '{value.name}' is not known, so axis {axis} is open")
    if not -rank <= axis < rank:
        raise source.invalid("BT-SHAPE-AXIS", f"axis {axis} of '{name}', which has {rank}")
    order = list(range(1, rank))
    order.insert(axis % rank, 0)
    source.emit(
        "transpose", dtype, inputs=[slices, source.constant(np.array(order, np.int64), "order")], outputs=[name]
    )


MAPPERS: Mappers = {
    ("", "If"): _if,
    ("", "Loop"): _loop,
    ("", "Scan"): _scan,
}
