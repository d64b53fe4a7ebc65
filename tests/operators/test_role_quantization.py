"""One function says what quantization a role has, whatever form a file gives it in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bittrue
from bittrue.errors import BittrueError
from bittrue.graph import Node, Quantization, Tensor
from bittrue.operators import Call, Operand, Role, find
from bittrue.operators.core.late import prepare_now
from bittrue.operators.core.role_quantization import of_call, of_node, of_step, role_of
from support.layer_models import LAYERS

SCALE = Tensor("scale", "f32", (), data=np.float32([0.5]))
POINT = Tensor("point", "u8", (), data=np.uint8([7]))
PLAIN, LATE = Tensor("data", "u8", (2,)), Tensor("late", "f32", ())
CARRIED = replace(PLAIN, quantization=Quantization(np.float32([0.25]), np.array([3])))
INPUT = Role("input", 0, 1, 2)


def _call(*tensors: Tensor | None) -> Call:
    operands = tuple(
        None if t is None else Operand(i, t, t.shape, t.values() if t.is_constant else None)
        for i, t in enumerate(tensors)
    )
    return Call(Node(0, "x", "X", 1, {}, (), ()), operands, ())


def test_operands_tensors_late_and_absent() -> None:
    found = of_call(_call(PLAIN, SCALE, POINT), INPUT)
    assert (found.scales, found.zero_points, found.scale_at, found.zero_point_at, found.late) == (0.5, 7, 1, 2, False)
    found = of_call(_call(CARRIED), INPUT)
    assert (found.scales, found.zero_points, found.scale_at, found.late) == ([0.25], [3], None, False)
    # Operands count where there are any.
    assert of_call(_call(CARRIED, SCALE), INPUT).scales == 0.5
    found = of_call(_call(PLAIN, LATE, POINT), INPUT)
    assert (found.scales, found.zero_points, found.late) == (None, 7, True)
    assert of_call(_call(PLAIN), INPUT).scales is None


def test_preparation_finds_both_forms_at_one_place() -> None:
    for call in (
        _call(CARRIED),
        _call(PLAIN, replace(SCALE, data=np.float32([0.25])), replace(POINT, data=np.uint8([3]))),
    ):
        parameters, _ = prepare_now(
            call, (1, 2), {}, lambda rules, known, v: ({"found": f"{v[1].item()} {v[2].item()}"}, {}), (INPUT,)
        )
        assert parameters == {"found": "0.25 3", "late": False}


def test_both_forms_at_once_are_refused_where_one_is_late() -> None:
    roles = INPUT, Role("weights", 3, 4, 5)
    with pytest.raises(BittrueError) as error:
        prepare_now(_call(PLAIN, LATE, POINT, CARRIED), (1, 2, 4, 5), {}, lambda *_: ({}, {}), roles)
    assert error.value.code == "BT-QUANT-OPERAND"


@pytest.mark.parametrize(("name", "scale"), [("conv2d s8", None), ("qlinear_conv 2-D", True)])
def test_graphs_and_plans_agree(name: str, scale: bool | None) -> None:
    content, numerics = LAYERS[name]()
    graph = bittrue.load(content).graph
    plan = bittrue.load(content).prepare(numerics).plan
    node, step = graph.nodes[0], plan.steps[0]
    for word in ("input", "weights", "output"):
        role = role_of(find(node.operator), word) or Role(word, -1)
        of_graph, of_plan = of_node(graph.tensors, node, role), of_step(plan.tensors, step, role)
        assert (of_graph.scale_at is None) == (scale is None)
        for one, other in ((of_graph.scales, of_plan.scales), (of_graph.zero_points, of_plan.zero_points)):
            assert one is not None
            assert other is not None
            np.testing.assert_array_equal(one, other)
