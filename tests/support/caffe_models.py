"""Networks of layers and their weights, as the files that the importer reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bittrue.importers.caffe_schema import messages

# The field of a layer with its parameters.
PARAMETERS = {
    "Convolution": "convolution_param",
    "ConvolutionDepthwise": "convolution_param",
    "Deconvolution": "convolution_param",
    "InnerProduct": "inner_product_param",
    "Bias": "bias_param",
    "Concat": "concat_param",
    "Power": "power_param",
    "ResizeBilinear": "resize_bilinear_param",
    "Sigmoid": "sigmoid_param",
    "Softmax": "softmax_param",
    "SpatialBatchingPooling": "spatial_batching_pooling_param",
    "ReLU": "relu_param",
    "Pooling": "pooling_param",
    "Eltwise": "eltwise_param",
    "Reshape": "reshape_param",
    "Flatten": "flatten_param",
    "Dropout": "dropout_param",
}


def text_of(value: Any) -> str:
    """A field as text: words stay words (names of enumerations), texts are {"text": ...}."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


@dataclass
class Files:
    """A network as text and its weights, while layers are added."""

    inputs: Mapping[str, Sequence[int]]
    text: str = ""
    weights: Any = field(default_factory=lambda: messages()["NetParameter"]())

    def __post_init__(self) -> None:
        for name, shape in self.inputs.items():
            dims = " ".join(f"dim: {size}" for size in shape)
            self.text += f'input: "{name}" input_shape {{ {dims} }}\n'

    def add(
        self,
        kind: str,
        name: str,
        bottoms: Sequence[str],
        tops: Sequence[str],
        blobs: Sequence[np.ndarray] = (),
        **fields: Any,
    ) -> None:
        """A layer; a list is a repeated field."""
        links = " ".join([*(f'bottom: "{b}"' for b in bottoms), *(f'top: "{t}"' for t in tops)])
        inside = " ".join(
            f"{key}: {text_of(one)}"
            for key, value in fields.items()
            for one in (value if isinstance(value, list | tuple) else [value])
        )
        parameter = f" {PARAMETERS[kind]} {{ {inside} }}" if fields else ""
        self.text += f'layer {{ name: "{name}" type: "{kind}" {links}{parameter} }}\n'
        if len(blobs):
            layer = self.weights.layer.add(name=name, type=kind)
            for array in blobs:
                blob = layer.blobs.add()
                blob.shape.dim.extend(array.shape)
                blob.data.extend(np.asarray(array, np.float32).reshape(-1).tolist())

    @property
    def network(self) -> bytes:
        return self.text.encode()

    @property
    def learned(self) -> bytes:
        content: bytes = self.weights.SerializeToString()
        return content
