"""The suites: which operators and types they cover, in which order, and how their cases are made.

A generator is a module in `litert/` or `onnx/`, registered by being there, with

``OPERATORS``
    operator, as files call it, to the types that `cases` knows for it, the first one being the specification's.
``cases(operator, types)``
    the drafts, in an order that never depends on anything else.

A module may have ``rejects(operator, types)`` instead: drafts of models that a device must refuse, for operators that
other modules own; they come last.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ...errors import InputError
from ...names import near_or_all
from .case import AIMS, SuiteCase
from .draft import Draft

# Changes whenever any case does: certificates name it.
SUITE_VERSION = "1"


@dataclass(frozen=True)
class Generator:
    """Where the cases of one operator come from."""

    operator: str
    types: tuple[str, ...]
    sources: tuple[Callable[[str, str], Iterator[Draft]], ...]

    def cases(self, operator: str, types: str) -> Iterator[Draft]:
        """The drafts of all sources, one after the other."""
        for source in self.sources:
            yield from source(operator, types)


@dataclass(frozen=True)
class Suite:
    """One family of operators.

    Attributes:
        name: ``"litert"`` or ``"onnx"``.
        title: for people.
        format: of its models.
        numerics: whose outputs are the expected ones unless another is asked for.
        admitted: numerics whose differences are legal: tolerances are derived from them.
        types: labels of the cases that are made unless others are asked for.
    """

    name: str
    title: str
    format: str
    numerics: str
    admitted: tuple[str, ...]
    types: tuple[str, ...] = ("s8",)

    def generators(self) -> Mapping[str, Generator]:
        """By operator, those of the specification first and in its order."""
        return _generators(self.name)

    def named(self, operators: Collection[str]) -> tuple[str, ...]:
        """The suite's own names of operators that a user types in any case, with or without separators.

        Raises:
            InputError: an operator that the suite does not have; the advice names what comes near.

        >>> find_suite("litert").named(["conv2d", "Softmax"]), find_suite("onnx").named(["qdq-conv"])
        (('CONV_2D', 'SOFTMAX'), ('QDQ Conv',))
        """
        known = {_key(operator): operator for operator in self.generators()}
        found: dict[str, None] = {}
        for word in operators:
            key = _key(word)
            if key not in known:
                raise InputError(
                    "BT-SUITE-OPERATOR",
                    f"the suite '{self.name}' has no operator '{word}'",
                    advice=near_or_all(word, known.values(), "operators") + "; `bittrue vectors list` names all",
                )
            found[known[key]] = None
        return tuple(found)

    def cases(
        self, operators: Collection[str] = (), types: Collection[str] | None = None, aims: Collection[str] = ()
    ) -> Iterator[SuiteCase]:
        """The cases, made one after the other.

        Args:
            operators: as files call them, or nearly so (`named`); all when empty.
            types: labels; the suite's own by default, all that the generators know when empty.
            aims: some of `AIMS`; all when empty.

        Raises:
            InputError: an operator, type or aim that the suite does not have.
        """
        known = self.generators()
        types = self.types if types is None else types
        operators = self.named(operators)
        every = sorted({label for found in known.values() for label in found.types})
        for wanted, all_of_them, what in ((types, every, "type"), (aims, AIMS, "aim")):
            for word in wanted:
                if word not in all_of_them:
                    message = f"the suite '{self.name}' has no {what} '{word}'"
                    raise InputError(
                        f"BT-SUITE-{what.upper()}",
                        message,
                        advice=near_or_all(word, all_of_them, "there are"),
                    )
        for operator, found in known.items():
            if operators and operator not in operators:
                continue
            for label in found.types:
                if not types or label in types:
                    yield from self._numbered(found, label, aims)

    def _numbered(self, found: Generator, label: str, aims: Collection[str]) -> Iterator[SuiteCase]:
        counts: dict[str, int] = {}
        for draft in found.cases(found.operator, label):
            number = counts[draft.aim] = counts.get(draft.aim, -1) + 1
            if aims and draft.aim not in aims:
                continue
            identity = f"{found.operator.replace(' ', '-')}/{label}/{draft.aim.replace(' ', '-')}/{number:03d}"
            yield SuiteCase(
                identity,
                self.name,
                found.operator,
                label,
                draft.aim,
                self.format,
                draft.content,
                draft.inputs,
                draft.note,
                draft.rejects,
                draft.seeks,
                draft.advisory,
            )


def _key(operator: str) -> str:
    return re.sub(r"[\W_]+", "", operator).lower()


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "litert",
            "LiteRT 8-bit quantization specification",
            "tflite",
            "litert",
            ("litert", "litert-optimized", "xnnpack", "single-rounding", "litert@1.2"),
        ),
        Suite(
            "onnx",
            "ONNX quantized operators",
            "onnx",
            "onnxruntime",
            ("onnx", "onnxruntime", "onnxruntime-avx2"),
            ("s8", "u8"),
        ),
    )
}


def digest_of_cases(cases: Iterable[tuple[str, str]]) -> str:
    """SHA-256 of a suite: over identities and digests of its cases, in their order."""
    found = hashlib.sha256()
    for identity, sha256 in cases:
        found.update(f"{identity} {sha256}\n".encode())
    return found.hexdigest()


def find_suite(name: str) -> Suite:
    """The suite of this name; InputError when there is none."""
    if name not in SUITES:
        raise InputError("BT-SUITE", f"there is no suite '{name}'", advice=f"suites: {', '.join(SUITES)}")
    return SUITES[name]


@cache
def _generators(name: str) -> Mapping[str, Generator]:
    from ...check.specification import SPECIFICATION

    package = importlib.import_module(f".{name}", __package__)
    modules = [
        importlib.import_module(f".{information.name}", package.__name__)
        for information in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name)
    ]
    others = tuple(getattr(m, name) for name in ("further", "rejects") for m in modules if hasattr(m, name))
    found: dict[str, Generator] = {}
    for module in modules:
        for operator, types in getattr(module, "OPERATORS", {}).items():
            found[operator] = Generator(operator, tuple(types), (module.cases, *others))
    order = [*(operator for operator in SPECIFICATION if operator in found), *sorted(found)]
    return {operator: found[operator] for operator in dict.fromkeys(order)}
