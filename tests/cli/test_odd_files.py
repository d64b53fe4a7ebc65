"""Named pipes, devices and over-long names, wherever the command line reads a file: an error at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bittrue import samples
from bittrue.cli import cli, endings

PLACES = {
    "model": ("run", "{odd}"),
    "inspect": ("inspect", "{odd}"),
    "check": ("check", "{odd}"),
    "weights": ("run", "{model}", "--weights", "{odd}"),
    "input": ("run", "{model}", "-i", "{odd}"),
    "labels": ("run", "{model}", "--labels", "{odd}"),
    "side": ("compare", "{model}", "{odd}"),
    "trace": ("compare", "{model}", "trace:{odd}"),
    "match": ("compare", "{model}", "{model}", "--match-file", "{odd}"),
    "report": ("report", "{odd}"),
    "verify": ("conform", "verify", "{odd}"),
    "merge": ("conform", "merge", "{odd}"),
    "device": ("conform", "python:{odd}:run"),
    "program": ("conform", "program:{odd}"),
    "resume": ("conform", "bittrue:litert", "--case", "RESHAPE/s8/random/000", "--resume", "{odd}"),
    "conform model": ("conform", "bittrue:litert", "--model", "{odd}", "--case", "RESHAPE/s8/random/000"),
    "vectors": ("replay", "{folder}"),
    "replay": ("replay", "{odd}"),
}


@pytest.mark.parametrize("kind", ["fifo", "zero", "long", "folder"])
@pytest.mark.parametrize("place", PLACES)
def test_odd_files(place: str, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(samples.demo_model())
    odd = {"fifo": tmp_path / "odd.npy", "zero": Path("/dev/zero"), "long": tmp_path / ("n" * 5000)}.get(kind, tmp_path)
    if kind == "fifo":
        os.mkfifo(odd)
    folder = tmp_path / "vectors"
    folder.mkdir()
    if kind != "long":
        (folder / "manifest.json").symlink_to(odd)
    words = [word.format(odd=odd, model=model, folder=folder) for word in PLACES[place]]
    assert endings.run(cli, words) in (endings.USAGE, endings.COULD_NOT_RUN)
    said = capfd.readouterr().err
    assert 0 < len(said) < 8000
    assert "internal error" not in said
    assert "there is no device" not in said
