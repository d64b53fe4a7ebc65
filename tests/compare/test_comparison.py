"""Whole comparisons: planted differences with known statistics, models against plain NumPy, results as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.compare.inputs import Given
from bittrue.compare.result import CompareResult
from bittrue.errors import InputError, UnsupportedError
from bittrue.numerics import find as find_numerics
from bittrue.runners.base import Runner
from bittrue.runners.ours import Ours
from bittrue.runners.recording import Recording
from support.recordings import Shown, Tensor, recording
from support.shared import needs_shared, shared_models

# The runtime has no defined result.
REFUSED = {"tflm_keyword_scrambled_8bit": "BT-UNDEFINED"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


def trace_of(path: Path, numerics: str, seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    session = bittrue.load(path).prepare(numerics, executor="reference")
    port = session.inputs[0]
    x = np.random.default_rng(seed).integers(-128, 127, port.shape, dtype=port.dtype, endpoint=True)
    return {port.name: x}, session.trace({port.name: x})


def test_planted_differences_have_exactly_their_statistics() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(-100, 100, (1, 4, 5, 3)).astype(np.int8)
    runs = []
    for run in range(2):
        second = first.copy()
        second[0, 1, 2, 0] += 3
        second[0, 1, 3, run] -= 1
        runs.append((recording({"x": first, "y": first}), recording({"x": first, "y": second})))
    result = bittrue.compare_models(Shown(*(a for a, _ in runs)), Shown(*(b for _, b in runs)))
    x, y = result.pairs
    assert x.cumulative.equal
    assert not result.equal
    assert result.first == y
    assert (y.cumulative.elements, y.cumulative.differing, y.cumulative.largest) == (120, 4, 3.0)
    assert y.cumulative.histogram == {"-1": 2, "3": 2}
    assert y.cumulative.bias == 4 / 120
    assert y.cumulative.worst is not None
    assert y.cumulative.worst.element == (0, 1, 2, 0)
    assert y.cumulative.worst.b - y.cumulative.worst.a == 3
    assert y.cumulative.per_channel == (3 / 40, 1 / 40, 0)
    assert (y.cumulative.plane[1][2], y.cumulative.plane[1][3]) == (2 / 6, 2 / 6)
    assert y.isolated is None
    assert any("neither side" in note for note in result.notes)
    assert result.host == ""


@needs_shared
@pytest.mark.parametrize("path", shared_models(), ids=lambda p: p.stem)
def test_shared_models_against_plain_numpy(path: Path) -> None:
    """Cumulative figures are those of two traces; isolated ones are 0 wherever nothing arises."""
    if path.stem.startswith(("inception", "coral_deeplab")):
        pytest.skip("large; the models with fewer layers take the same way")
    if path.stem in REFUSED:
        for run in (
            lambda: bittrue.load(path).prepare("litert"),
            lambda: bittrue.compare_models(path, f"{path}@xnnpack"),
        ):
            with pytest.raises(UnsupportedError, match=REFUSED[path.stem]):
                run()
        return
    result = bittrue.compare_models(str(path), f"{path}@xnnpack", seeds=(3,), explain=False)
    sessions = [bittrue.load(path).prepare(numerics) for numerics in ("litert", "xnnpack")]
    rng = np.random.default_rng(3)
    inputs = {}
    for port in sessions[0].inputs:
        if port.dtype.kind == "f":
            inputs[port.name] = rng.standard_normal(port.shape).astype(port.dtype)
        else:
            low, high = np.iinfo(port.dtype).min, np.iinfo(port.dtype).max
            inputs[port.name] = rng.integers(low, high, port.shape, dtype=port.dtype, endpoint=True)
    ours, theirs = (session.trace(inputs) for session in sessions)
    assert [p.a for p in result.pairs if p.a in ours] == [name for name in ours if name in theirs]
    for pair in result.pairs:
        a, b = ours[pair.a], theirs[pair.b]
        changed = a.view(np.uint8) != b.view(np.uint8) if a.dtype.kind == "f" else a != b
        if a.dtype.kind == "f":
            changed = changed.reshape(*a.shape, -1).any(-1)
        assert pair.cumulative.differing == int(changed.sum()), pair.a
        if a.dtype.kind in "iu" and changed.any():
            apart = b.astype(np.int64) - a.astype(np.int64)
            assert pair.cumulative.largest == np.abs(apart).max()
            assert pair.cumulative.bias == pytest.approx(apart.mean(), abs=1e-12)
        if pair.isolated is not None:
            assert pair.isolated.elements == a.size
    assert CompareResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_isolated_differences_arise_where_the_arithmetics_differ(demo: Path) -> None:
    """B's tensor against A's operator on B's inputs, from the public pieces."""
    result = bittrue.compare_models(str(demo), f"{demo}@xnnpack", seeds=range(20), explain=False)
    assert not result.equal
    assert result.host == "A"
    apart = [p for p in result.pairs if p.isolated is not None and not p.isolated.equal]
    assert apart
    assert {p.operator for p in apart} <= {"conv", "fully_connected", "softmax"}
    inherited = [p for p in result.pairs if p.operator in ("reshape", "average_pool")]
    assert inherited
    assert all(p.isolated is not None and p.isolated.equal for p in inherited)


def test_first_isolated_difference_is_the_cumulative_one(demo: Path) -> None:
    result = bittrue.compare_models(str(demo), f"{demo}@xnnpack", seeds=range(20), explain=False)
    first = result.first
    assert first is not None
    assert first.isolated == first.cumulative


def test_verdict_and_replay_of_the_first_difference(demo: Path) -> None:
    given = [Given(seed=k, options=f"--seed {k}") for k in range(20)]
    result = bittrue.compare_models(str(demo), f"{demo}@xnnpack", given)
    verdict = next(p.verdict for p in result.pairs if p.verdict is not None)
    assert verdict.exact
    assert verdict.benign
    assert result.unexplained == 0
    number = verdict.witness["input_set"]
    assert verdict.command.startswith(f"bittrue explain {demo} --seed {number} --tensor ")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_trace_is_explained_by_the_other_sides_graph(demo: Path, swapped: bool) -> None:
    found = [trace_of(demo, "xnnpack", seed) for seed in range(20)]
    shown = Shown(*(recording(trace, tuple(inputs)) for inputs, trace in found))
    sides = (str(demo), shown) if swapped else (shown, str(demo))
    result = bittrue.compare_models(*sides, explain=False)
    assert result.host == ("A" if swapped else "B")
    direct = bittrue.compare_models(str(demo), f"{demo}@xnnpack", [inputs for inputs, _ in found], explain=False)
    assert [p.a for p in result.pairs] == [p.a for p in direct.pairs]
    sign = 1 if swapped else -1
    for pair, expected in zip(result.pairs, direct.pairs, strict=True):
        assert pair.cumulative.differing == expected.cumulative.differing
        assert (pair.isolated is None) == (expected.isolated is None)
        if pair.isolated is not None and expected.isolated is not None:
            assert pair.isolated.differing == expected.isolated.differing
            assert (pair.isolated.bias or 0) == sign * (expected.isolated.bias or 0)


def test_a_planted_difference_is_isolated_where_it_was_planted(demo: Path) -> None:
    inputs, trace = trace_of(demo, "litert")
    names = [name for name, value in trace.items() if value.ndim == 4 and name not in inputs]
    target = names[1]
    planted = trace[target].copy()
    planted[0, 1, 1, 0] ^= 1
    changed = {**trace, target: planted}
    result = bittrue.compare_models(str(demo), Shown(recording(changed, tuple(inputs))), explain=False)
    differing = {p.a: p.isolated.differing for p in result.pairs if p.isolated is not None and not p.isolated.equal}
    assert differing[target] == 1
    assert result.first is not None
    assert result.first.a == target
    assert result.first.cumulative.differing == 1


class Mislabelled(Runner):
    """Another runtime, of which bittrue believes the wrong numerics."""

    def __init__(self, path: Path, believed: str, true: str) -> None:
        self.inner = Ours(str(path), path, bittrue.load(path), true)
        self.spec, self.title, self.path, self.format = str(path), "mislabelled", path, "tflite"
        self.model, self.inputs, self.arithmetic = self.inner.model, self.inner.inputs, find_numerics(believed)

    def record(self, inputs: Any, progress: Any = None) -> Recording:
        return self.inner.record(inputs, progress)


def test_a_runtime_that_is_not_reproduced_says_so(demo: Path) -> None:
    """Nothing is said of operators whose inputs differ, and nothing is explained."""
    result = bittrue.compare_models(Mislabelled(demo, "litert", "xnnpack"), str(demo), seeds=range(20))
    found = [p for p in result.pairs if "A itself is not reproduced here by numerics litert" in p.note]
    assert found
    assert all(p.verdict is None for p in found)
    first = found[0]
    assert first.isolated == first.cumulative
    assert any(p.isolated is None for p in found[1:])
    proven = bittrue.compare_models(Mislabelled(demo, "xnnpack", "xnnpack"), str(demo), seeds=range(20), explain=False)
    assert all(p.isolated is not None for p in proven.pairs if p.node is not None)
    assert not any("not reproduced" in p.note for p in proven.pairs)


def test_amplified_difference_is_that_of_a_run_with_the_difference_put_in(demo: Path) -> None:
    result = bittrue.compare_models(str(demo), f"{demo}@xnnpack", seeds=range(20), explain=False, amplify=True)
    (found,) = result.amplification
    first = next(p for p in result.pairs if p.isolated is not None and not p.isolated.equal)
    assert found.tensor == first.a
    names = [p.a for p in result.pairs]
    assert [name for name, _ in found.reached] == names[names.index(first.a) + 1 :]
    assert len(found.labels) == 20
    # The first one behind it, from the public pieces: its cumulative difference, where nothing else differs.
    outputs = [p for p in result.pairs if p.is_output]
    assert set(found.outputs) == {p.a for p in outputs}


def test_amplified_from_a_named_tensor(demo: Path) -> None:
    """A planted difference with equal inputs: what is behind is A's arithmetic on B's tensor."""
    inputs, trace = trace_of(demo, "litert")
    target = next(name for name, value in trace.items() if value.ndim == 4 and name not in inputs)
    planted = {**trace, target: np.clip(trace[target].astype(np.int64) + 9, -128, 127).astype(np.int8)}
    result = bittrue.compare_models(str(demo), Shown(recording(planted, tuple(inputs))), explain=False, amplify=target)
    (found,) = result.amplification
    assert found.tensor == target
    assert found.reached[0][1] > 0
    with pytest.raises(InputError, match="no tensor of A"):
        bittrue.compare_models(str(demo), Shown(recording(planted, tuple(inputs))), explain=False, amplify="nix")


def test_nothing_in_common_is_not_equal() -> None:
    result = bittrue.compare_models(
        Shown(recording({"x": np.zeros(3, np.int8)})), Shown(recording({"y": np.zeros(4, np.int8)}))
    )
    assert result.pairs == ()
    assert not result.equal
    assert any("nothing is compared" in note for note in result.notes)
    assert (result.unmatched_a, result.unmatched_b) == (("x",), ("y",))


def test_what_cannot_be_compared_is_not_equal() -> None:
    result = bittrue.compare_models(
        Shown(recording({"x": np.zeros(3, np.int8)})), Shown(recording({"x": np.zeros(3, np.float32)}))
    )
    assert not result.equal
    assert result.pairs[0].note.startswith("cannot be compared")


def test_recordings_that_do_not_fit_each_other() -> None:
    """Runs of different shapes, missing tensors, different numbers of runs: said, never a traceback."""
    x = np.arange(6, dtype=np.int8)
    a = Shown(recording({"x": x, "y": x}), recording({"x": x}), recording({"x": x}))
    b = Shown(recording({"x": x, "y": x}), recording({"x": x[:3], "y": x}))
    result = bittrue.compare_models(a, b)
    assert [p.cumulative.elements for p in result.pairs] == [6, 6]
    assert any("A holds 3 runs, B 2" in note for note in result.notes)
    assert any("in run 1: not compared" in note for note in result.notes)


def test_a_trace_without_its_inputs_needs_them(demo: Path) -> None:
    inputs, trace = trace_of(demo, "litert")
    cut = {name: value for name, value in trace.items() if name not in inputs}
    with pytest.raises(InputError, match="does not hold input"):
        bittrue.compare_models(str(demo), Shown(recording(cut)))
    assert bittrue.compare_models(str(demo), Shown(recording(cut)), inputs).equal


def test_inputs_in_the_other_sides_type_and_layout(demo: Path) -> None:
    inputs, trace = trace_of(demo, "litert")
    (name,) = inputs
    port = bittrue.load(demo).prepare("litert").inputs[0]
    real = bittrue.dequantize(inputs[name], port.scale, port.zero_point)
    for value in (real, np.ascontiguousarray(real.transpose(0, 3, 1, 2)), inputs[name].view(np.uint8) ^ np.uint8(128)):
        scale, zero = (None, 0) if value.dtype == np.float32 else (port.scale, port.zero_point + 128)
        shown = {**trace, name: Tensor(value, scale, zero)}
        result = bittrue.compare_models(str(demo), Shown(recording(shown, (name,))), explain=False)
        assert result.equal, result.pairs[0]


def test_unknown_inputs_are_named(demo: Path) -> None:
    with pytest.raises(InputError, match="'nix' is no input of either side"):
        bittrue.compare_models(str(demo), str(demo), {"nix": np.zeros(3)})
    with pytest.raises(InputError, match="no run is asked for"):
        bittrue.compare_models(str(demo), str(demo), seeds=())


def damaged(text: str, rng: np.random.Generator) -> Any:
    """One value somewhere in it is replaced or taken out."""
    data = json.loads(text)
    place: Any = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return data
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.85:
            place = place[key]
            continue
        if rng.random() < 0.3:
            del place[key]
        else:
            place[key] = [None, 7, -1.5, "text", [], {}, [[1]], True, "nan"][int(rng.integers(9))]
        return data


def refusal(data: Any) -> InputError | None:
    try:
        CompareResult.from_dict(data, "result.json")
    except InputError as error:
        return error
    return None


def test_damaged_results_are_typed_errors(demo: Path) -> None:
    whole = bittrue.compare_models(str(demo), f"{demo}@xnnpack", seeds=range(4), amplify=True).to_dict()
    assert CompareResult.from_dict(whole).to_dict() == whole
    rng = np.random.default_rng(5)
    text = json.dumps(whole)
    refused = [error for _ in range(80) if (error := refusal(damaged(text, rng))) is not None]
    assert len(refused) > 20
    assert {error.code for error in refused} == {"BT-RESULT"}
    assert all(error.place.startswith("result.json") for error in refused)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for other in (None, [], "text", {}, {"format": "bittrue-check-1"}, {**whole, "pairs": deep}):
        with pytest.raises(InputError, match="BT-RESULT"):
            CompareResult.from_dict(other)


def test_results_are_json_even_with_numbers_that_are_none() -> None:
    a = recording({"x": np.float32([1, np.nan, 2]), "y": np.float32([np.inf, 1])})
    b = recording({"x": np.float32([1, 1, 3]), "y": np.float32([1, 1])})
    result = bittrue.compare_models(Shown(a), Shown(b))
    text = json.dumps(result.to_dict(), allow_nan=False)
    again = CompareResult.from_dict(json.loads(text))
    assert again.to_dict() == result.to_dict()
    assert again.pairs[1].cumulative.worst is not None
    assert again.pairs[1].cumulative.worst.a == np.inf
