"""Many samples: batches of models whose file fixes the batch, and `map`; each with the bytes of its own run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.errors import StoppedError
from bittrue.runtime.side_by_side import in_order
from support.build import T, chain, single
from support.movement import runs_in_runtime
from support.onnx_models import build
from support.shared import SHARED, needs_shared


def flattened() -> bytes:
    """RESHAPE to [1, 12], then a sum per sample."""
    x, flat = T("f32", (1, 3, 4)), T("f32", (1, 12))
    axis = T("s32", (1,), data=np.array([1]))
    total = ("SUM", ("ReducerOptions", {"keepDims": True}), [flat, axis], [T("f32", (1, 1), name="y")])
    return chain([("RESHAPE", None, [x, T("s32", (2,), data=np.array([1, 12]))], [flat]), total])


def attention_like() -> bytes:
    """Heads are split and joined by constant shapes, as exporters of transformers write them."""
    x = np.zeros((1, 6, 8), np.float32)
    nodes = [
        helper.make_node("Reshape", ["x", "heads"], ["split"]),
        helper.make_node("Transpose", ["split"], ["moved"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["moved"], ["transposed"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["moved", "transposed"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("Reshape", ["weights", "rows"], ["y"]),
    ]
    shapes = {"heads": np.array([1, 6, 2, 4]), "rows": np.array([1, 72])}
    content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, shapes)
    return content


def counter() -> bytes:
    """A recurrent layer whose state is the sum of its inputs."""
    one = np.ones((1, 1), np.float32)
    inputs = [T("f32", (1, 1)), T("f32", (1, 1), data=one), T("f32", (1, 1), data=one)]
    inputs += [T("f32", (1,), data=np.zeros(1, np.float32)), T("f32", (1, 1), variable=True)]
    return single("RNN", ("RNNOptions", {}), inputs, [T("f32", (1, 1), name="y")])


def each(session: bittrue.Session, batch: np.ndarray) -> None:
    joined = session.run_batch(batch)
    apart = [session.run(sample[None]) for sample in batch]
    for name, value in joined.items():
        assert value.tobytes() == b"".join(result[name].tobytes() for result in apart)
        assert value.shape == (len(batch), *apart[0][name].shape[1:])


@pytest.mark.parametrize("make", [flattened, attention_like])
def test_samples_have_the_bytes_of_their_own_runs(make: object) -> None:
    model = bittrue.load(make())  # type: ignore[operator]
    session = model.prepare()
    shape = session.inputs[0].shape
    batch = np.random.default_rng(0).standard_normal((4, *shape[1:])).astype(np.float32)
    each(session, batch)
    with pytest.raises(bittrue.InputError, match="run_batch"):
        session.run(batch)
    with pytest.raises(bittrue.InvalidModelError, match="run_batch"):
        model.prepare(shapes={session.inputs[0].name: batch.shape})


def test_the_runtime_refuses_the_batch_too() -> None:
    assert not runs_in_runtime(flattened(), [np.zeros((4, 3, 4), np.float32)])


@needs_shared
@pytest.mark.parametrize("name", ["coral_tf2_mobilenet_v2_1.0_224_ptq", "tflm_person_detect"])
def test_real_models(name: str) -> None:
    session = bittrue.load(SHARED / "models" / f"{name}.tflite").prepare()
    port = session.inputs[0]
    info = np.iinfo(port.dtype)
    shape = (3, *port.shape[1:])
    each(session, np.random.default_rng(0).integers(info.min, info.max, shape, port.dtype, endpoint=True))


def test_scalars_are_joined_and_several_inputs_keep_step() -> None:
    one, two = np.float32([[1], [2], [3]]), np.float32([[10], [20], [30]])
    content = single("ADD", ("AddOptions", {}), [T("f32", (1,)), T("f32", (1,))], [T("f32", (1,), name="y")])
    session = bittrue.load(content).prepare()
    assert session.run_batch(one[:, 0], two[:, 0])["y"].tolist() == [11, 22, 33]
    for wrong in ((one[:, 0], two[:2, 0]), (one[:0, 0], two[:0, 0]), (one, two)):
        with pytest.raises(bittrue.InputError, match="BT-INPUT-SHAPE"):
            session.run_batch(*wrong)


def test_results_of_several_shapes_are_not_joined() -> None:
    size = numpy_helper.from_array(np.array([1.0], np.float32), "value")
    nodes = [helper.make_node("ConstantOfShape", ["x"], ["y"], value=size)]
    content, _ = build(nodes, {"x": np.array([1, 2], np.int64)}, {"y": TensorProto.FLOAT})
    session = bittrue.load(content).prepare()
    assert session.run_batch(np.array([1, 2, 3, 2]))["y"].shape == (4, 2)
    with pytest.raises(bittrue.InputError, match="BT-OUTPUT-SHAPE"):
        session.run_batch(np.array([1, 2, 1, 3]))


def counted(limit: int, taken: list[int]) -> Iterator[np.ndarray]:
    for i in range(limit):
        taken.append(i)
        yield np.full((1, 3, 4), i, np.float32)


@pytest.mark.parametrize("executor", ["native", "reference"])
@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_results_come_in_order(executor: str, threads: int | None) -> None:
    session = bittrue.load(flattened()).prepare(executor=executor)
    totals = [float(result["y"].item()) for result in session.map(counted(700, []), threads=threads)]
    assert totals == [12.0 * i for i in range(700)]


def test_threads_that_share_a_session_have_buffers_of_their_own() -> None:
    session = bittrue.load(flattened()).prepare()

    def totals(_: int) -> list[float]:
        return [result["y"].item() for result in session.map(counted(300, []), threads=1)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(totals, range(8))) == [[12.0 * i for i in range(300)]] * 8


@pytest.mark.parametrize("threads", [1, 2])
def test_endless_samples_are_taken_as_wanted(threads: int) -> None:
    session = bittrue.load(flattened()).prepare()
    taken: list[int] = []
    results = session.map(counted(10**9, taken), threads=threads)
    assert not taken
    assert [next(results)["y"].item() for _ in range(3)] == [0, 12, 24]
    results.close()
    assert len(taken) <= 2000
    # Nothing is left that a further use could meet.
    assert threading.active_count() == 1 or not [t for t in threading.enumerate() if "bittrue-map" in t.name]
    assert [result["y"].item() for result in session.map(counted(5, []), threads=threads)] == [0, 12, 24, 36, 48]


def test_samples_are_mappings_arrays_or_tuples() -> None:
    content = single("ADD", ("AddOptions", {}), [T("f32", (1,)), T("f32", (1,))], [T("f32", (1,), name="y")])
    session = bittrue.load(content).prepare()
    one, two = session.inputs
    x, y = np.float32([1]), np.float32([2])
    results = list(session.map([(x, y), {one.name: y, two.name: y}, [x]][:2], threads=1))
    assert [result["y"].item() for result in results] == [3, 4]
    for wrong in ((x,), (x, y, y), {one.name: x}, x):
        with pytest.raises(bittrue.InputError, match="BT-INPUT"):
            list(session.map([wrong]))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_is_raised_after_the_results_before_it(threads: int) -> None:
    session = bittrue.load(flattened()).prepare()
    samples = [np.full((1, 3, 4), i, np.float32) for i in range(50)]
    samples[20] = np.zeros((1, 3, 4), np.int8)  # type: ignore[assignment]
    samples[30] = np.zeros((2, 3, 4), np.float32)
    seen = []
    with pytest.raises(bittrue.InputError, match="BT-INPUT-TYPE"):
        seen.extend(session.map(samples, threads=threads))
    assert len(seen) == 20
    outcomes = list(session.map(samples, threads=threads, errors="return"))
    assert [i for i, outcome in enumerate(outcomes) if isinstance(outcome, bittrue.BittrueError)] == [20, 30]
    assert [outcome["y"].item() for i, outcome in enumerate(outcomes) if i not in (20, 30)] == [
        12 * i for i in range(50) if i not in (20, 30)
    ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("executor", ["native", "reference"])
def test_batches_in_any_memory_with_several_outputs(executor: str, threads: int) -> None:
    """Scalars are joined along a new axis, and an array may be a view of others."""
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Neg", ["x"], ["y"])]
    nodes += [helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0)]
    outputs = dict.fromkeys(("sum", "y", "largest"), TensorProto.FLOAT)
    content, _ = build(nodes, {"x": np.zeros((2, 3), np.float32)}, outputs)
    session = bittrue.load(content).prepare(executor=executor)
    batch = np.arange(1800, dtype=np.float32).reshape(3, 600).T
    found = session.run_batch(batch, threads=threads)
    samples = batch.reshape(300, 2, 3)
    assert found["sum"].tobytes() == samples.sum(axis=(1, 2)).tobytes()
    assert found["largest"].tobytes() == samples.max(axis=(1, 2)).tobytes()
    assert found["y"].tobytes() == (-batch).tobytes()
    results = list(session.map(({"x": sample} for sample in samples), threads=threads))
    for name, value in found.items():
        assert np.stack([result[name] for result in results]).tobytes() == value.tobytes()
        assert {type(result[name]) for result in results} == {np.ndarray}


@pytest.mark.parametrize("kind", ["b", "B", "h", "H", "i", "I", "q", "Q", "f", "d", "?"])
def test_arrays_of_every_type_and_in_any_memory(kind: str) -> None:
    dtype = np.dtype(kind)
    content, _ = build(
        [helper.make_node("Transpose", ["x"], ["y"])],
        {"x": np.zeros((2, 3), dtype)},
        {"y": helper.np_dtype_to_tensor_dtype(dtype)},
    )
    session = bittrue.load(content).prepare()
    x = (np.arange(6).reshape(2, 3) * 37 % 5).astype(dtype)
    fixed, wide = x.copy(), np.zeros((4, 6), dtype)
    fixed.flags.writeable = False
    wide[::2, ::2] = x
    same = [x, fixed, wide[::2, ::2], np.asfortranarray(x), {"x": fixed}]
    for found in (*map(session.run, same), *session.map(same, threads=1), session.run_batch(fixed)):
        assert (found["y"].dtype, found["y"].tobytes()) == (dtype, x.T.tobytes())
    wrong = [x.astype("c8"), x.astype("S1"), np.zeros((2, 3), "b" if kind == "B" else "B"), bytearray(6 * x.itemsize)]
    if dtype.itemsize > 1:
        wrong += [x.astype(dtype.newbyteorder(">"))]
    for outcome in session.map(wrong, threads=1, errors="return"):
        assert isinstance(outcome, bittrue.InputError)


def test_a_batch_ends_with_the_error_of_its_first_sample_that_has_one() -> None:
    content = single("DIV", ("DivOptions", {}), [T("s32", (1,)), T("s32", (1,))], [T("s32", (1,), name="y")])
    session = bittrue.load(content).prepare()
    dividends, divisors = np.full(40, 8, np.int32), np.arange(1, 41, dtype=np.int32)
    assert session.run_batch(dividends, divisors)["y"].tolist() == (8 // divisors).tolist()
    divisors[20] = 0
    with pytest.raises(bittrue.RunError):
        session.run_batch(dividends, divisors)
    with pytest.raises(bittrue.InputError, match="BT-INPUT-TYPE"):
        session.run_batch(dividends, divisors.astype(np.int64))


@pytest.mark.parametrize("threads", [1, 2])
def test_values_without_a_result_are_errors_of_their_sample(threads: int) -> None:
    content = single("DIV", ("DivOptions", {}), [T("s32", (1,)), T("s32", (1,))], [T("s32", (1,), name="y")])
    session = bittrue.load(content).prepare()
    samples = [(np.int32([8]), np.int32([i % 5])) for i in range(40)]
    outcomes = list(session.map(samples, threads=threads, errors="return"))
    for i, outcome in enumerate(outcomes):
        if i % 5:
            assert outcome["y"].item() == 8 // (i % 5)
        else:
            assert isinstance(outcome, bittrue.RunError)


def test_the_first_chunk_is_as_large_as_it_may_be() -> None:
    sizes = []

    def work(items: list[int]) -> list[int]:
        sizes.append(len(items))
        return items

    chunks = in_order([work], range(20), first=100, most=8, seconds=60, end=lambda: None)
    assert [item for chunk in chunks for item in chunk] == [*range(20)]
    assert sizes == [8, 8, 4]


@pytest.mark.parametrize("threads", [1, 2])
def test_lists_again_and_again(threads: int) -> None:
    """Later chunks begin as large as the ones before ended."""
    session = bittrue.load(flattened()).prepare()
    samples = list(counted(300, []))
    for count in (300, 7, 300, 1, 0, 64):
        found = [result["y"].item() for result in session.map(samples[:count], threads=threads)]
        assert found == [12 * i for i in range(count)]
        if count:
            batch = np.concatenate(samples[:count])
            assert session.run_batch(batch, threads=threads)["y"].ravel().tolist() == found


def test_transform_works_in_the_threads_and_its_errors_arrive() -> None:
    session = bittrue.load(flattened()).prepare()
    names = set()

    def transform(number: int) -> np.ndarray:
        names.add(threading.current_thread().name)
        if number == 13:
            raise KeyError("thirteen")
        return np.full((1, 3, 4), number, np.float32)

    assert [r["y"].item() for r in session.map(range(10), transform=transform, threads=2)] == [
        12 * i for i in range(10)
    ]
    assert "MainThread" not in names
    with pytest.raises(KeyError, match="thirteen"):
        list(session.map(range(20), transform=transform, threads=2, errors="return"))


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_samples_begin_with_the_first_state(executor: str) -> None:
    content = counter()
    session = bittrue.load(content).prepare(executor=executor)
    x = np.ones((1, 1), np.float32)
    name = session.outputs[0].name
    alone = session.run(x)[name]
    after = session.run(x)[name]
    session.reset()
    assert alone.tobytes() != after.tobytes()
    for threads in (1, 2):
        assert {r[name].tobytes() for r in session.map([x] * 9, threads=threads)} == {alone.tobytes()}
    # The session's own state is where it was.
    assert session.run(x)[name].tobytes() == alone.tobytes()
    session.reset()
    going_on = [r[name].tobytes() for r in session.map([x] * 3, reset=False)]
    assert going_on[:2] == [alone.tobytes(), after.tobytes()]
    assert len(set(going_on)) == 3
    with pytest.raises(bittrue.InputError, match="BT-THREADS"):
        session.map([x], threads=2, reset=False)
    session.reset()
    twice = np.concatenate([x] * 2)
    assert session.run_batch(twice)[name].tobytes() == alone.tobytes() * 2
    assert session.run_batch(np.concatenate([x] * 2), reset=False)[name].tobytes() == (
        alone.tobytes() + after.tobytes()
    )


def test_arguments_are_checked_at_once() -> None:
    session = bittrue.load(flattened()).prepare()
    for wrong in ({"threads": 0}, {"threads": 10**6}, {"errors": "ignore"}, {"timeout": -1}):
        with pytest.raises(bittrue.InputError):
            session.map([], **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("executor", ["native", "reference"])
def test_an_interrupt_and_a_timeout_end_all_samples(executor: str, threads: int) -> None:
    session = bittrue.load(flattened()).prepare(executor=executor)
    with pytest.raises(StoppedError, match=r"BT-TIMEOUT.*0\.05 seconds"):
        for _ in session.map(counted(10**9, []), threads=threads, timeout=0.05):
            pass
    results = session.map(counted(10**9, []), threads=threads)
    next(results)
    session.interrupt()
    with pytest.raises(StoppedError, match="BT-INTERRUPTED"):
        for _ in results:
            pass
