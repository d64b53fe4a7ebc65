"""A microcontroller runtime in a program of its own (see tools/micro): models and inputs in, outputs out."""

from __future__ import annotations

import struct
import subprocess
from contextlib import suppress
from functools import cache

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import bittrue

from .oracle import Answer

# Tensors that stay between invocations and those inside of a model are not among the answers.
_STATUS = {1: "AllocateTensors failed", 2: "Invoke failed", 3: "the inputs do not fit"}


class MicroOracle:
    """One process that runs model after model; restarted after an abort."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, content: bytes, feeds: list[list[np.ndarray]], wanted: list[int]) -> Answer:
        """Invoke once per feed set; the graph's outputs among `wanted` after the last one."""
        content = with_shapes(content)
        graph = bittrue.load(content).graph
        shapes = [graph.tensors[i].shape for i in graph.inputs]
        if [feed.shape for feed in feeds[0]] != shapes:
            return Answer(refused="inputs cannot be resized")
        data = b"".join(np.ascontiguousarray(value).tobytes() for feed in feeds for value in feed)
        message = struct.pack("<I", len(content)) + content + struct.pack("<II", len(feeds), len(data)) + data
        try:
            return self._ask(message, graph, wanted)
        except (BrokenPipeError, EOFError):
            self._process = None
            return Answer(aborted=True)

    def _ask(self, message: bytes, graph: bittrue.Graph, wanted: list[int]) -> Answer:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        assert self._process.stdin is not None
        self._process.stdin.write(message)
        self._process.stdin.flush()
        status = self._read(1)[0]
        if status:
            return Answer(refused=_STATUS[status])
        values = {}
        for index in graph.outputs:
            (size,) = struct.unpack("<I", self._read(4))
            tensor = graph.tensors[index]
            values[index] = np.frombuffer(self._read(size), tensor.type.numpy).reshape(tensor.shape)
        return Answer(values={index: values[index] for index in wanted if index in values})

    def _read(self, count: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise EOFError
        return data


def with_shapes(content: bytes) -> bytes:
    """The same model with every tensor's inferred shape: this runtime believes what the file says."""
    for numerics in ("single-rounding", "litert"):
        with suppress(bittrue.BittrueError):
            plan = bittrue.load(content).prepare(numerics, executor="reference").plan
            break
    else:
        return content
    if any(-1 in tensor.shape for tensor in plan.tensors) or plan.later is not None:
        return content
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    for tensor, planned in zip(model.subgraphs[0].tensors, plan.tensors, strict=True):
        tensor.shape = list(planned.shape)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@cache
def micro_oracle(program: str) -> MicroOracle:
    """The shared process of a program."""
    return MicroOracle(program)
