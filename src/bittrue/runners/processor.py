"""Which numerics has a runtime's bits on the processor at hand: the one place that decides it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from ..numerics import names
from ..runtime import isas

# The best instruction set of a processor for which ONNX Runtime was measured -> the numerics that has its bits there.
_MEASURED = {"avx512vnni": "onnxruntime", "avx2": "onnxruntime-avx2", "neon-dotprod": "onnxruntime@aarch64"}
# The same of LiteRT's delegate.
_DELEGATE = {"avx512vnni": "xnnpack", "avx2": "xnnpack-avx2", "neon-dotprod": "xnnpack@aarch64"}
# Those for which nobody has: which numerics is nearest, and why it is not the same.
_NEAREST = {
    "avxvnni": ("onnxruntime", "exact products of 8 bits as there, but real numbers in vectors of 256 bits"),
}
_NEAREST_DELEGATE = {"avxvnni": ("xnnpack-avx2", "real numbers as there, but sums and products of 8 bits by VNNI")}
# The ending of the numerics of sessions with default options.
_DEFAULTS = "-defaults"


@dataclass(frozen=True)
class Here:
    """What stands for a runtime on one processor.

    Attributes:
        numerics: its name.
        unsure: why the runtime may give other bits here all the same; empty where it was measured.
    """

    numerics: str
    unsure: str = ""

    def with_options(self, integers: bool) -> str:
        """The numerics where ``session.qdqisint8allowed`` is `integers`.

        Off is what sessions on x86-64 begin with; on Arm, where they begin with on, there is no numerics for it.
        """
        off = f"{self.numerics}{_DEFAULTS}"
        return self.numerics if integers or off not in names() else off


def numerics_here(name: str) -> str:
    """The numerics of LiteRT's kernels on this processor, by their name on x86-64."""
    if name == "xnnpack":
        return delegate_here().numerics
    own = f"{name}@{'aarch64' if platform.machine() == 'arm64' else platform.machine()}"
    return own if own in names() else name


def processor_note(numerics: str) -> str:
    """What users of a numerics must know before they compare it with its runtime on this processor; or nothing."""
    if numerics in _DELEGATE.values():
        own = delegate_here()
        if own.numerics == numerics:
            return own.unsure
        return f"LiteRT's delegate on this processor has the bits of '{own.numerics}', which differ from '{numerics}'"
    if numerics.removesuffix(_DEFAULTS) not in _MEASURED.values():
        return ""
    here = onnxruntime_here()
    theirs = here.with_options(integers=not numerics.endswith(_DEFAULTS))
    if theirs == numerics:
        return here.unsure
    return f"ONNX Runtime on this processor has the bits of numerics '{theirs}', which differ from '{numerics}'"


def onnxruntime_here() -> Here:
    """The numerics of ONNX Runtime on this processor. `bittrue run` does not ask: it gives the same everywhere."""
    return _here("ONNX Runtime", _MEASURED, _NEAREST)


def delegate_here() -> Here:
    """The numerics of LiteRT's delegate on this processor, which `bittrue run` does not ask, either."""
    if platform.machine() in ("aarch64", "arm64"):
        return Here(_DELEGATE["neon-dotprod"])
    return _here("LiteRT's delegate", _DELEGATE, _NEAREST_DELEGATE)


def _here(runtime: str, measured: Mapping[str, str], nearest: Mapping[str, tuple[str, str]]) -> Here:
    best = next(iter(isas()), "")
    if best in measured:
        return Here(measured[best])
    usual = (measured["avx512vnni"], "bittrue does not know its instruction sets")
    numerics, why = nearest.get(best, usual)
    return Here(numerics, f"{runtime} was not measured on this processor ({best or 'unknown'}): {why}")
