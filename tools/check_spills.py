"""Count stack accesses of vector registers in the hot loops of compiled cores: there must be none.

    python tools/check_spills.py [--objdump OBJDUMP] FILE...

A compiler that moves the sums of a tile to the stack and back costs a third of the speed without any test failing. Hot
loops are the innermost loops with a multiply-add of integers: vpdpbusd, vpdpwssd, vpmaddwd, sdot, udot, smlal. FILE is
an object file, a library or the Python module. Exit status 1 when a loop accesses the stack, 2 when there is no hot
loop.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

HOT = re.compile(r"^(vpdpbusd|vpdpwssd|vpmaddwd|sdot|udot|smlal)")
FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\}\s+)?(\S+)\s*(.*)$")
TARGET = re.compile(r"\b(?:0x)?([0-9a-f]+) <")
# Conditional and unconditional jumps; calls are none.
JUMP = re.compile(r"^(j[a-z]+|b|b\.[a-z]+|cbn?z|tbn?z)$")
VECTOR = re.compile(r"%[xyz]mm\d|\b[qdv]\d+\b")
STACK = re.compile(r"\(%rsp[,)]|-0x[0-9a-f]+\(%rbp[,)]|\[sp\b")


@dataclass
class Loop:
    """An innermost loop: where it is, and its instructions that move a vector register from or to the stack."""

    function: str
    first: int
    last: int
    multiplies: int = 0
    spills: list[str] = field(default_factory=list)


@dataclass
class Instruction:
    """One line of a disassembly."""

    address: int
    name: str
    operands: str

    @property
    def target(self) -> int | None:
        """The address jumped to."""
        found = TARGET.search(self.operands) if JUMP.match(self.name) else None
        return int(found.group(1), 16) if found else None


def functions(lines: Iterable[str]) -> Iterator[tuple[str, list[Instruction]]]:
    """The functions of a disassembly; one for all that follows a symbol, when symbols are stripped."""
    name, body = "", []
    for line in lines:
        if header := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = header.group(2), []
        elif found := INSTRUCTION.match(line):
            body.append(Instruction(int(found.group(1), 16), found.group(2), found.group(3)))
    if body:
        yield name, body


def hot_loops(name: str, body: list[Instruction]) -> list[Loop]:
    """The innermost loops with multiply-adds, loops being what lies between a backward jump and its target."""
    addresses = {instruction.address for instruction in body}
    spans = set()
    for instruction in body:
        target = instruction.target
        if target is not None and target <= instruction.address and target in addresses:
            spans.add((target, instruction.address))
    multiplies = [i for i in body if HOT.match(i.name)]
    loops = []
    for first, last in sorted(spans):
        inside = [i for i in multiplies if first <= i.address <= last]
        contains = any((a, b) != (first, last) and first <= a and b <= last for a, b in spans)
        if not inside or contains:
            continue
        loop = Loop(name, first, last, len(inside))
        for i in body:
            if first <= i.address <= last and VECTOR.search(i.operands) and STACK.search(i.operands):
                loop.spills.append(f"{i.address:x}: {i.name} {i.operands}")
        loops.append(loop)
    return loops


def check(path: str, objdump: str = "objdump") -> list[Loop]:
    """All hot loops of one file."""
    command = [objdump, "--disassemble", "--no-show-raw-insn", "--demangle", path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [loop for name, body in functions(text.splitlines()) for loop in hot_loops(name, body)]


def main() -> int:
    """Print every hot loop and its spills."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    loops = [loop for path in arguments.files for loop in check(path, arguments.objdump)]
    for loop in loops:
        counts = f"{loop.multiplies:5} multiply-adds {len(loop.spills):4} stack accesses"
        print(f"{counts}  {loop.first:x}  {loop.function[:90]}")
        for spill in loop.spills[:4]:
            print(f"      {spill}")
    if not loops:
        print("no hot loop found")
        return 2
    return 1 if any(loop.spills for loop in loops) else 0


if __name__ == "__main__":
    sys.exit(main())
