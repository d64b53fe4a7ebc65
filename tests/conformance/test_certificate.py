"""Results are certificates: they are verified, merged and resumed, and no field of them can be changed unnoticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bittrue.conformance.certificate import merge, verify
from bittrue.conformance.conform import conform
from bittrue.conformance.devices import Answer
from bittrue.conformance.models import ModelFile
from bittrue.conformance.result import ConformResult, digest_of
from bittrue.errors import InputError
from support.changed_answers import Planted, above, only

OPERATORS = ("SQUEEZE", "LOGISTIC")
# All of SQUEEZE; LOGISTIC without those near ties, which tell more arithmetics apart than a certificate needs.
AIMS = ("shapes", "random", "codes", "ties", "rejects")


def _odd(case: Any, outputs: Any) -> Any:
    """Wrong values, a refusal, a crash, another form and an accepted model, by case."""
    if case.operator == "LOGISTIC":
        return above(1)(case, outputs)
    if case.operator == "SQUEEZE":
        end = case.identity[-1]
        if end == "1":
            return Answer("refused", text="not this one")
        if end == "2":
            return {n: v.astype(np.int16) for n, v in outputs.items()}
    return outputs


class Odd(Planted):
    def answer(self, case: Any) -> Answer:
        if case.rejects and case.identity.endswith("1"):
            return Answer("outputs", {"output0": np.zeros(2, np.int8)})
        return super().answer(case)


def plain(result: ConformResult) -> Any:
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def timeless(result: ConformResult) -> Any:
    data = plain(result)
    for key in ("seconds", "date", "digest"):
        del data[key]
    for operator in data["operators"]:
        for case in operator["cases"]:
            del case["seconds"]
    return data


def run(device: Planted, **more: Any) -> ConformResult:
    return conform(device, operators=OPERATORS, **{"demo": False, "repeat": 1, "aims": AIMS, **more})


@pytest.fixture(scope="module")
def whole() -> ConformResult:
    return run(Odd(_odd))


@pytest.fixture(scope="module")
def odd(whole: ConformResult) -> Any:
    return plain(whole)


@pytest.fixture(scope="module")
def small() -> Any:
    cases = ("SQUEEZE/s8/codes/000", "SQUEEZE/s8/shapes/000")
    device = Planted(lambda case, o: above(1)(case, o) if case.aim == "codes" else o)
    return plain(conform(device, cases=cases, demo=False, repeat=1))


def test_what_was_not_changed_holds(odd: Any, small: Any) -> None:
    assert verify(odd) == []
    assert verify(small) == []
    outcomes = {case["outcome"] for o in odd["operators"] for case in o["cases"]}
    assert {"exact", "differs", "skipped", "wrong outputs", "accepts what it must refuse"} <= outcomes


def test_reading_back_gives_the_same(odd: Any) -> None:
    assert plain(ConformResult.from_dict(odd)) == odd


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list) and data:
        for position, value in enumerate(data):
            yield from leaves(value, (*path, position))
    else:
        yield path


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1") if value else "x"
    return 1 if value is None else ["x"] if value == [] else {"x": 1}


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def test_every_changed_field_is_noticed(small: Any) -> None:
    """The digest alone notices all of them, so that nothing else must."""
    paths = list(leaves(small))
    assert len(paths) > 90
    for path in paths:
        data = copy.deepcopy(small)
        at(data, path[:-1])[path[-1]] = changed(at(data, path))
        assert digest_of(data) != data["digest"], path
    for path in paths[:: max(1, len(paths) // 12)]:
        data = copy.deepcopy(small)
        at(data, path[:-1])[path[-1]] = changed(at(data, path))
        try:
            assert verify(data), path
        except InputError:
            continue


# What only the device's owner can vouch for, and times.
_VOUCHED = {"seconds", "date", "device", "device_title", "notes", "repeat", "reduced_got", "replay"}


# One of each is forged.
_SAID = (
    "level",
    "refuses",
    "claim",
    "verdict",
    "text",
    "outcome",
    "sha256",
    "changed",
    "differing",
    "largest",
    "total",
)
_SAID += ("reference", "every", "bias", "expected", "got", "identity", "note", "aim", "reduced_expected", "value")


def test_a_new_digest_does_not_make_a_verdict_true(small: Any) -> None:
    """All but what the owner vouches for is worked out anew."""
    paths = {path[-1]: path for path in leaves(small) if path[-1] in _SAID and path[-1] not in _VOUCHED}
    assert len(paths) > 12
    for path in paths.values():
        data = copy.deepcopy(small)
        at(data, path[:-1])[path[-1]] = changed(at(data, path))
        data["digest"] = digest_of(data)
        try:
            assert verify(data), path
        except InputError:
            continue


def test_cases_cannot_be_left_out(odd: Any) -> None:
    for operator in range(len(odd["operators"])):
        data = copy.deepcopy(odd)
        del data["operators"][operator]["cases"][0]
        data["digest"] = digest_of(data)
        assert any("cases are not those of the suite" in problem for problem in verify(data))
        data = copy.deepcopy(odd)
        del data["operators"][operator]
        data["digest"] = digest_of(data)
        assert any("not those that were selected" in problem for problem in verify(data))


@pytest.mark.parametrize("data", [None, [], {}, {"format": "bittrue-conform-1"}, {"format": "bittrue-check-1"}])
def test_what_is_no_result(data: Any) -> None:
    with pytest.raises(InputError):
        verify(data)


def test_bombs_are_not_unpacked(small: Any) -> None:
    import base64
    import zlib

    data = copy.deepcopy(small)
    output = data["operators"][0]["cases"][0]["outputs"][0]
    output["changed"] = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()
    assert any("another length" in problem for problem in verify(data))
    output["changed"] = "????"
    assert any("cannot be unpacked" in problem for problem in verify(data))


def test_the_device_is_asked_again(small: Any) -> None:
    assert any("other outputs now" in problem for problem in verify(small, device=Planted()))


def test_parts_put_together_are_the_whole(whole: ConformResult) -> None:
    parts = [run(Odd(_odd), shard=f"{i}/3") for i in (1, 2, 3)]
    assert all("part" in part.claim for part in parts)
    read = [ConformResult.from_dict(plain(part)) for part in parts]
    merged = merge([read[2], read[0], read[1]])
    assert timeless(merged) == timeless(whole)
    assert verify(plain(merged)) == []
    with pytest.raises(InputError, match="part 2/3 is missing"):
        merge([read[0], read[2]])
    with pytest.raises(InputError, match="given twice"):
        merge([*read, read[0]])
    with pytest.raises(InputError, match="different divisions"):
        merge([read[0], ConformResult.from_dict(plain(run(Odd(_odd), shard="1/2")))])
    with pytest.raises(InputError, match="repeat"):
        merge([read[0], ConformResult.from_dict(plain(run(Odd(_odd), shard="2/3", repeat=2)))])


def test_a_run_that_was_ended_goes_on(tmp_path: Path, whole: ConformResult) -> None:
    journal = tmp_path / "run.journal"

    class Ends(Odd):
        def answer(self, case: Any) -> Answer:
            if len(self.asked) == 5:
                raise KeyboardInterrupt
            return super().answer(case)

    with pytest.raises(KeyboardInterrupt):
        run(Ends(_odd), resume=journal)
    # The last line was cut off while it was written.
    journal.write_bytes(journal.read_bytes() + b'{"identity":"SQUEEZE')
    second = Odd(_odd)
    resumed = run(second, resume=journal)
    known = [json.loads(line)["identity"] for line in journal.read_text().splitlines()[1:]]
    assert len(known) == len(set(known)) == resumed.count()
    assert set(second.asked[: resumed.count() - 5]).isdisjoint(known[:4])
    assert timeless(resumed) == timeless(whole)
    third = Odd(_odd)
    assert timeless(run(third, resume=journal)) == timeless(resumed)
    assert not [identity for identity in third.asked if not identity.endswith("/reduced")]
    with pytest.raises(InputError, match="repeat"):
        run(Odd(_odd), resume=journal, repeat=2)
    journal.write_text("not a journal\n")
    with pytest.raises(InputError, match="damaged"):
        run(Odd(_odd), resume=journal)


def test_models_are_verified() -> None:
    demo = ModelFile.demo()
    device = Planted(only("model", lambda case, o: o), "xnnpack")
    result = conform(device, cases=("SQUEEZE/s8/codes/000",), models=[demo], demo=False, repeat=1)
    data = plain(result)
    assert result.models[0].matches
    assert verify(data) == []
    for key, value in (("outputs_sha256", "0" * 64), ("inputs_sha256", "0" * 64), ("sha256", "0" * 64)):
        forged = copy.deepcopy(data)
        forged["models"][0][key] = value
        forged["digest"] = digest_of(forged)
        assert verify(forged)
    forged = copy.deepcopy(data)
    forged["models"][0]["name"] = "other.tflite"
    forged["digest"] = digest_of(forged)
    assert any("not verified" in problem for problem in verify(forged))
