"""Modules that are imported when something in them is asked for: a model needs few of those that operators name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any


class _Module:
    """Stands for a module until then, and hands on what is asked of it ever after."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            # What another thread is just importing is there, but not whole: this waits for it.
            self._module = import_module(self._path)
        return getattr(self._module, name)


def deferred(package: str, names: Iterable[str]) -> Callable[[str], _Module]:
    """`__getattr__` of a package of whose modules those called `names` are imported late.

    It holds for `from PACKAGE import MODULE`; whoever imports a name of such a module imports all of it at once.
    """
    late = frozenset(names)

    def attribute(name: str) -> _Module:
        if name not in late:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return _Module(f"{package}.{name}")

    return attribute
