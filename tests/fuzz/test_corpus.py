"""Every input of the corpus through its fuzz target: what was found once stays mended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from packed import join, split
from targets import NAMES, find
from watch import changed
from worker import Attempts, describe

CORPUS = Path(__file__).parent / "corpus"
# Bytes in the repository.
MOST = 1 << 20


@pytest.mark.parametrize("name", NAMES)
def test_every_input(name: str, tmp_path: Path) -> None:
    attempt = find(name).attempt
    paths = sorted((CORPUS / name).iterdir())
    found = []
    for path in paths:
        try:
            found.append(attempt(path.read_bytes(), tmp_path))
        except Exception as error:
            raise AssertionError(f"tools/fuzz.sh --replay {name} {path}: {describe(error)}") from error
    assert found


@pytest.mark.parametrize("name", NAMES)
def test_changes_depend_on_the_seed_alone(name: str) -> None:
    target = find(name)
    content = next(
        path for path in sorted((CORPUS / name).iterdir(), reverse=True) if path.stem[:4] == "seed"
    ).read_bytes()
    made = [changed(target.change, content, seed) for seed in range(16)]
    assert made == [changed(target.change, content, seed) for seed in range(16)]
    assert len({*made, content}) > 8


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < MOST
    assert {path.name for path in CORPUS.iterdir()} == {*NAMES}


class _Faulty:
    """A target that finds something."""

    def attempt(self, content: bytes, folder: Path) -> str:
        raise ZeroDivisionError(len(content))


def test_the_shortest_input_of_a_cause_is_kept(tmp_path: Path) -> None:
    attempts = Attempts(_Faulty(), tmp_path)
    for content in (b"long", b"a", b"longer"):
        attempts(content)
    kept = [*(tmp_path / "findings").glob("untyped-*.bin")]
    assert [path.read_bytes() for path in kept] == [b"a"]
    assert "ZeroDivisionError" in kept[0].with_suffix(".txt").read_text()


def test_packed_files_survive_and_stay_inside() -> None:
    files = {"a.json": b"{}", "b/c.npz": bytes(300)}
    assert split(join(files)) == files
    assert [*split(join({"/../../etc/x": b"1", "..": b""}))] == ["etc/x", "unnamed"]
    for length in range(40):
        split(bytes(range(length)))
