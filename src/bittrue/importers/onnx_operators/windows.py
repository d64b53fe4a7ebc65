"""Attributes of ONNX's convolutions and pools."""

from __future__ import annotations

from ...graph import Attribute
from .base import Source


def window_attributes(source: Source, dilated: bool = True) -> dict[str, Attribute]:
    """`kernel_shape`, `strides`, `dilations`, `pads` (empty where absent: the rank decides) and `auto_pad`.

    Args:
        source: the node.
        dilated: whether there is an attribute `dilations`.
    """
    lists = {name: sizes(source, name) for name in ("kernel_shape", "strides", "pads")}
    lists["dilations"] = sizes(source, "dilations") if dilated else ()
    if min(lists["pads"], default=0) < 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"pads are negative: {list(lists['pads'])}")
    ranks = {len(values) / (2 if name == "pads" else 1) for name, values in lists.items() if values}
    if len(ranks) > 1:
        counts = ", ".join(f"{len(values)} {name}" for name, values in lists.items() if values)
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"the numbers of sizes do not fit together: {counts}")
    # The empty text is the default to the runtime.
    return {**lists, "auto_pad": source.text("auto_pad", "NOTSET") or "NOTSET"}


def pool_attributes(source: Source, dilated: bool = True) -> dict[str, Attribute]:
    """The windows of a pool in the form that all pools have, channels first; no `pads` where `auto_pad` says them."""
    given = window_attributes(source, dilated)
    if not given["kernel_shape"]:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "attribute 'kernel_shape' is missing")
    auto, ceil = str(given["auto_pad"]), source.flag("ceil_mode", False, False)
    pads = given["pads"] or (0,) * 2 * len(sizes(source, "kernel_shape"))
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute 'auto_pad' is '{auto}'")
    return {
        "kernel": given["kernel_shape"],
        "strides": given["strides"],
        "dilations": given["dilations"],
        "pads": pads if auto == "NOTSET" else (),
        "padding": f"{auto.lower()}_of_taps" if auto.startswith("SAME") else "explicit_below_taps",
        "size": "ceil_clipped" if ceil else "truncated_or_none",
        "channels_last": False,
    }


# The window is the whole image.
WHOLE: dict[str, Attribute] = {
    "kernel": (),
    "strides": (),
    "dilations": (),
    "pads": (),
    "padding": "explicit",
    "size": "floor",
    "channels_last": False,
}


def convolution_attributes(source: Source) -> dict[str, Attribute]:
    """The same of a convolution, which must not have both `pads` and `auto_pad`."""
    attributes = window_attributes(source)
    if attributes["auto_pad"] != "NOTSET" and attributes["pads"]:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", "has both 'auto_pad' and 'pads'", "the runtime refuses it, too; remove one of them"
        )
    return {**attributes, "groups": source.integer("group", 1)}


def sizes(source: Source, name: str) -> tuple[int, ...]:
    """A list of sizes, empty where it is absent; one that is there has sizes."""
    values = source.integers(name)
    if values == ():
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is an empty list", "leave it out")
    return values or ()
