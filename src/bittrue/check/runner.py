"""Checking one model: which rules run, what they find, and what could not be looked at."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from .. import __version__
from .. import numerics as numerics_tables
from ..api import Model
from ..errors import BittrueError, InputError
from ..graph import ModelFile
from ..importers import read_model
from ..names import did_you_mean
from ..report.result import Result
from ..report.words import plural
from .finding import SEVERITIES, Finding
from .rule import Rule, Subject
from .rules import all_rules

FORMAT = "bittrue-check-1"
# Of one rule: enough to see what is wrong everywhere, and a bound for hostile files.
MAX_FINDINGS = 10_000


@dataclass(frozen=True)
class Failure:
    """A rule that came to no end on this model; what it found before that is kept.

    Attributes:
        code: of the rule.
        message: why.
    """

    code: str
    message: str


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """What `check_model` found.

    Attributes:
        model: path of the model; empty for bytes and for models that were read before.
        sha256: of its bytes; empty for models that were read before.
        model_format: ``"tflite"``, ``"onnx"``, ...
        numerics: name of the runtime's arithmetic that it was checked for.
        rules: the rules that ran, by code.
        findings: by rule, then in the order of graphs, nodes and tensors.
        failures: rules that came to no end, so that the check is incomplete.
        notes: what the check does not cover.
        version: of bittrue.
        date: when it ran, in UTC.
        seconds: how long it took.
    """

    model: str
    sha256: str
    model_format: str
    numerics: str
    rules: tuple[Rule, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    version: str = ""
    date: str = ""
    seconds: float = 0.0

    formats = (".json", ".html", ".md", ".sarif", ".xml")

    @property
    def headline(self) -> str:
        counts = ", ".join(plural(self.count(severity), severity) for severity in SEVERITIES)
        open_end = f"; {plural(len(self.failures), 'rule')} came to no end" if self.failures else ""
        return f"{self.model or self.model_format + ' model'} under '{self.numerics}': {counts}{open_end}"

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return self.count("error")

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return self.count("warning")

    def count(self, severity: str) -> int:
        """How many findings have this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the JSON of format ``bittrue-check-1``, the only source of every report."""
        return {
            "format": FORMAT,
            "model": self.model,
            "sha256": self.sha256,
            "model_format": self.model_format,
            "numerics": self.numerics,
            "counts": {severity: self.count(severity) for severity in SEVERITIES},
            "errors": self.errors,
            "complete": not self.failures,
            "findings": [finding.to_dict() for finding in self.findings],
            "failures": [{"code": failure.code, "message": failure.message} for failure in self.failures],
            "notes": list(self.notes),
            "rules": [rule.to_dict() for rule in self.rules],
            "version": self.version,
            "date": self.date,
            "seconds": self.seconds,
        }


def check_model(
    source: Any,
    numerics: str | None = None,
    weights: Any = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Look for everything in a model that breaks its format's specification, that runtimes refuse, or that is a hazard.

    Args:
        source: path, bytes, binary file object, or a `bittrue.Model`.
        numerics: the runtime that it is checked for; None: that of the file's format.
        weights: the second file of formats that have one.
        select: rules to run: codes (``"BT204"``), beginnings of codes (``"BT2"``) or names; empty for all.
        ignore: rules to leave out, in the same way.
        shapes: of inputs by name, for models that leave them open.
        progress: called before and after each rule with the number of rules that ran, and of all.

    Returns:
        `CheckResult`. Models that the runtime refuses are checked all the same.

    Raises:
        InputError: no such file, unknown numerics or rule.
        ModelFormatError, InvalidModelError, UnsupportedError, ResourceError: the model cannot be read, see
            `bittrue.load`.

    >>> import bittrue
    >>> result = bittrue.check_model(bittrue.demo_model())
    >>> result.errors
    0
    """
    started, date = time.perf_counter(), datetime.now(timezone.utc)
    chosen = choose_rules(select, ignore)
    name, digest, file = _read(source, weights)
    table = numerics_tables.find(numerics or numerics_tables.default_of(file.format))
    subject = Subject(file, table, shapes or {})
    rules = tuple(rule for rule in chosen if not rule.formats or file.format in rule.formats)
    findings: list[Finding] = []
    failures: list[Failure] = []
    notes = _coverage(file, rules)
    for position, rule in enumerate(rules):
        if progress is not None:
            progress(position, len(rules))
        before = len(findings)
        try:
            for finding in islice(rule.find(subject), MAX_FINDINGS):
                findings.append(finding)
        except BittrueError as error:
            failures.append(Failure(rule.code, str(error)))
        except Exception as error:  # whatever a hostile model does to a rule, the others still run, and this is told
            message = f"internal error: {type(error).__name__}: {error}"
            failures.append(Failure(rule.code, f"{message}; please report it with the model"))
        if progress is not None:
            progress(position + 1, len(rules))
        if len(findings) - before == MAX_FINDINGS:
            notes.append(f"{rule.code}: only the first {MAX_FINDINGS:,} findings are kept")
    return CheckResult(
        name,
        digest,
        file.format,
        table.name,
        rules,
        tuple(_with_model(finding, name) for finding in findings),
        tuple(failures),
        tuple(notes),
        __version__,
        date.isoformat(timespec="seconds"),
        round(time.perf_counter() - started, 3),
    )


def choose_rules(select: Sequence[str], ignore: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that `select` names (all for an empty one) without those that `ignore` names."""
    wanted = _matching(select) if select else {rule.code for rule in all_rules()}
    unwanted = _matching(ignore)
    return tuple(rule for rule in all_rules() if rule.code in wanted - unwanted)


def _with_model(finding: Finding, name: str) -> Finding:
    """The finding, with the model's own name in the commands that it advises."""
    if not name or "`bittrue " not in finding.advice:
        return finding
    return replace(finding, advice=re.sub(r"\bMODEL\b", lambda _: shlex.quote(name), finding.advice))


def _matching(texts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        some = {
            rule.code
            for rule in all_rules()
            if (text and rule.code.startswith(text.upper())) or rule.name == text.lower()
        }
        if not some:
            families = sorted({rule.code[:3] for rule in all_rules()})
            raise InputError(
                "BT-RULE",
                f"no rule is called '{text}', and no code begins so",
                advice=did_you_mean(
                    text,
                    (rule.name for rule in all_rules()),
                    f"`bittrue rule` lists them; codes begin with {', '.join(families)}",
                ),
            )
        found |= some
    return found


def _read(source: Any, weights: Any) -> tuple[str, str, ModelFile]:
    """Path (or nothing), digest and content of what is to be checked."""
    if isinstance(source, Model):
        return "", "", source.file
    if isinstance(source, (str, os.PathLike)):
        file = read_model(source, weights)
        with Path(source).open("rb") as stream:
            digest = hashlib.sha256()
            while block := stream.read(1 << 20):
                digest.update(block)
        return os.fspath(source), digest.hexdigest(), file
    if callable(getattr(source, "read", None)):
        source = source.read()
    file = read_model(source, weights)
    return "", hashlib.sha256(memoryview(source)).hexdigest(), file


def _coverage(file: ModelFile, rules: Sequence[Rule]) -> list[str]:
    """What the reader of a result must know of rules that do not exist."""
    special = Counter(file_format for rule in all_rules() for file_format in rule.formats)
    if special[file.format]:
        return []
    return [
        f"there are no rules for the specification of {file.format} models; "
        f"the {len(rules)} rules that hold for every format were applied"
    ]
