"""Graph, nodes, tensors and quantization parameters. Imports nothing else of bittrue."""

from .graph import (
    HALF_KERNEL,
    UNREPRODUCED,
    Attribute,
    Graph,
    ModelFile,
    Node,
    Quantization,
    Tensor,
    pack_integers,
    unpack_integers,
)
from .order import Disorder, find_disorder
from .types import DATA_TYPES, DataType, data_type

__all__ = [
    "DATA_TYPES",
    "HALF_KERNEL",
    "UNREPRODUCED",
    "Attribute",
    "DataType",
    "Disorder",
    "Graph",
    "ModelFile",
    "Node",
    "Quantization",
    "Tensor",
    "data_type",
    "find_disorder",
    "pack_integers",
    "unpack_integers",
]
