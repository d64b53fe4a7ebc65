"""Every cell of docs/specifications.md that says "works": one model of that operator and type, run by LiteRT's
reference kernels and by both executors; and every one that says "refused by LiteRT": refused by both.
"""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import bittrue
from bittrue.check.specification import SPECIFICATION
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.errors import BittrueError
from bittrue.runtime.native import native_module
from support.oracle import oracle
from support.shared import REPOSITORY

EXECUTORS = ["reference", *(["native"] if native_module() is not None else [])]
COLUMNS = ("s8", "u8", "s16", "f32")
# Same numbers in another type.
NUMPY = {"s16": np.int16, "f32": np.float32}
TENSORS = {"s16": schema.TensorType.INT16, "f32": schema.TensorType.FLOAT32}


def cells() -> dict[str, list[str]]:
    """What the page says of every operator, by column."""
    page = (REPOSITORY / "docs" / "specifications.md").read_text().splitlines()
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in page if line.startswith("|")]
    return {row[0]: row[1:5] for row in rows if row[0] in SPECIFICATION}


def first_case(operator: str, types: str) -> SuiteCase:
    return next(case for case in find_suite("litert").cases((operator,), (types,)) if not case.rejects)


def retyped(case: SuiteCase, dtype: str) -> tuple[bytes, list[np.ndarray]]:
    """The model of an s8 case with its quantized tensors in another type; of QUANTIZE, the input alone."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(case.content))
    graph = model.subgraphs[0]
    kept = set(graph.outputs) if case.operator == "QUANTIZE" else set()
    for index, tensor in enumerate(graph.tensors):
        small = tensor.type == schema.TensorType.INT8
        bias = tensor.type == schema.TensorType.INT32 and tensor.quantization is not None
        bias = bias and tensor.quantization.scale is not None and len(tensor.quantization.scale) > 0
        if index in kept or not (small or bias):
            continue
        buffer = model.buffers[tensor.buffer]
        if buffer.data is not None and len(buffer.data):
            given = np.frombuffer(np.asarray(buffer.data, np.uint8).tobytes(), np.int8 if small else np.int32)
            buffer.data = np.frombuffer(given.astype(NUMPY[dtype]).tobytes(), np.uint8)
        tensor.type = TENSORS[dtype]
        if dtype == "f32":
            tensor.quantization = None
        else:
            tensor.quantization.zeroPoint = [0]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    small_inputs = [value.astype(NUMPY[dtype]) if value.dtype == np.int8 else value for value in case.inputs.values()]
    return bytes(builder.Output()), small_inputs


@pytest.mark.filterwarnings("ignore::bittrue.errors.InexactWarning")
@pytest.mark.usefixtures("made_anew")
@pytest.mark.in_turns(6)
@pytest.mark.parametrize("operator", SPECIFICATION)
def test_a_cell_is_what_a_run_shows(operator: str) -> None:
    states = dict(zip(COLUMNS, cells()[operator], strict=True))
    made = find_suite("litert").generators()[operator].types
    for dtype, state in states.items():
        if dtype in made:
            case = first_case(operator, dtype)
            content, inputs = case.content, list(case.inputs.values())
        else:
            content, inputs = retyped(first_case(operator, "s8"), dtype)
        model = bittrue.load(content)
        output = model.graph.outputs[0]
        answer = oracle("BUILTIN_REF").run(content, [inputs], [output])
        if state.startswith("refused"):
            assert not answer.ran, (operator, dtype)
            with pytest.raises(BittrueError):
                model.prepare("litert")
            continue
        assert state.startswith("works"), (operator, dtype, state)
        assert answer.ran, (operator, dtype, answer.refused)
        for executor in EXECUTORS:
            found = next(iter(model.prepare("litert", executor=executor).run(*inputs).values()))
            if found.tobytes() != answer.values[output].tobytes():
                assert "limit" in state, (operator, dtype, executor)
