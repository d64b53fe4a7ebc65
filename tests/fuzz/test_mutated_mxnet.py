"""Mutated symbols and parameters of MXNet: typed errors or results only; no crash, no hang, no large memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue
from bittrue.conformance.recorded.mxnet_case import params_file, symbol
from bittrue.conformance.recorded.vectors import read_vectors
from bittrue.errors import BittrueError
from support.mxnet_models import residual

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
from mutate_mxnet import Model
from packed import join
from targets import mxnet
from watch import changes, seeds

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "mxnet"


def single_nodes() -> list[Model]:
    """Symbols of one node: every operator and form that was recorded."""
    found = []
    for case in read_vectors(RECORDED).cases:
        inputs = [given for given in case.inputs() if given is not None]
        attributes = dict(case.attributes)
        fused = attributes.pop("fused_ops", None)
        content = symbol(case.operator, attributes, inputs, ("data",), len(case.outputs()), fused, case.identity)
        weights = params_file({f"arg:{given.name}": given.value for given in inputs if given.name != "data"})
        found.append((content, weights))
    return found


def network() -> Model:
    """Several nodes whose only input has a shape in the file."""
    net = residual()
    net.nodes[0]["attrs"] = {"__shape__": "(1, 4, 4, 4)", "__dtype__": "0"}
    return net.symbol([len(net.nodes) - 1, 0, 0]), net.weights()


def test_mutations(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    tried = seeds(request, 750, 60_000, 16)
    contents = [join({"symbol": symbol, "parameters": given}) for symbol, given in (*single_nodes(), network())]
    counts = changes(mxnet.change, mxnet.attempt, contents, tried, tmp_path)["counts"]
    kinds = [outcome for outcome in counts if outcome.startswith("BT-")]
    record_property("mutated", f"MXNet: {len(tried)} files, {counts['result']} results, errors of {len(kinds)} kinds")
    assert counts["result"] > len(tried) // 20
    assert len(kinds) > 8


def test_every_truncation_of_the_parameters() -> None:
    content, weights = single_nodes()[-1]
    for length in range(1, len(weights)):
        with pytest.raises(BittrueError) as caught:
            bittrue.load(content, weights[:length])
        assert caught.value.code == "BT-MXNET-PARAMS"
