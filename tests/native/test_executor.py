"""The native executor as a program sees it: choices, passes, threads, gaps, and plans that lie."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import bittrue
from bittrue.graph.types import data_type
from bittrue.plan.passes import PASSES, make_schedule
from support.build import G, T, chain, several, single
from support.differential import random_values
from support.native import needs_native, same
from support.shared import SHARED, needs_shared

pytestmark = needs_native


@pytest.fixture(scope="module")
def demo() -> bittrue.Model:
    return bittrue.load(bittrue.demo_model())


def feed_of(session: bittrue.Session, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_values(rng, port.dtype, port.shape) for port in session.inputs]


def test_auto_is_native(demo: bittrue.Model) -> None:
    session = demo.prepare()
    assert session.executor == "native"
    assert session.isa == bittrue.isas()[0]
    assert f"native executor, {session.isa}, 1 thread" in str(session.plan)
    assert "native executor" not in str(demo.prepare(executor="reference").plan)


@pytest.mark.parametrize("isa", bittrue.isas())
def test_isa_can_be_chosen(demo: bittrue.Model, isa: str) -> None:
    assert demo.prepare(isa=isa).isa == isa


def test_unknown_isa(demo: bittrue.Model) -> None:
    with pytest.raises(bittrue.InputError, match="portable") as caught:
        demo.prepare(isa="abacus")
    assert caught.value.code == "BT-ISA"


def test_environment_forces_an_isa() -> None:
    program = "import bittrue; print(bittrue.load(bittrue.demo_model()).prepare().isa)"

    def run(isa: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "BITTRUE_ISA": isa}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    assert run("portable").stdout.strip() == "portable"
    wrong = run("abacus")
    assert wrong.returncode != 0
    assert "BITTRUE_ISA" in wrong.stderr


def test_unknown_pass(demo: bittrue.Model) -> None:
    with pytest.raises(bittrue.InputError, match="identities") as caught:
        demo.prepare(passes=["no_such_pass"])
    assert caught.value.code == "BT-PASS"


@needs_shared
@pytest.mark.parametrize("name", ["coral_tf2_mobilenet_v2_1.0_224_ptq", "inception_v3_299_int8", "coral_split_concat"])
def test_passes_change_no_byte(name: str) -> None:
    model = bittrue.load(SHARED / "models" / f"{name}.tflite")
    plain = model.prepare(passes=[])
    feed = feed_of(plain)
    expected = plain.run(*feed)
    for chosen in ([], *([name] for name in PASSES), None):
        session = model.prepare(passes=chosen)
        for key, value in session.run(*feed).items():
            same(f"{key} with passes {chosen}", value, expected[key])
        # Traces show every tensor, whatever passes removed.
        assert list(session.trace(*feed)) == list(plain.trace(*feed))


@needs_shared
def test_passes_say_what_they_did() -> None:
    model = bittrue.load(SHARED / "models" / "inception_v3_299_int8.tflite")
    assert any("concatenations in place" in line for line in model.prepare().plan.execution)
    assert not any("concatenations" in line for line in model.prepare(passes=["identities"]).plan.execution)
    plan = model.prepare(executor="reference").plan
    assert len(make_schedule(plan).steps) < len(plan.steps)


@pytest.mark.parametrize("dtype", ["s8", "f32"])
def test_single_rows_that_are_joined_stay_dense(dtype: str) -> None:
    """Layers that write into one row need no dense row of their own: none of them falls back."""
    rng = np.random.default_rng(3)
    scale = None if dtype == "f32" else 0.5
    numpy = np.float32 if dtype == "f32" else np.int8
    source, joined, made, nodes = T(dtype, (1, 8), scale), T(dtype, (), scale), [], []
    for _ in range(2):
        made.append(T(dtype, (1, 4), scale))
        weights = T(dtype, (4, 8), scale, data=random_values(rng, np.dtype(numpy), (4, 8)))
        nodes.append(("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [source, weights], [made[-1]]))
    nodes.append(("CONCATENATION", ("ConcatenationOptions", {"axis": 1}), made, [joined]))
    model = bittrue.load(chain(nodes))
    session = model.prepare(executor="native")
    assert any("concatenations in place" in line for line in session.plan.execution)
    assert not any("reference" in line for line in session.plan.execution)
    feed = feed_of(session)
    (expected,) = model.prepare(executor="reference").run(*feed).values()
    (value,) = session.run(*feed).values()
    same("joined rows", value, expected)


def test_results_are_fresh_arrays(demo: bittrue.Model) -> None:
    session = demo.prepare()
    feed = feed_of(session)
    (first,) = session.run(*feed).values()
    kept = first.copy()
    first[...] = 0
    (second,) = session.run(*feed).values()
    same("second run", second, kept)


def _real_graphs() -> dict[str, G]:
    x, m, y, z = (T("f32", (2, 300)) for _ in range(4))
    flat, other = T("f32", (600,)), T("f32", (600,))
    shape = T("s32", (1,), data=np.int32([600]))
    joined = T("f32", (4, 300))
    relu, absolute = ("RELU", None, [x], [m]), ("ABS", ("AbsOptions", {}), [m], [y])
    return {
        "one step": G([relu]),
        "two steps": G([relu, absolute]),
        "result elsewhere named": G([relu, ("RESHAPE", None, [m, shape], [flat])]),
        "one memory for two results": G([relu, ("RESHAPE", None, [m, shape], [flat])], outputs=[m, flat]),
        "one result twice": G([relu], outputs=[m, m]),
        "input elsewhere named": G([("RESHAPE", None, [x, shape], [flat]), ("RELU", None, [flat], [other])]),
        "result read again": G([relu, absolute], outputs=[m, y]),
        "parts of a result": G(
            [
                relu,
                ("ABS", ("AbsOptions", {}), [x], [z]),
                ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [m, z], [joined]),
            ],
            outputs=[joined, z],
        ),
    }


@pytest.mark.parametrize("name", _real_graphs())
def test_steps_use_real_arrays_where_they_lie(name: str) -> None:
    """No input changes, no result has another's memory, whatever shares memory inside."""
    model = bittrue.load(several(_real_graphs()[name]))
    session, reference = model.prepare(), model.prepare(executor="reference")
    assert not session.missing
    rng = np.random.default_rng(3)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for offset in (0, 1, 4):
        memory = rng.standard_normal(700).astype(np.float32)
        x = memory[offset : offset + 600].reshape(2, 300)
        x.flags.writeable = False
        before = memory.copy()
        results = list(session.run(x).values())
        same("input", memory, before)
        kept += zip(results, reference.run(x).values(), strict=True)
        assert not any(np.shares_memory(value, x) for value in results)
    for i, (value, expected) in enumerate(kept):
        same("result", value, expected)
        assert not any(np.shares_memory(value, other) for other, _ in kept[:i])


def _integers(read_as_places: bool) -> bytes:
    """Sums, comparisons and choices of integers, and with them as places, if asked for."""
    a, b, total, least = (T("s64", (2, 300), name=name) for name in ("a", "b", "total", "least"))
    equal, chosen, real = T("bool", (2, 300)), T("s64", (2, 300)), T("f32", (2, 300))
    nodes = [
        ("ADD", ("AddOptions", {}), [a, b], [total]),
        ("MINIMUM", ("MaximumMinimumOptions", {}), [a, b], [least]),
        ("EQUAL", ("EqualOptions", {}), [a, b], [equal]),
        ("SELECT_V2", ("SelectV2Options", {}), [equal, total, a], [chosen]),
        ("CAST", ("CastOptions", {}), [b], [real]),
    ]
    outputs = [total, least, chosen, real]
    if read_as_places:
        table, picked = T("f32", (7,), data=np.arange(7, dtype=np.float32)), T("f32", (2, 300))
        nodes.append(("GATHER", ("GatherOptions", {}), [table, a], [picked]))
        outputs.append(picked)
    return several(G(nodes, inputs=[a, b], outputs=outputs))


@pytest.mark.parametrize("read_as_places", [False, True])
def test_steps_use_integers_where_they_lie(read_as_places: bool) -> None:
    model = bittrue.load(_integers(read_as_places))
    session, reference = model.prepare(), model.prepare(executor="reference")
    assert not session.missing
    rng = np.random.default_rng(5)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for offset in (0, 1, 2, 3):
        memory = rng.integers(0, 7, 1300)
        one, other = memory[offset : offset + 600].reshape(2, 300), memory[650:1250].reshape(2, 300)
        one.flags.writeable = False
        before = memory.copy()
        results = list(session.run(one, other).values())
        same("input", memory, before)
        kept += zip(results, reference.run(one, other).values(), strict=True)
        assert not any(np.shares_memory(value, memory) for value in results)
        if read_as_places:
            memory[700] = 7 + offset
            memory[offset + 5] = 7
            with pytest.raises(bittrue.RunError):
                session.run(one, other)
    for value, expected in kept:
        same("result", value, expected)


@pytest.mark.parametrize("kind", ["f16", "f64", "u8", "s64"])
def test_arrays_of_other_types_take_the_short_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is moved by Python, and the caller's arrays stay as they are."""
    x, y = T(kind, (3, 70)), T(kind, (70, 3))
    order = T("s32", (2,), data=np.int32([1, 0]))
    session = bittrue.load(several(G([("TRANSPOSE", ("TransposeOptions", {}), [x, order], [y])]))).prepare()
    assert not session.missing
    monkeypatch.delattr("bittrue.runtime.native._Program._run_with_gaps")
    given = np.arange(210).reshape(3, 70).astype(data_type(kind).numpy)
    before = given.copy()
    (result,) = session.run(given).values()
    same("result", result, np.ascontiguousarray(before.T))
    same("input", given, before)


def test_arrays_by_name_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x = T("f32", (1, 8), name="x")
    session = bittrue.load(single("ABS", None, [x], [T("f32", (1, 8))])).prepare()
    (name,) = [port.name for port in session.inputs]
    value = np.arange(-4, 4, dtype=np.float32).reshape(1, 8)
    with pytest.raises(bittrue.InputError, match="BT-INPUT-NAME"):
        session.run(**{name: value, "other": value})
    monkeypatch.delattr("bittrue.api.Session._run")
    (result,) = session.run(**{name: value}).values()
    same("result", result, np.abs(value))


def test_inputs_that_are_not_contiguous(demo: bittrue.Model) -> None:
    session = demo.prepare()
    (x,) = feed_of(session)
    turned = np.asfortranarray(x)
    (expected,) = session.run(x).values()

    class Named(np.ndarray):
        pass

    kinds = {
        "Fortran order": turned,
        "a class of its own": x.view(Named),
        "a dtype of its own": x.view(np.dtype(x.dtype, metadata={"of": "its own"})),
        "every other one": np.repeat(x, 2, axis=-1)[..., ::2],
    }
    for kind, array in kinds.items():
        (got,) = session.run(array).values()
        same(kind, got, expected)


def test_several_sessions_in_several_threads(demo: bittrue.Model) -> None:
    reference = demo.prepare(executor="reference")
    feeds = [feed_of(reference, seed) for seed in range(8)]
    expected = [next(iter(reference.run(*feed).values())) for feed in feeds]
    shared = demo.prepare(threads=2)
    wrong: list[str] = []

    def work(own: bittrue.Session, seed: int) -> None:
        for _ in range(50):
            for session in (own, shared):
                (got,) = session.run(*feeds[seed]).values()
                if got.tobytes() != expected[seed].tobytes():
                    wrong.append(f"seed {seed}")

    workers = [threading.Thread(target=work, args=(demo.prepare(threads=1 + s % 2), s)) for s in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_more_threads_than_processors(demo: bittrue.Model) -> None:
    reference, many = demo.prepare(executor="reference"), demo.prepare(threads=16)
    feed = feed_of(reference)
    for key, value in many.run(*feed).items():
        same(key, value, reference.run(*feed)[key])


def test_threads_sleep_where_nothing_is_shared() -> None:
    """A second thread that waits by spinning takes as much processor time as the first one."""
    session = bittrue.load(single("ABS", None, [T("f32", (1, 8))], [T("f32", (1, 8))])).prepare(threads=2)
    x = np.ones((1, 8), np.float32)
    for _ in range(200):
        session.run(x)
    all_threads, own = time.process_time(), time.thread_time()
    while time.thread_time() - own < 0.4:
        for _ in range(1000):
            session.run(x)
    all_threads, own = time.process_time() - all_threads, time.thread_time() - own
    assert all_threads < 1.01 * own


def test_progress_reaches_the_end(demo: bittrue.Model) -> None:
    session = demo.prepare()
    seen: list[int] = []
    session.run(*feed_of(session), progress=seen.append)
    assert seen == list(range(len(session.plan.steps)))


def test_profile_names_kernels(demo: bittrue.Model) -> None:
    session = demo.prepare()
    profile = session.profile(*feed_of(session), rounds=3)
    assert profile.executor == "native"
    assert profile.isa == session.isa
    assert any("matmul" in step.note for step in profile.steps)
    assert all(step.seconds > 0 for step in profile.steps)


LIES = {
    "pad_top": 10**9,
    "stride_w": 3,
    "filter_h": 50,
    "out_w": 10**6,
    "input_zero_point": 4000,
    "output_zero_point": 2**40,
    "dilation_h": 10**7,
}


@pytest.mark.parametrize("name", sorted(LIES))
def test_plans_that_lie_are_not_run_natively(demo: bittrue.Model, name: str) -> None:
    """Numbers that do not fit the tensors leave the step to the reference; others must give the reference's bytes."""
    plan = demo.prepare(executor="reference").plan
    position = next(i for i, step in enumerate(plan.steps) if step.operator == "conv")
    step = replace(plan.steps[position], parameters={**plan.steps[position].parameters, name: LIES[name]})
    steps = (*plan.steps[:position], step, *plan.steps[position + 1 :])
    session = bittrue.Session(replace(plan, steps=steps), executor="native")
    if position in session.missing:
        return
    reference = bittrue.Session(replace(plan, steps=steps), executor="reference")
    feed = feed_of(session)
    for key, value in reference.run(*feed).items():
        same(key, session.run(*feed)[key], value)


def test_integers_that_64_bits_with_a_sign_cannot_hold_are_no_kernels(demo: bittrue.Model) -> None:
    plan = demo.prepare(executor="reference").plan
    for largest, missing in ((2**63 - 1, False), (2**63, True), (2**64 - 1, True)):
        multipliers = plan.steps[0].arrays["multiplier"].astype(np.uint64)
        multipliers[-1] = largest
        step = replace(plan.steps[0], arrays={**plan.steps[0].arrays, "multiplier": multipliers})
        session = bittrue.Session(replace(plan, steps=(step, *plan.steps[1:])), executor="native")
        assert ("does not fit 64 bits with a sign" in session.missing.get(0, "")) == missing


def test_gaps_run_on_the_reference() -> None:
    """A step without a native twin is done by the reference inside of the same run, and the plan says so."""
    # Large enough not to be folded; ZEROS_LIKE has no native twin.
    x, negated, zeros, out = (T("s32", (1 << 19,)) for _ in range(4))
    nodes = [
        ("NEG", None, [x], [negated]),
        ("ZEROS_LIKE", None, [negated], [zeros]),
        ("SUB", ("SubOptions", {}), [zeros, negated], [out], 3),
    ]
    session = bittrue.load(chain(nodes)).prepare()
    assert list(session.missing) == [1]
    assert any("step 1 ZEROS_LIKE runs on the reference" in line for line in session.plan.execution)
    values = np.arange(1 << 19, dtype=np.int32)
    same("0 - -x", next(iter(session.run(values).values())), values)
    notes = [step.note for step in session.profile(values, rounds=1).steps]
    assert [note.startswith("reference") for note in notes] == [False, True, False]


def test_variables_of_no_elements_are_kept_and_reset() -> None:
    state, x, y = T("f32", (0,), variable=True), T("f32", (0,)), T("f32", (0,))
    session = bittrue.load(single("ADD", ("AddOptions", {}), [state, x], [y])).prepare(executor="native")
    for _ in range(2):
        (value,) = session.run(np.zeros(0, np.float32)).values()
        assert value.shape == (0,)
        session.reset()


def test_values_without_a_result_are_explained_by_the_reference() -> None:
    """A kernel that meets them while running hands its step over; the error is the reference's own."""
    wide = T("s8", (1, 600), 1.0, 0)
    model = bittrue.load(
        single("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [wide], [T("s8", (1, 600), 1 / 256, -128)])
    )
    session = model.prepare()
    assert not session.missing
    apart = np.full((1, 600), -128, np.int8)
    apart[0, 0] = 127
    (value,) = session.run(apart).values()
    same("one peak", value, next(iter(model.prepare(executor="reference").run(apart).values())))
    for run in (session.run, session.trace, session.profile, model.prepare(executor="reference").run):
        with pytest.raises(bittrue.RunError) as caught:
            run(np.zeros((1, 600), np.int8))
        assert caught.value.code == "BT-SOFTMAX-SUM"
        assert "node 0 (SOFTMAX)" in str(caught.value)
    # The session is still in order.
    same("afterwards", next(iter(session.run(apart).values())), value)


@pytest.mark.parametrize(
    ("value", "shown", "folded"),
    [(0, False, True), (5, False, False), (None, False, False), (0, True, False)],
    ids=["zero", "other", "computed", "shown"],
)
def test_borders_of_zeros_are_folded_into_convolutions(value: int | None, shown: bool, folded: bool) -> None:
    """Unless the image with its border is a result of the model, too."""
    rng = np.random.default_rng(1)
    x, padded, y = T("s8", (1, 6, 6, 4), 0.5), T("s8", (1, 8, 7, 4), 0.5), T("s8", (1, 6, 5, 8), 9.0, 3)
    border = T("s32", (4, 2), data=np.int32([[0, 0], [1, 1], [0, 1], [0, 0]]))
    w = T("s8", (8, 3, 3, 4), 0.01, data=rng.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8))
    bias = T("s32", (8,), 0.005, data=rng.integers(-999, 999, 8).astype(np.int32))
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": 1}
    nodes = [
        (
            "PADV2",
            ("PadV2Options", {}),
            [x, border, T("s8", (), 0.5, data=None if value is None else np.int8(value))],
            [padded],
            2,
        ),
        ("CONV_2D", ("Conv2DOptions", options), [padded, w, bias], [y], 3),
    ]
    model = bittrue.load(several(G(nodes, outputs=[y, padded] if shown else [y])))
    reference, session = model.prepare(executor="reference"), model.prepare()
    assert any("padding folded" in line for line in session.plan.execution) == folded
    feed = feed_of(reference)
    expected, got = reference.run(*feed), session.run(*feed)
    for name in expected:
        same(name, got[name], expected[name])


@pytest.mark.parametrize("per_column", [True, False])
@pytest.mark.parametrize("padding", [0, 1], ids=["same", "valid"])
@pytest.mark.parametrize(
    ("columns", "channels", "stride", "width"), [(8, 3, 2, 12), (8, 8, 1, 8), (4, 1, 1, 10), (3, 2, 1, 9)]
)
def test_neighbours_of_few_columns(
    columns: int, channels: int, stride: int, width: int, padding: int, per_column: bool
) -> None:
    """Two pixels of a line may be one row of a product, with the columns of both."""
    rng = np.random.default_rng(columns + width)
    scales = [0.01 + 0.002 * n for n in range(columns)] if per_column else 0.01
    bias_scales = [0.5 * s for s in scales] if isinstance(scales, list) else 0.005
    lines, pixels = ((n + stride - 1) // stride if padding == 0 else (n - 3) // stride + 1 for n in (7, width))
    x, y = T("s8", (2, 7, width, channels), 0.5, 3), T("s8", (2, lines, pixels, columns), 1.5, 3)
    w = T(
        "s8", (columns, 3, 3, channels), scales, data=rng.integers(-127, 128, (columns, 3, 3, channels)).astype(np.int8)
    )
    bias = T("s32", (columns,), bias_scales, data=rng.integers(-999, 999, columns).astype(np.int32))
    options = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1, "padding": padding}
    model = bittrue.load(single("CONV_2D", ("Conv2DOptions", options), [x, w, bias], [y], version=3))
    reference = model.prepare(executor="reference")
    feed = feed_of(reference)
    (expected,) = reference.run(*feed).values()
    for isa in bittrue.isas():
        for threads in (1, 2):
            session = model.prepare(isa=isa, threads=threads)
            assert not session.missing
            (got,) = session.run(*feed).values()
            same(f"{isa}, {threads} threads", got, expected)


@pytest.mark.parametrize("ends", [False, True], ids=["numbers", "ends"])
@pytest.mark.parametrize(
    ("lines", "width", "channels", "columns", "padding", "fewer"),
    [
        (9, 13, 32, 24, 0, {"avx2"}),
        (11, 12, 48, 40, 1, {"avx2"}),
        (11, 10, 16, 17, 1, {"avx2"}),
        (8, 9, 256, 16, 0, {"avx2"}),
        (8, 8, 288, 64, 0, {"avx2"}),
        (23, 24, 64, 40, 0, {"avx2", "avx512vnni"}),
        (25, 22, 76, 33, 1, {"avx2", "avx512vnni"}),
        (75, 9, 32, 72, 0, {"avx2"}),
    ],
)
def test_windows_of_nine_pixels(
    lines: int, width: int, channels: int, columns: int, padding: int, fewer: set[str], ends: bool
) -> None:
    """Sums by fewer products are the same ones: of odd sizes, with and without padding, and at the ends of types."""
    rng = np.random.default_rng(channels)
    shape = (columns, 3, 3, channels)
    values = rng.choice([-128, 127], (columns, 1, 1, 1)) + np.zeros(shape) if ends else rng.integers(-127, 128, shape)
    reach = 2.0**-5 if ends else 2.0**-2
    scales = [(0.02 + 0.001 * n) * reach for n in range(columns)]
    x, w = T("s8", (2, lines, width, channels), 0.5, -17), T("s8", shape, scales, data=values.astype(np.int8))
    bias = T("s32", (columns,), [0.5 * s for s in scales], data=rng.integers(-999, 999, columns).astype(np.int32))
    middle = T("s8", (2, lines - 2 * padding, width - 2 * padding, columns), 60.0 if ends else 3.0, 3)
    summand, y = replace(middle, zero_point=-9), replace(middle, zero_point=5)
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": padding}
    nodes = [
        ("CONV_2D", ("Conv2DOptions", options), [x, w, bias], [middle], 3),
        ("ADD", ("AddOptions", {}), [middle, summand], [y], 2),
    ]
    model = bittrue.load(chain(nodes))
    reference = model.prepare(executor="reference")
    feed = feed_of(reference)
    if ends:
        feed[0][...] = rng.choice([-128, 127], (2, 1, 1, 1))
    (expected,) = reference.run(*feed).values()
    assert np.unique(expected).size > (3 if ends else 50)
    exact = not ends or 9 * channels * 127 * 255 < 2**25  # else such weights leave no room for 64 times the sums
    for isa in bittrue.isas():
        for threads in (1, 2, 3):
            session = model.prepare(isa=isa, threads=threads)
            (got,) = session.run(*feed).values()
            same(f"{isa}, {threads} threads", got, expected)
            assert ("fewer products" in session.profile(*feed, rounds=1).steps[0].note) is (isa in fewer and exact)


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("swapped", [False, True], ids=["result first", "result second"])
def test_additions_are_fused(constant: bool, swapped: bool) -> None:
    """Inside of the convolution where its kernel can, behind it where it cannot (weights that are computed)."""
    rng = np.random.default_rng(1)
    weights = rng.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8)
    x, summand = T("s8", (1, 6, 6, 4), 0.5, 3), T("s8", (1, 6, 6, 8), 0.25, -9)
    w = T("s8", (8, 3, 3, 4), 0.01, 0, data=weights if constant else None)
    bias = T("s32", (8,), 0.005, 0, data=rng.integers(-999, 999, 8).astype(np.int32))
    result, total = T("s8", (1, 6, 6, 8), 0.3, 5), T("s8", (1, 6, 6, 8), 0.4, -7)
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": 0}
    nodes = [
        ("CONV_2D", ("Conv2DOptions", options), [x, w, bias], [result], 3),
        ("ADD", ("AddOptions", {}), [summand, result] if swapped else [result, summand], [total], 2),
    ]
    model = bittrue.load(chain(nodes))
    reference, session = model.prepare(executor="reference"), model.prepare()
    assert any("additions fused" in line for line in session.plan.execution) is constant
    assert not any("runs on the reference" in line for line in session.plan.execution)
    feed = feed_of(reference)
    (expected,) = reference.run(*feed).values()
    for isa in bittrue.isas():
        for threads in (1, 2):
            (got,) = model.prepare(isa=isa, threads=threads).run(*feed).values()
            same(f"{isa}, {threads} threads", got, expected)
    assert list(session.trace(*feed)) == list(reference.trace(*feed))


def test_additions_of_what_is_made_later_stay() -> None:
    """The other summand is a name for the memory of a tensor that a later convolution writes."""
    rng = np.random.default_rng(1)
    w = T("s8", (8, 1, 1, 4), 0.01, 0, data=rng.integers(-127, 128, (8, 1, 1, 4)).astype(np.int8))
    bias = T("s32", (8,), 0.005, 0, data=np.zeros(8, np.int32))
    x, flat = T("s8", (1, 6, 6, 4), 0.5, 3), T("s8", (1, 3, 12, 4), 0.5, 3)
    result, later, turned = (T("s8", (1, *size, 8), 0.3, 5) for size in ((6, 6), (3, 12), (6, 6)))
    shape, total = T("s32", (4,), data=np.array([1, 6, 6, 8], np.int32)), T("s8", (1, 6, 6, 8), 0.4, -7)
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": 0}
    nodes = [
        ("CONV_2D", ("Conv2DOptions", options), [x, w, bias], [result], 3),
        ("CONV_2D", ("Conv2DOptions", options), [flat, w, bias], [later], 3),
        ("RESHAPE", None, [later, shape], [turned]),
        ("ADD", ("AddOptions", {}), [result, turned], [total], 2),
    ]
    model = bittrue.load(chain(nodes))
    reference, session = model.prepare(executor="reference"), model.prepare()
    assert any("identities removed" in line for line in session.plan.execution)
    feed = feed_of(reference)
    same("total", *session.run(*feed).values(), *reference.run(*feed).values())


@pytest.mark.parametrize("before", ["MAX_POOL_2D", "DEPTHWISE_CONV_2D", "LOGISTIC"])
def test_additions_are_fused_into_whole_convolutions_only(before: str) -> None:
    """Another kernel could not carry them out and would leave both steps to the reference."""
    rng = np.random.default_rng(1)
    x, summand, total = T("s8", (1, 6, 6, 8), 0.5, 3), T("s8", (1, 6, 6, 8), 0.25, -9), T("s8", (1, 6, 6, 8), 0.4, -7)
    windows = {"strideH": 1, "strideW": 1, "padding": 0}
    dilated = {**windows, "dilationHFactor": 1, "dilationWFactor": 1}
    result = T("s8", (1, 6, 6, 8), *((1 / 256, -128) if before == "LOGISTIC" else (0.5, 3)))
    if before == "MAX_POOL_2D":
        first = [(before, ("Pool2DOptions", {**windows, "filterHeight": 2, "filterWidth": 2}), [x], [result])]
    elif before == "DEPTHWISE_CONV_2D":
        w = T("s8", (1, 3, 3, 8), 0.01, 0, data=rng.integers(-127, 128, (1, 3, 3, 8)).astype(np.int8))
        first = [(before, ("DepthwiseConv2DOptions", {**dilated, "depthMultiplier": 1}), [x, w], [result])]
    else:
        w = T("s8", (8, 1, 1, 8), 0.01, 0, data=rng.integers(-127, 128, (8, 1, 1, 8)).astype(np.int8))
        between, bias = T("s8", (1, 6, 6, 8), 0.1, 0), T("s32", (8,), 0.005, 0, data=np.zeros(8, np.int32))
        convolution = ("CONV_2D", ("Conv2DOptions", dilated), [x, w, bias], [between], 3)
        first = [convolution, (before, None, [between], [result])]
    session = bittrue.load(chain([*first, ("ADD", ("AddOptions", {}), [result, summand], [total], 2)])).prepare()
    assert not session.missing
    assert not any("additions fused" in line for line in session.plan.execution)
