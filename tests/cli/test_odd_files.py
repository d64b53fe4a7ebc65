"""Named pipes, devices, over-long names and odd archives, wherever the command line reads a file: an error at once."""

from __future__ import annotations

import os
import struct
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


# An archive that says it takes version 25.5 of the format to read it.
ARCHIVE = struct.pack("<IHHHHHHIIIHHHHHII1s", 0x02014B50, 20, 255, *[0] * 7, 1, *[0] * 6, b"x")
ARCHIVE += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(ARCHIVE), 0, 0)


@pytest.mark.parametrize("kind", ["fifo", "zero", "long", "folder", "archive"])
@pytest.mark.parametrize("place", PLACES)
def test_odd_files(place: str, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(samples.demo_model())
    odd = {"zero": Path("/dev/zero"), "long": tmp_path / ("n" * 5000), "folder": tmp_path}.get(
        kind, tmp_path / "odd.npy"
    )
    if kind == "fifo":
        os.mkfifo(odd)
    if kind == "archive":
        odd.write_bytes(ARCHIVE)
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
