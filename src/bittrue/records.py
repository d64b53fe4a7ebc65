"""`dataclass` as the standard library has it, made in no time: a first result needs dozens of them.

A class gets its `__init__` when it has some objects, or somebody asks for it; it writes past the frozen `__setattr__`,
so that objects are made in less than half the time, too. The first ones are filled by a function that serves all
classes: many have few objects, for which compiling a function would take longer. What `dataclasses` says of a class is
made when somebody asks. The other methods follow from the fields' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True):
        """What `dataclasses.dataclass` makes of a class whose fields are all arguments of `__init__`.

        Args:
            frozen: objects cannot be changed; with `eq`, they can be hashed.
            eq: two objects of the class are equal when their fields are, else only when they are one.
        """
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq)
        kinds, defaults = {}, {}
        for base in cls.__mro__[:0:-1]:
            kinds |= vars(base).get("_kinds", {})
            defaults |= vars(base).get("_defaults", {})
        own = cls.__annotations__
        defaults |= {name: vars(cls)[name] for name in own if name in vars(cls)}
        for name in own:
            if isinstance(defaults.get(name), _Factory):
                delattr(cls, name)
        cls._kinds, cls._defaults = kinds | own, defaults
        # What objects hold before their arguments: the class itself stands for what must be given.
        cls._unfilled = {name: defaults.get(name, _Factory) for name in cls._kinds}
        cls.__match_args__ = tuple(cls._kinds)
        cls.__init__ = _Init(cls, "__init__", _init)
        cls.__dataclass_fields__ = _Later(cls, "__dataclass_fields__", _fields)
        if "__repr__" not in vars(cls):
            cls.__repr__ = _repr
        if eq:
            cls.__eq__, cls.__hash__ = _comparisons(attrgetter(*cls._kinds))
            if not frozen:
                cls.__hash__ = None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _no_change, _no_change
        return cls

    def field(*, default_factory):
        """A field whose default is made anew for each object."""
        return _Factory(default_factory)

    def replace(record, /, **changes):
        """What `dataclasses.replace` makes of an object of such a class: another one, in which some fields differ."""
        names, held = record._kinds, record.__dict__
        if not changes.keys() <= names.keys():
            raise TypeError(f"{record.__class__.__qualname__} has no field {min(changes.keys() - names.keys())!r}")
        made = object.__new__(record.__class__)
        # What was worked out of the fields is left behind.
        made.__dict__.update(held if len(held) == len(names) else {name: held[name] for name in names}, **changes)
        return made


class _Factory:
    """Stands for the default of a field, as signatures show it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __repr__(self) -> str:
        return "<factory>"


class _Later:
    """An attribute of a class that is made when it is first asked for."""

    def __init__(self, owner: type, name: str, make: Callable[[type], Any]) -> None:
        self._owner, self._name, self._make = owner, name, make

    def __get__(self, record: object, cls: type) -> Any:
        value = self._make(self._owner)
        setattr(self._owner, self._name, value)
        return value.__get__(record, cls) if hasattr(value, "__get__") else value


class _Init(_Later):
    """`__init__`, which is made for a class with several objects."""

    _FEW = 16

    def __init__(self, owner: type, name: str, make: Callable[[type], Any]) -> None:
        super().__init__(owner, name, make)
        self._left = self._FEW

    def __get__(self, record: object, cls: type) -> Any:
        # A class that is made of this one has the attribute, too.
        if record is None or not self._left:
            return super().__get__(record, cls)
        self._left -= 1
        return partial(_fill, self._owner, record)


def _fill(cls: Any, record: Any, *given: Any, **named: Any) -> None:
    """What `__init__` does, without one; it is asked where arguments are wrong."""
    names, held = cls._kinds, record.__dict__
    held.update(cls._unfilled)
    held.update(zip(names, given, strict=False))
    twice = named and not named.keys().isdisjoint(list(names)[: len(given)])
    held.update(named)
    right = len(given) <= len(names) == len(held) and not twice
    for name, value in held.items():
        if value is _Factory:
            right = False
        elif value.__class__ is _Factory:
            held[name] = value.make()
    if not right:
        held.clear()
        cls.__init__(record, *given, **named)


def _init(cls: Any) -> Any:
    """`__init__`, with one argument for each field."""
    names: dict[str, Any] = {f"_default_{name}": default for name, default in cls._defaults.items()}
    arguments, lines = ["self"], ["_held = self.__dict__"]
    for name in cls._kinds:
        default = f"_default_{name}"
        made = isinstance(names.get(default), _Factory)
        arguments.append(f"{name}={default}" if default in names else name)
        lines.append(f"_held[{name!r}] = {f'{default}.make() if {name} is {default} else {name}' if made else name}")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), names)
    return names["__init__"]


def _fields(cls: Any) -> Mapping[str, Any]:
    """What functions of `dataclasses` look at, from a class of the same fields."""
    import dataclasses

    held = {
        name: dataclasses.field(default_factory=default.make) if isinstance(default, _Factory) else default
        for name, default in cls._defaults.items()
    }
    held |= {"__annotations__": cls._kinds, "__module__": cls.__module__, "__doc__": cls.__doc__}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(type(cls.__name__, (), held))
    cls.__dataclass_params__ = made.__dataclass_params__
    fields: Mapping[str, Any] = made.__dataclass_fields__
    return fields


def _comparisons(values: Callable[[Any], object]) -> tuple[Any, Any]:
    """`__eq__` and `__hash__` of objects with these values."""

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equal, hashed


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._kinds)
    return f"{type(self).__qualname__}({values})"


def _no_change(self: Any, name: str, value: Any = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")
