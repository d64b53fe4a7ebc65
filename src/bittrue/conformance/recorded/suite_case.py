"""Cases of our own suites: the model file is in the folder, and the manifest says whose outputs are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import BittrueError
from ...graph import ModelFile
from ...importers import read_model
from .adapters import Trial
from .stored import damaged
from .vectors import Case, Recorded


def trial(case: Case) -> Trial:
    """The case's model with its inputs and expected outputs, which go by name."""
    content = case.model()
    numerics = case.fields.get("numerics")
    if numerics is not None and not isinstance(numerics, str):
        raise damaged("'numerics' is no text", case.place)
    # What the model holds itself is not fed, and some formats leave it to the model alone.
    fed = [given for given in case.inputs(constants=False) if given is not None]
    expected = [given for given in case.outputs() if given is not None]
    refused = case.fields.get("numerics_refuses", True) is True
    return suite_trial(content, fed, expected, numerics, case.must_fail, case.place, refused)


def suite_trial(
    content: bytes,
    fed: Sequence[Recorded],
    expected: Sequence[Recorded],
    numerics: str | None,
    must_fail: bool,
    place: str,
    refused: bool = True,
) -> Trial:
    """A model file and its arrays as a trial. What only the reader refuses is no error where it must be refused."""
    if must_fail and expected:
        raise damaged("a model that must be refused has no outputs", place)
    feeds = _by_name(fed, place)
    try:
        model: ModelFile = read_model(content)
    except BittrueError:
        if not must_fail:
            raise
        return Trial(None, list(feeds.values()), [], numerics, must_fail=True, refused=refused)
    graph = model.graphs[0]
    inputs = [graph.tensors[index].name for index in graph.inputs]
    if set(inputs) != feeds.keys() or len(inputs) != len(feeds):
        raise damaged(f"arrays for the inputs {sorted(feeds)}, the model has {sorted(inputs)}", place)
    ordered = [feeds[name] for name in inputs]
    if must_fail:
        return Trial(model, ordered, [], numerics, must_fail=True, refused=refused)
    wanted = {given.name: given for given in expected}
    outputs = [graph.tensors[index].name for index in graph.outputs]
    if set(outputs) != wanted.keys():
        raise damaged(f"arrays for the outputs {sorted(wanted)}, the model has {sorted(outputs)}", place)
    return Trial(model, ordered, [wanted[name] for name in outputs], numerics)


def _by_name(fed: Sequence[Recorded], place: str) -> Mapping[str, np.ndarray]:
    found = {given.name: given.value for given in fed}
    if len(found) != len(fed):
        raise damaged("two inputs have one name", place)
    return found
