"""The calls that programs make of ONNX Runtime and of the TFLite interpreter, answered by bittrue.

A program changes one import: ``import bittrue.compat as onnxruntime``, or ``from bittrue.compat import Interpreter``.
"""

from .inference_session import InferenceSession, NodeArg
from .interpreter import Interpreter, OpResolverType, SignatureRunner
from .options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    get_available_providers,
    get_device,
)

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "InferenceSession",
    "Interpreter",
    "NodeArg",
    "OpResolverType",
    "RunOptions",
    "SessionOptions",
    "SignatureRunner",
    "get_available_providers",
    "get_device",
]
