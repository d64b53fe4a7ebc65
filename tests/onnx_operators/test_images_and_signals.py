"""shrink, hardmax, mean_variance_normalization, determinant, fold, region_bins, region_maxima, deformable_conv, unpool,
cosine_window, affine_grid, mel_weights, lengths of whole images: random one-node models against ONNX Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from support.floating_models import F32, Generator, Model, numbers, reals, shape_of, wild
from support.onnx_models import HERE, MICROSOFT, Checks, check, natively, single
from support.wide_models import doubled

I64 = np.int64
_FLOAT = TensorProto.FLOAT


def shrink(rng: np.random.Generator) -> Model:
    dtype, shape = np.dtype(rng.choice("f4 f8 i1 u1 i2 u2 i4 u4 i8".split())), shape_of(rng, 0, 3)
    if dtype.kind == "f":
        x = wild(rng, shape).astype(dtype)
    else:
        ends = np.iinfo(dtype)
        x = rng.integers(ends.min, ends.max, shape, endpoint=True, dtype=dtype)
        x = (x % 7).astype(dtype) if rng.random() < 0.5 else x
    attributes = {name: float(F32(rng.uniform(-3, 3))) for name in ("bias", "lambd") if rng.random() < 0.7}
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    return single("Shrink", {"x": x}, [kind], attributes, opset=int(rng.integers(9, 23)))


def hardmax(rng: np.random.Generator) -> Model:
    opset, shape = int(rng.choice([8, 11, 12, 13, 21])), shape_of(rng, 1, 4)
    x = np.rint(reals(rng, shape, 1)) + F32(0) if rng.random() < 0.5 else numbers(rng, shape)
    x = np.where(rng.random(shape) < rng.choice([0, 0.1, 0.4]), F32(np.nan), x)
    attributes = {}
    if rng.random() < 0.7 or (opset < 13 and len(shape) == 1):
        attributes["axis"] = int(rng.integers(-len(shape) if opset >= 11 else 0, len(shape)))
    return single("Hardmax", {"x": x}, [_FLOAT], attributes, opset=opset)


def lengths_of_images(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, 3, 5, 8)
    x = numbers(rng, shape) if rng.random() < 0.2 else reals(rng, shape)
    attributes = {"p": int(rng.choice([1, 2, 3, 5, 0, -1, -3]))} if rng.random() < 0.7 else {}
    return single("GlobalLpPool", {"x": x}, [_FLOAT], attributes, opset=int(rng.choice([8, 13, 21])))


def mean_variance(rng: np.random.Generator) -> Model:
    x, attributes = reals(rng, shape_of(rng, 1, 5, 9)), {}
    if x.ndim < 4 or rng.random() < 0.5:
        attributes["axes"] = [int(v) for v in rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)]]
    return single("MeanVarianceNormalization", {"x": x}, [_FLOAT], attributes, opset=int(rng.choice([9, 13, 21])))


def columns(rng: np.random.Generator) -> Model:
    """Images of two axes by any windows, others by those without dilation."""
    axes = int(rng.integers(1, 4)) if rng.random() < 0.3 else 2
    window, strides, dilations = rng.integers(1, 6, axes), rng.integers(1, 5, axes), rng.integers(1, 3, axes)
    pads, counts = rng.integers(0, 3, 2 * axes), rng.integers(1, 10 if axes < 3 else 5, axes)
    if axes != 2:
        dilations[:] = 1
    if rng.random() < 0.3:
        strides[:], dilations[:], pads[:] = 1, 1, 0
    image = (counts - 1) * strides + dilations * (window - 1) + 1 - pads[:axes] - pads[axes:]
    image = np.maximum(1, image + rng.integers(0, strides))
    counts = (image + pads[:axes] + pads[axes:] - dilations * (window - 1) - 1) // strides + 1
    if counts.min() < 1:
        return columns(rng)
    x = reals(rng, (int(rng.integers(1, 3)), int(rng.integers(1, 3) * window.prod()), int(counts.prod())))
    given = {"strides": strides, "pads": pads, "dilations": dilations}
    attributes = {
        name: values.tolist()
        for name, values in given.items()
        if rng.random() < 0.8 or (values != (0 if name == "pads" else 1)).any()
    }
    operands = {"x": x, "image": image.astype(I64), "window": window.astype(I64)}
    constants = ["image", "window"] if rng.random() < 0.8 else []
    return single("Col2Im", operands, [_FLOAT], attributes, opset=18, constants=constants)


def regions(rng: np.random.Generator) -> Model:
    opset, shape = int(rng.choice([10, 16, 21])), tuple(int(v) for v in rng.integers(1, 7, 4))
    count = int(rng.integers(0, 4))
    boxes = rng.uniform(-3, 12, (count, 4)).astype(F32)
    if rng.random() < 0.8:
        boxes[:, 2:] = boxes[:, :2] + np.abs(boxes[:, 2:])
    boxes = np.rint(boxes) if rng.random() < 0.3 else boxes
    attributes: dict[str, Any] = {
        "output_height": int(rng.integers(1, 5)),
        "output_width": int(rng.integers(1, 5)),
        "spatial_scale": float(F32(rng.choice([1, 0.5, 0.25, rng.uniform(0.1, 2)]))),
        "mode": str(rng.choice(["avg", "max"])),
    }
    if rng.random() < 0.7:
        attributes["sampling_ratio"] = int(rng.integers(0, 4))
    if opset >= 16 and rng.random() < 0.7:
        attributes["coordinate_transformation_mode"] = str(rng.choice(["half_pixel", "output_half_pixel"]))
    operands = {"x": reals(rng, shape), "boxes": boxes, "images": rng.integers(0, shape[0], count)}
    return single("RoiAlign", operands, [_FLOAT], attributes, opset=opset)


def largest_of_regions(rng: np.random.Generator) -> Model:
    shape, count = tuple(int(v) for v in rng.integers(1, 9, 4)), int(rng.integers(0, 5))
    boxes = rng.uniform(-4, 14, (count, 4))
    boxes[:, 2:] = boxes[:, :2] + boxes[:, 2:] if rng.random() < 0.7 else boxes[:, 2:]
    boxes = np.rint(boxes * 2) / 2 if rng.random() < 0.4 else boxes
    regions = np.concatenate([rng.integers(0, shape[0], (count, 1)), boxes], 1).astype(F32)
    attributes: dict[str, Any] = {"pooled_shape": rng.integers(1, 6, 2).tolist()}
    if rng.random() < 0.7:
        attributes["spatial_scale"] = float(F32(rng.choice([1, 0.5, 0.0625, rng.uniform(0.1, 2)])))
    return single(
        "MaxRoiPool",
        {"x": (wild if rng.random() < 0.2 else reals)(rng, shape), "boxes": regions},
        [_FLOAT],
        attributes,
        opset=int(rng.choice([8, 13, 21])),
    )


def deformed(rng: np.random.Generator) -> Model:
    group, parts, kernel = int(rng.integers(1, 4)), int(rng.integers(1, 3)), rng.integers(1, 4, 2)
    each, made = int(parts * rng.integers(1, 5)), int(rng.choice([1, 2, 3, 7, 20]))
    strides, dilations, pads = rng.integers(1, 3, 2), rng.integers(1, 3, 2), rng.integers(0, 3, 4)
    sizes = rng.integers(1, 9, 2)
    image = np.maximum(1, (sizes - 1) * strides + dilations * (kernel - 1) + 1 - pads[:2] - pads[2:])
    sizes = (image + pads[:2] + pads[2:] - dilations * (kernel - 1) - 1) // strides + 1
    taps, count = int(parts * kernel.prod()), int(rng.integers(1, 3))
    offsets = rng.standard_normal((count, 2 * taps, *sizes)) * rng.choice([0.5, 3])
    operands: dict[str, Any] = {
        "x": reals(rng, (count, group * each, *image)),
        "w": reals(rng, (group * made, each, *kernel)),
        "offsets": (np.rint(offsets) if rng.random() < 0.2 else offsets).astype(F32),
        "bias": reals(rng, (group * made,)) if rng.random() < 0.6 else None,
        "factors": rng.random((count, taps, *sizes)).astype(F32) if rng.random() < 0.5 else None,
    }
    given = {"strides": strides, "dilations": dilations, "pads": pads, "kernel_shape": kernel}
    attributes: dict[str, Any] = {
        name: values.tolist()
        for name, values in given.items()
        if rng.random() < 0.8 or (name != "kernel_shape" and (values != (name != "pads")).any())
    }
    attributes |= {"group": group, "offset_group": parts}
    constants = ["w", *(["bias"] if operands["bias"] is not None else [])] if rng.random() < 0.7 else []
    return single("DeformConv", operands, [_FLOAT], attributes, opset=int(rng.choice([19, 22])), constants=constants)


def unpool(rng: np.random.Generator) -> Model:
    axes = int(rng.integers(1, 4))
    window, strides, pads = rng.integers(1, 4, axes), rng.integers(1, 4, axes), rng.integers(0, 2, 2 * axes)
    shape = tuple(int(v) for v in (*rng.integers(1, 3, 2), *rng.integers(1, 5, axes)))
    sizes = (np.array(shape[2:]) - 1) * strides - pads[:axes] - pads[axes:] + window
    if sizes.min() < 1:
        return unpool(rng)
    given = rng.random() < 0.4
    sizes = sizes + rng.integers(0, 3, axes) * given
    count, room = int(np.prod(shape)), int(sizes.prod()) * shape[0] * shape[1]
    apart = room >= count and rng.random() < 0.8
    places = rng.permutation(room)[:count] if apart else rng.integers(0, room, count)
    operands = {"x": numbers(rng, shape), "places": places.reshape(shape)}
    if given:
        operands["shape"] = np.array([*shape[:2], *sizes], I64)
    attributes = {"kernel_shape": window.tolist(), "strides": strides.tolist(), "pads": pads.tolist()}
    constants = ["shape"] if rng.random() < 0.7 else []
    return single("MaxUnpool", operands, [_FLOAT], attributes, opset=int(rng.choice([9, 11, 22])), constants=constants)


def determinant(rng: np.random.Generator) -> Model:
    size = int(rng.integers(1, 17 if rng.random() < 0.5 else 5))
    x = reals(rng, (*shape_of(rng, 0, 2, 4), size, size), 1)
    x = np.rint(x) if rng.random() < 0.2 else x
    return single("Det", {"x": x}, [_FLOAT], opset=int(rng.choice([11, 22])))


def window(rng: np.random.Generator) -> Model:
    name = str(rng.choice(["HannWindow", "HammingWindow", "BlackmanWindow"]))
    kind = int(rng.choice([1, 1, 1, 11, 2, 3, 5, 6, 7, 12, 13]))
    attributes = {"periodic": int(rng.integers(2)), "output_datatype": kind}
    size = np.array(rng.integers(2, 60 if rng.random() < 0.8 else 513), I64 if rng.random() < 0.5 else np.int32)
    constants = ["size"] if rng.random() < 0.7 else []
    return single(name, {"size": size}, [kind], attributes, opset=17, constants=constants)


def affine_grid(rng: np.random.Generator) -> Model:
    axes = int(rng.integers(2, 4))
    sizes = np.array([*rng.integers(1, 3, 2), *rng.integers(1, 9 if rng.random() < 0.7 else 24, axes)], I64)
    matrices = rng.standard_normal((sizes[0], axes, axes + 1)).astype(F32)
    attributes = {"align_corners": int(rng.integers(2))} if rng.random() < 0.8 else {}
    constants = ["sizes"] if rng.random() < 0.7 else []
    return single("AffineGrid", {"m": matrices, "sizes": sizes}, [_FLOAT], attributes, opset=20, constants=constants)


def mel_weights(rng: np.random.Generator) -> Model:
    samples, bands = int(rng.integers(16, 600)), int(rng.integers(1, 40))
    rate = int(rng.choice([8000, 16000, 44100, rng.integers(1000, 9000)]))
    kind = int(rng.choice([1, 1, 11, 2, 3, 5, 6, 12, 13]))
    low = F32(rng.uniform(0, rate / 4))
    counts = {name: np.array(value, I64) for name, value in (("bands", bands), ("samples", samples), ("rate", rate))}
    operands = {**counts, "low": np.array(low), "high": np.array(F32(rng.uniform(float(low), rate / 2)))}
    constants = list(operands) if rng.random() < 0.8 else []
    return single("MelWeightMatrix", operands, [kind], {"output_datatype": kind}, opset=17, constants=constants)


def discrete_fourier(rng: np.random.Generator) -> Model:
    parts, version = int(rng.integers(1, 3)), int(rng.choice([17, 20]))
    shape = (
        *rng.integers(1, 4, rng.integers(1, 3)),
        int(rng.integers(1, 30)),
        *rng.integers(1, 4, rng.integers(2)),
        parts,
    )
    place = int(rng.integers(0, len(shape) - 1)) if rng.random() < 0.5 else len(shape) - 2
    inverse, onesided = (int(rng.random() < p) for p in (0.3, 0.4))
    if parts == 1 and onesided and rng.random() < 0.9:
        inverse = 0
    lengths = [1, 2, 4, 8, 16, 32, 64, 3, 5, 7, 12, 30, 45, 100]
    given = rng.random() < 0.5
    axis = np.array(place - (len(shape) if rng.random() < 0.3 else 0), I64)
    operands: dict[str, Any] = {"x": rng.standard_normal(shape).astype(F32)}
    operands["length"] = np.array(rng.choice(lengths), rng.choice([np.int32, I64])) if given else None
    attributes = {"inverse": inverse, "onesided": onesided}
    if version == 17:
        attributes["axis"] = int(axis)
    elif rng.random() < 0.8:
        operands["axis"] = axis
    constants = [name for name in ("length", "axis") if operands.get(name) is not None and rng.random() < 0.8]
    return single("DFT", operands, [_FLOAT], attributes, opset=version, constants=constants)


def short_fourier(rng: np.random.Generator) -> Model:
    length = int(rng.choice([4, 8, 16, 32, 5, 12, 20, 25]))
    time, parts = length + int(rng.integers(-1 if rng.random() < 0.1 else 0, 40)), int(rng.integers(1, 3))
    form = rng.integers(3)
    kind = rng.choice([np.int32, I64])
    operands: dict[str, Any] = {
        "x": rng.standard_normal((int(rng.integers(1, 3)), time, *((parts,) if rng.random() < 0.7 else ()))).astype(
            F32
        ),
        "step": np.array(rng.integers(1, length + 2), kind),
        "window": rng.standard_normal(length).astype(F32) if form else None,
        "length": np.array(length, kind) if form < 2 else None,
    }
    attributes = {"onesided": int(rng.integers(2))} if rng.random() < 0.8 else {}
    names = ("step", "length", "window")
    constants = [name for name in names if operands[name] is not None and rng.random() < 0.8]
    return single("STFT", operands, [_FLOAT], attributes, opset=17, constants=constants)


BUILDERS: tuple[Generator, ...] = (
    shrink, hardmax, lengths_of_images, mean_variance, columns, regions, largest_of_regions, deformed, unpool,
    determinant, window, affine_grid, mel_weights, discrete_fourier, short_fourier,
)  # fmt: skip


# The runtime reads, or writes, beyond what there is.
_REFUSED = {discrete_fourier: {"BT-FOURIER-HALF", "BT-FOURIER-LENGTH"}}


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_random_models(request: pytest.FixtureRequest, build: Generator) -> None:
    checks = Checks(request, 30)
    for rng in checks:
        checks.add(*build(rng), may_refuse=_REFUSED.get(build, ()))
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("build", [regions, deformed, affine_grid, discrete_fourier, short_fourier])
def test_doubles(request: pytest.FixtureRequest, build: Generator) -> None:
    checks = Checks(request, usual=12)
    for rng in checks:
        checks.add(*doubled(build(rng), rng), may_refuse=_REFUSED.get(build, ()))
    assert "equal" in checks.outcomes


@pytest.mark.parametrize(("given", "length"), [(3, 8), (3, 7), (5, 8), (7, 8), (6, 6), (9, 9), (1, 5)])
def test_inverses_of_another_number_of_frequencies(given: int, length: int) -> None:
    x = np.random.default_rng(given).standard_normal((2, given, 2)).astype(F32)
    operands, attributes = {"x": x, "length": np.array(length, I64)}, {"onesided": 1, "inverse": 1}
    natively(*single("DFT", operands, [_FLOAT], attributes, opset=20, constants=["length"]))
    assert check(*single("DFT", operands, [_FLOAT], attributes, opset=20)) == "equal"


@pytest.mark.parametrize("size", [16, 17, 20, 33, 65, 150])
def test_large_determinants_and_inverses(size: int) -> None:
    """More than 16 columns are eliminated in blocks, and triangles of more than a panel take sums by tiles."""
    rng = np.random.default_rng([size, 5])
    for kind, number in ((np.float32, _FLOAT), (np.float64, TensorProto.DOUBLE)):
        x = rng.standard_normal((2, size, size)).astype(kind) / kind(size**0.5)
        if kind == np.float32:
            natively(*single("Det", {"x": x}, [number], opset=22))
        if kind == np.float32 or size < 120:
            natively(*single("Inverse", {"x": x}, [number], domain=MICROSOFT))


def test_what_the_runtime_reads_wrongly_is_refused() -> None:
    """Columns of dilated windows in images of one axis and several channels; places that no pool has found."""
    x, one, two = np.ones((1, 4, 3), F32), np.array([5], I64), np.array([2], I64)
    content, _ = single("Col2Im", {"x": x, "i": one, "w": two}, [_FLOAT], {"dilations": [2]}, opset=18)
    assert check(*single("Col2Im", {"x": x[:, :2], "i": one, "w": two}, [_FLOAT], {"dilations": [2]})) == "equal"
    with pytest.raises(bittrue.UnsupportedError, match="BT-FOLD"):
        bittrue.load(content).prepare(HERE).run(x, one, two)
    places = np.full((1, 1, 2, 2), 99, I64)
    operands = {"x": x[:, :1, :1].reshape(1, 1, 1, 1).repeat(2, 2).repeat(2, 3), "places": places}
    assert check(*single("MaxUnpool", operands, [_FLOAT], {"kernel_shape": [2, 2]}, opset=22)) == "refused"
