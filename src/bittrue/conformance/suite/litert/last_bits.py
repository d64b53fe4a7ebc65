"""Cases that the mutation score asked for: last bits of multipliers.

A multiplier that is off by one in its last bit, has a few bits less, or is formed in binary32, changes a result only
where the exact one lies within some 2^-24 of a tie. Such places follow from an equation, or were found by search among
some hundred random scales; each stands here with what it is for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..draft import Draft, generator
from ..tflite import Operand, one_operator
from .layer_models import Layer, draft

Array = np.ndarray
_COMPARISONS = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")


def further(operator: str, types: str) -> Iterator[Draft]:
    """What is added to the operator's own cases."""
    if types != "s8":
        return
    if operator in _COMPARISONS:
        yield from _compared(operator)
    if operator == "MEAN":
        yield from _averaged(operator)
    if operator == "AVERAGE_POOL_2D":
        yield _wide_window(operator)
    if operator == "FULLY_CONNECTED":
        yield from _below_half(operator)


def _compared(operator: str) -> Iterator[Draft]:
    """(q - z) * 2^8 * M / 2^31 at a tie or one step from it, against a number that is equal, or one more or less.

    With q - z = 255 and a scale M' * 2^-24 in [1/2, 1), 255 * M' lies k steps from a tie when M' = (2^15 + k) / 255
    modulo 2^16. A multiplier that is less by one in its last bit loses a tie or a step above it.
    """
    whole = [(k, int((1 << 15) + k) * pow(255, -1, 1 << 16) % (1 << 16) + (200 << 16)) for k in (-1, 0, 1)]
    for step, mantissa in whole:
        scale = mantissa * 2.0**-24
        value = (255 * mantissa + (1 << 15)) >> 16
        for apart in (-1, 0, 1):
            other = float(np.float32((value + apart) / (255 * 256)))
            for swapped in (False, True):
                scales = (other, scale) if swapped else (scale, other)
                note = f"{step} steps of 2^-16 from a tie, against a number {apart} from it"
                yield _comparison(operator, scales, note)


def _comparison(operator: str, scales: tuple[float, float], note: str) -> Draft:
    """Code 127 under a zero point of -128 on both sides."""
    code = np.array([[127]], np.int8)
    first, second = (Operand("s8", (1, 1), scale, -128) for scale in scales)
    content = one_operator(operator, [first, second], [Operand("bool", (1, 1))], {}, 2)
    return Draft("near ties", content, {"input0": code, "input1": code}, note)


# Scale of the input, of the output (of a mean), and a sum of 1,024 quantized values.
_SUMS = (
    # Multiplier of 16 bits, 23 bits rounded and cut, formed in binary32, 24 bits, last bit down, up.
    (0.017708424478769302, 0.010950983501970768, -80105),
    (0.017708424478769302, 0.010950983501970768, -54142),
    (0.04617173224687576, 0.04322687163949013, -112645),
    (0.08349858969449997, 0.059680622071027756, -47939),
    (0.05595823749899864, 0.05133003368973732, -50252),
    (0.051425013691186905, 0.04110268875956535, -74888),
    (0.040660686790943146, 0.03972557187080383, -55524),
)


def _averaged(operator: str) -> Iterator[Draft]:
    """Rows of 1,024 quantized values with these sums."""
    for number, (scale, out, total) in enumerate(_SUMS):
        quantized = np.full(1024, total // 1024)
        quantized[: total % 1024] += 1
        # Some spread that leaves the sum as it is.
        moved = np.minimum(np.minimum(quantized[:512] + 128, 127 - quantized[512:]), 1 + np.arange(512) % 20)
        quantized[:512] -= moved
        quantized[512:] += moved
        shuffled = generator("further", operator, number).permutation(quantized).astype(np.int8)
        x, y = Operand("s8", (1, 1024), scale, 0), Operand("s8", (1,), out, 0)
        axes = Operand("s32", (1,), data=np.array([1], np.int32), name="axes")
        content = one_operator(operator, [x, axes], [y], {"keep_dims": False}, 2)
        yield Draft("near ties", content, {"input0": shuffled.reshape(1, 1024)}, "a last bit decides")


def _wide_window(operator: str) -> Draft:
    """100.5 - 1/280,002, of which binary32 makes 100.5."""
    count, total = 140_001, 14_070_100
    quantized = np.full(count, total // count)
    quantized[: total % count] += 1
    x, y = Operand("s8", (1, 1, count, 1), 0.5, 0), Operand("s8", (1, 1, 1, 1), 0.5, 0)
    options = {
        "padding": "VALID",
        "stride_w": 1,
        "stride_h": 1,
        "filter_width": count,
        "filter_height": 1,
        "fused_activation_function": "NONE",
    }
    content = one_operator(operator, [x], [y], options, 2)
    image = quantized.astype(np.int8).reshape(1, 1, count, 1)
    return Draft("near ties", content, {"input0": image}, "an average nearer to a tie than binary32 tells")


def _below_half(operator: str) -> Iterator[Draft]:
    """n * (1 / (2 n)) in binary64 is 1/2 - 2^-54 for these n: what adds 1/2 in binary64 gets 1, and the rule 0."""
    for n in (49, 103, 107):
        quantized = np.array([[n], [-n], [n - 1], [n + 1], [0], [1]], np.int8)
        # Three times as much lies beside 3/2.
        weights = np.array([[1], [-1], [3]], np.int8)
        layer = Layer(operator, "s8", quantized, weights, np.zeros(3, np.int32), 1.0, 1.0, 2.0 * n)
        yield draft(layer, "near ties", f"{n} times 1/{2 * n}: just below a half in binary64")
