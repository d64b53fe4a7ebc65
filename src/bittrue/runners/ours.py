"""bittrue itself: a model under any numerics, every tensor of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np

from ..api import Model, Session, load
from ..graph import data_type
from ..numerics import find as find_numerics
from ..runtime.trace import traced_tensors
from .base import Progress, Runner, given, input_ports
from .recording import Recorded, Recording
from .spool import MEMORY, Spool

# Activations and temporaries that a run may need: more than sessions allow by themselves, since nobody can say so here.
MEMORY_LIMIT = 2 << 30


class Ours(Runner):
    """A model in bittrue.

    Attributes:
        memory: bytes of a recording that stay in memory; the rest goes to temporary files.
        note: why this numerics, where nobody named one and it is not the usual one of the format; or what the runtime
            that it is compared with has instead.
    """

    model: Model

    def __init__(
        self, spec: str, path: Path, model: Model, numerics: str, memory: int = MEMORY, note: str = ""
    ) -> None:
        self.spec = spec
        self.path = path
        self.model = model
        self.format = model.format
        self.arithmetic = find_numerics(numerics)
        self.title = f"bittrue, numerics {numerics}: {self.arithmetic.reproduces}"
        self.inputs = input_ports(model)
        self.memory = memory
        self.note = note
        self._session: tuple[dict[str, tuple[int, ...]], Session] | None = None

    def with_model(self, path: Path) -> Ours:
        return Ours(self.spec_with(path), path, load(path), self.numerics, self.memory, self.note)

    def told(self, note: str, numerics: str = "") -> Ours:
        """The same with a note, and under another numerics where one is named."""
        return Ours(self.spec, self.path, self.model, numerics or self.numerics, self.memory, note)

    def session(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Session:
        """The prepared model for these shapes of the inputs; those of the file by default."""
        wanted = dict(shapes or {port.name: port.shape for port in self.inputs if -1 not in port.shape})
        if self._session is None or self._session[0] != wanted:
            self._session = wanted, self.model.prepare(self.numerics, shapes=wanted, memory_limit=MEMORY_LIMIT)
        return self._session[1]

    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        """Run once, from the model's first state; tensors of called graphs are named ``"graph::tensor"``.

        They appear with the values of their last call, so those of a loop's body with the values of the last iteration.
        """
        values = given(self.inputs, inputs)
        session = self.session({name: value.shape for name, value in values.items()})
        session.reset()
        plan = session.plan
        known = traced_tensors(plan)
        spool = Spool(self.memory)
        tensors: dict[str, Recorded] = {}
        hidden: set[str] = set()

        def observe(name: str, value: np.ndarray) -> None:
            tensor = known[name]
            if data_type(tensor.dtype).bits == 0:
                hidden.add(name)
                return
            tensors[name] = Recorded(name, tensor.dtype, value.shape, tensor.quantization, spool.keep(name, value))

        total = 0 if plan.later else len(plan.steps)
        done = count(1)
        session.observe(observe, values, progress=None if progress is None else lambda _: progress(next(done), total))
        outputs = [port.name for port in session.outputs if port.name not in hidden]
        notes = [self.note] if self.note else []
        if hidden:
            notes.append(f"not shown, no numbers: {', '.join(sorted(hidden))}")
        return Recording(tuple(tensors.values()), tuple(values), tuple(outputs), tuple(notes))
