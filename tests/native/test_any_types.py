"""Types and operators that few models use have kernels, too: none of these steps is left to the reference, whose bytes
they give, with any operands.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from bittrue import qnn
from bittrue.graph import data_type
from bittrue.importers.onnx_tensors import TYPES
from support.native import check_native, needs_native
from support.onnx_models import single
from support.onnx_operands import bits, broadcastable, numbers, shape

pytestmark = needs_native

NUMBERS = {name: number for number, name in TYPES.items() if number}
WHOLE = ("u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
NARROW = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f6e2m3", "f6e3m2", "f4e2m1")
REAL = ("f16", "bf16", "f32", "f64")
ALL = (*WHOLE, *NARROW, *REAL, "f8e8m0", "bool")
WIDE = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
NUMERICS = ("onnx", "onnxruntime", "onnxruntime@aarch64")
# What the reference alone can tell.
UNDEFINED = {"its results hold no elements"}


def drawn(rng: np.random.Generator, name: str, size: tuple[int, ...]) -> np.ndarray:
    """Any bits of the type, or of real numbers often usual ones and such around the ends of integers."""
    kind = data_type(name)
    if name in WHOLE and kind.bits < 8:
        return rng.integers(kind.minimum, kind.maximum + 1, size).astype(getattr(ml_dtypes, kind.title))
    if name in NARROW:
        width = 4 if name == "f4e2m1" else 6 if name.startswith("f6") else 8
        return rng.integers(0, 1 << width, size).astype(np.uint8).view(kind.numpy)
    if name not in REAL or rng.random() < 0.3:
        return bits(rng, size, kind.numpy)
    ends = rng.choice([0, 2**3, 2**7, 2**8, 2**16, 2**31, 2**32, 2**63, 2**64, 448, 57344], size).astype(np.float64)
    near = (ends + rng.choice([-1, -0.5, 0, 0.5, 1], size)) * rng.choice([-1, 1], size)
    usual = rng.normal(size=size) * np.exp2(rng.uniform(-12, 12, size))
    with np.errstate(all="ignore"):
        return np.asarray(np.where(rng.random(size) < 0.5, near, usual), np.float32).astype(kind.numpy)


def natively(content: bytes, feeds: list[np.ndarray], numerics: str) -> bool:
    """Whether the numerics has it; then all steps run natively and give the reference's bytes, or its refusal."""
    # Arrays at run time hold integers of 4 and 2 bits in bytes.
    feeds = [x.astype(data_type(x.dtype.name).numpy) if "int" in x.dtype.name else x for x in feeds]
    try:
        session = bittrue.load(content).prepare(numerics, executor="reference")
    except bittrue.BittrueError:
        return False
    native = bittrue.load(content).prepare(numerics, executor="native")
    assert set(native.missing.values()) <= UNDEFINED, (native.missing, str(session.plan))
    try:
        expected = session.trace(*feeds)
    except bittrue.RunError as refusal:
        with pytest.raises(bittrue.RunError, match=refusal.code):
            native.run(*feeds)
        return True
    check_native(session, [feeds], expected, isas=bittrue.isas()[:1], threads=(1, 3))
    return True


def rngs(request: pytest.FixtureRequest, count: int) -> list[np.random.Generator]:
    return [np.random.default_rng([request.config.option.seed, number]) for number in range(count)]


@pytest.mark.parametrize("numerics", NUMERICS)
def test_casts(numerics: str, request: pytest.FixtureRequest) -> None:
    ran = 0
    for rng in rngs(request, 120):
        source, target = (str(name) for name in rng.choice(ALL, 2))
        # Longer than a block, so that vectors and what is left of them lie in several.
        size = (int(rng.integers(1, 40)),) if rng.random() < 0.8 else (3, int(rng.integers(700, 1500)))
        attributes: dict[str, Any] = {"to": NUMBERS[target]}
        if target == "f8e8m0":
            attributes["round_mode"] = str(rng.choice(["up", "down", "nearest"]))
        if target in (*NARROW, "f8e8m0"):
            attributes["saturate"] = int(rng.integers(2))
        x = drawn(rng, source, size)
        content, feeds = single("Cast", {"x": x}, [NUMBERS[target]], attributes, opset=25)
        ran += natively(content, feeds, numerics)
    assert ran > 40


def places(rng: np.random.Generator, size: tuple[int, ...]) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of scales, and the attributes that say where they belong."""
    axis, kind = int(rng.integers(len(size))), rng.integers(3)
    if kind == 0:
        return (), {}
    if kind == 1:
        return (size[axis],), {"axis": axis}
    block = int(rng.integers(1, size[axis] + 1))
    return tuple(-(-n // block) if i == axis else n for i, n in enumerate(size)), {"axis": axis, "block_size": block}


@pytest.mark.parametrize("quantizes", [True, False])
@pytest.mark.parametrize("numerics", NUMERICS)
def test_scales_of_any_type(numerics: str, quantizes: bool, request: pytest.FixtureRequest) -> None:
    ran = 0
    for rng in rngs(request, 150):
        stored = str(rng.choice((*WHOLE[:8], "s32", *NARROW)))
        real = str(rng.choice(["f32", "f32", "f16", "bf16", "s32"]))
        other = real if numerics != "onnx" or rng.random() < 0.6 else str(rng.choice(["f32", "bf16", "f8e8m0", "s32"]))
        size = shape(rng, 1, 3, 0)
        if rng.random() < 0.1:
            size = (2, int(rng.integers(3000, 6000)))
        scale_size, attributes = places(rng, size)
        scales = drawn(rng, other, scale_size)
        if rng.random() < 0.8 and other != "f8e8m0":
            usual = np.exp2(rng.integers(-6, 3, scale_size)) * rng.choice([1, 1.25], scale_size)
            scales = np.asarray(np.maximum(usual, other == "s32"), np.float32).astype(data_type(other).numpy)
        points = drawn(rng, stored, scale_size)
        if stored not in WHOLE[:8] and rng.random() < 0.7:
            points = np.zeros(scale_size, points.dtype)
        x = drawn(rng, real if quantizes else stored, size)
        kind = stored if quantizes else str(rng.choice(["f32", "f16", "bf16"]))
        if quantizes and stored in NARROW[:4]:
            attributes["saturate"] = int(rng.integers(2))
        if quantizes and numerics == "onnx" and rng.random() < 0.4:
            attributes["precision"] = NUMBERS[str(rng.choice(REAL))]
        if not quantizes:
            attributes["output_dtype"] = NUMBERS[kind]
        operands: dict[str, np.ndarray | None] = {"x": x, "scale": scales, "zero": points}
        if not quantizes and rng.random() < 0.2:
            del operands["zero"]
        constants = [name for name in ("scale", "zero") if name in operands and rng.random() < 0.6]
        name = "QuantizeLinear" if quantizes else "DequantizeLinear"
        ran += natively(*single(name, operands, [NUMBERS[kind]], attributes, constants=constants, opset=25), numerics)
    assert ran > 10


@pytest.mark.parametrize("numerics", NUMERICS[:2])
def test_pairs_of_numbers(numerics: str, request: pytest.FixtureRequest) -> None:
    ran = 0
    for rng in rngs(request, 150):
        name = str(rng.choice(["Mod", "Div", "Add", "Sub", "Mul", "Equal", "Greater", "LessOrEqual", "Pow"]))
        kind = str(rng.choice((*WIDE, "f32", "f64") if name == "Mod" else WIDE))
        size = shape(rng, 0, 3)
        operands = [numbers(rng, size, data_type(kind).numpy) for _ in range(2)]
        if name == "Pow":
            operands[1] = numbers(rng, size, data_type(str(rng.choice(["s32", "s64", "f32", "f64"]))).numpy)
            operands[1] = np.full((), rng.integers(0, 4), operands[1].dtype) if rng.random() < 0.3 else operands[1]
        elif rng.random() < 0.8 and kind in WIDE:
            operands[1][operands[1] == 0] = 3
            if kind[0] == "s":
                # The runtime's process ends at the smallest number over -1.
                operands[1][operands[1] == -1] = -2 if rng.random() < 0.9 else -1
        if rng.random() < 0.3:
            operands[0] = operands[0][tuple(slice(0, n) for n in broadcastable(rng, size))]
        fmod = int(rng.integers(2))
        attributes = {"fmod": fmod if kind in WIDE else int(numerics == "onnxruntime" or fmod)} if name == "Mod" else {}
        target = TensorProto.BOOL if name in ("Equal", "Greater", "LessOrEqual") else NUMBERS[kind]
        inputs: dict[str, np.ndarray | None] = {"a": operands[0], "b": operands[1]}
        ran += natively(*single(name, inputs, [target], attributes), numerics)
    assert ran > 75


def test_signs(request: pytest.FixtureRequest) -> None:
    for rng in rngs(request, 3):
        for kind in (*WIDE, *REAL):
            x = numbers(rng, (37,), np.float32 if kind == "bf16" else data_type(kind).numpy)
            natively(*single("Sign", {"x": x.astype(data_type(kind).numpy)}, [NUMBERS[kind]]), "onnxruntime")


REDUCTIONS = ("Sum", "Mean", "SumSquare", "L1", "L2", "LogSum", "LogSumExp", "Prod")


@pytest.mark.parametrize("kind", ["s32", "s64", "f32", "f64"])
def test_reductions(kind: str, request: pytest.FixtureRequest) -> None:
    """Numbers whose sums are exact in binary64, and such whose order matters."""
    ran = 0
    for rng in rngs(request, 100):
        size = tuple(int(n) for n in rng.integers(1, 8, rng.integers(1, 5)))
        if rng.random() < 0.2:
            size = (int(rng.integers(1, 4)), int(rng.integers(250, 400)), int(rng.integers(1, 4)))
        x = (
            rng.normal(size=size).astype(data_type(kind).numpy)
            if kind[0] == "f"
            else bits(rng, size, data_type(kind).numpy)
        )
        if kind[0] == "s" and rng.random() < 0.6:
            x = np.asarray(x >> rng.integers(0, x.itemsize * 8 - 2), x.dtype)
        axes = np.flatnonzero(rng.random(len(size)) < 0.5)
        inputs: dict[str, np.ndarray | None] = {"x": x, "axes": axes} if axes.size else {"x": x}
        content, feeds = single(f"Reduce{rng.choice(REDUCTIONS)}", inputs, [NUMBERS[kind]], constants=["axes"])
        ran += natively(content, feeds, "onnxruntime")
    assert ran > 50


def test_rows_and_sums_of_doubles(request: pytest.FixtureRequest) -> None:
    for rng in rngs(request, 40):
        size = tuple(int(n) for n in rng.integers(1, 9, rng.integers(1, 5)))
        x: np.ndarray = rng.normal(size=size) * 3
        name = str(rng.choice(["Softmax", "LogSoftmax"]))
        axis = int(rng.integers(len(size)))
        assert natively(*single(name, {"x": x}, [NUMBERS["f64"]], {"axis": axis}, opset=13), "onnxruntime")
        operands: dict[str, np.ndarray | None] = {f"x{i}": rng.normal(size=size) for i in range(rng.integers(2, 5))}
        assert natively(*single("Sum", operands, [NUMBERS["f64"]]), "onnxruntime")


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_last_of_equal_numbers(name: str, request: pytest.FixtureRequest) -> None:
    ran = 0
    for rng in rngs(request, 60):
        kind = str(rng.choice(["u8", "s8", "s32", "s64", "f32", "f64"]))
        size = tuple(int(n) for n in rng.integers(1, 9, rng.integers(1, 4)))
        x = numbers(rng, size, data_type(kind).numpy)
        if kind[0] == "f":
            x[rng.random(size) < 0.3] = np.nan
        attributes = {"axis": int(rng.integers(len(size))), "select_last_index": 1}
        ran += natively(*single(name, {"x": x}, [NUMBERS["s64"]], attributes), "onnxruntime")
    assert ran > 30


def test_signals_and_places_of_doubles(request: pytest.FixtureRequest) -> None:
    """Fourier transforms of lengths that are powers of two and others, grids of places, regions."""
    ran = 0
    for rng in rngs(request, 30):
        inverse, onesided = int(rng.integers(2)), int(rng.integers(2))
        length = int(rng.integers(2, 40))
        x = rng.normal(size=(2, length, 3, 2 if inverse or rng.random() < 0.5 else 1))
        operands: dict[str, np.ndarray | None] = {"x": x, "length": None, "axis": np.asarray(1, np.int64)}
        attributes = {"inverse": inverse, "onesided": int(onesided and (inverse == 1 or x.shape[-1] == 1))}
        ran += natively(
            *single("DFT", operands, [NUMBERS["f64"]], attributes, constants=["axis"], opset=20), "onnxruntime"
        )
        rank = int(rng.integers(2, 4))
        sizes = np.asarray([2, 3, *rng.integers(1, 7, rank)], np.int64)
        matrices = rng.normal(size=(2, rank, rank + 1))
        grid: dict[str, np.ndarray | None] = {"theta": matrices, "size": sizes}
        attributes = {"align_corners": int(rng.integers(2))}
        assert natively(*single("AffineGrid", grid, [NUMBERS["f64"]], attributes, constants=["size"]), "onnxruntime")
        corners = np.sort(rng.uniform(-2, 12, (5, 2, 2)), axis=1).reshape(5, 4)
        regions: dict[str, np.ndarray | None] = {
            "x": rng.normal(size=(2, 3, 8, 9)),
            "rois": corners,
            "batch_indices": rng.integers(0, 2, 5),
        }
        pooled = {"output_height": 2, "output_width": 3, "sampling_ratio": int(rng.integers(3))}
        mode = {"mode": str(rng.choice(["avg", "max"])), **pooled}
        assert natively(*single("RoiAlign", regions, [NUMBERS["f64"]], mode, opset=16), "onnxruntime")
    assert ran > 10


@pytest.mark.parametrize("numerics", NUMERICS[:2])
@pytest.mark.parametrize("late", [True, False])
def test_layers_of_any_scales(late: bool, numerics: str, request: pytest.FixtureRequest) -> None:
    """Products and convolutions whose scales only running tells, or whose quotients are rounded exactly, with ties."""
    ran = 0
    for rng in rngs(request, 60):
        kind = str(rng.choice(["u8", "s8"]))
        real = "f32" if rng.random() < 0.7 or numerics != "onnx" else "f16"
        convolves = rng.random() < 0.5
        filters, depth = int(rng.integers(1, 20)), int(rng.integers(1, 30))
        sizes = ((2, depth, 5, 6), (filters, depth, 3, 2)) if convolves else ((4, depth), (depth, filters))
        a, b = (drawn(rng, kind, size) for size in sizes)
        count = (filters,) if rng.random() < 0.4 else ()
        scales = [np.exp2(rng.integers(-7, 2, n)) * rng.choice([1, 1, 1.5, 1.1], n) for n in ((), count, ())]
        names = ("a", "a_scale", "a_point", "b", "b_scale", "b_point", "y_scale", "y_point")
        points = [drawn(rng, kind, ()), drawn(rng, kind, count), drawn(rng, kind, ())]
        if kind == "s8" or numerics != "onnx":
            points[1] = np.zeros(count, points[1].dtype)
        scaled = [np.asarray(scale, data_type(real).numpy) for scale in scales]
        values = (a, scaled[0], points[0], b, scaled[1], points[1], scaled[2], points[2])
        inputs: dict[str, np.ndarray | None] = dict(zip(names, values, strict=True))
        constants = ["b"] if convolves or rng.random() < 0.5 else []
        constants += [] if late else [name for name in names if "scale" in name or "point" in name]
        name = "QLinearConv" if convolves else "QLinearMatMul"
        ran += natively(*single(name, inputs, [NUMBERS[kind]], constants=constants), numerics)
    assert ran > 20 or (numerics != "onnx" and late)


@pytest.mark.parametrize("last", [True, False])
def test_layers_of_16_bits(last: bool, request: pytest.FixtureRequest) -> None:
    """Differences that leave 16 bits come out on the other side; padding is the zero point."""
    for rng in rngs(request, 25):
        kind, other = str(rng.choice(["int16", "int8", "uint8"])), str(rng.choice(["int8", "uint8"]))
        ends = [np.iinfo(name) for name in (kind, other)]
        point, other_point = (int(rng.integers(max(-600, one.min), min(600, one.max))) for one in ends)
        wide = str(rng.choice(["int32", "int64"]))
        rows, depth, units = (int(n) for n in rng.integers(1, 40, 3))
        x = rng.integers(ends[0].min, ends[0].max + 1, (rows, depth)).astype(kind)
        w = rng.integers(ends[1].min, ends[1].max + 1, (units, depth)).astype(other)
        product = qnn.dense(qnn.var("x", x.shape, kind), w, point, other_point, 0.1, 0.2, units=units, out_dtype=wide)
        groups, part, filters = (int(n) for n in rng.integers(1, 4, 3))
        size = (2, 6, 5, groups * part) if last else (2, groups * part, 6, 5)
        image = rng.integers(ends[0].min, ends[0].max + 1, size).astype(kind)
        shape = (3, 2, part, groups * filters) if last else (groups * filters, part, 3, 2)
        kernel = rng.integers(ends[1].min, ends[1].max + 1, shape).astype(other)
        layout: dict[str, Any] = {"data_layout": "NHWC", "kernel_layout": "HWIO"} if last else {}
        counts: dict[str, Any] = {
            "kernel_size": (3, 2),
            "channels": groups * filters,
            "groups": groups,
            "padding": (1, 0),
        }
        sums = qnn.conv2d(
            qnn.var("x", size, kind),
            kernel,
            point,
            other_point,
            0.1,
            0.2,
            strides=(2, 1),
            out_dtype=wide,
            **counts,
            **layout,
        )
        for result, given in ((product, x), (sums, image)):
            try:
                session = qnn.model(result).prepare("tvm-qnn", executor="reference")
            except bittrue.BittrueError:
                # Sums of 64 bits of products of 8 bits, and the like, have no rows.
                continue
            native = qnn.model(result).prepare("tvm-qnn", executor="native")
            assert not native.missing
            check_native(session, [[given]], session.trace(given), isas=bittrue.isas()[:1], threads=(1, 3))


def test_pools_of_any_form(request: pytest.FixtureRequest) -> None:
    """Largest integers of up to 32 bits; windows with gaps, and such that miss the image; channels first and last."""
    for rng in rngs(request, 30):
        kind = str(rng.choice(["uint8", "int8", "uint16", "int16", "int32"]))
        last, ends = bool(rng.integers(2)), np.iinfo(kind)
        sizes, taps, gaps = ([int(n) for n in rng.integers(low, high, 2)] for low, high in ((1, 8), (1, 4), (1, 3)))
        pads = [(count - 1) * gap + int(rng.integers(2)) for count, gap in zip(taps, gaps, strict=True)]
        shape = (2, *sizes, 3) if last else (2, 3, *sizes)
        x = rng.integers(ends.min, ends.max, shape, kind, True)
        pool = qnn.max_pool2d(
            qnn.var("x", shape, kind),
            tuple(taps),
            tuple(int(n) for n in rng.integers(1, 3, 2)),
            tuple(gaps),
            tuple(pads),
            layout="NHWC" if last else "NCHW",
        )
        session = qnn.model(pool).prepare("tvm-qnn", executor="reference")
        native = qnn.model(pool).prepare("tvm-qnn", executor="native")
        assert not native.missing
        check_native(session, [[x]], session.trace(x), isas=bittrue.isas()[:1], threads=(1, 3))


def test_products_whose_addend_has_a_factor(request: pytest.FixtureRequest) -> None:
    for rng in rngs(request, 40):
        kind = str(rng.choice(["f32", "f32", "f64"]))
        turned = [int(rng.integers(2)) for _ in range(2)]
        rows, depth, columns = int(rng.choice([1, 2, 50])), int(rng.integers(1, 300)), int(rng.choice([1, 8, 70]))
        # A single column, and rows that are no neighbours, have an order that no kernel has.
        columns += turned[0]
        a, b = (
            rng.normal(size=size[::-1] if way else size).astype(data_type(kind).numpy)
            for size, way in zip(((rows, depth), (depth, columns)), turned, strict=True)
        )
        added = [(), (columns,), (rows, 1), (1, columns), (rows, columns)][int(rng.integers(5))]
        c = np.asarray(rng.normal(size=added), data_type(kind).numpy)
        attributes: dict[str, Any] = {"transA": turned[0], "transB": turned[1]}
        attributes |= {"beta": float(rng.choice([0, 0.3, 1, -2])), "alpha": float(rng.choice([1, 0.7]))}
        constants = ["b"] if rng.random() < 0.5 else []
        natively(
            *single("Gemm", {"a": a, "b": b, "c": c}, [NUMBERS[kind]], attributes, constants=constants), "onnxruntime"
        )
