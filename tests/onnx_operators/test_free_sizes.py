"""Which operators keep symbols of dimensions that a file leaves free; sums behind them are normalized in one step."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import bittrue
from bittrue.rewrites.called_graphs import DIVIDED
from support.differential import assert_same
from support.onnx_models import HERE, needs_measured, run_runtime

# Whether the runtime lays images out in blocks of channels on this processor.
_BLOCKS = not HERE.endswith("@aarch64")

_WIDTH = 8
# `y` of `x` [batch, sequence, 8], both free. `rows` are 8 x 8, `table` 20 x 8, `v` and `one` 8 long, `ids` places in
# the table, which are zeros [batch, sequence].
_IDS = "down = Mul(x, none) best = ReduceSum<keepdims=0>(down, last) ids = Cast<to=7>(best)"
_HEADS = "h = Reshape(x, heads) t = Transpose<perm=[0, 2, 1, 3]>(h)"
_KEEPING = {
    "Hardmax": "y = Hardmax(x)",
    "TopK": "y, places = TopK<axis=2>(x, width)",
    "GatherElements": "down = Mul(x, none) i = Cast<to=7>(down) y = GatherElements<axis=2>(x, i)",
    "ArgMax": "i = ArgMax<axis=-1, keepdims=0>(x) y = Gather(rows, i)",
    "GatherND": f"{_IDS} i = Unsqueeze(ids, last) y = GatherND(table, i)",
    "OneHot": "i = ArgMax<axis=-1, keepdims=0>(x) y = OneHot(i, width, pair)",
    "Pad": "y = Pad(x, shifted)",
    "pools": "y = AveragePool<kernel_shape=[3], pads=[1, 1]>(x)",
    "Einsum": 'y = Einsum<equation="bsh,hk->bsk">(x, rows)',
    "Einsum of rows": 'y = Einsum<equation="bsh,bsh->bsh">(x, x)',
    "Einsum of Einsum": 'a = Einsum<equation="bqh,bkh->bqk">(x, x) y = Einsum<equation="bqk,bkh->bqh">(a, x)',
    "RotaryEmbedding": f"{_IDS} y = com.microsoft.RotaryEmbedding<num_heads=1>(x, ids, table4, table4)",
    "MultiHeadAttention": "y = com.microsoft.MultiHeadAttention<num_heads=2>(x, x, x)",
    "MultiHeadAttention, heads first": (
        f"{_HEADS} t2 = Transpose<perm=[0, 2, 1, 3]>(h) y = com.microsoft.MultiHeadAttention<num_heads=2>(x, t, t2)"
    ),
    "MultiHeadAttention, other values": (
        "a = MatMul(x, narrow) b = MatMul(x, narrow) y = com.microsoft.MultiHeadAttention<num_heads=2>(a, b, x)"
    ),
    "Attention": "y = com.microsoft.Attention<num_heads=2>(x, three, three_v)",
    "QAttention": (
        "q, s, z = DynamicQuantizeLinear(x)"
        " y = com.microsoft.QAttention<num_heads=2>(q, three_u8, three_v, s, hundredth, , z, zero)"
    ),
    "SkipLayerNormalization": (
        "unknown = Reshape(x, any) y = com.microsoft.SkipLayerNormalization(x, unknown, one, v)"
    ),
    "the sum of SkipLayerNormalization": (
        "unknown = Reshape(x, any) a, b, c, y = com.microsoft.SkipLayerNormalization(x, unknown, one, v) l = Neg(a)"
    ),
    "EmbedLayerNormalization": (
        f"{_IDS} i = Cast<to=6>(ids) y, m = com.microsoft.EmbedLayerNormalization(i, , table, table, , one, v)"
    ),
    "GatherBlockQuantized": (
        f"{_IDS} y = com.microsoft.GatherBlockQuantized<block_size=16, bits=8, quantize_axis=1>(table_u8, ids, blocks)"
    ),
    "QLinearConcat": (
        "a = QuantizeLinear(x, hundredth, zero)"
        " b = com.microsoft.QLinearConcat<axis=2>(hundredth, zero, a, hundredth, zero, a, hundredth, zero)"
        " c = DequantizeLinear(b, hundredth, zero) y = Slice(c, nought, width, last)"
    ),
    "InstanceNormalization": (
        "t = Transpose<perm=[0, 2, 1]>(x) i = InstanceNormalization(t, one, v) y = Transpose<perm=[0, 2, 1]>(i)"
    ),
    "SpaceToDepth": (
        "a = Unsqueeze(x, nought) b = SpaceToDepth<blocksize=1>(a) c = DepthToSpace<blocksize=1>(b)"
        " y = Squeeze(c, nought)"
    ),
    "If": (
        "s = ReduceSum<keepdims=0>(x) c = Cast<to=9>(s) y = If(c)<then_branch = one_way () => (float[p, q, r] t)"
        " { t = Tanh(x) }, else_branch = other_way () => (float[p, q, r] e) { e = Neg(x) }>"
    ),
    "If with a Reshape": (
        "k = Reshape(x, joined) s = ReduceSum<keepdims=0>(k) c = Cast<to=9>(s)"
        " y = If(c)<then_branch = one_way () => (float[p, q, r] t) { t = Reshape(x, joined) },"
        " else_branch = other_way () => (float[p, q, r] e) { e = Neg(x) }>"
    ),
    "Scan": ("y = Scan<num_scan_inputs=1, body = row (float[p, q] l) => (float[p, q] t) { t = Tanh(l) }>(x)"),
}
_STANDARD = {
    "Attention of the standard": "y = Attention<q_num_heads=2, kv_num_heads=2>(x, x, x)",
    "Attention of fewer keys": (
        "k = MatMul(x, narrow) v4 = MatMul(x, narrow) y = Attention<q_num_heads=4, kv_num_heads=2>(x, k, v4)"
    ),
    "Attention, heads first": (
        f"{_HEADS} a = Attention(t, t, t) b = Transpose<perm=[0, 2, 1, 3]>(a) y = Reshape(b, joined)"
    ),
    "RotaryEmbedding of the standard": f"{_IDS} y = RotaryEmbedding<num_heads=1>(x, table4, table4, ids)",
}
# What does not keep them, or stays where one might think that it goes.
_LOSING = {
    "GroupNormalization": (
        "t = Transpose<perm=[0, 2, 1]>(x) g = GroupNormalization<num_groups=2>(t, one, v)"
        " y = Transpose<perm=[0, 2, 1]>(g)"
    ),
    "Slice of a graph input": "y = Slice(x, nought, most, first)",
    "Slice of free rows": "n = Neg(x) y = Slice(n, nought, twenty, first)",
}


# Of 12 rows, which the runtime does not see in what it computes: what the file declares of `y` counts.
_COMPUTED = "s = Shape(x) g = Gather(s, nought)"
_DECLARED = {
    "ConstantOfShape": f"{_COMPUTED} c = Concat<axis=0>(g, twelve, width) y = ConstantOfShape(c)",
    "Tile": f"{_COMPUTED} c = Concat<axis=0>(g, first, first) y = Tile(sample, c)",
    "Flatten": (
        f"{_COMPUTED} c = Concat<axis=0>(g, first, first) t = Tile(column, c) f = Flatten<axis=1>(t)"
        " u = Unsqueeze(f, last) y = Mul(u, x)"
    ),
    "Range": (
        f"{_COMPUTED} c = Concat<axis=0>(g, twelve) n = Gather(c, step) r = Range(start, n, step) f = Cast<to=1>(r)"
        " u = Unsqueeze(f, ends) y = Mul(u, x)"
    ),
    "Resize": f'{_COMPUTED} c = Concat<axis=0>(g, twelve, width) y = Resize<mode="nearest">(sample, , , c)',
}


def _model(nodes: str, opset: int, declared: str = "") -> bytes:
    text = (
        f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> graph'
        f" (float[batch, sequence, {_WIDTH}] x, float[batch, sequence, {_WIDTH}] o)"
        f" => (float[a, b, c] result){declared} {{ {nodes}"
        f" total = Add(y, o) result = LayerNormalization<axis=-1>(total, one, v) }}"
    )
    model, rng = onnx.parser.parse_model(text), np.random.default_rng(5)
    reals = {"rows": (8, 8), "narrow": (8, 4), "table": (20, 8), "table4": (20, 4), "three": (8, 24), "three_v": (24,)}
    reals |= {"sample": (1, 12, 8), "column": (1, 12, 1)}
    constants: dict[str, np.ndarray | np.generic] = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {**reals, "v": (8,), "one": (8,), "blocks": (20, 1)}.items()
    }
    constants |= {
        "none": np.float32(0),
        "pair": np.array([0, 1], np.float32),
        "hundredth": np.float32(0.01),
        "zero": np.uint8(128),
        "three_u8": rng.integers(0, 255, (8, 24)).astype(np.uint8),
        "table_u8": rng.integers(0, 255, (20, 8)).astype(np.uint8),
        "last": np.array([2]),
        "first": np.array([1]),
        "nought": np.array([0]),
        "twenty": np.array([20]),
        "most": np.array([np.iinfo(np.int64).max]),
        "width": np.array([_WIDTH]),
        "twelve": np.array([12]),
        "start": np.array(0),
        "step": np.array(1),
        "ends": np.array([0, 2]),
        "shifted": np.array([0, 1, 0, 0, -1, 0]),
        "heads": np.array([0, 0, 2, 4]),
        "joined": np.array([0, 0, 8]),
        "any": np.array([-1, 12, 8]),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name in read
    )
    called = [attribute.g for node in model.graph.node for attribute in node.attribute if attribute.HasField("g")]
    for info in (*model.graph.output, *(info for graph in called for info in (*graph.input, *graph.output))):
        info.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString())


@needs_measured
@pytest.mark.parametrize("name", [*_KEEPING, *_STANDARD, *_LOSING, *_DECLARED])
def test_sums_behind_operators(name: str) -> None:
    """The runtime makes such a sum and its normalization one operator, whose rows are added up in another order."""
    nodes = {**_KEEPING, **_STANDARD, **_LOSING, **_DECLARED}[name]
    declared = f" <float[batch, sequence, {_WIDTH}] y>" if name in _DECLARED else ""
    content = _model(nodes, 23 if name in _STANDARD or name in _LOSING else 17, declared)
    rng = np.random.default_rng(3)
    feeds = [rng.standard_normal((4, 12, _WIDTH)).astype(np.float32) for _ in range(2)]
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    model, shapes = bittrue.load(content), {name: feed.shape for name, feed in zip(("x", "o"), feeds, strict=True)}
    for executor in ("native", "reference"):
        ours = model.prepare(HERE, shapes=shapes, executor=executor)
        assert_same("result", ours.run(*feeds)["result"], theirs["result"])
    assert (ours.plan.steps[-1].source == "SkipLayerNormalization") == (name not in _LOSING)


_Constants = dict[str, np.ndarray | np.generic | list[int]]


def _normals(*shapes: tuple[str, tuple[int, ...]]) -> _Constants:
    rng = np.random.default_rng(8)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes}


def _check(
    opset: int, given: str, result: str, nodes: str, constants: _Constants, shape: tuple[int, ...]
) -> bittrue.Plan:
    """The plan of `nodes`, both executors having the runtime's bytes of the input `x` of this shape."""
    text = f'<ir_version: 8, opset_import: ["": {opset}]> graph ({given} x) => ({result} result) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items())
    content, feed = model.SerializeToString(), np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    theirs = run_runtime(content, [feed])
    assert isinstance(theirs, dict)
    for executor in ("native", "reference"):
        ours = bittrue.load(content).prepare(HERE, shapes={"x": shape}, executor=executor)
        assert_same("result", ours.run(feed)["result"], theirs["result"])
    return ours.plan


@needs_measured
@pytest.mark.parametrize("opset", [13, 14])
def test_quotients_of_unknown_rank_stay(opset: int) -> None:
    """A division by 1 goes where the runtime knows the rank, which a Reshape to computed sizes hides up to set 13."""
    nodes = (
        "sizes = Shape(x) part = Slice(sizes, nought, two) target = Concat<axis=0>(part, width)"
        " flat = Reshape(x, wide) r = Reshape(flat, target) product = MatMul(r, rows) y = Div(product, unit)"
        " result = Add(y, v)"
    )
    constants: _Constants = {"nought": [0], "two": [2], "width": [8], "wide": [-1, 8], "unit": np.float32(1)}
    constants |= _normals(("rows", (8, 8)), ("v", (8,)))
    plan = _check(opset, "float[batch, sequence, 8]", "float[a, b, c]", nodes, constants, (3, 12, 8))
    # What stays is a factor of the product.
    assert any(step.source == "FusedMatMul" for step in plan.steps) == (opset == 13)


@needs_measured
@pytest.mark.parametrize("batch", ["batch", 2])
def test_computed_padding(batch: str | int) -> None:
    """Padding by the sizes of an image in a free batch stays (TensorFlow's "same" in timm): nor are the sizes of the
    convolution behind it known, which begins with no other one then.
    """
    nodes = (
        "s = Shape(x) g = Gather(s, height) by = Sub(more, g)"
        " p = Concat<axis=0>(none, none, by, by, none, none, by, by) around = Pad(x, p)"
        " a = Conv(around, w) b = Conv<pads=[1, 1, 1, 1]>(x, v) result = Add(a, b)"
    )
    filters = _normals(("w", (16, 16, 3, 3)), ("v", (16, 16, 3, 3)))
    constants: _Constants = {"height": [2], "more": [7], "none": [0], **filters}
    plan = _check(17, f"float[{batch}, 16, 6, 6]", "float[p, q, r, s]", nodes, constants, (2, 16, 6, 6))
    assert any(step.operator == "pad" for step in plan.steps) == (batch == "batch")


@needs_measured
@pytest.mark.parametrize("batch", ["batch", 2])
def test_averages_of_unknown_channels(batch: str | int) -> None:
    """Behind a Reshape to the sizes of an image in a free batch, pools stay in planes."""
    nodes = (
        "s = Shape(x) g = Gather(s, places) flat = Reshape(x, one) r = Reshape(flat, g)"
        " result = AveragePool<kernel_shape=[2, 2], strides=[2, 2]>(r)"
    )
    constants: _Constants = {"places": [0, 1, 2, 3], "one": [-1]}
    plan = _check(17, f"float[{batch}, 16, 6, 6]", "float[p, q, r, s]", nodes, constants, (2, 16, 6, 6))
    assert plan.steps[-1]["order"] == ("columns" if batch == "batch" or not _BLOCKS else "in_order")


@needs_measured
def test_filters_around_a_branch_that_is_always_taken() -> None:
    """They are constants of the same graph when its nodes have taken the place of the If: channels are blocked."""
    nodes = (
        "result = If(chosen)<then_branch = one_way () => (float[p, q, r, s] t) { t = Conv(x, w) },"
        " else_branch = other_way () => (float[p, q, r, s] e) { e = Neg(x) }>"
    )
    constants: _Constants = {"chosen": np.bool_(True), **_normals(("w", (16, 16, 3, 3)))}
    plan = _check(17, "float[batch, 16, 6, 6]", "float[p, q, r, s]", nodes, constants, (2, 16, 6, 6))
    assert bool(plan.steps[-1]["block"]) == _BLOCKS
    assert DIVIDED in plan.notes


@needs_measured
def test_a_branch_by_sizes_that_the_runtime_computes() -> None:
    """They follow from the file, but its inference does not know them: the If stays, and the Transpose beside it."""
    nodes = (
        "turned = Transpose<perm=[0, 2, 3, 1]>(x) s = Shape(turned) plane = Gather(s, places)"
        " sizes = Concat<axis=0>(front, plane) top = ReduceMax<keepdims=0>(x) by = Mul(v, top)"
        ' grown = Resize<mode="nearest">(by, , , sizes)'
        " t = Shape(grown) count = Gather(t, nought) chosen = Equal(count, one)"
        " y = If(chosen)<then_branch = one_way () => (float[a, b, c, d] p) { p = Neg(grown) },"
        " else_branch = other_way () => (float q) { q = Reshape(grown, t) }>"
        " z = Transpose<perm=[0, 2, 3, 1]>(y) sum = Add(turned, z) m = ReduceMean<axes=[-1]>(sum)"
        " result = Sub(sum, m)"
    )
    constants: _Constants = {
        "places": [1, 2],
        "front": [1, 40],
        "nought": [0],
        "one": [1],
        **_normals(("v", (1, 40, 3, 3))),
    }
    plan = _check(13, "float[batch, 40, 6, 6]", "float[k, l, m, n]", nodes, constants, (2, 40, 6, 6))
    assert any(step.operator == "if" for step in plan.steps)
    assert DIVIDED not in plan.notes


@needs_measured
@pytest.mark.parametrize("part", [8, 32, 100])
def test_a_constant_of_as_many_rows_as_a_quotient_of_free_sizes(part: int) -> None:
    """Sizes near each other have the same quotient, which is no size of the file (YOLOS, its positions resized)."""
    nodes = (
        "s = Shape(x) high = Gather(s, last) parts = Div(high, part) count = Unsqueeze(parts, nought)"
        " sizes = Concat<axis=0>(width, count) grown = Expand(column, sizes)"
        " q = QuantizeLinear(grown, hundredth, zero) d = DequantizeLinear(q, hundredth, zero)"
        " turned = Transpose<perm=[1, 0]>(d) a = QuantizeLinear(turned, hundredth, zero)"
        " b = DequantizeLinear(a, hundredth, zero) result = Relu(b)"
    )
    constants: _Constants = {
        "last": np.int64(1),
        "part": np.int64(part),
        "nought": [0],
        "width": [_WIDTH],
        "hundredth": np.float32(0.01),
        "zero": np.uint8(128),
        **_normals(("column", (_WIDTH, 1))),
    }
    for high in (64, 96) if part < 64 else (200, 300):
        _check(17, "float[batch, high]", "float[k, l]", nodes, constants, (2, high))


@needs_measured
def test_a_quotient_of_sizes_beside_channels_that_filters_say() -> None:
    """All sizes of an image are free, but one filter takes it: walks that fit it are asked further, too."""
    nodes = (
        "c = Conv(x, w) m = ReduceMax<keepdims=0>(c)"
        " s = Shape(x) high = Gather(s, two) parts = Div(high, eight) count = Unsqueeze(parts, nought)"
        " sizes = Concat<axis=0>(width, count) grown = Expand(column, sizes)"
        " q = QuantizeLinear(grown, hundredth, zero) d = DequantizeLinear(q, hundredth, zero)"
        " turned = Transpose<perm=[1, 0]>(d) a = QuantizeLinear(turned, hundredth, zero)"
        " b = DequantizeLinear(a, hundredth, zero) result = Mul(b, m)"
    )
    constants: _Constants = {
        "two": np.int64(2),
        "eight": np.int64(8),
        "nought": [0],
        "width": [_WIDTH],
        "hundredth": np.float32(0.01),
        "zero": np.uint8(128),
        **_normals(("column", (_WIDTH, 1)), ("w", (4, 3, 8, 8))),
    }
    for high in (32, 64, 96):
        _check(17, "float[batch, channels, high, wide]", "float[k, l]", nodes, constants, (2, 3, high, 64))
