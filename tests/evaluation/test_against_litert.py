"""Answers and digests of every sample against the real runtime, in a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.digests import digest_of
from support.runtimes import here
from support.shared import SHARED

MODELS, DATA = SHARED / "models", SHARED / "data"
KEYWORDS, DIGITS = DATA / "mlperf_tiny_kws01", DATA / "mnist_5000.npz"


def rows(folder: Path) -> Iterator[dict[str, object]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    yield from parquet.read_table(folder / "rows").sort_by("position").to_pylist()


def interpreter(model: Path, resolver: str) -> object:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    kind = getattr(litert.OpResolverType, resolver)
    made = litert.Interpreter(model_path=str(model), experimental_op_resolver_type=kind, num_threads=1)
    made.allocate_tensors()
    return made


def answer(made: object, x: np.ndarray, reset: bool) -> np.ndarray:
    if reset:
        made.reset_all_variables()  # type: ignore[attr-defined]
    made.set_tensor(made.get_input_details()[0]["index"], x)  # type: ignore[attr-defined]
    made.invoke()  # type: ignore[attr-defined]
    found: np.ndarray = made.get_tensor(made.get_output_details()[0]["index"])  # type: ignore[attr-defined]
    return found


@pytest.mark.skipif(not KEYWORDS.exists(), reason="needs ../shared/data/mlperf_tiny_kws01")
def test_keywords(tmp_path: Path) -> None:
    model = MODELS / "tiny_kws_int8.tflite"
    runtimes = {"litert": interpreter(model, "BUILTIN_REF"), here("xnnpack"): interpreter(model, "BUILTIN")}
    found = bittrue.evaluate(model, KEYWORDS, numerics=list(runtimes), output=tmp_path / "out")
    right = dict.fromkeys(runtimes, 0)
    for row in rows(tmp_path / "out"):
        x = np.fromfile(KEYWORDS / str(row["id"]), np.int8).reshape(1, 49, 10, 1)
        for name, made in runtimes.items():
            values = answer(made, x, reset=False)
            assert [digest_of([values])] == row[f"{name}:digests"], (name, row["id"])
            assert int(values.argmax()) == row[f"{name}:prediction"], (name, row["id"])
            right[name] += str(row["label"]) == str(values.argmax())
    assert {name: found["metrics"][name]["right"] for name in runtimes} == right
    assert right["litert"] == 901


@pytest.mark.skipif(not DIGITS.exists(), reason="needs ../shared/data/mnist_5000.npz")
@pytest.mark.parametrize(("reset", "right"), [(True, 4941), (False, 4624)])
def test_recurrent_digits(tmp_path: Path, reset: bool, right: int) -> None:
    model = MODELS / "coral_keras_lstm_mnist_ptq.tflite"
    recipe = tmp_path / "scale.toml"
    recipe.write_text('[[step]]\ndo = "scale"\nfactor = 0.00392156862745098\n')
    output = tmp_path / "out"
    found = bittrue.evaluate(model, DIGITS, recipe=str(recipe), numerics=["litert"], reset=reset, output=output)
    assert found["metrics"]["litert"]["right"] == right
    made = interpreter(model, "BUILTIN_REF")
    (port,) = bittrue.load(model).prepare("litert").inputs
    assert port.scale is not None
    images = next(value for value in np.load(DIGITS).values() if value.ndim == 3)
    for image, row in zip(images, rows(output), strict=True):
        real = image.astype(np.float32) * np.float32(0.00392156862745098)
        x = bittrue.quantize(real[None], port.scale, port.zero_point or 0, port.dtype)
        assert [digest_of([answer(made, x, reset)])] == row["litert:digests"], row["id"]


def test_state_that_goes_on_is_one_thread_in_order() -> None:
    for more in ({"threads": 2}, {"shard": (1, 2)}):
        with pytest.raises(bittrue.InputError, match="by one thread"):
            bittrue.evaluate(bittrue.demo_model(), __file__, reset=False, **more)  # type: ignore[arg-type]
