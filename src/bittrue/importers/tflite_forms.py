"""Options of TFLite operators in the form in which our operators have them, whatever file they are from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..graph import Attribute, Graph, Node
from ..records import replace

Attributes = Mapping[str, Attribute]


def _pool(given: Attributes) -> dict[str, Attribute]:
    """Windows that do not fit are no error there."""
    same = given["padding"] == "same"
    return {
        "kernel": (given["filter_h"], given["filter_w"]),  # type: ignore[dict-item]
        "strides": (given["stride_h"], given["stride_w"]),  # type: ignore[dict-item]
        "dilations": (),
        "pads": (),
        "padding": "same_upper" if same else "explicit",
        "size": "floor" if same else "truncated_sum",
        "unfit": "empty",
        "channels_last": True,
        "activation": given["activation"],
    }


def _convolution(axes: str, dilated: bool = True, **more: Attribute) -> Callable[[Attributes], dict[str, Attribute]]:
    def form(given: Attributes) -> dict[str, Attribute]:
        same = given["padding"] == "same"
        windows = ("padding", *(f"{what}_{axis}" for what in ("stride", "dilation") for axis in axes))
        return {
            **{name: value for name, value in given.items() if name not in windows},
            "strides": tuple(int(given[f"stride_{axis}"]) for axis in axes),  # type: ignore[arg-type]
            "dilations": tuple(int(given[f"dilation_{axis}"]) for axis in axes if dilated),  # type: ignore[arg-type]
            "pads": (),
            "padding": "same_upper" if same else "explicit",
            "size": "floor" if same else "truncated_sum",
            **more,
        }

    return form


def _neighbours(given: Attributes) -> dict[str, Attribute]:
    """The channel at the end of the radius does not count."""
    radius = int(given["radius"])  # type: ignore[arg-type]
    numbers = {name: given[name] for name in ("bias", "alpha", "beta")}
    return {**numbers, "before": radius, "after": radius - 1, "divisor": 1, "channels_last": True}


def _resizing(given: Attributes) -> dict[str, Attribute]:
    modes = {"align_corners": given["align_corners"], "half_pixel": given["half_pixel_centers"]}
    transformation = "_".join(mode for mode, wanted in modes.items() if wanted) or "asymmetric"
    return {"transformation": transformation, "channels_last": True}


_WINDOWS = "STABLEHLO_REDUCE_WINDOW"
# Attributes of a window -> what the options call them.
_WINDOW = {
    "window": "window_dimensions",
    "strides": "window_strides",
    "dilations": "window_dilations",
    "gaps": "base_dilations",
    "paddings": "padding",
}
# What a body of one node makes of a window. Bodies of several nodes, and others, are no function.
_BODIES = {
    **dict.fromkeys(("ADD", "STABLEHLO_ADD"), "add"),
    **dict.fromkeys(("MUL", "STABLEHLO_MULTIPLY"), "mul"),
    **dict.fromkeys(("MAXIMUM", "STABLEHLO_MAXIMUM"), "maximum"),
    **dict.fromkeys(("MINIMUM", "STABLEHLO_MINIMUM"), "minimum"),
    **dict.fromkeys(("LOGICAL_AND", "STABLEHLO_AND"), "all"),
    **dict.fromkeys(("LOGICAL_OR", "STABLEHLO_OR"), "any"),
}


def _window(given: Attributes) -> dict[str, Attribute]:
    """As the options have them; `with_bodies` tells what the body is."""
    attributes = {name: given[field] for name, field in _WINDOW.items()}
    return {**attributes, "body_graph": given["body_graph"], "reduce_function": "none"}


def with_bodies(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """Graphs whose reductions of windows name their function, which files keep in graphs of one node."""

    def settled(node: Node) -> Node:
        at = node.attributes["body_graph"] if node.source == _WINDOWS else None
        body = graphs[at].nodes if isinstance(at, int) and 0 <= at < len(graphs) else ()
        function = _BODIES.get(body[0].source) if len(body) == 1 else None
        return replace(node, attributes={**node.attributes, "reduce_function": function}) if function else node

    return tuple(
        replace(graph, nodes=tuple(map(settled, graph.nodes)))
        if any(n.source == _WINDOWS for n in graph.nodes)
        else graph
        for graph in graphs
    )


# Options table to what makes its fields our attributes; the others are as they should be.
FORMS: Mapping[str, Callable[[Attributes], dict[str, Attribute]]] = {
    "Conv2DOptions": _convolution("hw", kernel_shape=(), channels_last=True),
    "Conv3DOptions": _convolution("dhw", kernel_shape=(), groups=1, channels_last=True),
    "DepthwiseConv2DOptions": _convolution("hw", kernel_shape=(), depthwise=True, channels_last=True),
    "LocalResponseNormalizationOptions": _neighbours,
    "Pool2DOptions": _pool,
    "ResizeBilinearOptions": _resizing,
    "ResizeNearestNeighborOptions": _resizing,
    "StablehloReduceWindowOptions": _window,
    "TransposeConvOptions": _convolution("hw", False, kernel_shape=(), groups=1, channels_last=True),
}
