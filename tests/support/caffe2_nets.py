"""NetDefs for tests: operators with arguments as keywords, fills of init nets, and a net of many operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittrue.importers.caffe2_schema import messages


def argument(operator: Any, name: str, value: Any) -> None:
    """One argument, in the field of the value's type."""
    entry = operator.arg.add(name=name)
    if isinstance(value, bytes | str):
        entry.s = value if isinstance(value, bytes) else value.encode()
    elif isinstance(value, float):
        entry.f = value
    elif isinstance(value, int):
        entry.i = value
    elif len(value) and isinstance(value[0], float):
        entry.floats.extend(value)
    else:
        entry.ints.extend(value)


def add(net: Any, kind: str, inputs: str, outputs: str, engine: str = "", **arguments: Any) -> Any:
    """Adds an operator; names are separated by spaces."""
    operator = net.op.add(type=kind, engine=engine, input=inputs.split(), output=outputs.split())
    for name, value in arguments.items():
        argument(operator, name, value)
    return operator


def fill(net: Any, name: str, value: np.ndarray, scale: float | None = None, zero_point: int = 0) -> None:
    """A constant."""
    quantized = {} if scale is None else {"Y_scale": float(np.float32(scale)), "Y_zero_point": zero_point}
    kind = {"uint8": "Int8GivenTensorFill", "int32": "Int8GivenIntTensorFill", "float32": "GivenTensorFill"}
    flat = value.reshape(-1)
    values = flat.tobytes() if value.dtype == np.uint8 else flat.tolist()
    add(net, kind[value.dtype.name], "", name, shape=list(value.shape), values=values, **quantized)


def new(name: str = "net") -> Any:
    """An empty net."""
    return messages()["NetDef"](name=name)


def classifier(engine: str = "", seed: int = 1) -> tuple[Any, Any]:
    """Predict net and init net: every kind of layer once, an in-place activation, real numbers at both ends."""
    rng = np.random.default_rng(seed)
    predict, init = new("classifier"), new("init")

    def layer(name: str, shape: tuple[int, ...], scale: float) -> None:
        fill(init, f"{name}_w", rng.integers(0, 256, shape, np.uint8), 0.01, 120)
        fill(init, f"{name}_b", rng.integers(-900, 900, shape[0]).astype(np.int32), scale * 0.01)

    def y(scale: float, zero_point: int) -> dict[str, Any]:
        return {"Y_scale": float(np.float32(scale)), "Y_zero_point": zero_point}

    predict.external_input.append("data")
    add(predict, "Int8Quantize", "data", "q", engine, **y(0.05, 117))
    layer("c1", (8, 3, 3, 3), 0.05)
    window = {"order": "NHWC", "kernel": 3, "stride": 1, "pad": 1}
    add(predict, "Int8ConvRelu", "q c1_w c1_b", "c1", engine, **window, **y(0.04, 0))
    scale = 0.04 if not engine else float(np.float32(np.float64(np.float32(0.04) * np.float32(255)) / 255))
    add(predict, "Int8MaxPool", "c1", "p1", engine, order="NHWC", kernel=2, stride=2, **y(scale, 0))
    layer("c2", (8, 3, 3, 1), 0.04)
    add(predict, "Int8Conv", "p1 c2_w c2_b", "c2", engine, **window, group=8, **y(0.05, 121))
    add(predict, "Int8Relu", "c2", "c2", engine, **y(0.05, 121))
    layer("c3", (8, 1, 1, 8), 0.04)
    add(predict, "Int8Conv", "p1 c3_w c3_b", "c3", engine, order="NHWC", kernel=1, **y(0.05, 109))
    add(predict, "Int8Add", "c2 c3", "s", engine, **y(0.07, 79))
    add(predict, "Int8AveragePool", "s", "a", engine, order="NHWC", kernel=4, **y(0.02, 148))
    layer("fc", (5, 8), 0.02)
    add(predict, "Int8FC", "a fc_w fc_b", "fc", engine, **y(0.04, 104))
    add(predict, "Int8Softmax", "fc", "prob_q", engine, **y(1 / 256, 0))
    add(predict, "Int8Dequantize", "prob_q", "prob", engine)
    predict.external_input.extend(f"{name}_{part}" for name in ("c1", "c2", "c3", "fc") for part in "wb")
    predict.external_output.append("prob")
    return predict, init
