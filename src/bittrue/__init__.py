"""bittrue: run, check and compare pre-quantized neural networks, bit for bit.

>>> import bittrue
>>> session = bittrue.load(bittrue.demo_model()).prepare(numerics="litert")
>>> [port.name for port in session.inputs]
['serving_default_picture:0']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Model, Port, Session, load, load_plan
    from .check import CheckResult, check_model
    from .compare.comparison import compare_models
    from .conformance.conform import conform
    from .conformance.devices.library import device_header
    from .conformance.devices.opening import open_device
    from .conformance.identification.identify import identify
    from .errors import (
        BittrueError,
        InexactWarning,
        InputError,
        InvalidModelError,
        ModelFormatError,
        OutputError,
        ResourceError,
        RunError,
        UnsupportedError,
    )
    from .evaluation.evaluate import evaluate
    from .evaluation.merging import merge_evaluations
    from .explain import explain_element
    from .numerics import names as numerics_names
    from .parameters import choose_parameters
    from .plan import Plan
    from .quantization import dequantize, quantize
    from .runtime import isas
    from .runtime.profile import Profile
    from .samples import demo_digits, demo_model

__version__ = "0.1.0"

# Public name -> (module, attribute). Loaded on first use: `import bittrue` alone costs nothing.
_PUBLIC = {
    "BittrueError": ("errors", "BittrueError"),
    "CheckResult": ("check", "CheckResult"),
    "InexactWarning": ("errors", "InexactWarning"),
    "InputError": ("errors", "InputError"),
    "InvalidModelError": ("errors", "InvalidModelError"),
    "Model": ("api", "Model"),
    "ModelFormatError": ("errors", "ModelFormatError"),
    "OutputError": ("errors", "OutputError"),
    "Plan": ("plan", "Plan"),
    "Profile": ("runtime.profile", "Profile"),
    "Port": ("api", "Port"),
    "ResourceError": ("errors", "ResourceError"),
    "RunError": ("errors", "RunError"),
    "Session": ("api", "Session"),
    "UnsupportedError": ("errors", "UnsupportedError"),
    "check_model": ("check", "check_model"),
    "choose_parameters": ("parameters", "choose_parameters"),
    "compare_models": ("compare.comparison", "compare_models"),
    "conform": ("conformance.conform", "conform"),
    "demo_digits": ("samples", "demo_digits"),
    "demo_model": ("samples", "demo_model"),
    "dequantize": ("quantization", "dequantize"),
    "device_header": ("conformance.devices.library", "device_header"),
    "evaluate": ("evaluation.evaluate", "evaluate"),
    "explain_element": ("explain", "explain_element"),
    "identify": ("conformance.identification.identify", "identify"),
    "isas": ("runtime", "isas"),
    "load": ("api", "load"),
    "load_plan": ("api", "load_plan"),
    "merge_evaluations": ("evaluation.merging", "merge_evaluations"),
    "numerics_names": ("numerics", "names"),
    "open_device": ("conformance.devices.opening", "open_device"),
    "quantize": ("quantization", "quantize"),
}

__all__ = [
    "BittrueError",
    "CheckResult",
    "InexactWarning",
    "InputError",
    "InvalidModelError",
    "Model",
    "ModelFormatError",
    "OutputError",
    "Plan",
    "Port",
    "Profile",
    "ResourceError",
    "RunError",
    "Session",
    "UnsupportedError",
    "__version__",
    "check_model",
    "choose_parameters",
    "compare_models",
    "conform",
    "demo_digits",
    "demo_model",
    "dequantize",
    "device_header",
    "evaluate",
    "explain_element",
    "identify",
    "isas",
    "load",
    "load_plan",
    "merge_evaluations",
    "numerics_names",
    "open_device",
    "quantize",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'bittrue' has no attribute {name!r}")
    from .uncollected import uncollected

    module, attribute = _PUBLIC[name]
    value = getattr(uncollected(import_module)(f".{module}", __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
