"""Mappings of ensembles of trees of ai.onnx.ml on binary32 numbers: all trees go one level down at a time.

What each tree gives is added up in binary32, one tree after the other in the order of the file, then the base value.
Source: ONNX Runtime 1.31.1, run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graph import Attribute
from ...records import dataclass
from .base import PLAIN, Mappers, Parts, Source
from .classical import (
    CLASSICAL,
    ROWS,
    by_library,
    check_table,
    expect_type,
    give_best_label,
    give_label,
    labels_of,
    select,
    transformation,
)

_ELEMENTS: dict[str, Attribute] = {"axis": 1, "elements": True, "from_either_end": False}
_COMPARISONS: Mapping[str, str] = {
    "BRANCH_EQ": "equal",
    "BRANCH_GT": "greater",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less",
    "BRANCH_NEQ": "not_equal",
}
_LEAF = "LEAF"
_THREADS = (
    "sums of trees are those of ONNX Runtime on one thread: several threads share out the trees of more than 50 rows,"
    " which changes last bits"
)
_DEEPEST = 1000


@dataclass(frozen=True)
class _Trees:
    """Nodes of all trees, [nodes] each; a leaf is its own successor.

    Attributes:
        place: index of a node by the numbers of its tree and of itself.
        roots: [trees], in the order of the file.
        features, thresholds, successors, modes, missing: of every node; successors are [2, nodes], and `missing` says
            whether NaN goes where the comparison holds.
        leaves: [nodes].
        depth: of the deepest tree: how often a row goes down.
    """

    place: Mapping[tuple[int, int], int]
    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    successors: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    leaves: np.ndarray
    depth: int


def _trees(source: Source) -> _Trees:
    """The nodes, whose numbers are checked: every node is met once on the way from the roots."""
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    lists = {name: np.array(source.integers(f"nodes_{name}") or (), np.int64) for name in names}
    missing = np.array(source.integers("nodes_missing_value_tracks_true") or (), np.int64)
    thresholds = np.array(source.reals("nodes_values") or (), np.float32)
    modes = np.array(source.texts("nodes_modes") or ())
    source.reals("nodes_hitrates")
    count = lists["nodeids"].size
    missing = missing if missing.size else np.zeros(count, np.int64)
    columns: list[np.ndarray] = [*lists.values(), thresholds, modes, missing]
    if not count or {column.size for column in columns} != {count}:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", "the lists that begin with 'nodes_' must have one length of 1 or more"
        )
    unknown = sorted(set(modes.tolist()) - {*_COMPARISONS, _LEAF})
    if unknown:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", f"mode '{unknown[0]}' of a node is not read")
    keys = list(zip(lists["treeids"].tolist(), lists["nodeids"].tolist(), strict=True))
    place = {key: index for index, key in enumerate(keys)}
    first: dict[int, int] = {}
    for index, (tree, _) in enumerate(keys):
        first.setdefault(tree, index)
    leaves, successors = modes == _LEAF, np.tile(np.arange(count), (2, 1))
    for index in np.flatnonzero(~leaves).tolist():
        tree = keys[index][0]
        for side, name in enumerate(("truenodeids", "falsenodeids")):
            successors[side, index] = place.get((tree, int(lists[name][index])), -1)
    depth = _depth(leaves, successors, list(first.values()))
    if len(place) < count or depth is None or lists["featureids"].min() < 0:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", "its nodes are no trees", "the file contradicts itself; export it again"
        )
    if depth > _DEEPEST:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", f"a tree of {depth} levels, at most {_DEEPEST} are read")
    features = np.where(leaves, 0, lists["featureids"])
    roots = np.array(list(first.values()))
    return _Trees(place, roots, features, thresholds, successors, modes, missing != 0, leaves, depth)


def _depth(leaves: np.ndarray, successors: np.ndarray, roots: list[int]) -> int | None:
    """How many levels lie below the roots; None where a node is met twice, or there is none."""
    level, met, depth = np.array(roots), np.zeros(leaves.size, bool), 0
    while True:
        if level.min() < 0 or met[level].any() or np.unique(level).size < level.size:
            return None
        met[level] = True
        below = successors[:, level[~leaves[level]]].reshape(-1)
        if not below.size:
            return depth
        level, depth = below, depth + 1


def _reached(source: Source, parts: Parts, trees: _Trees) -> int:
    """The leaf that each row of the input reaches in each tree: [rows, trees]."""
    x = source.inputs[0]
    shape = parts.step("concatenation", "s64", [parts.sizes(x, 0, 1), parts.list(trees.roots.size)], axis=0, **PLAIN)
    place = parts.step("broadcast_to", "s64", [source.constant(trees.roots, "roots"), shape], both_ways=False)
    features, thresholds = source.constant(trees.features, "features"), source.constant(trees.thresholds, "thresholds")
    yes, no = (source.constant(side, "successors") for side in trees.successors)
    modes = sorted(set(trees.modes[~trees.leaves].tolist()))
    marks = {mode: source.constant(trees.modes == mode, mode) for mode in modes}
    missing = source.constant(trees.missing, "missing")

    def at(table: int, dtype: str) -> int:
        return parts.step("gather", dtype, [table, place], **ROWS)

    for _ in range(trees.depth):
        feature = parts.step("gather", "f32", [x, at(features, "s64")], **_ELEMENTS)
        threshold, holds = at(thresholds, "f32"), []
        for mode in modes:
            one = parts.step(_COMPARISONS[mode], "bool", [feature, threshold])
            holds.append(one if len(modes) == 1 else parts.step("bitwise_and", "bool", [one, at(marks[mode], "bool")]))
        if trees.missing.any():
            nan = parts.step("not_finite", "bool", [feature], nan=True, negative=False, positive=False)
            holds.append(parts.step("bitwise_and", "bool", [nan, at(missing, "bool")]))
        chosen = holds[0]
        for other in holds[1:]:
            chosen = parts.step("bitwise_or", "bool", [chosen, other])
        place = select(parts, "s64", chosen, at(yes, "s64"), at(no, "s64"))
    return place


def _weights(source: Source, trees: _Trees, what: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """What each leaf gives to each of `count` results, and whether it gives it anything: [nodes, count]."""
    lists = [source.integers(f"{what}_{name}") or () for name in ("treeids", "nodeids", "ids")]
    given = source.reals(f"{what}_weights") or ()
    if not given or {len(one) for one in lists} != {len(given)}:
        message = f"the lists that begin with '{what}_' must have one length of 1 or more"
        raise source.invalid("BT-ONNX-ATTRIBUTE", message)
    check_table(source, trees.leaves.size, count)
    found, known = np.zeros((trees.leaves.size, count), np.float32), np.zeros((trees.leaves.size, count), bool)
    for tree, node, number, weight in zip(*lists, given, strict=True):
        index = trees.place.get((tree, node), -1)
        if index < 0 or not 0 <= number < count or known[index, number] or not trees.leaves[index]:
            message = f"a weight for result {number} at node {node} of tree {tree} has no leaf of its own"
            raise source.invalid("BT-ONNX-ATTRIBUTE", message, "the file contradicts itself; export it again")
        found[index, number], known[index, number] = weight, True
    return found, known


def _sums(
    source: Source, parts: Parts, trees: _Trees, weights: np.ndarray, base: np.ndarray, mean: bool = False
) -> int:
    """Of every row the sums of what its leaves give: [rows, results]."""
    found = parts.step("gather", "f32", [source.constant(weights, "weights"), _reached(source, parts, trees)], **ROWS)
    if trees.roots.size > 1 and _THREADS not in source.builder.notes:
        source.builder.notes.append(_THREADS)
    total = parts.total(found, 1, keep=False)
    if mean:
        total = parts.step("div", "f32", [total, parts.number(trees.roots.size, "trees")], **PLAIN)
    return parts.step("add", "f32", [total, source.constant(base, "base")], **PLAIN)


def _base(source: Source, *counts: int) -> np.ndarray:
    """Base values of as many results as one of `counts` says; zeros where there are none."""
    found = np.array(source.reals("base_values") or (), np.float32)
    if found.size and found.size not in counts:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", f"{found.size} base values for {counts[0]} sums are not read")
    return found if found.size else np.zeros(counts[0], np.float32)


def _regressor(source: Source) -> None:
    expect_type(source, 0, "f32")
    parts, targets = Parts(source), source.integer("n_targets", 1)
    way, form = source.text("aggregate_function", "SUM"), source.text("post_transform", "NONE")
    if way not in ("SUM", "AVERAGE") or form != "NONE":
        message = f"aggregate_function '{way}' with post_transform '{form}' is not read"
        raise source.unsupported("BT-ONNX-ATTRIBUTE", message, "SUM and AVERAGE are, with NONE")
    if not 1 <= targets <= len(source.integers("target_ids") or ()):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"{targets} targets do not fit the weights")
    trees = _trees(source)
    weights, _ = _weights(source, trees, "target", targets)
    sums = _sums(source, parts, trees, weights, _base(source, targets), mean=way == "AVERAGE")
    parts.last("identity", "f32", [sums], source.outputs[0])


def _classifier(source: Source) -> None:
    """Two labels have one sum where all weights are of the first one, else a sum each, as more labels have."""
    expect_type(source, 0, "f32")
    labels, parts, form = labels_of(source, "classlabels_int64s"), Parts(source), transformation(source)
    trees = _trees(source)
    weights, known = _weights(source, trees, "class", labels.size)
    two = labels.size == 2
    if two and not known[:, 1].any():
        sums = _sums(source, parts, trees, weights[:, :1], _base(source, 1))
        _give_one(source, parts, sums, labels, form, shares=bool((weights >= 0).all()))
        return
    if labels.size < 2 or not _reaches_all(trees, known):
        message = "some rows reach no leaf with a weight of some label, whose score is left open then"
        raise source.unsupported("BT-ONNX-ATTRIBUTE", message, "export the model with weights for every label")
    if two and source.has("base_values"):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "base values beside weights of two labels are not read")
    sums = _sums(source, parts, trees, weights, _base(source, labels.size))
    if two:
        # Source: ORT 1.31.1, whatever the labels are.
        second = parts.step("gather", "f32", [sums, source.constant(np.int64(1), "second")], **{**ROWS, "axis": 1})
        give_label(source, parts, second, np.arange(2))
    else:
        give_best_label(source, parts, sums, labels)
    if len(source.outputs) < 2 or not source.outputs[1]:
        return
    if form == "SOFTMAX":
        library: dict[str, Attribute] = {"axis": -1, "flattened": False, "beta": 1.0, "by_library": True}
        parts.last("softmax", "f32", [sums], source.outputs[1], **library)
    else:
        scores = by_library(parts, sums) if form == "LOGISTIC" else sums
        parts.last("identity", "f32", [scores], source.outputs[1])


def _reaches_all(trees: _Trees, known: np.ndarray) -> bool:
    """Whether every row has something of every label: some tree has it at all of its leaves."""
    tree_of = np.zeros(trees.leaves.size, np.int64)
    numbers_of = {tree: number for number, tree in enumerate(dict.fromkeys(tree for tree, _ in trees.place))}
    for (tree, _), index in trees.place.items():
        tree_of[index] = numbers_of[tree]
    whole = np.ones((len(numbers_of), known.shape[1]), bool)
    np.logical_and.at(whole, tree_of[trees.leaves], known[trees.leaves])
    return bool(whole.any(axis=0).all())


def _give_one(source: Source, parts: Parts, sums: int, labels: np.ndarray, form: str, shares: bool) -> None:
    """Label and scores of two labels by one sum, which is a share where no weight is negative."""
    give_label(source, parts, sums, labels, 0.5 if shares else 0.0)
    if len(source.outputs) < 2 or not source.outputs[1]:
        return
    if shares and form != "LOGISTIC":
        other = parts.step("sub", "f32", [parts.number(1, "one"), sums], **PLAIN)
    else:
        other = parts.step("neg", "f32", [sums])
    pair = [by_library(parts, one) if form == "LOGISTIC" else one for one in (other, sums)]
    parts.last("concatenation", "f32", [*pair], source.outputs[1], axis=1, **PLAIN)


MAPPERS: Mappers = {
    (CLASSICAL, "TreeEnsembleClassifier"): _classifier,
    (CLASSICAL, "TreeEnsembleRegressor"): _regressor,
}
