"""Writes docs/onnx_quantize_linear.md: where implementations and ONNX's text on QuantizeLinear part.

    python tools/make_quantize_linear_page.py [--check]

Every pair of types of every version is two models of one node, and so is every form of scales and every attribute for
some pairs, which the text's arithmetic (numerics `onnx`), the reference evaluator of the package onnx and ONNX Runtime
run on the same values.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import bittrue

PAGE = Path(__file__).resolve().parents[1] / "docs" / "onnx_quantize_linear.md"
VERSIONS = (10, 13, 19, 21, 23, 24, 25)
WIDE: dict[str, int] = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "s32": TensorProto.INT32,
}
NARROW: dict[str, int] = {
    "u8": TensorProto.UINT8,
    "s8": TensorProto.INT8,
    "u16": TensorProto.UINT16,
    "s16": TensorProto.INT16,
    "u4": TensorProto.UINT4,
    "s4": TensorProto.INT4,
    "u2": TensorProto.UINT2,
    "s2": TensorProto.INT2,
    "f8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "f8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "f8e5m2": TensorProto.FLOAT8E5M2,
    "f8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "f4e2m1": TensorProto.FLOAT4E2M1,
}
_PLAIN = {NARROW[name] for name in ("u8", "s8", "u16", "s16")} | {WIDE[name] for name in ("f32", "f16", "s32")}
_STORED: dict[str, int] = {**NARROW, "s32": TensorProto.INT32}
# Scale and zero point of the two models of each pair: real numbers have zero point 0.
_PARAMETERS = ((2.0, 0), (0.3, 1))
_SCALES: dict[str, int] = {**WIDE, "f8e8m0": TensorProto.FLOAT8E8M0}
_FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
# What the second model of a pair is called: the first one's name and its own scale.
_AGAIN = re.compile(r"(\w+ to \w+), scale [\d.]+(?:, zero point \d+)?")
# Of values on which answers part so many are shown.
_SHOWN = 6
# Forms of scales: in words, shape of x, shape of the scale, attributes, whether there is a zero point.
FORMS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int], bool], ...] = (
    ("a scale of shape [1]", (12,), (1,), {}, True),
    ("a scale of shape [1, 1]", (2, 6), (1, 1), {}, True),
    ("no zero point", (12,), (), {}, False),
    ("axis 0", (2, 6), (2,), {"axis": 0}, True),
    ("the default axis", (6, 2), (2,), {}, True),
    ("the default axis of rank 1", (2,), (2,), {}, True),
    ("axis -1", (6, 2), (2,), {"axis": -1}, True),
    ("axis -3 of rank 2", (2, 6), (2,), {"axis": -3}, True),
    ("axis 2 of rank 2 and one scale", (2, 6), (), {"axis": 2}, True),
    ("three scales for two rows", (2, 6), (3,), {"axis": 0}, True),
    ("blocks of 2 on axis 1", (2, 6), (2, 3), {"axis": 1, "block_size": 2}, True),
    ("blocks of 2 on axis 0", (6, 2), (3, 2), {"axis": 0, "block_size": 2}, True),
    ("blocks of 2 on axis -1", (2, 6), (2, 3), {"axis": -1, "block_size": 2}, True),
    ("blocks of 4, the last one cut off", (2, 6), (2, 2), {"axis": 1, "block_size": 4}, True),
    ("blocks of 6 with scales for blocks of 2", (2, 6), (2, 3), {"axis": 1, "block_size": 6}, True),
    ("scales of blocks without block_size", (2, 6), (2, 3), {"axis": 1}, True),
    ("block_size 2 and one scale", (2, 6), (), {"axis": 1, "block_size": 2}, True),
    ("block_size 2 and a scale per column", (2, 6), (6,), {"axis": 1, "block_size": 2}, True),
    ("block_size -1", (2, 6), (2,), {"axis": 0, "block_size": -1}, True),
)
_REAL = (1.0, 3.0, 5.0, -1.0, 0.6, 7.0, 300.0, 1e3, -1e3, 6e4, -6e4, np.inf, -np.inf, np.nan)
_INTEGERS = (1, 3, 5, -1, 7, 300, -300, 70000, 2**31 - 1, -(2**31))
_CODES = (0, 1, 2, 3, 7, 8, 15, 64, 127, 128, 200, 255)
# What each of the three answers to one value; a refusal of the whole node is one answer to all.
REFUSED = "refused"
Answers = dict[str, list[str]]


def _model(
    operator: str,
    version: int,
    first: int,
    second: int,
    scale: int,
    x: np.ndarray,
    sizes: tuple[int, ...] = (),
    attributes: dict[str, int] | None = None,
    centered: bool = True,
    parameters: tuple[float, int] = (2.0, 0),
) -> bytes:
    """One node from `first` to `second`; the first scale and zero point are `parameters`, others follow them.

    NumPy has no 4-bit and 8-bit reals and no narrower integers: such inputs are constants, such outputs are cast.
    """
    point = first if operator == "DequantizeLinear" else second
    count = int(np.prod(sizes))
    constants = [helper.make_tensor("s", scale, sizes, [(parameters[0], 0.5, 3.0)[i % 3] for i in range(count)])]
    if centered:
        constants.append(helper.make_tensor("z", point, sizes, [parameters[1] + i % 4 for i in range(count)]))
    fed = x.dtype.isbuiltin == 1
    if not fed:
        constants.append(helper.make_tensor("x", first, x.shape, x.astype(np.float32)))
    names = ["x", "s", "z"] if centered else ["x", "s"]
    nodes = [helper.make_node(operator, names, ["y"], **(attributes or {}))]
    result = second
    if second not in _PLAIN:
        nodes = [
            helper.make_node(operator, names, ["q"], **(attributes or {})),
            helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
        ]
        result = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", first, x.shape)] if fed else [],
        [helper.make_tensor_value_info("y", result, x.shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)
    found: bytes = model.SerializeToString()
    return found


def _words(value: Any) -> list[str]:
    return [f"{float(v):.9g}" for v in np.asarray(value).reshape(-1).astype(np.float64)]


def _answers(content: bytes, x: np.ndarray) -> Answers:
    feeds = {"x": x} if x.dtype.isbuiltin == 1 else {}

    def text() -> Any:
        session = bittrue.load(content).prepare("onnx", executor="reference")
        return next(iter(session.run(feeds).values()))

    def reference() -> Any:
        return ReferenceEvaluator(onnx.load_from_string(content)).run(None, feeds)[0]

    def runtime() -> Any:
        return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)[0]

    found: Answers = {}
    for name, run in (("text", text), ("reference", reference), ("runtime", runtime)):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found[name] = _words(run())
        except Exception:  # each has errors of its own for what it does not take
            found[name] = [REFUSED] * x.size
    return found


Row = tuple[str, str, int, str, Answers, list[str]]


def rows(versions: tuple[int, ...] = VERSIONS) -> Iterator[Row]:
    """(operator, types, version, the model in a line, answers, the values) of every pair."""
    onnxruntime.set_default_logger_severity(4)
    for version in versions:
        for parameters in _PARAMETERS:
            for wide, narrow in ((w, n) for w in WIDE for n in NARROW):
                yield _quantized(version, wide, narrow, parameters=parameters)
            for narrow, wide in ((n, w) for n in _STORED for w in ("f32", "f16", "bf16")):
                yield _dequantized(version, narrow, wide, parameters=parameters)
        yield from _forms(version)
        yield from _attributes(version)


def _words_of(scale: str, kind: str, parameters: tuple[float, int], attributes: dict[str, int]) -> tuple[str, str]:
    """What models of a pair are called beside their types, and how their parameters are written in a line."""
    number, point = parameters
    types = {code: words for words, code in (_STORED | WIDE).items()}
    named = ("output_dtype", "precision")
    given = [f"{name} {types[value] if name in named else value}" for name, value in attributes.items()]
    apart = f", scale {number:g}" + (f", zero point {point}" if point else "") if parameters[0] != 2 else ""
    ends = "".join(f", {words}" for words in given)
    return apart + ends, f"{scale} {number:g}" + (f", zero point {kind} {point}" if kind else "") + ends


def _quantized(
    version: int,
    wide: str,
    narrow: str,
    scale: str = "",
    attributes: dict[str, int] | None = None,
    centered: bool = True,
    parameters: tuple[float, int] = (2.0, 0),
) -> Row:
    """A QuantizeLinear with one scale: of the type of x unless one is named."""
    values = np.asarray(_INTEGERS if wide == "s32" else _REAL, np.float64)
    with np.errstate(all="ignore"):
        x = values.astype(helper.tensor_dtype_to_np_dtype(WIDE[wide]))
    own = scale or ("f32" if wide == "s32" else wide)
    if narrow.startswith("f"):
        parameters = (parameters[0], 0)
    more, line = _words_of(f"y_scale {scale}".strip(), narrow if centered else "", parameters, attributes or {})
    content = _model(
        "QuantizeLinear",
        version,
        WIDE[wide],
        NARROW[narrow],
        _SCALES[own],
        x,
        (),
        attributes,
        centered,
        parameters,
    )
    types = f"{wide} to {narrow}" + (f", y_scale {scale}" if scale else "") + ("" if centered else ", no zero point")
    line = f"`QuantizeLinear` {version}: x {wide}, {line}"
    return "QuantizeLinear", types + more, version, line, _answers(content, x), _words(x)


def _dequantized(
    version: int,
    narrow: str,
    wide: str,
    scale: str = "",
    attributes: dict[str, int] | None = None,
    parameters: tuple[float, int] = (2.0, 0),
) -> Row:
    """A DequantizeLinear with one scale: of the type of y unless one is named."""
    stored = np.dtype(helper.tensor_dtype_to_np_dtype(_STORED[narrow]))
    if narrow == "s32":
        x = np.asarray(_INTEGERS, np.int32)
    elif narrow.startswith("f8") or stored.isbuiltin == 1:
        codes = np.asarray(_CODES, np.uint8)
        x = codes.view(stored) if stored.itemsize == 1 else codes.astype(stored)
    else:
        # What has fewer bits than a byte: its small numbers.
        x = np.asarray([0, 1, *((3, 6) if narrow[1] == "4" else ()), *((-2, -1) if narrow[0] == "s" else ())]).astype(
            stored
        )
    if narrow.startswith("f"):
        parameters = (parameters[0], 0)
    more, line = _words_of(f"x_scale {scale or wide}", narrow, parameters, attributes or {})
    content = _model(
        "DequantizeLinear",
        version,
        _STORED[narrow],
        WIDE[wide],
        _SCALES[scale or wide],
        x,
        (),
        attributes,
        True,
        parameters,
    )
    types = f"{narrow} to {wide}" + (f", x_scale {scale}" if scale else "")
    line = f"`DequantizeLinear` {version}: x {narrow}, {line}"
    return "DequantizeLinear", types + more, version, line, _answers(content, x), _words(x)


def _attributes(version: int) -> Iterator[Row]:
    """What versions from 19 on ask for by attributes, and scales of other types than x."""
    if version >= 19:
        yield _quantized(version, "s32", "s8", "s32", parameters=(2.0, 1))
        for narrow in _FLOATS:
            yield _quantized(version, "f32", narrow, attributes={"saturate": 0})
    if version >= 21:
        for narrow in NARROW:
            yield _quantized(version, "f32", narrow, attributes={"output_dtype": NARROW[narrow]}, centered=False)
        yield _quantized(version, "f32", "u8", attributes={"output_dtype": NARROW["s8"]})
    if version >= 23:
        for wide, precision in (("f32", "f16"), ("f32", "bf16"), ("f16", "f32"), ("s32", "f16"), ("s32", "bf16")):
            given = {"precision": WIDE[precision]}
            yield _quantized(version, wide, "s8", attributes=given, parameters=_PARAMETERS[1])
        for wide, scale in ((w, s) for w in WIDE for s in _SCALES if s not in (w, "f8e8m0" if version < 24 else "")):
            whole = (2.0, 1) if scale in ("s32", "f8e8m0") else _PARAMETERS[1]
            yield _quantized(version, wide, "s8", scale, parameters=whole)
        for wide, scale in ((w, s) for w in ("f32", "f16", "bf16") for s in _SCALES if s not in (w, "s32")):
            if scale != "f8e8m0" or version >= 24:
                whole = (2.0, 1) if scale == "f8e8m0" else _PARAMETERS[1]
                given = {"output_dtype": WIDE[wide]}
                yield _dequantized(version, "s8", wide, scale, given, whole)


def _forms(version: int) -> Iterator[Row]:
    """Scales per axis and per block, of f32 and u8."""
    for words, shape, sizes, attributes, centered in FORMS:
        for operator in ("QuantizeLinear", "DequantizeLinear"):
            first, second = WIDE["f32"], NARROW["u8"]
            x = np.linspace(-3, 200, int(np.prod(shape)), dtype=np.float32).reshape(shape)
            if operator == "DequantizeLinear":
                first, second, x = second, first, np.rint(np.maximum(x, 0)).astype(np.uint8)
            content = _model(operator, version, first, second, WIDE["f32"], x, sizes, attributes, centered)
            given = "".join(f", {name} {value}" for name, value in attributes.items())
            line = f"`{operator}` {version}: x {list(shape)}, scale {list(sizes)}{given}"
            types = "f32 to u8" if operator == "QuantizeLinear" else "u8 to f32"
            yield operator, f"{types}, {words}", version, line, _answers(content, x), _words(x)


def _difference(answers: Answers, values: list[str]) -> str:
    """The values on which the three part, joined; empty where they agree or all refuse."""
    each = zip(values, *answers.values(), strict=True)
    table = [f"{x}: {', '.join(told)}" for x, *told in each if len(set(told)) > 1]
    whole = {name: set(column) == {REFUSED} for name, column in answers.items()}
    refusing = [name for name, refused in whole.items() if refused]
    if refusing:
        others = [column for name, column in answers.items() if not whole[name]]
        table = (
            [f"{x}: {a}, {b}" for x, a, b in zip(values, *others, strict=True) if a != b] if len(others) == 2 else []
        )
        said = f"refused by {' and '.join(refusing)}"
        return f"{said}; {_some(table)}" if table else said if others else ""
    return _some(table)


def _some(table: list[str]) -> str:
    return "; ".join([*table[:_SHOWN], *([f"{len(table) - _SHOWN} more"] if len(table) > _SHOWN else [])])


def page() -> str:
    """The page's text."""
    found: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    count = 0
    usual: dict[tuple[str, str, int], str] = {}
    for operator, types, version, line, answers, values in rows():
        count += 1
        difference = _difference(answers, values)
        usual[operator, types, version] = difference
        again = _AGAIN.fullmatch(types)
        if again and usual[operator, again[1], version] == difference:
            # What both models say stands there once.
            continue
        if difference:
            found.setdefault((operator, types, difference), []).append((version, line))
    lines = [
        "# QuantizeLinear and DequantizeLinear: the text and two implementations",
        "",
        f"Made by `tools/make_quantize_linear_page.py` with onnx {onnx.__version__} and ONNX Runtime"
        f" {onnxruntime.__version__}: {count} models of one node,",
        "every type of every version with scale 2 and zero point 0 and with scale 0.3 and zero point 1 (0 where the"
        " type has real numbers), which stands here where it tells more;",
        "scales per axis and per block of f32 and u8, attributes, and scales of another type than x."
        " **text** is the specification as the numerics `onnx` carries it out,",
        "**reference** the reference evaluator of the package onnx, **runtime** ONNX Runtime's CPU provider. A row is a"
        " disagreement: each value x with",
        "what the three make of it, in this order (where one refuses the model, the other two). What is not here, all"
        " three agree on, or refuse.",
        "",
        "| types | versions | model | differs |",
        "|---|---|---|---|",
    ]
    for (_, types, difference), where in found.items():
        numbers = ", ".join(str(version) for version, _ in where)
        lines.append(f"| {types} | {numbers} | {where[0][1]} | {difference} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Writes the page; with ``--check`` 1 where it is not what the installed versions say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
