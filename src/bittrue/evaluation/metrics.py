"""Figures of one's own: a Python function over all rows of an arithmetic."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError
from .rows import Row

# Takes a mapping for every sample without an error and gives a number, or numbers by name.
Metric = Callable[[Sequence[Mapping[str, Any]]], Any]

# The name that a file with a metric has as a module.
_MODULE = "bittrue_metric"


class Own:
    """The rows of one arithmetic, as a metric takes them.

    Args:
        metric: the function. It may have an attribute ``lower`` with names of figures that are the better the lower
            they are.
        numerics: the arithmetic.
    """

    def __init__(self, metric: Metric, numerics: str) -> None:
        self._metric, self._numerics = metric, numerics
        self._rows: list[dict[str, Any]] = []

    def add(self, row: Row) -> None:
        """One more sample."""
        answer = row.answers[self._numerics]
        own = {"position": row.position, "id": row.id, "label": row.label}
        self._rows.append({**own, "prediction": answer.prediction, "margin": answer.margin, **answer.details})

    def figures(self, others: Collection[str]) -> dict[str, int | float]:
        """What the metric makes of the rows, by name.

        Args:
            others: names of figures that there are already.

        Raises:
            InputError: it raised something, or gave what are no numbers, or figures that there are already.
        """
        name = _name(self._metric)
        found = _guarded(name, lambda: self._metric(self._rows))
        figures: dict[str, int | float] = {}
        for key, value in (found if isinstance(found, Mapping) else {name: found}).items():
            if not isinstance(key, str) or not isinstance(value, Real) or key in others:
                what = "a figure of the task" if key in others else f"{value!r:.80}"
                raise InputError(
                    "BT-METRIC",
                    f"expected a number, or numbers by names of their own, found '{key}': {what}",
                    place=f"metric '{name}'",
                )
            figures[key] = int(value) if isinstance(value, Integral) else float(value)
        return figures


def lower(metric: Metric) -> Collection[str]:
    """Names of figures that are the better the lower they are."""
    names = getattr(metric, "lower", ())
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InputError(
            "BT-METRIC", f"lower is a list of names of figures, found {names!r:.80}", place=f"metric '{_name(metric)}'"
        )
    return names


def find_metric(which: str) -> Metric:
    """The function that ``module:function`` or ``file.py:function`` names. Its code is run.

    Raises:
        InputError: there is none, or its module raised something.
    """
    module, colon, name = which.rpartition(":")
    if not colon or not module or not name:
        raise InputError(
            "BT-METRIC", f"expected module:function or file.py:function, found '{which}'", place="--metric"
        )
    loaded = _guarded(module, lambda: _file(Path(module)) if module.endswith(".py") else _module(module))
    found = getattr(loaded, name, None)
    if not callable(found):
        there = sorted(key for key, value in vars(loaded).items() if callable(value) and not key.startswith("_"))
        raise InputError(
            "BT-METRIC",
            f"'{module}' has no function '{name}'",
            place="--metric",
            advice=f"there are: {', '.join(there[:20])}" if there else "",
        )
    metric: Metric = found
    return metric


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError("BT-METRIC", f"there is no file '{path}'", place="--metric")
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where data classes look for the module that they are in.
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        advice = f"if it is a file, name it: {name}.py:function"
        raise InputError("BT-METRIC", f"there is no module '{name}'", place="--metric", advice=advice) from None


def _guarded(name: str, function: Callable[[], Any]) -> Any:
    """What foreign code gives; what it raises is an InputError that says where."""
    try:
        return function()
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        foreign = [at for at in frames if at.filename != __file__ and not at.filename.startswith("<")] or frames
        # The last line of the file that was called, not one of a library that it calls.
        at = [at for at in foreign if at.filename == foreign[0].filename][-1]
        file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (at.filename, at.lineno)
        text = f"it raised {type(error).__name__}: {error}"
        raise InputError("BT-METRIC", f"{text:.300}", place=f"metric '{name}' ({file}, line {line})") from error


def _name(metric: Metric) -> str:
    name = getattr(metric, "__name__", type(metric).__name__)
    return str(name) if str(name).isidentifier() else "metric"
