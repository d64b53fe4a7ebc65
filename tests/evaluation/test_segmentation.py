"""Segmentation: figures against loops over pixels, layouts of folders, masks that go the way of their images."""

from __future__ import annotations

import base64
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.placement import Placement
from bittrue.evaluation.showing import shown
from bittrue.evaluation.sources import open_source
from bittrue.evaluation.sources.masks import read_mask
from bittrue.evaluation.tasks import find_task
from bittrue.ports import Port
from support.shared import SHARED

Image = pytest.importorskip("PIL.Image")
DEEPLAB = SHARED / "models" / "coral_deeplabv3_mnv2_dm05_pascal_quant.tflite"
RECIPE = '[[step]]\ndo = "decode"\n[[step]]\ndo = "{step}"\n[[step]]\ndo = "scale"\n'


@pytest.fixture(scope="module")
def brightest() -> bytes:
    """A model whose class is the brightest of three colours."""
    pytest.importorskip("ai_edge_litert")
    from support.build import T, single

    return bytes(single("ABS", None, [T("f32", [1, 6, 6, 3])], [T("f32", [1, 6, 6, 3])]))


def save(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def folder(root: Path, size: tuple[int, int] = (6, 6), images: str = "images", masks: str = "masks") -> Path:
    rng = np.random.default_rng(0)
    for i in range(5):
        save(root / images / f"{i}.png", rng.integers(0, 256, (*size, 3)).astype(np.uint8))
        save(root / masks / f"{i}.png", rng.choice([0, 1, 2, 255], size).astype(np.uint8))
    return root


def run(model: bytes, root: Path, step: str = "resize", more: str = "", **given: Any) -> dict[str, Any]:
    (root / "recipe.toml").write_text(RECIPE.format(step=step) + more)
    return bittrue.evaluate(model, root, task="segmentation", recipe=str(root / "recipe.toml"), **given)


def expected(root: Path, ignore: int = 255) -> tuple[float, float]:
    pairs = Counter[tuple[int, int]]()
    for i in range(5):
        image = np.asarray(Image.open(root / "images" / f"{i}.png"))
        mask = np.asarray(Image.open(root / "masks" / f"{i}.png"))
        for row in range(6):
            for column in range(6):
                if mask[row, column] != ignore:
                    pairs[int(mask[row, column]), int(image[row, column].argmax())] += 1
    classes = {number for pair in pairs for number in pair}
    overlaps = [
        pairs[c, c] / sum(count for pair, count in pairs.items() if c in pair) for c in sorted(classes)
    ]  # pixels of both kinds, counted once
    return sum(overlaps) / len(overlaps), sum(pairs[c, c] for c in classes) / sum(pairs.values())


def test_figures_are_those_of_a_loop(brightest: bytes, tmp_path: Path) -> None:
    (folder(tmp_path) / "classes.txt").write_text("red\ngreen\nblue\n")
    found = run(brightest, tmp_path)
    figures = found["metrics"]["litert"]
    assert (figures["mean_iou"], figures["pixel_accuracy"]) == pytest.approx(expected(tmp_path), rel=1e-12)
    assert [one["name"] for one in figures["per_class"]] == ["red", "green", "blue"]
    assert found["data"]["kind"] == "masks"
    for i in range(5):  # another value that is no class
        mask = np.asarray(Image.open(tmp_path / "masks" / f"{i}.png")).copy()
        mask[mask == 255] = 7
        save(tmp_path / "masks" / f"{i}.png", mask)
    again = run(brightest, tmp_path, more="[task]\nignore = 7\n")["metrics"]["litert"]
    assert again == figures
    assert run(brightest, tmp_path)["errors"] == {"BT-DATA-MASK": 5}
    named = run(brightest, tmp_path, more="[task]\nvalues = [0, 1, 2]\nignore = [7, 255]\n")["metrics"]["litert"]
    assert named == figures


def test_results_are_stored_and_merged(brightest: bytes, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder(tmp_path / "data")
    whole = run(brightest, tmp_path / "data", more="[task]\nignore = [255, 254]\n", output=tmp_path / "whole")
    for i in (1, 2):
        run(
            brightest,
            tmp_path / "data",
            more="[task]\nignore = [255, 254]\n",
            output=tmp_path / str(i),
            shard=(i, 2),
        )
    merged = bittrue.merge_evaluations([tmp_path / "1", tmp_path / "2"], tmp_path / "all", baseline=tmp_path / "whole")
    assert (merged["metrics"], merged["digest"]) == (whole["metrics"], whole["digest"])
    assert merged["baseline"]["changes"][0]["answers"]["count"] == 0


@pytest.mark.parametrize("step", ["letterbox", "crop"])
def test_masks_go_the_way_of_their_images(brightest: bytes, tmp_path: Path, step: str) -> None:
    """Where the recipe moves images, masks that are right stay right, and what it adds counts for nothing."""
    size = (12, 6) if step == "letterbox" else (10, 8)
    for i in range(3):
        blocks = np.random.default_rng(i).integers(0, 3, (size[0] // 2, size[1] // 2)).astype(np.uint8)
        mask = np.kron(blocks, np.ones((2, 2), np.uint8))
        save(tmp_path / "images" / f"{i}.png", np.eye(3, dtype=np.uint8)[mask] * 200)
        save(tmp_path / "masks" / f"{i}.png", mask)
    figures = run(brightest, tmp_path, step)["metrics"]["litert"]
    assert figures["pixel_accuracy"] == 1
    assert figures["pixels"] == 3 * (6 * 3 if step == "letterbox" else 36)


def test_placements() -> None:
    at = Placement.whole(40, 80).resized(20, 40).cut(-10, 0, 40, 40)
    assert (at.top, at.left, at.height, at.width, at.size) == (-20.0, 0.0, 80.0, 80.0, (40, 40))
    assert at.box(0.25, 0.5, 0.5, 2.0) == (0.0, 40.0, 20.0, 80.0)
    plane = np.arange(12).reshape(3, 4)
    assert np.array_equal(Placement.whole(3, 4).nearest(plane, (3, 4), -1), plane)
    assert Placement.whole(3, 4).cut(-1, 2, 2, 3).nearest(plane, (2, 3), -1).tolist() == [[-1, -1, -1], [2, 3, -1]]


@pytest.mark.parametrize(
    ("images", "masks"), [("JPEGImages", "SegmentationClass"), ("VOCdevkit/VOC2012/JPEGImages", "SegmentationClass")]
)
def test_pascal_voc(tmp_path: Path, images: str, masks: str) -> None:
    masks = str(Path(images).parent / masks)
    folder(tmp_path, images=images, masks=masks)
    save(tmp_path / images / "unlabelled.png", np.zeros((6, 6, 3), np.uint8))
    palette = Image.fromarray(np.full((6, 6), 2, np.uint8), "P")
    palette.putpalette([i % 256 for i in range(768)])
    palette.save(tmp_path / masks / "3.png")
    source = open_source(tmp_path)
    assert [source[i].label for i in range(len(source))] == [f"SegmentationClass/{i}.png" for i in range(5)]
    truth = source[3].truth
    assert truth is not None
    assert (truth() == 2).all()
    listed = (tmp_path / images).parent / "ImageSets" / "Segmentation" / "val.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("4\n1\n")
    source = open_source(f"masks:{listed}")
    assert [source[i].id for i in range(len(source))] == ["JPEGImages/4.png", "JPEGImages/1.png"]
    listed.write_text("4\n9\n")
    with pytest.raises(bittrue.InputError, match=r"val.txt, row 2: there is no image '9'"):
        open_source(f"masks:{listed}")


def test_layouts(tmp_path: Path) -> None:
    save(tmp_path / "a" / "Images" / "train" / "x.jpg", np.zeros((6, 6, 3), np.uint8))
    save(tmp_path / "a" / "Images" / "train" / "y.jpg", np.zeros((6, 6, 3), np.uint8))
    save(tmp_path / "a" / "Masks" / "train" / "x_mask.png", np.ones((6, 6), np.uint8))
    source = open_source(tmp_path / "a")
    assert [source[i].label for i in range(2)] == ["Masks/train/x_mask.png", None]
    save(tmp_path / "a" / "Masks" / "z.png", np.ones((6, 6), np.uint8))
    with pytest.raises(bittrue.InputError, match="1 masks have no image of their stem"):
        open_source(tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(bittrue.InputError) as caught:
        open_source(f"masks:{tmp_path / 'b'}")
    assert caught.value.code == "BT-DATA-EMPTY"


def test_kinds_of_masks(tmp_path: Path) -> None:
    plane = np.array([[0, 1], [1, 0]], np.uint8)
    for name, values in {
        "grey": plane,
        "colour": np.stack([plane] * 3, axis=-1),
        "bits": plane.astype(bool),
        "wide": plane.astype(np.uint16),
    }.items():
        save(tmp_path / f"{name}.png", values)
        assert np.array_equal(read_mask(tmp_path / f"{name}.png"), plane), name
    np.save(tmp_path / "a.npy", plane[None])
    assert np.array_equal(read_mask(tmp_path / "a.npy"), plane)
    save(tmp_path / "red.png", plane[..., None] * np.array([1, 0, 0], np.uint8))
    (tmp_path / "broken.png").write_bytes(b"no image")
    for name, code in (("red", "BT-DATA-MASK"), ("broken", "BT-IMAGE")):
        with pytest.raises(bittrue.InputError) as caught:
            read_mask(tmp_path / f"{name}.png")
        assert caught.value.code == code


def test_a_mask_of_another_size_is_a_row_with_an_error(brightest: bytes, tmp_path: Path) -> None:
    save(folder(tmp_path) / "masks" / "2.png", np.zeros((5, 6), np.uint8))
    found = run(brightest, tmp_path)
    assert (found["errors"], found["labelled"]) == ({"BT-DATA-MASK": 1}, 4)


def ports(shape: list[int], dtype: type, given: tuple[int, ...] = (1, 2, 2, 3)) -> dict[str, list[Port]]:
    return {
        "inputs": [Port("x", np.dtype(np.float32), given, None)],
        "outputs": [Port("y", np.dtype(dtype), tuple(shape), None)],
    }


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (np.array([[[0, 1], [1, 0]]]), (1, 2, 2, 3)),
        (np.array([[[[0], [1]], [[1], [0]]]], np.uint8), (1, 2, 2, 3)),
        (np.array([[[[0.2], [0.7]], [[0.51], [0.5]]]], np.float32), (1, 2, 2, 3)),
        (np.array([[[[9, 2], [1, 7]], [[1, 7], [9, 2]]]], np.float32), (1, 2, 2, 1)),
        (np.array([[[9, 1], [1, 9]], [[2, 7], [7, 2]]], np.float32)[None], (1, 3, 2, 2)),
    ],
)
def test_shapes_of_outputs(values: np.ndarray, given: tuple[int, ...]) -> None:
    task = find_task("segmentation")
    made = ports(list(values.shape), values.dtype.type, given)
    task.check(**made)
    answer = task.answer([(np.zeros(1), [values])], **made)
    judged = task.judged(answer, np.array([[0, 1], [1, 0]]), None)
    assert judged.details["confusion"] == [0, 0, 2, 1, 1, 2]
    other = task.answer([(np.zeros(1), [np.zeros_like(values)])], **made)
    assert task.difference(answer, other) == 2
    assert task.difference(answer, answer) is None


@pytest.mark.parametrize("keys", [{"ignore": "x"}, {"values": [0.5]}, {"threshold": "a"}, {"ignored": 1}])
def test_keys_that_do_not_fit(keys: dict[str, Any]) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        find_task("segmentation", keys)
    assert caught.value.code == "BT-TASK"


def test_figures_of_nothing() -> None:
    assert find_task("segmentation").figures(()).to_dict()["pixels"] == 0
    with pytest.raises(bittrue.InputError, match="value for every class"):
        find_task("segmentation").check(**ports([1, 10], np.float32))


@pytest.mark.skipif(not DEEPLAB.exists(), reason="needs ../shared/models/coral_deeplabv3_mnv2_dm05_pascal_quant.tflite")
def test_masks_of_the_other_arithmetic(tmp_path: Path) -> None:
    session = bittrue.load(DEEPLAB).prepare("xnnpack")
    masks = {}
    for name in ("owl.jpg", "cat.bmp"):
        with Image.open(SHARED / "images" / name) as image:
            x = np.asarray(image.convert("RGB").resize((513, 513), Image.Resampling.BILINEAR))
        save(tmp_path / "images" / f"{name}.png", x)
        (y,) = session.run(x[None]).values()
        masks[name] = y[0].astype(np.uint8)
        save(tmp_path / "masks" / f"{name}.png", masks[name])
    (tmp_path / "recipe.toml").write_text('step = [{do = "decode"}, {do = "resize"}]')
    found = bittrue.evaluate(
        DEEPLAB,
        f"masks:{tmp_path}",
        task="segmentation",
        recipe=str(tmp_path / "recipe.toml"),
        numerics=["xnnpack", "litert"],
    )
    assert found["metrics"]["xnnpack"]["mean_iou"] == found["metrics"]["xnnpack"]["pixel_accuracy"] == 1
    wrong = sum(found["flips"][0]["samples"][i]["margin"] for i in range(2))
    figures = found["metrics"]["litert"]
    assert figures["pixel_accuracy"] == 1 - wrong / (2 * 513 * 513)


def test_masks_lie_on_the_image(brightest: bytes, tmp_path: Path) -> None:
    """Through a letterbox, colour by colour; a pixel that is wrong stays to be seen."""
    pytest.importorskip("pyarrow")
    image, mask = np.zeros((20, 40, 3), np.uint8), np.zeros((20, 40), np.uint8)
    image[..., 0] = 200
    image[:, 20:] = [0, 200, 0]
    mask[:, 20:] = 1
    mask[15:, :] = 255
    mask[10, 10] = 2
    save(tmp_path / "images" / "a.png", image)
    save(tmp_path / "masks" / "a.png", mask)
    run(brightest, tmp_path, "letterbox", output=tmp_path / "out")
    made = shown(tmp_path / "out")
    (seen,) = made["thumbnails"].values()
    assert made["worst"]["samples"][0]["wrong"] == pytest.approx(1 / 12)
    assert [one["name"] for one in seen["legend"]] == ["0", "1", "2"]
    one, two, three = (tuple(bytes.fromhex(colour["colour"][1:])) for colour in seen["legend"])
    true, found, wrong = (
        layer_of(url) for url in (seen["masks"][""], seen["masks"]["litert"], seen["differ"][0]["mask"])
    )
    assert {tuple(colour) for colour in found[:, :20, :3].reshape(-1, 3).tolist()} == {one}
    assert {tuple(colour) for colour in found[:, 20:, :3].reshape(-1, 3).tolist()} == {two}
    assert tuple(true[10, 10, :3].tolist()) == three
    assert not true[15:, :, 3].any()
    at = np.argwhere((wrong[..., :3] == [255, 43, 214]).all(axis=2))
    assert 1 <= len(at) <= 4
    assert np.abs(at - [10, 10]).max() <= 4


def layer_of(url: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGBA"))
