"""What the answers to one case say: the outcome, and the bytes in which outputs differ."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from .devices.base import Answer
from .expected import Outputs, same_bytes
from .result import CaseResult, Deviation, OutputTensor
from .suite import SuiteCase

# Texts of devices are cut here.
_MOST_TEXT = 400
# Statuses after which a device may be asked again.
ORDERLY = ("outputs", "refused", "skipped")


@dataclass(frozen=True, eq=False)
class Record:
    """One case and what the device made of it.

    Attributes:
        case: of the suite, or a whole model.
        status: of `devices.base.STATUSES`, or ``"changes its answers"``, or ``"wrong outputs"`` where only that is
            known of them.
        outputs: by name.
        text: what the device said, or how its answers differ.
        seconds: the first answer took.
    """

    case: SuiteCase
    status: str
    outputs: Outputs = field(default_factory=dict)
    text: str = ""
    seconds: float = 0.0


def record_of(case: SuiteCase, answers: Sequence[Answer]) -> Record:
    """One record of several answers to the same question.

    A fault in any answer is the record's; of answers without a fault all must be the same, status and bytes.
    """
    first = answers[0]
    for answer in answers:
        if answer.status not in ORDERLY:
            return Record(case, answer.status, {}, answer.text[:_MOST_TEXT], first.seconds)
    for number, answer in enumerate(answers[1:], 2):
        if answer.status != first.status:
            text = f"answer 1: {first.status}; answer {number}: {answer.status}"
            return Record(case, "changes its answers", first.outputs, text, first.seconds)
        if not same_bytes(first.outputs, answer.outputs):
            text = f"answers 1 and {number} differ: {_how(first.outputs, answer.outputs)}"
            return Record(case, "changes its answers", first.outputs, text, first.seconds)
    return Record(case, first.status, first.outputs, first.text[:_MOST_TEXT], first.seconds)


def _how(one: Outputs, two: Outputs) -> str:
    for name, value in one.items():
        other = two.get(name)
        if other is None or other.dtype != value.dtype or other.shape != value.shape:
            return f"output '{name}' has another type or shape"
        changed = int(np.count_nonzero(_bytes(value) != _bytes(other)))
        if changed:
            return f"{changed} of {value.nbytes} bytes of '{name}'"
    return "other outputs"


def misfit(outputs: Outputs, wanted: Outputs) -> str:
    """What is wrong with the form of a device's outputs; empty when names, types and shapes are right.

    >>> misfit({"y": np.int8([1])}, {"y": np.uint8([1])})
    "output 'y' is int8 [1], expected uint8 [1]"
    """
    for name, value in wanted.items():
        if name not in outputs:
            return f"no output '{name}'; there are {', '.join(map(repr, outputs)) or 'none'}"
        given = outputs[name]
        if given.dtype != value.dtype or given.shape != value.shape:
            forms = [f"{x.dtype} {list(x.shape)}" for x in (given, value)]
            return f"output '{name}' is {forms[0]}, expected {forms[1]}"
    extra = [name for name in outputs if name not in wanted]
    return f"outputs that the model does not have: {', '.join(map(repr, extra))}" if extra else ""


def deviation_of(outputs: Outputs, wanted: Outputs) -> Deviation:
    """How far outputs of the right form lie from the reference.

    >>> deviation_of({"y": np.int8([1, 5, 2])}, {"y": np.int8([1, 3, 3])})
    Deviation(elements=3, differing=2, above=1, largest=2, total=1, squares=5)
    """
    found = Deviation()
    for name, value in wanted.items():
        found = found + _deviation(outputs[name], value)
    return found


def _deviation(got: np.ndarray, wanted: np.ndarray) -> Deviation:
    if got.dtype.kind in "iub" and got.dtype.itemsize < 8:
        apart = got.astype(np.int64) - wanted.astype(np.int64)
        largest = int(np.abs(apart).max(initial=0))
        differing, above = int(np.count_nonzero(apart)), int(np.count_nonzero(apart > 0))
        # Squares of 32-bit differences may leave 64 bits.
        exact = apart.astype(object) if largest > 1 << 20 else apart
        return Deviation(got.size, differing, above, largest, int(exact.sum()), int((exact * exact).sum()))
    changed = (_bytes(got).reshape(got.size, -1) != _bytes(wanted).reshape(got.size, -1)).any(axis=1)
    differing = int(np.count_nonzero(changed))
    if not differing:
        return Deviation(got.size)
    if got.dtype.kind in "iub":
        pairs = zip(got.reshape(-1)[changed].tolist(), wanted.reshape(-1)[changed].tolist(), strict=True)
        far = [a - b for a, b in pairs]
        above = sum(d > 0 for d in far)
        return Deviation(got.size, differing, above, max(map(abs, far)), sum(far), sum(d * d for d in far))
    with np.errstate(all="ignore"):
        above = int(np.count_nonzero(got > wanted))
    return Deviation(got.size, differing, above, None, None, None)


def case_result(record: Record, outcome: str, text: str, wanted: Outputs | None) -> CaseResult:
    """The record as plain data; outputs as their difference from `wanted` where that is known and fits."""
    case = record.case
    outputs = tuple(
        output_tensor(name, value, None if wanted is None else wanted.get(name))
        for name, value in record.outputs.items()
    )
    return CaseResult(case.identity, case.sha256, case.aim, case.note, outcome, text, outputs, round(record.seconds, 6))


def output_tensor(name: str, value: np.ndarray, wanted: np.ndarray | None) -> OutputTensor:
    """One output, see `OutputTensor`."""
    raw = np.ascontiguousarray(value).tobytes()
    digest = hashlib.sha256(raw).hexdigest()
    changed = ""
    if wanted is not None and wanted.dtype == value.dtype and wanted.shape == value.shape:
        difference = _bytes(value) ^ _bytes(wanted)
        if difference.any():
            changed = base64.b64encode(zlib.compress(difference.tobytes(), 9)).decode()
    return OutputTensor(name, str(value.dtype), value.shape, digest, changed)


def output_array(tensor: OutputTensor, wanted: np.ndarray, place: str) -> np.ndarray:
    """The device's output again, from the reference's and what is recorded.

    Raises:
        InputError: the recorded bytes are damaged or do not have the recorded digest.
    """
    raw = _bytes(wanted)
    if tensor.changed:
        # Never more than the reference has, whatever the text claims to unpack to.
        unpacker = zlib.decompressobj()
        try:
            packed = base64.b64decode(tensor.changed, validate=True)
            difference = unpacker.decompress(packed, raw.size + 1)
        except (ValueError, zlib.error):
            raise InputError("BT-CERTIFICATE", "the recorded bytes cannot be unpacked", place=place) from None
        if len(difference) != raw.size:
            raise InputError("BT-CERTIFICATE", "the recorded bytes have another length", place=place)
        raw = raw ^ np.frombuffer(difference, np.uint8)
    if hashlib.sha256(raw.tobytes()).hexdigest() != tensor.sha256:
        raise InputError("BT-CERTIFICATE", "the recorded bytes do not have the recorded SHA-256", place=place)
    return raw.view(wanted.dtype).reshape(wanted.shape)


def digest_of_all(values: Sequence[Mapping[str, np.ndarray]]) -> str:
    """SHA-256 over names, types, shapes and bytes of all arrays."""
    found = hashlib.sha256()
    for one in values:
        for name in sorted(one):
            value = np.ascontiguousarray(one[name])
            found.update(f"{name} {value.dtype.str} {value.shape}".encode("utf-8", "surrogatepass"))
            found.update(value.tobytes())
    return found.hexdigest()


def _bytes(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
