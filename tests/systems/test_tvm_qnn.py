"""Every operator of bittrue.qnn against loops over Python integers, written from the formulas alone.

Stems: conv, matmul, conv_transpose, leaky_relu, softmax,
average_pool, max_pool, quantize, dequantize.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest

from bittrue import qnn
from bittrue.compat.tvm_qnn import building
from bittrue.errors import InputError
from bittrue.plan import Plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module

F32 = np.float32
RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}
CHOICES = [*product(("UPWARD", "TONEAREST"), ("int64", "float32", "float64"))]


class _Both(ReferenceExecutor):
    """Every call on arrays runs natively, too; `declined` says which steps of the calls of one test did not."""

    declined: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._native = NativeExecutor(plan) if native_module() is not None else None
        if self._native is not None:
            self.declined.update((plan.steps[p].operator, reason) for p, reason in self._native.missing.items())

    def run(self, feeds: dict[int, np.ndarray]) -> list[np.ndarray]:
        found = super().run(feeds)
        if self._native is not None:
            dense = {index: np.array(array, order="C") for index, array in feeds.items()}
            for one, other in zip(found, self._native.run(dense), strict=True):
                assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
        return found


@pytest.fixture(autouse=True)
def both_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "ReferenceExecutor", _Both)
    _Both.declined.clear()


# Every axis of every rank, None for parameters of whole tensors.
PLACES = [(rank, axis) for rank in range(6) for axis in (None, *range(rank))]


def parameters(
    rng: np.random.Generator, count: tuple[int, ...], scale: Any, low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point: two vectors, or one of them beside a number."""
    kind = rng.integers(3) if count else 3
    scales = np.asarray(scale(() if kind == 1 else count), F32)
    return scales, np.asarray(rng.integers(low, high, () if kind == 2 else count), np.int32)


def wrap(value: int, bits: int = 32) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def clip(value: int, dtype: str) -> int:
    low, high = RANGES[dtype]
    return max(low, min(high, value))


def to_s32(value: float) -> int:
    return int(value) if -(2.0**31) <= value < 2.0**31 else -(2**31)


def fixed_point(t: int, m: float, nearest: bool = False, scalar: bool = True) -> int:
    """t * m by a 31-bit multiplier, one rounding."""
    if m == 0:
        return 0
    fraction, e = math.frexp(m)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, e = 2**30, e + 1
    if scalar and not nearest and multiplier == 2**30:
        k = e - 1
        return wrap(t << k) if k >= 0 else wrap(t + (1 << (-k - 1))) >> -k
    right = max(-e, 0)
    p = wrap((t << max(e, 0)) * multiplier, 64)
    half = (1 << (right + 30)) - (1 if nearest and p < 0 else 0)
    return wrap(wrap(p + half, 64) >> (right + 31))


def requantized(
    q: int,
    s_in: Any,
    z_in: int,
    s_out: Any,
    z_out: int,
    choice: tuple[str, str] = ("UPWARD", "int64"),
    dtype: str = "int32",
    scalar: bool = True,
) -> int:
    nearest, compute = choice[0] == "TONEAREST", choice[1]
    same = scalar and F32(s_in) == F32(s_out)
    m = float(F32(s_in)) / float(F32(s_out))
    if compute == "int64":
        t = wrap(wrap(q) - z_in)
        if not same:
            t = fixed_point(t, m, nearest, scalar)
        t = wrap(t + z_out)
        return t if dtype == "int32" else clip(t, dtype)
    real = F32 if compute == "float32" else np.float64
    with np.errstate(over="ignore"):
        x = real(q) - real(z_in)
        if not same:
            x = real(m) * x
        x = x + real(z_out)
        if not nearest:
            x = real(np.floor(x + real(0.5)))
            found = to_s32(float(x))
        else:
            found = to_s32(float(x + real(math.copysign(0.5, x))))
    return found if dtype == "int32" else clip(found, dtype)


def quantized(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = RANGES[dtype]
    return rng.integers(low, high + 1, shape).astype(dtype)


def point(rng: np.random.Generator, dtype: str) -> int:
    low, high = RANGES[dtype]
    return int(rng.choice([low, high, 0, rng.integers(low, high + 1)]))


def a_scale(rng: np.random.Generator) -> np.float32:
    return F32(2.0 ** rng.integers(-6, 3)) if rng.random() < 0.3 else F32(np.exp(rng.uniform(-6, 1)))


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("place", PLACES)
def test_requantize(choice: tuple[str, str], place: tuple[int, int | None]) -> None:
    rank, axis = place
    rng = np.random.default_rng((rank, 9 if axis is None else axis, CHOICES.index(choice)))
    rounding = dict(zip(("rounding", "compute_dtype"), choice, strict=True))
    shape = tuple(int(v) for v in rng.integers(1, 5, rank))
    count = () if axis is None else (shape[axis],)
    # What compiles: others count from the front.
    behind = axis is not None and (choice == ("UPWARD", "int64") or axis == rank - 1) and rng.random() < 0.5
    given = -1 if axis is None else axis - rank if behind else axis
    for source, target in product(("int8", "uint8", "int16", "int32"), ("int8", "uint8", "int16", "int32")):
        x = quantized(rng, source, shape)
        if source == "int32" and rng.random() < 0.7:
            x = np.asarray(x >> int(rng.integers(4, 24)), np.int32)
        s_in, z_in = parameters(rng, count, lambda n: np.exp(rng.uniform(-8, 0, n)), -40000, 40000)
        # The system takes no zero point off a single number.
        z_in = z_in if rank else np.zeros_like(z_in)
        s_out, z_out = a_scale(rng), point(rng, "int8")
        if rng.random() < 0.3:
            s_in = np.full(s_in.shape, s_out)
        found = qnn.requantize(x, s_in, z_in, s_out, z_out, axis=given, out_dtype=target, **rounding)
        assert (found.dtype, found.shape) == (target, shape)
        for at in np.ndindex(shape):
            scale, zero_point = (p[at[axis]] if p.ndim else p for p in (s_in, z_in))
            expected = requantized(int(x[at]), scale, int(zero_point), s_out, z_out, choice, target, not s_in.ndim)
            assert found[at] == expected, (at, x[at])
    with qnn.requantize_config(**rounding):
        again = qnn.requantize(x, s_in, z_in, s_out, z_out, axis=given, out_dtype=target)
    np.testing.assert_array_equal(found, again)
    assert not _Both.declined


def test_requantize_near_the_end_of_32_bits() -> None:
    """A power of two adds half of its divisor in 32 bits, and wraps; a vector of scales does not."""
    x = np.int32([2**31 - 1, -(2**31), 2**31 - 2])
    one = qnn.requantize(x, 0.25, 0, 1.0, 0, out_dtype="int32")
    several = qnn.requantize(x[:, None], [0.25], 0, 1.0, 0, axis=1, out_dtype="int32")
    assert one.tolist() == [-536870912, -536870912, -536870912]
    assert several.ravel().tolist() == [536870912, -536870912, 536870912]
    assert qnn.requantize(np.int64([2**32 + 5]), 1.0, 0, 1.0, 0, out_dtype="int32").tolist() == [5]


@pytest.mark.parametrize("seed", range(24))
def test_conv2d(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, kernel_type = str(rng.choice(["int8", "uint8", "int16"])), str(rng.choice(["int8", "uint8"]))
    groups = int(rng.choice([1, 1, 2, 3]))
    depth, out = (1, groups) if rng.random() < 0.4 else (int(rng.integers(1, 4)), groups * int(rng.integers(1, 3)))
    inside = depth * groups
    depthwise = groups > 1 and depth == 1
    many = int(rng.integers(1, 3)) if depthwise else 1
    taps, stride, reach = rng.integers(1, 4, 2), rng.integers(1, 3, 2), rng.integers(1, 3, 2)
    pads = tuple(int(v) for v in rng.integers(0, 3, 4))
    height, width = (int((taps[k] - 1) * reach[k] + rng.integers(1, 5)) for k in (0, 1))
    x = quantized(rng, source, (2, inside, height, width))
    out = inside * many if depthwise else out
    w = quantized(rng, kernel_type, (inside, many, *taps) if depthwise else (out, depth, *taps))
    z_x, z_w = point(rng, source), point(rng, kernel_type)
    several = rng.random() < 0.4 and not (depthwise and many > 1)
    points = rng.integers(-5, 6, out).astype(np.int32) if several else np.int32(z_w)
    layout = str(rng.choice(["NCHW", "NHWC"]))
    kernel_layout = "OIHW" if layout == "NCHW" else "HWOI" if depthwise else "HWIO"
    out_layout = str(rng.choice(["", layout]))
    given = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    filled = w.reshape(out, 1, *taps) if depthwise and many > 1 and rng.random() < 0.5 else w
    kernel = filled.transpose([("OIHW").index(letter) for letter in kernel_layout])
    wide = source == "int16" and rng.random() < 0.5
    found = qnn.conv2d(
        given,
        kernel,
        z_x,
        points,
        0.5,
        0.25,
        kernel_size=tuple(int(t) for t in taps),
        channels=out,
        strides=tuple(int(s) for s in stride),
        padding=pads,
        dilation=tuple(int(d) for d in reach),
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype="int64" if wide else "int32",
    )
    centered = np.pad(x.astype(np.int64) - z_x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    filters = w.reshape(out, -1, *taps).astype(np.int64) - np.reshape(points, (-1, 1, 1, 1))
    centered, filters = ((a + 2**15) % 2**16 - 2**15 for a in (centered, filters))
    rows, columns = (
        (centered.shape[2 + k] - (int(taps[k]) - 1) * int(reach[k]) - 1) // int(stride[k]) + 1 for k in (0, 1)
    )
    expected = np.zeros((2, out, rows, columns), np.int64)
    for o, u, v in product(range(out), range(taps[0]), range(taps[1])):
        group = o // (out // groups)
        for c in range(inside // groups):
            plane = centered[:, group * (inside // groups) + c, u * reach[0] :, v * reach[1] :]
            expected[:, o] += filters[o, c, u, v] * plane[:, :: stride[0], :: stride[1]][:, :rows, :columns]
    if not wide:
        expected = (expected + 2**31) % 2**32 - 2**31
    laid = expected if layout == "NCHW" else expected.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(found, laid)


@pytest.mark.parametrize("seed", range(16))
def test_conv2d_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, kernel_type = str(rng.choice(["int8", "uint8", "int16"])), str(rng.choice(["int8", "uint8"]))
    groups, per_group = int(rng.choice([1, 2])), int(rng.integers(1, 4))
    inside = groups * int(rng.integers(1, 3))
    taps, stride = rng.integers(1, 4, 2), rng.integers(1, 4, 2)
    more = [int(rng.integers(0, s)) for s in stride]
    x = quantized(rng, source, (2, inside, 3, 4))
    w = quantized(rng, kernel_type, (inside, per_group, *taps))
    z_x, z_w = point(rng, source), point(rng, kernel_type)
    full = [(x.shape[2 + k] - 1) * stride[k] + taps[k] + more[k] for k in (0, 1)]
    pads = [int(rng.integers(0, max(1, full[k % 2] // 2))) for k in range(4)]
    layout, kernel_layout = str(rng.choice(["NCHW", "NHWC"])), str(rng.choice(["IOHW", "OIHW", "HWIO", "HWOI"]))
    found = qnn.conv2d_transpose(
        x if layout == "NCHW" else x.transpose(0, 2, 3, 1),
        w.transpose(["IOHW".index(letter) for letter in kernel_layout]),
        z_x,
        z_w,
        0.5,
        0.25,
        strides=stride.tolist(),
        padding=pads,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        output_padding=more,
        out_dtype="int16" if seed % 4 == 3 else "int32",
    )
    total = np.zeros((2, per_group * groups, *full), np.int64)
    left, right = (((a.astype(np.int64) - z) + 2**15) % 2**16 - 2**15 for a, z in ((x, z_x), (w, z_w)))
    for n, c, i, j in np.ndindex(*x.shape):
        first = c // (inside // groups) * per_group
        for o, u, v in np.ndindex(per_group, *taps):
            at = i * stride[0] + u, j * stride[1] + v
            total[n, first + o, at[0], at[1]] += left[n, c, i, j] * right[c, o, u, v]
    kept = total[:, :, pads[0] : full[0] - pads[2], pads[1] : full[1] - pads[3]]
    bits = 16 if seed % 4 == 3 else 32
    kept = (kept + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    np.testing.assert_array_equal(found, kept if layout == "NCHW" else kept.transpose(0, 2, 3, 1))
    assert source == "int16" or bits == 16 or (layout == "NHWC" and groups > 1) or not _Both.declined


@pytest.mark.parametrize("seed", range(8))
def test_dense_and_batch_matmul(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, kernel_type = str(rng.choice(["int8", "uint8", "int16"])), str(rng.choice(["int8", "uint8"]))
    x, w = quantized(rng, source, (3, 70)), quantized(rng, kernel_type, (5, 70))
    z_x = point(rng, source)
    z_w: Any = rng.integers(-128, 128, 5) if seed % 2 else point(rng, kernel_type)
    left, right = (x.astype(np.int64) - z_x, w.astype(np.int64) - np.reshape(z_w, (-1, 1)))
    expected = np.vectorize(lambda v: wrap(int(v), 16))(left) @ right.T
    found = qnn.dense(x, w, z_x, z_w, 0.5, np.full(5, 0.5), units=5)
    assert found.tolist() == [[wrap(int(v)) for v in row] for row in expected]
    a, b = quantized(rng, "int8", (2, 3, 9)), quantized(rng, kernel_type, (int(rng.choice([1, 2])), 4, 9))
    z_a, z_b = point(rng, "int8"), point(rng, kernel_type)
    product_ = (a.astype(np.int64) - z_a) @ (b.astype(np.int64) - z_b).transpose(0, 2, 1)
    np.testing.assert_array_equal(qnn.batch_matmul(a, b, z_a, z_b, 0.5, 0.5), product_)
    bias = rng.integers(-(2**31), 2**31, 5).astype(np.int32)
    biased = qnn.bias_add(found, bias)
    assert biased.tolist() == [[wrap(int(v) + int(c)) for v, c in zip(row, bias, strict=True)] for row in found]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("seed", range(12))
def test_sums_and_products(choice: tuple[str, str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = ("uint16" if seed > 9 else "int32") if seed > 7 else str(rng.choice(["int8", "uint8", "int16"]))
    several = seed % 2 == 1
    a, b = (
        quantized(rng, dtype, shape) >> (14 if dtype == "int32" else 0)
        for shape in ((2, 3, 4), (2, 3, 4) if several else (3, 1))
    )
    count = (3,) if several else ()
    scales = [np.exp(rng.uniform(-5, -1, count)).astype(F32) for _ in "ab"]
    points = [point(rng, "int16" if dtype == "int32" else dtype) for _ in "abc"]
    s_out = a_scale(rng)
    if rng.random() < 0.3 and not several:
        scales[0], points[0] = np.asarray(s_out), points[2]
    arguments = (scales[0], points[0], scales[1], points[1], s_out, points[2], 1, 1)
    with qnn.requantize_config(rounding=choice[0], compute_dtype=choice[1]):
        found = {name: getattr(qnn, name)(a, b, *arguments) for name in ("add", "subtract", "mul")}
    wide = np.broadcast_to(b, a.shape)
    for at in np.ndindex(a.shape):
        s = [float(scale if not several else scale[at[1]]) for scale in scales]
        sides = [
            int(q[at])
            if not several and F32(s[k]) == s_out and points[k] == points[2]
            else requantized(int(q[at]), s[k], points[k], s_out, points[2], choice, scalar=not several)
            for k, q in enumerate((a, wide))
        ]
        assert found["add"][at] == clip(wrap(sides[0] + sides[1] - points[2]), dtype)
        assert found["subtract"][at] == clip(wrap(sides[0] - sides[1] + points[2]), dtype)
        total = wrap((int(a[at]) - points[0]) * (int(wide[at]) - points[1]))
        scale = F32(s[0] * s[1]) if several else F32(s[0]) * F32(s[1])
        assert found["mul"][at] == requantized(total, scale, 0, s_out, points[2], choice, dtype, not several)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_concatenate(choice: tuple[str, str], dtype: str) -> None:
    rng = np.random.default_rng(3)
    parts = [quantized(rng, dtype, (2, n, 3)) >> (12 if dtype == "int32" else 0) for n in (1, 2, 1)]
    s_out, z_out = F32(0.3), 5
    scales, points = [F32(0.21), s_out, s_out], [7, z_out, z_out - 1]
    with qnn.requantize_config(rounding=choice[0], compute_dtype=choice[1]):
        found = qnn.concatenate(parts, scales, points, s_out, z_out, axis=-2)
    expected = []
    for part, scale, zero_point in zip(parts, scales, points, strict=True):
        same = scale == s_out and zero_point == z_out
        moved = [
            int(q) if same else requantized(int(q), scale, zero_point, s_out, z_out, choice, dtype)
            for q in part.reshape(-1)
        ]
        expected.append(np.reshape(moved, part.shape))
    np.testing.assert_array_equal(found, np.concatenate(expected, 1))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("alpha", [0.9, 0.5, 0.1, 0.01, 1.5, -0.3])
def test_leaky_relu(choice: tuple[str, str], dtype: str, alpha: float) -> None:
    low, high = RANGES[dtype]
    x = np.arange(low, high + 1).astype(dtype)
    for s_in, z_in, s_out, z_out in (
        (0.125, 60, 0.6, 17),
        (0.5, 3, 0.5, 3),
        (0.3, low, 0.07, high),
        (0.25, high, 0.5, 0),
    ):
        with qnn.requantize_config(rounding=choice[0], compute_dtype=choice[1]):
            found = qnn.leaky_relu(x, alpha, s_in, z_in, s_out, z_out)
        for q, y in zip(x.tolist(), found.tolist(), strict=True):
            same = F32(s_in) == F32(s_out) and z_in == z_out
            moved = q if same else requantized(q, s_in, z_in, s_out, z_out, choice)
            if q < z_in:
                moved = wrap(fixed_point(moved, alpha) + fixed_point(z_out, 1 - alpha))
            assert y == clip(moved, dtype), (q, s_in)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("seed", range(6))
def test_softmax(choice: tuple[str, str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(-3, 3))
    x = quantized(rng, "int8", (2, 3, 7)) >> int(rng.integers(0, 4))
    scale, s_out, z_out = F32(rng.choice([0.1, 1.0, 0.013, 0.4])), F32(rng.choice([1 / 256, 0.02])), -128
    with qnn.requantize_config(rounding=choice[0], compute_dtype=choice[1]):
        found = np.moveaxis(qnn.softmax(x, scale, 3, s_out, z_out, axis), axis, -1)
    rows = np.moveaxis(x, axis, -1)
    unit = math.floor(float(F32(1) / scale) + 0.5)
    for at in np.ndindex(rows.shape[:-1]):
        row = [int(v) for v in rows[at]]
        powers = [(v - max(row)) + ((v - max(row)) >> 1) - ((v - max(row)) >> 4) for v in row]
        steps = [max(0, min(20, abs(p) // unit)) for p in powers]
        shifted = [wrap((((p + n * unit) >> 1) + unit) << (max(steps) - n)) for p, n in zip(powers, steps, strict=True)]
        total = wrap(sum(shifted))
        share = int(2**30 / total)
        expected = [requantized(wrap(share * e) >> 23, F32(1 / 128), 0, s_out, z_out, choice, "int8") for e in shifted]
        assert found[at].tolist() == expected
    assert not _Both.declined


def test_a_last_window_may_hang_over_the_image() -> None:
    """A running TVM gave these."""
    x = np.arange(3, dtype=np.int8).reshape(1, 1, 3, 1)
    assert qnn.max_pool2d(x, (4, 1), (4, 1), ceil_mode=True).tolist() == [[[[2]]]]
    given = (0.5, 0, 0.5, 0, (4, 1), (4, 1), (0, 0), (1, 1))
    assert qnn.avg_pool2d(x, *given, ceil_mode=True, layout="NCHW").tolist() == [[[[1]]]]
    with pytest.raises(InputError, match="does not fit"):
        qnn.max_pool2d(x, (4, 1), (4, 1))


@pytest.mark.parametrize("seed", range(30))
def test_pools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype, layout = str(rng.choice(["int8", "uint8"])), str(rng.choice(["NHWC", "NCHW"]))
    taps, stride, reach = rng.integers(1, 4, 2), rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    pads = [int(rng.integers(0, taps[k % 2])) for k in range(4)]
    ceil, counted = bool(rng.integers(2)), bool(rng.integers(2))
    if seed % 3 == 0:
        pads, reach = [0] * 4, np.array([1, 1])
    height, width = (int((taps[k] - 1) * reach[k] + rng.integers(1, 6)) for k in (0, 1))
    x = quantized(rng, dtype, (2, 3, height, width))
    s_in, z_in = F32(0.3), point(rng, dtype)
    s_out, z_out = (s_in, z_in) if seed % 2 else (F32(0.41), point(rng, dtype))
    window: dict[str, Any] = {"pool_size": taps.tolist(), "strides": stride.tolist(), "padding": pads}
    window |= {"dilation": reach.tolist(), "ceil_mode": ceil, "layout": layout}
    out, ends = [], []
    for k, size in enumerate((height, width)):
        span = size + pads[k] + pads[k + 2] - (taps[k] - 1) * reach[k] - 1
        out.append(int((span + (stride[k] - 1 if ceil else 0)) // stride[k] + 1))
        ends.append(size + pads[k + 2] - 1)
    starts = [[i * int(stride[k]) - pads[k] for i in range(out[k])] for k in (0, 1)]
    # Windows behind the padding have a negative number of elements, or none.
    undefined = any((start - ends[k]) // reach[k] == 1 for k in (0, 1) for start in starts[k])
    kind = str(rng.choice(list(RANGES)))
    any_type = quantized(rng, kind, x.shape)
    averages = np.zeros((2, 3, *out), np.int64)
    largest = np.zeros((2, 3, *out), np.int64)
    for n, c, i, j in np.ndindex(2, 3, *out):
        rows, columns = ([starts[k][at] + u * int(reach[k]) for u in range(taps[k])] for k, at in ((0, i), (1, j)))
        inside = [int(x[n, c, r, s]) for r in rows for s in columns if 0 <= r < height and 0 <= s < width]
        same = s_in == s_out and z_in == z_out
        total = sum(q if same else requantized(q, s_in, z_in, s_out, z_out) for q in inside)
        padded = [sum(1 for r in side if r <= ends[k]) for k, side in ((0, rows), (1, columns))]
        count = padded[0] * padded[1] if counted else max(1, len(inside))
        averages[n, c, i, j] = clip(int(total / max(1, count)), dtype)
        seen = [int(any_type[n, c, r, s]) for r in rows for s in columns if 0 <= r < height and 0 <= s < width]
        largest[n, c, i, j] = max(seen, default=RANGES[kind][0])
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    if not (counted and undefined):
        found = qnn.avg_pool2d(x.transpose(axes), s_in, z_in, s_out, z_out, count_include_pad=counted, **window)
        np.testing.assert_array_equal(found, averages.transpose(axes))
        assert not _Both.declined
    found = qnn.max_pool2d(any_type.transpose(axes), **window)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, largest.transpose(axes))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("seed", range(5))
def test_largest_real_numbers(seed: int, layout: str) -> None:
    """In the order of the taps, from the least finite number on; what is kept stays if it is larger: a running TVM."""
    rng = np.random.default_rng(seed)
    taps, stride, reach = (int(v) for v in rng.integers(1, 4, 3))
    window = {"pool_size": (taps, taps), "strides": (stride, stride), "dilation": (reach, reach), "layout": layout}
    x = rng.choice(
        F32([-np.inf, np.inf, np.nan, -0.0, 0, 0.5, -3]), (2, 3, 9, 7), p=[0.4, 0.05, 0.1, 0.15, 0.15, 0.1, 0.05]
    )
    out = [(n - (taps - 1) * reach - 1) // stride + 1 for n in x.shape[2:]]
    expected = np.empty((2, 3, *out), F32)
    for n, c, i, j in np.ndindex(expected.shape):
        kept = np.finfo(F32).min
        for u, v in np.ndindex(taps, taps):
            other = x[n, c, i * stride + u * reach, j * stride + v * reach]
            kept = kept if kept > other else other
        expected[n, c, i, j] = kept
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    found = qnn.max_pool2d(np.ascontiguousarray(x.transpose(axes)), **window)
    assert found.tobytes() == np.ascontiguousarray(expected.transpose(axes)).tobytes()
    assert not _Both.declined


def test_plain_operators_on_two_tensors() -> None:
    """Infinities stay, integers wrap, values of 32 bits and real numbers are compared as others: a running TVM."""
    ends = F32([np.inf, -np.inf, 3e38, np.nan])
    assert qnn.nn.add(ends, F32([1, 1, 3e38, 0])).tobytes() == F32([np.inf, -np.inf, np.inf, np.nan]).tobytes()
    assert qnn.nn.multiply(ends, F32([2, 2, -2, 1])).tobytes() == F32([np.inf, -np.inf, -np.inf, np.nan]).tobytes()
    whole = np.int32([2**31 - 1, -(2**31), 70000])
    assert qnn.nn.multiply(whole, np.int32([2, 2, 70000])).tolist() == [-2, 0, 70000**2 - 2**32]
    assert qnn.nn.maximum(whole, np.int32([0])).tolist() == [2**31 - 1, 0, 70000]
    assert qnn.nn.minimum(whole, np.int32([0])).tolist() == [0, -(2**31), 0]
    assert qnn.nn.less(whole, np.int32([70000])).tolist() == [False, True, False]
    assert qnn.nn.equal(ends, ends).tolist() == [True, True, True, False]
    assert qnn.nn.not_equal(ends, ends).tolist() == [False, False, False, True]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_space_to_depth(layout: str) -> None:
    """Channel c of position (y, x) in a block is channel (y size + x) channels + c."""
    x = np.random.default_rng(3).integers(-128, 128, (2, 3, 4, 6), np.int8, endpoint=False)
    expected = np.stack([x[:, :, b // 2 :: 2, b % 2 :: 2] for b in range(4)], axis=1).reshape(2, 12, 2, 3)
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    found = qnn.nn.space_to_depth(x.transpose(axes), 2, **({} if layout == "NCHW" else {"layout": layout}))
    np.testing.assert_array_equal(found, expected.transpose(axes))


REAL = {
    "tanh": lambda x: F32(math.tanh(x)),
    "exp": lambda x: F32(math.exp(x)),
    "erf": lambda x: F32(math.erf(x)),
    "log": lambda x: F32(math.log(x)) if x else F32(-np.inf),
    "abs": lambda x: abs(x),
    "sqrt": lambda x: F32(math.sqrt(x)),
    "rsqrt": lambda x: F32(1) / F32(math.sqrt(x)) if x else F32(np.inf),
    "sigmoid": lambda x: F32(1) / (F32(1) + F32(math.exp(-x))),
    "hardswish": lambda x: x * min(max(x + F32(3), F32(0)), F32(6)) / F32(6),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", REAL)
def test_functions_of_codes(name: str, dtype: str) -> None:
    low, high = RANGES[dtype]
    for scale, zero_point, s_out, z_out in ((0.05, low, 0.11, 3), (0.013, 5, 0.0078, low), (0.125, 100, 0.02, high)):
        x = np.arange(low, high + 1).astype(dtype)
        if name in ("sqrt", "rsqrt", "log"):
            x = x[x.astype(int) >= zero_point]
        found = getattr(qnn, name)(x, scale, zero_point, s_out, z_out)
        for q, y in zip(x.tolist(), found.tolist(), strict=True):
            real = F32(q - zero_point) * F32(scale)
            with np.errstate(over="ignore"):
                steps = F32(REAL[name](real)) / F32(s_out)
            if np.isinf(steps):
                assert y == (high if steps > 0 else low)
                continue
            whole = math.floor(abs(float(steps)) + 0.5) * (1 if steps >= 0 else -1)
            assert y == max(low, min(high, whole + z_out)), (q, float(steps))
    assert not _Both.declined


def test_simulated_quantization() -> None:
    x = np.random.default_rng(1).normal(size=(3, 5)).astype(F32) * 40
    x[0, 0], x[1, 1] = 1e12, -0.5
    scales, points = F32([0.5, 0.3]), np.int32([3, -2, 9])
    ends = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2.0**31), 2.0**31)}
    for dtype, (low, high) in ends.items():
        found = qnn.simulated_quantize(x, scales, points, axis=1, out_dtype=dtype)
        back = qnn.simulated_dequantize(found, scales, points, axis=1, in_dtype=dtype)
        for at in np.ndindex(x.shape):
            ratio = x[at] / scales[at[1] % 2]
            whole = F32(math.floor(abs(float(ratio)) + 0.5) * math.copysign(1, ratio))
            expected = F32(max(min(whole + F32(points[at[1] % 3]), F32(high)), F32(low)))
            assert found[at] == expected
            assert back[at] == (expected - F32(points[at[1] % 3])) * scales[at[1] % 2]
    np.testing.assert_array_equal(qnn.simulated_quantize(x, scales, points, out_dtype="disable"), x)
    np.testing.assert_array_equal(qnn.simulated_dequantize(x, scales, points, in_dtype="disable"), x)
    assert not _Both.declined


@pytest.mark.parametrize("place", PLACES)
def test_quantize_and_dequantize(place: tuple[int, int | None]) -> None:
    """One scale is multiplied by as its inverse, several are divided by, whatever the zero points are."""
    rank, axis = place
    rng = np.random.default_rng((rank, 9 if axis is None else axis))
    shape = tuple(int(v) for v in rng.integers(1, 6, rank))
    count = () if axis is None else (shape[axis],)
    given = -1 if axis is None else axis - rank if rng.random() < 0.5 else axis
    for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
        info = np.iinfo(dtype)
        s, z = parameters(rng, count, lambda n: rng.choice([0.5, 0.3, 1.7, 0.0123], n), -9, 9)
        spread = s if axis is None or not s.ndim else s.reshape(-1, *(1,) * (rank - axis - 1))
        # Ties, and what is near to them.
        x = np.asarray((rng.integers(-300, 300, shape) + F32(0.5)) * spread, F32)
        found = qnn.quantize(x, s, z, axis=given, out_dtype=dtype)
        real = qnn.dequantize(found, s, z, axis=given)
        half = qnn.dequantize(found, s, z, axis=given, out_dtype="float16")
        for at in np.ndindex(shape):
            scale, zero_point = (p[at[axis]] if p.ndim else p[()] for p in (s, z))
            steps = x[at] / scale if s.ndim else x[at] * F32(1 / float(scale))
            whole = math.floor(abs(float(steps)) + 0.5) * math.copysign(1, steps) + int(zero_point)
            assert found[at] == max(info.min, min(info.max, whole)), (at, x[at], scale)
            assert real[at] == F32(int(found[at]) - int(zero_point)) * scale
            assert half[at] == np.clip(real[at], -65504, 65504).astype(np.float16)
    assert {reason for _, reason in _Both.declined} <= {"differences may leave 32 bits"}


def test_layers_of_16_bits() -> None:
    """Without SSE 4.2 differences have 16 bits; with it they are whole."""
    x, w = np.int16([[32767, -32768, 7]]), np.uint8([[1, 2, 255]])
    narrow = int(np.sum((x + np.int16(5)).astype(int) * (w.astype(int) - 3)))
    whole = int(np.sum((x.astype(int) + 5) * (w.astype(int) - 3)))
    assert narrow != whole
    assert qnn.dense(x, w, -5, 3, 0.5, 0.5, 1).tolist() == [[narrow]]
    assert qnn.conv2d(x[None, None], w[None, None], -5, 3, 0.5, 0.5, (1, 3), 1).tolist() == [[[[narrow]]]]
    unsigned = x.astype(np.uint16)
    assert qnn.dense(unsigned, w, 0, 0, 0.5, 0.5, 1).tolist() == [[int(np.sum(x.astype(int) * w))]]
    for y in (
        qnn.dense(qnn.var("x", x.shape, "int16"), w, -5, 3, 0.5, 0.5, 1),
        qnn.requantize(
            qnn.dense(qnn.var("x", x.shape, "int16"), w, -5, 3, 0.5, 0.5, 1), 0.25, 0, 0.25, 0, out_dtype="int32"
        ),
    ):
        for numerics, expected in (("tvm-qnn", narrow), ("tvm-qnn-float64", narrow), ("tvm-qnn-float32", whole)):
            for executor in ("auto", "reference"):
                (found,) = qnn.model(y).prepare(numerics=numerics, executor=executor).run(x=x).values()
                assert found.tolist() == [[expected]], numerics


def test_sums_of_16_bits() -> None:
    x = np.full((1, 2, 1, 1), 127, np.int8)
    found = qnn.conv2d(x, np.full((1, 2, 1, 1), 255, np.uint8), -1, 0, 0.5, 0.5, (1, 1), 1, out_dtype="int16")
    assert found.dtype == np.int16
    assert found.item() == wrap(2 * 128 * 255, 16)


def test_nearest_without_sse_4_1_adds_a_half() -> None:
    """A run showed it: 0.49999997 becomes 1 without SSE 4.1, and 0 with it."""
    x = np.int32([1, -1])
    y = qnn.requantize(qnn.var("x", (2,), "int32"), F32(0.49999997), 0, 1.0, 0, -1, "TONEAREST", "float32")
    for numerics, expected in (("tvm-qnn", [1, -1]), ("tvm-qnn-float32", [0, 0])):
        for executor in ("native", "reference"):
            (found,) = qnn.model(y).prepare(numerics=numerics, executor=executor).run(x=x).values()
            assert found.tolist() == expected
