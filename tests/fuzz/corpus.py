"""The corpus in the repository: one folder per target.

python tests/fuzz/corpus.py seeds [TARGET...]   puts the seeds of the tests' builders into build/fuzz/seeds
python tests/fuzz/corpus.py keep [TARGET...]    takes into the repository what has an outcome that nothing there has

An outcome is ``"result"`` or the code and the message of a typed error, without names and numbers. Inputs that once
failed are put there by hand, named by what they showed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from campaign import CORPUS
from targets import NAMES, find
from worker import name_of

sys.path.append(str(Path(__file__).resolve().parents[1]))

WORK = Path("build/fuzz")
# Bytes of one file, of a target's seeds and of all of its files; inputs that failed are kept whatever their size.
LARGEST, SEEDS, MOST = 8_000, 65_000, 90_000


def seeds(name: str) -> None:
    """Write them."""
    target = WORK / "seeds" / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for content in find(name).seeds(Path(folder)):
            (target / name_of(content)).write_bytes(content)
    print(f"{name}: {len(list(target.iterdir()))} seeds")


def keep(name: str) -> None:
    """The shortest input of every outcome, as long as there is room; seeds before what was found."""
    place = CORPUS / name
    place.mkdir(parents=True, exist_ok=True)
    found: dict[str, None] = {}
    size = sum(path.stat().st_size for path in place.iterdir())
    with tempfile.TemporaryDirectory() as folder:
        attempt = find(name).attempt
        for path in place.iterdir():
            found[attempt(path.read_bytes(), Path(folder))] = None
        for source in ("seeds", "corpus"):
            paths = (WORK / source / name).glob("*")
            for content in sorted((path.read_bytes() for path in paths), key=len):
                if len(content) > LARGEST or size + len(content) > (SEEDS if source == "seeds" else MOST):
                    continue
                try:
                    outcome = attempt(content, Path(folder))
                except Exception as error:
                    print(f"{name}: {error!r:.200}: not kept")
                    continue
                # Seeds of the same outcome are different models.
                if source == "corpus" and outcome in found:
                    continue
                found[outcome] = None
                size += len(content)
                slug = re.sub(r"[^a-z0-9]+", "-", outcome.lower())[:40].strip("-") if source == "corpus" else "seed"
                (place / f"{slug}-{name_of(content)}").write_bytes(content)
    print(f"{name}: {len(list(place.iterdir()))} files, {size:,} bytes, {len(found)} outcomes")


if __name__ == "__main__":
    for name in sys.argv[2:] or NAMES:
        {"seeds": seeds, "keep": keep}[sys.argv[1]](name)
