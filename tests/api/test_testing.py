"""`bittrue.testing.assert_bit_equal`: what passes, what fails, and what the failure says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bittrue
from bittrue.testing import assert_bit_equal


def failure(*arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_bit_equal(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        np.int8([1, -2]),
        np.float32([0.0, np.nan, -np.inf]),
        np.zeros((0, 3), np.uint8),
        np.array(3, np.int32),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.arange(12, dtype=np.int16).reshape(3, 4).T,
        {"a": np.int8([1]), "b": [np.float32(2), np.bool_(True)]},
        [np.int8([1]), (np.int8([2]), np.complex64([1j]))],
        5,
    ],
)
def test_equal_values_pass(value: Any) -> None:
    assert_bit_equal(value, value)


def test_layout_in_memory_does_not_matter() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert_bit_equal(np.asfortranarray(x), x)
    assert "1 of 12" in failure(np.asfortranarray(x) + (x == 5), x)


def test_zeros_and_payloads_are_told_apart() -> None:
    assert "expected 0.0 (0x00000000), got -0.0 (0x80000000)" in failure(np.float32([-0.0]), np.float32([0.0]))
    quiet, other = np.uint32([0x7FC00000]).view(np.float32), np.uint32([0x7FC00001]).view(np.float32)
    assert_bit_equal(quiet, quiet.copy())
    text = failure(other, quiet)
    assert "0x7fc00001" in text
    assert "not finite: 1" in text


@pytest.mark.parametrize(
    ("actual", "expected", "says"),
    [
        (np.int8([1]), np.uint8([1]), ["types or shapes differ", "expected uint8 [1]", "int8 [1]"]),
        (np.int8([[1]]), np.int8([1]), ["expected int8 [1]", "int8 [1, 1]"]),
        (np.int16([1]).astype(">i2"), np.int16([1]), [">i2"]),
        ({"a": np.int8(1)}, {"b": np.int8(1)}, ["missing: 'b'; not expected: 'a'"]),
        ([np.int8(1)], [np.int8(1), np.int8(1)], ["expected 2 arrays, got 1"]),
        ({"a": np.int8(1)}, np.int8([1]), ["expected ndarray, got a mapping of 1 arrays"]),
    ],
)
def test_structure(actual: Any, expected: Any, says: list[str]) -> None:
    text = failure(actual, expected)
    for part in says:
        assert part in text


def test_figures() -> None:
    expected = np.zeros((2, 3, 4), np.int8)
    actual = expected.copy()
    actual[0, 1, 2], actual[1, 0, 0], actual[1, 2, 3] = 1, -7, 1
    text = failure(actual, expected, name="y")
    assert text.splitlines() == [
        "tensor 'y': 3 of 24 elements differ (12.5 %), int8 [2, 3, 4]",
        "  first:     element [0, 1, 2]: expected 0, got 1 (+1)",
        "  largest:   7, at element [1, 0, 0]",
        "  histogram: -7: 1, +1: 2  (got - expected)",
        "  bias:      -0.208333333 (mean of got - expected over all elements)",
    ]


def test_many_differences_are_summed_up() -> None:
    text = failure(np.arange(-100, 100, dtype=np.int16), np.zeros(200, np.int16))
    assert "199 of 200" in text
    assert ", other: 190" in text


def test_64_bit_integers_lie_further_apart_than_64_bits_say() -> None:
    text = failure(np.array([2**63 - 1]), np.array([-(2**63)]))
    assert f"largest:   {2**64 - 1}" in text
    assert f"(+{2**64 - 1})" in text


def test_real_numbers() -> None:
    text = failure(np.float32([1.5, 2, 3]), np.float32([1, 2.25, 3]))
    assert "largest:   0.5, at element [0]" in text
    assert "< 0: 1, > 0: 1" in text
    assert "bias:      +0.0833333333" in text
    text = failure(np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 3], ml_dtypes.bfloat16))
    assert "1 of 2" in text
    assert "largest:   1" in text
    assert "first:     element [0]" in failure(np.complex64([1 + 1j]), np.complex64([1]))


def test_several_arrays_name_all_that_differ() -> None:
    expected = {"a": np.int8([1]), "b": np.int8([1]), "c": [np.int8([1])]}
    text = failure({"a": np.int8([1]), "b": np.int8([2]), "c": [np.int8([3])]}, expected)
    assert text.startswith("2 of 3 arrays differ: 'b', 'c[0]'; the first:\ntensor 'b': 1 of 1")


def test_no_numbers() -> None:
    with pytest.raises(bittrue.InputError, match="BT-ARRAY"):
        assert_bit_equal(object(), np.int8(1))
    with pytest.raises(bittrue.InputError, match="actual y"):
        assert_bit_equal({"y": object()}, {"y": 1})


def test_session_needs_inputs() -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    with pytest.raises(bittrue.InputError, match="inputs="):
        assert_bit_equal(np.int8(1), np.int8(1), session=session)


def test_session_works_out_the_first_element() -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    inputs = {session.inputs[0].name: np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1), np.int8)}
    trace = session.trace(inputs)
    name = next(t.name for t in (session.plan.tensors[i] for i in session.plan.steps[0].outputs))
    wrong = trace[name].copy()
    wrong[0, 1, 2, 3] ^= 1
    given: dict[str, Any] = {"session": session, "inputs": inputs}
    text = failure({name: wrong}, {name: trace[name]}, **given, model="m.tflite", replay="-i x.npy")
    first = f"first:     element [0, 1, 2, 3]: expected {trace[name][0, 1, 2, 3]}, got {wrong[0, 1, 2, 3]}"
    for part in (first, "step 0: conv", "executor", "kernel", "accumulator", "multiplier", "exponent", "zero point"):
        assert part in text
    replay = text.splitlines()[-1]
    assert "bittrue explain m.tflite --tensor" in replay
    assert replay.endswith("--element 0,1,2,3 --numerics litert -i x.npy")
    # The verdict is on the side that is not the session's.
    other = bittrue.load(bittrue.demo_model()).prepare("single-rounding").trace(inputs)[name]
    for word, sides in (
        ("got", ({name: other}, {name: trace[name]})),
        ("expected", ({name: trace[name]}, {name: other})),
    ):
        lines = failure(*sides, **given, replay="-i x.npy").splitlines()
        assert lines[-2].startswith(f"  verdict on what was {word}: ")
        assert "explained by `rescale = " in lines[-2]
    assert "unexplained" in text
    # The only output needs no name.
    output = session.run(inputs)[session.outputs[0].name]
    assert "softmax" in failure(output ^ np.int8(1), output, session=session, inputs=inputs)
    assert "no tensor 'other'" in failure({"other": wrong}, {"other": trace[name]}, session=session, inputs=inputs)
    assert "types or shapes" in failure({name: wrong[0]}, {name: wrong}, session=session, inputs=inputs)


def test_import_takes_numpy_only() -> None:
    code = (
        "import sys; from bittrue.testing import assert_bit_equal; import numpy as np\n"
        "assert_bit_equal({'a': np.int8([1])}, {'a': np.int8([1])})\n"
        "try: assert_bit_equal(np.int8([1]), np.int8([2]))\n"
        "except AssertionError: pass\n"
        "strangers = {'click', 'rich', 'pytest', 'flatbuffers', 'ml_dtypes', 'jinja2', 'plotly'}\n"
        "print(sorted(strangers & {m.split('.')[0] for m in sys.modules}))\n"
        "print(sorted(m for m in sys.modules if m.startswith('bittrue')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['bittrue', 'bittrue.errors', 'bittrue.testing']"]
