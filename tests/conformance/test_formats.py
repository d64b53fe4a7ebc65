"""Formats of vectors: every file is read back by quantized value that shares nothing with what wrote it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from bittrue.conformance.expected import Expected
from bittrue.conformance.formats import describe
from bittrue.conformance.formats.options import Options
from bittrue.conformance.formats.writing import FORMATS, write_vectors
from bittrue.conformance.suite import SUITE_VERSION, SuiteCase, find_suite
from bittrue.conformance.suite.tflite import Operand, one_operator
from bittrue.errors import InputError
from support import suite_cases
from support.json_schema import problems
from support.shared import SHARED

SCHEMAS = files("bittrue.conformance.formats") / "schemas"
CASES = {case.identity: case for case in suite_cases.cases()}
TYPES = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "f32": np.float32}


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All formats of all cases, with accumulators."""
    root = tmp_path_factory.mktemp("vectors") / "v"
    write_vectors(root, find_suite("litert"), suite_cases.cases(), ["all"], accumulators=True)
    return root


def outputs(case: SuiteCase) -> dict[str, np.ndarray]:
    return {} if case.rejects else dict(Expected(case, ("litert",)).outputs("litert"))


def convolved(case: SuiteCase) -> np.ndarray:
    """The accumulators of `suite_cases.convolution`, one product at a time."""
    constants = {t.name: t.values() for t in case.model.graph.tensors if t.is_constant}
    x, w, bias = case.inputs["input0"].astype(int) - 3, constants["weights"].astype(int), constants["bias"].astype(int)
    acc = np.zeros((1, 2, 3, 3), int)
    for _, i, j, c in np.ndindex(acc.shape):
        acc[0, i, j, c] = bias[c] + sum(
            x[0, i + a, j + b, k] * w[c, a, b, k] for a in (0, 1) for b in (0, 1) for k in (0, 1)
        )
    return acc


# -- description -------------------------------------------------------------------------------------------------------


def test_description_is_json_and_holds_the_operands() -> None:
    found = json.loads(json.dumps(describe(CASES["CONV_2D/s8/ties/000"], "litert", accumulators=True), allow_nan=False))
    tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
    assert [(t["role"], t["name"], t["position"]) for t in found["tensors"]] == [
        ("input", "input0", 0),
        ("constant", "weights", 1),
        ("constant", "bias", 2),
        ("output", "output0", 0),
    ]
    assert tensors["weights"]["scale"] == [float(scale) for scale in suite_cases.CONV_SCALES]
    assert (tensors["weights"]["axis"], tensors["input0"]["zero_point"], tensors["input0"]["axis"]) == (0, [3], None)
    assert found["attributes"]["strides"] == [1, 1]
    assert found["plan"]["steps"][0]["clamp"] == {"low": -128, "high": 127}


def test_multipliers_are_the_real_factors() -> None:
    found = describe(CASES["CONV_2D/s8/ties/000"], "litert")
    (one,) = found["plan"]["steps"][0]["multipliers"]
    for scale, m, power in zip(suite_cases.CONV_SCALES, one["multiplier"], one["power"], strict=True):
        real = Fraction(0.5) * Fraction(float(scale))
        assert abs(Fraction(m) * Fraction(2) ** power / real - 1) <= Fraction(1, 2**31)
    assert one["power"] == [exponent - 31 for exponent in one["exponent"]]


def test_accumulators_are_the_sums_and_their_distances_from_ties() -> None:
    case = CASES["CONV_2D/s8/ties/000"]
    found = describe(case, "litert", accumulators=True)
    acc, (one,) = found["accumulators"]["output0"], found["plan"]["steps"][0]["multipliers"]
    assert np.array_equal(np.reshape(acc["values"], acc["shape"]), convolved(case))
    for place, value in enumerate(acc["values"]):
        channel = place % 3
        exact = value * Fraction(one["multiplier"][channel]) * Fraction(2) ** one["power"][channel]
        assert acc["tie_distance"][place] == float(abs(exact - exact.__floor__() - Fraction(1, 2)))
    assert 0.0 in acc["tie_distance"]


def test_registers_of_64_bits_are_written_in_64_bits(tmp_path: Path) -> None:
    """Whatever the values are: a testbench must not guess widths."""
    shape, options = (1, 2, 2, 1), {"padding": "VALID", "stride_w": 1, "stride_h": 1}
    weights = Operand("s8", (1, 1, 1, 1), np.float32([0.5]), 0, 0, np.ones((1, 1, 1, 1), np.int8), "w")
    bias = Operand("s64", (1,), np.float32([0.25]), 0, 0, np.int64([5]), "b")
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    content = one_operator(
        "CONV_2D", [Operand("s16", shape, 0.5), weights, bias], [Operand("s16", shape, 1.0)], options
    )
    fed = {"input0": np.arange(4, dtype=np.int16).reshape(shape)}
    case = SuiteCase("CONV_2D/s16/random/000", "litert", "CONV_2D", "s16", "random", "tflite", content, fed)
    write_vectors(tmp_path / "v", find_suite("litert"), [case], ["npz"], accumulators=True)
    with np.load(tmp_path / "v" / "npz" / "CONV_2D.npz") as archive:
        acc, m = archive["c000/accumulator-0"], archive["c000/multiplier-0"]
    assert (acc.dtype, acc.reshape(-1).tolist(), m.dtype) == (np.int64, [5, 6, 7, 8], np.int32)
    (one,) = describe(case, "litert")["plan"]["steps"][0]["multipliers"]
    assert (one["multiplier"][0] * Fraction(2) ** one["power"][0], one["exponent"]) == (Fraction(1, 4), [-1])
    assert one["power"][0] == one["exponent"][0] - 15


def test_multipliers_with_a_count_folded_in_keep_their_meaning() -> None:
    """The mean of 3: the integer does not use its 31 bits, and still is one third."""
    axes = Operand("s32", (1,), data=np.int32([1]), name="axes")
    operands = [Operand("s8", (1, 3), 0.5, 1), axes]
    content = one_operator("MEAN", operands, [Operand("s8", (1,), 0.25, 2)], {"keep_dims": False})
    fed = {"input0": np.int8([[1, 2, 4]])}
    case = SuiteCase("MEAN/s8/random/000", "litert", "MEAN", "s8", "random", "tflite", content, fed)
    (one,) = describe(case, "litert")["plan"]["steps"][0]["multipliers"]
    assert abs(one["multiplier"][0] * Fraction(2) ** one["power"][0] - Fraction(2, 3)) < Fraction(1, 2**28)


def test_description_of_what_must_be_refused() -> None:
    found = describe(CASES["CONV_2D/s8/rejects/000"], "litert", accumulators=True)
    assert found["rejects"] == "the bias has one element too many"
    assert "plan" not in found
    assert "accumulators" not in found
    broken = SuiteCase(
        "X/s8/rejects/000", "litert", "X", "s8", "rejects", "tflite", b"no model", {"x": np.int8([1])}, "", "it"
    )
    found = describe(broken)
    assert found["tensors"][0]["dtype"] == "s8"
    assert "[BT-" in found["refusal"]


# -- manifests ---------------------------------------------------------------------------------------------------------


def test_manifests_fit_their_schemas(folder: Path) -> None:
    checked = 0
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text())
        assert problems(content, schema(content["format"])) == [], path
        checked += 1
    assert checked == 5 + 1
    with zipfile.ZipFile(folder / "desc" / "CONV_2D.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                assert problems(json.loads(archive.read(name)), schema("bittrue-desc-1")) == [], name


def test_schemas_refuse_what_does_not_fit(folder: Path) -> None:
    content = json.loads((folder / "npz" / "manifest.json").read_text())
    content["cases"][0]["outputs"][0]["shape"] = [-1]
    content["cases"][1]["expected_failure"] = "no"
    content["cases"][2]["sha256"] = "x"
    del content["cases"][3]["operator"]
    found = problems(content, schema("bittrue-vectors-1"))
    assert [line.split(":")[0] for line in found] == [
        "$.cases[0].outputs[0].shape[0]",
        "$.cases[1].expected_failure",
        "$.cases[2].sha256",
        "$.cases[3]",
    ]


GOLDEN = SHARED / "golden"


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the recorded vectors are not at {GOLDEN}")
@pytest.mark.parametrize("framework", ["caffe2", "mxnet", "onnxruntime", "snps_caffe", "tvm_qnn"])
def test_recorded_manifests_fit_the_schema(framework: str) -> None:
    content = json.loads((GOLDEN / framework / "manifest.json").read_text())
    assert problems(content, schema("bittrue-vectors-1")) == []


# -- arrays ------------------------------------------------------------------------------------------------------------


def test_npz_holds_everything(folder: Path) -> None:
    manifest = json.loads((folder / "npz" / "manifest.json").read_text())
    assert [case["id"] for case in manifest["cases"]] == list(CASES)
    for found in manifest["cases"]:
        case = CASES[found["id"]]
        with np.load(folder / "npz" / found["file"]) as archive:
            assert archive[found["model"]["key"]].tobytes() == case.content
            operands = [o for o in found["inputs"] if o is not None]
            fed = {o["name"]: archive[o["key"]] for o in operands if not o.get("initializer")}
            given = {o["name"]: archive[o["key"]] for o in found["outputs"]}
            kept = {o["name"]: archive[o["key"]] for o in operands if o.get("initializer")}
            sums = {o["role"]: archive[o["key"]] for o in found["accumulators"]}
        same(fed, dict(case.inputs))
        same(given, outputs(case))
        same(kept, {t.name: t.values() for t in case.model.graph.tensors if t.is_constant})
        assert found["expected_failure"] is bool(case.rejects)
        assert found.get("numerics_refuses") == {"CONV_2D": True, "RESHAPE": False}.get(
            case.operator * bool(case.rejects)
        )
        if found["operator"] == "CONV_2D" and not case.rejects:
            assert np.array_equal(sums["accumulator"], convolved(case))
            assert found["plan"]["steps"][0]["rules"]["rescale"] == "q31_two_step_up_away"
    assert [o["name"] for o in manifest["cases"][4]["inputs"] if o is not None] == ["input1", "axis"]


def same(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> None:
    assert list(one) == list(two)
    for name, value in one.items():
        assert (value.dtype, value.shape, value.tobytes()) == (two[name].dtype, two[name].shape, two[name].tobytes())


def test_npz_has_no_times_in_it(folder: Path) -> None:
    content = (folder / "npz" / "CONV_2D.npz").read_bytes()
    stamps = re.findall(rb"PK\x03\x04.{6}(.{4})", content, re.DOTALL)
    assert len(stamps) > 5
    # 1980-01-01 00:00, the first that the format can say.
    assert set(stamps) == {b"\x00\x00\x21\x00"}


def test_desc_folders(tmp_path: Path) -> None:
    folder = tmp_path / "v"
    write_vectors(folder, find_suite("litert"), suite_cases.cases(), ["desc"], accumulators=True)
    for identity, case in CASES.items():
        place = folder / "desc" / identity
        found = json.loads((place / "desc.json").read_text())
        assert (place / found["model_file"]).read_bytes() == case.content
        for word, arrays in (("ifm", dict(case.inputs)), ("ofm", outputs(case))):
            read = [np.load(place / file) for file in found[f"{word}_file"]]
            same(dict(zip(found[f"{word}_name"], read, strict=True)), arrays)
        assert found["expected_failure"] is bool(case.rejects)
        assert found["meta"]["compliance"]["tensors"].keys() == outputs(case).keys()


@pytest.mark.parametrize("order", ["little", "big"])
def test_binary(tmp_path: Path, order: str) -> None:
    case = CASES["ADD/s16/random/000"]
    write_vectors(tmp_path / "v", find_suite("litert"), [case], ["bin"], options=Options(endianness=order))
    (found,) = json.loads((tmp_path / "v" / "bin" / "manifest.json").read_text())["cases"]
    for entry, value in zip(
        [*found["inputs"], *found["outputs"]], [*case.inputs.values(), *outputs(case).values()], strict=True
    ):
        content = (tmp_path / "v" / "bin" / found["file"]).read_bytes()
        part = content[entry["start"] : entry["start"] + entry["length"]]
        read = np.frombuffer(part, ">i2" if order == "big" else "<i2")
        assert np.array_equal(read.reshape(entry["shape"]), value)
        assert entry["start"] % 16 == 0
        assert entry["byte_order"] == order


def test_tflite_files_stand_beside_their_arrays(folder: Path) -> None:
    for case in CASES.values():
        operator, *rest = case.identity.split("/")
        place = folder / "tflite" / operator / "-".join(rest)
        assert place.with_name(f"{place.name}.tflite").read_bytes() == case.content
        with np.load(place.with_name(f"{place.name}.npz")) as archive:
            wanted = {f"input-{i}": value for i, value in enumerate(case.inputs.values())}
            wanted |= {f"output-{i}": value for i, value in enumerate(outputs(case).values())}
            same({name: archive[name] for name in archive.files}, wanted)


def test_all_packs_folders_per_case(folder: Path, tmp_path: Path) -> None:
    """What is in the archives is what stands in folders otherwise."""
    more = Options(split=True)
    write_vectors(tmp_path / "v", find_suite("litert"), suite_cases.cases(), ["all"], accumulators=True, options=more)
    for name in ("desc", "onnx"):
        packed: dict[str, bytes] = {}
        for path in (folder / name).glob("*.zip"):
            with zipfile.ZipFile(path) as archive:
                packed |= {member: archive.read(member) for member in archive.namelist()}
        apart = tree(tmp_path / "v" / name)
        apart.pop("manifest.json", None)
        assert packed == apart
        assert packed
    assert len(list((tmp_path / "v" / "hex").rglob("parameters.vh"))) == len(CASES)
    assert problems(json.loads((tmp_path / "v/hex/manifest.json").read_text()), schema("bittrue-hex-1")) == []


def test_readme_says_what_is_what(folder: Path) -> None:
    lines = (folder / "README.txt").read_text().splitlines()
    assert f"'litert', version {SUITE_VERSION}" in lines[0]
    assert [line.split("/")[0] for line in lines[4:11]] == list(FORMATS)
    assert any("bittrue replay ." in line for line in lines)
    assert any("bittrue conform results:" in line for line in lines)
    assert max(map(len, lines)) <= 120


def test_onnx_tests_are_those_of_the_backend_suite(tmp_path: Path) -> None:
    case = suite_cases.onnx_case()
    refused = suite_cases.onnx_case("weights of one channel, the input has two")
    write_vectors(tmp_path / "v", find_suite("onnx"), [case, refused], ["onnx"])
    root = tmp_path / "v" / "onnx"
    assert sorted(path.name for path in root.iterdir()) == [
        "manifest.json",
        "rejects",
        "test_QLinearConv_u8_random_000",
    ]
    test = root / "test_QLinearConv_u8_random_000"
    assert (test / "model.onnx").read_bytes() == case.content
    read = {}
    for name in ("input_0", "output_0"):
        proto = onnx.TensorProto.FromString((test / "test_data_set_0" / f"{name}.pb").read_bytes())
        read[proto.name] = numpy_helper.to_array(proto)
    same(read, {**case.inputs, **Expected(case, ("onnxruntime",)).outputs("onnxruntime")})
    assert [path.name for path in (root / "rejects").rglob("*.pb")] == ["input_0.pb"]


# -- hex ---------------------------------------------------------------------------------------------------------------


def elements(text: str, element: int, word: int, per_word: int, order: str, endianness: str) -> list[int]:
    """Elements of a $readmemh text as unsigned values, by integer arithmetic alone."""
    words = [int(line.split("//")[0], 16) for line in text.splitlines() if line[0] not in "/@"]
    if word < element:
        parts = -(-element // word)
        groups = [words[i : i + parts] for i in range(0, len(words), parts)]
        groups = [group if endianness == "little" else group[::-1] for group in groups]
        return [sum(part << (word * i) for i, part in enumerate(group)) for group in groups]
    found = []
    for value in words:
        quantized = [(value >> (element * i)) & ((1 << element) - 1) for i in range(per_word)]
        quantized = quantized if order == "low" else quantized[::-1]
        if endianness == "big":
            quantized = [int.from_bytes(code.to_bytes(element // 8, "little"), "big") for code in quantized]
        found += quantized
    return found


@pytest.mark.parametrize("word", [0, 4, 8, 12, 16, 24, 64, 100])
@pytest.mark.parametrize("order", ["low", "high"])
@pytest.mark.parametrize("endianness", ["little", "big"])
def test_hex_words(tmp_path: Path, word: int, order: str, endianness: str) -> None:
    options = Options(word, 0, order, endianness, comments=word == 64)
    for case in (CASES["ADD/s16/random/000"], CASES["QUANTIZE/f32-s8/near-ties/000"]):
        place = tmp_path / case.operator
        write_vectors(place, find_suite("litert"), [case], ["hex"], options=options)
        (found,) = json.loads((place / "hex" / "manifest.json").read_text())["cases"]
        values = {**case.inputs, **outputs(case)}
        for memory in found["memories"]:
            text = (place / "hex" / memory["file"]).read_text()
            lines = [line for line in text.splitlines() if not line.startswith(("//", "@"))]
            value = values[memory["name"]]
            width = 8 * value.dtype.itemsize
            wanted = value.reshape(-1).view(f"u{value.dtype.itemsize}").tolist()
            read = elements(text, width, word or width, max((word or width) // width, 1), order, endianness)
            assert read[: len(wanted)] == wanted
            assert not any(read[len(wanted) :])
            assert memory["words"] == len(lines)
            assert len(lines[0].split()[0]) == -(-(word or width) // 4)


def test_hex_layouts(tmp_path: Path) -> None:
    case = CASES["CONV_2D/s8/ties/000"]
    x = case.inputs["input0"]
    first = x.transpose(0, 3, 1, 2)
    blocks = np.full((1, 1, 3, 4, 4), 3, np.int8)
    blocks[..., :2] = x[:, None]
    for layout, wanted in (("nhwc", x), ("nchw", first), ("nc/4hw", blocks), ("", x)):
        place = tmp_path / (layout.replace("/", "_") or "plain")
        write_vectors(place, find_suite("litert"), [case], ["hex"], options=Options(layout=layout))
        text = (place / "hex" / "CONV_2D" / "s8" / "input-0.hex").read_text()
        assert elements(text, 8, 8, 1, "low", "little") == wanted.reshape(-1).view(np.uint8).tolist()
        (found,) = json.loads((place / "hex" / "manifest.json").read_text())["cases"]
        assert found["memories"][0]["stored_shape"] == list(wanted.shape)


def test_hex_refuses_packing_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not fit a word of 32"):
        write_vectors(
            tmp_path / "v", find_suite("litert"), [CASES["ADD/s16/random/000"]], ["hex"], options=Options(32, 3)
        )
    for wrong in (
        {"layout": "nc/0hw"},
        {"layout": "hwc"},
        {"order": "first"},
        {"endianness": "pdp"},
        {"word_width": -1},
    ):
        with pytest.raises(InputError):
            Options(**wrong)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_parameter_packages_hold_the_plan(folder: Path, tmp_path: Path) -> None:
    """Also the arrays, read by a simulator at the addresses of the table."""
    place, package = folder / "hex" / "CONV_2D" / "s8", "CONV_2D_s8"
    columns = ("LOW", "HIGH", "INPUT_ZERO_POINT", "OUTPUT_0_ZERO_POINT", "ACCUMULATOR_0_ELEMENTS", "INPUT_0_EXTENT_2")
    top = tmp_path / "top.sv"
    top.write_text(
        f"module top; import {package}::*;\n"
        "reg [7:0] x [0:INPUT_0_DEPTH-1]; reg [31:0] m [0:MULTIPLIER_DEPTH-1]; reg [31:0] e [0:EXPONENT_DEPTH-1];\n"
        "reg [31:0] r [0:RIGHT_SHIFT_DEPTH-1]; reg signed [31:0] a [0:ACCUMULATOR_0_DEPTH-1]; integer n, i;\n"
        "initial begin\n"
        + "".join(
            f'$readmemh("{place}/{name}.hex", {memory});\n'
            for name, memory in (
                ("input-0", "x"),
                ("multiplier", "m"),
                ("exponent", "e"),
                ("right_shift", "r"),
                ("accumulator-0", "a"),
            )
        )
        + "for (n = 0; n < CASES; n = n + 1) begin\n"
        + "".join(f'$display("{name} %0d", $signed({name}[32*n +: 32]));\n' for name in columns)
        + "for (i = 0; i < MULTIPLIER_COUNT[32*n +: 32]; i = i + 1) begin\n"
        + "".join(
            f'$display("{memory} %0d", $signed({memory}[{name}_START[32*n +: 32] + i]));\n'
            for name, memory in (("MULTIPLIER", "m"), ("EXPONENT", "e"), ("RIGHT_SHIFT", "r"))
        )
        + 'end for (i = 0; i < INPUT_0_WORDS[32*n +: 32]; i = i + 1) $display("x %0d", '
        "$signed(x[INPUT_0_START[32*n +: 32] + i]));\n"
        "for (i = 0; i < ACCUMULATOR_0_WORDS[32*n +: 32]; i = i + 1) "
        '$display("a %0d", a[ACCUMULATOR_0_START[32*n +: 32] + i]);\nend end endmodule\n'
    )
    packages = sorted(str(path) for path in (folder / "hex").rglob("parameters.sv"))
    assert len(packages) == 4
    subprocess.run(["iverilog", "-g2012", "-o", tmp_path / "a", *packages, top], check=True)
    done = subprocess.run(["vvp", "-n", tmp_path / "a"], check=True, capture_output=True, text=True)
    wanted = []
    for case in (CASES["CONV_2D/s8/ties/000"], CASES["CONV_2D/s8/ties/001"]):
        (one,) = describe(case, "litert")["plan"]["steps"][0]["multipliers"]
        wanted += [f"{name} {value}" for name, value in zip(columns, (-128, 127, 3, -4, 18, 4), strict=True)]
        for m, e, power in zip(one["multiplier"], one["exponent"], one["power"], strict=True):
            wanted += [f"m {m}", f"e {e}", f"r {-power}"]
        wanted += [f"x {code}" for code in case.inputs["input0"].reshape(-1)]
        wanted += [f"a {value}" for value in convolved(case).reshape(-1)]
    assert done.stdout.splitlines() == wanted
    left_out = json.loads((folder / "hex" / "manifest.json").read_text())["left_out"]
    assert {one["case"] for one in left_out} == {case.identity for case in CASES.values() if case.rejects}


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_columns_of_cases_that_differ(tmp_path: Path) -> None:
    """Types in the names of memories, and which cases have a value at all."""
    short = suite_cases.addition()
    plain = one_operator("ADD", [Operand("s8", (3,), 0.5)] * 2, [Operand("s8", (3,), 0.5)], {})
    fed = {"input0": np.int8([1, 2, 3]), "input1": np.int8([4, 5, 6])}
    other = SuiteCase("ADD/s16/shapes/000", "litert", "ADD", "s16", "shapes", "tflite", plain, fed)
    write_vectors(tmp_path / "v", find_suite("litert"), [short, other], ["hex"])
    place = tmp_path / "v" / "hex" / "ADD" / "s16"
    assert {path.name for path in place.glob("input*")} == {f"input-{i}-{t}.hex" for i in (0, 1) for t in ("s8", "s16")}
    text = (place / "parameters.vh").read_text()
    assert "localparam [1:0] INPUT_0_S16_EXTENT_1_KNOWN = 2'b01;" in text
    assert "localparam [63:0] INPUT_0_S16_WORDS = {\n  32'h00000000, 32'h0000000a};" in text
    (tmp_path / "top.sv").write_text("module top; import ADD_s16::*; endmodule\n")
    sources = [place / "parameters.sv", tmp_path / "top.sv"]
    subprocess.run(["iverilog", "-g2012", "-o", tmp_path / "a", *sources], check=True)


# -- C -----------------------------------------------------------------------------------------------------------------

_MAIN = """
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
static void values(const char *role, const bittrue_tensor *t) {
  printf("%s %s %s", role, t->name, t->dtype);
  for (int i = 0; i < t->rank; ++i) printf(" %d", (int)t->shape[i]);
  printf(" :");
  const size_t width = !strcmp(t->dtype, "s16") ? 2 : strchr("su", t->dtype[0]) && t->dtype[1] == '8' ? 1 : 4;
  for (size_t i = 0; i < t->count * width; ++i) printf("%02x", ((const unsigned char *)t->data)[i]);
  for (int i = 0; i < t->parameters; ++i) printf(" %a %d", t->scale[i], (int)t->zero_point[i]);
  printf("\\n");
}
static void show(const bittrue_case *cases, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const bittrue_case *c = &cases[i];
    printf("case %s %d [%s] [%s]\\n", c->identity, c->expected_failure, c->note, c->why);
    for (size_t k = 0; k < c->input_count; ++k) values("input", &c->inputs[k]);
    for (size_t k = 0; k < c->constant_count; ++k) values("constant", &c->constants[k]);
    for (size_t k = 0; k < c->output_count; ++k) values("output", &c->outputs[k]);
    for (size_t k = 0; k < c->accumulator_count; ++k) values("accumulator", &c->accumulators[k]);
    for (size_t k = 0; k < c->multiplier_count; ++k)
      for (size_t j = 0; j < c->multipliers[k].channels; ++j)
        printf("multiplier %d %d %d\\n", (int)c->multipliers[k].multiplier[j], (int)c->multipliers[k].exponent[j],
               (int)c->multipliers[k].power[j]);
  }
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_c_headers_compile_and_hold_the_arrays(folder: Path, tmp_path: Path) -> None:
    headers = sorted(path.stem for path in (folder / "c").glob("*.h") if path.stem != "bittrue_vectors")
    assert headers == ["ADD", "CONV_2D", "QUANTIZE", "RESHAPE", "SPLIT"]
    text = "".join(f'#include "{name}.h"\n' for name in headers) + _MAIN + "int main(void) {\n"
    text += "".join(f"show({name}_cases, {name}_CASE_COUNT);\n" for name in headers) + "return 0; }\n"
    (tmp_path / "main.c").write_text(text)
    for flags in (["-Wall"], ["-Wall", "-Wextra", "-pedantic"]):
        command = ["gcc", "-std=c99", *flags, "-Werror", "-I", folder / "c", "-o", tmp_path / "a", tmp_path / "main.c"]
        subprocess.run(command, check=True)
    printed = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout.splitlines()
    found: dict[str, list[str]] = {}
    for line in printed:
        if line.startswith("case "):
            identity = line.split()[1]
            found[identity] = []
            case = CASES[identity]
            assert f" {int(bool(case.rejects))} [{case.note}] [{case.rejects}]" in line
        else:
            found[identity].append(line)
    assert found.keys() == CASES.keys()
    for identity, case in CASES.items():
        lines = {
            line.split()[1]: line for line in found[identity] if line.split()[0] in ("input", "constant", "output")
        }
        constants = {t.name: t.values() for t in case.model.graph.tensors if t.is_constant}
        arrays = {**case.inputs, **constants, **outputs(case)}
        assert lines.keys() == arrays.keys()
        for name, value in arrays.items():
            head, _, tail = lines[name].partition(" :")
            data, *parameters = tail.split()
            assert head.split()[2:] == [_name(value.dtype), *map(str, value.shape)]
            assert data == value.tobytes().hex()
            tensor = next(t for t in case.model.graph.tensors if t.name == name)
            if tensor.quantization is not None:
                assert [float.fromhex(x) for x in parameters[::2]] == tensor.quantization.scales.tolist()
                assert [int(x) for x in parameters[1::2]] == tensor.quantization.zero_points.tolist()
    conv = found["CONV_2D/s8/ties/001"]
    (acc,) = [line for line in conv if line.startswith("accumulator")]
    wanted = convolved(CASES["CONV_2D/s8/ties/001"]).astype(np.int32)
    assert acc.partition(" :")[2].strip() == wanted.tobytes().hex()
    (one,) = describe(CASES["CONV_2D/s8/ties/001"], "litert")["plan"]["steps"][0]["multipliers"]
    rows = zip(one["multiplier"], one["exponent"], one["power"], strict=True)
    assert [line for line in conv if line.startswith("multiplier")] == [f"multiplier {m} {e} {p}" for m, e, p in rows]


def _name(dtype: np.dtype) -> str:
    return next(name for name, kind in TYPES.items() if np.dtype(kind) == dtype)


# -- folders -----------------------------------------------------------------------------------------------------------


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_two_runs_leave_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    written = write_vectors(tmp_path / "again", find_suite("litert"), suite_cases.cases(), ["all"], accumulators=True)
    one, two = tree(folder), tree(tmp_path / "again")
    assert one == two
    assert written.files == len(one) - 2
    assert written.bytes == sum(len(content) for name, content in one.items() if "/" in name)
    assert set(written.formats) == set(FORMATS)


def test_folders_with_other_things_are_left_alone(tmp_path: Path) -> None:
    suite, cases = find_suite("litert"), [CASES["ADD/s16/random/000"]]
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "thesis.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"not empty|other things"):
            write_vectors(tmp_path / "v", suite, cases, overwrite=overwrite)
    assert (tmp_path / "v" / "thesis.txt").read_text() == "mine"
    write_vectors(tmp_path / "w", suite, cases, ["npz", "bin"])
    with pytest.raises(InputError, match="not empty"):
        write_vectors(tmp_path / "w", suite, cases)
    write_vectors(tmp_path / "w", suite, cases, ["desc"], overwrite=True)
    assert sorted(path.name for path in (tmp_path / "w").iterdir()) == ["README.txt", "desc", "suite.json"]


def test_what_a_numerics_does_not_run_is_left_out_with_its_reason(tmp_path: Path) -> None:
    suite = find_suite("litert")
    cases = [CASES["ADD/s16/random/000"], CASES["CONV_2D/s8/ties/000"]]
    alien = SuiteCase("CONV_2D/s8/random/000", "litert", "CONV_2D", "s8", "random", "tflite", b"no model", {})
    written = write_vectors(tmp_path / "v", suite, [*cases, alien], ["npz"])
    assert [skipped.case for skipped in written.skipped] == ["CONV_2D/s8/random/000"]
    assert written.cases == 2
    content = json.loads((tmp_path / "v" / "suite.json").read_text())
    assert content["skipped"][0]["reason"].startswith("[BT-")
    with pytest.raises(InputError, match="no case to write"):
        write_vectors(tmp_path / "w", suite, [alien])
