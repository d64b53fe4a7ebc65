"""Samples in Parquet and Arrow files: every row is read as it was written, and broken files are typed errors."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.sources import open_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

KINDS = ("parquet", "arrow", "feather")


def write(path: Path, table: Any) -> Path:
    """Groups of three rows; .arrow as a stream, as `datasets` writes it, .feather as a file."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=3)
        return path
    opened = pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


def images(count: int) -> list[bytes]:
    from PIL import Image

    found = []
    for i in range(count):
        buffer = io.BytesIO()
        Image.new("RGB", (5, 4), (i, 2 * i, 3)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


def huggingface(table: Any, names: list[str]) -> Any:
    features = {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


@pytest.mark.parametrize("kind", KINDS)
def test_images_as_datasets_stores_them(tmp_path: Path, kind: str) -> None:
    content = images(8)
    table = pa.table({"image": [{"bytes": x, "path": f"{i}.png"} for i, x in enumerate(content)], "label": [0, 1] * 4})
    source = open_source(write(tmp_path / f"train.{kind}", huggingface(table, ["cat", "dog"])))
    assert (source.kind, source.holds, len(source), source.classes) == ("parquet", "image", 8, ("cat", "dog"))
    # Forwards, backwards, and in any order.
    for position in (*range(8), *reversed(range(8)), 3, 0, 7):
        sample = source[position]
        assert (sample.id, sample.label) == (f"train.{kind}:{position}", position % 2)
        assert sample.read() == [content[position]]
    # Samples stay what they are when others have been read.
    kept = [sample for _, sample in source.samples(range(8))]
    assert [sample.read() for sample in reversed(kept)] == [[x] for x in reversed(content)]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_names_of_classes(tmp_path: Path, kind: str) -> None:
    table = pa.table({"pixels": [b"one", b"two", None, b""], "class": ["b", "a", "b", None]})
    source = open_source(write(tmp_path / f"x.{kind}", table))
    assert source.classes == ("a", "b")
    assert [source[i].label for i in range(4)] == [1, 0, 1, None]
    assert [source[i].read() for i in (0, 1, 3)] == [[b"one"], [b"two"], [b""]]
    with pytest.raises(bittrue.InputError, match=r"x\.\w+, row 2: the row holds nothing"):
        source[2].read()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", [pa.int8(), pa.float32()])
def test_nested_lists_are_arrays(tmp_path: Path, kind: str, inner: Any) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (7, 2, 3, 4)).astype(inner.to_pandas_dtype())
    for type_ in (pa.list_(pa.list_(pa.list_(inner))), pa.list_(pa.list_(pa.list_(inner, 4), 3), 2)):
        path = write(tmp_path / f"x.{kind}", pa.table({"x": pa.array(x.tolist(), type_), "labels": list(range(7))}))
        source = open_source(path)
        assert source.holds == "array"
        for i in range(7):
            (value,) = source[i].read()
            assert isinstance(value, np.ndarray)
            assert (value.dtype, value.shape, source[i].label) == (x.dtype, x.shape[1:], i)
            assert value.tobytes() == x[i].tobytes()


def test_lists_that_are_no_array(tmp_path: Path) -> None:
    values = [[[1, 2], [3]], [[1, 2], None], [[1, None], [1, 2]], None, [[1, 2], [3, 4]]]
    source = open_source(
        write(tmp_path / "x.parquet", pa.table({"x": pa.array(values, pa.list_(pa.list_(pa.int8())))}))
    )
    for i in range(4):
        with pytest.raises(bittrue.InputError) as caught:
            source[i].read()
        assert (caught.value.code, caught.value.place) == ("BT-DATA-VALUE", f"{tmp_path / 'x.parquet'}, row {i}")
    assert np.array_equal(source[4].read()[0], [[1, 2], [3, 4]])


def test_folder(tmp_path: Path) -> None:
    for name, first in (("train-00001", 4), ("train-00000", 0)):
        write(tmp_path / f"{name}.parquet", pa.table({"image": [bytes([first + i]) for i in range(4)]}))
    source = open_source(tmp_path)
    assert [source[i].read() for i in range(8)] == [[bytes([i])] for i in range(8)]
    assert [source[i].id for i in (0, 5)] == ["train-00000.parquet:0", "train-00001.parquet:1"]
    write(tmp_path / "z.parquet", pa.table({"image": [[1, 2]]}))
    with pytest.raises(bittrue.InputError, match="column 'image' is list") as caught:
        open_source(tmp_path)
    assert caught.value.code == "BT-DATA-TABLE"


@pytest.mark.parametrize("kind", KINDS)
def test_list_of_paths(tmp_path: Path, kind: str) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes(name.encode())
    path = write(tmp_path / f"list.{kind}", pa.table({"path": list("abcd"), "label": ["x", "y", "x", "z"]}))
    source = open_source(path)
    assert (source.classes, [source[i].label for i in range(4)]) == (("x", "y", "z"), [0, 1, 0, 2])
    assert [source[i].read() for i in range(4)] == [[b"a"], [b"b"], [b"c"], [b"d"]]
    write(path, pa.table({"path": ["a", "../b"], "label": [0, 1]}))
    with pytest.raises(bittrue.InputError, match="no path below") as caught:
        open_source(path)
    assert caught.value.code == "BT-DATA-PATH"


def test_columns_that_are_not_clear(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", pa.table({"left": [b"a"], "ri\nght": [b"b"]}))
    with pytest.raises(bittrue.InputError, match=r"not clear: left, ri\\nght"):
        open_source(tmp_path / "x.parquet")
    write(tmp_path / "x.parquet", pa.table({"left": [b"a"], "image": [b"b"]}))
    assert open_source(tmp_path / "x.parquet")[0].read() == [b"b"]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_typed_errors(tmp_path: Path, kind: str) -> None:
    table = pa.table({"image": [bytes([i] * 50) for i in range(9)], "label": ["a", "b", "c"] * 3})
    path = write(tmp_path / f"x.{kind}", table)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), 3):
            content[at] = rng.integers(256)
        path.write_bytes(content if rng.integers(2) else content[: rng.integers(len(content))])
        # Any other error than a typed one, and any signal, fails here.
        with suppress(bittrue.BittrueError):
            source = open_source(path)
            for _, sample in source.samples(range(min(len(source), 9))):
                with suppress(bittrue.BittrueError):
                    sample.read()


def test_a_damaged_row_group_makes_rows_with_an_error(digits: Path, tmp_path: Path) -> None:
    stored = np.load(digits / "samples.npz")
    table = pa.table({"x": pa.array(stored["images"].tolist()), "label": stored["labels"]})
    table = table.set_column(0, "x", table["x"].cast(pa.list_(pa.list_(pa.list_(pa.int8())))))
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=25)
    whole = bittrue.evaluate(digits / "model.tflite", path)
    usual = bittrue.evaluate(digits / "model.tflite", digits / "samples.npz")
    assert whole["metrics"]["litert"] == usual["metrics"]["litert"]
    chunk = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    found = bittrue.evaluate(digits / "model.tflite", path)
    assert (found["samples"], found["labelled"], found["errors"]) == (100, 75, {"BT-DATA-TABLE": 25})
