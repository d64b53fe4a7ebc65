"""Mappings of arithmetic that integers and real numbers share: one stem each, whose rows say what types it has."""

from __future__ import annotations

from ...graph import Attribute
from .base import MICROSOFT, Mapper, Mappers, Source, fixed_type, same_type


def _extreme(operator: str) -> Mapper:
    """One or more operands, combined from left to right."""

    def mapper(source: Source) -> None:
        inputs = list(source.inputs)
        if not inputs or None in inputs:
            raise source.invalid("BT-NODE-INPUT", "at least one operand is needed, and none may be missing")
        dtype = source.type(0)
        if len(inputs) == 1:
            source.emit("identity", dtype)
            return
        alike: dict[str, Attribute] = {"broadcasts": False} if source.version < 8 else {}
        result = inputs[0]
        for number, operand in enumerate(inputs[1:-1], 1):
            name = source.temporary(dtype, f"part{number}")
            (result,) = source.emit(operator, dtype, alike, inputs=[result, operand], outputs=[name])
        source.emit(operator, dtype, alike, inputs=[result, inputs[-1]])

    return mapper


def _mod(source: Source) -> None:
    truncated = source.flag("fmod", False)
    source.emit("remainder", source.type(0), {"sign_of": "dividend" if truncated else "divisor"})


def _bit_shift(source: Source) -> None:
    direction = source.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"direction '{direction}' is neither LEFT nor RIGHT")
    source.emit("shift", source.type(0), {"up": direction == "LEFT"})


def _is_infinite(source: Source) -> None:
    signs = {sign: source.flag(f"detect_{sign}", True, True) for sign in ("negative", "positive")}
    source.emit("not_finite", "bool", {"nan": False, **signs})


def _cumulative(operator: str) -> Mapper:
    def mapper(source: Source) -> None:
        attributes = {name: source.flag(name, False) for name in ("exclusive", "reverse")}
        source.emit(operator, source.type(0), attributes)

    return mapper


def _gated_add(source: Source) -> None:
    """x + y * gate, the product rounded to its type."""
    dtype = source.type(0)
    plain: dict[str, Attribute] = {"activation": "none"}
    product = [source.temporary(dtype, "product")]
    (scaled,) = source.emit("mul", dtype, plain, inputs=source.ordered(1, 2), outputs=product)
    source.emit("add", dtype, plain, inputs=[source.inputs[0], scaled])


MAPPERS: Mappers = {
    ("", "Abs"): same_type("abs"),
    ("", "Add"): same_type("add"),
    ("", "And"): same_type("bitwise_and"),
    ("", "BitShift"): _bit_shift,
    ("", "BitwiseAnd"): same_type("bitwise_and"),
    ("", "BitwiseNot"): same_type("bitwise_not"),
    ("", "BitwiseOr"): same_type("bitwise_or"),
    ("", "BitwiseXor"): same_type("bitwise_xor"),
    ("", "CumProd"): _cumulative("cumprod"),
    ("", "CumSum"): _cumulative("cumsum"),
    ("", "Div"): same_type("div"),
    ("", "Equal"): fixed_type("equal", "bool"),
    ("", "Greater"): fixed_type("greater", "bool"),
    ("", "GreaterOrEqual"): fixed_type("greater_equal", "bool"),
    ("", "IsInf"): _is_infinite,
    ("", "IsNaN"): fixed_type("not_finite", "bool", nan=True, negative=False, positive=False),
    ("", "Less"): fixed_type("less", "bool"),
    ("", "LessOrEqual"): fixed_type("less_equal", "bool"),
    ("", "Max"): _extreme("maximum"),
    ("", "Min"): _extreme("minimum"),
    ("", "Mod"): _mod,
    ("", "Mul"): same_type("mul"),
    ("", "Neg"): same_type("neg"),
    ("", "Not"): same_type("bitwise_not"),
    ("", "Or"): same_type("bitwise_or"),
    ("", "Sub"): same_type("sub"),
    ("", "Xor"): fixed_type("not_equal", "bool"),
    (MICROSOFT, "GatedAdd"): _gated_add,
}
