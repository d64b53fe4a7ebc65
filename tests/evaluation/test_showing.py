"""`bittrue report` of a folder of results."""

from __future__ import annotations

import base64
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.showing import shown
from bittrue.evaluation.tasks.anomaly import area, curve
from bittrue.evaluation.thumbnails import thumbnail
from bittrue.report import html
from support.build import T, chain
from support.flipping import COUNT, values

pytest.importorskip("pyarrow")
image_module = pytest.importorskip("PIL.Image")

GREY = (
    '[[step]]\ndo = "decode"\ncolours = "grey"\n[[step]]\ndo = "resize"\n[[step]]\ndo = "scale"\nfactor = 0.00390625\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with images of which two flip and one is broken, and the result of their evaluation."""
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    (tmp_path / "grey.toml").write_text(GREY)
    (tmp_path / "images" / "a").mkdir(parents=True)
    for i, x in enumerate(values()):
        image_module.fromarray((x[..., 0] ^ -128).view(np.uint8)).save(tmp_path / "images" / "a" / f"{i:03}.png")
    (tmp_path / "images" / "a" / "broken.png").write_bytes(b"")
    evaluate(tmp_path)
    return tmp_path


def evaluate(folder: Path, **more: Any) -> dict[str, Any]:
    more = {"numerics": ["litert", "xnnpack"], "output": folder / "result", "recipe": str(folder / "grey.toml"), **more}
    return bittrue.evaluate(folder / "m.tflite", folder / "images", **more)


def test_flips_have_thumbnails_and_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(folder / "result")
    (pair,) = found["flips"]
    assert sorted(found["thumbnails"]) == sorted(str(flip["position"]) for flip in pair["samples"])
    for flip in pair["samples"]:
        content = base64.b64decode(found["thumbnails"][str(flip["position"])]["image"].partition(",")[2])
        pixels = np.asarray(image_module.open(io.BytesIO(content)))
        assert np.array_equal(pixels, (values()[flip["position"], ..., 0] ^ -128).view(np.uint8))
    assert found["examples"]["BT-IMAGE"][0]["id"] == "a/broken.png"
    for counts in found["margins"]["samples"].values():
        assert sum(counts) == COUNT
    assert [sum(counts) for counts in found["margins"]["flips"]] == [pair["count"]]
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    result = CliRunner().invoke(cli, ["report", str(folder / "result")])
    assert result.exit_code == 0, result.output
    page = (folder / "result.html").read_text(encoding="utf-8")
    assert page.count('<img src="data:image/png') == pair["count"] == 2
    assert all(f"--sample {flip['position']} --sha256 {flip['input'][:16]}" in page for flip in pair["samples"])


def test_data_that_is_gone_elsewhere_or_another(folder: Path) -> None:
    shutil.move(folder / "images", folder / "moved")
    gone = shown(folder / "result")
    assert gone["thumbnails"] == {}
    assert "--data" in gone["thumbnails_note"]
    assert len(shown(folder / "result", str(folder / "moved"))["thumbnails"]) == 2
    position = gone["flips"][0]["samples"][0]["position"]
    image_module.new("L", (8, 8)).save(folder / "moved" / "a" / f"{position:03}.png")
    changed = shown(folder / "result", str(folder / "moved"))
    assert (len(changed["thumbnails"]), changed["thumbnails_note"]) == (
        1,
        "not shown because of other bytes than before: 1",
    )
    (folder / "moved" / "a" / "000.png").unlink()
    assert shown(folder / "result")["thumbnails"] == {}
    with pytest.raises(bittrue.InputError, match="expected 51 samples"):
        shown(folder / "result", str(folder / "moved"))


def test_what_has_not_ended_or_is_no_result(folder: Path) -> None:
    (folder / "result" / "summary.json").unlink()
    with pytest.raises(bittrue.InputError, match="51 of 51 samples are done"):
        shown(folder / "result")
    with pytest.raises(bittrue.BittrueError, match="no evaluation"):
        shown(folder / "images")
    assert "--data" in str(CliRunner().invoke(cli, ["report", str(folder / "m.tflite"), "--data", "x"]).exception)


def test_changes_against_a_baseline_have_thumbnails(folder: Path) -> None:
    evaluate(folder, numerics=["litert"], output=folder / "before")
    asked = folder / "before" / "evaluation.json"
    asked.write_text(asked.read_text().replace("litert", "xnnpack"))
    parquet = pytest.importorskip("pyarrow.parquet")
    (part,) = (folder / "before" / "rows").iterdir()
    table = parquet.read_table(part)
    parquet.write_table(
        table.rename_columns([name.replace("litert:", "xnnpack:") for name in table.column_names]), part
    )
    found = evaluate(folder, numerics=["xnnpack"], output=folder / "now", baseline=folder / "before")
    assert found["baseline"]["changes"][0]["answers"]["count"] == 2
    assert len(shown(folder / "now")["thumbnails"]) == 2


@pytest.mark.parametrize(
    ("part", "kind", "size"),
    [
        (np.arange(490, dtype=np.int8).tobytes(), "image", (10, 49)),
        (np.full((6, 5), np.nan, np.float32), "image", (5, 6)),
        (np.zeros((4, 7, 3), np.uint8), "image", (7, 4)),
        (np.array([1.0, np.inf, -1e300, 1e300]), "curve", 4),
        (np.arange(100_000), "curve", 256),
        (b"abc", "curve", 3),
    ],
)
def test_thumbnails_of_values(part: Any, kind: str, size: Any) -> None:
    found = thumbnail([part], "bytes", [1, 49, 10, 1], "int8")
    if kind == "curve":
        assert len(found["curve"]) == size
        assert all(0 <= value <= 1 for value in found["curve"])
    else:
        image = image_module.open(io.BytesIO(base64.b64decode(found["image"].partition(",")[2])))
        assert image.size == size


def test_large_and_broken_images() -> None:
    out = io.BytesIO()
    image_module.new("RGBA", (900, 300)).save(out, "png")
    found = thumbnail([out.getvalue()], "image", [], "int8")
    content = base64.b64decode(found["image"].partition(",")[2])
    assert image_module.open(io.BytesIO(content)).size == (192, 64)
    for broken in (b"", b"%!PS-Adobe-3.0 EPSF-3.0", out.getvalue()[:99]):
        with pytest.raises(bittrue.InputError, match="cannot be decoded"):
            thumbnail([broken], "image", [], "int8")


def test_roc_curves_have_their_area() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores = [(float(score), int(label)) for score, label in rng.integers(0, [9, 2], (60, 2))]
        x, y = np.array(curve(scores)).T
        assert np.isclose(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum(), area(scores))
        assert len(curve(scores, 4)) <= 5
    scores = [(float(i), i % 2) for i in range(10_000)]
    assert len(curve(scores)) <= 501
    assert curve(scores)[-1] == [1.0, 1.0]


def test_anomalies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of a model that repeats its input."""
    x, y = T("s8", [1, 16], 0.1, 3), T("s8", [1, 16], 0.1, 3)
    (tmp_path / "m.tflite").write_bytes(chain([("RELU", None, [x], [y])]))
    np.savez(tmp_path / "x.npz", x=values().reshape(-1, 16)[:60], labels=np.arange(60) % 2)
    found = bittrue.evaluate(tmp_path / "m.tflite", tmp_path / "x.npz", task="anomaly", output=tmp_path / "r")
    made = shown(tmp_path / "r")
    assert [sum(counts) for counts in made["scores"]["counts"]["litert"]] == [30, 30]
    assert made["scores"]["roc"]["litert"][-1] == [1.0, 1.0]
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    assert f"{found['metrics']['litert']['auc']:.4f}" in html.render(made)


def test_pages_of_the_other_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of classes are the task's own; labels and answers may be anything."""
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    x, y = T("f32", [1, 6, 6, 3]), T("f32", [1, 6, 6, 3])
    rng = np.random.default_rng(0)
    for kind, most in (("images", 256), ("masks", 3)):
        (tmp_path / kind).mkdir()
        for i in range(3):
            shape = (6, 6, 3) if kind == "images" else (6, 6)
            image_module.fromarray(rng.integers(0, most, shape).astype(np.uint8)).save(tmp_path / kind / f"{i}.png")
    (tmp_path / "recipe.toml").write_text('step = [{do = "decode"}, {do = "resize"}, {do = "scale"}]')
    model = chain([("ABS", None, [x], [y])])
    numerics = ["litert", "litert-optimized"]
    found = bittrue.evaluate(
        model,
        tmp_path,
        task="segmentation",
        recipe=str(tmp_path / "recipe.toml"),
        numerics=numerics,
        output=tmp_path / "masks result",
    )
    page = html.render(shown(tmp_path / "masks result"))
    assert f"{found['metrics']['litert']['mean_iou']:.4f}" in page
    assert "IoU under litert-optimized" in page
    np.savez(tmp_path / "x.npz", x=values(), labels=rng.random((COUNT, 10)).astype(np.float32))
    found = bittrue.evaluate(
        bittrue.demo_model(),
        tmp_path / "x.npz",
        task="regression",
        numerics=["litert", "xnnpack"],
        output=tmp_path / "r",
    )
    assert found["flips"][0]["count"]
    page = html.render(shown(tmp_path / "r"))
    assert page.count('class="sample"') == min(found["flips"][0]["count"], COUNT)
    found["metrics"]["litert"]["per_class"] = [{"class": 3, "name": "owl", "objects": 4, "map": 0.5}]
    assert "mAP under litert" in html.render(found)


def test_a_sample_whose_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    lines = []
    for i, x in enumerate(values()):
        (tmp_path / f"{i}.bin").write_bytes(x.tobytes())
        lines.append(f"{i}.bin,10,0\n")
    (tmp_path / "y_labels.csv").write_text("".join(lines))
    found = bittrue.evaluate(
        tmp_path / "m.tflite", tmp_path, numerics=["litert", "xnnpack"], output=tmp_path / "result"
    )
    one, other = found["flips"][0]["samples"]
    (tmp_path / one["id"]).unlink()
    made = shown(tmp_path / "result")
    assert [*made["thumbnails"]] == [str(other["position"])]
    assert "not shown because of an error: 1 (" in made["thumbnails_note"]
