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
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from .values import IOBinding, OrtValue

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Interpreter",
    "NodeArg",
    "OpResolverType",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "SignatureRunner",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]
