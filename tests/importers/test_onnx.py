"""ONNX files to graphs: operator sets, functions, constants, names, order, claims, and doing without the package."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

import bittrue
from bittrue.graph import ModelFile
from bittrue.importers import read_model
from bittrue.importers.onnx import NEWEST_OPSET, OLDEST_OPSET
from bittrue.importers.onnx_operators import map_node  # noqa: F401 (the folder's entry)
from bittrue.importers.onnx_operators.base import MICROSOFT
from bittrue.importers.onnx_schemas import ANY, find_schema
from support.runtimes import not_emulated


def value(name: str, shape: Any = (2, 2), kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def turn(source: str = "x", target: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node("Transpose", [source], [target], f"turn {target}", **attributes)


def model(
    nodes: Sequence[NodeProto] | None = None,
    inputs: Sequence[ValueInfoProto] | None = None,
    outputs: Sequence[ValueInfoProto] | None = None,
    initializers: Sequence[TensorProto] = (),
    *,
    opsets: Sequence[tuple[str, int]] = (("", 21),),
    ir: int = 10,
    functions: Sequence[onnx.FunctionProto] = (),
    **graph: Any,
) -> ModelProto:
    made = helper.make_graph(
        [turn()] if nodes is None else nodes,
        "g",
        [value("x")] if inputs is None else inputs,
        [value("y")] if outputs is None else outputs,
        initializers,
        **graph,
    )
    imports = [helper.make_opsetid(*entry) for entry in opsets]
    return helper.make_model(made, opset_imports=imports, ir_version=ir, functions=functions)


def read(made: ModelProto) -> ModelFile:
    return read_model(made.SerializeToString())


def operators(made: ModelProto) -> list[str]:
    return [node.operator for node in read(made).graphs[0].nodes]


def refused(made: ModelProto, code: str) -> bittrue.BittrueError:
    with pytest.raises(bittrue.BittrueError, match=code) as caught:
        read(made)
    assert caught.value.message
    return caught.value


# -- operator sets -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", range(OLDEST_OPSET, NEWEST_OPSET + 1))
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_every_operator_set(version: int, domain: str) -> None:
    (node,) = read(model(opsets=[(domain, version)])).graphs[0].nodes
    assert node.version == onnx.defs.get_schema("Transpose", version).since_version


@pytest.mark.parametrize("version", [1, OLDEST_OPSET - 1, NEWEST_OPSET + 1, 1000])
def test_operator_sets_out_of_range(version: int) -> None:
    error = refused(model(opsets=[("", version)]), "BT-ONNX-OPSET")
    assert isinstance(error, bittrue.UnsupportedError)
    assert f"{OLDEST_OPSET} to {NEWEST_OPSET}" in error.message


@pytest.mark.parametrize(
    "opsets", [[("", -1)], [("", 21), ("ai.onnx", 13)], [("", 21), ("x", 1 << 40)], [("", 1 << 62)]]
)
def test_operator_sets_that_are_none(opsets: list[tuple[str, int]]) -> None:
    refused(model(opsets=opsets), "BT-ONNX-OPSET")


def test_the_same_operator_set_twice() -> None:
    assert operators(model(opsets=[("", 21), ("ai.onnx", 21)])) == ["transpose"]


def test_no_default_operator_set() -> None:
    refused(model(opsets=[(MICROSOFT, 1)]), "BT-ONNX-OPSET")
    refused(model(opsets=[]), "BT-ONNX-OPSET")


def test_domains_need_no_import() -> None:
    """As ONNX Runtime takes its own operators."""
    node = helper.make_node("Nonsense", ["x"], ["y"], domain="nowhere")
    (read_node,) = read(model([node])).graphs[0].nodes
    assert (read_node.operator, read_node.source, read_node.version) == ("custom", "nowhere.Nonsense", 1)


@pytest.mark.parametrize(
    ("domain", "advice"), [("nowhere", "the program that registers them"), ("ai.onnx.ml", "inspect")]
)
@pytest.mark.parametrize("name", ["Add", "Softplus", "FakeQuantize", "SVMRegressor"])
def test_names_of_other_domains_mean_nothing_here(domain: str, advice: str, name: str) -> None:
    """They were read as the operator of that stem, and ran."""
    nodes = [helper.make_node(name, ["x", "x"][: 2 if name == "Add" else 1], ["y"], domain=domain)]
    made = bittrue.load(model(nodes, opsets=[("", 21), (domain, 1)]).SerializeToString())
    for numerics in ("onnxruntime", "onnx"):
        with pytest.raises(bittrue.UnsupportedError, match=rf"has no row for {domain}.{name} .*{advice}"):
            made.prepare(numerics)


# -- nodes without mapping ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (helper.make_node("Nonsense", ["x"], ["y"]), "f32"),
        (helper.make_node("Det", ["x"], ["m"]), "f32"),
        (helper.make_node("StringSplit", ["s"], ["m", "n"]), "string"),
        (helper.make_node("Multinomial", ["x"], ["m"], dtype=TensorProto.INT64), "s64"),
    ],
)
def test_types_come_from_schemas(node: NodeProto, kind: str) -> None:
    nodes = [node, *([turn("m", "y")] if "m" in node.output else [])]
    given = [value("x"), value("s", (2,), TensorProto.STRING)]
    outputs = [value("y", None, {"string": TensorProto.STRING, "s64": TensorProto.INT64}.get(kind, TensorProto.FLOAT))]
    graph = read(model(nodes, given, outputs)).graphs[0]
    assert graph.tensors[graph.nodes[0].outputs[0]].dtype == kind


def test_one_error_names_every_operator_without_a_row() -> None:
    nodes = [helper.make_node("Det", ["x"], ["a"]), helper.make_node("Nonsense", ["a"], ["y"])]
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR") as caught:
        bittrue.load(model(nodes).SerializeToString()).prepare("onnx")
    assert "Det" in caught.value.message
    assert "Nonsense" in caught.value.message


# -- functions ---------------------------------------------------------------------------------------------------------
def function(name: str, nodes: Sequence[NodeProto], inputs: Sequence[str] = ("x",)) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, list(inputs), ["y"], list(nodes), imports)


def call(name: str, source: str = "x", target: str = "y") -> NodeProto:
    return helper.make_node(name, [source], [target], domain="local")


LOCAL = [("", 21), ("local", 1)]


def test_functions_are_expanded() -> None:
    inner = function("inner", [turn("x", "t"), turn("t", "y")])
    outer = function("outer", [call("inner", "x", "t"), call("inner", "t", "y")])
    made = model([call("outer", "x", "m"), call("inner", "m", "y")], functions=[outer, inner], opsets=LOCAL)
    assert operators(made) == ["transpose"] * 6
    x = np.float32([[1, 2], [3, 4]])
    assert bittrue.load(made.SerializeToString()).prepare("onnx").run(x)["y"].tolist() == x.tolist()


def test_functions_that_call_themselves() -> None:
    refused(model([call("a")], functions=[function("a", [call("a")])], opsets=LOCAL), "BT-ONNX-FUNCTION")
    both = [function("a", [call("b")]), function("b", [call("a")])]
    refused(model([call("a")], functions=both, opsets=LOCAL), "BT-ONNX-FUNCTION")
    refused(model(functions=both, opsets=LOCAL), "BT-ONNX-FUNCTION")


def test_functions_that_grow() -> None:
    """Each calls the next one twice: a file of a few kilobytes for 2^60 nodes."""
    chain = [function(f"f{i}", [call(f"f{i + 1}", "x", "t"), call(f"f{i + 1}", "t", "y")]) for i in range(60)]
    chain.append(function("f60", [turn()]))
    start = time.process_time()
    refused(model([call("f0")], functions=chain, opsets=LOCAL), "BT-NODES")
    deep = [function(f"f{i}", [call(f"f{i + 1}")]) for i in range(5000)] + [function("f5000", [turn()])]
    refused(model([call("f0")], functions=deep, opsets=LOCAL), "BT-ONNX-FUNCTION")
    assert time.process_time() - start < 2


def test_functions_of_one_name() -> None:
    refused(model([call("a")], functions=[function("a", [turn()])] * 2, opsets=LOCAL), "BT-ONNX-FUNCTION")


def test_functions_with_other_arguments() -> None:
    made = model([call("a")], functions=[function("a", [turn()], ["x", "z"])], opsets=LOCAL)
    # What is left out may be missing, as for operators.
    assert operators(made) == ["transpose"]
    many = helper.make_node("a", ["x", "x", "x"], ["y"], domain="local")
    refused(model([many], functions=[function("a", [turn()])], opsets=LOCAL), "BT-")


# -- constants ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value": numpy_helper.from_array(np.int8([[1, 2]]), "v")}, np.int8([[1, 2]])),
        ({"value": numpy_helper.from_array(np.array(3, np.int64), "v")}, np.array(3, np.int64)),
        ({"value_float": 1.5}, np.array(1.5, np.float32)),
        ({"value_floats": [1.5, 2.0]}, np.float32([1.5, 2])),
        ({"value_int": -7}, np.array(-7, np.int64)),
        ({"value_ints": [1 << 40, 2]}, np.int64([1 << 40, 2])),
    ],
)
def test_constant_nodes(attributes: dict[str, Any], expected: np.ndarray) -> None:
    made = model([helper.make_node("Constant", [], ["c"], **attributes), turn()], opsets=[("", 21)])
    graph = read(made).graphs[0]
    (found,) = (tensor for tensor in graph.tensors if tensor.name == "c")
    assert len(graph.nodes) == 1
    assert (found.values().dtype, found.values().shape) == (expected.dtype, expected.shape)
    assert found.values().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Constant", [], ["c"]),
        helper.make_node("Constant", [], ["c"], value_int=1, value_float=1.0),
        helper.make_node("Constant", [], ["c", "d"], value_int=1),
        helper.make_node("Constant", [], [], value_int=1),
        helper.make_node("Constant", [], [""], value_int=1),
        helper.make_node("Constant", [], ["x"], value_int=1),
        helper.make_node("Constant", [], ["c"], value_string="text"),
        helper.make_node("Constant", [], ["c"], value=3),
        helper.make_node("Constant", [], ["c"], value_int=1.5),
        helper.make_node("Constant", [], ["c"], value_ints=[1.5]),
        helper.make_node("Constant", [], ["c"], value_int=[1, 2]),
        helper.make_node("Constant", [], ["c"], nonsense=1),
    ],
)
def test_constant_nodes_that_are_none(node: NodeProto) -> None:
    refused(model([node, turn()]), "BT-ONNX-CONSTANT")


# -- names and order ---------------------------------------------------------------------------------------------------
W = numpy_helper.from_array(np.float32([[1, 2], [3, 4]]), "w")


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (lambda: model(initializers=[W, W]), "BT-ONNX-NAME"),
        (lambda: model(initializers=[numpy_helper.from_array(np.float32([1]), "")]), "BT-ONNX-NAME"),
        (lambda: model(inputs=[value("x"), value("x")]), "BT-ONNX-NAME"),
        (lambda: model(inputs=[value("x"), value("")]), "BT-ONNX-NAME"),
        (lambda: model([turn(), turn()]), "BT-ONNX-NAME"),
        (lambda: model([turn(), turn("y", "x")]), "BT-ONNX-NAME|BT-GRAPH-WRITE"),
        (lambda: model([turn(), turn("y", "w")], initializers=[W]), "BT-ONNX-NAME|BT-GRAPH-WRITE"),
        (lambda: model([turn("x", "x")], outputs=[value("x")]), "BT-GRAPH-WRITE|BT-ONNX-NAME"),
        (lambda: model([turn("y", "y")]), "BT-NODE-ORDER"),
        (lambda: model([turn("nobody", "y")]), "BT-NODE-ORDER"),
        (lambda: model([turn("", "y")]), "BT-NODE-INPUT"),
        (lambda: model([helper.make_node("Transpose", [], ["y"])]), "BT-NODE-INPUT"),
        (lambda: model(outputs=[value("z")]), "BT-ONNX-NAME"),
        (lambda: model(outputs=[]), "BT-ONNX-OUTPUT"),
        (lambda: model([]), "BT-ONNX-NAME"),
    ],
)
def test_contradictions(made: Callable[[], ModelProto], code: str) -> None:
    refused(made(), code)


def test_initializers_listed_as_inputs() -> None:
    """Before IR version 4 they had to be."""
    for ir in (3, 4, 10):
        graph = read(model([turn("w")], [value("x"), value("w")], initializers=[W], ir=ir)).graphs[0]
        assert [graph.tensors[i].name for i in graph.inputs] == ["x"]
        assert graph.tensors[graph.nodes[0].inputs[0]].is_constant


def test_an_output_may_be_anything_known() -> None:
    graph = read(model([turn()], outputs=[value("y"), value("x"), value("w")], initializers=[W])).graphs[0]
    assert [graph.tensors[i].name for i in graph.outputs] == ["y", "x", "w"]
    x = np.float32([[5, 6], [7, 8]])
    made = model([turn()], outputs=[value("y"), value("x"), value("w")], initializers=[W])
    for executor in ("reference", "auto"):
        found = bittrue.load(made.SerializeToString()).prepare("onnx", executor=executor).run(x)
        assert {k: v.tolist() for k, v in found.items()} == {
            "y": x.T.tolist(), "x": x.tolist(), "w": [[1, 2], [3, 4]]
        }  # fmt: skip


def test_sparse_initializers() -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.float32([1]), "s"), numpy_helper.from_array(np.int64([0]), "i"), [4]
    )
    refused(model(sparse_initializer=[sparse]), "BT-ONNX-SPARSE")


# -- types and shapes --------------------------------------------------------------------------------------------------
def test_declared_types_are_checked() -> None:
    refused(model(outputs=[value("y", (2, 2), TensorProto.INT8)]), "BT-ONNX-TYPE")
    middle = model([turn("x", "m"), turn("m", "y")], value_info=[value("m", (2, 2), TensorProto.INT8)])
    refused(middle, "BT-ONNX-TYPE")


def test_declared_shapes_are_not_believed() -> None:
    made = model(inputs=[value("x", (2, 3))], outputs=[value("y", (7, 7, 7))])
    found = bittrue.load(made.SerializeToString()).prepare("onnx").run(np.zeros((2, 3), np.float32))
    assert found["y"].shape == (3, 2)


@pytest.mark.parametrize("kind", [0, 99, -1])
def test_input_types_that_are_none(kind: int) -> None:
    made = model()
    made.graph.input[0].type.tensor_type.elem_type = kind
    refused(made, "BT-ONNX-TYPE")


def test_inputs_that_are_no_tensors() -> None:
    for info in (
        helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None),
        helper.make_value_info("x", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))),
        ValueInfoProto(name="x"),
    ):
        refused(model(inputs=[info]), "BT-ONNX-TYPE")


@pytest.mark.parametrize("sizes", [[-2], [1] * 65, [1 << 40, 1 << 40, 0]])
def test_shapes_that_are_none(sizes: list[int]) -> None:
    made = model()
    del made.graph.input[0].type.tensor_type.shape.dim[:]
    for size in sizes:
        made.graph.input[0].type.tensor_type.shape.dim.add(dim_value=size)
    refused(made, "BT-ONNX-SHAPE")


def test_free_dimensions() -> None:
    graph = read(model(inputs=[value("x", ("N", None, 3))])).graphs[0]
    x = graph.tensors[graph.inputs[0]]
    assert (x.shape, x.shape_signature) == ((1, 1, 3), (-1, -1, 3))
    made = model(inputs=[value("x", ("N", 2))], outputs=[value("y", (2, "N"))]).SerializeToString()
    session = bittrue.load(made).prepare("onnx", shapes={"x": (5, 2)})
    assert session.outputs[0].shape == (2, 5)


# -- attributes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ([helper.make_attribute("perm", [1, 0]), helper.make_attribute("perm", [1, 0])], "BT-ONNX-ATTRIBUTE"),
        ([helper.make_attribute("nonsense", 1)], "BT-ONNX-ATTRIBUTE"),
        ([helper.make_attribute("perm", 1)], "BT-ONNX-ATTRIBUTE"),
        ([helper.make_attribute("perm", [1.0, 0.0])], "BT-ONNX-ATTRIBUTE"),
        ([helper.make_attribute("perm", "text")], "BT-ONNX-ATTRIBUTE"),
        ([AttributeProto(name="perm", ints=[1, 0])], "BT-ONNX-ATTRIBUTE"),
        ([AttributeProto(name="perm", type=AttributeProto.TYPE_PROTO)], "BT-ONNX-ATTRIBUTE"),
        ([AttributeProto(name="perm", type=AttributeProto.TENSOR)], "BT-ONNX-"),
        ([AttributeProto(name="perm", type=AttributeProto.INTS, ref_attr_name="a")], "BT-ONNX-ATTRIBUTE"),
    ],
)
def test_attributes_that_do_not_fit(attributes: list[AttributeProto], code: str) -> None:
    node = turn()
    node.attribute.extend(attributes)
    error = refused(model([node]), code)
    assert "Transpose" in error.place or "perm" in error.place


# -- without the package -----------------------------------------------------------------------------------------------
HIDDEN = """
import sys
sys.modules["onnx"] = None
import bittrue
try:
    {statement}
except bittrue.UnsupportedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "bittrue.load(bytes.fromhex({content!r}))",
        "import bittrue.onnx_backend",
        "from bittrue.compat import InferenceSession; InferenceSession(bytes.fromhex({content!r}))",
    ],
)
def test_the_package_is_missed(statement: str) -> None:
    content = model().SerializeToString().hex()
    code = HIDDEN.format(statement=statement.format(content=content))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "BT-ONNX-PACKAGE" in done.stdout
    assert 'pip install "bittrue[onnx]"' in done.stdout


@not_emulated
def test_importing_bittrue_is_light() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import bittrue; took = time.perf_counter() - start;"
        "print(took, [name for name in ('onnx', 'ml_dtypes', 'numpy', 'google.protobuf') if name in sys.modules])"
    )
    took, _, heavy = min(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.partition(" ")
        for _ in range(3)
    )
    assert heavy.strip() == "[]"
    assert float(took) < 0.2


def test_tflite_needs_no_onnx() -> None:
    code = (
        "import sys; sys.modules['onnx'] = None; import bittrue, numpy;"
        "session = bittrue.load(bittrue.demo_model()).prepare();"
        "session.run(numpy.zeros(session.inputs[0].shape, session.inputs[0].dtype));"
        "from bittrue.compat import Interpreter; Interpreter(model_content=bittrue.demo_model()).allocate_tensors();"
        "print('ml_dtypes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# What a program may do with the package before and after a model was loaded.
_BESIDE = """
import sys
content = bytes.fromhex(sys.argv[1])
{before}
import bittrue
from bittrue.importers.onnx import messages
bittrue.load(content)
known = sorted(name for name in sys.modules if name.partition(".")[0] == "onnx")
import onnx, onnx.checker, pickle
from onnx import onnx_ml_pb2, helper, numpy_helper
assert messages().ModelProto is onnx.ModelProto is onnx_ml_pb2.ModelProto is onnx.onnx_ml_pb2.ModelProto
model = onnx.load_model_from_string(content)
onnx.checker.check_model(model)
same = messages().ModelProto.FromString(content)
assert pickle.loads(pickle.dumps(model)) == model == pickle.loads(pickle.dumps(same))
print(known, sorted(vars(onnx)), sorted(name for name in sys.modules if name.partition(".")[0] == "onnx"))
"""


def test_loading_leaves_the_package_alone() -> None:
    """A model is read by the package's messages without importing it; whoever imports it finds it whole."""

    def outcome(before: str) -> tuple[str, str]:
        code = [sys.executable, "-c", _BESIDE.format(before=before), model().SerializeToString().hex()]
        done = subprocess.run(code, capture_output=True, text=True, check=True)
        known, _, rest = done.stdout.partition("] ")
        return known, rest

    (without, after), (there, before) = outcome(""), outcome("import onnx")
    assert without == "["
    assert "'onnx.helper'" in there
    assert after == before


def test_schemas_are_those_of_the_package() -> None:
    """For every operator and version that the installed package knows."""
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert len(known) > 200
    for domain, name in known:
        for version in range(1, onnx.defs.onnx_opset_version() + 1):
            found = find_schema(domain, name, version)
            try:
                schema = onnx.defs.get_schema(name, version, domain)
            except onnx.defs.SchemaError:
                assert found is None, (domain, name, version)
                continue
            assert found is not None
            assert found.version == schema.since_version
            ends = schema.min_input, schema.max_input, schema.min_output, schema.max_output
            assert (*found.inputs, *found.outputs) == tuple(min(end, ANY) for end in ends)
            assert found.kinds == {n: a.type.name for n, a in schema.attributes.items()}
            assert found.required == {n for n, a in schema.attributes.items() if a.required}
    assert find_schema("com.microsoft", "Gelu", 1) is None
    assert find_schema("", "Of nobody", 28) is None


def test_names_of_files_mean_nothing(tmp_path: Path) -> None:
    """What is imported while a file is read follows from its name, and needs no package that the file does not need."""
    path = tmp_path / "demo.onnx"
    path.write_bytes(bittrue.demo_model())
    (tmp_path / "relu.tflite").write_bytes(model().SerializeToString())
    code = (
        "import sys; sys.modules['onnx'] = None; import bittrue.files; bittrue.files._LARGE = 0;"
        "print(bittrue.load(sys.argv[1]).file.format)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tflite"
    code = "import sys, bittrue.files; bittrue.files._LARGE = 0; print(bittrue.load(sys.argv[1]).file.format)"
    other = [sys.executable, "-c", code, tmp_path / "relu.tflite"]
    assert subprocess.run(other, capture_output=True, text=True, check=True).stdout.strip() == "onnx"


# -- large initializers ------------------------------------------------------------------------------------------------
def with_initializers(*arrays: np.ndarray) -> ModelProto:
    """A chain of additions of constants of four numbers."""
    names = ["x", *(f"s{i}" for i in range(1, len(arrays))), "y"]
    nodes = [helper.make_node("Add", [names[i], f"w{i}"], [names[i + 1]]) for i in range(len(arrays))]
    constants = [numpy_helper.from_array(array, f"w{i}") for i, array in enumerate(arrays)]
    return model(nodes, [value("x", (4,))], [value("y", (4,))], constants)


def outcome(content: bytes) -> object:
    try:
        (graph,) = read_model(content).graphs
    except bittrue.BittrueError as error:
        return str(error)
    return [(t.name, t.dtype, t.shape, None if t.data is None else t.data.tobytes()) for t in graph.tensors]


def test_large_initializers_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the bytes, what is set apart is what the package finds in a whole message."""
    # The second one is shorter than what counts as large here, the third one has no raw data.
    made = with_initializers(np.float32([1, 2, 3, 4]), np.float32([5]), np.float32([6, 7, 8, 9]), np.float32([0] * 4))
    made.graph.initializer[2].CopyFrom(helper.make_tensor("w2", TensorProto.FLOAT, [4], [6, 7, 8, 9]))
    content = made.SerializeToString()
    # Of a value that stands there twice, the last one counts; messages that do become one.
    tensor = numpy_helper.from_array(np.float32([5, 5, 5, 5]), "w4").SerializeToString()
    tensor += b"J\x10" + np.float32([9, 8, 7, 6]).tobytes()
    twice = made.graph.SerializeToString() + b"*" + bytes([len(tensor)]) + tensor
    added = content + b":" + bytes([len(twice) & 127 | 128, len(twice) >> 7]) + twice
    made.ClearField("graph")
    replaced = made.SerializeToString() + added[len(content) :]
    assert str(np.float32([9, 8, 7, 6]).tobytes()) in str(outcome(replaced))
    rng, variants = np.random.default_rng(1), [content, content + content, added, replaced]
    for _ in range(600):
        changed = bytearray(content)
        for place in rng.integers(0, len(changed), rng.integers(1, 3)):
            changed[place] = rng.choice([0, 1, 5, 8, 9, 10, 16, 42, 58, 74, 75, 128, 255])
        variants.append(bytes(changed[: rng.integers(len(changed) // 2, 2 * len(changed))]))
    whole = [outcome(variant) for variant in variants]
    monkeypatch.setattr("bittrue.importers.onnx._LARGE", 8)
    assert [outcome(variant) for variant in variants] == whole
    assert sum(isinstance(found, list) for found in whole) > 50
    kept = np.frombuffer(content, np.uint8)
    shared = [np.shares_memory(t.data, kept) for t in read_model(content).graphs[0].tensors if t.data is not None]
    assert shared == [True, False, False, True]


def test_large_initializers_of_models_with_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittrue.importers.onnx._LARGE", 8)
    made = with_initializers(np.float32([1, 2, 3, 4]))
    body = [helper.make_node("Neg", ["a"], ["b"])]
    made.functions.append(helper.make_function("own", "Turn", ["a"], ["b"], body, [helper.make_opsetid("", 21)]))
    made.graph.node.append(helper.make_node("Turn", ["y"], ["z"], domain="own"))
    made.graph.output[0].name = "z"
    made.opset_import.append(helper.make_opsetid("own", 1))
    (graph,) = read(made).graphs
    assert [t.data.tolist() for t in graph.tensors if t.data is not None] == [[1, 2, 3, 4]]
