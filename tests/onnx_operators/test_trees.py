"""TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml: random ensembles against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import bittrue
from support.onnx_models import CLASSICAL, Checks, needs_measured, value_info

_MODES = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ".split()


class _Ensemble:
    """Random trees, whose leaves have a weight for every result that a tree has weights of."""

    def __init__(self, rng: np.random.Generator, features: int, results: int, trees: int) -> None:
        self.rng, self.features = rng, features
        self.modes = [str(mode) for mode in rng.choice(_MODES, int(rng.choice([1, 1, 2])))]
        self.steps = float(rng.choice([0.5, 1e-6]))
        self.missing = rng.random() < 0.3
        self.negative = rng.random() < 0.6
        self.nodes: dict[str, list[Any]] = {
            name: [] for name in "treeids nodeids modes featureids values truenodeids falsenodeids".split()
        }
        self.nodes |= {"missing_value_tracks_true": []} if self.missing else {}
        self.weights: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        for tree in range(trees):
            self.count = 0
            self.grow(tree, int(rng.integers(0, 6)), results)

    def grow(self, tree: int, depth: int, results: int) -> int:
        number, place, rng = self.count, len(self.nodes["treeids"]), self.rng
        self.count += 1
        leaf = depth == 0 or rng.random() < 0.1
        threshold = np.float32(np.round(rng.standard_normal() / self.steps) * self.steps)
        feature = int(rng.integers(self.features))
        row = (tree, number, "LEAF" if leaf else str(rng.choice(self.modes)), feature, float(threshold), 0, 0)
        for name, value in zip(self.nodes, (*row, int(rng.random() < 0.5)), strict=False):
            self.nodes[name].append(value)
        if leaf:
            for result in range(results):
                weight = float(np.float32(rng.standard_normal()))
                values = (tree, number, result, weight if self.negative else abs(weight) / 8)
                for name, value in zip(self.weights, values, strict=True):
                    self.weights[name].append(value)
            return number
        for name in ("truenodeids", "falsenodeids"):
            self.nodes[name][place] = self.grow(tree, depth - 1, results)
        return number

    def model(self, operator: str, outputs: int, **more: Any) -> tuple[bytes, list[np.ndarray]]:
        rng, what = self.rng, "target" if operator.endswith("Regressor") else "class"
        attributes = {f"nodes_{name}": values for name, values in self.nodes.items()} | more
        attributes |= {f"{what}_{name}": values for name, values in self.weights.items()}
        shape = (int(rng.choice([1, 2, 7, 60])), self.features)
        x = (np.round(rng.standard_normal(shape) / self.steps) * self.steps).astype(np.float32)
        if rng.random() < 0.3:
            x[rng.random(shape) < 0.2] = rng.choice([np.nan, np.inf])
        names = [f"y{k}" for k in range(outputs)]
        node = helper.make_node(operator, ["x"], names, domain=CLASSICAL, **attributes)
        results = [helper.make_empty_tensor_value_info(name) for name in names]
        graph = helper.make_graph([node], "graph", [value_info("x", x)], results)
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(CLASSICAL, 3)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), [x]


def _reals(rng: np.random.Generator, count: int) -> list[float]:
    return rng.standard_normal(count).astype(np.float32).tolist()


@needs_measured
def test_regressors(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        targets = int(rng.choice([1, 1, 2, 5]))
        more: dict[str, Any] = {"base_values": _reals(rng, targets)} if rng.random() < 0.5 else {}
        ensemble = _Ensemble(rng, int(rng.integers(1, 7)), targets, int(rng.choice([1, 3, 20, 90])))
        way = str(rng.choice(["SUM", "AVERAGE"]))
        checks.add(*ensemble.model("TreeEnsembleRegressor", 1, n_targets=targets, aggregate_function=way, **more))


@needs_measured
def test_classifiers(request: pytest.FixtureRequest) -> None:
    """Two labels by one sum, which may be a share, or by two; more labels by trees for all of them or for one each."""
    checks = Checks(request, only="equal")
    for rng in checks:
        labels = int(rng.choice([2, 2, 3, 5]))
        one = labels == 2 and rng.random() < 0.7
        ensemble = _Ensemble(rng, int(rng.integers(1, 7)), 1 if one else labels, int(rng.choice([5, 20, 90])))
        ids = ensemble.weights["ids"]
        if not one and rng.random() < 0.5:
            # Trees take turns, as boosting has them.
            kept = [k for k, tree in enumerate(ensemble.weights["treeids"]) if ids[k] == tree % labels]
            ensemble.weights = {name: [values[k] for k in kept] for name, values in ensemble.weights.items()}
        count = 1 if one else labels
        more: dict[str, Any] = {"base_values": _reals(rng, count)} if (one or labels > 2) and rng.random() < 0.5 else {}
        more["classlabels_int64s"] = rng.permutation(9)[:labels].tolist()
        form = str(rng.choice(["NONE", "LOGISTIC", "SOFTMAX"]))
        checks.add(*ensemble.model("TreeEnsembleClassifier", 2, post_transform=form, **more))


@pytest.mark.parametrize("trees", [1, 2])
def test_a_plan_says_that_threads_share_out_trees(trees: int) -> None:
    content, _ = _Ensemble(np.random.default_rng(1), 2, 1, trees).model("TreeEnsembleRegressor", 1)
    assert sum("threads" in note for note in bittrue.load(content).prepare().plan.notes) == trees - 1


@pytest.mark.parametrize("damage", ["loop", "stray", "twice", "short", "mode", "weight", "open"])
def test_damaged(damage: str) -> None:
    """Numbers of nodes are not believed; a label whose score some rows do not have is refused."""
    ensemble = _Ensemble(np.random.default_rng(9), 3, 3, 4)
    nodes, weights = ensemble.nodes, ensemble.weights
    branch = next(k for k, mode in enumerate(nodes["modes"]) if mode != "LEAF")
    if damage == "loop":
        nodes["truenodeids"][branch] = nodes["nodeids"][branch]
    if damage == "stray":
        nodes["truenodeids"][branch] = 1000
    if damage == "twice":
        nodes["nodeids"][branch + 1] = nodes["nodeids"][branch]
    if damage == "short":
        nodes["values"].pop()
    if damage == "mode":
        nodes["modes"][branch] = "BRANCH_MEMBER"
    if damage == "weight":
        weights["nodeids"][0] = 1000
    if damage == "open":
        kept = [k for k in range(len(weights["ids"])) if weights["ids"][k] or weights["treeids"][k]]
        kept = [k for k in kept if weights["ids"][k] != 1 or weights["nodeids"][k] != weights["nodeids"][-1]]
        ensemble.weights = {name: [values[k] for k in kept if values] for name, values in weights.items()}
        ensemble.weights["ids"] = [0 if k % 2 else 2 for k in range(len(kept))]
    content, _ = ensemble.model("TreeEnsembleClassifier", 2, classlabels_int64s=[0, 1, 2])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == "BT-ONNX-ATTRIBUTE"
