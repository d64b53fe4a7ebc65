"""The schema data equals the classes that LiteRT generates, and every operator's options decode."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from bittrue.errors import InvalidModelError, UnsupportedError
from bittrue.graph import Node
from bittrue.importers.tflite import read_tflite
from bittrue.importers.tflite_forms import FORMS
from bittrue.importers.tflite_schema import ENUMS, TABLES, TYPES, UNIONS, fields, operator
from importers.tflite_build import buffer, dense, node, operator_code, pack, tensor

OPERATORS = range(len(ENUMS["BuiltinOperator"]))
NO_NODE = ("PLACEHOLDER_FOR_GREATER_OP_CODES",)


def generated(name: str) -> dict[str, int]:
    return {key: value for key, value in vars(getattr(tfl, name)).items() if not key.startswith("_")}


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


@pytest.mark.parametrize("name", sorted(ENUMS))
def test_enumeration(name: str) -> None:
    expected = generated(name)
    # The generated class of a comparison keeps the long prefix that is dropped here.
    assert sorted(expected.values()) == list(range(len(ENUMS[name])))
    for key, value in expected.items():
        assert key.endswith(ENUMS[name][value])


@pytest.mark.parametrize("name", sorted(UNIONS))
def test_union(name: str) -> None:
    assert generated(name) == {member: number for number, member in enumerate(UNIONS[name])}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_table_has_the_generated_fields_and_defaults(name: str) -> None:
    empty = getattr(tfl, name + "T")()
    expected = {key: value for key, value in vars(empty).items() if not key.endswith("Type") or camel_union(name, key)}
    current = [field for field in fields(name).values() if not field.deprecated]
    assert {camel(field.name) for field in current} == set(expected)
    for field in current:
        if field.kind == "number":
            assert expected[camel(field.name)] == field.default


def camel_union(table: str, key: str) -> bool:
    """Whether a generated attribute ending in Type is a field of its own, not the tag of a union."""
    return any(camel(field.name) == key for field in fields(table).values())


def one_node(code: int, options_name: str, options) -> Node:
    model = dense()
    graph = model.subgraphs[0]
    graph.operators = [node([0, 1, 2], [3]), node([3], [4], 1)]
    model.operatorCodes = [operator_code(code, "mine" if code == tfl.BuiltinOperator.CUSTOM else None)] * 2
    for name, union in (("builtinOptions", "BuiltinOptions"), ("builtinOptions2", "BuiltinOptions2")):
        if options_name in UNIONS[union]:
            setattr(graph.operators[0], name, options)
            setattr(graph.operators[0], name + "Type", UNIONS[union].index(options_name))
    return read_tflite(pack(model)).graphs[0].nodes[0]


@pytest.mark.parametrize("code", OPERATORS)
def test_every_option_decodes(code: int) -> None:
    entry = operator(code)
    if entry.source in NO_NODE:
        return
    random = np.random.default_rng(code)
    options = getattr(tfl, entry.options + "T")() if entry.options else None
    expected: dict[str, object] = {}
    for attribute, field in entry.fields:
        value: object
        shown: object
        if field.kind == "text":
            value = shown = f"text {code}"
        elif field.kind == "numbers":
            value = [int(v) for v in random.integers(0, 2 if field.type == "bool" else 100, 3)]
            shown = tuple(value)
        elif field.enum:
            names = TYPES if field.enum == "TensorType" else [name.lower() for name in ENUMS[field.enum]]
            value = int(random.integers(0, len(names)))
            shown = names[value]
        elif field.type == "bool":
            value = shown = not field.default
        else:
            value = shown = int(random.integers(1, 100))
        setattr(options, camel(field.name), value)
        expected[attribute] = shown
    if entry.options in FORMS:
        expected = dict(FORMS[entry.options](expected))  # type: ignore[arg-type]
    expected.update(entry.attributes)
    found = one_node(code, entry.options, options)
    if entry.source == "CUSTOM":
        expected = {"custom_code": "mine", "custom_options": ()}
        assert found.source == "CUSTOM:mine"
    else:
        assert found.source == entry.source
    assert found.operator == entry.stem
    assert found.attributes == expected
    assert [type(found.attributes[name]) for name in expected] == [
        float if isinstance(found.attributes[name], float) else type(value) for name, value in expected.items()
    ]


@pytest.mark.parametrize("code", OPERATORS)
def test_missing_options_give_defaults(code: int) -> None:
    entry = operator(code)
    if entry.source in (*NO_NODE, "CUSTOM"):
        return
    attributes = one_node(code, "", None).attributes
    if entry.options:
        assert attributes == one_node(code, entry.options, getattr(tfl, entry.options + "T")()).attributes
    else:
        assert attributes == entry.attributes


def test_names_used_by_the_operators() -> None:
    conv = one_node(tfl.BuiltinOperator.CONV_2D, "", None)
    assert conv.attributes == {
        "padding": "same_upper",
        "size": "floor",
        "pads": (),
        "strides": (0, 0),
        "dilations": (1, 1),
        "activation": "none",
        "bias_type": "f32",
        "kernel_shape": (),
        "filter_layout": "OSI",
        "channels_last": True,
    }
    pool = one_node(tfl.BuiltinOperator.MAX_POOL_2D, "", None)
    assert {"kernel", "strides"} <= set(pool.attributes)
    assert one_node(tfl.BuiltinOperator.ADD, "", None).attributes["pot_scale_int16"] is True


def test_wrong_options_are_refused_where_options_matter() -> None:
    options = tfl.Pool2DOptionsT()
    with pytest.raises(InvalidModelError, match=r"BT-MODEL-OPTIONS.*Pool2DOptions, expected Conv2DOptions"):
        one_node(tfl.BuiltinOperator.CONV_2D, "Pool2DOptions", options)
    with pytest.raises(InvalidModelError, match="BT-MODEL-OPTIONS"):
        one_node(tfl.BuiltinOperator.CONV_2D, "DilateOptions", tfl.DilateOptionsT())
    assert one_node(tfl.BuiltinOperator.LOGISTIC, "Pool2DOptions", options).attributes == {}
    assert one_node(tfl.BuiltinOperator.QUANTIZE, "Pool2DOptions", options).attributes == {}


def test_options_of_unknown_effect_are_refused_and_newer_ones_noted() -> None:
    options = tfl.FullyConnectedOptionsT()
    options.quantSpec = np.array([1], np.uint8)
    with pytest.raises(UnsupportedError, match=r"BT-MODEL-OPTION-UNKNOWN.*quant_spec"):
        one_node(tfl.BuiltinOperator.FULLY_CONNECTED, "FullyConnectedOptions", options)
    # A table of the right kind with more fields than LeakyReluOptions has.
    packed = tfl.StridedSliceOptionsT()
    packed.endMask = 3
    model = dense()
    model.operatorCodes[1] = operator_code(tfl.BuiltinOperator.LEAKY_RELU)
    model.subgraphs[0].operators[1].builtinOptions = packed
    model.subgraphs[0].operators[1].builtinOptionsType = tfl.BuiltinOptions.LeakyReluOptions
    found = read_tflite(pack(model))
    assert found.graphs[0].nodes[1].attributes == {"alpha": 0.0}
    assert "LeakyReluOptions has fields newer" in found.notes[0]


def test_custom_options_inside_and_outside() -> None:
    model = dense()
    graph = model.subgraphs[0]
    model.operatorCodes[0] = operator_code(tfl.BuiltinOperator.CUSTOM, "Detect")
    graph.operators[0] = node([0, 1, 2], [3])
    graph.operators[0].customOptions = np.array([1, 2, 255], np.uint8)
    found = read_tflite(pack(model)).graphs[0].nodes[0]
    assert (found.operator, found.source) == ("custom", "CUSTOM:Detect")
    assert found.attributes == {"custom_code": "Detect", "custom_options": (1, 2, 255)}
    graph.operators[0].customOptions = None
    size = len(pack(model)) + 64
    graph.operators[0].largeCustomOptionsOffset = size
    graph.operators[0].largeCustomOptionsSize = 4
    content = pack(model)
    found = read_tflite(content.ljust(size, b"\0") + bytes([9, 8, 7, 6])).graphs[0].nodes[0]
    assert found.attributes["custom_options"] == (9, 8, 7, 6)


def test_operator_codes_beyond_the_byte() -> None:
    model = dense()
    model.subgraphs[0].tensors.append(tensor("unused", [], tfl.TensorType.FLOAT32))
    model.buffers.append(buffer())
    found = one_node(tfl.BuiltinOperator.GELU, "", None)
    assert found.operator == "gelu"
    # Old files leave the wide field at its default, 0.
    model.operatorCodes[1].builtinCode = 0
    assert read_tflite(pack(model)).graphs[0].nodes[1].operator == "reshape"
