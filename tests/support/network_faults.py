"""Faults that are planted into the network of `network_formats`, and what a comparison says of each in each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bittrue.compare.comparison import Comparison
from bittrue.compare.inputs import Given
from bittrue.compare.result import CompareResult
from bittrue.runners.ours import Ours

from . import faulty_device as device
from .network_formats import Format, Net, first, windows
from .recordings import Shown, recording

Array = np.ndarray
Tensors = Mapping[str, Array]
# (format, network, tensors so far) -> the faulty tensor.
Planted = Callable[[Format, Net, Tensors], Array]


def pooled(x: Array, net: Net, **ways: Any) -> Array:
    """The maximum of neighbours."""
    return device.pool(x, net.taps, net.step, net.pool, net.inner[1:3], "max", **ways)


def padded_maximum(x: Array, net: Net) -> Array:
    """The same with code 0 around the images."""
    wide = np.pad(x, ((0, 0), net.pool[:2], net.pool[2:], (0, 0)))
    return device.pool(wide, net.taps, net.step, (0, 0, 0, 0), net.inner[1:3], "max")


def floored_average(form: Format, x: Array, net: Net) -> Array:
    """The average of neighbours rounded down. Zero points are integers: they play no part where scales are equal."""
    total, count = windows(x, net)
    whole = count * 0 + net.taps**2 if form.counts_padding else count
    factor = np.float64(np.float32(net.scales["m"])) / np.float64(np.float32(net.scales["p"]))
    value = np.floor((total - count * net.zeros["m"]) * factor / whole) + net.zeros["p"]
    kind = np.iinfo(x.dtype)
    return np.asarray(np.clip(value, kind.min, kind.max).astype(x.dtype))


def rows(form: Format, x: Array) -> Array:
    """What the fully-connected layer reads: images in the order of the file."""
    return x if x.ndim == 2 else (x if form.channels_last else first(x)).reshape(1, -1)


# How every tensor follows from those before.
USUAL: dict[str, Planted] = {
    "c": lambda f, n, t: device.run(n.c, t["x"]),
    "d": lambda f, n, t: device.run(n.d, t["c"]),
    "s": lambda f, n, t: f.add(t["c"], t["d"], n),
    "m": lambda f, n, t: pooled(t["s"], n),
    "p": lambda f, n, t: f.average(t["m"], n),
    "y": lambda f, n, t: device.run(n.y, rows(f, t["p"])),
}


def run(form: Format, net: Net, x: Array, at: str = "", fault: Planted | None = None) -> dict[str, Array]:
    """Every tensor; the one called `at` comes from `fault`, and those behind it follow from that."""
    found = {"x": x}
    for name, right in USUAL.items():
        found[name] = (fault if fault is not None and name == at else right)(form, net, found)
    return found


def compared(form: Format, net: Net, x: Array, at: str, fault: Planted | None) -> CompareResult:
    """What `bittrue compare` says of the model and a device's dump of all tensors."""
    model = form.write(net)
    ours = Ours("net", Path("net"), model, form.numerics)
    source = ours.inputs[0].name
    tensors = run(form, net, x, at, fault)
    dump = {form.names[k]: v if form.channels_last else first(v) for k, v in tensors.items()}
    if source != form.names["x"]:
        real = x.astype(np.float32) * (np.float32(net.scales["x"]) if form.symmetric else np.float32(1))
        dump = {source: real if form.channels_last else first(real), **dump}
    return Comparison(ours, Shown(recording(dump, [source], [form.names["y"]])), [Given()]).result(True, False)


def image(form: Format, net: Net, seed: int = 5) -> Array:
    """Random quantized values; where the file quantizes real numbers, none that stands for two of them."""
    kind = np.iinfo(form.dtype)
    low = kind.min + 1 if form.symmetric else kind.min
    return np.random.default_rng(seed).integers(low, kind.max + 1, net.shape).astype(form.dtype)


def _layer(form: Format, net: Net, at: str) -> tuple[device.Layer, Callable[[Tensors], Array]]:
    if at == "y":
        return net.y, lambda t: rows(form, t["p"])
    return (net.c, lambda t: t["x"]) if at == "c" else (net.d, lambda t: t["c"])


def wrong(at: str, **fields: Any) -> Planted:
    """A layer with other parameters: values, or functions of the right ones."""

    def planted(form: Format, net: Net, tensors: Tensors) -> Array:
        layer, source = _layer(form, net, at)
        changed = {k: v(getattr(layer, k)) if callable(v) else v for k, v in fields.items()}
        return device.run(replace(layer, **changed), source(tensors))

    return planted


def neighbour(at: str) -> Planted:
    """A layer with the weights of the channel before."""

    def planted(form: Format, net: Net, tensors: Tensors) -> Array:
        layer, source = _layer(form, net, at)
        weights = np.roll(layer.weights, 1, 3 if layer.kind == "depthwise" else 0)
        return device.run(replace(layer, weights=weights), source(tensors))

    return planted


def way(at: str, **ways: Any) -> Planted:
    """A layer computed in another way."""

    def planted(form: Format, net: Net, tensors: Tensors) -> Array:
        layer, source = _layer(form, net, at)
        return device.run(layer, source(tensors), **ways)

    return planted


def after(at: str, change: Callable[[Array], Array]) -> Planted:
    """A right result, changed."""
    return lambda form, net, tensors: change(USUAL[at](form, net, tensors))


def added(**changes: Callable[[Net], Any]) -> Planted:
    """The sum with other parameters."""

    def planted(form: Format, net: Net, tensors: Tensors) -> Array:
        return form.add(tensors["c"], tensors["d"], net, **{k: v(net) for k, v in changes.items()})

    return planted


def _clamp_first(layer: device.Layer, value: Array) -> Array:
    kind, (low, high) = np.iinfo(layer.dtype), device.ends(layer)
    return np.clip(np.clip(value, low, high) + layer.out_zero, kind.min, kind.max)


def _wraps(layer: device.Layer, value: Array) -> Array:
    return value + layer.out_zero


def _pads(*order: int) -> Callable[[Any], Any]:
    return lambda p: tuple(p[k] for k in order)


def _read_first(form: Format, net: Net, tensors: Tensors) -> Array:
    """The bytes of one order of axes, read in the other."""
    x = tensors["x"]
    stored = x if form.channels_last else first(x)
    n, h, w, c = x.shape
    other = stored.reshape(n, c, h, w).transpose(0, 2, 3, 1) if form.channels_last else stored.reshape(n, h, w, c)
    return device.run(net.c, np.ascontiguousarray(other))


def _other_type(x: Array) -> Array:
    return x.view(np.uint8 if x.dtype == np.int8 else np.int8)


def _read_as_other_type(form: Format, net: Net, tensors: Tensors) -> Array:
    return device.run(net.c, _other_type(np.ascontiguousarray(tensors["x"])))


def _weights_as_other_type(w: Array) -> Array:
    return _other_type(np.ascontiguousarray(w)).astype(np.int64)


def _zeros(at: int, value: int = 0) -> Callable[[Net], Any]:
    return lambda net: tuple(value if k == at else net.zeros[name] for k, name in enumerate("cds"))


def _no_zero(form: Format, net: Net) -> str:
    return "zero points are 0 in this format" if form.symmetric else ""


def _no_weight_zero(form: Format, net: Net) -> str:
    return "" if form.weight_zero else "weights have the zero point 0 in this format"


def _same_pads(a: int, b: int) -> Callable[[Format, Net], str]:
    return lambda form, net: "pads of both ends are equal in this format" if net.c.pads[a] == net.c.pads[b] else ""


def _one_scale(form: Format, net: Net) -> str:
    return "" if form.per_channel else "a layer has one scale in this format"


def _no_relu(form: Format, net: Net) -> str:
    return "" if form.relu else "no activation is fused in this format"


def _counts(form: Format, net: Net) -> str:
    return "this format's averages count padding" if form.counts_padding else ""


def _lowest(form: Format, net: Net) -> str:
    return "0 is the lowest value, and never the maximum" if form.dtype == "uint8" else ""


def _possible(form: Format, net: Net) -> str:
    return ""


def _once(ties: str, *others: str) -> tuple[str, ...]:
    """A product that is rounded once, whatever the multiplier is made of, and the rule of that name."""
    products = ("exact product", "product with a 31-bit multiplier", "binary64 product", "the same product")
    return (*(f"{product}, {ties}" for product in products), *others)


def _own(rounding: Any) -> Callable[[Format, Net], str]:
    def reason(form: Format, net: Net) -> str:
        c = device.run(net.c, image(form, net))
        same = (device.run(net.d, c) == device.run(net.d, c, rounding=rounding)).all()
        return "the system does so itself" if same else ""

    return reason


def _tie(title: str, rounding: Any, names: tuple[str, ...]) -> Fault:
    return Fault(title, "d", way("d", rounding=rounding), names, _own(rounding), powers=True)


def named(form: Format, net: Net, fault: Fault) -> str:
    """The cause that a comparison names; empty where that is not the fault, or where there is more."""
    result = compared(form, net, image(form, net), fault.at, fault.planted)
    verdicts = [pair.verdict for pair in result.pairs if pair.verdict is not None and pair.verdict.differing]
    if len(verdicts) != 1 or not verdicts[0].exact or len(verdicts[0].causes) != 1:
        return ""
    (verdict,) = verdicts
    # What further random inputs do not tell apart is one fault with several names.
    names = verdict.causes[0].name, *verdict.alike
    return names[0] if {*names} & {*fault.names} else ""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        title: in words.
        at: the tensor.
        planted: the device with it.
        names: of the causes that are right.
        reason: why a format cannot tell, if so.
        powers: whether it shows only where scales are powers of two.
    """

    title: str
    at: str
    planted: Planted
    names: tuple[str, ...]
    reason: Callable[[Format, Net], str] = _possible
    powers: bool = False

    def net(self, form: Format) -> Net:
        """One in which it shows."""
        return form.net(1, powers=True, size=(22, 18)) if self.powers else form.net(1)


FAULTS: dict[str, Fault] = {
    "pad-code": Fault(
        "padding holds 0 instead of the zero point",
        "c",
        way("c", pad_with=0),
        ("padding with quantized value 0",),
        _no_zero,
    ),
    "pad-code-dw": Fault(
        "padding holds 0, depthwise", "d", way("d", pad_with=0), ("padding with quantized value 0",), _no_zero
    ),
    "floor": Fault("rounding down", "c", way("c", rounding=device.floored), _once("floor")),
    "trunc": Fault("rounding toward zero", "c", way("c", rounding=device.truncated), _once("trunc")),
    "ties-even": _tie(
        "ties to even",
        device.ties_even,
        _once("ties even", "rescale=binary32_multiply_even", "rescale=binary32_multiply_even_wide"),
    ),
    "ties-away": _tie("ties away from zero", device.one_step_away, _once("ties away", "rescale=q31_one_step_away")),
    "ties-up": _tie(
        "ties up",
        device.one_step,
        _once("ties up", *(f"rescale=q31_one_step_up{way}" for way in ("", "_wrap", "_shift_wraps"))),
    ),
    "ties-zero": _tie("ties toward zero", device.ties_toward_zero, _once("ties toward zero")),
    "trunc-fc": Fault(
        "rounding toward zero, fully-connected", "y", way("y", rounding=device.truncated), _once("trunc")
    ),
    "in-zero": Fault("input's zero point ignored", "c", wrong("c", in_zero=0), ("input zero point ignored",), _no_zero),
    "in-zero-fc": Fault(
        "input's zero point ignored, fully-connected",
        "y",
        wrong("y", in_zero=0),
        ("input zero point ignored",),
        _no_zero,
    ),
    "w-zero": Fault(
        "weights' zero point ignored", "c", wrong("c", weight_zero=0), ("weight zero point ignored",), _no_weight_zero
    ),
    "out-zero": Fault(
        "output's zero point ignored",
        "d",
        wrong("d", out_zero=0),
        ("output zero point ignored", "store=clamp_alone"),
        _no_zero,
    ),
    "pads-v": Fault(
        "pads of top and bottom swapped",
        "c",
        wrong("c", pads=_pads(1, 0, 2, 3)),
        ("padding swapped: top and bottom",),
        _same_pads(0, 1),
    ),
    "pads-h": Fault(
        "pads of left and right swapped",
        "c",
        wrong("c", pads=_pads(0, 1, 3, 2)),
        ("padding swapped: left and right",),
        _same_pads(2, 3),
    ),
    "acc-wrap": Fault(
        "accumulator of 16 bits wraps",
        "c",
        way("c", register=lambda a: (a + 32768) % 65536 - 32768),
        ("accumulator wraps at 16 bits",),
    ),
    "acc-sat": Fault(
        "accumulator of 16 bits saturates",
        "c",
        way("c", register=lambda a: np.clip(a, -32768, 32767)),
        ("accumulator saturates at 16 bits",),
    ),
    "w-roll": Fault(
        "weights of the neighbouring channel",
        "c",
        neighbour("c"),
        ("weights shifted by one output channel",),
    ),
    "w-roll-dw": Fault(
        "weights of the neighbouring channel, depthwise",
        "d",
        neighbour("d"),
        ("weights shifted by one output channel",),
    ),
    "s-roll": Fault(
        "scale of the neighbouring channel",
        "c",
        wrong("c", weight_scales=lambda s: np.roll(s, 1)),
        ("multipliers shifted by one channel",),
        _one_scale,
    ),
    "s-zero": Fault(
        "scale of channel 0 for all channels",
        "d",
        wrong("d", weight_scales=lambda s: s * 0 + s[0]),
        ("multiplier of channel 0 for all channels",),
        _one_scale,
    ),
    "clamp-first-c": Fault(
        "clamp before the zero point", "c", way("c", finish=_clamp_first), ("clamp before the zero point",), _no_zero
    ),
    "wraps": Fault("wraps instead of saturating", "c", way("c", finish=_wraps), ("wraps instead of saturating",)),
    "b-twice": Fault("bias added twice", "c", wrong("c", bias=lambda b: 2 * b), ("bias added twice",)),
    "b-none": Fault("bias missing", "d", wrong("d", bias=lambda b: 0 * b), ("bias dropped",)),
    "b-none-fc": Fault("bias missing, fully-connected", "y", wrong("y", bias=lambda b: 0 * b), ("bias dropped",)),
    "b-roll": Fault(
        "bias of the neighbouring channel",
        "c",
        wrong("c", bias=lambda b: np.roll(b, 1)),
        ("bias shifted by one channel",),
    ),
    "exp+": Fault(
        "exponent one too large",
        "c",
        way("c", scaled=lambda ms: [(m, e + 1) for m, e in ms]),
        ("exponent one too large",),
    ),
    "exp-": Fault(
        "exponent one too small",
        "y",
        way("y", scaled=lambda ms: [(m, e - 1) for m, e in ms]),
        ("exponent one too small",),
    ),
    "act": Fault("activation ignored", "c", wrong("c", activation="none"), ("fused activation ignored",), _no_relu),
    "dil": Fault("dilation ignored", "d", wrong("d", dilation=(1, 1)), ("dilation ignored",)),
    "w-type": Fault(
        "weights of the other sign",
        "c",
        wrong("c", weights=_weights_as_other_type),
        ("weights read as unsigned", "weights read as signed"),
    ),
    "x-type": Fault(
        "input read with the other sign",
        "c",
        _read_as_other_type,
        ("input quantized values read as unsigned bytes", "input quantized values read as signed bytes"),
    ),
    "layout": Fault("input read in the other layout", "c", _read_first, ("input read as NCHW", "input read as NHWC")),
    "bit": Fault("one bit stuck at 1", "d", after("d", lambda v: v | v.dtype.type(4)), ("result's bit 2 stuck at 1",)),
    "pool-pads": Fault(
        "average counts padding",
        "p",
        lambda f, n, t: f.average(t["m"], n, count_all=True),
        ("average counts padding",),
        _counts,
    ),
    "pool-floor": Fault(
        "average rounds down", "p", lambda f, n, t: floored_average(f, t["m"], n), ("exact result, floor",)
    ),
    "max-pads": Fault(
        "maximum over padding with 0",
        "m",
        lambda f, n, t: padded_maximum(t["s"], n),
        ("padding with quantized value 0",),
        _lowest,
    ),
    "add-zero": Fault(
        "zero point of the first summand ignored",
        "s",
        added(zeros=_zeros(0)),
        ("first input zero point ignored",),
        _no_zero,
    ),
    "add-scales": Fault(
        "scales of the summands swapped",
        "s",
        added(scales=lambda n: tuple(n.scales[k] for k in "dcs")),
        ("first input and second input scales swapped",),
    ),
    "add-sub": Fault("difference instead of sum", "s", added(sign=lambda n: -1), ("difference instead of sum",)),
    "w-turned": Fault(
        "weights of the layer turned by 180 degrees",
        "c",
        wrong("c", weights=lambda w: w[:, ::-1, ::-1]),
        ("weights rotated by 180 degrees",),
    ),
    "fc-t": Fault(
        "matrix read column by column",
        "y",
        wrong("y", weights=lambda w: w.reshape(w.shape[::-1]).T),
        ("weights transposed", "weights stored transposed"),
    ),
}
