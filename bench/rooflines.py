"""What the cores of every instruction set here reach of what bounds them: the tables of docs/rooflines.md.

    python bench/rooflines.py [--rounds 30] [--page docs/rooflines.md]

Builds rooflines.cc with the library that tools/build_native.sh or `pip install .` left in build/. Times are processor
time of the thread, all cores take turns in every round, and the best round of each counts. Sections of sets that this
processor lacks stay as they are.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import bittrue
from bittrue.measure.machine import environment
from pages import made_on

ROOT = Path(__file__).resolve().parents[1]
# The widest vectors of binary32 of each architecture, for the peak of real numbers.
REAL_BYTES = {"avx512vnni": 64, "avxvnni": 32, "avx2": 32}


def measured(rounds: int) -> list[dict[str, Any]]:
    """One row per core and set, and the rates of the machine."""
    libraries = list((ROOT / "build").glob("*/native/libbittrue_core.a"))
    if not libraries:
        raise SystemExit("no build of the C++ core lies in build/: tools/build_native.sh makes one")
    library = max(libraries, key=lambda path: path.stat().st_mtime)
    best = bittrue.isas()[0]
    macro = {"x86_64": ["-DBITTRUE_X86"], "aarch64": ["-DBITTRUE_ARM64"]}.get(platform.machine(), [])
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rooflines"
        command = ["c++", "-std=c++17", "-O3", "-march=native", *macro, f"-I{ROOT / 'native'}"]
        command += [f"-DBITTRUE_REAL_BYTES={REAL_BYTES.get(best, 16)}", str(ROOT / "bench" / "rooflines.cc")]
        subprocess.run([*command, str(library), "-pthread", "-o", str(program)], check=True)
        done = subprocess.run([str(program), str(rounds)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(isa: str, rows: list[dict[str, Any]], machine: str) -> str:
    """The section of one set."""
    rates = {(r["isa"], r["core"]): (r["work"] or r["bytes"]) / r["seconds"] for r in rows}
    integer, real = rates[isa, "peak of bytes"], rates["", "peak of binary32"]
    reads = [(2**14, rates["", "read, 16 KiB"]), (2**40, rates["", "read, 256 KiB"])]
    lines = [
        f"{machine} Multiply-adds in registers: of bytes {integer / 1e9:.1f} G/s, of binary32 (the processor's widest "
        f"vectors) {real / 1e9:.1f} G/s. Bytes read: {reads[0][1] / 1e9:.0f} GB/s of 16 KiB, "
        f"{reads[1][1] / 1e9:.0f} GB/s of 256 KiB.",
        "",
        "| core | shape | µs | reached | arithmetic takes at least | memory takes at least | of the roof |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if row["isa"] != isa or row["core"] == "peak of bytes":
            continue
        seconds, counted = row["seconds"], row["core"].startswith(("matrix", "depthwise", "recurrent", "softmax"))
        peak = real if "binary32" in row["core"] + row["shape"] else integer
        least = row["work"] / peak if counted else 0.0
        moved = row["bytes"] / next(rate for size, rate in reads if row["bytes"] <= size)
        unit = "G multiply-adds/s" if counted else "G elements/s"
        cells = [row["core"], row["shape"], f"{1e6 * seconds:.2f}", f"{row['work'] / seconds / 1e9:.2f} {unit}"]
        cells += [f"{1e6 * least:.2f} µs" if counted else "-", f"{1e6 * moved:.2f} µs"]
        lines.append(f"| {' | '.join(cells)} | {100 * max(least, moved) / seconds:.0f} % |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and put the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "rooflines.md")
    arguments = parser.parse_args()
    rows = measured(arguments.rounds)
    machine = made_on(environment(bittrue.__version__))
    text = arguments.page.read_text(encoding="utf-8")
    for isa in sorted({row["isa"] for row in rows} - {""}):
        found = table(isa, rows, machine)
        print(f"{isa}\n{found}\n")
        before, begin, rest = text.partition(f"<!-- begin {isa} -->\n")
        _, end, after = rest.partition(f"\n<!-- end {isa} -->")
        if not end:
            raise SystemExit(f"{arguments.page} has no section for {isa}")
        text = before + begin + found + end + after
    arguments.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
