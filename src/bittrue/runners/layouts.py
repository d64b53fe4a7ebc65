"""Tensors that a runtime has laid out anew, in the model's own layout and under its names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_TOKEN = re.compile(r"_token_\d+$")
# Operators of this domain keep images in blocks of channels; the second one brings them back.
_BLOCKED, _UNBLOCK = "com.microsoft.nchwc", "ReorderOutput"


class Layouts:
    """What an optimiser's last level did to a graph, told from the nodes after and before it.

    Attributes:
        names: of tensors that have a new one, to the one before.
        blocked: tensors in blocks of channels.
        copies: tensors that are another one transposed.
    """

    def __init__(self, nodes: Sequence[Any], before: Sequence[Any]) -> None:
        old_names = {name for node in before for name in node.output}
        new_names = {name for node in nodes for name in node.output}
        writers = {node.name: node for node in before if node.name}
        self.names: dict[str, str] = {}
        self.blocked: set[str] = set()
        self.copies: set[str] = set()
        for node in nodes:
            if node.domain == _BLOCKED and node.op_type != _UNBLOCK:
                self.blocked.update(node.output)
                continue
            writer = writers.get(node.name) or writers.get(_TOKEN.sub("", node.name))
            if writer is None:
                if node.op_type == "Transpose":
                    self.copies.update(set(node.output) - old_names)
            elif len(writer.output) == len(node.output):
                for new, old in zip(node.output, writer.output, strict=True):
                    if new and old and new not in old_names and old not in new_names:
                        self.names[new] = old


def as_before(value: np.ndarray, before: np.ndarray) -> np.ndarray | None:
    """`value` in the layout of `before`, which is the same tensor of another run: as it is, or its channels moved from
    last to second. None when it cannot be told.
    """
    turned = np.moveaxis(value, -1, 1) if value.ndim > 2 else value
    forms = [form for form in (value, turned) if form.dtype == before.dtype and form.shape == before.shape]
    equal = [form for form in forms if form.tobytes() == before.tobytes()]
    chosen = equal or (forms if value.shape != turned.shape else [])
    return np.ascontiguousarray(chosen[0]) if chosen else None


def in_model_layout(
    values: Mapping[str, np.ndarray], layouts: Layouts, before: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The values by their names before, without those that cannot be shown or say nothing new.

    Args:
        values: by name.
        layouts: of their graph.
        before: values of the tensors that `layouts.names` names.
    """
    found = {}
    for name, value in values.items():
        old = layouts.names.get(name)
        form = as_before(value, before[old]) if old is not None else None
        if old is not None and form is not None:
            found[old] = form
        elif name not in layouts.blocked and name not in layouts.copies:
            found[name] = value
    return found
