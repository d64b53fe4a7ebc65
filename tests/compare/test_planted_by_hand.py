"""`compare model.tflite trace:DIR`: dumps of a faulty device; the first differing tensor and the cause are named."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.compare.result import CompareResult
from support import faulty_device as device
from support.faulty_network import Fault, Network, dump, way, wrong

NETWORK = Network()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "network.tflite"
    path.write_bytes(NETWORK.model())
    return path


def compared(model: Path, folder: Path, tensors: dict[str, np.ndarray], **types: str) -> CompareResult:
    return bittrue.compare_models(model, f"trace:{dump(tensors, folder, types)}")


def causes(result: CompareResult, tensor: str) -> list[str]:
    pair = next(p for p in result.pairs if p.a == tensor)
    assert pair.verdict is not None, pair.note
    assert pair.verdict.exact, pair.verdict.text
    return [cause.name for cause in pair.verdict.causes]


def exactly(mode: str) -> Any:
    """Rounding of the exact product."""

    def rounded(acc: int, m: int, e: int) -> int:
        q = Fraction(acc * m) * Fraction(2) ** (e - 31)
        low = q.numerator // q.denominator
        if mode == "trunc" and q < 0:
            return low + (q != low)
        return low + (mode == "ceil" and q != low)

    return rounded


def then(shift: Any) -> Any:
    """The high product rounded up, and `shift` (value, places) for what remains."""
    return lambda acc, m, e: shift((acc * 2 ** max(e, 0) * m + (1 << 30)) >> 31, max(-e, 0))


def _kept(bits: int) -> Any:
    """Multipliers rounded to fewer bits."""
    drop = 31 - bits
    return lambda ms: [(((m + (1 << (drop - 1))) >> drop) << drop, e) for m, e in ms]


def _after(change: Any) -> Fault:
    """A right result, changed."""

    def run(layer: device.Layer, quantized: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(change(device.run(layer, quantized)))

    return run


def _last_row(value: int) -> Any:
    def change(y: np.ndarray) -> np.ndarray:
        y[:, -1] = value
        return y

    return change


def _repeat_column(y: np.ndarray) -> np.ndarray:
    y[:, :, -1] = y[:, :, -2]
    return y


def _tail(y: np.ndarray) -> np.ndarray:
    y.reshape(-1)[-32:] = 0
    return y


def _clamp_first(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    return np.clip(np.clip(value, *device.ends(layer)) + layer.out_zero, -128, 127)


def _seen(name: str, tensor: str, fault: Fault, id: str = "") -> Any:
    return pytest.param(name, tensor, fault, id=f"{tensor}-{id or name}")


FAULTS = [
    _seen("input zero point ignored", "c", wrong(in_zero=0)),
    _seen("input zero point 5 too small", "c", wrong(in_zero=lambda z: z - 5)),
    _seen("input zero point 2 too large", "d", wrong(in_zero=lambda z: z + 2)),
    _seen("input zero point negated", "d", wrong(in_zero=128)),
    _seen("output zero point 3 too large", "d", wrong(out_zero=lambda z: z + 3)),
    _seen("output zero point 20 too large", "y", wrong(out_zero=lambda z: z + 20)),
    _seen("output zero point ignored", "d", wrong(out_zero=0)),
    _seen("padding with quantized value 0", "c", way(pad_with=0)),
    _seen("padding swapped: left and right", "c", wrong(pads=lambda p: (p[1], p[0], p[3], p[2]))),
    _seen("padding all at the end", "c", wrong(pads=(0, 0, 0, 0))),
    _seen("bias dropped", "c", wrong(bias=lambda b: b * 0)),
    _seen("bias dropped", "d", wrong(bias=lambda b: b * np.int32([1, 1, 0, 1, 1, 1])), "bias dropped in channel 2"),
    _seen("bias added twice", "d", wrong(bias=lambda b: b * 2)),
    _seen("weights OHWI read as HWIO", "c", wrong(weights=lambda w: w.reshape(3, 3, 3, 6).transpose(3, 0, 1, 2))),
    _seen(
        "weights stored as HWIO, read as OHWI",
        "c",
        wrong(weights=lambda w: np.ascontiguousarray(w.transpose(1, 2, 3, 0)).reshape(w.shape)),
    ),
    _seen("weights stored transposed", "y", wrong(weights=lambda w: np.ascontiguousarray(w.T).reshape(w.shape))),
    _seen("weights cut to their upper 4 bits", "c", wrong(weights=lambda w: w >> 4 << 4)),
    _seen(
        "input flattened in another layout",
        "y",
        lambda layer, x: device.run(
            layer, np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(x.shape), rounding=device.one_step
        ),
    ),
    _seen("exponent one too small", "c", way(scaled=lambda ms: [(m, e - 1) for m, e in ms])),
    _seen("exponent one too large", "d", way(scaled=lambda ms: [(m, e + (i == 4)) for i, (m, e) in enumerate(ms)])),
    _seen("multiplier of channel 0 for all channels", "d", wrong(weight_scales=lambda s: s * 0 + s[0])),
    _seen("multiplier rounded to 8 bits", "d", way(scaled=_kept(8))),
    _seen("relu taken for relu6", "c", wrong(activation="relu6")),
    _seen("clamp before the zero point", "c", way(finish=_clamp_first)),
    _seen("saturates to [-127, 127]", "d", way(finish=lambda layer, v: np.clip(v + layer.out_zero, -127, 127))),
    _seen("wraps instead of saturating", "d", way(finish=lambda layer, v: v + layer.out_zero)),
    _seen("accumulator wraps at 16 bits", "c", way(register=lambda a: (a + 32768) % 65536 - 32768)),
    _seen("exact product, ceiling", "c", way(rounding=exactly("ceil"))),
    _seen("exact product, trunc", "d", way(rounding=exactly("trunc"))),
    _seen("channels of the result reversed", "c", _after(lambda y: y[..., ::-1])),
    _seen("slices of the result in another order", "c", _after(lambda y: y[..., [0, 1, 3, 2, 4, 5]])),
    _seen("result in NCHW order", "d", _after(lambda y: y.transpose(0, 3, 1, 2).reshape(y.shape))),
    _seen("part of the result not written", "d", _after(_last_row(7)), "last row not written"),
    _seen("part of the result repeated", "d", _after(_repeat_column), "last column repeated"),
    _seen("part of the result not written", "d", _after(_tail), "tail not written"),
    _seen(
        "first input and second input scales swapped",
        "s",
        lambda a, b, s, z: device.add(a, b, (s[1], s[0], s[2]), z),
    ),
    _seen("output zero point ignored", "s", lambda a, b, s, z: device.add(a, b, s, (z[0], z[1], 0))),
    _seen("difference instead of sum", "s", lambda a, b, s, z: device.add(a, b, s, z, sign=-1)),
    _seen("average counts padding", "p", lambda x, ways: device.pool(x, **{**ways, "all_taps": True})),
    _seen("average=integer_trunc", "p", lambda x, ways: device.pool(x, **{**ways, "mode": "trunc"})),
    _seen("max_pool instead of average_pool", "p", lambda x, ways: device.pool(x, **{**ways, "mode": "max"})),
]  # fmt: skip


@pytest.mark.in_turns(6)
@pytest.mark.parametrize(("name", "tensor", "fault"), FAULTS)
def test_a_faulty_device(model: Path, tmp_path: Path, name: str, tensor: str, fault: Fault) -> None:
    result = compared(model, tmp_path, NETWORK.run(NETWORK.image(), tensor, fault))
    assert result.first is not None
    assert result.first.a == tensor
    assert causes(result, tensor) == [name], result.first.verdict
    judged = [p for p in result.pairs if p.isolated is not None and not p.isolated.equal]
    assert [p.a for p in judged] == [tensor], "what follows is computed rightly from what is wrong"


def test_the_device_without_a_fault(model: Path, tmp_path: Path) -> None:
    assert compared(model, tmp_path, NETWORK.run(NETWORK.image())).equal


@pytest.mark.parametrize(
    ("name", "shift"),
    [
        ("two steps, ties up then floor", lambda v, n: v >> n),
        ("two steps, ties up then trunc", lambda v, n: (abs(v) >> n) * (1 if v >= 0 else -1)),
    ],
)
def test_two_roundings_one_after_the_other(tmp_path: Path, name: str, shift: Any) -> None:
    """Near enough to one rounding that two of 576 elements tell them apart: the nearer one must not be claimed."""
    network = Network(17, 15, 3, 8)
    path = tmp_path / "larger.tflite"
    path.write_bytes(network.model())
    result = compared(path, tmp_path / "dump", network.run(network.image(), "d", way(rounding=then(shift))))
    assert causes(result, "d") == [name]
    assert next(p for p in result.pairs if p.a == "d").verdict.benign  # type: ignore[union-attr]


def test_a_dump_that_is_not_what_the_device_computed_with(model: Path, tmp_path: Path) -> None:
    good = NETWORK.run(NETWORK.image())
    shown = {**good, "d": np.roll(good["d"].reshape(-1), 1).reshape(good["d"].shape)}
    result = compared(model, tmp_path, shown)
    assert causes(result, "d") == ["result shifted by one element"]
    assert causes(result, "s") == ["input is not what is shown"]


def test_one_bit_of_a_dump(model: Path, tmp_path: Path) -> None:
    """The operator that reads the tensor proves that it was computed right, so nothing is left unexplained."""
    good = NETWORK.run(NETWORK.image())
    changed = good["d"].copy()
    changed.reshape(-1)[37] ^= 8
    result = compared(model, tmp_path, {**good, "d": changed})
    element = ", ".join(str(int(i)) for i in np.unravel_index(37, changed.shape))
    for name in ("d", "s"):
        assert causes(result, name) == ["input is not what is shown"]
    assert result.unexplained == 0
    assert result.first is not None
    assert result.first.verdict is not None
    assert f"one bit flipped, 0x08, at element [{element}]" in result.first.verdict.text
    assert not any("ended early" in note for note in result.notes)
    assert "1 of 6 compared tensors differs, 1 other only in isolation" in result.to_markdown()


def test_memory_that_was_used_again(model: Path, tmp_path: Path) -> None:
    good = NETWORK.run(NETWORK.image())
    assert causes(compared(model, tmp_path, {**good, "s": good["p"]}), "s") == ["another tensor's values"]


def test_bytes_that_are_misread(model: Path, tmp_path: Path) -> None:
    good = NETWORK.run(NETWORK.image())
    result = compared(model, tmp_path / "unsigned", good, d="uint8")
    assert causes(result, "d") == ["bytes read as another type"]
    swapped = {**good, "d": good["d"].astype(np.int16).byteswap()}
    assert causes(compared(model, tmp_path / "swapped", swapped), "d") == ["bytes swapped"]


def test_a_dump_with_another_shape_is_a_difference(model: Path, tmp_path: Path) -> None:
    good = NETWORK.run(NETWORK.image())
    result = compared(model, tmp_path, {**good, "d": good["d"][:, 1:]})
    assert not result.equal
    assert result.first is not None
    assert result.first.a == "d"
    assert "another shape: [1, 5, 4, 6] in A, [1, 4, 4, 6] in B" in result.first.note


def test_one_corrupted_element_is_a_bug_and_no_rule(model: Path, tmp_path: Path) -> None:
    def corrupted(layer: device.Layer, quantized: np.ndarray) -> np.ndarray:
        y = device.run(layer, quantized)
        y.reshape(-1)[37] ^= 0x40
        return y

    result = compared(model, tmp_path, NETWORK.run(NETWORK.image(), "d", corrupted))
    verdict = next(p.verdict for p in result.pairs if p.a == "d")
    assert verdict is not None
    assert not verdict.exact
    assert (verdict.differing, verdict.unexplained, verdict.causes) == (1, 1, ())


def test_a_channel_of_small_differences_is_no_other_rounding(model: Path, tmp_path: Path) -> None:
    """All of one channel differ by one: rounding up would give that, but roundings are those of all channels."""

    def raised(layer: device.Layer, quantized: np.ndarray) -> np.ndarray:
        y = device.run(layer, quantized, rounding=exactly("ceil"))
        right = device.run(layer, quantized)
        y[..., :2], y[..., 3:] = right[..., :2], right[..., 3:]
        return y

    result = compared(model, tmp_path, NETWORK.run(NETWORK.image(), "d", raised))
    verdict = next(p.verdict for p in result.pairs if p.a == "d")
    assert verdict is not None
    assert not verdict.benign
