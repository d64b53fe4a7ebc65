"""`dataclass` as the standard library has it, made in a fifth of the time: a first result needs dozens of them.

Only `__init__` is compiled, and it writes past the frozen `__setattr__`, so that objects are made in less than half the
time, too. The other methods follow from the fields' names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as with_fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True):
        """What `dataclasses.dataclass` makes of a class whose fields are all arguments of `__init__`.

        Args:
            frozen: objects cannot be changed; with `eq`, they can be hashed.
            eq: two objects of the class are equal when their fields are, else only when they are one.
        """
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq)
        cls = with_fields(cls, init=False, repr=False, eq=False)
        cls.__init__ = _init(fields(cls))
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _repr
        if eq:
            cls.__eq__, cls.__hash__ = _comparisons(attrgetter(*cls.__dataclass_fields__))
            if not frozen:
                cls.__hash__ = None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _no_change, _no_change
        return cls


class _Factory:
    """Stands for the default of a field that is made anew for each object, as signatures show it."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(members: tuple[Field[Any], ...]) -> Any:
    """`__init__`, with one argument for each field."""
    names: dict[str, Any] = {"_factory": _FACTORY}
    arguments, lines = ["self"], ["_held = self.__dict__"]
    for field in members:
        name = value = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            arguments.append(f"{name}=_factory")
            value = f"_make_{name}() if {name} is _factory else {name}"
        elif field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            arguments.append(f"{name}=_default_{name}")
        else:
            arguments.append(name)
        lines.append(f"_held[{name!r}] = {value}")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), names)
    return names["__init__"]


def _comparisons(values: Callable[[Any], object]) -> tuple[Any, Any]:
    """`__eq__` and `__hash__` of objects with these values."""

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equal, hashed


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({values})"


def _no_change(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")
