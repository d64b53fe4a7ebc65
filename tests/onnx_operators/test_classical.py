"""ai.onnx.ml on numbers: random models of one operator, and of operators around a network, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import bittrue
from support.onnx_models import CLASSICAL, Checks, check, needs_measured, value_info

_NUMBERS = (np.float32, np.float64, np.int32, np.int64)
_FORMS = ("NONE", "LOGISTIC", "SOFTMAX")
Node = tuple[list[np.ndarray], int, dict[str, Any]]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: list[str],
    version: int,
    **constants: np.ndarray,
) -> tuple[bytes, list[np.ndarray]]:
    graph = helper.make_graph(
        nodes,
        "graph",
        [value_info(name, array) for name, array in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(CLASSICAL, version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), list(inputs.values())


def _one(operator: str, node: Node, version: int = 3) -> tuple[bytes, list[np.ndarray]]:
    feeds, results, attributes = node
    inputs = {f"x{k}": array for k, array in enumerate(feeds)}
    outputs = [f"y{k}" for k in range(results)]
    made = helper.make_node(operator, list(inputs), outputs, domain=CLASSICAL, **attributes)
    return _model([made], inputs, outputs, version)


def _numbers(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    """Real numbers of which some are 0, and in a fifth of the tensors NaN or infinite."""
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-9, 10, shape).astype(dtype) * dtype(rng.choice([1, 1, 4000]))
    x = (rng.standard_normal(shape) * float(rng.choice([0.1, 3, 1e4]))).astype(dtype)
    x[rng.random(shape) < 0.1] *= 0
    if rng.random() < 0.2:
        x[rng.random(shape) < 0.1] = rng.choice([np.inf, -np.inf, np.nan])
    return x


def _shape(rng: np.random.Generator, most: int = 2) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.integers(1, 20, int(rng.integers(1, most + 1))))


def _reals(rng: np.random.Generator, count: int) -> list[float]:
    return rng.standard_normal(count).astype(np.float32).tolist()


def _scaler(rng: np.random.Generator) -> Node:
    shape = _shape(rng, 3)
    count = int(rng.choice([1, shape[min(1, len(shape) - 1)]]))
    return [_numbers(rng, rng.choice(_NUMBERS), *shape)], 1, {"offset": _reals(rng, count), "scale": _reals(rng, count)}


def _normalizer(rng: np.random.Generator) -> Node:
    return [_numbers(rng, rng.choice(_NUMBERS), *_shape(rng))], 1, {"norm": str(rng.choice(["MAX", "L1", "L2"]))}


def _imputer(rng: np.random.Generator) -> Node:
    shape, real = _shape(rng, 3), rng.random() < 0.6
    count = int(rng.choice([1, shape[min(1, len(shape) - 1)]]))
    if real:
        x = _numbers(rng, np.float32, *shape)
        missing = float(rng.choice([np.nan, 0, np.inf]))
        x[rng.random(shape) < 0.2] = missing
        return [x], 1, {"imputed_value_floats": _reals(rng, count), "replaced_value_float": missing}
    values = rng.integers(-9, 9, count).tolist()
    return (
        [rng.integers(-3, 4, shape)],
        1,
        {"imputed_value_int64s": values, "replaced_value_int64": int(rng.integers(3))},
    )


def _binarizer(rng: np.random.Generator) -> Node:
    x = np.nan_to_num(_numbers(rng, np.float32, *_shape(rng, 4)))
    return [x], 1, {"threshold": float(rng.choice([0, 0.5, x.flat[0]]))}


def _extractor(rng: np.random.Generator) -> Node:
    x = _numbers(rng, rng.choice(_NUMBERS), *_shape(rng, 4))
    return [x, rng.integers(0, x.shape[-1], _shape(rng))], 1, {}


def _vectorizer(rng: np.random.Generator) -> Node:
    dtype, rows = rng.choice(_NUMBERS), int(rng.integers(1, 6))
    parts = [_numbers(rng, dtype, rows, *_shape(rng)) for _ in range(int(rng.integers(1, 4)))]
    return parts, 1, {"inputdimensions": [int(np.prod(part.shape[1:])) for part in parts]}


def _one_hot(rng: np.random.Generator) -> Node:
    categories = rng.integers(-4, 5, int(rng.integers(1, 9))).tolist()
    x = rng.choice([*categories, 7] if (zeros := bool(rng.random() < 0.7)) else categories, _shape(rng, 3))
    dtype = rng.choice([np.float32, np.float64, np.int64])
    fraction = rng.random(x.shape) * np.sign(x) if dtype != np.int64 else 0
    return [(x + fraction).astype(dtype)], 1, {"cats_int64s": categories, "zeros": int(zeros)}


def _linear(rng: np.random.Generator, features: int, results: int) -> dict[str, Any]:
    return {"coefficients": _reals(rng, features * results), "intercepts": _reals(rng, results)}


def _regressor(rng: np.random.Generator) -> Node:
    shape, targets = _shape(rng), int(rng.choice([1, 1, 2, 3, 4, 5, 6, 17]))
    attributes = {**_linear(rng, shape[-1], targets), "targets": targets, "post_transform": str(rng.choice(_FORMS))}
    if rng.random() < 0.3:
        del attributes["intercepts"]
    return [rng.standard_normal(shape).astype(np.float32)], 1, attributes


def _classifier(rng: np.random.Generator) -> Node:
    shape, classes = _shape(rng), int(rng.choice([1, 2, 3, 4, 5, 6, 17]))
    x = (rng.standard_normal(shape) * 4).astype(rng.choice(_NUMBERS))
    attributes = {**_linear(rng, shape[-1], classes), "post_transform": str(rng.choice(_FORMS))}
    return [x], 2, {**attributes, "classlabels_ints": rng.permutation(max(classes, 2) + 5)[: max(classes, 2)].tolist()}


_OPERATORS = {
    "ArrayFeatureExtractor": _extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _vectorizer,
    "Imputer": _imputer,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
}


@needs_measured
@pytest.mark.parametrize("operator", _OPERATORS)
def test_random(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        checks.add(*_one(operator, _OPERATORS[operator](rng), version=1))


@needs_measured
def test_label_encoders(request: pytest.FixtureRequest) -> None:
    """Keys that are equal, NaN among them, and numbers that are no key; lists of versions 2 and 4, and tensors."""
    names = {np.float32: "floats", np.int64: "int64s"}
    checks = Checks(request, only="equal")
    for rng in checks:
        version, count = int(rng.choice([2, 4])), int(rng.integers(1, 9))
        tensors = version == 4 and rng.random() < 0.5
        kinds = (np.float32, np.int64, np.float64) if tensors else (np.float32, np.int64)
        key, value = (kinds[int(k)] for k in rng.integers(0, len(kinds), 2))
        if tensors and {key, value} == {np.float32, np.float64}:
            value = key
        keys, values = rng.integers(-4, 5, count).astype(key), _numbers(rng, value, count)
        if key != np.int64 and rng.random() < 0.5:
            keys[rng.random(count) < 0.4] = np.nan
        x = rng.choice(np.append(keys, key(7)), _shape(rng, 3)).astype(key)
        if tensors:
            attributes = {
                "keys_tensor": numpy_helper.from_array(keys),
                "values_tensor": numpy_helper.from_array(values),
            }
            if rng.random() < 0.5:
                attributes["default_tensor"] = numpy_helper.from_array(np.array([3], value))
        else:
            attributes = {f"keys_{names[key]}": keys.tolist(), f"values_{names[value]}": values.tolist()}
            if rng.random() < 0.5:
                attributes["default_int64" if value == np.int64 else "default_float"] = value(3).item()
        checks.add(*_one("LabelEncoder", ([x], 1, attributes), version))


@needs_measured
def test_around_networks(request: pytest.FixtureRequest) -> None:
    """What stands before and behind a network; the runtime's passes join none of it with the products between."""
    checks = Checks(request, only="equal")
    for rng in checks:
        features, hidden, classes = (int(size) for size in rng.integers(2, 9, 3))
        before = [
            helper.make_node("Imputer", ["x"], ["i"], domain=CLASSICAL, imputed_value_floats=_reals(rng, features)),
            helper.make_node("Scaler", ["i"], ["s"], domain=CLASSICAL, offset=_reals(rng, 1), scale=[0.125]),
            helper.make_node("Normalizer", ["s"], ["n"], domain=CLASSICAL, norm="L2"),
        ]
        kept = [node for node in before if rng.random() < 0.7]
        nodes, last = [], "x"
        for node in kept:
            node.input[0] = last
            nodes.append(node)
            last = node.output[0]
        if rng.random() < 0.5:
            nodes.append(helper.make_node("Transpose", [last], ["t"], perm=[1, 0]))
            nodes.append(helper.make_node("Scaler", ["t"], ["u"], domain=CLASSICAL, offset=[0.0], scale=[1.0]))
            nodes.append(helper.make_node("Transpose", ["u"], ["v"], perm=[1, 0]))
            last = "v"
        nodes.append(helper.make_node("MatMul", [last, "weights"], ["p"]))
        nodes.append(helper.make_node(str(rng.choice(["Relu", "Tanh", "Identity"])), ["p"], ["h"]))
        linear = _linear(rng, hidden, classes)
        made = helper.make_node(
            "LinearClassifier",
            ["h"],
            ["label", "scores"],
            domain=CLASSICAL,
            classlabels_ints=list(range(classes)),
            post_transform=str(rng.choice(_FORMS)),
            **linear,
        )
        nodes += [made, helper.make_node("Normalizer", ["scores"], ["shares"], domain=CLASSICAL, norm="L1")]
        x = rng.standard_normal((int(rng.integers(1, 9)), features)).astype(np.float32)
        weights = rng.standard_normal((features, hidden)).astype(np.float32)
        checks.add(*_model(nodes, {"x": x}, ["label", "shares"], 1, weights=weights))


@pytest.mark.parametrize(
    ("operator", "attributes", "code"),
    [
        ("Scaler", {"offset": [1.0, 2], "scale": [1.0]}, "BT-ONNX-ATTRIBUTE"),
        ("Scaler", {"offset": [1.0, 2], "scale": [1.0, 2]}, "BT-RESHAPE"),
        ("Scaler", {}, "BT-ONNX-ATTRIBUTE"),
        ("OneHotEncoder", {"cats_strings": ["a"]}, "BT-ONNX-TYPE"),
        ("OneHotEncoder", {"cats_int64s": list(range(5000))}, "BT-ONNX-ATTRIBUTE"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "BT-ONNX-TYPE"),
        ("LinearRegressor", {"coefficients": [1.0] * 4, "intercepts": [1.0] * 3}, "BT-ONNX-ATTRIBUTE"),
        ("LinearRegressor", {"coefficients": [1.0], "post_transform": "PROBIT"}, "BT-ONNX-ATTRIBUTE"),
        ("ZipMap", {"classlabels_int64s": [0, 1]}, "BT-OPERATOR"),
    ],
)
def test_refused(operator: str, attributes: dict[str, Any], code: str) -> None:
    content, _ = _one(operator, ([np.zeros((3, 1), np.float32)], 1, attributes), 2 if operator == "LabelEncoder" else 1)
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("keys", "values"), [(np.array([b"a", b"b"], object), np.int16([1, 2])), (np.int64([1, 2]), np.int16([1, 2]))]
)
def test_labels_that_are_texts_or_short_integers_are_not_damaged(keys: np.ndarray, values: np.ndarray) -> None:
    """Official tests have both."""
    given = {"keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values)}
    content, _ = _one("LabelEncoder", ([np.int64([1])], 1, given), 4)
    with pytest.raises(bittrue.UnsupportedError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == "BT-ONNX-TYPE"


def test_unknown_categories() -> None:
    """An error of the run, as in the runtime, but where the file says that they are zeros."""
    content, feeds = _one("OneHotEncoder", ([np.int64([3])], 1, {"cats_int64s": [1, 2], "zeros": 0}), 1)
    with pytest.raises(bittrue.RunError):
        bittrue.load(content).prepare().run(*feeds)
    assert check(*_one("OneHotEncoder", ([np.int64([3])], 1, {"cats_int64s": [1, 2], "zeros": 1}), 1)) == "equal"
