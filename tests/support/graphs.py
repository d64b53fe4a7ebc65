"""Small models of several graphs, of resource variables, and of shapes that values decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .build import G, T, several

SHAPE = (2, 3)
ADD, MUL, NEG = ("ADD", ("AddOptions", {})), ("MUL", ("MulOptions", {})), ("NEG", ("NegOptions", {}))


def f32(*shape: int, signature: Sequence[int] | None = None) -> T:
    return T("f32", shape, signature=signature)


def s32(*shape: int) -> T:
    return T("s32", shape)


def fixed(*values: int) -> T:
    return T("s32", (len(values),), data=np.int32(values))


def number(value: int) -> T:
    return T("s32", (), data=np.int32(value))


def calls_if(inputs: Sequence[T], outputs: Sequence[T], then: int = 1, other: int = 2) -> tuple:
    return ("IF", ("IfOptions", {"thenSubgraphIndex": then, "elseSubgraphIndex": other}), inputs, outputs)


def calls_while(inputs: Sequence[T], outputs: Sequence[T], condition: int = 1, body: int = 2) -> tuple:
    return ("WHILE", ("WhileOptions", {"condSubgraphIndex": condition, "bodySubgraphIndex": body}), inputs, outputs)


def loop(passed: Sequence[int], rounds: int, shape: tuple[int, ...] = SHAPE, cond_shape: tuple[int, ...] = ()) -> bytes:
    """Counts to `rounds`; result i of the body is its input passed[i], or -x[i] for -1."""
    i, xs = T("s32", cond_shape), [f32(*shape) for _ in passed]
    count, ys = T("s32", cond_shape), [f32(*shape) for _ in passed]
    main = G([calls_while([i, *xs], [count, *ys])], [i, *xs], [count, *ys])
    ci, cxs, going_on = T("s32", cond_shape), [f32(*shape) for _ in passed], T("bool", cond_shape)
    limit = T("s32", (), data=np.int32(rounds))
    condition = G([("LESS", ("LessOptions", {}), [ci, limit], [going_on])], [ci, *cxs], [going_on])
    bi, bxs, more = T("s32", cond_shape), [f32(*shape) for _ in passed], T("s32", cond_shape)
    nodes = [(*ADD, [bi, number(1)], [more])]
    results = []
    for position, at in enumerate(passed):
        result = bxs[at] if at >= 0 else f32(*shape)
        if at < 0:
            nodes.append((*NEG, [bxs[position]], [result]))
        results.append(result)
    return several(main, condition, G(nodes, [bi, *bxs], [more, *results]))


def growing(rounds: int, follow: bool) -> bytes:
    """x = concat(x, x[:1]) while it counts."""
    free = (-1, 2)
    i, x, count, y = T("s32", ()), f32(1, 2), T("s32", ()), f32(1, 2, signature=free)
    nodes = [calls_while([i, x], [count, y])]
    last = y
    if follow:
        last = f32(1, 2, signature=free)
        nodes.append((*NEG, [y], [last]))
    ci, cx, going_on = T("s32", ()), f32(1, 2, signature=free), T("bool", ())
    condition = G([("LESS", ("LessOptions", {}), [ci, number(rounds)], [going_on])], [ci, cx], [going_on])
    bi, bx, more, row, grown = (
        T("s32", ()),
        f32(1, 2),
        T("s32", ()),
        f32(1, 2, signature=free),
        f32(2, 2, signature=free),
    )
    begin, size = (T("s32", (2,), data=np.int32(v)) for v in ([0, 0], [1, 2]))
    body = [
        (*ADD, [bi, number(1)], [more]),
        ("SLICE", ("SliceOptions", {}), [bx, begin, size], [row]),
        ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [bx, row], [grown]),
    ]
    return several(G(nodes, [i, x], [count, last]), condition, G(body, [bi, bx], [more, grown]))


def nested_loops() -> bytes:
    """for i < 3: for j < i: x = x * 2 - w, with w the same all along."""
    i, x, w, count, y, same_w = T("s32", ()), f32(*SHAPE), f32(*SHAPE), T("s32", ()), f32(*SHAPE), f32(*SHAPE)
    main = G([calls_while([i, x, w], [count, y, same_w])], [i, x, w], [count, y, same_w])
    ci, cx, cw, going_on = T("s32", ()), f32(*SHAPE), f32(*SHAPE), T("bool", ())
    condition = G([("LESS", ("LessOptions", {}), [ci, number(3)], [going_on])], [ci, cx, cw], [going_on])
    bi, bx, bw, more = T("s32", ()), f32(*SHAPE), f32(*SHAPE), T("s32", ())
    j, end, after, kept = T("s32", ()), T("s32", ()), f32(*SHAPE), f32(*SHAPE)
    body = G(
        [
            calls_while([number(0), bi, bx, bw], [j, end, after, kept], 3, 4),
            (*ADD, [bi, number(1)], [more]),
        ],
        [bi, bx, bw],
        [more, after, bw],
    )
    dj, di, dx, dw, on = T("s32", ()), T("s32", ()), f32(*SHAPE), f32(*SHAPE), T("bool", ())
    inner = G([("LESS", ("LessOptions", {}), [dj, di], [on])], [dj, di, dx, dw], [on])
    ej, ei, ex, ew, next_j = T("s32", ()), T("s32", ()), f32(*SHAPE), f32(*SHAPE), T("s32", ())
    double, less = f32(*SHAPE), f32(*SHAPE)
    two = T("f32", (), data=np.float32(2))
    inner_body = G(
        [
            (*MUL, [ex, two], [double]),
            ("SUB", ("SubOptions", {}), [double, ew], [less]),
            (*ADD, [ej, number(1)], [next_j]),
        ],
        [ej, ei, ex, ew],
        [next_j, ei, less, ew],
    )
    return several(main, condition, body, inner, inner_body)


def handle(name: str, to: T, container: str = "") -> tuple:
    return ("VAR_HANDLE", ("VarHandleOptions", {"container": container, "sharedName": name}), [], [to])


def read(resource: T, to: T) -> tuple:
    return ("READ_VARIABLE", ("ReadVariableOptions", {}), [resource], [to])


def assign(resource: T, value: T) -> tuple:
    return ("ASSIGN_VARIABLE", ("AssignVariableOptions", {}), [resource, value], [])


def once(graph: int) -> tuple:
    return ("CALL_ONCE", ("CallOnceOptions", {"initSubgraphIndex": graph}), [], [])


def resource() -> T:
    return T("resource", ())


def starting(*variables: tuple[str, T]) -> G:
    """The graph that gives variables their first values."""
    nodes = []
    for name, value in variables:
        of = resource()
        nodes += [handle(name, of), assign(of, value)]
    return G(nodes, [], [])


def stream() -> bytes:
    """The last three values: a buffer that moves on, as in streaming models."""
    of, x = resource(), T("s8", (1, 2), 0.5, 3)

    def box(rows: int) -> T:
        return T("s8", (rows, 2), 0.5, 3)

    buffer, kept, moved = box(3), box(2), box(3)
    begin, size = (T("s32", (2,), data=np.int32(v)) for v in ([1, 0], [2, 2]))
    nodes = [
        once(1),
        handle("buffer", of),
        read(of, buffer),
        ("SLICE", ("SliceOptions", {}), [buffer, begin, size], [kept]),
        ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [kept, x], [moved]),
        assign(of, moved),
    ]
    first = T("s8", (3, 2), 0.5, 3, data=np.full((3, 2), 3))
    return several(G(nodes, [x], [moved]), starting(("buffer", first)))


def staged() -> bytes:
    """x -> reshape to what the input says -> -x -> where(-x) -> as often as where found something."""
    x, shape = f32(2, 6), s32(2)
    box, turned = (T("f32", (2, 6), signature=(-1, -1)) for _ in range(2))
    found, count, total = T("s64", (1, 2), signature=(-1, 2)), s32(2), s32()
    one = T("s32", (), data=np.int32(1))
    zero = T("s32", (), data=np.int32(0))
    first, rows = s32(2), T("s32", (1,), signature=(-1,))
    nodes = [
        ("RESHAPE", ("ReshapeOptions", {}), [x, shape], [box]),
        ("NEG", ("NegOptions", {}), [box], [turned]),
        ("WHERE", ("WhereOptions", {}), [turned], [found]),
        ("SHAPE", ("ShapeOptions", {"outType": 2}), [found], [count]),
        ("GATHER", ("GatherOptions", {}), [count, zero], [total]),
        ("RANGE", ("RangeOptions", {}), [zero, total, one], [rows]),
        ("ADD", ("AddOptions", {}), [shape, fixed(1, 1)], [first]),
    ]
    return several(G(nodes, [x, shape], [turned, rows, first, x]))
