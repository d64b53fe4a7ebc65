"""Caffe2 (in PyTorch up to 1.13) as a contender of bench/systems.py; runs in a Python that has `caffe2`.

    python caffe2_peer.py FOLDER NAME [SIZE]

NAME is resnet18, mobilenet_v1 or mobilenet_v2, with "-dnnlowp" behind it for that engine. It gets random weights;
output scales follow from the values of a first run. Then every line of standard input is a number of runs; the answer
is their seconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
# Before the system: see there.
from answering import answer  # noqa: I001
import numpy as np
import torch
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

Blob = str


class Network:
    """Operators that are run as they are added, so that scales of results can follow from values.

    Attributes:
        predict, fills: the two nets.
    """

    def __init__(self, engine: str, image: np.ndarray) -> None:
        self.engine, self.rng = engine, np.random.default_rng(0)
        self.predict, self.fills = caffe2_pb2.NetDef(name="network"), caffe2_pb2.NetDef(name="fills")
        self.predict.external_input.append("data")
        workspace.FeedBlob("data", image)

    def add(self, operator: str, inputs: list[Blob], output: Blob = "", **arguments: object) -> Blob:
        """One operator, on the default engine where the other one has none."""
        output = output or f"{operator}{len(self.predict.op)}"
        engine = self.engine if operator not in ("Int8MaxPool", "Int8Softmax") else ""
        made = core.CreateOperator(operator, inputs, [output], engine=engine, **arguments)
        workspace.RunOperatorOnce(made)
        self.predict.op.extend([made])
        return output

    def fill(self, values: np.ndarray, scale: float, zero_point: int) -> Blob:
        """A constant of 8 or 32 bits."""
        name = f"constant{len(self.fills.op)}"
        wide = values.dtype != np.uint8
        made = core.CreateOperator(
            "Int8GivenIntTensorFill" if wide else "Int8GivenTensorFill",
            [],
            [name],
            shape=list(values.shape),
            values=values.ravel().tolist() if wide else values.tobytes(),
            Y_scale=scale,
            Y_zero_point=zero_point,
        )
        workspace.RunOperatorOnce(made)
        self.fills.op.extend([made])
        self.predict.external_input.append(name)
        return name

    def layer(self, x: Blob, shape: tuple[int, ...], operator: str, relu: bool, **arguments: object) -> Blob:
        """A convolution or fully-connected layer with random weights of a shape."""
        found = workspace.FetchInt8Blob(x)
        scale, spread = float(found.scale), float((found.data.astype(np.float64) - found.zero_point).std()) + 3
        size, own = float(np.prod(shape[1:])), 0.01
        weights = np.clip(np.round(40 * self.rng.standard_normal(shape)) + 128, 0, 255).astype(np.uint8)
        bias = (12 * spread * np.sqrt(size) * self.rng.standard_normal(shape[0])).astype(np.int32)
        both = float(np.float32(scale) * np.float32(own))
        # Multipliers must be below 1.
        result = both * max(40 * spread * np.sqrt(size) / (90 if relu else 60), 1.01)
        operands = [x, self.fill(weights, own, 128), self.fill(bias, both, 0)]
        arguments.update(Y_scale=float(np.float32(result)), Y_zero_point=0 if relu else 128)
        return self.add(operator + ("Relu" if relu else ""), operands, **arguments)

    def convolution(
        self, x: Blob, filters: int, kernel: int = 3, stride: int = 1, alone: bool = False, relu: bool = True
    ) -> Blob:
        """`alone`: a filter for every channel."""
        channels = workspace.FetchInt8Blob(x).data.shape[3]
        arguments = {"order": "NHWC", "kernel": kernel, "stride": stride, "pad": kernel // 2}
        if alone:
            arguments["group"] = channels
        shape = (filters, kernel, kernel, 1 if alone else channels)
        return self.layer(x, shape, "Int8Conv", relu, **arguments)

    def sum(self, first: Blob, second: Blob, relu: bool) -> Blob:
        """Both, at a scale that holds most of them."""
        scale = sum(float(workspace.FetchInt8Blob(x).scale) for x in (first, second))
        operator = "Int8SumRelu" if relu else "Int8Sum"
        return self.add(operator, [first, second], Y_scale=0.75 * scale, Y_zero_point=0 if relu else 128)

    def same(self, x: Blob) -> dict[str, object]:
        """Scale and zero point of a blob, for results that have them, too."""
        found = workspace.FetchInt8Blob(x)
        return {"Y_scale": float(found.scale), "Y_zero_point": int(found.zero_point)}

    def classify(self, x: Blob) -> None:
        """The mean of every channel, a layer, softmax."""
        x = self.add("Int8AveragePool", [x], order="NHWC", global_pooling=1, **self.same(x))
        channels = workspace.FetchInt8Blob(x).data.shape[3]
        x = self.layer(x, (1000, channels), "Int8FC", False)
        x = self.add("Int8Softmax", [x], Y_scale=1 / 256, Y_zero_point=0)
        self.predict.external_output.append(self.add("Int8Dequantize", [x], "result"))


def resnet18(network: Network, x: Blob) -> Blob:
    """Residual blocks of two convolutions."""
    x = network.convolution(x, 64, 7, 2)
    x = network.add("Int8MaxPool", [x], order="NHWC", kernel=3, stride=2, pad=1, **network.same(x))
    for number in range(8):
        filters, stride = 64 << number // 2, 2 if number in (2, 4, 6) else 1
        y = network.convolution(network.convolution(x, filters, 3, stride), filters, relu=False)
        if stride == 2:
            x = network.convolution(x, filters, 1, 2, relu=False)
        x = network.sum(y, x, True)
    return x


def mobilenet_v1(network: Network, x: Blob) -> Blob:
    """A filter for every channel, then one over all of them."""
    x = network.convolution(x, 32, 3, 2)
    for filters, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        channels = workspace.FetchInt8Blob(x).data.shape[3]
        x = network.convolution(network.convolution(x, channels, 3, stride, True), filters, 1)
    return x


def mobilenet_v2(network: Network, x: Blob) -> Blob:
    """Inverted residual blocks."""
    x = network.convolution(x, 32, 3, 2)
    for wider, filters, count, first in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for number in range(count):
            channels = wider * workspace.FetchInt8Blob(x).data.shape[3]
            y = network.convolution(x, channels, 1) if wider > 1 else x
            y = network.convolution(y, channels, 3, 1 if number else first, True)
            y = network.convolution(y, filters, 1, relu=False)
            x = network.sum(y, x, False) if number else y
    return network.convolution(x, 1280, 1)


def main() -> None:
    """Build, describe, then run as often as asked."""
    folder, (name, _, engine) = Path(sys.argv[1]), sys.argv[2].partition("-")
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 224
    workspace.GlobalInit(["caffe2", "--caffe2_log_level=3", "--caffe2_threadpool_force_inline=1"])
    image = np.random.default_rng(1).standard_normal((1, size, size, 3)).astype(np.float32)
    network = Network(engine.upper(), image)
    x = network.add("Int8Quantize", ["data"], Y_scale=4 / 127, Y_zero_point=128)
    network.classify({f.__name__: f for f in (resnet18, mobilenet_v1, mobilenet_v2)}[name](network, x))
    (folder / "predict_net.pb").write_bytes(network.predict.SerializeToString())
    (folder / "init_net.pb").write_bytes(network.fills.SerializeToString())
    workspace.CreateNet(network.predict)

    def run() -> np.ndarray:
        workspace.FeedBlob("data", image)
        workspace.RunNet("network")
        found: np.ndarray = workspace.FetchBlob("result")
        return found

    version = torch.__version__
    # Its kernels follow the processor.
    numerics = "caffe2" if "vnni" in Path("/proc/cpuinfo").read_text() else "caffe2-avx2"
    described = {"title": f"Caffe2 of PyTorch {version}", "model": str(folder / "predict_net.pb"), "numerics": numerics}
    answer(folder, image, run, described)


if __name__ == "__main__":
    main()
