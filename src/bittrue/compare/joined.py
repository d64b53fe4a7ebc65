"""What a runtime's optimiser has joined where two sides differ, and what the runtime itself gives node by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from ..errors import BittrueError
from ..runners.base import Runner
from ..runners.onnxruntime import OnnxRuntime
from ..runners.recording import Recording
from .result import Cause
from .surgery.document import Document, open_document


class Joined:
    """The nodes that a runtime really runs, beside those of its file.

    Args:
        runner, recordings: the side that is judged, and its runs.
        label: ``"A"`` or ``"B"``: that side.
        shown: names of its tensors that both sides show: where parts end.
        own: the numerics of the other side.
        same_file: both sides read this file, so no parameter can be wrong.
    """

    def __init__(
        self,
        runner: Runner,
        recordings: Sequence[Recording],
        label: str,
        shown: Iterable[str],
        own: str,
        same_file: bool,
    ) -> None:
        self.runner = runner if isinstance(runner, OnnxRuntime) else None
        self.recordings, self.label, self.own, self.same_file = recordings, label, own, same_file
        self.ends = {*shown, *recordings[0].inputs}

    def cause(self, name: str, mine: Sequence[str], ours: Sequence[np.ndarray] = ()) -> Cause | None:
        """The joined nodes that compute the tensor `name`, where the other side computes it with others.

        Args:
            name: of the judged side's tensor.
            mine: the other side's operators, as the runtime calls them.
            ours: per run what the other side's arithmetic gives on the same inputs, where that is of interest; with
                another file it has to be what single nodes give.
        """
        theirs, ends = self._operators(name)
        if self.runner is None or not theirs or self._document is None:
            return None
        try:
            values = [{end: recording[end].load() for end in (*ends, name)} for recording in self.recordings]
            part = self._document.cut(ends, [name], values[0])
            single = [operator.source for operator in part.operators]
            if sorted(theirs) in (sorted(single), sorted(mine)) or not {*part.inputs} <= {*values[0]}:
                return None
            content = part.content()
            found = [self.runner.node_by_node(content, given)[0] for given in values]
        except (BittrueError, KeyError):
            # A part that does not run alone proves nothing.
            return None
        idle = all(f.tobytes() == v[name].tobytes() for f, v in zip(found, values, strict=True))
        same = len(found) == len(ours) and all(f.tobytes() == o.tobytes() for f, o in zip(found, ours, strict=True))
        if not self.same_file and (idle or not same):
            return None
        new, old, own = (
            " + ".join(dict.fromkeys(name.rpartition(".")[2] for name in names)) for names in (theirs, single, mine)
        )
        text = f"{self.label}'s operators {new}, which its optimiser makes of {old}: one by one, these give "
        rest = f"; `{self.own}` computes {own}" if ours else ""
        text += "the other side's bits" if same else f"{'the same' if idle else 'other'} bits{rest}"
        return Cause(f"operators={new}", text, "order", False)

    @cached_property
    def _document(self) -> Document | None:
        assert self.runner is not None
        try:
            return open_document(self.runner.path, self.runner.model)
        except BittrueError:
            return None

    @cached_property
    def _writers(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        """Tensor to what writes it in the optimised model: an operator, and what that reads."""
        if self.runner is None:
            return {}
        found = dict[str, tuple[str, Sequence[str]]]()
        for node in self.runner.nodes():
            operator = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
            found |= {output: (operator, tuple(filter(None, node.input))) for output in node.output if output}
        return found

    def _operators(self, name: str) -> tuple[list[str], list[str]]:
        """The operators between the nearest shown tensors and this one, in execution order, and those tensors."""
        written, ends = set[str](), dict[str, None]()
        wanted = [name]
        while wanted:
            one = wanted.pop()
            if one in self.ends and one != name:
                ends[one] = None
            elif one in self._writers and one not in written:
                written.add(one)
                wanted.extend(self._writers[one][1])
        return [operator for one, (operator, _) in self._writers.items() if one in written], list(ends)
