"""Figures of one's own: a Python function over all rows of an arithmetic, or a class that takes them one by one."""

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

# A function of a list with a mapping for every sample without an error, or a class whose objects, made without
# arguments, get these mappings one by one (`add`). It gives (a class: by `result`) a number, or numbers by name.
Metric = Callable[..., Any]

# The name that a file with a metric has as a module.
_MODULE = "bittrue_metric"


class Own:
    """The rows of one arithmetic on their way to a metric's figures.

    Args:
        metric: the function or class. It may have two attributes with names of figures: ``figures``, all that it gives,
            and ``lower``, those that are the better the lower they are.
        numerics: the arithmetic.
    """

    def __init__(self, metric: Metric, numerics: str) -> None:
        self._name, self._numerics = _name(metric), numerics
        self._taken = _guarded(self._name, metric) if isinstance(metric, type) else _Kept(metric)

    def add(self, row: Row) -> None:
        """One more sample."""
        answer = row.answers[self._numerics]
        own = {"position": row.position, "id": row.id, "label": row.label}
        own |= {"prediction": answer.prediction, "margin": answer.margin, **answer.details}
        _guarded(self._name, lambda: self._taken.add(own))

    def figures(self, others: Collection[str]) -> dict[str, int | float]:
        """What the metric makes of the rows, by name.

        Args:
            others: names of figures that there are already.

        Raises:
            InputError: it raised something, or gave what are no numbers, or figures that there are already.
        """
        name = self._name
        found = _guarded(name, self._taken.result)
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


class _Kept:
    """All rows, for a function that asks for them."""

    def __init__(self, function: Callable[[Sequence[Mapping[str, Any]]], Any]) -> None:
        self._function = function
        self._rows: list[Mapping[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)

    def result(self) -> Any:
        return self._function(self._rows)


def lower(metric: Metric) -> Collection[str]:
    """Names of figures that are the better the lower they are."""
    return _names(metric, "lower", ())


def names(metric: Metric) -> Collection[str]:
    """Names of the figures that it says it gives: one number is called like the metric.

    Raises:
        InputError: it is a class whose objects take no rows.
    """
    lacking = [] if not isinstance(metric, type) else [part for part in ("add", "result") if not hasattr(metric, part)]
    if lacking:
        raise InputError(
            "BT-METRIC",
            f"a class that is a metric has add(row) and result(), this one has no {lacking[0]}",
            place=f"metric '{_name(metric)}'",
        )
    return {*_names(metric, "figures", (_name(metric),)), *lower(metric)}


def _names(metric: Metric, attribute: str, otherwise: Collection[str]) -> Collection[str]:
    found = getattr(metric, attribute, otherwise)
    if isinstance(found, str) or not isinstance(found, Collection) or not all(isinstance(name, str) for name in found):
        raise InputError(
            "BT-METRIC",
            f"{attribute} is a list of names of figures, found {found!r:.80}",
            place=f"metric '{_name(metric)}'",
        )
    return found


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
