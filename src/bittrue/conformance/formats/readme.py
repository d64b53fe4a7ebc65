"""README.txt of a folder of vectors: what is what, for whoever finds the folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

README = "README.txt"
_HOW: Mapping[str, str] = {
    "npz": "manifest.json lists all cases; OPERATOR.npz holds models and arrays under the keys that it names",
    "desc": "one folder per case, OPERATOR/TYPES/AIM/NUMBER: desc.json, model, .npy files",
    "tflite": "OPERATOR/TYPES-AIM-NUMBER.tflite with the inputs and outputs in the .npz of the same name",
    "onnx": "ONNX backend tests: test_NAME/model.onnx, test_data_set_0/*.pb; rejects/ apart",
    "c": "OPERATOR.h: a table of all cases, OPERATOR_cases; compile with -I c; types in bittrue_vectors.h",
    "hex": "OPERATOR/TYPES/: parameters.sv and .vh with a table of cases; a $readmemh file per operand; no refusals",
    "bin": "OPERATOR.bin: raw arrays and models; manifest.json says at which byte each begins",
}
_SPLIT = "one folder per case: a $readmemh file per operand, parameters.sv and .vh"


def readme(index: Mapping[str, Any], packed: Collection[str], split: bool) -> str:
    """The text.

    Args:
        index: the content of suite.json.
        packed: formats that stand in .zip files.
        split: whether hex has a folder per case.
    """
    return "".join(f"{line}\n" for line in _lines(index, packed, split))


def _lines(index: Mapping[str, Any], packed: Collection[str], split: bool) -> Iterator[str]:
    suite, names = index["suite"], index["formats"]
    yield f"Test vectors of the suite '{suite}', version {index['suite_version']}, written by `bittrue vectors`."
    yield f"Expected outputs: those of the numerics '{index['numerics']}', bit for bit."
    refused = f"{index['expected_failures']:,} of them must be refused ('expected_failure') and have none"
    yield f"{index['cases']:,} cases; {refused}."
    yield ""
    for name in names:
        how = _SPLIT if name == "hex" and split else _HOW[name]
        yield f"{name + '/':8}{'unzip OPERATOR.zip; ' if name in packed else ''}{how}"
    yield ""
    if set(names) - {"c", "hex"}:
        yield "Replay:  bittrue replay ."
    yield "Device:  write what it gives for case ADD/s8/ties/000 to RESULTS/ADD/s8/ties/000/output-0.npy (or .bin, or a"
    yield "         file 'refused' beside it), and so on; cases without a folder are skipped. Then:"
    yield f"         bittrue conform results:RESULTS{'' if suite == 'litert' else f' --suite {suite}'}"
