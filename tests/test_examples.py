"""What tests/conftest.py does with properties and tests in turns: fixed examples, new ones by the seed, what `--deep`
runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import seed

HERE = Path(__file__).parent
PROPERTIES = """
import json, os
import pytest
from hypothesis import example, given, settings, strategies as st

def note(name, x):
    with open(os.environ["NOTED"], "a") as file:
        file.write(json.dumps([name, x]) + "\\n")

@pytest.mark.parametrize("name", ["a", "b"])
@example(x=-5)
@given(st.integers(0, 2**64))
def test_property(name, x):
    note(name, x)

@settings(max_examples=5)
@given(st.integers(0, 2**64))
def test_few(x):
    note("few", x)

@pytest.mark.deep
@pytest.mark.parametrize("number", range(40))
def test_deep(number):
    pass

@pytest.mark.in_turns(2, by="kind")
@pytest.mark.parametrize("kind", ["a", "b", "c", "d"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_in_turns(kind, number):
    note(f"turn {kind} {number}", 0)

@given(st.integers(0, 2**64))
def test_fails(x):
    assert not os.environ.get("FAIL") or x < 2**8
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs the tests above in a process of its own: what it printed, and the examples by name."""
    tests = tmp_path / "tests"
    for name in ("conftest.py", "support/__init__.py", "support/seed.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / name, tests / name)
    (tests / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    (tests / "test_properties.py").write_text(PROPERTIES)
    noted = tmp_path / "noted"

    def call(*arguments: str, fail: bool = False) -> tuple[str, dict[str, list[int]]]:
        noted.write_text("")
        environment = {**os.environ, "NOTED": str(noted), "FAIL": "1" if fail else "", "PYTEST_ADDOPTS": ""}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        plugins = ["-p", "no:cacheprovider", "-p", "xdist.plugin", "-p", "_hypothesis_pytestplugin"]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
        done = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == fail, done.stdout + done.stderr
        found: dict[str, list[int]] = {}
        for line in noted.read_text().splitlines():
            name, value = json.loads(line)
            found.setdefault(name, []).append(value)
        return done.stdout, found

    return call


def test_the_seed_follows_from_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "_REPOSITORY", tmp_path)
    source = tmp_path / "src" / "deeper" / "a.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1")
    first = seed.seed_of_sources()
    (tmp_path / "src" / "notes.txt").write_text("of no account")
    assert seed.seed_of_sources() == first
    source.write_text("x = 2")
    assert seed.seed_of_sources() != first


def test_the_same_seed_gives_the_same_examples(run, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, first = run()
    (number,) = set(re.findall(r"--seed (\d+)", printed))
    assert len(re.findall("SKIPPED", printed)) == 1, "one line for all campaigns"
    assert re.search(r"SKIPPED \[40\] .*long campaigns run with --deep", printed)
    assert first["a"].count(-5) == 1
    assert len(first["a"]) == 13
    assert len(first["few"]) == 5
    assert first["a"] != first["b"]
    turns = [name.split()[1:] for name in first if name.startswith("turn")]
    assert len(turns) == 2 * 3, "one in two values, each with all other parameters"
    assert len({kind for kind, _ in turns}) == 2

    printed, again = run("--seed", number, "-n", "2")
    assert f"--seed {number}" in printed
    assert again == first

    other_seed = str(int(number) + 1)
    monkeypatch.setenv("BITTRUE_SEED", other_seed)
    printed, other = run(fail=True)
    assert other["a"][:10] == first["a"][:10], "fixed examples do not depend on the seed"
    assert {*other["a"][10:]} - {*first["a"]}
    assert printed.count(f"--seed {other_seed}") >= 2, "at the head and after failures"


def test_deep_runs_the_campaigns(run) -> None:
    printed, _ = run("-k", "deep", "--deep")
    assert "40 passed" in printed
