"""Sources by addresses, and in file systems that are not this machine's: the same samples as on the disk."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.sources import Source, open_source
from bittrue.evaluation.sources.places import remote

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def seen(source: Source) -> list[tuple[object, ...]]:
    found = []
    for position, sample in source.samples(range(len(source))):
        parts = [part if isinstance(part, bytes) else str(part.tolist()) for part in sample.read()]  # type: ignore[union-attr]
        truth = None if sample.truth is None else sample.truth().tolist()
        found.append((position, sample.id, sample.label, parts, truth))
    return [(source.kind, source.classes), *found]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of every kind."""
    root = tmp_path_factory.mktemp("places")

    def put(name: str, content: bytes | str) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)

    for name in ("cat/1.png", "cat/deep/2.png", "owl/3.jpg"):
        put(f"classes/{name}", f"image {name}")
    put("list/list.csv", "path,label\nimages/a.png,cat\nimages/b.png,owl\n")
    put("list/images/a.png", "a")
    put("list/images/b.png", "b")
    put("tiny/y_labels.csv", "a.bin,2,1,4,2\n")
    put("tiny/a.bin", bytes(range(8)))
    mask = io.BytesIO()
    np.save(mask, np.eye(3, dtype=np.uint8))
    put("masks/images/a.png", "a")
    put("masks/masks/a.npy", mask.getvalue())
    put("voc/VOC2012/JPEGImages/a.jpg", "a")
    put("voc/VOC2012/SegmentationClass/a.npy", mask.getvalue())
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}
    coco = {"images": [{"id": 1, "file_name": "a.png"}], "annotations": [box]}
    put("coco/annotations/instances_val.json", json.dumps(coco))
    put("coco/val/a.png", "a")
    table = pa.table({"image": [b"1", b"2"], "label": [1, 0]})
    (root / "tables").mkdir()
    parquet.write_table(table, root / "tables" / "a.parquet", row_group_size=1)
    feather.write_feather(table, root / "tables" / "b.arrow", compression="uncompressed")
    np.savez(root / "x.npz", x=np.arange(6).reshape(3, 2), y=[1, 0, 1])
    np.save(root / "x.npy", np.arange(6).reshape(3, 2))
    (root / "shards").mkdir()
    for number in range(3):
        with tarfile.open(root / "shards" / f"{number}.tar", "w") as archive:
            for name, content in (("a.png", b"image"), ("a.cls", b"%d" % number)):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return root


NAMES = [
    "classes", "list/list.csv", "tiny", "masks", "voc", "coco", "coco/annotations/instances_val.json", "tables",
    "tables/a.parquet", "x.npz", "x.npy", "shards", "shards/1.tar",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_same_samples(everything: Path, name: str) -> None:
    expected = seen(open_source(everything / name))
    assert len(expected) > 1
    assert seen(open_source((everything / name).as_uri())) == expected
    system = fs.SubTreeFileSystem(str(everything), fs.LocalFileSystem())
    assert seen(open_source(remote(system, name))) == expected


def test_patterns_and_kinds(everything: Path) -> None:
    expected = seen(open_source(f"webdataset:{everything}/shards/{{0..2}}.tar"))
    assert seen(open_source(f"webdataset:{everything.as_uri()}/shards/{{0..2}}.tar")) == expected
    assert seen(open_source(f"imagefolder:{(everything / 'classes').as_uri()}"))[0][0] == "imagefolder"


def test_a_file_system_of_pyarrow(everything: Path) -> None:
    """pyarrow's own, which is nowhere on a disk."""
    system = fs._MockFileSystem()
    for name in ("tables/a.parquet", "x.npz", "classes/cat/1.png", "classes/owl/3.jpg"):
        system.create_dir(f"bucket/{Path(name).parent}")
        with system.open_output_stream(f"bucket/{name}") as file:
            file.write((everything / name).read_bytes())
    for name in ("tables/a.parquet", "x.npz"):
        assert seen(open_source(remote(system, f"bucket/{name}"))) == seen(open_source(everything / name))
    source = open_source(remote(system, "bucket/classes"))
    assert [(sample.id, sample.label) for _, sample in source.samples(range(2))] == [("cat/1.png", 0), ("owl/3.jpg", 1)]
    system.delete_file("bucket/classes/owl/3.jpg")
    with pytest.raises(bittrue.InputError) as caught:
        source[1].read()
    assert (caught.value.code, caught.value.place) == ("BT-DATA-REMOTE", "bucket/classes/owl/3.jpg")
    with pytest.raises(bittrue.InputError, match="there is no"):
        open_source(remote(system, "bucket/nothing"))


@pytest.mark.parametrize("text", ["nowhere://bucket/x", "file:///no/such/folder", "parquet:nowhere://x", "file://{a}"])
def test_addresses_that_lead_nowhere(text: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        open_source(text)
    assert caught.value.code in ("BT-DATA-REMOTE", "BT-DATA")


def test_the_command(digits: Path) -> None:
    words = ["evaluate", str(digits / "model.tflite"), "--data", (digits / "samples.npz").as_uri(), "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    whole = bittrue.evaluate(digits / "model.tflite", digits / "samples.npz")
    assert json.loads(done.output)["digest"] == whole["digest"]


def test_results_go_to_this_machine(digits: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bittrue.InputError, match="on this machine"):
        bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", output="s3://bucket/out")
    assert not any(tmp_path.iterdir())
    with pytest.raises(bittrue.InputError, match="webdataset: before it takes a pattern"):
        open_source("x-{0..3}.tar")
