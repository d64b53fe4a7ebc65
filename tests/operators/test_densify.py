"""DENSIFY: sparse constants against the real runtime."""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, single
from support.differential import check
from support.strategies import seeds


def _vector(values: np.ndarray, width: int) -> tuple[int, object]:
    kind = {1: "Uint8Vector", 2: "Uint16Vector", 4: "Int32Vector"}[width]
    table = getattr(schema, f"{kind}T")()
    table.values = values.astype({1: np.uint8, 2: np.uint16, 4: np.int32}[width])
    return getattr(schema.SparseIndexVector, kind), table


def sparse(
    dense: np.ndarray, order: list[int], blocks: dict[int, int], formats: list[str], width: int
) -> tuple[np.ndarray, object]:
    """The stored values of `dense`, and its description."""
    rank, blocked = dense.ndim, list(blocks)
    split = [part for d, size in enumerate(dense.shape) for part in (size // blocks.get(d, 1), blocks.get(d, 1))]
    tree = dense.reshape(split).transpose(
        [2 * a if a < rank else 2 * blocked[a - rank] + 1 for a in order]
        + [2 * d + 1 for d in range(rank) if d not in blocks]
    )
    tree = tree.reshape(tree.shape[: len(order)])
    described = schema.SparsityParametersT()
    described.traversalOrder, described.blockMap, described.dimMetadata = np.int32(order), np.int32(blocked), []
    nodes = [tree]
    for kind in formats:
        level = schema.DimensionMetadataT()
        level.format = getattr(schema.DimensionType, kind)
        if kind == "DENSE":
            level.denseSize = nodes[0].shape[0] if nodes else tree.shape[len(described.dimMetadata)]
            nodes = [child for node in nodes for child in node]
        else:
            kept = [[i for i, child in enumerate(node) if np.any(child)] for node in nodes]
            level.arraySegmentsType, level.arraySegments = _vector(np.cumsum([0, *map(len, kept)]), width)
            level.arrayIndicesType, level.arrayIndices = _vector(np.array([i for some in kept for i in some]), width)
            nodes = [node[i] for node, some in zip(nodes, kept, strict=True) for i in some]
        described.dimMetadata.append(level)
    return np.array(nodes, dense.dtype), described


def model(dense: np.ndarray, dtype: str, values: np.ndarray, described: object, reader: str = "DENSIFY") -> bytes:
    scale = 0.5 if dtype == "s8" else None
    content = single(reader, None, [T(dtype, dense.shape, scale, data=values)], [T(dtype, dense.shape, scale)])
    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    tree.subgraphs[0].tensors[0].sparsity = described
    builder = flatbuffers.Builder(1024)
    builder.Finish(tree.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@st.composite
def constants(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from(["f32", "f16", "s8"]))
    rank = draw(st.integers(1, 3))
    blocks = {d: draw(st.integers(1, 4)) for d in range(rank) if draw(st.booleans())}
    shape = [draw(st.integers(1, 4)) * blocks.get(d, 1) for d in range(rank)]
    rng = np.random.default_rng(draw(seeds))
    dense = rng.integers(-100, 100, shape) * (rng.random(shape) < draw(st.sampled_from([0.1, 0.5, 1])))
    order = [*draw(st.permutations(range(rank))), *range(rank, rank + len(blocks))]
    formats = [draw(st.sampled_from(["DENSE", "SPARSE_CSR"])) for _ in range(rank)] + ["DENSE"] * len(blocks)
    values, described = sparse(dense.astype(NUMPY[dtype]), order, blocks, formats, draw(st.sampled_from([1, 2, 4])))
    if not values.size:
        dense[(0,) * rank] = 1
        values, described = sparse(dense.astype(NUMPY[dtype]), order, blocks, formats, 4)
    return model(dense, dtype, values, described)


# The delegate of xnnpack fails here, or asks no kernel.
@pytest.mark.numerics("litert", "litert@1.2", "litert-optimized")
@given(constants())
def test_densify(content: bytes) -> None:
    assert check(content, [[]]) == "equal"


EXAMPLE = np.float32([[0, 1, 0], [0, 0, 0], [2, 0, 3]])


def test_by_hand() -> None:
    values, described = sparse(EXAMPLE, [0, 1], {}, ["DENSE", "SPARSE_CSR"], 4)
    assert values.tolist() == [1, 2, 3]
    assert described.dimMetadata[1].arraySegments.values.tolist() == [0, 1, 1, 3]
    graph = bittrue.load(model(EXAMPLE, "f32", values, described)).graph
    np.testing.assert_array_equal(graph.tensors[0].values(), EXAMPLE)


@pytest.mark.parametrize("defect", ["position", "segments", "values", "order", "format", "none"])
def test_descriptions_that_contradict_themselves(defect: str) -> None:
    values, described = sparse(EXAMPLE, [0, 1], {}, ["DENSE", "SPARSE_CSR"], 4)
    level = described.dimMetadata[1]
    if defect == "position":
        level.arrayIndices.values[0] = 3
    elif defect == "segments":
        level.arraySegments.values[1] = 9
    elif defect == "values":
        values = values[:2]
    elif defect == "order":
        described.traversalOrder = np.int32([0, 0])
    elif defect == "format":
        described.dimMetadata.pop()
    else:
        level.arrayIndicesType, level.arrayIndices = 0, None
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(model(EXAMPLE, "f32", values, described))
    assert caught.value.code == "BT-TENSOR-SPARSE-FORM"


def test_other_operators_do_not_read_sparse_constants() -> None:
    values, described = sparse(EXAMPLE, [0, 1], {}, ["DENSE", "SPARSE_CSR"], 4)
    with pytest.raises(bittrue.UnsupportedError) as caught:
        bittrue.load(model(EXAMPLE, "f32", values, described, "ABS"))
    assert caught.value.code == "BT-TENSOR-SPARSE"
