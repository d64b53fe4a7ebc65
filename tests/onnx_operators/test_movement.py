"""Data movement: reshape, flatten, squeeze, expand_dims, identity, concatenation, split, slice_axes,
broadcast_to, tile, pad, select, fill, range, shape, space_to_depth, depth_to_space
against ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.onnx_models import Checks, build, check, natively, single
from support.onnx_operands import Case, bits, kind, one_type, ordinary, shape

I64 = np.int64


def factor(rng: np.random.Generator, count: int) -> list[int]:
    """Dimensions that multiply to `count`."""
    found = []
    for prime in (2, 3, 5):
        while count and count % prime == 0:
            found.append(prime)
            count //= prime
    sizes = [1] * int(rng.integers(1, 5))
    for prime in found:
        sizes[rng.integers(len(sizes))] *= prime
    if count != 1:
        sizes[rng.integers(len(sizes))] *= count
    return sizes


def reshape(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng), one_type(rng))
    target = factor(rng, x.size)
    if rng.random() < 0.4:
        target[rng.integers(len(target))] = -1
    for at in range(len(target)):
        if at < x.ndim and rng.random() < 0.3:
            target[at] = int(rng.choice([0, x.shape[at]]))
    if not x.ndim and rng.random() < 0.5:
        target = []
    attributes = {"allowzero": int(rng.integers(2))} if rng.random() < 0.4 else {}
    opset = 21 if attributes else int(rng.integers(8, 25))
    return "Reshape", {"x": x, "shape": np.array(target, I64)}, [kind(x.dtype)], attributes, opset


def flatten(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng), one_type(rng))
    opset = int(rng.integers(9, 25))
    attributes = {"axis": int(rng.integers(-x.ndim if opset > 10 else 0, x.ndim + 1))} if rng.random() < 0.8 else {}
    return "Flatten", {"x": x}, [kind(x.dtype)], attributes, opset


def squeeze(rng: np.random.Generator) -> Case:
    sizes = [int(e) if rng.random() < 0.4 else 1 for e in shape(rng)]
    x = bits(rng, sizes, one_type(rng))
    ones = [a - (x.ndim if rng.random() < 0.4 else 0) for a, e in enumerate(sizes) if e == 1 and rng.random() < 0.6]
    if rng.random() < 0.1:
        ones.append(int(rng.integers(-6, 6)))
    opset = int(rng.integers(11, 25))
    if rng.random() < 0.2:
        return "Squeeze", {"x": x}, [kind(x.dtype)], {}, opset
    if opset < 13:
        return "Squeeze", {"x": x}, [kind(x.dtype)], {"axes": ones} if ones else {}, opset
    return "Squeeze", {"x": x, "axes": np.array(ones, I64)}, [kind(x.dtype)], {}, opset


def unsqueeze(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 0, 3), one_type(rng))
    count = int(rng.integers(1, 4))
    rank = x.ndim + count
    axes = [int(a) - (rank if rng.random() < 0.4 else 0) for a in rng.permutation(rank)[:count]]
    if rng.random() < 0.05:
        axes[0] = int(rng.integers(-9, 9))
    opset = int(rng.integers(11, 25))
    if opset < 13:
        return "Unsqueeze", {"x": x}, [kind(x.dtype)], {"axes": axes}, opset
    return "Unsqueeze", {"x": x, "axes": np.array(axes, I64)}, [kind(x.dtype)], {}, opset


def identity(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng), one_type(rng))
    return "Identity", {"x": x}, [kind(x.dtype)], {}, int(rng.integers(8, 25))


def dropout(rng: np.random.Generator) -> Case:
    x = ordinary(bits(rng, shape(rng), rng.choice(["f4", "f8", "f2"])))
    opset = int(rng.integers(10, 25))
    return "Dropout", {"x": x}, [kind(x.dtype), TensorProto.BOOL][: int(rng.integers(1, 3))], {}, opset


def concat(rng: np.random.Generator) -> Case:
    dtype, base = one_type(rng), list(shape(rng, 1, 4))
    axis = int(rng.integers(-len(base), len(base)))
    parts = {}
    for number in range(int(rng.integers(1, 6))):
        base[axis] = int(rng.integers(0, 5)) if rng.random() < 0.8 else 1
        parts[f"x{number}"] = bits(rng, base, dtype)
    if rng.random() < 0.05:
        parts["x0"] = bits(rng, [e + 1 for e in base], dtype)
    return "Concat", parts, [kind(dtype)], {"axis": axis}, int(rng.integers(11, 25))


def split(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    axis = int(rng.integers(-x.ndim, x.ndim))
    count = int(rng.integers(1, 5))
    sizes = rng.multinomial(x.shape[axis], [1 / count] * count).astype(I64)
    if rng.random() < 0.05:
        sizes[0] += int(rng.choice([-1, 1]))
    opset, given = int(rng.integers(11, 25)), rng.random() < 0.6
    inputs: dict[str, np.ndarray | None] = {"x": x}
    attributes: dict[str, Any] = {"axis": axis}
    if given and opset < 13:
        attributes["split"] = [int(s) for s in sizes]
    elif given:
        inputs["split"] = sizes
    elif opset >= 18:
        attributes["num_outputs"] = count
    return "Split", inputs, [kind(x.dtype)] * count, attributes, opset


def slice_(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    count = int(rng.integers(1, x.ndim + 1))
    axes = rng.permutation(x.ndim)[:count]
    if rng.random() < 0.3:
        axes = np.arange(count)
    signed = np.where(rng.random(count) < 0.3, axes - x.ndim, axes)
    index = np.int32 if rng.random() < 0.3 else I64
    far = np.iinfo(index)
    extremes = [far.min, far.max, 2**31 - 1, -1, 0, 1]
    opset = int(rng.integers(9, 25))

    def places() -> np.ndarray:
        return np.where(rng.random(count) < 0.2, rng.choice(extremes, count), rng.integers(-7, 8, count)).astype(index)

    starts, ends = places(), places()
    if opset < 10:
        attributes = {"starts": starts.tolist(), "ends": ends.tolist()}
        return "Slice", {"x": x}, [kind(x.dtype)], {**attributes, "axes": axes.tolist()}, opset
    inputs: dict[str, np.ndarray | None] = {"x": x, "starts": starts, "ends": ends, "axes": signed.astype(index)}
    steps = rng.choice([1, 1, 2, 3, -1, -2, -3, far.max, far.min, *([0] if rng.random() < 0.1 else [])], count)
    if rng.random() < 0.7:
        inputs["steps"] = steps.astype(index)
    if rng.random() < 0.2:
        inputs["axes"] = None if "steps" in inputs else inputs.pop("axes")
        if "steps" not in inputs:
            del inputs["axes"]
    return "Slice", inputs, [kind(x.dtype)], {}, opset


def expand(rng: np.random.Generator) -> Case:
    base = shape(rng, 0, 4)
    x = bits(rng, [e if rng.random() < 0.6 else 1 for e in base], one_type(rng))
    wanted = [e if rng.random() < 0.6 or x.shape[a] != e else 1 for a, e in enumerate(base)]
    ahead = [int(e) for e in rng.integers(1, 3, rng.integers(3))]
    wanted = wanted[int(rng.integers(0, 2)) :] if rng.random() < 0.3 else [*ahead, *wanted]
    if rng.random() < 0.05 and wanted:
        wanted[0] = 7
    return "Expand", {"x": x, "shape": np.array(wanted, I64)}, [kind(x.dtype)], {}, int(rng.integers(8, 25))


def tile(rng: np.random.Generator) -> Case:
    x = ordinary(bits(rng, shape(rng, 0, 4), one_type(rng)))
    times = rng.integers(0 if rng.random() < 0.1 else 1, 4, x.ndim)
    if rng.random() < 0.05:
        times = np.append(times, 1)
    return "Tile", {"x": x, "repeats": times.astype(I64)}, [kind(x.dtype)], {}, int(rng.integers(8, 25))


def pad(rng: np.random.Generator) -> Case:
    opset = int(rng.integers(11, 25))
    dtype = np.dtype(rng.choice("f4 f8 f2 u1 i1 i4 i8 u4 u8 ?".split()[: 10 if opset >= 13 else 2]))
    x = ordinary(bits(rng, shape(rng, 1, 4), dtype))
    mode = str(rng.choice(["constant", "reflect", "edge", "wrap"]))
    count = x.ndim
    axes = None
    if opset >= 18 and rng.random() < 0.4:
        axes = rng.permutation(x.ndim)[: int(rng.integers(1, x.ndim + 1))]
        count = axes.size
    pads = rng.integers(0, 4, 2 * count) * (rng.random(2 * count) < 0.7)
    if rng.random() < 0.25:
        pads = rng.integers(-3, 4, 2 * count)
    inputs: dict[str, np.ndarray | None] = {"x": x, "pads": pads.astype(I64)}
    if rng.random() < 0.5:
        inputs["value"] = ordinary(bits(rng, (1,), dtype)).reshape(())
    if axes is not None:
        inputs.setdefault("value", None)
        signed = np.where(rng.random(count) < 0.3, axes - x.ndim, axes)
        inputs["axes"] = signed.astype(I64)
    return "Pad", inputs, [kind(dtype)], {"mode": mode}, opset


def old_pad(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), "f4")
    pads = rng.integers(-1 if rng.random() < 0.2 else 0, 4, 2 * x.ndim)
    attributes = {"pads": pads.tolist(), "value": float(np.float32(rng.normal()))}
    return (
        "Pad",
        {"x": x},
        [kind("f4")],
        {**attributes, "mode": str(rng.choice(["constant", "edge", "reflect", "wrap"]))},
        10,
    )


def where(rng: np.random.Generator) -> Case:
    base = shape(rng, 0, 4)
    dtype = np.dtype(rng.choice("f4 f8 f2 u1 i1 i4 i8 u4".split()))

    def some() -> list[int]:
        return [e if rng.random() < 0.7 else 1 for e in base][int(rng.integers(0, 3)) :]

    inputs = {"c": bits(rng, some(), "?"), **{name: ordinary(bits(rng, some(), dtype)) for name in "ab"}}
    if dtype.kind == "f":  # zeros lose their signs by the side that they stand on
        for name in "ab":
            signed = rng.random(inputs[name].shape) < 0.4
            inputs[name] = np.where(signed, rng.choice(np.array([0.0, -0.0], dtype), inputs[name].shape), inputs[name])
    return "Where", inputs, [kind(dtype)], {}, int(rng.integers(9, 25))


def range_(rng: np.random.Generator) -> Case:
    dtype = np.dtype(rng.choice("f4 f8 i2 i4 i8".split()))
    draws = rng.normal(size=3) * [5, 20, 1] if dtype.kind == "f" else rng.integers(-20, 20, 3)
    if dtype.kind == "f" and rng.random() < 0.5:
        draws = np.round(draws, 1)
    values = [np.array(v, dtype) for v in draws]
    if dtype.kind == "f" and rng.random() < 0.05:
        values[rng.integers(3)] = np.array(np.nan, dtype)
    if dtype.kind == "f" and abs(values[2]) < 0.01:
        values[2] = np.array(0.5, dtype)
    return "Range", dict(zip("abc", values, strict=True)), [kind(dtype)], {}, int(rng.integers(11, 25))


def shape_(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng), one_type(rng))
    opset = int(rng.integers(8, 25))
    attributes = {}
    if opset >= 15:
        attributes = {key: int(rng.integers(-7, 8)) for key in ("start", "end") if rng.random() < 0.6}
    return "Shape", {"x": x}, [TensorProto.INT64], attributes, opset


def size(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng), one_type(rng))
    return "Size", {"x": x}, [TensorProto.INT64], {}, int(rng.integers(8, 25))


def constant_of_shape(rng: np.random.Generator) -> Case:
    dtype, attributes = np.dtype(np.float32), {}
    if rng.random() < 0.8:
        dtype = one_type(rng)
        value = bits(rng, (1,), dtype)
        attributes = {"value": helper.make_tensor("value", kind(dtype), (1,), value.tobytes(), raw=True)}
    return "ConstantOfShape", {"shape": np.array(shape(rng), I64)}, [kind(dtype)], attributes, int(rng.integers(9, 25))


def depth_to_space(rng: np.random.Generator) -> Case:
    block = int(rng.integers(1, 4))
    n, c, h, w = (int(v) for v in rng.integers(1, 4, 4))
    channels = c * block * block + (1 if rng.random() < 0.05 else 0)
    opset = int(rng.integers(8, 25))
    x = ordinary(bits(rng, (n, channels, h, w), rng.choice("f4 f8 f2 u1 i1".split()[: 5 if opset >= 13 else 1])))
    attributes: dict[str, Any] = {"blocksize": block}
    if opset >= 11 and rng.random() < 0.7:
        attributes["mode"] = str(rng.choice(["DCR", "CRD"]))
    return "DepthToSpace", {"x": x}, [kind(x.dtype)], attributes, opset


def space_to_depth(rng: np.random.Generator) -> Case:
    block = int(rng.integers(1, 4))
    n, c, h, w = (int(v) for v in rng.integers(1, 4, 4))
    width = w * block + (1 if rng.random() < 0.05 else 0)
    opset = int(rng.integers(8, 25))
    x = ordinary(bits(rng, (n, c, h * block, width), rng.choice("f4 f8 f2 u1 i1".split()[: 5 if opset >= 13 else 1])))
    return "SpaceToDepth", {"x": x}, [kind(x.dtype)], {"blocksize": block}, opset


def transpose(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 0, 5), one_type(rng))
    attributes = {"perm": [int(a) for a in rng.permutation(x.ndim)]} if x.ndim and rng.random() < 0.8 else {}
    return "Transpose", {"x": x}, [kind(x.dtype)], attributes, int(rng.integers(8, 25))


BUILDERS: tuple[Callable[[np.random.Generator], Case], ...] = (
    reshape, flatten, squeeze, unsqueeze, identity, dropout, concat, split, slice_, expand, tile, pad, old_pad, where,
    range_, shape_, size, constant_of_shape, depth_to_space, space_to_depth, transpose,
)  # fmt: skip


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_random_models(request: pytest.FixtureRequest, build: Callable[[np.random.Generator], Case]) -> None:
    """Operands that decide shapes are constants, or inputs, which makes a later stage."""
    checks = Checks(request)
    for rng in checks:
        op_type, inputs, outputs, attributes, opset = build(rng)
        names = [name for name, array in inputs.items() if array is not None]
        constants = names[1:] if rng.random() < 0.7 else [n for n in names[1:] if rng.random() < 0.5]
        if op_type in ("Range", "ConstantOfShape") and rng.random() < 0.5:
            constants = names
        content, feeds = single(op_type, inputs, outputs, attributes, opset=opset, constants=constants)
        checks.add(content, feeds)
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("mode", ["edge", "reflect", "constant"])
@pytest.mark.parametrize("pads", [(0, 2, 0, -1), (0, -2, 0, 3), (0, -1, 0, -1), (1, 2, 0, 0), (0, 0, -1, 0)])
def test_borders_of_nothing(mode: str, pads: tuple[int, ...]) -> None:
    """A tensor without elements may be cut and grow along its other axes; others must keep what is repeated."""
    for sizes in ((0, 1), (2, 0), (2, 1)):
        x = np.ones(sizes, np.float32)
        check(*single("Pad", {"x": x}, [TensorProto.FLOAT], {"pads": pads, "mode": mode}, opset=10))


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect"])
@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8"])
def test_borders_are_native(mode: str, dtype: str) -> None:
    """Borders of all axes, of the first ones alone, and pieces that are cut off beside a border."""
    rng = np.random.default_rng(8)
    x = rng.integers(-100, 100, (2, 3, 5, 4)).astype(dtype)
    for widths in ((1, 1, 2, 3, 0, 2, 4, 1), (1, 2, 0, 0, 1, 0, 0, 0), (0, 0, -1, 1, 0, 1, 3, -2)):
        inputs = {"x": x, "widths": np.int64(widths)}
        model = single("Pad", inputs, [kind(x.dtype)], {"mode": mode}, constants=["widths"])
        assert check(*model) == "equal"
        natively(*model)


def test_borders_of_images_with_channels_last(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=15)
    for rng in checks:
        channels = int(rng.integers(1, 9))
        constants = {
            "one": np.float32(1),
            "zero": np.uint8(rng.integers(3)),
            "kernel": rng.integers(0, 3, (channels, channels, 1, 1)).astype(np.uint8),
            "widths": (rng.integers(0, 3, (2, 4)) * (0, 0, 1, 1)).reshape(-1).astype(np.int64),
        }
        scales = ["one", "zero", "kernel", "one", "zero", "one", "zero"]
        nodes = [
            helper.make_node("QLinearConv", ["x", *scales], ["image"]),
            helper.make_node(
                "Pad", ["image", "widths"], ["padded"], mode=str(rng.choice(["constant", "reflect", "edge"]))
            ),
            helper.make_node("QLinearConv", ["padded", *scales], ["y"]),
        ]
        x = rng.integers(0, 30, (1, channels, *(int(v) for v in rng.integers(3, 8, 2)))).astype(np.uint8)
        content, feeds = build(nodes, {"x": x}, {"y": TensorProto.UINT8}, constants)
        checks.add(content, feeds)


@pytest.mark.parametrize("target", [(1, 0, -1), (0, -1, 2), (-1, 0), (0, -1, 7), (-1, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_a_free_size_beside_a_size_of_0(known: bool, target: tuple[int, ...]) -> None:
    """Shape inference refuses what the kernel does; sizes of 0 do not count there, and the rest must divide."""
    feeds = {"x": np.zeros((0, 2, 3), np.float32), "shape": np.int64(target)}
    model = single("Reshape", feeds, [1], {"allowzero": 1}, constants=["shape"] if known else [])
    runs = target == (-1, 2) or (not known and 7 not in target)
    assert check(*model) == ("equal" if runs else "refused")
