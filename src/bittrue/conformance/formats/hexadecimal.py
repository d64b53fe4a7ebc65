"""The format hex: per operator and types one memory per operand for $readmemh, and one package with a table of cases.

All cases lie behind one another in each memory, at the addresses that the table gives. Columns of the table are packed
vectors, because Verilog-2001 has no arrays of constants: ``X[32*n +: 32]`` is the value of case n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...visible import visible_ascii
from .describe import multipliers
from .entry import Entry, Part, suite_facts
from .exporter import MANIFEST, Exporter, json_bytes, path_of, word_of
from .hex_folders import array_title, manifest, memory, number
from .words import Words, words_of

_PER_LINE = 6


@dataclass
class _Memory:
    """A file under way."""

    text: list[str] = field(default_factory=list)
    depth: int = 0
    width: int = 32

    def add(self, words: int, lines: str, title: str) -> int:
        """The address of its first word."""
        start = self.depth
        self.text.append(f"@{start:x} // {title}\n{lines}")
        self.depth += words
        return start


class Hexadecimal(Exporter):
    """Memories as hexadecimal text, a package of parameters per operator and types, and a manifest of all files."""

    name = "hex"
    title = "per operator a $readmemh file per operand, .sv package and .vh with a table of cases"

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self.cases: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {}
        self.tables: list[dict[str, Any]] = []
        self.left_out: list[dict[str, str]] = []
        self._place = ""
        self._entries: list[tuple[Entry, list[tuple[Part, Words]]]] = []

    def add(self, entry: Entry) -> None:
        """Cases wait until the last one of their operator and types. What must be refused has no place in a memory."""
        self.head = self.head or suite_facts(entry)
        if entry.must_fail:
            self.left_out.append({"case": entry.case.identity, "reason": f"must be refused: {entry.case.rejects}"})
            return
        place = f"{path_of(entry.case.operator)}/{path_of(entry.case.types)}"
        parts = [part for part in entry.parts if part.role not in ("multiplier", "exponent") or not _encoded(entry)]
        arrays = [(part, words_of(part, self.options, entry.case.format == "tflite")) for part in parts]
        if place != self._place:
            self._flush()
            self._place = place
        self._entries.append((entry, arrays))

    def _flush(self) -> None:
        if not self._entries:
            return
        place, first = self._place, self._entries[0][0].case
        table = _Table(len(self._entries))
        memories: dict[str, _Memory] = {}
        names = _names([part for _, arrays in self._entries for part, _ in arrays])
        package = word_of(f"{first.operator}_{first.types}")
        rules = ""
        for row, (entry, arrays) in enumerate(self._entries):
            title = entry.case.identity + (f": {entry.case.note}" if entry.case.note else "")
            table.comments.append(_comment(f"{row}: {title}"))
            found = []
            for part, words in arrays:
                name = names[part.stem, part.dtype]
                one = memories.setdefault(name, _Memory(width=words.width))
                caption = _comment(f"{row}: {entry.case.identity} {array_title(part, words)}")
                start = one.add(words.count, words.lines(self.options.comments), caption)
                table.array(name, row, part, words, start)
                found.append(memory(part, words, f"{place}/{name}.hex", start))
            text = _plan(table, row, entry)
            if text and text != rules:
                table.comments.append(_comment(f"   from here on: {text}"))
                rules = text
            more = {"package": package, "parameters": f"{place}/parameters.sv", "row": row, "memories": found}
            self.cases.append({**entry.header, **more})
        for name, rows in table.lists.items():
            one = memories.setdefault(name.lower(), _Memory())
            for row, values in enumerate(rows):
                text = "".join(f"{value % 2**32:08x}\n" for value in values)
                start = one.add(len(values), text, f"{row}") if values else one.depth
                table.set(f"{name}_START", row, start)
                table.set(f"{name}_COUNT", row, len(values))
        files = []
        for name, one in memories.items():
            table.depths[f"{_upper(name)}_DEPTH"] = one.depth
            file = f"{place}/{name}.hex"
            content = f"// {self.head['numerics']}: {one.depth} words of {one.width} bits\n" + "".join(one.text)
            self.folder.write(file, content.encode())
            files.append({"file": file, "words": one.depth, "word_width": one.width})
        lines = table.lines()
        head = f"// {first.operator} {first.types}, expected outputs of {self.head['numerics']}\n"
        body = "".join(f"  {line}\n" for line in lines)
        self.folder.write(f"{place}/parameters.sv", f"{head}package {package};\n{body}endpackage\n".encode())
        self.folder.write(f"{place}/parameters.vh", (head + "".join(f"{line}\n" for line in lines)).encode())
        self.tables.append(
            {
                "package": package,
                "parameters": f"{place}/parameters.sv",
                "cases": len(self._entries),
                "files": files,
            }
        )
        self._entries.clear()

    def finish(self) -> None:
        """The last operator and the manifest."""
        self._flush()
        more = {"tables": self.tables, "left_out": self.left_out}
        self.folder.write(MANIFEST, json_bytes(manifest(self.head, self.options, self.cases, **more)))


class _Table:
    """Columns with a value per case.

    Attributes:
        columns: values; None where a case has none.
        lists: several values per case, for memories of their own.
        widths, depths: numbers that hold for all cases.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.comments: list[str] = []
        self.columns: dict[str, list[int | None]] = {}
        self.lists: dict[str, list[Sequence[int]]] = {}
        self.widths: dict[str, int] = {}
        self.depths: dict[str, int] = {}

    def set(self, name: str, row: int, value: int) -> None:
        self.columns.setdefault(name, [None] * self.rows)[row] = value

    def several(self, name: str, row: int, values: Sequence[int]) -> None:
        self.lists.setdefault(name, [()] * self.rows)[row] = values

    def array(self, name: str, row: int, part: Part, words: Words, start: int) -> None:
        """Where an array lies, and what it is."""
        upper = _upper(name)
        self.widths[f"{upper}_WIDTH"] = words.element_width
        self.widths[f"{upper}_WORD_WIDTH"] = words.width
        self.widths[f"{upper}_PER_WORD"] = words.per_word
        self.set(f"{upper}_START", row, start)
        self.set(f"{upper}_WORDS", row, words.count)
        self.set(f"{upper}_ELEMENTS", row, part.value.size)
        self.set(f"{upper}_RANK", row, part.value.ndim)
        for axis, size in enumerate(part.value.shape):
            self.set(f"{upper}_EXTENT_{axis}", row, size)
        if part.quantization is not None:
            points = [int(point) for point in part.quantization.zero_points.reshape(-1)]
            if len(set(points)) > 1:
                self.several(f"{upper}_ZERO_POINTS", row, points)
            elif points:
                self.set(f"{upper}_ZERO_POINT", row, points[0])

    def lines(self) -> list[str]:
        """Localparams of Verilog-2001."""
        found = [
            f"// Cases 0 to {self.rows - 1}. Of a column X of W bits per case, case n has X[W*n +: W]; W is 32 where",
            "// the column is no wider. Where some cases have no value, X_KNOWN[n] says whether case n has one.",
            "// X_START is the address of the case's first word in the memory x.hex, which has X_DEPTH words.",
            "// A multiplier stands for the real factor MULTIPLIER * 2^-RIGHT_SHIFT.",
            number("CASES", self.rows),
            *(f"// {line}" for line in self.comments),
            *(number(name, value) for name, value in {**self.widths, **self.depths}.items()),
        ]
        for name, values in self.columns.items():
            known = [value for value in values if value is not None]
            # Arrays that a case does not have take no words.
            if len(known) < len(values) and not name.endswith(("_START", "_WORDS", "_ELEMENTS", "_COUNT")):
                bits = "".join("0" if value is None else "1" for value in reversed(values))
                found.append(f"localparam [{self.rows - 1}:0] {name}_KNOWN = {self.rows}'b{bits};")
            width = 32 if all(-(2**31) <= value <= 2**31 for value in known) else 64
            digits = width // 4
            cells = [f"{width}'h{(value or 0) % 2**width:0{digits}x}" for value in reversed(values)]
            found.append(f"localparam [{width * self.rows - 1}:0] {name} = {{")
            pieces = [", ".join(cells[i : i + _PER_LINE]) for i in range(0, len(cells), _PER_LINE)]
            found += [f"  {piece}," for piece in pieces[:-1]] + [f"  {pieces[-1]}}};"]
        return found


def _plan(table: _Table, row: int, entry: Entry) -> str:
    """Attributes, clamps, zero points and multipliers of a case as columns; its rules as a text."""
    for key, value in entry.header["attributes"].items():
        if isinstance(value, int):
            table.set(f"ATTRIBUTE_{word_of(key).upper()}", row, int(value))
    steps = entry.worked.plan.steps
    texts = []
    for position, step in enumerate(steps):
        prefix = f"STEP_{position}_" if len(steps) > 1 else ""
        rules = ", ".join(f"{slot}={rule}" for slot, rule in step.rules.items())
        texts.append(f"{step.operator}: {rules or 'no arithmetic'}")
        for key, value in step.parameters.items():
            if type(value) is int and (key in ("low", "high") or key.endswith("_zero_point")):
                table.set(prefix + key.upper(), row, value)
        for found in multipliers(step):
            name = prefix + (f"{found['name'].upper()}_" if found["name"] else "")
            for key, values in (
                ("MULTIPLIER", found["multiplier"]),
                ("EXPONENT", found["exponent"]),
                ("RIGHT_SHIFT", [-power for power in found["power"]]),
            ):
                table.several(name + key, row, values)
                if len(values) == 1:
                    table.set(name + key, row, values[0])
    return "; ".join(texts)


def _encoded(entry: Entry) -> bool:
    """Whether the plan's multipliers are those of the accumulators: then they have memories of their own."""
    return any(not m["name"] for step in entry.worked.plan.steps for m in multipliers(step))


def _names(parts: Sequence[Part]) -> dict[tuple[str, str], str]:
    """What the memory of each operand is called; its type is in the name where cases differ in it."""
    kinds: dict[str, dict[str, None]] = {}
    for part in parts:
        kinds.setdefault(part.stem, {})[part.dtype] = None
    return {
        (stem, dtype): stem if len(found) == 1 else f"{stem}-{dtype}"
        for stem, found in kinds.items()
        for dtype in found
    }


def _upper(name: str) -> str:
    return word_of(name).upper()


def _comment(text: str) -> str:
    """Text on one line of ASCII, which no backslash at its end prolongs."""
    return visible_ascii(text).rstrip("\\ ")
