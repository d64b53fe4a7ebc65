"""Models with several inputs: values by the names of inputs, from every kind of data that has them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.digests import digest_of
from bittrue.evaluation.sampled import inputs_of
from support.build import T, chain

COUNT = 30
RECIPE = """
[[step]]
do = "scale"
factor = 0.5
[[input.image.step]]
do = "decode"
colours = "grey"
[[input.image.step]]
do = "resize"
method = "nearest"
[[input.image.step]]
do = "scale"
factor = 0.1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of an image and four features, and samples for it."""
    path, rng = tmp_path_factory.mktemp("two"), np.random.default_rng(7)
    image, features = T("s8", (1, 3, 3, 1), 0.2, -10, name="image"), T("s8", (1, 4), 0.05, 3, name="features")
    flat, joined, y = T("s8", (1, 9), 0.2, -10), T("s8", (1, 13), 0.2, -10), T("s8", (1, 5), 0.3, 0)
    weights = T("s8", (5, 13), 0.01, 0, data=rng.integers(-127, 128, (5, 13)).astype(np.int8))
    even = T("s8", (1, 4), 0.2, -10)
    shape = T("s32", (2,), data=np.int32([1, 9]))
    model = chain(
        [
            ("RESHAPE", None, [image, shape], [flat]),
            ("QUANTIZE", None, [features], [even]),
            ("CONCATENATION", ("ConcatenationOptions", {"axis": 1}), [flat, even], [joined]),
            ("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [joined, weights, None], [y]),
        ]
    )
    (path / "model.tflite").write_bytes(model)
    (path / "recipe.toml").write_text(RECIPE)
    return path


def samples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (COUNT, 3, 3), np.uint8)
    return images, rng.normal(size=(COUNT, 4)).astype(np.float32), rng.integers(0, 5, COUNT)


def png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def quantized() -> dict[str, np.ndarray]:
    images, features, _ = samples()
    real = {"image": images.astype(np.float32)[..., None] * np.float32(0.1), "features": features * np.float32(0.5)}
    parameters = {"image": (0.2, -10), "features": (0.05, 3)}
    return {name: bittrue.quantize(x, *parameters[name], dtype="int8") for name, x in real.items()}


def tar(path: Path, members: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))


def npy(value: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def run(folder: Path, data: Path, **more: Any) -> dict[str, Any]:
    return bittrue.evaluate(folder / "model.tflite", data, threads=1, **more)


def test_arrays_against_a_loop_and_the_runtime(folder: Path, tmp_path: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    values, labels = quantized(), samples()[2]
    # In another order than the model's, and with an array that is none of its inputs.
    np.savez(tmp_path / "data.npz", labels=labels, more=np.zeros(3), features=values["features"], image=values["image"])
    found = run(folder, tmp_path / "data.npz", against=["litert"], output=tmp_path / "out")
    assert not found["errors"]
    assert len(set(found["digests"].values())) == 1
    made = litert.Interpreter(
        model_path=str(folder / "model.tflite"), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    made.allocate_tensors()
    right = 0
    for i, row in enumerate(parquet.read_table(tmp_path / "out" / "rows").to_pylist()):
        for detail in made.get_input_details():
            made.set_tensor(detail["index"], values[detail["name"]][i : i + 1])
        made.invoke()
        y = made.get_tensor(made.get_output_details()[0]["index"])
        assert row["litert:digests"] == [digest_of([y])]
        right += int(y.argmax()) == labels[i]
        inputs = [values[name][i : i + 1] for name in ("image", "features")]
        assert row["input"] == digest_of(inputs)
        assert row["source"] == digest_of([x[0] for x in inputs])
    assert found["metrics"]["litert"]["right"] == right


def test_every_kind_gives_the_same_inputs(folder: Path, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    images, features, labels = samples()
    values = quantized()
    np.savez(tmp_path / "a.npz", **values, labels=labels)
    table = {"features": features.tolist(), "image": [png(image) for image in images], "label": labels}
    types = {"features": arrow.list_(arrow.float32()), "image": arrow.binary(), "label": arrow.int64()}
    pyarrow.parquet.write_table(
        arrow.table({name: arrow.array(list(table[name]), types[name]) for name in table}), tmp_path / "b.parquet"
    )
    members: dict[str, bytes] = {}
    for i in range(COUNT):
        members |= {
            f"{i:03d}.features.npy": npy(features[i]),
            f"{i:03d}.image.png": png(images[i]),
            f"{i:03d}.cls": str(labels[i]).encode(),
            f"{i:03d}.other.npy": b"passed over",
        }
    tar(tmp_path / "c.tar", members)
    recipe = str(folder / "recipe.toml")
    rows = [
        run(folder, tmp_path / name, recipe=which, output=tmp_path / f"{name}.out")
        for name, which in (("a.npz", "raw"), ("b.parquet", recipe), ("c.tar", recipe))
    ]
    assert not any(found["errors"] for found in rows)
    assert rows[0]["metrics"] == rows[1]["metrics"] == rows[2]["metrics"]
    tables = [pyarrow.parquet.read_table(tmp_path / f"{name}.out" / "rows") for name in ("a.npz", "b.parquet", "c.tar")]
    for column in ("input", "litert:digests"):
        assert len({str(one.column(column).to_pylist()) for one in tables}) == 1
    # A sample again, for the command that explains a flip.
    ports = bittrue.load(folder / "model.tflite").prepare().inputs
    digest = tables[2].column("input").to_pylist()[4]
    (again,) = inputs_of(str(tmp_path / "c.tar"), 4, recipe, ports, digest[:16])
    assert {name: x.tobytes() for name, x in again.items()} == {n: x[4].tobytes() for n, x in values.items()}
    sides = [f"{folder / 'model.tflite'}@{name}" for name in ("litert", "litert-optimized")]
    words = ["--data", str(tmp_path / "c.tar"), "--recipe", recipe, "--sample", "4", "--sha256", digest[:16], "--json"]
    result = CliRunner().invoke(cli, ["compare", *sides, *words])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["equal"]


def test_missing_members_are_rows_with_errors(folder: Path, tmp_path: Path) -> None:
    values = quantized()
    members = {"0.features.npy": npy(values["features"][0]), "0.image.npy": npy(values["image"][0])}
    tar(tmp_path / "c.tar", {**members, "1.image.npy": npy(values["image"][1])})
    found = run(folder, tmp_path / "c.tar")
    assert (found["samples"], found["errors"]) == (2, {"BT-DATA-MEMBER": 1})


@pytest.mark.parametrize(
    ("arrays", "recipe", "code", "words"),
    [
        ({"image": 3}, "", "BT-DATA-ARRAYS", "features"),
        ({"image": 3, "features": 2}, "", "BT-DATA-ARRAYS", "'features' \\[2\\]"),
        ({"image": 3, "features": 3, "labels": 4}, "", "BT-DATA-ARRAYS", "'labels' \\[4\\]"),
        ({"image": 0, "features": 0}, "", "BT-DATA-EMPTY", "first axis"),
        ({"image": 3, "features": 3}, '[[input.images.step]]\ndo = "move"', "BT-RECIPE", "no input 'images'"),
        ({"image": 3, "features": 3}, '[[input.image.step]]\ndo = "decode"', "BT-RECIPE", "are values"),
        ({"image": 3, "features": 3}, '[[input.image.step]]\ndo = "mov"', "BT-RECIPE", "input 'image', step 1"),
        ({"image": 3, "features": 3}, "[input.image]\nsteps = 1", "BT-RECIPE", "has steps only"),
        ({"image": 3, "features": 3}, "input = 1", "BT-RECIPE", "input is a table"),
    ],
)
def test_what_cannot_fit(
    folder: Path, tmp_path: Path, arrays: dict[str, int], recipe: str, code: str, words: str
) -> None:
    shapes = {"image": (3, 3, 1), "features": (4,), "labels": ()}
    np.savez(tmp_path / "a.npz", **{name: np.zeros((n, *shapes[name]), np.int8) for name, n in arrays.items()})
    (tmp_path / "r.toml").write_text(recipe)
    with pytest.raises(bittrue.InputError, match=words) as caught:
        run(folder, tmp_path / "a.npz", recipe=str(tmp_path / "r.toml"))
    assert caught.value.code == code


def test_data_with_one_value_per_sample(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_bytes(b"")
    with pytest.raises(bittrue.InputError, match="one value per sample, the model has the inputs image, features"):
        run(folder, tmp_path)


def test_a_recipe_without_inputs_keeps_its_digest() -> None:
    from bittrue.evaluation.recipes import find_recipe, read_recipe

    raw = find_recipe("raw")
    assert raw.digest == read_recipe("", "x").digest
    assert raw.digest != read_recipe('[[input.x.step]]\ndo = "move"\naxes = [0]', "x").digest
