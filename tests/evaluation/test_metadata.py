"""Metadata inside .tflite files: recipes against ones that are written out, names of classes, damage."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.results import differing
from bittrue.evaluation.sources import open_source
from bittrue.importers.tflite_metadata import NAME, read_description
from bittrue.report import markdown
from support.tflite_metadata import Writer, metadata

Image = pytest.importorskip("PIL.Image")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
LABELS = ["nought", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def described(content: bytes, files: dict[str, str]) -> bytes:
    """The demo's model with metadata, and files zipped behind it."""
    model = schema.ModelT.InitFromPackedBuf(bittrue.demo_model(), 0)
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(content, np.uint8)
    entry.name, entry.buffer = NAME, len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [*(model.metadata or []), entry]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    stream = io.BytesIO(bytes(builder.Output()))
    with zipfile.ZipFile(stream, "a") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as images in folders with the names of their classes, whose order is another one."""
    root = tmp_path_factory.mktemp("named")
    images, labels = bittrue.demo_digits()
    for i, (image, label) in enumerate(zip(images.reshape(-1, 8, 8), labels, strict=True)):
        (root / "data" / LABELS[label]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.astype(np.uint8)).save(root / "data" / LABELS[label] / f"{i}.png")
    text = "\n".join(LABELS) + "\n"
    (root / "model.tflite").write_bytes(described(metadata(), {"labels.txt": text}))
    (root / "own.toml").write_text(
        'step = [{do = "decode", colours = "grey"}, {do = "resize", size = "model"}, '
        '{do = "scale", mean = [0.0], deviation = [16.0]}]'
    )
    return root


def run(folder: Path, **more: Any) -> dict[str, Any]:
    return bittrue.evaluate(folder / "model.tflite", folder / "data", **more)


def test_the_recipe_is_the_one_that_is_written_out(folder: Path) -> None:
    found = run(folder, recipe="metadata")
    plain = bittrue.evaluate(bittrue.demo_model(), folder / "data", recipe=str(folder / "own.toml"))
    assert found["digest"] == plain["digest"]
    assert found["recipe"]["digest"] == plain["recipe"]["digest"]
    # Folders get the numbers that the model has for their names; without metadata they are counted by the alphabet.
    assert found["metrics"]["litert"]["right"] == 99
    assert plain["metrics"]["litert"]["right"] < 50
    assert [one["name"] for one in found["metrics"]["litert"]["per_class"]] == LABELS


def test_names_in_rows_and_tables(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    images, labels = bittrue.demo_digits()
    np.savez(tmp_path / "x.npz", x=images, y=labels)
    words = ["evaluate", str(folder / "model.tflite"), "--data", str(tmp_path / "x.npz"), "--recipe"]
    words += [str(folder / "own.toml"), "--numerics", "litert,xnnpack", "-o", str(tmp_path / "out")]
    (folder / "own.toml").with_name("scale.toml").write_text('step = [{do = "scale", deviation = 16.0}]')
    words[5] = str(folder / "scale.toml")
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    rows = parquet.read_table(tmp_path / "out" / "rows").to_pylist()
    assert all(row["xnnpack:class"] == LABELS[row["xnnpack:prediction"]] for row in rows)
    # An earlier result without names is one of the same samples.
    found = bittrue.evaluate(
        bittrue.demo_model(), tmp_path / "x.npz", recipe=str(folder / "scale.toml"), baseline=tmp_path / "out"
    )
    assert found["baseline"]["changes"][0]["outputs"] == 0


def test_classes_with_other_numbers_are_noted(folder: Path, tmp_path: Path) -> None:
    """Names of the data are names of answers only as far as the numbers agree; a result says where they may not."""
    model, recipe = folder / "model.tflite", str(folder / "own.toml")
    (note,) = bittrue.evaluate(model, folder / "data", recipe=recipe, limit=3)["notes"]
    assert note.startswith(
        "class 0 is 'eight' in the data and 'nought' in the model's own labels; the recipe 'metadata'"
    )
    assert bittrue.evaluate(model, folder / "data", recipe="metadata", limit=3)["notes"] == []
    for name in ("cat", "owl"):
        (tmp_path / "few" / name).mkdir(parents=True)
        Image.new("L", (8, 8)).save(tmp_path / "few" / name / "a.png")
    (tmp_path / "plain.tflite").write_bytes(bittrue.demo_model())
    words = ["evaluate", str(tmp_path / "plain.tflite"), "--data", str(tmp_path / "few"), "--recipe", recipe]
    said = "note: the data has 2 classes and the model 10: class 0 of the data, 'cat', counts as class 0 of the model"
    assert said in CliRunner().invoke(cli, words).output
    found = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)
    assert differing({"notes": ["a"], "task": "b"}, {"task": "b"}) == []
    assert said.removeprefix("note: ") in markdown.render(found)


def test_quantities_have_no_names_of_classes(folder: Path, tmp_path: Path) -> None:
    """The model's labels name classes, and no numbers that happen to be as small."""
    images = bittrue.demo_digits()[0][:4].astype(np.float32)
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(40).reshape(4, 10))
    recipe = tmp_path / "scale.toml"
    recipe.write_text('step = [{do = "scale", mean = [0.0], deviation = [16.0]}]')
    asked: dict[str, Any] = {"recipe": str(recipe)}
    found = bittrue.evaluate(folder / "model.tflite", tmp_path / "x.npz", task="regression", **asked)
    assert found["data"]["classes"] == []
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(4))
    assert bittrue.evaluate(folder / "model.tflite", tmp_path / "x.npz", **asked)["data"]["classes"] == LABELS
    words = ["evaluate", str(folder / "model.tflite"), "--data", str(tmp_path / "x.npz"), "--recipe", str(recipe)]
    said = CliRunner().invoke(cli, [*words, "--task", "regression"]).output
    assert "4 samples with BT-DATA-LABELS, in no figure below; the first one:" in said
    assert "as many numbers as the model's first output has, 10, found 1" in " ".join(said.split())
    assert "no sample has a label" not in said


def test_commands_repeat_the_recipe(folder: Path) -> None:
    from bittrue.evaluation.recipes import find_recipe

    again = find_recipe(str(folder / "model.tflite"))
    assert again.digest == run(folder, recipe="metadata", limit=1)["recipe"]["digest"]
    assert run(folder, recipe="metadata", limit=1)["given"]["recipe"] == str(folder / "model.tflite")


def test_arrays_are_not_decoded(folder: Path, tmp_path: Path) -> None:
    images, labels = bittrue.demo_digits()
    np.savez(tmp_path / "x.npz", x=images, y=labels)
    found = bittrue.evaluate(folder / "model.tflite", tmp_path / "x.npz", recipe="metadata")
    assert found["metrics"]["litert"]["right"] == 99


def test_classes_that_the_model_has_not(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "eleven"):
        (tmp_path / name).mkdir()
        Image.new("L", (8, 8)).save(tmp_path / name / "a.png")
    with pytest.raises(bittrue.InputError, match="no class 'eleven'"):
        bittrue.evaluate(folder / "model.tflite", tmp_path, recipe="metadata")
    (tmp_path / "one").rename(tmp_path / "twelve")
    found = bittrue.evaluate(folder / "model.tflite", tmp_path, recipe="metadata")
    assert found["data"]["classes"] == ["eleven", "twelve"]
    assert open_source(tmp_path).classes == ("eleven", "twelve")


def test_what_is_read() -> None:
    said = read_description(metadata((1.0, 2.0, 3.0), (0.5,), grey=False), described(b"", {"labels.txt": "a\n\nb\n\n"}))
    assert (said.mean, said.deviation, said.grey, said.labels) == ((1.0, 2.0, 3.0), (0.5,), False, ("a", "", "b"))
    two = metadata(files=[("de.txt", "de"), ("en.txt", "")])
    assert read_description(two, described(b"", {"de.txt": "eins", "en.txt": "one"})).labels == ("one",)
    w = Writer()
    w.builder.Finish(w.table({}), b"M001")
    nothing = read_description(bytes(w.builder.Output()), b"")
    assert (nothing.mean, nothing.deviation, nothing.grey, nothing.labels) == ((), (), False, ())


def test_a_model_without_metadata(folder: Path) -> None:
    with pytest.raises(bittrue.InputError, match="the model has no metadata"):
        bittrue.evaluate(bittrue.demo_model(), folder / "data", recipe="metadata")


@pytest.mark.parametrize(
    ("content", "files"),
    [
        (b"no flatbuffer", {}),
        (metadata()[:40], {"labels.txt": "a"}),
        (metadata(), {}),
        (metadata(), {"other.txt": "a"}),
        (metadata(deviation=(0.0,)), {"labels.txt": "a"}),
        (metadata(mean=(float("nan"),)), {"labels.txt": "a"}),
    ],
)
def test_damage(folder: Path, content: bytes, files: dict[str, str]) -> None:
    """An error where the recipe is asked for; otherwise there are no names."""
    model = described(content, files)
    with pytest.raises(bittrue.ModelFormatError):
        bittrue.evaluate(model, folder / "data", recipe="metadata")
    found = bittrue.evaluate(model, folder / "data", recipe=str(folder / "own.toml"), limit=3)
    assert (found["samples"], len(found["data"]["classes"])) == (3, 10)
    json.dumps(found)


def test_changed_bytes_are_typed_errors() -> None:
    """Any byte of the metadata and of the files behind the model may be another one."""
    content = metadata()
    model = described(content, {"labels.txt": "\n".join(LABELS)})
    rng = np.random.default_rng(0)
    outcomes = set()
    for i in range(400):
        damaged, behind = bytearray(content), bytearray(model)
        target = damaged if i % 2 else behind
        start = 0 if i % 2 else len(model) - 300
        for at in rng.integers(start, len(target), 1 + i % 3).tolist():
            target[at] = int(rng.integers(256))
        try:
            read_description(bytes(damaged), bytes(behind))
            outcomes.add("read")
        except bittrue.BittrueError as error:
            outcomes.add(error.code)
    assert {"read", "BT-METADATA"} <= outcomes
