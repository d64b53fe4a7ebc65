"""From symbolic tensors to a graph, and to a model that any numerics with rows for its operators can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import InputError
from ...graph import Graph, ModelFile
from .expr import ARRAY, CONSTANT, VARIABLE, Expr
from .fusion import Group, find_group, other_product
from .lowering import LOWERINGS
from .plain_lowering import PLAIN_LOWERINGS
from .writer import Writer

if TYPE_CHECKING:
    from ...api import Model

DEFAULT_NUMERICS = "tvm-qnn"


def ordered(outputs: Sequence[Expr]) -> list[Expr]:
    """Every node that `outputs` need, operands before what uses them."""
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(expr, False) for expr in reversed(outputs)]
    while stack:
        expr, finished = stack.pop()
        if id(expr) in done:
            continue
        if finished:
            done[id(expr)] = expr
        else:
            stack.append((expr, True))
            stack.extend((given, False) for given in reversed(expr.inputs) if id(given) not in done)
    return list(done.values())


def graph_of(outputs: Sequence[Expr], variables: Sequence[Expr] | None = None, fuse: bool = True) -> Graph:
    """The graph that computes `outputs`; its inputs are `variables`, or those it meets, in the order of their use.

    `fuse`: nodes that belong together become one operator (see `fusion`).
    """
    nodes = ordered(outputs)
    writer, indices = Writer(), dict[int, int]()
    found = [expr for expr in nodes if expr.operator == VARIABLE]
    for expr in found if variables is None else variables:
        indices[id(expr)] = writer.variable(expr)
    names = [expr.name for expr in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError("BT-QNN-NAME", f"two variables are called '{name}'", place="qnn.model")
    for expr in found:
        if id(expr) not in indices:
            raise InputError("BT-QNN-NAME", f"variable '{expr.name}' is no input", place="qnn.model")
    uses: dict[int, int] = {}
    for expr in nodes:
        for given in expr.inputs:
            uses[id(given)] = uses.get(id(given), 0) + 1
    kept = {id(expr) for expr in outputs}
    groups: dict[int, Group] = {}
    inner: set[int] = set()
    for expr in reversed(nodes):
        if fuse and id(expr) not in inner:
            group = find_group(expr, uses, kept)
            if group is not None:
                groups[id(expr)] = group
                inner.update(group.inside)
    for expr in nodes:
        if id(expr) in indices or id(expr) in inner:
            continue
        if expr.operator in (ARRAY, CONSTANT):
            assert expr.value is not None
            indices[id(expr)] = writer.constant(expr.value, expr.dtype, expr.name or "constant")
        elif id(expr) in groups:
            group = groups[id(expr)]
            indices[id(expr)] = group.emit(writer, [indices[id(given)] for given in group.inputs])
        else:
            lower = LOWERINGS.get(expr.operator) or PLAIN_LOWERINGS[expr.operator]
            indices[id(expr)] = lower(writer, expr, [indices[id(given)] for given in expr.inputs])
    # What is one tensor for several outputs has a name for each of them.
    results: list[int] = []
    for expr in outputs:
        index = indices[id(expr)]
        again = index in results
        results.append(writer.reshape(index, expr.shape, expr.name or expr.operator) if again else index)
    return writer.graph(results)


def model(outputs: Expr | Sequence[Expr], fuse: bool = True) -> Model:
    """A model that computes `outputs`. Its inputs are the variables, in the order in which they are used.

    Args:
        outputs: one symbolic tensor, or several.
        fuse: a layer, its bias, its requantization and its clamp become one operator, as other runtimes know them;
            results in `tvm-qnn` and its variants are the same either way.

    Raises:
        InputError: an output that is no symbolic tensor, two variables of one name.

    >>> import numpy as np
    >>> from bittrue import qnn
    >>> x = qnn.var("x", (1, 2), "float32")
    >>> session = qnn.model(qnn.quantize(x, 0.5, 3, out_dtype="int8")).prepare()
    >>> [y.tolist() for y in session.run(x=np.float32([[0.25, -1.0]])).values()]
    [[[4, 1]]]
    """
    from ...api import Model

    if not isinstance(outputs, Expr | list | tuple) or not isinstance(fuse, bool):
        raise InputError(
            "BT-QNN-SYMBOL",
            f"expected symbolic tensors and True or False, found {type(outputs).__name__}, {type(fuse).__name__}",
            place="qnn.model",
        )
    wanted = [outputs] if isinstance(outputs, Expr) else list(outputs)
    for expr in wanted:
        if not isinstance(expr, Expr):
            raise InputError(
                "BT-QNN-SYMBOL", f"expected a symbolic tensor, found {type(expr).__name__}", place="qnn.model"
            )
    if not wanted:
        raise InputError("BT-QNN-SYMBOL", "no output", place="qnn.model")
    apart = {text: None for expr in ordered(wanted) if fuse and expr.parameters and (text := other_product(expr))}
    notes = tuple(f"qnn.requantize is not fused with its layer: {text}" for text in apart)
    return Model(ModelFile("qnn", "bittrue.qnn", (graph_of(wanted, fuse=fuse),), {}, notes, 0))
