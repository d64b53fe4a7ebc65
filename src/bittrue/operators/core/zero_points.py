"""Conditions on zero points that a numerics row may name; see `requirements`."""

from __future__ import annotations

from .base import Call

_LARGEST_16, _LARGEST_S32 = (1 << 16) - 1, (1 << 31) - 1


def zero_points_fit(call: Call) -> None:
    """Every zero point lies inside its tensor's type."""
    for operand in (*call.inputs, *call.outputs):
        if operand is not None and operand.tensor.quantization is not None:
            bad = operand.quantization.zero_point_outside(operand.type.minimum, operand.type.maximum)
            if bad is not None:
                raise call.invalid(
                    "BT-QUANT-ZERO-POINT",
                    f"zero point {bad} of '{operand.name}' lies outside {operand.type.title}",
                )


def differences_fit(call: Call, outputs_only: bool = False) -> None:
    """q - zero point fits 32 bits for every q of the tensors of at most 16 bits."""
    for operand in (*(() if outputs_only else call.inputs), *call.outputs):
        if operand is None or operand.tensor.quantization is None or not operand.type.is_integer:
            continue
        least, largest = operand.type.minimum, operand.type.maximum
        if largest > _LARGEST_16:
            continue
        bad = operand.quantization.zero_point_outside(largest - _LARGEST_S32, least + _LARGEST_S32)
        if bad is not None:
            raise call.invalid(
                "BT-QUANT-OVERFLOW",
                f"differences from zero point {bad} of '{operand.name}' leave the 32 bits of the kernels, "
                "where results are undefined",
                "quantize the model again; zero points belong into the tensor's type",
            )


def products_fit(call: Call, first: int, second: int) -> None:
    """(q - zero point)(q' - zero point') fits 32 bits for whatever the inputs `first` and `second` hold."""
    largest = 1
    for operand in (call.input(first), call.input(second)):
        zero_point = operand.zero_point
        largest *= max(abs(operand.type.minimum - zero_point), abs(operand.type.maximum - zero_point))
    if largest > _LARGEST_S32:
        points = (call.input(first).zero_point, call.input(second).zero_point)
        raise call.invalid(
            "BT-QUANT-OVERFLOW",
            f"products of differences from the zero points {points[0]} and {points[1]} leave the 32 bits of the "
            "kernels, where results are undefined",
            "quantize the model again; zero points belong into the tensors' types",
        )


def zero_points_fit_16_bits(call: Call) -> None:
    """Every zero point is a number of 16 bits with a sign."""
    for operand in (*call.inputs, *call.outputs):
        if operand is not None and operand.tensor.quantization is not None:
            bad = operand.quantization.zero_point_outside(-(1 << 15), (1 << 15) - 1)
            if bad is not None:
                raise call.invalid(
                    "BT-QUANT-ZERO-POINT",
                    f"zero point {bad} of '{operand.name}' does not fit 16 bits",
                    "the runtime refuses it, too",
                )
