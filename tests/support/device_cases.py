"""Cases for tests of devices: small ones of two operators, so that a device can fail on one and work on the other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.suite import SuiteCase, find_suite


@cache
def case(operator: str, number: int = 0) -> SuiteCase:
    """A case of the suite."""
    return next(islice(find_suite("litert").cases(operators=(operator,)), number, None))


def unreadable_case() -> SuiteCase:
    """One that must be refused: its model is no model."""
    return replace(case("RESHAPE"), identity="RESHAPE/s8/rejects/000", content=b"no model", rejects="no model")


def is_right(asked: SuiteCase, answer: Answer) -> bool:
    """Whether a RESHAPE or SQUEEZE was answered with what it was asked."""
    (value,) = asked.inputs.values()
    return (
        answer.status == "outputs"
        and list(answer.outputs) == ["output0"]
        and answer.outputs["output0"].dtype == np.int8
        and answer.outputs["output0"].shape == tuple(asked.model.graph.tensors[asked.model.graph.outputs[0]].shape)
        and answer.outputs["output0"].tobytes() == value.tobytes()
    )


def first_and_next(device: Device) -> tuple[Answer, Answer]:
    """The answers to a RESHAPE, on which planted devices misbehave, and to a SQUEEZE behind it."""
    with_inputs: dict[str, Any] = {name: value.copy() for name, value in case("RESHAPE").inputs.items()}
    answers = device.answer(case("RESHAPE")), device.answer(case("SQUEEZE"))
    for name, value in with_inputs.items():
        assert case("RESHAPE").inputs[name].tobytes() == value.tobytes(), "the case's own input has changed"
    return answers
