"""Folders of vectors: the cases of a suite, their answers worked out once, in several formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import BittrueError, InputError
from ...files import is_temporary, written_folder
from ...names import did_you_mean
from ...numerics import find
from ..suite import SUITE_VERSION, Suite, SuiteCase
from .c_header import CHeader
from .desc import Desc
from .entry import Entry
from .exporter import Exporter, Folder, Packed, json_bytes
from .hex_folders import HexFolders
from .hexadecimal import Hexadecimal
from .manifest import Binary, Npz, Tflite
from .onnx_tests import OnnxTests
from .options import Options
from .readme import README, readme

FORMATS: Mapping[str, type[Exporter]] = {
    kind.name: kind for kind in (Npz, Desc, Tflite, OnnxTests, CHeader, Hexadecimal, Binary)
}
# Written last, so that a folder without it is unfinished.
INDEX = "suite.json"
INDEX_FORMAT = "bittrue-suite-1"


@dataclass(frozen=True)
class Skipped:
    """A case that the numerics does not run, and why."""

    case: str
    reason: str


@dataclass
class Written:
    """What came of `write_vectors`.

    Attributes:
        folder: where the formats' folders are.
        formats: files and bytes of each.
        cases: number written; those of `must_fail` among them.
        elements: expected output elements.
        skipped: cases that the numerics does not run.
    """

    folder: Path
    suite: str
    numerics: str
    cases: int = 0
    must_fail: int = 0
    elements: int = 0
    formats: dict[str, dict[str, int]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def files(self) -> int:
        """All of them."""
        return sum(found["files"] for found in self.formats.values())

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(found["bytes"] for found in self.formats.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; no path, so that two runs give the same."""
        return {
            "format": INDEX_FORMAT,
            "suite": self.suite,
            "suite_version": SUITE_VERSION,
            "numerics": self.numerics,
            "cases": self.cases,
            "expected_failures": self.must_fail,
            "elements": self.elements,
            "formats": self.formats,
            "skipped": [vars(one) for one in self.skipped],
        }


def chosen_formats(names: Sequence[str], suite: Suite) -> list[str]:
    """Names of formats, checked; ``"all"`` stands for all that can hold the suite's cases.

    Raises:
        InputError: no such format, or one that cannot hold this suite.
    """
    found: dict[str, None] = {}
    for name in names:
        if name == "all":
            found.update(dict.fromkeys(key for key, kind in FORMATS.items() if suite.name in kind.suites))
            continue
        if name not in FORMATS:
            raise InputError(
                "BT-VECTORS-OPTION",
                f"there is no format '{name}'",
                advice=did_you_mean(name, FORMATS, f"formats: all, {', '.join(FORMATS)}"),
            )
        if suite.name not in FORMATS[name].suites:
            raise InputError(
                "BT-VECTORS-OPTION",
                f"the format '{name}' does not hold the models of the suite '{suite.name}'",
                advice=f"suites: {', '.join(FORMATS[name].suites)}",
            )
        found[name] = None
    if not found:
        raise InputError("BT-VECTORS-OPTION", "no format", advice=f"formats: all, {', '.join(FORMATS)}")
    return list(found)


def write_vectors(
    folder: str | Path,
    suite: Suite,
    cases: Iterable[SuiteCase],
    formats: Collection[str] = ("npz",),
    numerics: str | None = None,
    *,
    options: Options | None = None,
    accumulators: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Written:
    """Write cases with their expected outputs, each format in a folder of its own.

    Args:
        folder: made when it is not there; must be empty, or one that this function wrote before when `overwrite`.
        suite: the cases' suite.
        cases: those of one operator together, as `Suite.cases` gives them.
        formats: names of `FORMATS`; ``"all"`` for all that can hold the suite, with those that have a folder per case
            packed into one .zip per operator unless `options` say `split`.
        numerics: whose outputs are the expected ones; by default the suite's.
        options: of the formats hex and bin.
        accumulators: also write accumulators, multipliers, exponents and plans, where the operator has them.
        overwrite: replace what an earlier call left in `folder`, once everything is made.
        progress: called with the number of cases that are done.

    Two calls with the same arguments leave the same bytes.

    Raises:
        InputError: formats, numerics or options that do not fit, no cases, or a folder with other things in it.
        OutputError: the folder could not be written; older vectors in it are still there.
    """
    names = chosen_formats(list(formats), suite)
    chosen = find(numerics or suite.numerics).name
    root = Path(folder)
    check_folder(root, overwrite)
    settings = options or Options()
    packed = [n for n in names if "all" in formats and FORMATS[n].per_case and not settings.split]
    with written_folder(root, INDEX, (README, *FORMATS)) as made:
        written = _write(made, suite, cases, names, packed, chosen, settings, accumulators, progress)
    return replace(written, folder=root)


def _write(
    root: Path,
    suite: Suite,
    cases: Iterable[SuiteCase],
    names: Sequence[str],
    packed: Collection[str],
    chosen: str,
    settings: Options,
    accumulators: bool,
    progress: Callable[[int], None] | None,
) -> Written:
    folders = {name: (Packed if name in packed else Folder)(root / name) for name in names}
    exporters = [_kind(name, settings)(folders[name], settings) for name in names]
    written = Written(root, suite.name, chosen)
    for done, case in enumerate(cases, 1):
        entry = Entry(case, chosen, accumulators)
        try:
            # Everything is worked out before the first file of the case is written.
            parts = list(entry.parts)
        except BittrueError as error:
            written.skipped.append(Skipped(case.identity, str(error)))
        else:
            for exporter in exporters:
                exporter.folder.begin(case.operator)
                exporter.add(entry)
            written.cases += 1
            written.must_fail += entry.must_fail
            written.elements += sum(part.value.size for part in parts if part.role == "output")
        if progress is not None:
            progress(done)
    if not written.cases:
        first = f": {written.skipped[0].reason}" if written.skipped else ""
        raise InputError("BT-VECTORS-NONE", f"no case to write for the numerics '{chosen}'{first}")
    for exporter in exporters:
        exporter.folder.begin("")
        exporter.finish()
    written.formats = {name: {"files": found.files, "bytes": found.size} for name, found in folders.items()}
    index = written.to_dict()
    Folder(root).write(README, readme(index, packed, settings.split).encode())
    Folder(root).write(INDEX, json_bytes(index))
    return written


def _kind(name: str, settings: Options) -> type[Exporter]:
    return HexFolders if settings.split and FORMATS[name] is Hexadecimal else FORMATS[name]


def check_folder(root: Path, overwrite: bool) -> None:
    """Whether vectors may be written there.

    Raises:
        InputError: it is no folder, or holds other things than vectors that may be overwritten.
    """
    if root.exists() and not root.is_dir():
        raise InputError("BT-VECTORS-PATH", "is a file, not a folder", place=str(root))
    there = sorted(path.name for path in root.iterdir() if not is_temporary(path.name)) if root.is_dir() else []
    if not there:
        return
    if not overwrite:
        raise InputError(
            "BT-VECTORS-PATH",
            "the folder is not empty",
            place=str(root),
            advice="choose another one, or add --overwrite when it holds older vectors",
        )
    ours = {INDEX, README, *FORMATS}
    if INDEX not in there or not set(there) <= ours:
        strangers = [name for name in there if name not in ours]
        what = f"holds other things ({', '.join(strangers[:3])})" if strangers else f"holds no {INDEX}"
        raise InputError("BT-VECTORS-PATH", f"{what}, so it is not overwritten", place=str(root), advice="remove it")
    for name in FORMATS:
        if (root / name).is_symlink():
            raise InputError("BT-VECTORS-PATH", "is a link, so it is not overwritten", place=str(root / name))
