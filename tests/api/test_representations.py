"""What `repr`, `print` and notebooks show of everything public, and results written as files."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import bittrue
from bittrue.numerics import find
from support.build import T, single

HOSTILE = "[/x]\x1b[31m\u202e\n" + "long/" * 2000


@pytest.fixture(scope="module")
def model() -> bittrue.Model:
    return bittrue.load(bittrue.demo_model())


@pytest.fixture(scope="module")
def results(model: bittrue.Model, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("results") / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return {
        "check": bittrue.check_model(model),
        "compare": bittrue.compare_models(f"{path}@litert", f"{path}@xnnpack"),
        # Few cases, quickly made.
        "conform": bittrue.conform("bittrue:litert", operators=["SQUEEZE"]),
        "identify": bittrue.identify("bittrue:litert", operators=["SQUEEZE"], questions=2),
    }


def everything(model: bittrue.Model) -> Iterator[object]:
    session = model.prepare()
    numerics = find("litert")
    inputs = {session.inputs[0].name: np.zeros(session.inputs[0].shape, session.inputs[0].dtype)}
    yield from (model, model.file, model.graph, *model.graph.nodes, *model.graph.tensors)
    yield from (session, session.plan, *session.plan.steps, *session.plan.tensors, *session.inputs, *session.outputs)
    yield from (numerics, session.profile(inputs, rounds=1))
    last = session.plan.tensors[session.plan.steps[-1].outputs[0]]
    yield bittrue.explain_element(session, inputs, last.name, (0,) * len(last.shape))
    yield bittrue.open_device("bittrue:litert")


def test_one_useful_line(model: bittrue.Model) -> None:
    for value in everything(model):
        text = repr(value)
        assert len(text) < 400, text
        assert text.isprintable(), text
        assert " object at 0x" not in text, text
        assert type(value).__name__ in text, text


def test_one_useful_line_whatever_the_names() -> None:
    x, y = T("s8", (1, 4), 0.5, 0, name=HOSTILE), T("s8", (1, 4), 0.5, 0, name=HOSTILE + "y")
    hostile = bittrue.load(single("RELU", None, [x], [y]))
    for value in everything(hostile):
        assert len(repr(value)) < 400
        assert repr(value).isprintable()


def test_results_say_what_came_out(results: dict[str, Any]) -> None:
    assert repr(results["check"]) == "<CheckResult: tflite model under 'litert': 0 errors, 0 warnings, 3 notes>"
    assert "9 of 10 tensors differ" in repr(results["compare"])
    assert "0 elements unexplained" in repr(results["compare"])
    for result in results.values():
        assert repr(result).isprintable()
        assert len(str(result)) < 5_000
        assert result._repr_markdown_() == str(result)


@pytest.mark.parametrize("name", ["check", "compare", "conform", "identify"])
def test_results_as_files(name: str, results: dict[str, Any], tmp_path: Path) -> None:
    result = results[name]
    for ending in result.formats:
        result.save(tmp_path / f"r{ending}")
        text = (tmp_path / f"r{ending}").read_text(encoding="utf-8")
        if ending in (".json", ".sarif"):
            assert isinstance(json.loads(text), dict)
        elif ending == ".xml":
            assert ElementTree.fromstring(text.encode()).tag == "testsuites"
        elif ending == ".html":
            assert text == result.to_html()
        else:
            assert text == result.to_markdown()
    assert json.loads((tmp_path / "r.json").read_text()) == json.loads(result.to_json())
    with pytest.raises(bittrue.InputError, match=r"BT-RESULT-FORMAT.*\.json"):
        result.save(tmp_path / "r.pdf")


def test_sessions_are_not_pickled(model: bittrue.Model) -> None:
    session = model.prepare()
    for way in (pickle.dumps, copy.deepcopy):
        with pytest.raises(bittrue.InputError, match=r"BT-PICKLE.*load_plan"):
            way(session)


def test_explaining_takes_the_inputs_of_a_session(model: bittrue.Model) -> None:
    session = model.prepare()
    inputs = {session.inputs[0].name: np.ones(session.inputs[0].shape, session.inputs[0].dtype)}
    name = session.plan.tensors[session.plan.steps[2].outputs[0]].name
    element = (0,) * len(session.trace(inputs)[name].shape)
    found = bittrue.explain_element(session, inputs, name, element)
    assert found.stored == session.trace(inputs)[name][element]
    assert str(found).splitlines()[-1].split()[0] == "stored"
    with pytest.raises(bittrue.InputError, match=r"BT-EXPLAIN-SOURCE.*prepare\(\)"):
        bittrue.explain_element(model, inputs, name, element)  # type: ignore[arg-type]


def test_sides_are_texts(model: bittrue.Model) -> None:
    with pytest.raises(bittrue.InputError, match=r"BT-SIDE.*found Model"):
        bittrue.compare_models(model, model)  # type: ignore[arg-type]


def test_names_of_the_package() -> None:
    assert dir(bittrue) == sorted(bittrue.__all__)
