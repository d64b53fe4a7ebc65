"""The worked examples of the pages in docs/systems run as they stand, from the top of each page to its end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bittrue
from support.shared import REPOSITORY

PAGES = sorted((REPOSITORY / "docs" / "systems").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, f"{page.name} has no example"
    code = "\n".join(blocks)
    environment = {**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    # What an example prints stands beside it as a comment, in the order of the lines.
    promised = re.findall(r"^(?:print\(.*?)  # (.*)$", code, re.MULTILINE)
    printed = done.stdout.splitlines()
    assert [line for line in printed if line in promised] == promised
