"""The format hex with one folder per case: a file per array for $readmemh, and the case's own parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...visible import visible_ascii
from .describe import multipliers
from .entry import Entry, Part, suite_facts
from .exporter import MANIFEST, Exporter, json_bytes, path_of, word_of
from .words import Words, words_of

FORMAT = "bittrue-hex-1"


class HexFolders(Exporter):
    """Memories as hexadecimal text, a parameter package per case, and a manifest of all files."""

    name = "hex"
    title = "$readmemh files with a .sv package and a .vh of parameters per case"

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self.cases: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {}

    def add(self, entry: Entry) -> None:
        """The case's folder."""
        if not self.head:
            self.head = suite_facts(entry)
        place = path_of(entry.case.identity)
        memories = []
        sizes: list[tuple[Part, Words]] = []
        for part in entry.parts:
            words = words_of(part, self.options, entry.case.format == "tflite")
            sizes.append((part, words))
            name = f"{place}/{part.stem}.hex"
            title = f"// {entry.case.identity} {array_title(part, words)}\n"
            self.folder.write(name, (title + words.lines(self.options.comments)).encode())
            memories.append(memory(part, words, name, 0))
        lines = _parameters(entry, sizes)
        package = word_of(entry.case.identity)
        head = f"// {entry.case.identity}, {entry.numerics}\n"
        body = "".join(f"  {line}\n" for line in lines)
        self.folder.write(f"{place}/parameters.sv", f"{head}package {package};\n{body}endpackage\n".encode())
        self.folder.write(f"{place}/parameters.vh", (head + "".join(f"{line}\n" for line in lines)).encode())
        self.cases.append(
            {**entry.header, "package": package, "parameters": f"{place}/parameters.sv", "memories": memories}
        )

    def finish(self) -> None:
        """The manifest."""
        self.folder.write(MANIFEST, json_bytes(manifest(self.head, self.options, self.cases)))


def manifest(head: dict[str, Any], options: Any, cases: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The content of manifest.json."""
    settings = {"order": options.order, "endianness": options.endianness}
    return {"format": FORMAT, **head, **settings, **more, "cases": cases}


def memory(part: Part, words: Words, file: str, start: int) -> dict[str, Any]:
    """What the manifest says about an array whose first word is number `start` of a file."""
    return {
        "role": part.role,
        **part.facts(),
        "file": file,
        "start": start,
        "words": words.count,
        "word_width": words.width,
        "element_width": words.element_width,
        "per_word": words.per_word,
        "layout": words.layout,
        "stored_shape": list(words.shape),
    }


def array_title(part: Part, words: Words) -> str:
    """Which array, for a comment: role, name, type, shape, and how words are packed."""
    packing = f"{words.per_word} per word" if words.per_word else f"{-(-words.element_width // words.width)} words each"
    layout = f" {words.layout}" if words.layout else ""
    return (
        f"{part.role} {part.number} '{visible_ascii(part.name)}' {part.dtype}{list(words.shape)}{layout}: "
        f"{words.count} words of {words.width} bits, {packing}"
    )


def _parameters(entry: Entry, sizes: list[tuple[Part, Words]]) -> list[str]:
    """Widths, counts, zero points, multipliers, exponents, shifts and clamps as localparams of Verilog-2001."""
    lines = []
    for part, words in sizes:
        stem = part.stem.upper().replace("-", "_")
        lines.append(f"// {part.role} {part.number}: {part.dtype}{list(part.value.shape)}")
        lines.append(number(f"{stem}_WIDTH", words.element_width))
        lines.append(number(f"{stem}_ELEMENTS", part.value.size))
        lines.append(number(f"{stem}_WORD_WIDTH", words.width))
        lines.append(number(f"{stem}_WORDS", words.count))
        lines += [number(f"{stem}_EXTENT_{axis}", size) for axis, size in enumerate(part.value.shape)]
        if part.quantization is not None:
            points = [int(point) for point in part.quantization.zero_points.reshape(-1)]
            lines += _several(f"{stem}_ZERO_POINT", points if len(set(points)) > 1 else points[:1])
    if entry.must_fail:
        return lines
    steps = entry.worked.plan.steps
    for position, step in enumerate(steps):
        prefix = f"STEP_{position}_" if len(steps) > 1 else ""
        rules = ", ".join(f"{slot}={rule}" for slot, rule in step.rules.items())
        lines.append(f"// {step.operator}: {rules or 'no arithmetic'}")
        for word, name in (("LOW", "low"), ("HIGH", "high")):
            value = step.parameters.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                lines.append(number(f"{prefix}{word}", value))
        for key, value in step.parameters.items():
            if key.endswith("_zero_point") and isinstance(value, int):
                lines.append(number(prefix + key.upper(), value))
        for found in multipliers(step):
            name = prefix + (f"{found['name'].upper()}_" if found["name"] else "")
            lines.append(f"// {found['meaning']}; channel 0 in the lowest bits; right shift = -power")
            lines.append(number(f"{name}CHANNELS", len(found["multiplier"])))
            lines += _several(f"{name}MULTIPLIER", found["multiplier"])
            lines += _several(f"{name}EXPONENT", found["exponent"])
            lines += _several(f"{name}RIGHT_SHIFT", [-power for power in found["power"]])
    return lines


def number(name: str, value: int) -> str:
    """A localparam of 32 bits, or 64 where it needs them."""
    width = 32 if -(2**31) <= value < 2**31 else 64
    return f"localparam signed [{width - 1}:0] {name} = {_literal(value, width)};"


def _literal(value: int, width: int) -> str:
    if value == -(2 ** (width - 1)):
        return f"{width}'sh{2 ** (width - 1):x}"
    return f"{'-' if value < 0 else ''}{width}'sd{abs(value)}"


def _several(name: str, values: list[int]) -> list[str]:
    """One value, or a vector of 32 bits for each with value 0 in the lowest bits."""
    if len(values) == 1:
        return [number(name, values[0])]
    words = np.array([value % 2**32 for value in values], np.uint64)
    joined = ", ".join(f"32'h{int(word):08x}" for word in words[::-1])
    return [f"localparam [{32 * len(values) - 1}:0] {name} = {{{joined}}};"]
