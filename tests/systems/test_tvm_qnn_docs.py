"""The worked example of docs/systems/tvm_qnn_graphs.md runs as it stands."""

from __future__ import annotations

import re

import pytest

from support.shared import REPOSITORY

PAGE = REPOSITORY / "docs" / "systems" / "tvm_qnn_graphs.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_has_an_example() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_blocks_run(block: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[block], f"{PAGE.name}, block {block}", "exec"), {})
    assert "['conv2d', 'average_pool2d', 'reshape', 'fully_connected']" in capsys.readouterr().out
