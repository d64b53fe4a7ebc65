"""docs/inception_v3.md says what the networks compute: one way to run them per run, all with --deep."""

from __future__ import annotations

import sys

import pytest

from support.shared import REPOSITORY, needs_shared

sys.path.insert(0, str(REPOSITORY / "tools"))
import make_inception_page as tool

FAST = [way for way in tool.WAYS[1:] if not way.slow]


@needs_shared
@pytest.mark.long
@pytest.mark.in_turns(len(FAST))
@pytest.mark.parametrize("way", FAST, ids=lambda way: f"{way.source}-{way.numerics}".replace(" ", "_"))
def test_the_page_is_current(way: tool.Way) -> None:
    networks = tool.Networks()
    written = tool.TARGET.read_text().splitlines()
    for line in tool.rows(networks, way, networks.steps(tool.WAYS[0])):
        assert line in written
