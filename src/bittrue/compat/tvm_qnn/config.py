"""How requantizations round and compute, where calls do not say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

from ...errors import InputError

ROUNDING = ("UPWARD", "TONEAREST")
COMPUTE_DTYPES = ("int64", "float32", "float64")
OPEN = "None"


@dataclass
class RequantizeConfig:
    """What a `with requantize_config(...)` block sets; ``"None"`` leaves a choice to the numerics that runs the graph.

    Attributes:
        rounding: ``"UPWARD"``, ``"TONEAREST"`` or ``"None"``.
        compute_dtype: ``"int64"``, ``"float32"``, ``"float64"`` or ``"None"``.
    """

    rounding: str = OPEN
    compute_dtype: str = OPEN
    _tokens: list[Token[RequantizeConfig]] = field(default_factory=list, repr=False, compare=False)

    def __enter__(self) -> RequantizeConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _CURRENT.reset(self._tokens.pop())


_CURRENT: ContextVar[RequantizeConfig] = ContextVar("requantize_config", default=RequantizeConfig())  # noqa: B039


def choice(function: str, name: str, value: Any) -> str:
    """A rounding or compute_dtype as given; InputError for anything else."""
    allowed = ROUNDING if name == "rounding" else COMPUTE_DTYPES
    if value is None or (isinstance(value, str) and value == OPEN):
        return OPEN
    if not isinstance(value, str) or value not in allowed:
        raise InputError(
            "BT-QNN-VALUE",
            f"found {value!r}",
            place=f"qnn.{function}, argument '{name}'",
            advice=f"one of {', '.join(allowed)}, or 'None'",
        )
    return str(value)


def requantize_config(**settings: Any) -> RequantizeConfig:
    """A context in which requantizations round and compute as `settings` say, also those inside of add, mul, ...

    Args:
        rounding: ``"UPWARD"`` (ties to plus infinity) or ``"TONEAREST"`` (ties away from zero).
        compute_dtype: ``"int64"``, ``"float32"`` or ``"float64"``.

    What is not named is left to the numerics that runs the graph (`tvm-qnn`: UPWARD and int64). The system itself takes
    float32 for processors with SSE 4.1: that is numerics `tvm-qnn-float32`. In a block that names one of both it takes
    UPWARD, and the compute_dtype of the target that is current there, without one int64: name both.
    Source: tvm v0.18.0, python/tvm/relay/qnn/op/qnn.py, run.

    >>> from bittrue import qnn
    >>> import numpy as np
    >>> with requantize_config(rounding="TONEAREST"):
    ...     qnn.requantize(np.int32([-1, 1]), 0.5, 0, 1.0, 0).tolist()
    [-1, 1]
    >>> qnn.requantize(np.int32([-1, 1]), 0.5, 0, 1.0, 0).tolist()
    [0, 1]
    """
    for name in settings:
        if name not in ("rounding", "compute_dtype"):
            raise InputError(
                "BT-QNN-ARGUMENT",
                f"no setting '{name}'",
                place="qnn.requantize_config",
                advice="rounding, compute_dtype",
            )
    chosen = {name: choice("requantize_config", name, value) for name, value in settings.items()}
    return RequantizeConfig(chosen.get("rounding", OPEN), chosen.get("compute_dtype", OPEN))


def current_requantize_config() -> RequantizeConfig:
    """The configuration of the innermost `requantize_config` block; all open outside of one.

    >>> current_requantize_config()
    RequantizeConfig(rounding='None', compute_dtype='None')
    """
    return _CURRENT.get()


def resolved(function: str, rounding: Any = OPEN, compute_dtype: Any = OPEN) -> dict[str, str]:
    """Attributes of a node: what the call says, else what the configuration says."""
    config = current_requantize_config()
    given = {"rounding": choice(function, "rounding", rounding)}
    given["compute_dtype"] = choice(function, "compute_dtype", compute_dtype)
    return {name: getattr(config, name) if value == OPEN else value for name, value in given.items()}


def check_single_number(function: str, argument: str, shape: Sequence[int], zero_point: np.ndarray | None) -> None:
    """InputError for a single number with a zero point other than 0, which is None where runs compute it: the system's
    types do not take it off.
    """
    if not shape and zero_point is not None and zero_point.any():
        raise InputError(
            "BT-QNN-SHAPE",
            f"the system requantizes no single number with zero point {zero_point.tolist()}",
            place=f"qnn.{function}, argument '{argument}'",
            advice="give it an axis: shape [1]",
        )


def check_compiled_axis(function: str, argument: str, axis: Any, scale: np.ndarray, choice: Mapping[str, str]) -> None:
    """InputError for an axis that the system does not compile: it counts other negative ones than -1 from the front.

    With rounding UPWARD and compute_dtype int64 that is the same, and so it is where there is one scale.
    """
    other = choice["rounding"] == "TONEAREST" or choice["compute_dtype"] in ("float32", "float64")
    if scale.ndim and other and axis < -1:
        raise InputError(
            "BT-QNN-VALUE",
            f"found {axis}, which the system compiles for UPWARD and int64 only",
            place=f"qnn.{function}, argument '{argument}'",
            advice="count from the front",
        )
