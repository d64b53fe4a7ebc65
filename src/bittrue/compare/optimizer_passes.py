"""Which level of ONNX Runtime's optimiser changes a model's bits, and which of its passes."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..api import load
from ..errors import BittrueError, InputError, InvalidModelError, RunError
from ..importers.onnx import onnx_package
from ..runners.base import Runner
from ..runners.guard import temporary_folder
from ..runners.onnxruntime import LEVELS, ONNXRUNTIME, OnnxRuntime, Settings
from .inputs import Given, input_sets
from .minimal import smallest

Values = Mapping[str, np.ndarray]
# Told what is being tried, and how many sessions there were.
Progress = Callable[[str, int], None]

# Rewrite rules that run inside of one pass per level; each can be disabled by its own name.
# Source: onnxruntime/core/optimizer/graph_transformer_utils.cc, read; the names are in the library of 1.31.1.
_RULES = {
    "Level1_RuleBasedTransformer": (
        "EliminateIdentity",
        "EliminateSlice",
        "UnsqueezeElimination",
        "EliminateDropout",
        "ExpandElimination",
        "CastElimination",
        "CastChainElimination",
        "PreShapeNodeElimination",
        "NoopElimination",
        "DivMulFusion",
        "FuseReluClip",
        "GemmSumFusion",
        "GemmTransposeFusion",
        "NotWhereFusion",
        "ConvAddFusion",
        "ConvMulFusion",
        "ConvBNFusion",
        "Pad_Fusion",
        "MatMul_BatchNormalization_Fusion",
        "LabelEncoderFusion",
    ),
    "Level2_RuleBasedTransformer": ("ClipQuantRewrite", "ReluQuantRewrite", "GemmTransposeFusion"),
}
_MODIFIED = re.compile(r"GraphTransformer (\S+) modified: 1")


def bisect_passes(
    path: Path, inputs: Sequence[Values], progress: Progress | None = None, integers: bool = True
) -> dict[str, Any]:
    """Run a model at every level of the optimiser, and find the passes that change its outputs.

    Each level is compared with the one before it. Where bytes change, passes are disabled by name
    (``disabled_optimizers``) until the bytes of the level before are back: the smallest set that does it is
    responsible. Which passes there are is what the runtime itself logs.

    Args:
        path: an .onnx file.
        inputs: input sets by name; all of them count.
        progress: called before each session that is opened.
        integers: ``session.qdqisint8allowed``; see `bittrue.runners.onnxruntime.Settings`.

    Returns:
        Plain data: ``runtime``; ``levels``: per level ``level``, ``passes`` (those that changed the graph),
        ``differing`` and ``elements`` of the outputs against level ``disable``, ``changed`` (other bytes than the level
        before); ``changes``: per level that changes bytes ``level``, ``before``, ``passes`` (responsible; empty when
        disabling brings nothing back), ``alone`` (of these, the ones that change bytes with all others disabled),
        ``removed`` and ``added`` (nodes), ``tensor`` (the first one that differs), ``spec`` (this level without those
        passes, to be compared with); ``sessions``: how many were opened; ``text``.

    Raises:
        UnsupportedError: ONNX Runtime or the package `onnx` is missing.
        InputError: no inputs.
        BittrueError: the runtime refuses the model at level ``disable``.
    """
    if not inputs:
        raise InputError("BT-INPUT-COUNT", "there are no inputs to compare the levels on")
    optimiser = _Optimiser(Path(path), inputs, progress, integers)
    levels: list[dict[str, Any]] = []
    changes = []
    previous, found = "", dict[str, _Outcome]()
    for level in LEVELS:
        outcome = found[level] = optimiser.outcome(level, ())
        elements, differing = _count(found["disable"], outcome)
        changed = bool(previous) and not outcome.same_as(found[previous])
        levels.append(
            {
                "level": level,
                "passes": list(outcome.passes),
                "differing": differing,
                "elements": elements,
                "changed": changed,
                "refused": outcome.refused,
            }
        )
        if changed and not outcome.refused:
            changes.append(_change(optimiser, previous, level, found))
        if not outcome.refused:
            previous = level
    result = {
        "runtime": f"ONNX Runtime {ONNXRUNTIME.version()}",
        "model": str(path),
        "inputs": len(inputs),
        "levels": levels,
        "changes": changes,
        "sessions": optimiser.sessions,
    }
    return {**result, "text": _verdict(changes)}


def optimised_side(sides: Sequence[Runner]) -> OnnxRuntime:
    """The side that runs in ONNX Runtime: the first one with an optimiser at work, else the first.

    Raises:
        InputError: neither does.
    """
    found = [side for side in sides if isinstance(side, OnnxRuntime)]
    if not found:
        raise InputError("BT-USAGE", "neither side runs in ONNX Runtime", place="--passes", advice="write ort:MODEL")
    return next((side for side in found if side.settings.level != "disable"), found[0])


def passes_of(
    side: OnnxRuntime, sides: Sequence[Runner], given: Sequence[Given], progress: Progress | None = None
) -> dict[str, Any]:
    """`bisect_passes` for one of two sides, on the inputs that `compare_models` gives it."""
    values = [one.a if side is sides[0] else one.b for one in input_sets(sides[0], sides[1], given)]
    return bisect_passes(side.path, values, progress, side.settings.integers)


def passes_text(passes: Mapping[str, Any]) -> list[str]:
    """What `bisect_passes` found, as lines for a terminal.

    Args:
        passes: its result; it may have been read from a file.
    """
    runs = "1 run" if passes["inputs"] == 1 else f"{passes['inputs']} runs"
    lines = [f"{passes['runtime']}, {runs}, {passes['sessions']} sessions"]
    seen: set[str] = set()
    for entry in passes["levels"]:
        share = f"{entry['differing']:,} of {entry['elements']:,} output elements differ from level disable"
        bits = entry["refused"] or ("the bits of level disable" if not entry["differing"] else share)
        new = [name for name in entry["passes"] if name not in seen]
        seen.update(new)
        lines.append(f"  {entry['level']:<9} {bits}{'; changes the graph: ' if new else ''}{', '.join(new)}")
    for change in passes["changes"]:
        lines += ["", f"from {change['before']} to {change['level']}:"]
        if change["passes"]:
            lines.append(f"  responsible: {', '.join(change['passes'])}")
            lines.append(f"  without: {change['spec']} gives the bits of level {change['before']}")
        else:
            lines.append("  disabling passes does not bring the bits back; the kernels of this level differ")
        if change["alone"] and change["alone"] != change["passes"]:
            lines.append(f"  alone enough to change bits: {', '.join(change['alone'])}")
        if change["tensor"]:
            lines.append(f"  first tensor that differs: '{change['tensor']}'")
        for what in ("removed", "added"):
            if change[what]:
                lines.append(f"  nodes {what}: {_nodes_text(change[what])}")
    return [*lines, "", passes["text"]]


class _Outcome:
    """What one way to open a model gives.

    Attributes:
        outputs: per input set, all outputs.
        passes: that changed the graph, in order.
        refused: why there is nothing.
    """

    def __init__(self, outputs: list[dict[str, np.ndarray]], passes: tuple[str, ...], refused: str = "") -> None:
        self.outputs = outputs
        self.passes = passes
        self.refused = refused

    def same_as(self, other: _Outcome) -> bool:
        """Whether all outputs have equal bytes."""
        return not (self.refused or other.refused) and _count(self, other)[1] == 0


class _Optimiser:
    """Opens one model at any level without any passes, and remembers what came out."""

    def __init__(self, path: Path, inputs: Sequence[Values], progress: Progress | None, integers: bool) -> None:
        self.path = path
        self.integers = integers
        self.inputs = inputs
        self.sessions = 0
        self._module = ONNXRUNTIME.load()
        self._progress = progress
        self._known: dict[tuple[str, frozenset[str]], _Outcome] = {}

    def outcome(self, level: str, disable: Sequence[str]) -> _Outcome:
        """Outputs and passes at `level` without the passes `disable`.

        Raises:
            BittrueError: the runtime refuses even the model as it is.
        """
        key = level, frozenset(disable)
        if key not in self._known:
            try:
                self._known[key] = self._run(level, disable)
            except BittrueError as error:
                if key == ("disable", frozenset()):
                    raise
                self._known[key] = _Outcome([], (), refused=error.message)
        return self._known[key]

    def nodes(self, level: str, disable: Sequence[str]) -> list[Any]:
        """Nodes of the optimised graph."""
        with temporary_folder("bittrue-passes-") as folder:
            optimised = folder / "optimised.onnx"
            self._open(level, disable, optimised)
            return list(onnx_package().load(str(optimised), load_external_data=False).graph.node)

    def _run(self, level: str, disable: Sequence[str]) -> _Outcome:
        session, passes = self._open(level, disable)
        names = [port.name for port in session.get_outputs()]
        outputs = []
        for values in self.inputs:
            try:
                found = session.run(names, dict(values))
            except Exception as error:
                message = f"ONNX Runtime at level {level}: {error}"
                raise RunError("BT-RUNNER-RUN", message, place=str(self.path)) from None
            outputs.append({n: v for n, v in zip(names, found, strict=True) if isinstance(v, np.ndarray)})
        return _Outcome(outputs, passes)

    def _open(self, level: str, disable: Sequence[str], optimised: Path | None = None) -> tuple[Any, tuple[str, ...]]:
        self.sessions += 1
        if self._progress is not None:
            without = f" without {', '.join(disable)}" if disable else ""
            self._progress(f"level {level}{without}", self.sessions)
        options = self._module.SessionOptions()
        options.graph_optimization_level = getattr(self._module.GraphOptimizationLevel, LEVELS[level])
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Information: every pass says whether it has changed the graph.
        options.log_severity_level = 1
        options.add_session_config_entry("session.qdqisint8allowed", "1" if self.integers else "0")
        if optimised is not None:
            options.optimized_model_filepath = str(optimised)
            prefix = "session.optimized_model_external_initializers"
            options.add_session_config_entry(f"{prefix}_file_name", f"{optimised.stem}.weights")
            options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")
        with tempfile.TemporaryFile() as log:
            try:
                with _errors_to(log.fileno()):
                    session = self._module.InferenceSession(
                        str(self.path), options, providers=["CPUExecutionProvider"], disabled_optimizers=[*disable]
                    )
            except Exception as error:
                message = f"ONNX Runtime at level {level} refuses this model: {error}"
                raise InvalidModelError("BT-RUNNER-REFUSED", message, place=str(self.path)) from None
            log.seek(0)
            text = log.read().decode(errors="replace")
        return session, tuple(dict.fromkeys(_MODIFIED.findall(text)))


def _change(optimiser: _Optimiser, before: str, level: str, found: Mapping[str, _Outcome]) -> dict[str, Any]:
    """What changes the bytes from one level to another."""
    goal = found[before]
    candidates = _candidates(optimiser, level, goal.passes)

    def restores(disable: list[str]) -> bool:
        return optimiser.outcome(level, disable).same_as(goal)

    # Rules of one pass count one by one where the pass is needed.
    responsible = smallest(candidates, restores)
    for pass_name, rules in _RULES.items():
        if responsible and pass_name in responsible:
            others = [name for name in responsible if name != pass_name]
            chosen = smallest(rules, lambda part, others=others: restores([*others, *part]))  # type: ignore[misc]
            responsible = [*others, *chosen] if chosen else responsible
    responsible = responsible or []

    def changes_alone(name: str) -> bool:
        rest = [other for other in {**dict.fromkeys(candidates), **dict.fromkeys(responsible)} if other != name]
        holder = next((group for group, rules in _RULES.items() if name in rules and group in rest), None)
        if holder is not None:
            # The pass that holds this rule stays, without its other rules.
            rest = [*(other for other in rest if other != holder), *(rule for rule in _RULES[holder] if rule != name)]
        outcome = optimiser.outcome(level, rest)
        return not outcome.refused and not outcome.same_as(goal)

    removed, added = _node_changes(optimiser, level, responsible) if responsible else ([], [])
    return {
        "before": before,
        "level": level,
        "passes": responsible,
        "alone": [name for name in (responsible or candidates) if changes_alone(name)],
        "removed": removed,
        "added": added,
        "tensor": _first_tensor(optimiser, level, responsible) if responsible else "",
        "spec": f"ort:{optimiser.path}?level={level}&disable={','.join(responsible)}" if responsible else "",
    }


def _candidates(optimiser: _Optimiser, level: str, earlier: Sequence[str]) -> list[str]:
    """Passes that change the graph at `level`, and those that do once others are disabled.

    Those that are not of the level before come first: they are the likely ones.
    """
    found: dict[str, None] = {}
    while True:
        more = [name for name in optimiser.outcome(level, list(found)).passes if name not in found]
        if not more:
            return sorted(found, key=lambda name: name in earlier)
        # Passes that run in spite of being disabled would come again and again; `found` holds them already.
        found.update(dict.fromkeys(more))


def _node_changes(
    optimiser: _Optimiser, level: str, responsible: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes that the responsible passes take away, and those that they put there."""
    without, with_them = optimiser.nodes(level, responsible), optimiser.nodes(level, ())
    old, new = ({_node_key(node): node for node in nodes} for nodes in (without, with_them))
    removed = [_node_entry(node) for key, node in old.items() if key not in new]
    return removed, [_node_entry(node) for key, node in new.items() if key not in old]


def _node_key(node: Any) -> tuple[Any, ...]:
    return node.domain, node.op_type, tuple(node.input), tuple(node.output)


def _node_entry(node: Any) -> dict[str, Any]:
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return {"operator": f"{domain}{node.op_type}", "name": node.name, "outputs": list(node.output)}


def _first_tensor(optimiser: _Optimiser, level: str, responsible: Sequence[str]) -> str:
    """The first tensor, in execution order without the responsible passes, that differs with them."""
    path = optimiser.path
    model = load(path)
    settings = [Settings(level, tuple(off), integers=optimiser.integers) for off in (responsible, ())]
    sides = [OnnxRuntime(str(path), path, model, one) for one in settings]
    for values in optimiser.inputs:
        one, two = (side.record(values) for side in sides)
        for tensor in (t for t in one if t.name in two and t.name not in one.inputs):
            if not _same(tensor.load(), two[tensor.name].load()):
                return tensor.name
    return ""


def _nodes_text(nodes: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(node["operator"] for node in nodes)
    named = [str(node["name"] or ", ".join(node["outputs"])) for node in nodes]
    shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
    return ", ".join(f"{count} {operator}" for operator, count in counts.items()) + f" ({shown})"


def _verdict(changes: Sequence[Mapping[str, Any]]) -> str:
    if not changes:
        return "no level of the optimiser changes a bit of the outputs"
    parts = []
    for change in changes:
        by = ", ".join(change["passes"]) or "no pass that can be disabled"
        parts.append(f"level {change['level']} changes the bits that level {change['before']} gives: {by}")
    return "; ".join(parts)


def _count(one: _Outcome, two: _Outcome) -> tuple[int, int]:
    """(elements of the outputs, how many of them have other bytes)."""
    elements = differing = 0
    for first, second in zip(one.outputs, two.outputs, strict=False):
        for name, value in first.items():
            elements += value.size
            other = second.get(name)
            if other is None or other.dtype != value.dtype or other.shape != value.shape:
                differing += max(1, value.size)
            elif value.dtype.hasobject:
                differing += int((value != other).sum())
            else:
                size = value.dtype.itemsize
                pair = [np.ascontiguousarray(v).reshape(-1).view(np.uint8).reshape(-1, size) for v in (value, other)]
                differing += int((pair[0] != pair[1]).any(axis=1).sum())
    return elements, differing


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


@contextmanager
def _errors_to(descriptor: int) -> Iterator[None]:
    """Standard error of everything in this process, compiled code too, goes to an open file."""
    saved = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
