"""`bittrue.compat.Interpreter` beside the package's own: equal details, equal results, errors of the same base."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as theirs
import numpy as np
import pytest

import bittrue
from bittrue import compat as ours
from support.build import T, single
from support.graphs import nested_loops, stream
from support.shared import REPOSITORY, needs_shared, shared_models

DEMO = REPOSITORY / "src" / "bittrue" / "data" / "demo" / "digits_int8.tflite"
# Those that the real package loads and runs within a moment.
SMALL = [path for path in shared_models() if path.stat().st_size < 1_000_000]


def same(mine: Any, real: Any, place: str = "") -> None:
    assert type(mine) is type(real), (place, mine, real)
    if isinstance(mine, dict):
        assert list(mine) == list(real), place
        for key in mine:
            same(mine[key], real[key], f"{place}.{key}")
    elif isinstance(mine, (list, tuple)):
        assert len(mine) == len(real), place
        for i, pair in enumerate(zip(mine, real, strict=True)):
            same(*pair, f"{place}[{i}]")
    elif isinstance(mine, np.ndarray):
        assert (mine.dtype, mine.shape) == (real.dtype, real.shape), place
        assert mine.tobytes() == real.tobytes(), place
    else:
        assert mine == real, place


def open_both(path: Path | bytes, **options: Any) -> tuple[ours.Interpreter, Any]:
    given = {"model_content": path} if isinstance(path, bytes) else {"model_path": str(path)}
    resolver = options.pop("resolver", "AUTO")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real = theirs.Interpreter(**given, experimental_op_resolver_type=theirs.OpResolverType[resolver], **options)
    except ValueError as error:
        pytest.skip(f"the real package refuses the file: {str(error)[:80]}")
    try:
        mine = ours.Interpreter(**given, experimental_op_resolver_type=ours.OpResolverType[resolver], **options)
    except bittrue.UnsupportedError as error:
        if error.code != "BT-UNDEFINED":
            raise
        pytest.skip(f"the real package's results are undefined: {str(error)[:80]}")
    return mine, real


def same_details(mine: ours.Interpreter, real: Any, count: int) -> None:
    same(mine.get_input_details(), real.get_input_details())
    same(mine.get_output_details(), real.get_output_details())
    if mine.numerics == "xnnpack":
        # The delegate changes what the details say of weights; ours say what the file says.
        return
    # Kernels add tensors of their own behind the file's.
    same(mine.get_tensor_details(), real.get_tensor_details()[:count])


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("path", [DEMO, *SMALL], ids=lambda path: path.stem)
@pytest.mark.parametrize("resolver", list(ours.OpResolverType.__members__))
def test_as_a_script_uses_it(path: Path, resolver: str) -> None:
    mine, real = open_both(path, resolver=resolver)
    count = len(mine.get_tensor_details())
    same_details(mine, real, count)
    same(mine.get_signature_list(), real.get_signature_list())
    assert mine.num_subgraphs() == real.num_subgraphs()
    rng = np.random.default_rng(0)
    for batch in (None, 2):
        for interpreter in (mine, real):
            for details in interpreter.get_input_details():
                if batch is not None and details["shape_signature"][0] == -1:
                    interpreter.resize_tensor_input(details["index"], [batch, *details["shape"][1:]], strict=True)
            interpreter.allocate_tensors()
        same_details(mine, real, count)
        for _ in range(2):
            for details in mine.get_input_details():
                value = rng.integers(0, 256, details["shape"]).astype(details["dtype"])
                for interpreter in (mine, real):
                    interpreter.set_tensor(details["index"], value)
                same(mine.get_tensor(details["index"]), value)
            for interpreter in (mine, real):
                interpreter.invoke()
            for details in mine.get_output_details():
                same(mine.get_tensor(details["index"]), real.get_tensor(details["index"]))


@pytest.mark.parametrize("path", [DEMO, *SMALL[:6]], ids=lambda path: path.stem)
def test_intermediate_tensors(path: Path) -> None:
    mine, real = open_both(path, resolver="BUILTIN_REF", experimental_preserve_all_tensors=True)
    rng = np.random.default_rng(1)
    for interpreter in (mine, real):
        interpreter.allocate_tensors()
    for details in mine.get_input_details():
        value = rng.integers(0, 256, details["shape"]).astype(details["dtype"])
        for interpreter in (mine, real):
            interpreter.set_tensor(details["index"], value)
    for interpreter in (mine, real):
        interpreter.invoke()
    seen = 0
    for details in mine.get_tensor_details():
        try:
            expected = real.get_tensor(details["index"])
        except ValueError:
            continue
        same(mine.get_tensor(details["index"]), expected, details["name"])
        seen += 1
    assert seen > len(mine.get_input_details() + mine.get_output_details())


@needs_shared
def test_signatures() -> None:
    seen = 0
    for path in SMALL:
        try:
            real = theirs.Interpreter(str(path))
        except ValueError:
            continue
        if not real.get_signature_list():
            continue
        mine = ours.Interpreter(str(path))
        for key, sides in real.get_signature_list().items():
            runners = [interpreter.get_signature_runner(key) for interpreter in (mine, real)]
            same(*(runner.get_input_details() for runner in runners))
            same(*(runner.get_output_details() for runner in runners))
            details = runners[0].get_input_details()
            rng = np.random.default_rng(2)
            arguments = {
                name: rng.integers(-100, 100, details[name]["shape"]).astype(details[name]["dtype"])
                for name in sides["inputs"]
            }
            same(*(runner(**arguments) for runner in runners))
            with pytest.raises(ValueError, match="BT-INPUT-NAME"):
                runners[0]()
            seen += 1
        with pytest.raises(ValueError, match="BT-COMPAT-SIGNATURE"):
            mine.get_signature_runner("no such")
    assert seen == 2


def test_tensor_gives_the_array_itself() -> None:
    mine, real = open_both(DEMO)
    outputs = []
    for interpreter in (mine, real):
        interpreter.allocate_tensors()
        x = interpreter.tensor(interpreter.get_input_details()[0]["index"])
        x().fill(3)
        interpreter.invoke()
        outputs.append(interpreter.tensor(interpreter.get_output_details()[0]["index"])().copy())
    same(*outputs)


def test_resizing() -> None:
    content = single(
        "ABS", None, [T("f32", (1, 3), name="x", signature=(-1, 3))], [T("f32", (1, 3), signature=(-1, 3))]
    )
    results = []
    for interpreter in open_both(content):
        index = interpreter.get_input_details()[0]["index"]
        interpreter.allocate_tensors()
        interpreter.resize_tensor_input(index, np.int64([2, 3]), strict=True)
        with pytest.raises((RuntimeError, bittrue.RunError)):
            interpreter.invoke()
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, np.float32([[1, -2, 3], [-4, 5, -6]]))
        interpreter.invoke()
        output = interpreter.get_output_details()[0]
        results.append((output, interpreter.get_tensor(output["index"])))
    same(*results)
    mine = ours.Interpreter(model_content=content)
    with pytest.raises(bittrue.InputError, match="BT-INPUT-SHAPE"):
        mine.resize_tensor_input(0, [2, 4], strict=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda i: i.set_tensor(i.get_input_details()[0]["index"], np.zeros((1, 8, 8, 1), np.float32)),
        lambda i: i.set_tensor(i.get_input_details()[0]["index"], np.zeros((2, 8, 8, 1), np.int8)),
        lambda i: i.set_tensor(i.get_input_details()[0]["index"], np.zeros((8, 8, 1), np.int8)),
        lambda i: i.set_tensor(9999, np.zeros((1, 8, 8, 1), np.int8)),
        lambda i: i.get_tensor(9999),
        lambda i: i.get_tensor(-1),
        lambda i: i.get_tensor_details(7),
        lambda i: i.get_signature_runner("no such"),
    ],
)
def test_bad_calls(call: Any) -> None:
    for interpreter in open_both(DEMO):
        interpreter.allocate_tensors()
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            call(interpreter)
        if isinstance(interpreter, ours.Interpreter):
            assert isinstance(caught.value, bittrue.InputError)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model_path": "x", "model_content": b"y"},
        {"model_path": str(DEMO), "num_threads": 0},
        {"model_path": str(DEMO), "num_threads": "2"},
        {"model_path": str(DEMO), "experimental_op_resolver_type": "AUTO"},
    ],
)
def test_bad_arguments(options: dict[str, Any]) -> None:
    for kind in (ours.Interpreter, theirs.Interpreter):
        with pytest.raises(ValueError):  # noqa: PT011
            kind(**options)


def test_before_allocation() -> None:
    mine = ours.Interpreter(model_content=DEMO.read_bytes())
    index = mine.get_input_details()[0]["index"]
    with pytest.raises(ValueError, match="BT-COMPAT-TENSOR"):
        mine.get_tensor(index)
    for call in (mine.invoke, lambda: mine.set_tensor(index, np.zeros((1, 8, 8, 1), np.int8))):
        with pytest.raises(bittrue.RunError, match="BT-COMPAT-ALLOCATE"):
            call()


def test_numerics_can_be_chosen() -> None:
    found = {name: ours.Interpreter(DEMO, numerics=name).numerics for name in ("litert", "single-rounding")}
    assert found == {"litert": "litert", "single-rounding": "single-rounding"}
    assert ours.Interpreter(DEMO).numerics == "xnnpack"
    # The real package's own enumeration is understood, too.
    kind = theirs.OpResolverType.BUILTIN_REF
    assert ours.Interpreter(DEMO, experimental_op_resolver_type=kind).numerics == "litert"
    with pytest.raises(bittrue.InputError, match="BT-NUMERICS"):
        ours.Interpreter(DEMO, numerics="none")


def accumulating() -> bytes:
    """y = a + b's last value of a recurrent layer: its state is a variable tensor."""
    x, y = T("f32", (1, 2)), T("f32", (1, 3))
    weights = [T("f32", (3, 2), data=np.float32([[1, 2], [3, 4], [5, 6]]) / 16)]
    weights += [T("f32", (3, 3), data=np.eye(3, dtype=np.float32) / 2), T("f32", (3,), data=np.zeros(3, np.float32))]
    state = T("f32", (1, 3), variable=True)
    return single("RNN", ("RNNOptions", {"fusedActivationFunction": 0}), [x, *weights, state], [y])


@pytest.mark.parametrize(("make", "forgets"), [(accumulating, True), (stream, False)])
def test_variables_are_reset(make: Any, forgets: bool) -> None:
    """Variable tensors are; resource variables keep their values."""
    rows = []
    for interpreter in open_both(make()):
        interpreter.allocate_tensors()
        (x,), (y, *_) = interpreter.get_input_details(), interpreter.get_output_details()
        results = []
        for turn in range(4):
            if turn == 2:
                interpreter.reset_all_variables()
            interpreter.set_tensor(x["index"], np.arange(2).reshape(x["shape"]).astype(x["dtype"]))
            interpreter.invoke()
            results.append(interpreter.get_tensor(y["index"]))
        rows.append(results)
    same(*rows)
    first, second, third, _ = (value.tobytes() for value in rows[0])
    assert first != second
    assert (first == third) is forgets


def test_several_subgraphs() -> None:
    mine, real = open_both(nested_loops())
    assert mine.num_subgraphs() == real.num_subgraphs() > 1
    for number in range(1, mine.num_subgraphs()):
        same(mine.get_tensor_details(number), real.get_tensor_details(number)[: len(mine.get_tensor_details(number))])


def test_the_same_names_as_the_real_class() -> None:
    for name, kind in (("Interpreter", theirs.Interpreter), ("SignatureRunner", theirs.SignatureRunner)):
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            if method.startswith("_"):
                continue
            mine = inspect.signature(getattr(getattr(ours, name), method))
            assert list(mine.parameters) == list(inspect.signature(function).parameters), method


def test_what_no_kernel_takes_is_refused_at_once() -> None:
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        ours.Interpreter(model_content=single("ABS", None, [T("c64", (1, 3))], [T("c64", (1, 3))]))
