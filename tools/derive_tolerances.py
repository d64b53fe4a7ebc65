"""Derives the tolerances that `bittrue conform` measures devices by, into src/bittrue/data/tolerances.json.

    python tools/derive_tolerances.py            # all suites, operators and types; some minutes
    python tools/derive_tolerances.py CONV_2D    # only these operators; the others stay as they are
    python tools/derive_tolerances.py --check    # exit code 1 when one is missing or not what its witness gives

Run it after every change of a suite or of an admitted numerics. `tests/conformance/test_tolerance.py` recomputes the
witnesses of s8; --check those of all types.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bittrue.conformance import tolerance
from bittrue.conformance.suite import SUITES, Suite

FILE = Path(__file__).parents[1] / "src" / "bittrue" / "data" / tolerance.FILE


def groups() -> list[tuple[Suite, str, str]]:
    """Every operator and types of every suite."""
    return [
        (suite, operator, label)
        for suite in SUITES.values()
        for operator, made in suite.generators().items()
        for label in made.types
    ]


def main(words: list[str]) -> int:
    """Entry point."""
    known = {(t.suite, t.operator, t.types): t for t in tolerance.shipped()}
    if words == ["--check"]:
        missing = [f"{s.name} {o} {t}" for s, o, t in groups() if (s.name, o, t) not in known]
        for suite, operator, label in groups():
            if (one := known.get((suite.name, operator, label))) is not None:
                missing += [f"{suite.name} {operator} {label}: {text}" for text in tolerance.recomputed(suite, one)]
        print("\n".join(missing) or "every figure is what its witness gives")
        return 1 if missing else 0
    found = []
    for suite, operator, label in groups():
        before = known.get((suite.name, operator, label))
        if words and operator not in words:
            if before is not None:
                found.append(before)
            continue
        one = tolerance.derive(suite, operator, label)
        found.append(one)
        print(
            f"{suite.name} {operator} {label}: {one.figures.limit}, {len(one.wide)} wide of {one.cases} cases",
            flush=True,
        )
    FILE.write_text(tolerance.to_json(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
