"""Rules of the slots of unary operators: literal cases, one at least that tells every pair of a slot's rules apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bittrue.arithmetic import elementary
from bittrue.rules import rules


def _table(rule: Any) -> list[int]:
    tanh = (lambda x: Fraction(float(elementary.tanh(float(x))))) if rule.exact else elementary.tanh
    table = rule.build(tanh, 0.25669166445732117, 0, 1 / 128, 0, -128, 127)
    others = [
        (rule.build(tanh, 0.11414781957864761, 0, 1 / 128, 0, -128, 127), 8),
        (rule.build(tanh, 0.11414781957864761, 0, 1 / 128, 1, -128, 127), 8),
        (rule.build(tanh, 0.06959595531225204, 0, 0.008500000461935997, 0, -128, 127), -53),
        (rule.build(tanh, 8.892297046259046e-05, 0, 1 / 32768, 0, -128, 127), 127),
    ]
    return [
        *rule.read(table, np.array([0, 1, -1, 10, -10, 100]), -128).tolist(),
        *(rule.read(other, np.array([q]), -128)[0] for other, q in others),
    ]


def _square_root(rule: Any) -> list[int]:
    return rule(np.array([0, 7, 8, 9, 100]), 1.0, 0, 0.5, 0, -128, 127).tolist()


def _inverse_root(rule: Any) -> list[int]:
    return rule(np.array([0, 1, 3, 5, 64]), 1.0, 0.03125, -1, -128, 127).tolist()


def _cast(rule: Any) -> list[list[int]]:
    signed = rule(np.array([2.5, -2.5, 127.9, 128.0, -128.9, -129.0, np.nan, np.inf, -np.inf]), -128, 127)
    return [signed.tolist(), rule(np.array([-7.0, -7.0, -7.0, -7.0, -7.0, 5e9]), 0, 65535).tolist()]


def _sigmoid(rule: Any) -> list[list[int]]:
    multiplier, right_shift = rule.prepare(2.0**-12, 0)
    q = np.array([0, 1, -1, 1000, -1000, 32767, -32768])
    table = rule.table()
    return [
        rule.logistic(q, multiplier, right_shift, table).tolist(),
        rule.tanh(q, multiplier, right_shift, table).tolist(),
    ]


def _gate(rule: Any) -> list[list[int]]:
    q = np.array([0, 1, -1, 4096, -4096, 32767, -32768])
    return [rule.logistic(q).tolist(), rule.tanh(q, 3).tolist()]


def _layer_norm(rule: Any) -> list[list[int]]:
    gate = np.array([[1, -1, 3, -3], [0, 0, 0, 0], [32767, -32768, 0, 5], [0, 0, 0, 1]])
    return rule(gate, np.array([1024, 1024, 2, -32768]), np.array([0, -512, 512, 1536]), 3).tolist()


def _short(value: np.float32) -> str:
    return float(value).hex().replace("0000000p", "p")


def _hard_swish(rule: Any) -> list[int]:
    return rule(np.array([-128, -64, -36, -32, 8, 32, 48, 127]), 1 / 16, 0, 1 / 16, 1, -128, 127).tolist()


PARAMETERS = {
    "celu": {"alpha": 0.75},
    "hard_sigmoid": {"alpha": 0.25, "beta": 0.5},
    "parametric_elu": {"alpha": 0.75},
    "quick_gelu": {"alpha": 1.75},
    "selu": {"alpha": 1.75, "gamma": 1.25},
}


# Numbers that rules of the same functions have other answers to, by what their names begin with.
_TELLING = {"binary32_refined": 1.5, "binary32_short": 1.060546875}


def _real_function(rule: Any) -> list[list[str]]:
    name = next(name for name, one in rules("real_function").items() if one is rule)
    more = [number for start, number in _TELLING.items() if name.startswith(start)]
    x = np.array([-1.5, 0.75, 20.0, *more], rule.type or np.float16)
    with np.errstate(all="ignore"):
        answers = {name: rule.functions[name](x, **PARAMETERS.get(name, {})) for name in sorted(rule.functions)}
        if "tan" in answers:
            # One at which joined products tell.
            answers["tan of another"] = rule.functions["tan"](np.float32([0.08004311472177505]))
    return [[_short(v) for v in answer] for answer in answers.values()]


def _steps(count: int) -> np.ndarray:
    return (np.arange(count, dtype=np.float32) * np.float32(0.37) % np.float32(5))[None]


def _real_softmax(rule: Any) -> list[list[str]]:
    rows = np.float32([[1, 0.5, -3, 0.1]])
    # Sums of more than 8 elements in another order.
    long = _steps(166)
    wide = rule in [rules("real_softmax")[f"binary64_in_{pairs}"] for pairs in ("pairs", "joined_pairs")]
    if wide:
        rows, long = rows.astype(np.float64), long.astype(np.float64)
    results = [rule.softmax(long, 1.0)[:, :1], rule.softmax(rows, 1.0)]
    try:
        results += [rule.softmax(rows, 0.5), rule.log_softmax(rows)]
    except NotImplementedError:
        # Neither another beta nor logarithms.
        results = [*results[:2], rule.softmax(_steps(190), 1.0)[:, :1]]
    if wide:
        results += [rule.softmax(np.float64([[0, -11.34375]]), 1.0)]
    return [[_short(v) for v in row.reshape(-1)] for row in results]


def _real_gelu(rule: Any) -> list[list[str]]:
    x = np.float32([-5.3, -4.140262, 0.5, 3, -5.3])
    return [[_short(v) for v in rule.apply(x, approximate)] for approximate in (False, True)]


# slot -> what a rule answers to one case, and the literal answer of each rule
CASES: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "table": (
        _table,
        {
            # tanh(2.5669) is 126.502 of 128; the samples of 16 bits are too far apart for inputs of 8
            "binary32_reciprocal_256_away": [0, 32, -32, 127, -127, 127, 93, 94, -117, 127],
            "f4_newton_256_one_step_up": [0, 32, -32, 126, -126, 127, 93, 93, -128, 1],
            # 92.5: to even, the second time with the zero point 1
            "binary32_reciprocal_sum_256_even": [0, 32, -32, 126, -126, 127, 92, 94, -117, 127],
            "binary32_reciprocal_513_linear_up": [20, 21, 19, 28, 6, 104, 33, 33, -45, 368],
            # the entry of 128 is 372 with fused products, 371 without
            "binary32_reciprocal_513_fused_linear_up": [20, 21, 19, 28, 6, 104, 33, 33, -45, 369],
            # or before it is added; -117.5 in binary32, a little more in real numbers
            "binary32_divide_256_even": [0, 32, -32, 126, -126, 127, 92, 93, -118, 127],
            "binary32_divide_256_away": [0, 32, -32, 127, -127, 127, 93, 94, -118, 127],
            "exact_256_even": [0, 32, -32, 126, -126, 127, 92, 93, -117, 127],
            # the function is of steps, which are 0.2566 * 128 of the output's
            "binary32_ratio_256_even": [0, 1, -1, 1, -1, 1, 1, 2, -1, 1],
            # whatever the scales are
            "tanh_midpoints_127_even": [0, 3, -3, 29, -29, 125, 24, 24, -108, 127],
            "tanh_midpoints_127_even_less_1": [-1, 2, -4, 28, -30, 124, 23, 23, -109, 126],
        },
    ),
    # 5.29, 5.66, 6 and 20 steps: the fraction is dropped
    "square_root": (_square_root, {"binary32_divide_trunc": [0, 5, 5, 6, 20]}),
    # 32 steps of 1/32 are 1; 18.47 and 14.3 round down, the zero point -1 is added, 0 gives the maximum
    "inverse_root": (_inverse_root, {"q31_newton_away": [127, 31, 17, 13, 3]}),
    # as s32, before the low bits are taken: NaN and infinities are -2^31, in halves infinity is 2^31 - 2^31
    "cast": (
        _cast,
        {
            "round_away_limited_low_bits": [
                [3, -3, 128, 128, -129, -129, 0, 2**31 - 1, -(2**31)],
                [-7, -7, -7, -7, -7, 2**31 - 1],
            ],
            "round_away_low_bits": [
                [3, -3, 128, 128, -129, -129, -(2**31), -(2**31), -(2**31)],
                [-7, -7, -7, -7, -7, -(2**31)],
            ],
            "truncate_limited_64_low_bits": [
                [2, -2, 127, 128, -128, -129, 0, 2**63 - 1, -(2**63)],
                [-7, -7, -7, -7, -7, 5_000_000_000],
            ],
            "truncate_limited_fours_low_bits": [
                [2, -2, 127, 128, -128, -129, 0, 2**31 - 1, -(2**31)],
                [-7, -7, -7, -7, 0, 2**32 - 1],
            ],
            "truncate_limited_low_bits": [
                [2, -2, 127, 128, -128, -129, 0, 2**31 - 1, -(2**31)],
                [0, 0, 0, 0, 0, 2**32 - 1],
            ],
            "truncate_limited_s32_low_bits": [
                [2, -2, 127, 128, -128, -129, 0, 2**31 - 1, -(2**31)],
                [-7, -7, -7, -7, -7, 2**31 - 1],
            ],
            "truncate_low_bits": [
                [2, -2, 127, 128, -128, -129, -(2**31), -(2**31), -(2**31)],
                [-7, -7, -7, -7, -7, -(2**31)],
            ],
            "truncate_low_bits_by_halves": [
                [2, -2, 127, 128, -128, -129, -(2**31), 0, -(2**31)],
                [-7, -7, -7, -7, -7, 0],
            ],
            "truncate_low_bits_nan_zero": [
                [2, -2, 127, 128, -128, -129, 0, -(2**31), -(2**31)],
                [-7, -7, -7, -7, -7, -(2**31)],
            ],
            "truncate_saturate_nan_maximum": [[2, -2, 127, 127, -128, -128, 127, 127, -128], [0, 0, 0, 0, 0, 65535]],
        },
    ),
    # logistic(1000 / 4096) = 0.56074 and tanh of it = 0.23942 of 32768; both ways are off by a few
    "sigmoid": (
        _sigmoid,
        {
            "s16_table_256_linear": [
                [16384, 16386, 16382, 18374, 14394, 32757, 11],
                [0, 8, -8, 7845, -7845, 32767, -32767],
            ],
            "s16_polynomial_or_table_256": [
                [16384, 16384, 16383, 18376, 14391, 32756, 11],
                [0, 8, -8, 7840, -7840, 32767, -32767],
            ],
        },
    ),
    # Row 2 has no variance: the guard stands in, and bias / 2^10 is what is left (-0.5 and 1.5 go away from zero).
    "layer_norm": (
        _layer_norm,
        {
            "s32_newton_inverse_root": [
                [458, -459, 3, 43970],
                [0, -1, 1, 2],
                [1448, -1449, 1, 2],
                [-148, -149, 0, -14175],
            ]
        },
    ),
    # 0, 0, -4.5, -5.33, 4.67, 26.67, 48 and 127, less what 15 bits lose; the zero point 1 is added
    "hard_swish": (
        _hard_swish,
        {
            "q15_gate_trunc": [1, 1, -4, -4, 6, 28, 49, 127],
            # -4.5 goes up
            "q15_gate_down": [1, 1, -3, -4, 6, 28, 49, 127],
        },
    ),
    # cos, elu, exp, log, logistic, sin and tanh of -1.5, 0.75 and 20, as the C library gives them
    "real_function": (
        _real_function,
        {
            "binary32_elementary": [
                ["0x1.21bd54p-4", "0x1.769fecp-1", "0x1.a1e044p-2"],
                ["-0x1.8dc1e2p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.c8f878p-3", "0x1.0ef9dcp+1", "0x1.ceb088p+28"],
                ["nan", "-0x1.269622p-2", "0x1.7f7428p+1"],
                ["0x1.759b84p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.feb7aap-1", "0x1.5cffc2p-1", "0x1.d36d90p-1"],
                ["-0x1.cf6f98p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            # with hard_swish before log and neg before sin
            "binary32_fused": [
                ["0x1.21bd40p-4", "0x1.769feep-1", "0x1.a1e046p-2"],
                ["-0x1.8dc1e2p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.c8f878p-3", "0x1.0ef9dap+1", "0x1.ceb08ap+28"],
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["nan", "-0x1.26961cp-2", "0x1.7f7428p+1"],
                ["0x1.759b84p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["0x1.800000p+0", "-0x1.800000p-1", "-0x1.400000p+4"],
                ["-0x1.feb7a8p-1", "0x1.5cffc0p-1", "0x1.d36d8ep-1"],
                ["-0x1.cf6f96p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            "binary32_fused_tables": [
                ["-0x1.8dc1e2p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.c8f878p-3", "0x1.0ef9dap+1", "0x1.ceb08ap+28"],
                ["nan", "-0x1.26961cp-2", "0x1.7f7428p+1"],
                ["0x1.759b82p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["0x1.800000p+0", "-0x1.800000p-1", "-0x1.400000p+4"],
            ],
            "binary32_fused_by_exponent": [
                ["-0x1.8dc1e2p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["nan", "-0x1.26961cp-2", "0x1.7f7428p+1"],
                ["0x1.759b84p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
            ],
            # cos, logistic, sin, tanh
            "binary16_fused_flushed": [
                ["0x1.21c000p-4", "0x1.768000p-1", "0x1.a20000p-2"],
                ["0x1.754000p-3", "0x1.5bc000p-1", "0x1.000000p+0"],
                ["-0x1.fec000p-1", "0x1.5d0000p-1", "0x1.d34000p-1"],
                ["-0x1.cf8000p-1", "0x1.450000p-1", "0x1.004000p+0"],
            ],
            # cos, logistic, sin, tanh
            "binary32_short": [
                ["0x1.21bd56p-4", "0x1.769fdep-1", "0x1.a1e044p-2", "0x1.f41dcep-2"],
                ["0x1.751c34p-3", "0x1.5bd704p-1", "0x1.000000p+0", "0x1.7c6ec6p-1"],
                ["-0x1.fea95cp-1", "0x1.5cffbcp-1", "0x1.d36c38p-1", "0x1.bec7c4p-1"],
                ["-0x1.cf8248p-1", "0x1.4538cep-1", "0x1.001e28p+0", "0x1.926a12p-1"],
            ],
            # cos, sin
            "binary32_short_apart": [
                ["0x1.21bd56p-4", "0x1.769fdep-1", "0x1.a1e044p-2", "0x1.f41dccp-2"],
                ["-0x1.fea95cp-1", "0x1.5cffbcp-1", "0x1.d36c38p-1", "0x1.bec7c2p-1"],
            ],
            # rsqrt, sqrt: of 1.5 one unit apart
            "binary32_refined_lines": [
                ["nan", "0x1.279a74p+0", "0x1.c9f25cp-3", "0x1.a20bd6p-1"],
                ["nan", "0x1.bb67aep-1", "0x1.1e377ap+2", "0x1.3988e0p+0"],
            ],
            "binary32_refined_tables": [
                ["nan", "0x1.279a74p+0", "0x1.c9f25cp-3", "0x1.a20bd8p-1"],
                ["nan", "0x1.bb67aep-1", "0x1.1e377ap+2", "0x1.3988e2p+0"],
            ],
            # acos, acosh, asin, asinh, atan, atanh, celu, cos, cosh, erf, exp, gelu, gelu_tanh, hard_sigmoid,
            # hard_swish, log, logistic, mish, parametric_elu, quick_gelu, selu, sin, sinh, softplus, softsign, tan,
            # tanh
            "rounded_once": [
                ["nan", "0x1.720a3ap-1", "nan"],
                ["nan", "nan", "0x1.d818b4p+1"],
                ["nan", "0x1.b23532p-1", "nan"],
                ["-0x1.31dc00p+0", "0x1.62e430p-1", "0x1.d841aap+1"],
                ["-0x1.f730bep-1", "0x1.4978fap-1", "0x1.8555a2p+0"],
                ["nan", "0x1.f2272ap-1", "nan"],
                ["-0x1.4c0800p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.21bd54p-4", "0x1.769fecp-1", "0x1.a1e044p-2"],
                ["0x1.2d1bc2p+1", "0x1.4b705ep+0", "0x1.ceb088p+27"],
                ["-0x1.eea556p-1", "0x1.6c1c98p-1", "0x1.000000p+0"],
                ["0x1.c8f878p-3", "0x1.0ef9dcp+1", "0x1.ceb088p+28"],
                ["-0x1.9a76a4p-4", "0x1.28f9a0p-1", "0x1.400000p+4"],
                ["-0x1.9b5ad6p-4", "0x1.28f098p-1", "0x1.400000p+4"],
                ["0x1.000000p-3", "0x1.600000p-1", "0x1.000000p+0"],
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["nan", "-0x1.269622p-2", "0x1.7f7428p+1"],
                ["0x1.759b84p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.314110p-2", "0x1.385452p-1", "0x1.400000p+4"],
                ["-0x1.2a516ap-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["-0x1.9f01c2p-4", "0x1.2e90cap-1", "0x1.400000p+4"],
                ["-0x1.b30c10p+0", "0x1.e00000p-1", "0x1.900000p+4"],
                ["-0x1.feb7aap-1", "0x1.5cffc2p-1", "0x1.d36d90p-1"],
                ["-0x1.108c3ap+1", "0x1.a506b2p-1", "0x1.ceb088p+27"],
                ["0x1.9c7e90p-3", "0x1.2309fap+0", "0x1.400000p+4"],
                ["-0x1.333334p-1", "0x1.b6db6ep-2", "0x1.e79e7ap-1"],
                ["-0x1.c33ed6p+3", "0x1.dcfa36p-1", "0x1.1e5b4ap+1"],
                ["-0x1.cf6f98p-1", "0x1.45323ep-1", "0x1.000000p+0"],
                ["0x1.488efep-4"],
            ],
            # erf, exp, logistic, quick_gelu, tanh
            "binary32_fused_polynomials": [
                ["-0x1.eea556p-1", "0x1.6c1c98p-1", "0x1.000000p+0"],
                ["0x1.c8f878p-3", "0x1.0ef9dcp+1", "0x1.ceb088p+28"],
                ["0x1.759b88p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.9f01b8p-4", "0x1.2e90cap-1", "0x1.400000p+4"],
                ["-0x1.cf6f96p-1", "0x1.453240p-1", "0x1.000000p+0"],
            ],
            # erf of -1.5, 0.75 and 20, which no vector of eight holds
            "binary16_estimated_reciprocals": [["-0x1.eec000p-1", "0x1.6c8000p-1", "0x1.000000p+0"]],
            # logistic, quick_gelu
            "binary32_fused_below_1": [
                ["0x1.759b88p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.9f01b8p-4", "0x1.2e90cap-1", "0x1.400000p+4"],
            ],
            # exp; logistic: e^-1.5 / (1 + e^-1.5) of binary32 numbers, rounded three times; tanh
            "binary32_by_library": [
                ["0x1.c8f878p-3", "0x1.0ef9dcp+1", "0x1.ceb088p+28"],
                ["0x1.759b82p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.cf6f98p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            # exp, tanh
            "binary32_by_joined_library": [
                ["0x1.c8f878p-3", "0x1.0ef9dcp+1", "0x1.ceb088p+28"],
                ["-0x1.cf6f98p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            # cos, exp, log, logistic, sin, tanh
            "binary64_in_pairs": [
                ["0x1.21bd54fc5f9a3p-4", "0x1.769fec655211ep-1", "0x1.a1e043964a83fp-2"],
                ["0x1.c8f87724b5c1dp-3", "0x1.0ef9db467dcf8p+1", "0x1.ceb088b68e804p+28"],
                ["nan", "-0x1.269621134db92p-2", "0x1.7f7427b73e391p+1"],
                ["0x1.759b8355a1bb0p-3", "0x1.5bbd4f7a323ecp-1", "0x1.ffffffee4b79ap-1"],
                ["-0x1.feb7a9b2c6d8bp-1", "0x1.5cffc16bf8f0dp-1", "0x1.d36d8f55d3ce0p-1"],
                ["-0x1.cf6f9786df576p-1", "0x1.45323e552f228p-1", "0x1.000000p+0"],
            ],
            # the same
            "binary64_in_joined_pairs": [
                ["0x1.21bd54fc5f9a3p-4", "0x1.769fec655211ep-1", "0x1.a1e043964a83fp-2"],
                ["0x1.c8f87724b5c1dp-3", "0x1.0ef9db467dcf8p+1", "0x1.ceb088b68e804p+28"],
                ["nan", "-0x1.269621134db92p-2", "0x1.7f7427b73e391p+1"],
                ["0x1.759b8355a1bb0p-3", "0x1.5bbd4f7a323ecp-1", "0x1.ffffffee4b79ap-1"],
                ["-0x1.feb7a9b2c6d8bp-1", "0x1.5cffc16bf8f0dp-1", "0x1.d36d8f55d3ce0p-1"],
                ["-0x1.cf6f9786df578p-1", "0x1.45323e552f228p-1", "0x1.000000p+0"],
            ],
            # softplus
            "binary32_log_of_sum": [["0x1.9c7e98p-3", "0x1.2309fap+0", "0x1.400000p+4"]],
            # logistic, tanh: each step by `arithmetic.exact`
            "binary32_of_exponentials": [
                ["0x1.759b84p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.cf6f98p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            # hard_swish, logistic, tanh: none of three numbers lies in a whole group of four
            "binary32_rational_lanes_4": [
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["0x1.759b82p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.cf6f9ap-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            "binary32_fused_rational_lanes_4": [
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["0x1.759b82p-3", "0x1.5bbd50p-1", "0x1.000000p+0"],
                ["-0x1.cf6f96p-1", "0x1.45323ep-1", "0x1.000000p+0"],
            ],
            # logistic and tanh of binary16 numbers
            "operations_of_16_bits": [
                ["0x1.75c000p-3", "0x1.5bc000p-1", "0x1.000000p+0"],
                ["-0x1.cf8000p-1", "0x1.454000p-1", "0x1.000000p+0"],
            ],
            # round_to_integer
            "binary32_floor_or_next": [
                ["-0x1.000000p+1", "0x1.000000p+0", "0x1.400000p+4"],
            ],
            "binary32_times_sixth": [["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"]],
            # acos, acosh, asin, asinh, atan, atanh, celu, cos, cosh, hard_sigmoid, hard_swish, log, mish,
            # parametric_elu, selu, sin, sinh, softplus, softsign, tan
            "binary32_joined_operations": [
                ["nan", "0x1.720a3ap-1", "nan"],
                ["nan", "nan", "0x1.d818b4p+1"],
                ["nan", "0x1.b23532p-1", "nan"],
                ["-0x1.31dc00p+0", "0x1.62e430p-1", "0x1.d841aap+1"],
                ["-0x1.f730bep-1", "0x1.4978fap-1", "0x1.8555a2p+0"],
                ["nan", "0x1.f2272cp-1", "nan"],
                ["-0x1.4c0800p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.21bd54p-4", "0x1.769fecp-1", "0x1.a1e044p-2"],
                ["0x1.2d1bc2p+1", "0x1.4b705ep+0", "0x1.ceb088p+27"],
                ["0x1.000000p-3", "0x1.600000p-1", "0x1.000000p+0"],
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["nan", "-0x1.269622p-2", "0x1.7f7428p+1"],
                ["-0x1.31410cp-2", "0x1.385454p-1", "0x1.400000p+4"],
                ["-0x1.2a516ap-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["-0x1.b30c10p+0", "0x1.e00000p-1", "0x1.900000p+4"],
                ["-0x1.feb7aap-1", "0x1.5cffc2p-1", "0x1.d36d90p-1"],
                ["-0x1.108c3ap+1", "0x1.a506b2p-1", "0x1.ceb088p+27"],
                ["0x1.9c7e92p-3", "0x1.2309fap+0", "0x1.400000p+4"],
                ["-0x1.333334p-1", "0x1.b6db70p-2", "0x1.e79e7ap-1"],
                ["-0x1.c33ed6p+3", "0x1.dcfa36p-1", "0x1.1e5b4ap+1"],
                ["0x1.488f00p-4"],
            ],
            # acos, acosh, asin, asinh, atan, atanh, celu, cos, cosh, hard_sigmoid, hard_swish, log, mish,
            # parametric_elu, selu, sin, sinh, softplus, softsign, tan
            "binary32_single_operations": [
                ["nan", "0x1.720a3ap-1", "nan"],
                ["nan", "nan", "0x1.d818b4p+1"],
                ["nan", "0x1.b23532p-1", "nan"],
                ["-0x1.31dc00p+0", "0x1.62e430p-1", "0x1.d841aap+1"],
                ["-0x1.f730bep-1", "0x1.4978fap-1", "0x1.8555a2p+0"],
                ["nan", "0x1.f2272cp-1", "nan"],
                ["-0x1.4c0800p-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["0x1.21bd54p-4", "0x1.769fecp-1", "0x1.a1e044p-2"],
                ["0x1.2d1bc2p+1", "0x1.4b705ep+0", "0x1.ceb088p+27"],
                ["0x1.000000p-3", "0x1.600000p-1", "0x1.000000p+0"],
                ["-0x1.800000p-2", "0x1.e00000p-2", "0x1.400000p+4"],
                ["nan", "-0x1.269622p-2", "0x1.7f7428p+1"],
                ["-0x1.31410cp-2", "0x1.385454p-1", "0x1.400000p+4"],
                ["-0x1.2a516ap-1", "0x1.800000p-1", "0x1.400000p+4"],
                ["-0x1.b30c10p+0", "0x1.e00000p-1", "0x1.900000p+4"],
                ["-0x1.feb7aap-1", "0x1.5cffc2p-1", "0x1.d36d90p-1"],
                ["-0x1.108c3ap+1", "0x1.a506b2p-1", "0x1.ceb088p+27"],
                ["0x1.9c7e92p-3", "0x1.2309fap+0", "0x1.400000p+4"],
                ["-0x1.333334p-1", "0x1.b6db70p-2", "0x1.e79e7ap-1"],
                ["-0x1.c33ed6p+3", "0x1.dcfa36p-1", "0x1.1e5b4ap+1"],
                ["0x1.488efep-4"],
            ],
        },
    ),
    # -5.3, -2, 0.5, 3 and once more -5.3, which stands behind the group of four
    "real_gelu": (
        _real_gelu,
        {
            "binary32_rational_lanes_4": [
                ["-0x1.49819ep-22", "-0x1.2d3690p-14", "0x1.62075ep-2", "0x1.7f7b4cp+1", "-0x1.4981a0p-22"],
                ["-0x0.0p+0", "-0x1.26fe62p-15", "0x1.6202dap-2", "0x1.7f88d0p+1", "-0x0.0p+0"],
            ],
            "binary32_fused_rational_lanes_4": [
                ["-0x1.49819cp-22", "-0x1.2d3690p-14", "0x1.62075ep-2", "0x1.7f7b4cp+1", "-0x1.49819ep-22"],
                ["-0x0.0p+0", "-0x1.291056p-15", "0x1.6202dcp-2", "0x1.7f88d0p+1", "-0x0.0p+0"],
            ],
            "binary32_fused": [
                ["-0x0.0p+0", "-0x1.2c2b44p-14", "0x1.62075ep-2", "0x1.7f7b4ep+1", "-0x0.0p+0"],
                ["-0x0.0p+0", "-0x1.28075cp-15", "0x1.6202dap-2", "0x1.7f88d0p+1", "-0x0.0p+0"],
            ],
            "binary32_short": [
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f4000p+1", "-0x0.0p+0"],
                ["-0x1.770000p-9", "-0x1.250000p-9", "0x1.620000p-2", "0x1.7f8000p+1", "-0x1.770000p-9"],
            ],
            "binary32_short_apart": [
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f4000p+1", "-0x0.0p+0"],
                ["-0x1.6f0000p-9", "-0x1.1ec000p-9", "0x1.620000p-2", "0x1.7f8000p+1", "-0x1.6f0000p-9"],
            ],
            "binary16_fused_flushed": [
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f4000p+1", "-0x0.0p+0"],
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f8000p+1", "-0x0.0p+0"],
            ],
            "rounded_once": [
                ["-0x1.4981a6p-22", "-0x1.2d3680p-14", "0x1.62075ep-2", "0x1.7f7b4cp+1", "-0x1.4981a6p-22"],
                ["-0x1.d69daap-26", "-0x1.288284p-15", "0x1.6202dap-2", "0x1.7f88d0p+1", "-0x1.d69daap-26"],
            ],
            "binary32_fused_polynomials": [
                ["-0x1.533334p-22", "-0x1.2d343ep-14", "0x1.62075ep-2", "0x1.7f7b4cp+1", "-0x1.533334p-22"],
                ["-0x0.0p+0", "-0x1.26fe62p-15", "0x1.6202dap-2", "0x1.7f88d0p+1", "-0x0.0p+0"],
            ],
            "binary16_estimated_reciprocals": [
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f8000p+1", "-0x0.0p+0"],
                ["-0x0.0p+0", "-0x0.0p+0", "0x1.620000p-2", "0x1.7f8000p+1", "-0x0.0p+0"],
            ],
            "binary32_fused_polynomials_joined": [
                ["-0x1.533334p-22", "-0x1.2d343ep-14", "0x1.62075ep-2", "0x1.7f7b4cp+1", "-0x1.533334p-22"],
                ["-0x0.0p+0", "-0x1.291056p-15", "0x1.6202dap-2", "0x1.7f88d0p+1", "-0x0.0p+0"],
            ],
        },
    ),
    # of 1, 0.5, -3 and 0.1: 0.4923 and so on; 0.3919, 0.3052, 0.0530 and 0.2499 with beta 1/2; -0.7087 and so on
    "real_softmax": (
        _real_softmax,
        {
            "binary32_fused_16_lanes": [
                ["0x1.9d2732p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbap-2", "0x1.27714ep-7", "0x1.99e388p-3"],
                ["0x1.6454e6p-13"],
            ],
            "binary32_fused_4_lanes": [
                ["0x1.9d2730p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38cp-3"],
                ["0x1.6454eap-13"],
            ],
            "binary32_fused_8_lanes": [
                ["0x1.9d2732p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbap-2", "0x1.27714ep-7", "0x1.99e388p-3"],
                ["0x1.6454e4p-13"],
            ],
            "binary32_rational_lanes_4": [
                ["0x1.9d2732p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.914a7ep-2", "0x1.388696p-2", "0x1.b2787cp-5", "0x1.ffbfb4p-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "binary32_fused_rational_lanes_4": [
                ["0x1.9d2734p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.914a80p-2", "0x1.388698p-2", "0x1.b2787ep-5", "0x1.ffbfb8p-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "binary32_short_8_lanes": [
                ["0x1.9cc000p-13"],
                ["0x1.f80000p-2", "0x1.324000p-2", "0x1.27c000p-7", "0x1.990000p-3"],
                ["0x1.640000p-13"],
            ],
            "binary16_fused_8_lanes": [
                ["0x1.9cc000p-13"],
                ["0x1.f80000p-2", "0x1.324000p-2", "0x1.27c000p-7", "0x1.990000p-3"],
                ["0x1.63c000p-13"],
            ],
            "binary32_in_order": [
                ["0x1.9d272ep-13"],
                ["0x1.f814f8p-2", "0x1.31bdbap-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.914a7ep-2", "0x1.388696p-2", "0x1.b2787cp-5", "0x1.ffbfb4p-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "rounded_once": [
                ["0x1.9d2732p-13"],
                ["0x1.f814f6p-2", "0x1.31bdbap-2", "0x1.277150p-7", "0x1.99e388p-3"],
                ["0x1.f814f6p-2", "0x1.31bdbap-2", "0x1.277150p-7", "0x1.99e388p-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "binary64_in_pairs": [
                ["0x1.9d2731c80baaep-13"],
                ["0x1.f814f6df90187p-2", "0x1.31bdba34343acp-2", "0x1.27714f9ae94e1p-7", "0x1.99e388dec8c49p-3"],
                ["0x1.f814f6df90187p-2", "0x1.31bdba34343acp-2", "0x1.27714f9ae94e1p-7", "0x1.99e388dec8c49p-3"],
                ["-0x1.6adf0f7d7f1ccp-1", "-0x1.356f87bebf8e6p+0", "-0x1.2d5be1efafe3ap+2", "-0x1.9bd5ee1ebf8e6p+0"],
                ["0x1.fffe729c35dd0p-1", "0x1.8d63ca2309910p-17"],
            ],
            "binary64_in_joined_pairs": [
                ["0x1.9d2731c80baaep-13"],
                ["0x1.f814f6df90187p-2", "0x1.31bdba34343acp-2", "0x1.27714f9ae94e1p-7", "0x1.99e388dec8c49p-3"],
                ["0x1.f814f6df90187p-2", "0x1.31bdba34343acp-2", "0x1.27714f9ae94e1p-7", "0x1.99e388dec8c49p-3"],
                ["-0x1.6adf0f7d7f1ccp-1", "-0x1.356f87bebf8e6p+0", "-0x1.2d5be1efafe3ap+2", "-0x1.9bd5ee1ebf8e6p+0"],
                ["0x1.fffe729c35dd0p-1", "0x1.8d63ca2309911p-17"],
            ],
            "binary32_polynomial_8_lanes": [
                ["0x1.9d2734p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "binary32_polynomial_4_lanes": [
                ["0x1.9d2730p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
            "binary32_polynomial_16_lanes": [
                ["0x1.9d2732p-13"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["0x1.f814f8p-2", "0x1.31bdbcp-2", "0x1.277150p-7", "0x1.99e38ap-3"],
                ["-0x1.6adf10p-1", "-0x1.356f88p+0", "-0x1.2d5be2p+2", "-0x1.9bd5eep+0"],
            ],
        },
    ),
    "gate": (
        _gate,
        {
            "s16_polynomial_newton": [
                [16384, 16384, 16383, 23952, 8815, 32756, 11],
                [0, 8, -8, 24964, -24964, 32767, -32767],
            ]
        },
    ),
}


@pytest.mark.parametrize("slot", CASES)
def test_literal_answers(slot: str) -> None:
    ask, answers = CASES[slot]
    assert {name: ask(rule) for name, rule in rules(slot).items()} == answers


@pytest.mark.parametrize("slot", CASES)
def test_every_pair_of_rules_is_told_apart(slot: str) -> None:
    _, answers = CASES[slot]
    assert set(answers) == set(rules(slot)), "a rule without a shipped case"
    for one, two in itertools.combinations(answers, 2):
        assert answers[one] != answers[two], f"{one} and {two} answer alike"


@pytest.mark.parametrize(
    ("scale", "shift", "prepared"), [(2.0**-12, 0, (3, 0)), (2.0**-11, 1, (6, 0)), (1.0005 * 2**-12, 1, (3, 0))]
)
def test_sigmoid_takes_powers_of_two_without_rescaling(scale: float, shift: int, prepared: tuple[int, int]) -> None:
    assert rules("sigmoid")["s16_table_256_linear"].prepare(scale, shift) == prepared  # type: ignore[attr-defined]


@pytest.mark.parametrize("scale", [5.34, 1e-14])
def test_sigmoid_refuses_scales_that_leave_the_register(scale: float) -> None:
    with pytest.raises(OverflowError):
        rules("sigmoid")["s16_table_256_linear"].prepare(scale, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("output_scale", [1e4, 1e-20])
def test_inverse_root_refuses_undefined_shifts(output_scale: float) -> None:
    with pytest.raises(OverflowError):
        rules("inverse_root")["q31_newton_away"](np.array([1]), 1.0, output_scale, 0, -128, 127)  # type: ignore[operator]
