"""Every tensor of every shared model, byte for byte against BUILTIN_REF, for random inputs and for real images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import flatbuffers
import numpy as np
import pytest

import bittrue
from bittrue.runners.inputs import read_image
from support.differential import assert_same, random_values
from support.oracle import oracle
from support.shared import SHARED, needs_shared, shared_models

# The runtime's own int8 SVDF kernel reads and writes past its buffers here: there is nothing to compare with.
UNDEFINED = {"tflm_keyword_scrambled_8bit"}

pytestmark = needs_shared


def mended(content: bytes) -> bytes:
    """The runtime refuses 1-D tensors whose quantized dimension is past their rank; kernels never read it there."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.quantization is not None and len(tensor.shape) == 1:
                tensor.quantization.quantizedDimension = 0
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def compare(path: Path, feeds: list[list[np.ndarray]]) -> tuple[int, int]:
    """(tensors, values) that were compared after the last of the runs; state is kept between them."""
    content = path.read_bytes()
    session = bittrue.load(path).prepare("litert")
    graph = bittrue.load(path).graph
    traced: dict[str, np.ndarray] = {}
    for feed in feeds:
        traced = session.trace(*feed)
    wanted = {i: t.name for i, t in enumerate(graph.tensors) if t.name in traced}
    if path.stem == "tflm_person_detect":
        content = mended(content)
    answer = oracle().run(content, feeds, list(wanted), timeout=300)
    assert answer.ran, answer
    # Nothing computed may be left out of the comparison.
    assert {i for node in graph.nodes for i in node.outputs} <= set(wanted)
    for index, name in wanted.items():
        assert_same(name, traced[name], answer.values[index])
    return len(wanted), sum(traced[name].size for name in wanted.values())


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("path", [p for p in shared_models() if p.stem not in UNDEFINED], ids=lambda p: p.stem)
def test_random_inputs(
    path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """The same values in every run, and new ones."""
    graph = bittrue.load(path).graph
    total, seeds = 0, (0, 1, request.config.getoption("--seed"))
    for seed in seeds if request.config.getoption("--deep") else seeds[::2]:
        rng = np.random.default_rng(seed)
        feeds = [
            [random_values(rng, graph.tensors[i].type.numpy, graph.tensors[i].shape) for i in graph.inputs]
            for _ in range(2 if any(t.is_variable for t in graph.tensors) else 1)
        ]
        tensors, values = compare(path, feeds)
        total += values
    record_property("compared", f"{path.stem}: {tensors} tensors, {total:,} values, 0 mismatches")


IMAGES = {
    "coral_tf2_mobilenet_v2_1.0_224_ptq": ["parrot.jpg", "owl.jpg", "cat.bmp", "grace_hopper.bmp"],
    "coral_mobilenet_v1_0.25_128_quant": ["parrot.jpg", "owl.jpg", "cat.bmp", "grace_hopper.bmp"],
    "coral_deeplabv3_mnv2_dm05_pascal_quant": ["cat.bmp"],
    "inception_v3_299_int8": ["parrot.jpg"],
    "tflm_person_detect": ["grace_hopper.bmp"],
    "tiny_vww_int8": ["grace_hopper.bmp"],
    "tiny_resnet8_int8": ["cat.bmp", "parrot.jpg"],
}


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("model", "image"), [(m, p) for m, names in IMAGES.items() for p in names])
def test_images(model: str, image: str, record_property: Callable[[str, object], None]) -> None:
    path = SHARED / "models" / f"{model}.tflite"
    port = bittrue.load(path).prepare("litert").inputs[0]
    values, _ = read_image(SHARED / "images" / image, port, None)
    tensors, count = compare(path, [[values]])
    record_property("compared", f"{model} on {image}: {tensors} tensors, {count:,} values, 0 mismatches")


def test_state_with_undefined_layout_is_refused() -> None:
    with pytest.raises(bittrue.UnsupportedError, match="SVDF") as caught:
        bittrue.load(SHARED / "models" / "tflm_keyword_scrambled_8bit.tflite").prepare("litert")
    assert caught.value.code == "BT-UNDEFINED"
    assert "int8" in str(caught.value)


def test_bias_dimension_past_the_rank_is_accepted_and_noted() -> None:
    notes = bittrue.load(SHARED / "models" / "tflm_person_detect.tflite").notes
    assert any("quantized_dimension" in note or "quantized dimension" in note for note in notes), notes


def test_batches_equal_single_runs() -> None:
    path = SHARED / "models" / "tiny_resnet8_int8.tflite"
    model = bittrue.load(path)
    name = model.graph.tensors[model.graph.inputs[0]].name
    one = model.prepare("litert")
    three = model.prepare("litert", shapes={name: (3, *one.inputs[0].shape[1:])})
    x = random_values(np.random.default_rng(5), np.dtype(np.int8), three.inputs[0].shape)
    together = next(iter(three.run(x).values()))
    apart = [next(iter(one.run(x[i : i + 1]).values())) for i in range(3)]
    assert together.tobytes() == np.concatenate(apart).tobytes()


def test_saved_plans_give_the_same_bytes(tmp_path: Path) -> None:
    for path in shared_models():
        if path.stem in UNDEFINED or path.stat().st_size > 5_000_000:
            continue
        session = bittrue.load(path).prepare("litert")
        session.plan.save(tmp_path / "saved.plan")
        again = bittrue.load_plan(tmp_path / "saved.plan")
        assert str(again.plan) == str(session.plan)
        rng = np.random.default_rng(7)
        feed = [random_values(rng, port.dtype, port.shape) for port in session.inputs]
        one, two = session.run(*feed), again.run(*feed)
        assert all(one[name].tobytes() == two[name].tobytes() for name in one)
