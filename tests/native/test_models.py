"""Link 6 of the equality argument for the native executor: every tensor of every shared model, on every instruction set
of this machine, with one and two threads, in batches of 1, 2 and 5; and nothing is left to the reference.

tests/models compares the same tensors with the real runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.differential import random_values
from support.native import check_native, needs_native
from support.shared import needs_shared, shared_models

pytestmark = [needs_shared, needs_native]

UNDEFINED = {"tflm_keyword_scrambled_8bit"}
MODELS = [path for path in shared_models() if path.stem not in UNDEFINED]
# Portable C++ takes seconds for a batch of the largest network.
LARGE = {"inception_v3_299_int8", "coral_deeplabv3_mnv2_dm05_pascal_quant"}


def in_batches(path: Path, batch: int) -> bittrue.Session:
    """The model for `batch` inputs at once; up to the first reshape to a fixed shape where it has one."""
    model = bittrue.load(path)
    graph = model.graph
    shapes = {graph.tensors[i].name: (batch, *graph.tensors[i].shape[1:]) for i in graph.inputs}
    if batch == 1:
        return model.prepare(executor="reference")
    try:
        return model.prepare(executor="reference", shapes=shapes)
    except bittrue.InvalidModelError as error:
        if error.code == "BT-LSTM-STATE":
            pytest.skip("its state has a fixed batch")
        if error.code != "BT-RESHAPE":
            raise
    reshape = next(node for node in graph.nodes if node.operator == "reshape")
    if reshape is graph.nodes[0]:
        pytest.skip("its first step is a reshape to a fixed shape")
    before = graph.tensors[reshape.inputs[0] or 0].name
    return model.prepare(executor="reference", shapes=shapes, outputs=[before])


@pytest.mark.in_turns(3)
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_tensor(
    path: Path, batch: int, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """Single runs with one thread, two at once with two threads; five with both on an instruction set by the seed. With
    `--deep` all of them.
    """
    session = in_batches(path, batch)
    rng = np.random.default_rng(batch)
    runs = 2 if any(t.kind == "variable" for t in session.plan.tensors) else 1
    feeds = [[random_values(rng, port.dtype, port.shape) for port in session.inputs] for _ in range(runs)]
    values = {}
    for feed in feeds:
        values = session.trace(*feed)
    isas = [isa for isa in bittrue.isas() if not (isa == "portable" and path.stem in LARGE and batch > 1)]
    threads: tuple[int, ...] = (1, 2)
    if not request.config.getoption("--deep"):
        threads = {1: (1,), 2: (2,), 5: (1, 2)}[batch]
        isas = isas if batch < 5 else [isas[request.config.getoption("--seed") % len(isas)]]
    check_native(session, feeds, values, threads, isas)
    assert not bittrue.Session(session.plan, executor="native").missing
    record_property(
        "native",
        f"{path.stem}, batch {batch}: {len(values)} tensors, {sum(v.size for v in values.values()):,} values on "
        f"{', '.join(isas)} with {' and '.join(map(str, threads))} threads, 0 mismatches",
    )
