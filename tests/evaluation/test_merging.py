"""`bittrue evaluate merge`: shards become what one run is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.merging import merge_evaluations

parquet = pytest.importorskip("pyarrow.parquet")
BOTH = ["litert", "xnnpack"]


def run(digits: Path, output: Path | None = None, **more: Any) -> dict[str, Any]:
    return bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", numerics=BOTH, output=output, **more)


def shards(digits: Path, folder: Path, count: int, **more: Any) -> list[Path]:
    folders = [folder / f"shard{index}" for index in range(1, count + 1)]
    for index, path in enumerate(folders, 1):
        run(digits, path, shard=(index, count), **more)
    return folders


@pytest.mark.parametrize("more", [{}, {"limit": 17}])
@pytest.mark.parametrize("count", [1, 7])
def test_merged_shards_are_one_run(digits: Path, tmp_path: Path, count: int, more: dict[str, Any]) -> None:
    whole = run(digits, tmp_path / "whole", **more)
    merged = merge_evaluations(shards(digits, tmp_path, count, **more)[::-1], tmp_path / "merged")
    for found in (whole, merged):
        del found["seconds"]
    assert merged == whole
    rows = [parquet.read_table(tmp_path / name / "rows").to_pylist() for name in ("whole", "merged")]
    assert rows[0] == rows[1]
    # The folder is as good as that of one run.
    assert run(digits, tmp_path / "merged", resume=True, **more)["digest"] == whole["digest"]


def test_gaps_and_duplicates_are_named_before_anything_is_written(digits: Path, tmp_path: Path) -> None:
    one, two, three = shards(digits, tmp_path, 3)
    half = tmp_path / "half"
    run(digits, half, shard=(1, 2))

    def refused(folders: list[Path], *words: str) -> None:
        with pytest.raises(bittrue.InputError) as caught:
            merge_evaluations(folders, tmp_path / "merged")
        assert caught.value.code == "BT-EVALUATE-MERGE"
        assert [word for word in words if word not in str(caught.value)] == []
        assert not (tmp_path / "merged").exists()

    refused([one, three], "no folder has shard 2/3")
    refused([two], "no folder has shards 1/3, 3/3")
    refused([one, two, three, two], "the first at position 1", f"in {two} (shard 2/3) and in {two} (shard 2/3)")
    refused([one, half], "the first at position 0", f"{half} (shard 1/2)", "at positions 1, 5, 7, 11, 13 and")
    refused([])
    (three / "rows" / "part-000000000.parquet").unlink()
    refused([one, two, three], f"{three} has 0 of its 33 samples")


def test_results_of_different_evaluations_are_not_merged(digits: Path, tmp_path: Path) -> None:
    one, two = shards(digits, tmp_path, 2)
    other = tmp_path / "other"
    bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", shard=(2, 2), output=other)
    with pytest.raises(bittrue.InputError, match="numerics differ"):
        merge_evaluations([one, other], tmp_path / "merged")
    with pytest.raises(bittrue.InputError, match="holds results already"):
        merge_evaluations([one, two], two)
    (two / "evaluation.json").write_text('{"format": "bittrue-evaluation-1"}')
    with pytest.raises(bittrue.ModelFormatError, match="no evaluation"):
        merge_evaluations([one, two], tmp_path / "merged")


def test_damaged_parts_are_errors(digits: Path, tmp_path: Path) -> None:
    one, two = shards(digits, tmp_path, 2)
    (part,) = (two / "rows").iterdir()
    content = part.read_bytes()
    part.write_bytes((one / "rows" / part.name).read_bytes())
    with pytest.raises(bittrue.ModelFormatError, match="does not belong here"):
        merge_evaluations([one, two], tmp_path / "merged")
    part.write_bytes(content[:-9])
    with pytest.raises(bittrue.ModelFormatError, match="no part"):
        merge_evaluations([one, two], tmp_path / "again")


def test_command(digits: Path, tmp_path: Path) -> None:
    words = ["evaluate", "merge", *map(str, shards(digits, tmp_path, 2)), "--json", "--require", "top1=1"]
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "merged")])
    found = json.loads(result.output)
    assert found["digest"] == run(digits)["digest"]
    assert (result.exit_code, len(found["unmet"])) == (1, 1)
    assert json.loads((tmp_path / "merged" / "summary.json").read_text())["digest"] == found["digest"]
