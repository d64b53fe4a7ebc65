"""How many instructions the cores take where no processor of their kind is at hand: a table of docs/rooflines.md.

    tools/test_aarch64.sh; python bench/instructions.py [--library libbittrue_core.a] [--page docs/rooflines.md]

Cross-builds rooflines.cc with the core that tools/test_aarch64.sh left in build/ and runs each core under QEMU's user
emulation, called once and three times: half the difference is one call. Needs (Debian names) gcc
g++-aarch64-linux-gnu qemu-user.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MARK = "instructions"


def built(library: Path, folder: Path) -> tuple[Path, Path]:
    """The program for aarch64, and the plugin that counts."""
    program, plugin = folder / "rooflines", folder / "instructions.so"
    compiler = os.environ.get("AARCH64_CXX", "aarch64-linux-gnu-g++")
    command = [compiler, "-std=c++17", "-O3", "-static", "-DBITTRUE_ARM64", "-DBITTRUE_REAL_BYTES=16"]
    command += [f"-I{ROOT / 'native'}", str(ROOT / "bench" / "rooflines.cc"), str(library), "-pthread"]
    subprocess.run([*command, "-o", str(program)], check=True)
    source = str(ROOT / "bench" / "instructions.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), source], check=True)
    return program, plugin


def counted(program: Path, plugin: Path) -> list[dict[str, Any]]:
    """One row per core and set, with the instructions of one call."""
    rows: list[dict[str, Any]] = []
    for index in range(1000):
        totals: list[int] = []
        for calls in (1, 3):
            command = ["qemu-aarch64", "-cpu", "max", "-plugin", str(plugin), str(program), "count"]
            done = subprocess.run([*command, str(index), str(calls)], capture_output=True, text=True)
            if done.returncode == 1:
                return rows
            done.check_returncode()
            found = re.search(r"^instructions (\d+)$", done.stderr, re.MULTILINE)
            if found is None:
                raise SystemExit(f"the plugin counted nothing: {done.stderr}")
            totals.append(int(found[1]))
        rows.append({**json.loads(done.stdout), "instructions": (totals[1] - totals[0]) / 2})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Instructions per result or multiply-add, the sets side by side."""
    sets = list(dict.fromkeys(row["isa"] for row in rows))
    kinds = list(dict.fromkeys((row["core"], row["shape"]) for row in rows if row["core"] != "peak of bytes"))
    found = {(row["isa"], row["core"], row["shape"]): row for row in rows}
    lines = [f"| core | shape | per | {' | '.join(sets)} |", "|---|---|---|" + "---:|" * len(sets)]
    for core, shape in kinds:
        products = core.startswith(("matrix", "depthwise", "recurrent", "softmax"))
        cells = []
        for isa in sets:
            row = found.get((isa, core, shape))
            cells.append("" if row is None else f"{1000 * row['instructions'] / row['work']:,.0f}")
        unit = "1,000 multiply-adds" if products else "1,000 elements"
        lines.append(f"| {core} | {shape} | {unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Count, and put the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT / "build" / "aarch64" / "plain" / "native" / "libbittrue_core.a"
    parser.add_argument("--library", type=Path, default=default)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "rooflines.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = table(counted(*built(arguments.library, Path(folder))))
    print(found)
    text = arguments.page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(f"<!-- begin {MARK} -->\n")
    _, end, after = rest.partition(f"\n<!-- end {MARK} -->")
    if not end:
        raise SystemExit(f"{arguments.page} has no section for {MARK}")
    arguments.page.write_text(before + begin + found + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
