"""TensorProto to arrays: every type from raw bytes, typed fields and other files, against the onnx package."""

from __future__ import annotations

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.graph import data_type
from bittrue.importers.onnx_tensors import TYPES, constant, from_array, type_name

NUMBERS = {name: number for number, name in TYPES.items() if number}
NUMERIC = [name for name in NUMBERS if name != "string"]
# Elements that share bytes in raw data.
NARROW = {"u4": 4, "s4": 4, "f4e2m1": 4, "u2": 2, "s2": 2}


def array_of(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Every code of narrow types, random bits of wide ones; in the types of the onnx package."""
    kind = helper.tensor_dtype_to_np_dtype(NUMBERS[name])
    rng = np.random.default_rng(7)
    if name in NARROW:
        quantized = rng.integers(0, 1 << NARROW[name], shape).astype(np.uint8)
        if name == "f4e2m1":
            return quantized.view(kind)
        signed = quantized.astype(np.int16)
        if name[0] == "s":
            signed = np.where(signed >= 1 << NARROW[name] - 1, signed - (1 << NARROW[name]), signed)
        return signed.astype(np.int8 if name[0] == "s" else np.uint8).astype(kind)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if name in ("f6e2m3", "f6e3m2"):
        return rng.integers(0, 64, shape).astype(np.uint8).view(kind)
    size = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(rng.bytes(size), kind).reshape(shape)


def stored(array: np.ndarray, name: str) -> bytes:
    """Bytes of the array as bittrue keeps it."""
    return array.astype(data_type(name).numpy).tobytes() if name in ("u4", "s4", "u2", "s2") else array.tobytes()


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 7), (2, 0, 3), (4, 1, 5)])
def test_raw_data(name: str, shape: tuple[int, ...]) -> None:
    array = array_of(name, shape)
    proto = numpy_helper.from_array(array, "t")
    assert proto.HasField("raw_data")
    found = constant(proto, "t", None)
    assert (found.dtype, found.shape) == (name, shape)
    assert found.values().shape == shape
    assert found.values().tobytes() == stored(array, name)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 7), (2, 0, 3)])
def test_typed_fields(name: str, shape: tuple[int, ...]) -> None:
    """The package writes the fields; values that are NaN have quantized values of its choice."""
    array = array_of(name, shape)
    if array.dtype.kind in "fcV" or hasattr(ml_dtypes, array.dtype.name):
        with np.errstate(all="ignore"):
            wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        array = np.where(np.isnan(wide), np.ones((), array.dtype), array).astype(array.dtype)
    proto = helper.make_tensor("t", NUMBERS[name], shape, array.reshape(-1))
    assert not proto.HasField("raw_data")
    found = constant(proto, "t", None)
    assert (found.dtype, found.shape) == (name, shape)
    assert found.values().tobytes() == stored(numpy_helper.to_array(proto), name)
    if name not in ("c64", "c128"):
        assert found.values().tobytes() == stored(array, name)


@pytest.mark.parametrize("name", NUMERIC)
def test_external_data(name: str, tmp_path: Path) -> None:
    array = array_of(name, (3, 5))
    content = numpy_helper.from_array(array, "t").raw_data
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "w.bin").write_bytes(b"\1" * 13 + content + b"\2" * 3)
    for offset in (13, None):
        entries = {"location": "deeper/w.bin", "offset": "13", "length": str(len(content))}
        if offset is None:
            (tmp_path / "deeper" / "w.bin").write_bytes(content)
            entries = {"location": "deeper/w.bin"}
        found = constant(external(name, (3, 5), entries), "t", tmp_path)
        assert found.values().tobytes() == stored(array, name)


def external(name: str, shape: tuple[int, ...], entries: dict[str, str]) -> TensorProto:
    proto = TensorProto(name="t", data_type=NUMBERS[name], dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        proto.external_data.add(key=key, value=value)
    return proto


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"location": ""},
        {"location": "."},
        {"location": "absent.bin"},
        {"location": "../secret.bin"},
        {"location": "a/../../secret.bin"},
        {"location": "/etc/passwd"},
        {"location": "out.bin"},
        {"location": "loop"},
        {"location": "a\0b"},
        {"location": "x" * 5000},
        {"location": "w.bin", "offset": "1"},
        {"location": "w.bin", "offset": "-4"},
        {"location": "w.bin", "offset": "x"},
        {"location": "w.bin", "offset": "9" * 5000},
        {"location": "w.bin", "offset": str(1 << 70)},
        {"location": "w.bin", "length": "15"},
        {"location": "w.bin", "length": "17"},
        {"location": "w.bin", "length": "-16"},
        {"location": "short.bin"},
        {"location": "pipe"},
    ],
)
def test_external_data_that_is_refused(entries: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (folder / "w.bin").write_bytes(bytes(16))
    (folder / "short.bin").write_bytes(bytes(15))
    (folder / "out.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    with pytest.raises(bittrue.ModelFormatError, match="BT-ONNX-EXTERNAL") as caught:
        constant(external("s8", (16,), entries), "t", folder)
    assert "'t'" in caught.value.place


def test_external_data_needs_a_folder(tmp_path: Path) -> None:
    made = onnx.helper.make_model(
        helper.make_graph(
            [helper.make_node("Transpose", ["w"], ["y"])],
            "g",
            [],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.float32([[1, 2], [3, 4]]), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (y,) = bittrue.load(path).prepare("onnx").run({}).values()
    assert y.tolist() == [[1, 3], [2, 4]]
    with pytest.raises(bittrue.ModelFormatError, match="given as bytes"):
        bittrue.load(path.read_bytes())
    (tmp_path / "w.bin").unlink()
    with pytest.raises(bittrue.ModelFormatError, match=r"w\.bin"):
        bittrue.load(path)


@pytest.mark.parametrize("name", NUMERIC)
def test_contents_that_do_not_fit(name: str) -> None:
    good = numpy_helper.from_array(array_of(name, (3, 5)), "t")
    for change in (b"", good.raw_data[:-1], good.raw_data + b"\0"):
        bad = TensorProto()
        bad.CopyFrom(good)
        bad.raw_data = change
        with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-DATA"):
            constant(bad, "t", None)
    bad.ClearField("raw_data")
    with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-DATA"):
        constant(bad, "t", None)


@pytest.mark.parametrize(
    ("dims", "code"),
    [
        ([-1], "BT-ONNX-SHAPE"),
        ([2, -2], "BT-ONNX-SHAPE"),
        ([1] * 65, "BT-ONNX-SHAPE"),
        ([1 << 62], "BT-ONNX-DATA"),
        ([1 << 40, 1 << 40], "BT-ONNX-DATA"),
        ([0, 1 << 62], "BT-ONNX-SHAPE"),
        ([1 << 40, 0, 1 << 40], "BT-ONNX-SHAPE"),
    ],
)
def test_shapes_that_are_none(dims: list[int], code: str) -> None:
    for name in ("f32", "s4", "bf16", "string"):
        proto = TensorProto(name="t", data_type=NUMBERS[name], dims=dims)
        with pytest.raises(bittrue.InvalidModelError, match=code):
            constant(proto, "t", None)


@pytest.mark.parametrize("number", [0, 29, 100, -1, 2**31 - 1])
def test_types_that_are_none(number: int) -> None:
    with pytest.raises(bittrue.UnsupportedError, match="BT-ONNX-TYPE"):
        type_name(number, "somewhere")
    with pytest.raises(bittrue.UnsupportedError, match="BT-ONNX-TYPE"):
        constant(TensorProto(data_type=number, dims=[0]), "t", None)


def test_every_type_of_the_package_is_known() -> None:
    for title, number in TensorProto.DataType.items():
        if title != "UNDEFINED":
            kind = data_type(type_name(number, ""))
            if kind.name != "string":
                assert np.dtype(helper.tensor_dtype_to_np_dtype(number)).name in (
                    kind.title,
                    str(kind.array),
                    kind.numpy.name,
                )


def test_fields_out_of_range() -> None:
    """Entries of typed fields are wider than the elements; what does not fit loses its high bits, as in the package."""
    for name, entries in (
        ("u8", [300, -1]),
        ("s8", [200, -200]),
        ("s16", [40000, -1]),
        ("u16", [70000, 2]),
        ("bool", [2, 0]),
    ):
        proto = TensorProto(name="t", data_type=NUMBERS[name], dims=[2])
        proto.int32_data.extend(entries)
        kind = data_type(name).numpy
        expected = np.array(entries) != 0 if name == "bool" else np.array(entries, np.int64).astype(kind)
        assert constant(proto, "t", None).values().tolist() == expected.tolist()


def test_strings() -> None:
    proto = helper.make_tensor("t", TensorProto.STRING, (2, 2), [b"a", b"bc", b"\xff", b""])
    found = constant(proto, "t", None)
    assert found.dtype == "string"
    assert found.values().tolist() == [[b"a", b"bc"], [b"\xff", b""]]
    proto.dims[0] = 3
    with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-DATA"):
        constant(proto, "t", None)


def test_from_array() -> None:
    for array in (np.int64([1, 2]), np.float32([[1], [2]]), np.array(3, np.uint8), np.asfortranarray(np.eye(3))):
        found = from_array(array, "t")
        assert found.values().tobytes() == np.ascontiguousarray(array).tobytes()
        assert found.shape == array.shape
