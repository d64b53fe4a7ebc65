"""Rows of `tvm-qnn`: operators on tensors with one scale and zero point, as graphs of other formats have them.

What the system computes for them is what its frontend for such files makes of them: operators of relay.qnn, with real
functions between dequantize and quantize where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..litert.convolution import DEPTHWISE, PLANES
from ..litert.movement import DIMENSIONS, NO_TABLE, ONE_VALUE
from ..table import Row
from .variants import BEYOND_32_BITS, READ, UNDEFINED, Variant, variants

_FRONTEND = f"{READ}, relay/frontend/tflite.py and src/relay/qnn/op"
_RUN = "run: TVM 0.17.dev0 (LLVM 10, x86-64), relay/frontend/tflite.py"
_MOVES = f"{READ}, values are moved only"
_CLAMP = ("activation_is_clamp",)
_SAME = ("same_parameters",)
_RANGE = {"activation_range": "binary64_quotient_even"}
_LEFT = "multipliers of 2^31 and more are refused: their product leaves 64 bits"
_NARROWED = "sums of 64 bits are narrowed to 32 before integer multipliers"
_PER_UNIT = "weights with a scale per unit are taken, as qnn.dense takes them; the frontend for files refuses them"
_LOOSE = "scales must be equal; the frontend takes those that differ by less than 1e-5 for equal"
_FUNCTIONS = (
    "the system calls the C library of its machine and compiles what is around it, so last bits of real numbers depend "
    "on both; here they are those of glibc for x86-64 without contraction, read and not run"
)
_STATED = "the frontend does not read the stated shape: it makes the one that strides and padding give (run)"
_NAN = "whether padding behind a NaN replaces it is what the system's compiler makes of a window; here it stays"
_PLACES = "places have 32 bits there"
_BYTES = ("s8", "u8")
_CODES = (*_BYTES, "s16")
# Calls know no scales, files must have equal ones.
_STORED = (("attribute_is", "stored", True),)
_COMPARED = (*_CODES, "s32", "f32")


def _layer(
    own: Variant,
    operator: str,
    types: str,
    requires: tuple[tuple[object, ...], ...] = (_CLAMP,),
    activation_range: str = "binary64_quotient_even",
    limit: str = "",
    when: tuple[tuple[object, ...], ...] = (),
) -> tuple[Row, ...]:
    """A layer with weights: the exact sum, the binary32 product of both scales, one requantization, a clamp."""

    def make(variant: Variant, per_channel: bool) -> Row:
        # Real numbers are made of whole sums, integers of their lower half.
        whole = types.endswith("s16") and variant.real
        return Row(
            operator,
            (types,),
            {
                "accumulate": "s64" if whole else "s32_wrap",
                "scale_form": "binary32_product",
                **variant.rescaling(per_channel),
                "activation_range": activation_range,
            },
            _FRONTEND,
            when=(*when, ("input_per_axis", 1)) if per_channel else when,
            requires=requires,
            limit="; ".join(text for text in (UNDEFINED if variant.real else _LEFT, limit) if text),
        )

    return (*variants(own, lambda v: make(v, True)), *variants(own, lambda v: make(v, False)))


def _each(own: Variant, make: Callable[[Mapping[str, str], str], Row]) -> tuple[Row, ...]:
    """A row for every way to requantize a tensor with one scale: `make(its rules, their limit)`."""
    return tuple(
        variants(own, lambda v: make({"scale_form": "binary64", **v.rescaling()}, UNDEFINED if v.real else _LEFT))
    )


def _layers(own: Variant) -> tuple[Row, ...]:
    zero = ("input_zero_points_are_zero", 2)
    return (
        *_layer(own, "conv", "s8 s8 s32|- -> s8", when=PLANES),
        *_layer(own, "conv", "u8 u8|s8 s32|- -> u8", when=PLANES),
        *_layer(own, "conv", "s16 s8 s64|- -> s16", limit=_NARROWED, when=PLANES),
        *_layer(own, "conv", "s8 s8 s32|- -> s8", (_CLAMP, zero), when=DEPTHWISE),
        *_layer(own, "conv", "u8 u8|s8 s32|- -> u8", (_CLAMP, zero), when=DEPTHWISE),
        *_layer(own, "conv", "s16 s8 s64|- -> s16", (_CLAMP, zero), limit=_NARROWED, when=DEPTHWISE),
        *_layer(own, "fully_connected", "s8 s8 s32|- -> s8", limit=_PER_UNIT),
        *_layer(own, "fully_connected", "u8 u8|s8 s32|- -> u8", limit=_PER_UNIT),
        *_layer(own, "fully_connected", "s16 s8 s64|- -> s16", limit=f"{_NARROWED}; {_PER_UNIT}"),
        *_layer(own, "conv_transpose", "s8 s8 s32|- - - - - - - s32 -> s8", (), "type_alone", limit=_STATED),
        *_layer(own, "conv_transpose", "u8 u8 s32|- - - - - - - s32 -> u8", (), "type_alone", limit=_STATED),
        *_layer(
            own,
            "conv_transpose",
            "s16 s8 s64|- - - - - - - s32 -> s16",
            (),
            "type_alone",
            limit=f"{_NARROWED}; {_STATED}",
        ),
    )


def _elementwise(own: Variant) -> tuple[Row, ...]:
    return (
        *(
            row
            for operator in ("add", "sub")
            for row in _each(
                own,
                lambda rules, limit, operator=operator: Row(  # type: ignore[misc]
                    operator,
                    ("T T -> T",),
                    {**rules, **_RANGE},
                    _FRONTEND,
                    where=_CODES,
                    requires=(_CLAMP,),
                    limit=limit,
                ),
            )
        ),
        *_each(
            own,
            lambda rules, limit: Row(
                "mul",
                ("T T -> T",),
                {"product": "exact_s32", **rules, "scale_form": "binary32_product", **_RANGE},
                _FRONTEND,
                where=_CODES,
                requires=(_CLAMP,),
                limit=f"{limit}; of 16 bits, {BEYOND_32_BITS}",
            ),
        ),
        *(
            row
            for operator in ("maximum", "minimum")
            for row in (
                Row(operator, ("T T -> T",), {}, f"{READ}, stored values", where=(*_CODES, "s32"), when=_STORED),
                Row(operator, ("T T -> T",), {}, _FRONTEND, where=_CODES, requires=(_SAME,), limit=_LOOSE),
            )
        ),
        *(
            Row(
                operator,
                ("T T -> bool",),
                {"compare": "raw"},
                f"{_FRONTEND}: quantized values, scales ignored",
                where=_COMPARED,
            )
            for operator in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
        ),
        *_each(
            own,
            lambda rules, limit: Row(
                "relu",
                ("T -> T",),
                {**rules, "input_range": "binary64_quotient_even"},
                _FRONTEND,
                where=_CODES,
                when=(("attribute_is", "activation", "relu", "relu6", "relu_n1_to_1"),),
                limit=f"{limit}; inputs of 2^30 steps of the output and more are refused, as they may wrap",
            ),
        ),
    )


def _functions() -> tuple[Row, ...]:
    return (
        *(
            Row(
                operator,
                ("T -> T",),
                {
                    "table": "binary32_reciprocal_256_away",
                    **({"table_function": function} if function else {}),
                },
                _FRONTEND,
                where=_BYTES,
                limit=_FUNCTIONS,
            )
            for operator, function in (
                ("logistic", ""),
                ("tanh", "binary32_exponentials"),
                ("hard_swish", "binary32_times_sixth"),
                ("leaky_relu", ""),
            )
        ),
        Row("softmax", ("T -> T",), {"softmax": "binary32_reals_away"}, _FRONTEND, where=_CODES, limit=_FUNCTIONS),
        Row("softmax", ("f32 -> f32",), {"real_softmax": "binary32_in_order"}, _FRONTEND, limit=_FUNCTIONS),
        *(
            Row(operator, ("f32 -> f32",), {"real_function": "binary32_of_exponentials"}, _FRONTEND, limit=_FUNCTIONS)
            for operator in ("logistic", "tanh")
        ),
        Row("hard_swish", ("f32 -> f32",), {"real_function": "binary32_times_sixth"}, _FRONTEND),
        *(
            Row(operator, ("f32 -> f32",), {"real_function": "binary32_elementary"}, _RUN, limit=_FUNCTIONS)
            for operator in ("exp", "log")
        ),
        *(Row(operator, ("f32 -> f32",), {}, _RUN) for operator in ("abs", "rsqrt", "sqrt")),
        Row("log_softmax", ("f32 -> f32",), {"real_softmax": "binary32_in_order"}, _RUN, limit=_FUNCTIONS),
        Row("relu", ("f32 -> f32",), {}, _FRONTEND),
        Row("leaky_relu", ("f32 -> f32",), {"slope": "scaled_unless_above_zero"}, _FRONTEND),
    )


def _reductions(own: Variant) -> tuple[Row, ...]:
    return (
        Row(
            "average_pool",
            ("T -> T",),
            {"accumulate": "s32_wrap", "average": "integer_trunc", **_RANGE},
            f"{_FRONTEND}: fractions are dropped",
            where=_CODES,
            requires=(_CLAMP, _SAME),
            limit=_LOOSE,
        ),
        Row(
            "max_pool",
            ("T -> T",),
            _RANGE,
            _FRONTEND,
            where=(*_CODES, "u16", "s32"),
            requires=(_CLAMP, _SAME),
            limit=_LOOSE,
        ),
        Row("max_pool", ("f32 -> f32",), {"plain_range": "unlimited", "extreme": "last_in_vectors"}, _RUN, limit=_NAN),
        *_each(
            own,
            lambda rules, limit: Row(
                "mean",
                ("T s32 -> T",),
                {"accumulate": "s32_wrap", "mean": "integer_trunc", **rules},
                f"{_FRONTEND}: the average of quantized values, fractions dropped, is requantized",
                where=_CODES,
                limit=limit,
            ),
        ),
        *_each(
            own,
            lambda rules, limit: Row(
                "sum",
                ("T s32 -> T",),
                {"accumulate": "s32_wrap", "center": "s32_wrap", **rules},
                f"{_FRONTEND}: the zero point is taken off once, and not off every summand",
                where=_CODES,
                limit=limit,
            ),
        ),
        Row("mean", ("s32 s32 -> s32",), {"mean": "integer_trunc"}, f"{READ}, src/relay/op/tensor/reduce.cc"),
        Row("sum", ("s32 s32 -> s32",), {}, f"{READ}, src/relay/op/tensor/reduce.cc: modulo 2^32"),
        *(
            Row(operator, ("T s32 -> T",), {}, _FRONTEND, where=_CODES, requires=(("same_parameters", 0),))
            for operator in ("reduce_max", "reduce_min")
        ),
        Row("arg_max", ("T s32 -> s32|s64",), {"start": "before_first"}, _FRONTEND, where=_CODES, limit=_PLACES),
        Row(
            "resize_linear",
            ("f32 s32 -> f32",),
            {"interpolate": "binary32_ends"},
            f"{READ}, python/tvm/topi/image/resize.py",
            limit=_FUNCTIONS,
        ),
    )


def _movement(own: Variant) -> tuple[Row, ...]:
    moved = (
        ("slice", "T s32|s64 s32|s64 -> T"),
        ("strided_slice", "T s32 s32 s32 -> T"),
        ("split", "T -|s32|s64 s32 -> T..."),
        ("tile", "T s32|s64 -> T"),
        ("space_to_depth", "T -> T"),
        ("depth_to_space", "T -> T"),
        ("batch_to_space", "T s32 s32 -> T"),
        ("resize_nearest", "T s32 -> T"),
    )
    same: tuple[tuple[str, str, tuple[int, ...], tuple[tuple[object, ...], ...]], ...] = (
        ("pad", "T s32|s64 -> T", (0,), ONE_VALUE),
        ("pad", "T s32|s64 T -> T", (0, 2), ONE_VALUE),
        ("pack", "T... -> T", (), ()),
    )
    return (
        *_each(
            own,
            lambda rules, limit: Row(
                "concatenation", ("T... -> T",), dict(rules), _FRONTEND, where=_CODES, limit=limit
            ),
        ),
        Row("concatenation", ("T... -> T",), {"combine": "copy"}, _FRONTEND, where=("s32", "s64", "f32", "bool")),
        *(Row(operator, (types,), {}, _MOVES, where=(*_CODES, "s32", "f32")) for operator, types in moved),
        Row(
            "squeeze",
            ("T -> T",),
            {},
            _MOVES,
            where=(*_CODES, "s32", "f32"),
            limit="where no axes are named, the frontend leaves the shape alone; here it is squeezed",
        ),
        *(
            Row(
                operator,
                (types,),
                {},
                _MOVES,
                where=_CODES,
                when=when,
                requires=(("same_parameters", *positions),),
                limit=_LOOSE,
            )
            for operator, types, positions, when in same
        ),
        Row(
            "expand_dims",
            ("T s32|s64 -> T",),
            {},
            _MOVES,
            where=(*_CODES, "s32", "f32"),
            requires=(("one_element", 1),),
        ),
        # The frontend does not read batch_dims: it would gather for every batch from all of them.
        Row(
            "gather",
            ("T s32|s64 -> T",),
            {},
            _MOVES,
            where=(*_CODES, "s32", "f32"),
            when=(*NO_TABLE, ("attribute_is", "batch_dims", 0, None)),
        ),
        # The frontend fills borders with the quantized value 0.
        Row(
            "space_to_batch",
            ("T s32 s32 -> T",),
            {"zero_points": "ignored"},
            _MOVES,
            where=(*_CODES, "s32", "f32"),
        ),
        Row("split", ("T -> T...",), {}, _MOVES, where=(*_CODES, "s32", "f32")),
        Row("shape", ("* -> s32|s64",), {}, _MOVES, when=DIMENSIONS),
        Row("cast", ("s8|u8|s16|s32 -> s8|u8|s16|s32",), {}, f"{READ}, modulo the width of the type"),
    )


def rows(own: Variant) -> tuple[Row, ...]:
    """All of them."""
    return (*_layers(own), *_elementwise(own), *_functions(), *_reductions(own), *_movement(own))
