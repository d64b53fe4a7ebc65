"""Detection: COCO's figures against answers of pycocotools on the files themselves, layouts, boxes that flip."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.overlays import overlays
from bittrue.evaluation.placement import Placement
from bittrue.evaluation.rows import Row
from bittrue.evaluation.showing import shown
from bittrue.evaluation.sources import Sample, open_source
from bittrue.evaluation.tasks import Answer, find_task
from bittrue.ports import Port

Image = pytest.importorskip("PIL.Image")
RECIPE = 'step = [{do = "decode"}, {do = "STEP", method = "nearest"}, {do = "scale", factor = 0.00392156862745098}]\n'
SIDE = 4


@pytest.fixture(scope="module")
def model() -> bytes:
    """Every pixel of an image of 4 x 4 is a box, its colours are scores of three classes."""
    pytest.importorskip("ai_edge_litert")
    from support.build import T, chain
    from support.flexbuffer import packed

    centres = (np.arange(SIDE) + 0.5) / SIDE
    anchors = np.array([[y, x, 1 / SIDE, 1 / SIDE] for y in centres for x in centres], np.float32)
    options = {
        "max_detections": 16, "max_classes_per_detection": 1, "detections_per_class": 16, "use_regular_nms": True,
        "nms_score_threshold": 0.1, "nms_iou_threshold": 0.5, "num_classes": 3,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    image, scores = T("f32", [1, SIDE, SIDE, 3]), T("f32", [1, SIDE * SIDE, 3])
    shape = T("s32", [3], data=np.array([1, SIDE * SIDE, 3], np.int32))
    encodings = T("f32", [1, SIDE * SIDE, 4], data=np.zeros((1, SIDE * SIDE, 4), np.float32))
    corners = T("f32", [SIDE * SIDE, 4], data=anchors)
    outputs = [T("f32", ()) for _ in range(4)]
    return bytes(
        chain(
            [
                ("RESHAPE", ("ReshapeOptions", {"newShape": [1, SIDE * SIDE, 3]}), [image, shape], [scores]),
                ("CUSTOM:TFLite_Detection_PostProcess", packed(options), [encodings, scores, corners], outputs),
            ]
        )
    )


def data(root: Path, first: int = 1, size: tuple[int, int] = (40, 80), **more: Any) -> dict[str, Any]:
    """A data set: some boxes are found, some are not, and some that are found are none."""
    rng = np.random.default_rng(0)
    (root / "images").mkdir(parents=True)
    height, width = size[0] // SIDE, size[1] // SIDE
    images, annotations = [], []
    for i in range(6):
        small = np.zeros((SIDE, SIDE, 3), np.uint8)
        for at in rng.choice(SIDE * SIDE, 5, replace=False).tolist():
            number, kind = int(rng.integers(3)), rng.integers(4)
            if kind:
                small[at // SIDE, at % SIDE, number] = rng.integers(30, 256)
            if kind != 1:
                shift = rng.integers(-2, 3, 2).tolist()
                box = [at % SIDE * width + shift[0], at // SIDE * height + shift[1], width, height]
                annotations.append(
                    {"id": len(annotations) + 1, "image_id": i + 7, "category_id": number + first, "bbox": box,
                     "area": width * height, "iscrowd": int(rng.integers(9) == 0)}
                )  # fmt: skip
        Image.fromarray(np.kron(small, np.ones((height, width, 1), np.uint8))).save(root / "images" / f"{i}.png")
        images.append({"id": i + 7, "file_name": f"{i}.png", "height": size[0], "width": size[1]})
    names = ["cat", "dog", "owl"]
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i + first, "name": name} for i, name in enumerate(names)],
        **more,
    }
    (root / "annotations.json").write_text(json.dumps(content))
    return content


def run(model: bytes, root: Path, step: str = "resize", task: str = "", **more: Any) -> dict[str, Any]:
    recipe = root / "recipe.toml"
    recipe.write_text(RECIPE.replace("STEP", step) + f"[task]\n{task}")
    return bittrue.evaluate(model, root, task="detection", recipe=str(recipe), **more)


def stats(root: Path, first: int = 1) -> list[float]:
    """pycocotools on the file, and on the boxes that the images' pixels mean."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(root / "annotations.json"))
        found = []
        for image in truth.dataset["images"]:
            pixels = np.asarray(Image.open(root / "images" / image["file_name"])).astype(float) / 255
            height, width = image["height"] // SIDE, image["width"] // SIDE
            for y, x, number in np.argwhere(pixels[::height, ::width] > 0.1).tolist():
                score = float(pixels[y * height, x * width, number])
                box = [x * width, y * height, width, height]
                found.append({"image_id": image["id"], "category_id": number + first, "bbox": box, "score": score})
        made = COCOeval(truth, truth.loadRes(found), "bbox")
        made.evaluate()
        made.accumulate()
        made.summarize()
    return [float(value) for value in made.stats]


@pytest.mark.parametrize("first", [1, 0])
def test_figures_are_those_of_pycocotools(model: bytes, tmp_path: Path, first: int) -> None:
    pytest.importorskip("pycocotools")
    data(tmp_path, first)
    found = run(model, tmp_path)
    figures, expected = found["metrics"]["litert"], stats(tmp_path, first)
    names = ("map", "map50", "map75")
    assert [figures[name] for name in names] == pytest.approx(expected[:3], rel=1e-6)
    assert figures["recall100"] == pytest.approx(expected[8], rel=1e-6)
    assert figures["by_size"]["small"]["map"] == pytest.approx(expected[3], rel=1e-6)
    assert math.isnan(figures["by_size"]["large"]["map"])
    assert 0.1 < figures["map"] < figures["map50"] < 1
    assert [one["name"] for one in figures["per_class"]] == ["cat", "dog", "owl"]
    assert found["data"]["kind"] == "coco"
    assert found["errors"] == {}
    other = run(model, tmp_path, task=f"categories = [{first}, {first + 1}, {first + 2}]")
    assert other["metrics"] == found["metrics"] == run(model, tmp_path, task=f"label_offset = {first}")["metrics"]
    assert run(model, tmp_path, task=f"label_offset = {first + 3}")["metrics"]["litert"]["map"] == 0


def test_boxes_go_back_through_a_letterbox(model: bytes, tmp_path: Path) -> None:
    """A wide image fills the two rows in the middle: boxes are where its pixels are."""
    pytest.importorskip("pycocotools")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "images").mkdir()
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[10:, 30:, 1] = 200
    Image.fromarray(pixels).save(tmp_path / "images" / "a.png")
    box = {"id": 1, "image_id": 1, "category_id": 2, "bbox": [30, 10, 10, 10]}
    content = {"images": [{"id": 1, "file_name": "a.png"}], "annotations": [box]}
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    found = run(model, tmp_path, "letterbox", output=tmp_path / "out")
    (row,) = parquet.read_table(tmp_path / "out" / "rows").to_pylist()
    assert row["litert:found"] == pytest.approx([2, 30, 10, 10, 10, 200 / 255])
    assert row["litert:prediction"] == [1]
    assert found["metrics"]["litert"]["map"] == pytest.approx(1)
    # A page has the same boxes on the image; nothing flips here, and nothing is wrong until the label is another one.
    assert shown(tmp_path / "out")["thumbnails"] == {}
    place = [0.75, 0.5, 0.25, 0.5]
    (tmp_path / "annotations.json").write_text(json.dumps({**content, "annotations": [{**box, "category_id": 1}]}))
    run(model, tmp_path, "letterbox", output=tmp_path / "wrong")
    (seen,) = shown(tmp_path / "wrong")["thumbnails"].values()
    (true,), (found_box,) = seen["boxes"][""], seen["boxes"]["litert"]
    assert [true["place"], true["class"], true["missing"]] == [place, "1", ["litert"]]
    assert [found_box["place"], found_box["class"], found_box["missing"]] == [place, "2", [""]]
    assert found_box["score"] == pytest.approx(200 / 255)
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    again = bittrue.merge_evaluations([tmp_path / "out"], tmp_path / "all", baseline=tmp_path / "out")
    assert (again["metrics"], again["digest"]) == (found["metrics"], found["digest"])


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("annotations/instances_val2017.json", "val2017"),
        ("annotations/instances_val.json", "images/val"),
        ("valid/_annotations.coco.json", "valid"),
        ("labels.json", "data"),
    ],
)
def test_layouts(tmp_path: Path, file: str, folder: str) -> None:
    data(tmp_path / "made")
    (tmp_path / "set" / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "set" / folder).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "set" / file).write_bytes((tmp_path / "made" / "annotations.json").read_bytes())
    for image in (tmp_path / "made" / "images").iterdir():
        (tmp_path / "set" / folder).mkdir(exist_ok=True)
        image.rename(tmp_path / "set" / folder / image.name)
    source = open_source(tmp_path / "set" / file)
    assert (len(source), source.kind) == (6, "coco")
    assert source[0].read()
    if not file.startswith("valid"):
        assert len(open_source(f"coco:{tmp_path / 'set'}")) == 6


def test_without_annotations_there_are_no_labels(tmp_path: Path) -> None:
    content = data(tmp_path)
    del content["annotations"]
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    assert open_source(tmp_path)[0].label is None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"images": [{"id": 1}]}, r"images\[0\]: expected id and file_name"),
        ({"images": [{"id": 7, "file_name": "0.png"}] * 2}, "two images have one id"),
        ({"images": [{"id": 7, "file_name": "../0.png"}], "annotations": []}, "no path below"),
        ({"images": [{"id": 7, "file_name": "none.png"}], "annotations": []}, "'none.png' is not there"),
        ({"images": []}, "no samples"),
        ({"annotations": [{"image_id": 99}]}, r"annotations\[0\]: there is no image 99"),
        ({"annotations": [{"image_id": 7, "category_id": 9, "bbox": [1, 1, 1, 1]}]}, "there is no category 9"),
        ({"annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 1, 1]}]}, "expected bbox"),
        ({"annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 1, -1, 1]}]}, "expected bbox"),
        ({"annotations": {}}, "annotations: expected a list"),
        ({"categories": [{"id": "a"}]}, r"categories\[0\]: expected an id"),
    ],
)
def test_files_with_faults(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    data(tmp_path, **change)
    with pytest.raises(bittrue.InputError, match=match):
        open_source(tmp_path / "annotations.json")


def test_no_coco_file(tmp_path: Path) -> None:
    for content in ("{", "[]", "{}"):
        (tmp_path / "a.json").write_text(content)
        with pytest.raises(bittrue.InputError) as caught:
            open_source(tmp_path / "a.json")
        assert caught.value.code == "BT-DATA-COCO"


def test_an_image_of_another_size_is_a_row_with_an_error(model: bytes, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    data(tmp_path)
    Image.new("RGB", (9, 9)).save(tmp_path / "images" / "3.png")
    found = run(model, tmp_path)
    assert (found["errors"], found["labelled"]) == ({"BT-DATA-COCO": 1}, 5)


def answer(*found: tuple[int, float, list[float]]) -> Answer:
    details = {
        "found": None,
        "classes": [number for number, _, _ in found],
        "scores": [score for _, score, _ in found],
        "boxes": [edge for _, _, box in found for edge in box],
    }
    return Answer([number for number, score, _ in found if score >= 0.5], 0.0, details)


def test_flips() -> None:
    task = find_task("detection")
    box, near, far = [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.45], [0.5, 0.5, 1.0, 1.0]
    one = answer((1, 0.9, box), (2, 0.6, far), (2, 0.3, box))
    assert task.difference(one, one) is None
    assert task.difference(one, answer((1, 0.8, near), (2, 0.51, far))) is None
    assert task.difference(one, answer((1, 0.8, near), (2, 0.49, far))) == 0.6
    assert task.difference(one, answer((2, 0.8, near), (2, 0.6, far))) == 0.9
    assert task.difference(one, answer((1, 0.8, far), (2, 0.6, far))) == 0.9
    assert task.difference(answer(), one) == 0.9
    assert task.difference(answer(), answer()) is None
    line = answer((1, 0.9, [0.2, 0.2, 0.2, 0.2]))
    assert task.difference(line, line) is None


def test_boxes_are_drawn_without_labels() -> None:
    """Half of what the model sees of a wide image is beside it."""
    row = Row(0, "a", None, answers={"litert": answer((1, 0.9, [0.5, 0.75, 0.75, 1.5]), (0, 0.4, [0, 0, 1, 1]))})
    placement = Placement.whole(20, 40).resized(2, 4).cut(-1, 0, 4, 4)
    drawn = overlays(find_task("detection"), row, Sample("a", None, list), placement, (20, 40), ["", "cat", "owl"])
    box = {"place": [0.75, 0.5, 0.25, 0.5], "class": "owl", "score": 0.9, "missing": []}
    assert drawn == {"boxes": {"litert": [box]}}


def test_orders_of_outputs() -> None:
    shapes = {"boxes": (1, 2, 4), "classes": (1, 2), "scores": (1, 2), "count": (1,)}
    values = {
        "boxes": np.arange(8, dtype=np.float32).reshape(1, 2, 4),
        "classes": np.array([[3, 5]], np.float32),
        "scores": np.array([[0.5, 0.75]], np.float32),
        "count": np.array([2], np.float32),
    }
    for order, keys in (
        (("boxes", "classes", "scores", "count"), {}),
        (("scores", "boxes", "count", "classes"), {}),
        (("scores", "classes", "boxes"), {"outputs": ["scores", "classes", "boxes"]}),
    ):
        task = find_task("detection", keys)
        ports = [Port(name, np.dtype(np.float32), shapes[name], None) for name in order]
        found = task.answer([(np.zeros(1), [values[name] for name in order])], [], ports)
        assert (found.prediction, found.details["scores"]) == ([5, 3], [0.75, 0.5])
        assert found.details["boxes"] == [4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 2.0, 3.0]
    with pytest.raises(bittrue.InputError, match="outputs = "):
        find_task("detection").check([], [Port("y", np.dtype(np.float32), (1, 10), None)])


@pytest.mark.parametrize(
    "keys",
    [
        {"label_offset": 0.5},
        {"categories": [1, "a"]},
        {"categories": [1], "label_offset": 1},
        {"threshold": "x"},
        {"outputs": ["boxes"]},
        {"outputs": "boxes"},
        {"labels": 1},
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any]) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        find_task("detection", keys)
    assert caught.value.code == "BT-TASK"
