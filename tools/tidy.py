"""clang-tidy over native/, with Clang's own warnings; .clang-tidy says what it looks for.

    python tools/tidy.py [build folder]

The build folder (build/native, which tools/build_native.sh makes) says how each file is compiled. A file that was clean
is not looked at again until it changes, or a header of it, its options, .clang-tidy or clang-tidy itself: what it was
made of is remembered in $XDG_CACHE_HOME/bittrue/tidy, as ccache remembers objects.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nanobind  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bittrue" / "tidy"
# Days after which an entry that no run asked for is forgotten.
KEPT = 30
# The build's own nanobind lay in an environment that pip has removed. Python's headers are not ours to mend either.
ARGUMENTS = (
    f"-isystem{nanobind.include_dir()}",
    f"-isystem{sysconfig.get_path('include')}",
    "-Wno-ignored-gch",  # precompiled headers are another compiler's
)


@functools.cache  # most files include the same headers
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _made_of(commands: list[dict[str, str]], tool: str) -> str:
    """A name for all that clang-tidy sees of a file: commands without their folders, and what is included."""
    parts = [tool, _digest(ROOT / ".clang-tidy")]
    for command in commands:
        words = shlex.split(command["command"])
        end = words.index("-o")
        headers = [f"-I{argument.removeprefix('-isystem')}" for argument in ARGUMENTS[:2]]
        listed = subprocess.run(
            [*words[:end], *headers, "-M", command["file"]],
            cwd=command["directory"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = shlex.split(listed.partition(":")[2].replace("\\\n", " "))
        files = [Path(command["directory"], name) for name in names]
        parts += [word for word in words[1:end] if "/" not in word]
        # A unit names its sources by their folders, and is no more than they are.
        parts += [_digest(file) for file in files if "/CMakeFiles/" not in str(file) or file.suffix == ".hxx"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _looked_at(file: str, commands: list[dict[str, str]], folder: Path, tool: str) -> str:
    """What clang-tidy says about one file; nothing where it was clean before."""
    entry = CACHE / _made_of(commands, tool)
    if entry.is_file():
        entry.touch()
        return ""
    arguments = [f"--extra-arg={argument}" for argument in ARGUMENTS]
    done = subprocess.run(
        ["clang-tidy", "-p", str(folder), "--quiet", *arguments, file], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        CACHE.mkdir(parents=True, exist_ok=True)
        entry.touch()
        return ""
    said = re.sub(r"^\[\d+/\d+\] .*Processing file .*\n", "", done.stdout + done.stderr, flags=re.MULTILINE)
    return said or f"{file}: clang-tidy ended with {done.returncode}\n"


def main() -> int:
    """Look at every file of the build; 1 where something was found."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "native").resolve()
    # Cores of other processors are in no command. Most files are parts of units, which lie in the build folder.
    ours = re.compile(rf"^{re.escape(str(ROOT))}/native/|/native/CMakeFiles/.*/Unity/")
    files = defaultdict(list)
    for command in json.loads((folder / "compile_commands.json").read_text()):
        if ours.search(command["file"]):
            files[command["file"]].append(command)
    tool = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        said = list(pool.map(lambda file: _looked_at(file, files[file], folder, tool), files))
    for entry in CACHE.glob("*"):
        if entry.stat().st_mtime < time.time() - KEPT * 86400:
            entry.unlink(missing_ok=True)
    print(*filter(None, said), sep="", end="")
    print(f"{len(files)} files, {sum(map(bool, said))} with findings")
    return int(any(said))


if __name__ == "__main__":
    sys.exit(main())
