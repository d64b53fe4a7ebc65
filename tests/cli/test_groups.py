"""Commands with a default command: what their help shows, and what is said when words are missing or mistyped."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bittrue.cli import cli, main
from bittrue.conformance.devices.opening import SPECS


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("conform", ["conform [OPTIONS] DEVICE", "conform verify", "--shard", "--junit", *(s.name for s in SPECS)]),
        ("vectors", ["vectors [OPTIONS] [OPERATOR]...", "vectors score", "--accumulators", "--layout"]),
        ("evaluate", ["evaluate [OPTIONS] MODEL", "evaluate merge", "--shard", "--require"]),
    ],
)
def test_help_of_a_group_shows_its_default_command(group: str, words: list[str]) -> None:
    found = CliRunner().invoke(cli, [group, "--help"], prog_name="bittrue")
    assert found.exit_code == 0
    assert [word for word in words if word not in found.output] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["conform"], "Say which device"),
        (["vectors"], "Say where to"),
        (["evaluate"], "Say which model"),
        (["conform", "verfy", "x.json"], "Did you mean `bittrue conform verify`?"),
        (["vectors", "lst"], "Did you mean `bittrue vectors list`?"),
        (["evaluate", "merg", "a", "b"], "Did you mean `bittrue evaluate merge`?"),
    ],
)
def test_missing_and_mistyped_words(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_results_that_cannot_be_written_are_said_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("-o", "--junit", "--html", "--markdown", "--resume"):
        # The device would be refused, too, but later.
        with pytest.raises(SystemExit) as end:
            main(["conform", "no such device", option, str(tmp_path / "none" / "file")])
        assert end.value.code == 2
        assert "BT-FILE-MISSING" in capsys.readouterr().err
