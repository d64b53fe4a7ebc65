"""Operators of layers over tensors with ranges, one node at a time: what they refuse, and small sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bittrue.errors import BittrueError
from bittrue.graph import Attribute, Graph, Node, Tensor
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module

WINDOW: dict[str, Attribute] = {
    "kernel_shape": (),
    "strides": (),
    "dilations": (),
    "pads": (),
    "groups": 1,
    "auto_pad": "NOTSET",
    "channels_last": False,
}
ABSENT = "-"
RELU: dict[str, Attribute] = {"relu_first": False, "relu_last": False}
# stem: (operands as type and shape, types of the results, attributes); every one of them can be planned.
NODES: dict[str, tuple[list[tuple[str, tuple[int, ...]]], list[str], dict[str, Attribute]]] = {
    "finish_sums": ([("s32", (2, 3)), ("f32", (3,))], ["s32"], RELU),
    "conv, sums alone": ([("u8", (1, 2, 4, 4)), ("s8", (3, 2, 3, 3))], ["s32"], {**WINDOW, "fused": True}),
    "fold_normalization": ([("f32", (3, 2, 1, 1)), *[("f32", (3,))] * 5], ["f32", "f32"], {"epsilon": 1e-3}),
    "finish_sums, with another tensor": (
        [("s32", (2, 3)), ("f32", (3,)), ("s8", (2, 3)), *[("f32", (1,))] * 7],
        ["s8"],
        {**RELU, "data_type": "u8"},
    ),
    "range_of, product": (
        [("f32", (1,))] * 4,
        ["f32", "f32"],
        {"of": "product", "first_level": 127, "second_level": 255},
    ),
    "conv": (
        [
            *[("s8", (1, 2, 4, 4)), ("s8", (3, 2, 3, 3)), ("f32", (3,)), ("f32", (1,)), ("f32", (1,)), ("f32", (3,))],
            *[(ABSENT, (1,)), ("f32", (1,)), ("f32", (1,))],
        ],
        ["u8"],
        {**WINDOW, "ranged": True},
    ),
    "matmul": (
        [
            *[("u8", (2, 5)), ("s8", (5, 3)), ("f32", (3,)), ("f32", (1,)), ("f32", (1,)), ("f32", (1,))],
            *[(ABSENT, (1,)), ("f32", (1,)), ("f32", (1,))],
        ],
        ["s8"],
        {"matrices": True, "ranged": True, "relu": False},
    ),
    "range_of, sums": (
        [("s32", (2, 3)), ("f32", (1,)), ("f32", (1,))],
        ["f32", "f32"],
        {"of": "sums", "unsigned": False},
    ),
    "range_of, values": ([("f32", (2, 3))], ["f32", "f32"], {"of": "values"}),
    "dequantize": ([("u8", (2, 3)), ("f32", (1,)), ("f32", (1,))], ["f32"], {"ranged": True}),
    "quantize": ([("f32", (2, 3)), ("f32", (1,)), ("f32", (1,))], ["s8"], {"version": "2", "ranged": True}),
    "quantize, sums": ([("s32", (2, 3)), *[("f32", (1,))] * 4], ["u8"], {"ranged": True}),
    "finish_sums, real": (
        [("s32", (2, 3)), ("f32", (3,)), (ABSENT, (1,)), ("f32", (1,)), ("f32", (1,)), ("f32", (3,))],
        ["f32"],
        {**RELU, "data_type": "s8"},
    ),
    "range_weights": (
        [("f32", (3, 4)), ("f32", (3,)), ("f32", (1,)), ("f32", (1,))],
        ["s8", "f32", "f32"],
        {"data_type": "s8", "per_channel": True},
    ),
    "range_weights, of quantized ones": (
        [("s8", (3, 4)), ("s8", (3,)), *[("f32", (1,))] * 6],
        ["s8", "f32", "f32"],
        {"data_type": "s8", "fused": True},
    ),
    "range_of, symmetric": ([("f32", (1,))] * 2, ["f32", "f32"], {"of": "symmetric", "unsigned": True}),
}


def _graph(stem: str, operands: list[tuple[str, tuple[int, ...]]]) -> Graph:
    (_, results, attributes), stem = NODES[stem], stem.split(",")[0]
    given = [None if operand[0] == ABSENT else number for number, operand in enumerate(operands)]
    operands = [("f32", shape) if dtype == ABSENT else (dtype, shape) for dtype, shape in operands]
    tensors = [Tensor(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(operands)]
    tensors += [Tensor(f"y{i}", dtype, ()) for i, dtype in enumerate(results)]
    inputs, outputs = tuple(range(len(operands))), tuple(range(len(operands), len(tensors)))
    return Graph("g", tuple(tensors), (Node(0, stem, stem, 1, attributes, tuple(given), outputs),), inputs, outputs)


def _run(stem: str, *arrays: np.ndarray) -> list[np.ndarray]:
    operands = [(operand[0], array.shape) for operand, array in zip(NODES[stem][0], arrays, strict=True)]
    graph = _graph(stem, operands)
    plan = make_plan(graph, find("mxnet"))
    feeds = {i: array.astype(graph.tensors[i].type.numpy) for i, array in enumerate(arrays)}
    engines = [ReferenceExecutor(plan), *([NativeExecutor(plan)] if native_module() is not None else [])]
    found = [dict(zip(plan.results, engine.run(feeds), strict=True)) for engine in engines]
    results = [[one[index] for index in graph.outputs] for one in found]
    for other in results[1:]:
        assert [a.tobytes() for a in other] == [a.tobytes() for a in results[0]]
    return results[0]


@pytest.mark.parametrize("stem", sorted(NODES))
def test_shapes_that_do_not_fit_are_refused(stem: str) -> None:
    """Every operand with one element more, one axis more, or none at all."""
    operands = NODES[stem][0]
    assert make_plan(_graph(stem, operands), find("mxnet")).steps
    places = []
    for position, (dtype, shape) in enumerate(operands):
        for changed in ((*shape[:-1], shape[-1] + 1), (*shape, 1), (*shape, 2), (0, *shape[1:]), ()):
            others = [*operands[:position], (dtype, changed), *operands[position + 1 :]]
            try:
                make_plan(_graph(stem, others), find("mxnet"))
            except BittrueError as error:
                places.append(error.place)
    assert len(places) >= len(operands)
    assert all(place.startswith("node 0") for place in places)


def test_sums_and_their_bias() -> None:
    (found,) = _run("finish_sums", np.int32([[1, 2**24 + 1, -5]]), np.float32([1, 1, 2]))
    assert found.tolist() == [[2, 2**24, -3]]


def test_conversions() -> None:
    low, high = np.float32([-1]), np.float32([2])
    (found,) = _run("quantize", np.float32([[2, -2, np.nan], [0.0078, 0.0079, 1e30]]), low, high)
    assert found.tolist() == [[127, -128, 127], [0, 1, 127]]
    (found,) = _run("dequantize", np.uint8([[255, 1, 0]]), low, np.float32([255.5]))
    assert found.tolist() == [[255.0, 1.0, 0.0]]
    ends = [np.float32([end]) for end in (0, 0.5, -1, 2)]
    (found,) = _run("quantize, sums", np.int32([[2**24 + 1, 12345678, -(2**31)]]), *ends)
    assert found.tolist() == [[8, 6, 0]]


def test_ranges() -> None:
    low, high = _run("range_of, values", np.float32([[1, np.nan, -2.5]]))
    assert (low.tolist(), high.tolist()) == ([-2.5], [1.0])
    # Where nothing counts, both ends stay where they begin.
    low, high = _run("range_of, values", np.float32([[np.nan, np.nan]]))
    largest = float(np.finfo(np.float32).max)
    assert (low.tolist(), high.tolist()) == ([largest], [-largest])
    low, high = _run("range_of, symmetric", np.float32([-3]), np.float32([2]))
    assert (low.tolist(), high.tolist()) == ([0.0], [3.0])
    low, high = _run("range_of, product", *(np.float32([v]) for v in (-127, 2, 0, 255)))
    assert (low.tolist(), high.tolist()) == ([-(2.0**31)], [2.0**31])
    low, high = _run("range_of, sums", np.int32([[2**30, -5]]), np.float32([-2]), np.float32([1]))
    assert (low.tolist(), high.tolist()) == ([-1.0], [1.0])


def test_the_lowest_sum_has_no_range() -> None:
    with pytest.raises(BittrueError) as caught:
        _run("range_of, sums", np.int32([[-(2**31), 5]]), np.float32([-2]), np.float32([1]))
    assert caught.value.code == "BT-RANGE-LOWEST"
    assert "node 0" in caught.value.place


def test_a_range_that_gives_no_multiplier_while_running() -> None:
    shapes = [shape for _, shape in NODES["matmul"][0]]
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    arrays[7] = arrays[8] = np.zeros(1, np.float32)
    with pytest.raises(BittrueError) as caught:
        _run("matmul", *arrays)
    assert caught.value.code == "BT-QUANT-OPERAND"


def test_a_sum_of_another_type_keeps_its_bits() -> None:
    """The result is s8, the other tensor u8: 200 is saturated as u8 and read as -56."""
    stem = "finish_sums, with another tensor"
    graph = _graph(stem, [*NODES[stem][0][:2], ("u8", (2, 3)), *NODES[stem][0][3:]])
    plan = make_plan(graph, find("mxnet"))
    one, full = np.ones(1, np.float32), np.float32([127.5])
    arrays = [
        np.zeros((2, 3), np.int32),
        np.zeros(3, np.float32),
        np.full((2, 3), 200, np.uint8),
        one,
        one,
        one,
        full,
        full,
    ]
    arrays += [np.float32([255.5])] * 2
    (found,) = ReferenceExecutor(plan).run(dict(enumerate(arrays)))
    assert found.dtype == np.int8
    assert set(found.reshape(-1).tolist()) == {-56}


def test_convolutions_that_add_pairs_in_16_bits() -> None:
    """Four channels of full range: two pairs of 64770 each are 32767 each, unless filters come in sixteens."""
    stem, attributes = "conv, sums alone", {**WINDOW, "fused": False}
    for filters, expected in ((4, 2 * 32767), (16, 4 * 255 * 127), (3, 4 * 255 * 127)):
        operands = [("u8", (1, 4, 1, 1)), ("s8", (filters, 4, 1, 1))]
        graph = _graph(stem, operands)
        node = graph.nodes[0]
        graph = Graph("g", graph.tensors, (replace(node, attributes=attributes),), (0, 1), (2,))
        plan = make_plan(graph, find("mxnet"))
        x, w = np.full((1, 4, 1, 1), 255, np.uint8), np.full((filters, 4, 1, 1), 127, np.int8)
        (found,) = ReferenceExecutor(plan).run({0: x, 1: w})
        assert set(found.reshape(-1).tolist()) == {expected}
