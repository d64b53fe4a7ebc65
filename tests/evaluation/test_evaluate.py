"""Evaluations: figures, flips, digests and rows against loops that are written out here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.digests import Combined, digest_of
from bittrue.evaluation.sources import Part, Sample, Source
from support.shared import SHARED

KEYWORDS = SHARED / "data" / "mlperf_tiny_kws01"
KEYWORD_MODEL = SHARED / "models" / "tiny_kws_int8.tflite"
needs_keywords = pytest.mark.skipif(not KEYWORDS.exists(), reason="needs ../shared/data/mlperf_tiny_kws01")


def run(folder: Path, **more: Any) -> dict[str, Any]:
    found = bittrue.evaluate(folder / "model.tflite", folder / "samples.npz", **more)
    del found["seconds"]
    return found


def test_figures_are_those_of_a_loop(digits: Path) -> None:
    session = bittrue.load(digits / "model.tflite").prepare("litert")
    stored = np.load(digits / "samples.npz")
    answers = [next(iter(session.run(x[None]).values()))[0] for x in stored["images"]]
    right = sum(int(np.argmax(values)) == label for values, label in zip(answers, stored["labels"], strict=True))
    figures = run(digits)["metrics"]["litert"]
    assert (figures["right"], figures["top1"]) == (right, right / len(answers))
    five = sum(
        label in np.argsort(-v.astype(int), kind="stable")[:5]
        for v, label in zip(answers, stored["labels"], strict=True)
    )
    assert figures["top5"] == five / len(answers)
    confusion = {(label, found): count for label, found, count in figures["confusion"]}
    expected: dict[tuple[int, int], int] = {}
    for values, label in zip(answers, stored["labels"].tolist(), strict=True):
        pair = (label, int(np.argmax(values)))
        expected[pair] = expected.get(pair, 0) + 1
    assert confusion == expected


def test_digest_depends_on_bits_alone(digits: Path) -> None:
    pytest.importorskip("pyarrow")
    usual = run(digits)
    for isa in (*bittrue.runtime.isas(), None):
        for threads in (1, 2):
            assert run(digits, isa=isa, threads=threads)["digest"] == usual["digest"], (isa, threads)
    assert run(digits, executor="reference", limit=9)["digest"] == run(digits, limit=9)["digest"] != usual["digest"]


class Waiting(Source):
    """Black images that take a while to come, as from a network."""

    kind, holds = "waiting", "array"

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__("waiting")
        self._image, self.most = np.zeros(shape, np.int8), 0
        self._lock, self._reading = threading.Lock(), 0

    def __len__(self) -> int:
        return 40

    def __getitem__(self, position: int) -> Sample:
        return Sample(str(position), 0, self._read)

    def _read(self) -> Sequence[Part]:
        with self._lock:
            self._reading += 1
            self.most = max(self.most, self._reading)
        time.sleep(0.003)
        with self._lock:
            self._reading -= 1
        return [self._image]


def test_samples_that_take_time_are_made_side_by_side() -> None:
    port = bittrue.load(bittrue.demo_model()).prepare().inputs[0]
    source = Waiting(port.shape)
    found = bittrue.evaluate(bittrue.demo_model(), source, numerics=["litert"], threads=2)
    assert (found["samples"], found["errors"], source.most) == (40, {}, 2)


def test_a_changed_bit_changes_the_digest(digits: Path, tmp_path: Path) -> None:
    stored = dict(np.load(digits / "samples.npz"))
    stored["images"][7, 3, 3, 0] ^= 1
    np.savez(tmp_path / "samples.npz", **stored)
    (tmp_path / "model.tflite").write_bytes(bittrue.demo_model())
    assert run(tmp_path)["digest"] != run(digits)["digest"]


def test_combined_digests_know_no_order() -> None:
    rows = [[str(i), "x" * i] for i in range(50)]
    whole, other = Combined(), Combined()
    for row in rows:
        whole.add(row)
    for row in np.random.default_rng(0).permutation(50):
        other.add(rows[row])
    assert whole.hexdigest() == other.hexdigest()
    other.add(rows[0])
    assert whole.hexdigest() != other.hexdigest()
    one, two = Combined(), Combined()
    one.add(["ab", "c"])
    two.add(["a", "bc"])
    assert one.hexdigest() != two.hexdigest()


def test_digest_of_arrays_tells_types_and_shapes_apart() -> None:
    x = np.arange(6, dtype=np.int16)
    seen = {digest_of([value]) for value in (x, x.reshape(2, 3), x.astype(np.uint16), x.astype(np.int32), x.tobytes())}
    assert len(seen) == 5
    assert digest_of([x.astype(">i2")]) == digest_of([x])


def test_digests_are_those_of_every_machine(digits: Path) -> None:
    """Recorded on x86-64 with AVX-512; `tools/python_aarch64.sh -m pytest` finds the same ones on aarch64."""
    digests = run(digits, numerics=["litert", "xnnpack"])["digests"]
    assert {name: digest[:16] for name, digest in digests.items()} == {
        "litert": "cfa61eeb5d4c25f3",
        "xnnpack": "97183ed59d40561f",
    }


def test_a_broken_sample_is_a_row(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("L", (9, 7), 100).save(tmp_path / name / "good.png")
    (tmp_path / "b" / "broken.png").write_bytes(b"no image")
    recipe = tmp_path / "grey.toml"
    recipe.write_text(
        '[[step]]\ndo = "decode"\ncolours = "grey"\n[[step]]\ndo = "resize"\nsize = "model"\n'
        '[[step]]\ndo = "scale"\nfactor = 0.0625\n'
    )
    found = bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe=str(recipe), on_error="skip")
    assert (found["samples"], found["labelled"], found["errors"]) == (3, 2, {"BT-IMAGE": 1})
    assert found["data"]["classes"] == ["a", "b"]
    with pytest.raises(bittrue.InputError, match="broken"):
        bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe=str(recipe), on_error="stop")


def test_recipe_that_cannot_fit_is_an_error_before_the_first_sample(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "broken.png").write_bytes(b"")
    with pytest.raises(bittrue.InputError, match="what it makes of an image does not fit") as caught:
        bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe="tf-mobilenet")
    assert caught.value.code == "BT-RECIPE"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"recipe": "tf-mobilenet"}, "BT-RECIPE"),
        ({"recipe": "tf-mobilnet"}, "BT-RECIPE"),
        ({"task": "clasification"}, "BT-TASK"),
        ({"numerics": ["litertt"]}, "BT-NUMERICS"),
        ({"shard": (3, 2)}, "BT-SHARD"),
        ({"limit": 0}, "BT-LIMIT"),
        ({"on_error": "ignore"}, "BT-ERRORS"),
    ],
)
def test_arguments_that_do_not_fit(digits: Path, more: dict[str, Any], code: str) -> None:
    with pytest.raises(bittrue.BittrueError) as caught:
        run(digits, **more)
    assert caught.value.code == code


def test_results_on_disk_and_resume(digits: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    whole = run(digits, numerics=["litert", "xnnpack"], output=tmp_path / "whole")
    table = parquet.read_table(tmp_path / "whole" / "rows").to_pylist()
    assert [row["position"] for row in table] == list(range(whole["samples"]))
    assert (
        sum(row["litert:prediction"] == json.loads(row["label"]) for row in table)
        == whole["metrics"]["litert"]["right"]
    )
    with pytest.raises(bittrue.InputError, match="holds results already"):
        run(digits, numerics=["litert", "xnnpack"], output=tmp_path / "whole")
    with pytest.raises(bittrue.InputError, match="numerics differ"):
        run(digits, output=tmp_path / "whole", resume=True)
    assert (
        run(digits, numerics=["litert", "xnnpack"], output=tmp_path / "whole", resume=True)["digest"] == whole["digest"]
    )


def test_command(digits: Path) -> None:
    words = [
        "evaluate",
        str(digits / "model.tflite"),
        "--data",
        str(digits / "samples.npz"),
        "--numerics",
        "litert,xnnpack",
    ]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "litert" in result.output
    assert "digest of all bits" in result.output
    shown = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)
    assert shown["digest"] == run(digits, numerics=["litert", "xnnpack"])["digest"]


@needs_keywords
def test_keywords(tmp_path: Path) -> None:
    found = bittrue.evaluate(KEYWORD_MODEL, KEYWORDS, numerics=["litert", "xnnpack"])
    assert found["metrics"]["litert"]["right"] == 901
    assert found["metrics"]["xnnpack"]["right"] == 902
    assert found["flips"][0]["count"] == 7
    assert found["digests"]["litert"] == bittrue.evaluate(KEYWORD_MODEL, KEYWORDS, isa="portable")["digests"]["litert"]
