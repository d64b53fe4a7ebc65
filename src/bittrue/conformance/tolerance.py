"""How far two admitted numerics may lie apart: derived by search, never set, and kept with a witness of every figure.

For an operator with one combination of types, over every pair of numerics that the suite admits:

- *largest*: max |a - b| over all elements of the suite's cases and of random inputs for the same models;
- *bias*: max |sum of (a - b)| / elements over all cases of the suite together;
- *mean square*: max sum of (a - b)^2 / elements likewise.

The last two are over exactly the elements that devices are measured on. Operators on which all admitted numerics agree
have the bound 0. Outputs that are no integers count as 0 as well: there only equal bytes are within the tolerance.

Some models make admitted numerics part by more than one unit (a product beyond the register of one of them, for
example). Such a case is *wide*: it has figures of its own, over its own elements, and counts in none of the others, so
that what is legal there is legal nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from itertools import combinations
from typing import Any

import numpy as np

from ..compare.hypotheses import unequal
from ..compare.reading import read
from ..errors import BittrueError
from .expected import Expected, Outputs
from .result import Bound, Deviation, Limit
from .suite import Suite, SuiteCase
from .suite.draft import generator
from .verdicts import deviation_of

FILE = "tolerances.json"
FORMAT = "bittrue-tolerances-1"
# Random inputs per model of the suite, when the shipped figures are made.
SEARCHES = 6


@dataclass(frozen=True)
class Witness:
    """Where a figure comes from.

    Attributes:
        numerics: the two.
        case: identity of a case of the suite; empty for all of them together.
        search: number of the random inputs for that case's model; None for the case's own inputs.
        output, element, values: one number of both, in the order of `numerics`.
        total: what is divided by `elements`; 0 for *largest*.
        elements: how many were compared.
    """

    numerics: tuple[str, str]
    case: str = ""
    search: int | None = None
    output: str = ""
    element: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    total: int = 0
    elements: int = 0


@dataclass(frozen=True)
class Figures:
    """Largest difference, bias and mean square with their witnesses, None where a figure is 0."""

    largest: int = 0
    largest_witness: Witness | None = None
    bias_witness: Witness | None = None
    square_witness: Witness | None = None

    @property
    def limit(self) -> Limit:
        """The figures alone."""
        bias, square = self.bias_witness, self.square_witness
        return Limit(
            self.largest,
            0.0 if bias is None else abs(bias.total) / bias.elements,
            0.0 if square is None else square.total / square.elements,
        )


@dataclass(frozen=True)
class Tolerance:
    """The derived tolerance of one operator with one combination of types.

    Attributes:
        suite, operator, types: which.
        figures: of all cases but the wide ones.
        wide: identity of a wide case to its own figures.
        cases, searched: how many cases, and elements in all, were looked at.
    """

    suite: str
    operator: str
    types: str
    figures: Figures = Figures()
    wide: dict[str, Figures] = field(default_factory=dict)
    cases: int = 0
    searched: int = 0

    @property
    def bound(self) -> Bound:
        """The figures alone."""
        own = self.figures.limit
        return Bound(own.largest, own.bias, own.mean_square, {case: f.limit for case, f in self.wide.items()})


Sums = dict[tuple[str, str], Deviation]


def derive(suite: Suite, operator: str, types: str, searches: int = SEARCHES) -> Tolerance:
    """The tolerance of one operator, found by running all admitted numerics on the suite and on random inputs.

    Args:
        suite, operator, types: which cases.
        searches: random inputs per model.
    """
    narrow: Sums = {}
    witness: Witness | None = None
    wide: dict[str, Figures] = {}
    count = elements = 0
    for case in suite.cases((operator,), (types,)):
        if case.rejects:
            continue
        count += 1
        expected = Expected(case, suite.admitted)
        found, looked = _furthest(case, expected, None)
        elements += looked
        for number in range(searches if len(expected.arithmetics) > 1 else 0):
            other, looked = _furthest(case, Expected(searched(case, number), suite.admitted), number)
            elements += looked
            found = other if _apart(other) > _apart(found) else found
        sums = sums_of_pairs(expected, suite.admitted)
        if _apart(found) > 1:
            wide[case.identity] = _figures(sums, found)
            continue
        witness = found if _apart(found) > _apart(witness) else witness
        for pair, one in sums.items():
            narrow[pair] = narrow.get(pair, Deviation()) + one
    return Tolerance(suite.name, operator, types, _figures(narrow, witness), wide, count, elements)


def _figures(sums: Sums, witness: Witness | None) -> Figures:
    bias = _most(sums, lambda d: d.bias, lambda d: d.total)
    square = _most(sums, lambda d: d.mean_square, lambda d: d.squares)
    return Figures(_apart(witness), witness, bias, square)


def _apart(witness: Witness | None) -> int:
    return 0 if witness is None else abs(witness.values[0] - witness.values[1])


def _furthest(case: SuiteCase, expected: Expected, search: int | None) -> tuple[Witness | None, int]:
    """The element on which two numerics are furthest apart, and how many elements were compared."""
    best: Witness | None = None
    elements = 0
    for one, two in combinations(expected.arithmetics, 2):
        try:
            a, b = expected.outputs(one), expected.outputs(two)
        except BittrueError:
            continue
        found = deviation_of(a, b)
        elements += found.elements
        if found.largest is not None and found.largest > _apart(best):
            best = _element(case.identity, search, one.names[0], two.names[0], a, b)
    return best, elements


def sums_of_pairs(expected: Expected, names: Sequence[str]) -> Sums:
    """How every two numerics stand to each other on one case; without those that refuse it."""
    places = {name: (i, one) for i, one in enumerate(expected.arithmetics) for name in one.names}
    known: dict[tuple[int, int], Deviation] = {}
    found: Sums = {}
    for a, b in combinations(names, 2):
        if a not in places or b not in places:
            continue
        (i, one), (k, two) = places[a], places[b]
        try:
            if (i, k) not in known:
                known[i, k] = deviation_of(expected.outputs(one), expected.outputs(two))
        except BittrueError:
            continue
        found[a, b] = known[i, k]
    return found


def searched(case: SuiteCase, number: int) -> SuiteCase:
    """The case with other inputs: random quantized values over the whole range of each input's type."""
    random = generator("tolerance", case.identity, number)
    inputs = {}
    for name in sorted(case.inputs):
        value = case.inputs[name]
        if value.dtype.kind in "iu" and value.dtype.itemsize <= 2:
            ends = np.iinfo(value.dtype)
            inputs[name] = random.integers(ends.min, ends.max, value.shape, value.dtype, endpoint=True)
        else:
            # Indices, conditions, real numbers: only values that are known to be valid.
            inputs[name] = random.permutation(value.reshape(-1)).reshape(value.shape)
    return case.fed({name: inputs[name] for name in case.inputs})


def recomputed(suite: Suite, tolerance: Tolerance, sums: bool = True) -> list[str]:
    """Figures whose witness does not give them; an empty list when all do.

    Args:
        suite: of the cases.
        tolerance: what is shipped.
        sums: also run all pairs on all cases again for bias and mean square.
    """
    cases = {c.identity: c for c in suite.cases((tolerance.operator,), (tolerance.types,)) if not c.rejects}
    problems = [] if len(cases) == tolerance.cases else [f"{len(cases)} cases, {tolerance.cases} when it was derived"]
    narrow: Sums = {}
    for identity, case in cases.items() if sums else ():
        found = sums_of_pairs(Expected(case, suite.admitted), suite.admitted)
        for pair, one in found.items() if identity not in tolerance.wide else ():
            narrow[pair] = narrow.get(pair, Deviation()) + one
        if identity in tolerance.wide:
            problems += _sums_differ(identity, tolerance.wide[identity], found)
    problems += _sums_differ("all cases", tolerance.figures, narrow) if sums else []
    for name, figures in {"all cases": tolerance.figures, **tolerance.wide}.items():
        witness = figures.largest_witness
        if (figures.largest == 0) != (witness is None):
            problems.append(f"{name}: largest {figures.largest} and its witness do not fit")
        elif witness is not None and (_values(cases, witness) != witness.values or _apart(witness) != figures.largest):
            problems.append(f"{name}: largest {figures.largest} is not what its witness gives")
    return problems


def _values(cases: Mapping[str, SuiteCase], witness: Witness) -> tuple[int, ...] | None:
    case = cases.get(witness.case)
    if case is None:
        return None
    if witness.search is not None:
        case = searched(case, witness.search)
    expected = Expected(case, witness.numerics)
    return tuple(int(expected.outputs(name)[witness.output][witness.element]) for name in witness.numerics)


def _sums_differ(name: str, figures: Figures, sums: Sums) -> list[str]:
    again = _figures(sums, figures.largest_witness)
    same = (again.bias_witness, again.square_witness) == (figures.bias_witness, figures.square_witness)
    return [] if same else [f"{name}: bias or mean square come out differently"]


def bound_for(suite: Suite, operator: str, types: str) -> Bound:
    """The shipped bound; one from the suite's cases alone where none is shipped."""
    for found in shipped():
        if (found.suite, found.operator, found.types) == (suite.name, operator, types):
            return found.bound
    return _derived(suite, operator, types)


@cache
def _derived(suite: Suite, operator: str, types: str) -> Bound:
    return derive(suite, operator, types, searches=0).bound


@cache
def shipped() -> tuple[Tolerance, ...]:
    """The figures that come with bittrue, made by ``tools/derive_tolerances.py``."""
    file = resources.files("bittrue").joinpath("data", FILE)
    data: Any = json.loads(file.read_text("utf-8"))
    return tuple(read(Tolerance, one, f"{FILE}[{i}]") for i, one in enumerate(data["tolerances"]))


def to_json(found: Sequence[Tolerance]) -> str:
    """The text of the shipped file: one operator per line."""
    rows = ",\n".join(json.dumps(asdict(one)) for one in found)
    return f'{{"format": "{FORMAT}", "tolerances": [\n{rows}\n]}}\n'


def _element(case: str, search: int | None, one: str, two: str, a: Outputs, b: Outputs) -> Witness:
    best: tuple[int, Witness] | None = None
    for name, value in a.items():
        apart = np.where(unequal(value, b[name]), np.abs(value.astype(np.int64) - b[name].astype(np.int64)), 0)
        at = int(np.argmax(apart))
        if best is None or int(apart.reshape(-1)[at]) > best[0]:
            element = tuple(int(i) for i in np.unravel_index(at, apart.shape)) if apart.ndim else ()
            values = tuple(int(x.reshape(-1)[at]) for x in (value, b[name]))
            best = int(apart.reshape(-1)[at]), Witness((one, two), case, search, name, element, values)
    assert best is not None, "the outputs differ"
    return best[1]


def _most(sums: Sums, mean: Any, total: Any) -> Witness | None:
    best: tuple[float, Witness] | None = None
    for pair, found in sums.items():
        value = mean(found)
        if value and (best is None or abs(value) > best[0]):
            best = abs(value), Witness(pair, total=total(found), elements=found.elements)
    return None if best is None else best[1]
