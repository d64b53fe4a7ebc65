"""The onnx suite: what each case is for ONNX Runtime, and that cases tell apart what they are aimed at."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import onnx
import pytest

import bittrue
from bittrue.conformance.expected import Expected, same_bytes
from bittrue.conformance.suite import AIMS, find_suite
from bittrue.conformance.suite.onnx_aiming import Scales, accumulators, aimed_sums, rescalings
from support.onnx_models import Refused, needs_wide
from support.onnx_narrow import run_memory

SUITE = find_suite("onnx")
OPERATORS = tuple(SUITE.generators())
NUMERICS = ("onnxruntime", "onnx", "onnxruntime-avx2")
# Elements that numerics tell apart in aimed cases of the default types, where one element is the least.
APART = {
    "QLinearConv": ("onnx", 100),
    "QLinearMatMul": ("onnx", 20),
    "QLinearAdd": ("onnx", 200),
    "QLinearMul": ("onnx", 50),
    "QLinearAveragePool": ("onnx", 100),
    "QLinearGlobalAveragePool": ("onnx", 5),
    "QLinearConcat": ("onnx", 50),
    "QLinearLeakyRelu": ("onnx", 20),
    "QLinearSoftmax": ("onnx", 10),
    "QDQ Conv": ("onnxruntime-avx2", 20),
    "QGemm": ("onnxruntime-avx2", 20),
    "MatMulInteger": ("onnxruntime-avx2", 100),
}


@pytest.mark.in_turns(3)
@needs_wide
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_case_gives_the_bytes_of_onnx_runtime(operator: str) -> None:
    apart: Counter[str] = Counter()
    aims: set[str] = set()
    for case in SUITE.cases([operator]):
        assert case.aim in AIMS
        aims.add(case.aim)
        model = onnx.load_from_string(case.content)
        theirs = run_memory(case.content, [case.inputs[port.name] for port in model.graph.input])
        if case.rejects:
            assert isinstance(theirs, Refused), f"{case.identity} is not refused: {case.rejects}"
            continue
        assert not isinstance(theirs, Refused), f"{case.identity}: {theirs.message}"
        if all(node.domain == "" for node in model.graph.node):
            # com.microsoft's operators are unknown to ONNX's own checker.
            onnx.checker.check_model(model, full_check=True)
        expected = Expected(case, NUMERICS)
        assert same_bytes(expected.outputs("onnxruntime"), theirs), case.identity
        ports = {port.name: port.type.tensor_type.shape.dim for port in model.graph.output}
        assert {name: tuple(d.dim_value for d in dims) for name, dims in ports.items()} == {
            name: value.shape for name, value in theirs.items()
        }, case.identity
        for name in NUMERICS[1:]:
            if name not in expected.refusals and case.aim != "random":
                other = expected.outputs(name)
                apart[name] += sum(int((other[port] != value).sum()) for port, value in theirs.items())
    assert "rejects" in aims
    assert "random" in aims
    if operator in APART:
        name, least = APART[operator]
        assert apart[name] >= least, f"{operator}: {apart[name]} elements tell {name} apart"


@pytest.mark.parametrize(
    "types", ["s16", "u16", "s32", "s4", "u4", "u8u8", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]
)
def test_other_types_give_the_bytes_of_onnx_runtime(types: str) -> None:
    # Layers of u8 by u8 differ from the others in their numbers alone: two stand for all.
    operators = ["QLinearConv", "MatMulInteger"] if types == "u8u8" else []
    count = 0
    for case in SUITE.cases(operators, [types]):
        if case.rejects:
            continue
        model = onnx.load_from_string(case.content)
        theirs = run_memory(case.content, [case.inputs[port.name] for port in model.graph.input])
        assert not isinstance(theirs, Refused), f"{case.identity}: {theirs.message}"
        assert same_bytes(case.model.prepare("onnxruntime").run(dict(case.inputs)), theirs), case.identity
        count += 1
    assert count >= 5


@pytest.mark.usefixtures("made_anew")
def test_two_runs_make_the_same_bytes() -> None:
    def digest() -> str:
        found = hashlib.sha256()
        for case in SUITE.cases(["QLinearMatMul", "QuantizeLinear", "QLinearSoftmax"], ["u8"]):
            found.update(f"{case.identity} {case.sha256}".encode())
        return found.hexdigest()

    assert digest() == digest()


def test_identities_are_plain_paths() -> None:
    found = [case.identity for case in SUITE.cases(["QDQ Concat", "QLinearSoftmax"])]
    assert len(set(found)) == len(found)
    assert all(" " not in identity and identity.count("/") == 3 for identity in found)
    assert found[0] == "QDQ-Concat/s8/ties/000"


def test_types_that_are_made_by_default() -> None:
    assert {case.types for case in SUITE.cases(["MatMulInteger", "QuantizeLinear"])} == {"s8", "u8"}
    assert {case.types for case in SUITE.cases(["MatMulInteger"], ())} == {"s8", "u8", "u8u8"}
    with pytest.raises(bittrue.BittrueError, match="has no type 's5'"):
        list(SUITE.cases(types=["s5"]))


def test_a_tie_is_among_the_chosen_accumulators() -> None:
    scales = Scales(0.5, 0.25, 1.0, 3, -128, 127)
    chosen = accumulators(scales, -1000, 1000, 60, np.random.default_rng(1))
    real = chosen * 0.125
    assert (np.abs(real - np.rint(real)) == 0.5).sum() >= 10
    answers = rescalings(scales, chosen)
    even, up = answers[0], np.clip(np.floor(real + 0.5) + 3, -128, 127)
    assert (even != up).sum() >= 3


def test_chosen_sums_are_hit_exactly() -> None:
    wanted = np.arange(-50, 50, 10)
    sums = aimed_sums(
        10, 3, 4, (-100, 155), (-127, 127), lambda *_: wanted, np.random.default_rng(2), middle=lambda channel: 7
    )
    assert (sums.acc == wanted[:, None]).all()
    assert (sums.x @ sums.w.T + sums.bias == sums.acc).all()
    assert sums.x.min() >= -100
    assert sums.x.max() <= 155
