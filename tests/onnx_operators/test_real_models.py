"""What real files of networks showed, as small graphs: ONNX Runtime's bytes, all of its optimisers at work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import bittrue
from support.onnx_models import HERE, check, needs_measured, options

_RNG = np.random.default_rng(5)
_VALUES = {
    name: _RNG.standard_normal(shape).astype(np.float32)
    for name, shape in {"scale": 33, "bias": 33, "w": (8, 4), "c": 4}.items()
} | {
    "two": np.float32(2),
    "half": np.float16(2),
    "epsilon": np.float32(1e-5),
    "begin": np.array([1], np.int32),
    "end": np.array([9], np.int32),
    "axis": np.array([0], np.int32),
    "zero": np.array([0]),
    "one": np.array([1]),
    "eight": np.array([8]),
    "planes": np.array([1, -1, 8, 1]),
    "filters": _RNG.standard_normal((2, 3, 1, 1)).astype(np.float32),
    "around": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "shift": np.array([0.3, -0.2], np.float32),
    "large": np.float32(0.9),
    "zero_point": np.int8(-100),
    "step": np.float32(0.03),
    "coarse": np.float32(0.2),
    "point": np.int8(3),
    "true": np.array(True),
    "offset": _RNG.standard_normal(8).astype(np.float32),
    "thin": _RNG.standard_normal((8, 3, 1, 1)).astype(np.float32),
    "wide": _RNG.standard_normal((32, 8, 1, 1)).astype(np.float32),
    "narrow": _RNG.standard_normal((8, 32, 1, 1)).astype(np.float32),
    "square": _RNG.standard_normal((300, 300)).astype(np.float32),
    "three": np.array(3),
}
_NORMALIZED = """
    m = ReduceMean <axes=[-1]> (x) d = Sub (x, m) p = Pow (d, two) v = ReduceMean <axes=[-1]> (p) e = Add (v, epsilon)
    r = Sqrt (e) q = Div (d, r) k = Mul (q, scale) z = Add (k, bias)
"""
_GRAPHS = {
    "a branch reads constants of the graph around it": f"""(float[3, 33] x, bool on) => (float[3, 33] y)
        {{ y = If (on) <then_branch = a () => (float[3, 33] z) {{ {_NORMALIZED} }},
        else_branch = b () => (float[3, 33] i) {{ i = Identity (x) }}> }}""",
    "the exponent is a cast that another node reads": f"""(float[3, 33] x) => (float[3, 33] z, float[3, 33] o)
        {{ two = Cast <to=1> (half) o = Pow (x, two) {_NORMALIZED} }}""",
    "a Slice with s32 axes moves": """(float[3, 12, 5] x) => (float[3, 8, 5] z)
        { a = Transpose <perm=[1, 0, 2]> (x) b = Slice (a, begin, end, axis) z = Transpose <perm=[1, 0, 2]> (b) }""",
}


def _model(text: str, version: int = 13) -> bytes:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {version}]> g {text}')
    written = {name for node in model.graph.node for name in node.output}
    for name in sorted(_VALUES.keys() - written):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(_VALUES[name]), name))
    return model.SerializeToString()


@needs_measured
@pytest.mark.parametrize("name", _GRAPHS)
def test_bytes(name: str) -> None:
    rng = np.random.default_rng(7)
    content = _model(_GRAPHS[name])
    feeds = [rng.standard_normal((3, 12, 5) if "Slice" in name else (3, 33)).astype(np.float32)]
    assert check(content, [*feeds, np.array(True)] if "branch" in name else feeds) == "equal"


@pytest.mark.parametrize("version", [13, 14])
@pytest.mark.parametrize(
    "sizes",
    [
        "s = Shape (h)",
        "a = Shape (h) s = Abs (a)",
        "a = Shape (h) b = Slice (a, zero, one) s = Concat <axis=0> (b, eight)",
    ],
)
def test_ranks_behind_computed_shapes(version: int, sizes: str, tmp_path: Path) -> None:
    """The sum joins the product where the runtime knows that the product has two dimensions."""
    content = _model(
        f"""(float[n, 8] x) => (float[n, 4] z) {{ h = Relu (x) p = Reshape (h, planes) q = Sigmoid (p) {sizes}
        y = Reshape (q, s) product = MatMul (y, w) z = Add (product, c) }}""",
        version,
    )
    chosen = options()
    chosen.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"])
    left = {node.op_type for node in onnx.load(chosen.optimized_model_filepath).graph.node}
    traced = bittrue.load(content).prepare(HERE).trace({"x": np.ones((2, 8), np.float32)})
    assert ("product" in traced) == ("MatMul" in left)


def _pair(source: str, name: str) -> str:
    """A pair behind `source`, whose result is d and the name."""
    return f"q{name} = QuantizeLinear ({source}, step, point) d{name} = DequantizeLinear (q{name}, step, point)"


@needs_measured
def test_branch_knows_shapes_around_it() -> None:
    """The sum joins the product, since the runtime knows how many dimensions a value from outside has."""
    feeds = [np.random.default_rng(7).standard_normal((3, 8)).astype(np.float32), np.array(True)]
    for around in ("", "k = Relu (x)"):
        text = f"""(float[3, 8] x, bool on) => (float[3, 4] y)
            {{ {around} y = If (on) <then_branch = a () => (float[3, 4] z) {{ {_pair("k" if around else "x", "x")}
            {_pair("w", "w")} m = MatMul (dx, dw) z = Add (m, c) }},
            else_branch = b () => (float[3, 4] n) {{ n = MatMul (x, w) }}> }}"""
        assert check(_model(text), feeds) == "equal"


@needs_measured
def test_convolutions_by_filters_around_them() -> None:
    """Filters of the graph around a branch are real ones between pairs, too, and their images stay in planes."""
    image = np.random.default_rng(7).standard_normal((1, 3, 5, 5)).astype(np.float32)
    for chain in (
        "z = Conv (x, filters)",
        f"""{_pair("x", "x")} r = Conv (dx, filters) {_pair("r", "r")} z = Relu (dr)""",
    ):
        text = f"""(float[1, 3, 5, 5] x, bool on) => (float y)
            {{ y = If (on) <then_branch = a () => (float z) {{ {chain} }},
            else_branch = b () => (float n) {{ n = Relu (x) }}> }}"""
        assert check(_model(text), [image, np.array(True)]) == "equal"


@needs_measured
def test_carried_images_of_unknown_rank() -> None:
    """Transpositions move in the body of a loop although nothing says how many dimensions there are."""
    text = f"""(float[1, 4, 4, 3] x) => (float[1, 4, 4, 3] z, float[3, 1, 2, 1, 1] y) {{ z, y = Loop (three, true, x)
        <body = b (int64 i, bool on, float[] s) => (bool go, float[] next, float[1, 2, 1, 1] r) {{ go = Identity (on)
        t = Transpose <perm=[0, 3, 1, 2]> (s) {_pair("t", "t")} a = AveragePool <kernel_shape=[2, 2]> (dt)
        u = Transpose <perm=[0, 2, 3, 1]> (a) {_pair("u", "u")} m = ReduceMean <axes=[1, 2], keepdims=1> (du)
        v = Transpose <perm=[0, 3, 1, 2]> (m) {_pair("v", "v")}
        r = Conv (dv, filters) next = Mul (s, coarse) }}> }}"""
    feeds = [np.random.default_rng(7).standard_normal((1, 4, 4, 3)).astype(np.float32)]
    assert check(_model(text), feeds) == "equal"


@needs_measured
def test_pairs_stop_before_quantizations() -> None:
    """A pair does not move past a transposition that a quantization reads besides, so filters stay real."""
    text = """(int8[2, 4, 4, 3] x) => (int8[2, 3, 4, 4] y, int8[2, 2, 4, 4] z)
        { d = DequantizeLinear (x, step, point) t = Transpose <perm=[0, 3, 1, 2]> (d)
        y = QuantizeLinear (t, coarse, point) c = Conv (t, filters) z = QuantizeLinear (c, coarse, point) }"""
    feeds = [np.random.default_rng(7).integers(-128, 128, (2, 4, 4, 3)).astype(np.int8)]
    assert check(_model(text), feeds) == "equal"


@needs_measured
@pytest.mark.parametrize(
    "window",
    [
        "y = MaxPool <kernel_shape=[3, 3], pads=[1, 0, 0, 1]> (p)",
        'y = MaxPool <kernel_shape=[3, 3], auto_pad="VALID"> (p)',
        "y = AveragePool <kernel_shape=[3, 3], strides=[2, 2], count_include_pad=1, ceil_mode=1> (p)",
        "h = Cast <to=10> (p) m = MaxPool <kernel_shape=[3, 3]> (h) y = Cast <to=1> (m)",
        f"c = Conv (p, filters) {_pair('c', 'c')} y = Relu (dc)",
    ],
)
def test_zeros_around_windows(window: str) -> None:
    """The runtime makes them padding, so that a maximum does not see them; what is all negative shows it."""
    text = f"(float[1, 3, 5, 5] x) => (float y) {{ {_pair('x', 'x')} p = Pad (dx, around) {window} }}"
    image = np.random.default_rng(7).uniform(-3, -1, (1, 3, 5, 5)).astype(np.float32)
    assert check(_model(text), [image]) == "equal"


def _check_run(content: bytes, image: np.ndarray) -> None:
    """The bytes of y, from a session that is told nothing but `image`."""
    (expected,) = onnxruntime.InferenceSession(content, options(), ["CPUExecutionProvider"]).run(None, {"x": image})
    for executor in ("native", "reference"):
        found = bittrue.load(content).prepare(HERE, executor=executor).run(image)
        assert found["y"].tobytes() == expected.tobytes()


@needs_measured
def test_initial_values_of_inputs_as_bias() -> None:
    """As Brevitas exports: what callers may replace is quantized anew in every run where it is a bias between pairs."""
    text = f"""(float[1, 3, 5, 5] x, float[2] shift, float large) => (float y) {{ {_pair("x", "x")}
        qw = QuantizeLinear (filters, large, point) dw = DequantizeLinear (qw, large, point)
        c = Conv (dx, dw, shift) {_pair("c", "c")} y = Relu (dc) }}"""
    _check_run(_model(text), np.random.default_rng(7).standard_normal((1, 3, 5, 5)).astype(np.float32))


@needs_measured
def test_two_pairs_that_a_transposition_parts() -> None:
    """They stay two, since the transposition ends between the second quantization and one of what dequantizes it."""
    text = f"""(float[1, 4, 4, 3] x) => (float[1, 2, 4, 4] y, float[1, 4, 4, 3] z) {{ {_pair("x", "x")}
        a = Add (dx, dx) qa = QuantizeLinear (a, coarse, zero_point) da = DequantizeLinear (qa, coarse, zero_point)
        t = Transpose <perm=[0, 3, 1, 2]> (da) {_pair("t", "t")} {_pair("filters", "w")} y = Conv (dt, dw)
        u = Transpose <perm=[0, 2, 3, 1]> (dt) {_pair("u", "u")} z = Sigmoid (du) }}"""
    image = np.random.default_rng(7).standard_normal((1, 4, 4, 3)).astype(np.float32)
    assert check(_model(text), [image]) == "equal"


@needs_measured
def test_weights_that_a_loop_carries() -> None:
    """As Keras' recurrent layers come: to the runtime they are no constants, so their product is not prepared."""
    text = """(float[1, 300] x) => (float[1, 300] y, float[300, 300] z) { y, z = Loop (three, true, x, square)
        <body = b (int64 i, bool on, float[1, 300] s, float[300, 300] k)
        => (bool go, float[1, 300] n, float[300, 300] k)
        { go = Identity (on) n = MatMul (s, k) }> }"""
    feeds = [np.random.default_rng(7).standard_normal((1, 300)).astype(np.float32)]
    assert check(_model(text), feeds) == "equal"


@needs_measured
def test_sums_of_images_of_unknown_sizes() -> None:
    """The runtime does not follow sizes through convolutions that read fewer channels than a block has (PP-OCR)."""
    text = """(float[n, 3, s, s] x) => (float[n, 8, t, t] y)
        { a = Conv (x, thin) b = Conv (a, wide) c = Conv (b, narrow, offset) y = Add (a, c) }"""
    _check_run(_model(text), np.random.default_rng(7).standard_normal((1, 3, 5, 9)).astype(np.float32))
