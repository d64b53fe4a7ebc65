"""Mappings of ai.onnx.ml: what pipelines of classical models put before and behind networks, on numbers.

Each operator is what it does element by element, in the order and the types of the runtime's kernels, which compute in
binary32 but for binary64 inputs of Scaler and products of Normalizer. Source: ONNX Runtime 1.31.1, run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES, Attribute, Tensor
from .base import CAST, PLAIN, Mapper, Mappers, Parts, Source

CLASSICAL = "ai.onnx.ml"
_NUMBERS = ("f32", "f64", "s32", "s64")
ROWS: dict[str, Attribute] = {"axis": 0, "batch_dims": 0, "from_either_end": False}
# Rows of scores that are longer take the vectors of Softmax, others the C library's exponential.
_SHORT = 4
# Numbers of a table that attributes ask for.
_MOST = 1 << 24


def expect_type(source: Source, position: int, *types: str) -> None:
    """Refuses an operand of another type."""
    if source.type(position) not in types:
        raise source.unsupported(
            "BT-ONNX-TYPE",
            f"input {position} is {source.type(position)}, and only {', '.join(types)} are read",
            TEXTS if source.type(position) == "string" else "put a Cast before it",
        )


def listed(source: Source, found: Sequence[float] | None, name: str) -> np.ndarray:
    """An attribute's numbers, of which there must be some."""
    if not found:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' must hold one number or more")
    return np.array(found)


def select(parts: Parts, dtype: str, *operands: int | None, result: str = "") -> int:
    """The second operand where the first one holds, else the third: -0, too, which Where does not copy."""
    how: dict[str, Attribute] = {"broadcasts": True, "keeps_declared_shape": False, "copies": True}
    if result:
        return parts.last("select", dtype, [*operands], result, **how)
    return parts.step("select", dtype, [*operands], **how)


def check_table(source: Source, rows: int, columns: int) -> None:
    """Refuses a table that a small file could make large."""
    if rows * columns > _MOST:
        raise source.unsupported(
            "BT-ONNX-ATTRIBUTE", f"a table of {rows} by {columns} numbers, at most {_MOST} are made"
        )


def _by_features(parts: Parts, x: int | None) -> int:
    """The tensor as [-1, features], or as [features] where it has one axis: a row per number of the second axis."""
    return parts.shaped(x, parts.list(-1), parts.sizes(x, 1, 2))


def as_matrix(parts: Parts, x: int | None, dtype: str) -> int:
    """A row where the tensor has one axis."""
    return parts.step("broadcast_to", dtype, [x, parts.list(1, 1)], both_ways=True)


def _give_alike(source: Source, parts: Parts, x: int | None, dtype: str) -> None:
    """The result, in the shape of the operand: more elements than that have, where lists do not fit, are an error."""
    shape = parts.sizes(source.inputs[0], 0, None)
    parts.last("reshape", dtype, [x, shape], source.outputs[0], zeros="kept")


def _converted(parts: Parts, source: Source, dtype: str) -> int | None:
    x = source.inputs[0]
    return x if source.type(0) == dtype else parts.step("convert", dtype, [x], **CAST)


def _scaler(source: Source) -> None:
    """(x - offset) * scale, in binary64 where x is such."""
    expect_type(source, 0, *_NUMBERS)
    parts, real = Parts(source), "f64" if source.type(0) == "f64" else "f32"
    x = _by_features(parts, _converted(parts, source, real))
    lists = [listed(source, source.reals(name), name) for name in ("offset", "scale")]
    if lists[0].size != lists[1].size:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", f"'offset' has {lists[0].size} numbers and 'scale' has {lists[1].size}"
        )
    for operator, numbers in zip(("sub", "mul"), lists, strict=True):
        x = parts.step(operator, real, [x, source.constant(numbers.astype(DATA_TYPES[real].numpy), operator)], **PLAIN)
    _give_alike(source, parts, parts.single(x), "f32")


def _normalizer(source: Source) -> None:
    """Each row by its largest number, the sum of its absolute values, or the root of the sum of its squares.

    Rows whose divisor is 0 stay. Sums are made one number after the other. Squares have the type of the input.
    """
    expect_type(source, 0, *_NUMBERS)
    norm, parts = source.text("norm", "MAX"), Parts(source)
    if norm not in ("MAX", "L1", "L2"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"norm '{norm}' is none of MAX, L1 and L2")
    x = _converted(parts, source, "f32")
    zero = parts.number(0, "zero")
    if norm == "MAX":
        # A NaN is passed over, and no maximum lies below the smallest finite number.
        lowest = parts.number(float(np.finfo(np.float32).min), "lowest")
        above = parts.step("greater", "bool", [x, lowest])
        found = select(parts, "f32", above, x, lowest)
        whole = parts.step("reduce_max", "f32", [found, parts.list(-1)], keep_dims=True, keeps_without_axes=False)
        summands = x
    else:
        if norm == "L1":
            summands = parts.step("abs", "f32", [x])
        else:
            given = source.inputs[0]
            squares = parts.step("mul", source.type(0), [given, given], **PLAIN)
            summands = squares if source.type(0) == "f32" else parts.step("convert", "f32", [squares], **CAST)
        whole = parts.total(summands, -1, keep=True)
    idle = parts.step("equal", "bool", [whole, zero])
    if norm == "L2":
        ratio = parts.step("sqrt", "f32", [parts.step("div", "f32", [summands, whole], **PLAIN)])
        below = parts.step("less", "bool", [x, zero])
        ratio = select(parts, "f32", below, parts.step("neg", "f32", [ratio]), ratio)
    else:
        ratio = parts.step("div", "f32", [x, whole], **PLAIN)
    select(parts, "f32", idle, x, ratio, result=source.outputs[0])


def _imputer(source: Source) -> None:
    """What stands for a missing number becomes a given one."""
    expect_type(source, 0, "f32", "s64")
    parts, dtype = Parts(source), source.type(0)
    real = dtype == "f32"
    name = "imputed_value_floats" if real else "imputed_value_int64s"
    given = source.reals(name) if real else source.integers(name)
    missing = source.real("replaced_value_float", 0.0) if real else source.integer("replaced_value_int64", 0)
    source.read.update(("imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64"))
    numpy = DATA_TYPES[dtype].numpy
    values = source.constant(listed(source, given, name).astype(numpy), "values")
    x = _by_features(parts, source.inputs[0])
    if missing != missing:
        gaps = parts.step("not_finite", "bool", [x], nan=True, negative=False, positive=False)
    else:
        gaps = parts.step("equal", "bool", [x, source.constant(np.array(missing, numpy), "missing")])
    _give_alike(source, parts, select(parts, dtype, gaps, values, x), dtype)


def _binarizer(source: Source) -> None:
    expect_type(source, 0, "f32")
    parts = Parts(source)
    above = parts.step("greater", "bool", [source.inputs[0], parts.number(source.real("threshold", 0.0), "threshold")])
    parts.last("convert", "f32", [above], source.outputs[0], **CAST)


def _extractor(source: Source) -> None:
    """Numbers along the last axis by position; of one axis alone they become a row."""
    expect_type(source, 0, *_NUMBERS)
    expect_type(source, 1, "s64")
    parts, dtype = Parts(source), source.type(0)
    places = parts.step("reshape", "s64", [source.inputs[1], parts.list(-1)], zeros="copied")
    found = parts.step("gather", dtype, [source.inputs[0], places], axis=-1, batch_dims=0, from_either_end=False)
    parts.last("broadcast_to", dtype, [found, parts.list(1, 1)], source.outputs[0], both_ways=True)


def _vectorizer(source: Source) -> None:
    """Rows of all inputs, one behind the other."""
    parts, given = Parts(source), listed(source, source.integers("inputdimensions"), "inputdimensions")
    if given.size != len(source.inputs) or given.min() < 1:
        message = f"'inputdimensions' must hold a number of 1 or more for each of {len(source.inputs)} inputs"
        raise source.invalid("BT-ONNX-ATTRIBUTE", message)
    columns: list[int | None] = []
    for position, width in enumerate(given.tolist()):
        expect_type(source, position, *_NUMBERS)
        x = as_matrix(parts, parts.single(source.inputs[position]), "f32")
        columns.append(parts.shaped(x, parts.sizes(x, 0, 1), parts.list(width)))
    parts.last("concatenation", "f32", columns, source.outputs[0], axis=1, **PLAIN)


def _positions(source: Source, parts: Parts, x: int | None, dtype: str, keys: np.ndarray) -> int:
    """Where each number stands among keys: the first of equal ones, and how many there are where it is none."""
    row = parts.step("expand_dims", dtype, [x, parts.list(-1)])
    alike = parts.step("equal", "bool", [row, source.constant(keys, "keys")])
    numbers, none = source.constant(np.arange(keys.size), "numbers"), source.constant(np.int64(keys.size), "none")
    found = select(parts, "s64", alike, numbers, none)
    return parts.step("reduce_min", "s64", [found, parts.list(-1)], keep_dims=False, keeps_without_axes=False)


def _side(source: Source, name: str) -> np.ndarray:
    """Keys or values, as a list or as a tensor."""
    if source.has(f"{name}_strings"):
        raise source.unsupported("BT-ONNX-TYPE", f"its {name} are texts, which are no numbers", TEXTS)
    for kind, found in (("floats", source.reals), ("int64s", source.integers)):
        numbers = found(f"{name}_{kind}")
        if numbers:
            return np.array(numbers, np.float32 if kind == "floats" else np.int64)
    return _tensor(source, f"{name}_tensor")


def _tensor(source: Source, name: str) -> np.ndarray:
    """The numbers of an attribute that is a tensor; none where it is absent."""
    found = source.get(name, None, Tensor)
    return np.zeros(0) if found is None or found.data is None else found.data.reshape(-1)


def _label_encoder(source: Source) -> None:
    """A number of a list to the one at its place in another; the first of equal ones counts.

    A NaN is a key from version 4 on.
    """
    keys, values, parts = _side(source, "keys"), _side(source, "values"), Parts(source)
    source.read.add("default_string")
    kinds = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.int64): "s64"}
    if not keys.size or keys.size != values.size:
        message = f"{keys.size} keys for {values.size} values"
        raise source.invalid("BT-ONNX-ATTRIBUTE", message, "keys and values are lists of one length")
    lone = _tensor(source, "default_tensor")
    for name, given in (("keys", keys), ("values", values), ("default", lone)):
        if given.size and given.dtype not in kinds:
            texts = given.dtype == object
            kind, advice = ("texts", TEXTS) if texts else (str(given.dtype), "use f32, f64 or s64")
            raise source.unsupported("BT-ONNX-TYPE", f"its {name} are {kind}, which it has no rule for", advice)
    dtype, result = kinds[keys.dtype], kinds[values.dtype]
    expect_type(source, 0, dtype)
    whole, real = source.integer("default_int64", -1), source.real("default_float", -0.0)
    default = lone[0] if lone.size else {"s64": whole, "f32": real, "f64": -0.0}[result]
    x = source.inputs[0]
    place = _positions(source, parts, x, dtype, keys)
    nans = np.flatnonzero(np.isnan(keys)) if source.version >= 4 else np.zeros(0, np.int64)
    if nans.size:
        no_number = parts.step("not_finite", "bool", [x], nan=True, negative=False, positive=False)
        place = select(parts, "s64", no_number, source.constant(np.int64(nans[0]), "nan"), place)
    table = source.constant(np.append(values, values.dtype.type(default)), "values")
    parts.last("gather", result, [table, place], source.outputs[0], **ROWS)


def _one_hot(source: Source) -> None:
    """1 at the place of a number among the categories, and 0 elsewhere; the last of equal ones counts.

    Real numbers lose their fraction. What is no category is an error of the run, but where `zeros` says that it is 0.
    """
    expect_type(source, 0, "f32", "f64", "s64")
    if source.texts("cats_strings"):
        raise source.unsupported("BT-ONNX-TYPE", "its categories are texts, which are no numbers", TEXTS)
    parts, given = Parts(source), listed(source, source.integers("cats_int64s"), "cats_int64s")
    zeros = source.flag("zeros", True, True)
    keys, places = np.unique(given[::-1], return_index=True)
    check_table(source, keys.size + zeros, given.size)
    rows = np.zeros((keys.size + zeros, given.size), np.float32)
    rows[np.arange(keys.size), given.size - 1 - places] = 1
    place = _positions(source, parts, _converted(parts, source, "s64"), "s64", keys)
    parts.last("gather", "f32", [source.constant(rows, "rows"), place], source.outputs[0], **ROWS)


def _scores(source: Source, parts: Parts, x: int | None, count: int, result: str = "") -> int:
    """Products with the coefficients and what is added, which no runtime arranges before."""
    weights = listed(source, source.reals("coefficients"), "coefficients").astype(np.float32)
    added = source.reals("intercepts")
    if count < 1 or weights.size % count or (added and len(added) != count):
        message = f"{weights.size} coefficients and {len(added or ())} intercepts for {count} results"
        raise source.invalid("BT-ONNX-ATTRIBUTE", message)
    operands = [as_matrix(parts, x, "f32"), source.constant(weights.reshape(count, -1), "coefficients")]
    operands += [source.constant(np.array(added, np.float32), "intercepts")] if added else []
    attributes: dict[str, Attribute] = {"alpha": 1.0, "beta": 1.0, "transpose_a": False, "transpose_b": True}
    attributes |= {"matrices": True, "computed_weights": (1,)}
    name = result or source.temporary("f32", "scores")
    return source.emit("matmul", "f32", attributes, inputs=operands, outputs=[name])[0]


def transformation(source: Source) -> str:
    """What becomes of the scores."""
    form = source.text("post_transform", "NONE")
    if form not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise source.unsupported(
            "BT-ONNX-ATTRIBUTE",
            f"post_transform '{form}' is not read",
            "let the operator give its scores (NONE), and transform them by nodes of their own",
        )
    return form


def _transform(parts: Parts, scores: int, form: str, count: int, result: str) -> None:
    """Rows of two scores or more as the operators Sigmoid and Softmax do it, short rows by the C library."""
    if form == "LOGISTIC":
        parts.last("logistic", "f32", [scores], result)
    elif form == "SOFTMAX":
        library: dict[str, Attribute] = {"by_library": True} if count <= _SHORT else {}
        parts.last("softmax", "f32", [scores], result, axis=-1, flattened=False, beta=1.0, **library)
    else:
        parts.last("identity", "f32", [scores], result)


def _regressor(source: Source) -> None:
    """One target alone stays what the product gives, whatever the transformation."""
    expect_type(source, 0, "f32")
    parts, targets = Parts(source), source.integer("targets", 1)
    form = transformation(source)
    if targets == 1 or form == "NONE":
        _scores(source, parts, source.inputs[0], targets, source.outputs[0])
        return
    _transform(parts, _scores(source, parts, source.inputs[0], targets), form, targets, source.outputs[0])


def by_library(parts: Parts, x: int) -> int:
    """1 / (1 + e^-|x|) by the C library's exponential; below zero 1 less that."""
    one, size = parts.number(1, "one"), parts.step("abs", "f32", [x])
    power = parts.step("exp", "f32", [parts.step("neg", "f32", [size])], by_library=True)
    share = parts.step("div", "f32", [one, parts.step("add", "f32", [one, power], **PLAIN)], **PLAIN)
    below = parts.step("less", "bool", [x, parts.number(0, "zero")])
    return select(parts, "f32", below, parts.step("sub", "f32", [one, share], **PLAIN), share)


def give_label(source: Source, parts: Parts, score: int, labels: np.ndarray, threshold: float = 0.0) -> None:
    """The second label of two where a score lies above a threshold."""
    beyond = parts.step("greater", "bool", [score, parts.number(threshold, "threshold")])
    place = parts.step("convert", "s64", [beyond], **CAST)
    place = parts.step("reshape", "s64", [place, parts.list(-1)], zeros="copied")
    parts.last("gather", "s64", [source.constant(labels, "labels"), place], source.outputs[0], **ROWS)


def give_best_label(source: Source, parts: Parts, scores: int, labels: np.ndarray) -> None:
    """The label of the first largest score of each row."""
    options: dict[str, Attribute] = {"output_type": "s64", "last": False, "starts_with_first": True}
    best = parts.step("arg_max", "s64", [scores, source.constant(np.array([-1]), "axis")], **options)
    parts.last("gather", "s64", [source.constant(labels, "labels"), best], source.outputs[0], **ROWS)


def labels_of(source: Source, name: str) -> np.ndarray:
    """A classifier's labels, which are integers."""
    if source.texts("classlabels_strings"):
        raise source.unsupported("BT-ONNX-TYPE", "its labels are texts, which are no numbers", TEXTS)
    return listed(source, source.integers(name), name)


def _classifier(source: Source) -> None:
    """The label of the first largest score, and all scores; of one score and two labels those of no and yes."""
    expect_type(source, 0, *_NUMBERS)
    labels, parts, form = labels_of(source, "classlabels_ints"), Parts(source), transformation(source)
    source.integer("multi_class", 0)
    count = len(listed(source, source.reals("intercepts"), "intercepts"))
    one = count == 1 and labels.size == 2
    if count != labels.size and not one:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"{labels.size} labels for {count} scores")
    scores = _scores(source, parts, _converted(parts, source, "f32"), count)
    if one:
        give_label(source, parts, scores, labels)
    else:
        give_best_label(source, parts, scores, labels)
    if len(source.outputs) < 2 or not source.outputs[1]:
        return
    if not one:
        _transform(parts, scores, form, count, source.outputs[1])
        return
    yes = by_library(parts, scores) if form == "LOGISTIC" else scores
    no = parts.step("sub", "f32", [parts.number(1, "one"), yes], **PLAIN)
    parts.last("concatenation", "f32", [no, yes], source.outputs[1], axis=1, **PLAIN)


TEXTS = "let the pipeline encode texts before the model, and give it numbers"
_REFUSED = {
    "CastMap": "it reads maps, which are no tensors",
    "CategoryMapper": "it turns texts into numbers or numbers into texts",
    "DictVectorizer": "it reads maps, which are no tensors",
    "ZipMap": "it gives maps, which are no tensors",
}


def refused(source: Source) -> None:
    """What reads or gives no tensors of numbers."""
    advice = "export the classifier with zipmap=False" if source.op_type == "ZipMap" else TEXTS
    raise source.unsupported("BT-OPERATOR", _REFUSED[source.op_type], advice)


_MAPPERS: dict[str, Mapper] = {
    "ArrayFeatureExtractor": _extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
    **dict.fromkeys(_REFUSED, refused),
}
MAPPERS: Mappers = {(CLASSICAL, name): mapper for name, mapper in _MAPPERS.items()}
