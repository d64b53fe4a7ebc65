"""Mappings of quantized operators but layers: pools, activations, sums, products, concatenations, normalizations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from .base import Mappers, Source
from .layers import product_range, range_of
from .quantized import calibrated
from .windows import pool

_OUTPUT, _ENDS = "_output", ("_min_output", "_max_output")


def _passed(source: Source, output: int, low: int, high: int) -> None:
    """The output, with the range of the operand at `low` and `high`."""
    source.ranges(low, high)
    source.give(output, source.copy(low, _ENDS[0]), source.copy(high, _ENDS[1]))


def _given_ends(source: Source) -> dict[str, Attribute]:
    """The calibrated range of the result."""
    if not calibrated(source):
        return {"calibrated": False, "minimum": 0.0, "maximum": 0.0}
    low, high = (float(source.real(f"{end}_calib_range")) for end in ("min", "max"))
    return {"calibrated": True, "minimum": low, "maximum": high}


def _constants(source: Source, ends: dict[str, Attribute]) -> list[int]:
    return [source.end(ends[name], role) for name, role in (("minimum", "min_output"), ("maximum", "max_output"))]


def _pooling(source: Source) -> None:
    source.expect(3)
    kernel = source.integers("kernel")
    if len(kernel) not in (2, 3):
        raise source.unsupported("BT-MXNET-POOL", f"kernel {list(kernel)}: quantized pools have 2 or 3 spatial axes")
    source.text("layout", "None", ("None", "NCHW") if len(kernel) == 2 else ("None", "NCDHW"))
    dtype = source.type(0, "s8")
    source.expects(0, (-1, -1, *(-1 for _ in kernel)))
    _passed(source, pool(source, dtype, kernel), 1, 2)


def _act(source: Source) -> None:
    """The runtime clears what is below 0 in s8; it takes bytes of u8 for s8."""
    source.expect(3)
    source.text("act_type", "", ("relu",))
    dtype = source.type(0, "s8")
    if dtype != "s8":
        raise source.unsupported(
            "BT-MXNET-TYPE", f"the activation of {dtype} data is not defined: the runtime relabels its bytes as int8"
        )
    zero = source.builder.constant(np.zeros((), np.int8), f"{source.label}_zero")
    (output,) = source.emit("clip", [source.inputs[0], zero, None], [dtype], [_OUTPUT])
    source.keeps_shape(output, 0)
    _passed(source, output, 1, 2)


def _flatten(source: Source) -> None:
    source.expect(3)
    (output,) = source.emit("flatten", [source.inputs[0]], [source.type(0, "s8")], [_OUTPUT], {"axis": 1})
    _passed(source, output, 1, 2)


def _embedding(source: Source) -> None:
    """Positions without their fraction, limited to the rows of the table."""
    source.expect(4)
    rows, width = source.integer("input_dim"), source.integer("output_dim")
    source.ignore("dtype", "sparse_grad")
    if rows < 1 or width < 1:
        raise source.invalid("BT-MXNET-ATTRIBUTE", f"a table of {rows} x {width}")
    found = source.known(1)
    if found is not None and found != (rows, width):
        raise source.invalid("BT-MXNET-SHAPE", f"the table has shape {list(found)}, expected [{rows}, {width}]")
    source.expects(1, (rows, width))
    weight = source.type(1, "s8")
    positions = source.inputs[0]
    if source.type(0) != "s64":
        (positions,) = source.emit("convert", [positions], ["s64"], ["_positions"])
    ends = [source.builder.constant(np.int64(end), f"{source.label}_{role}") for end, role in _span(rows)]
    (positions,) = source.emit("clip", [positions, *ends], ["s64"], ["_rows"])
    attributes: dict[str, Attribute] = {"axis": 0, "batch_dims": 0}
    (output,) = source.emit("gather", [source.inputs[1], positions], [weight], [_OUTPUT], attributes)
    _passed(source, output, 2, 3)


def _span(rows: int) -> Sequence[tuple[int, str]]:
    return ((0, "first"), (rows - 1, "last"))


def _concat(source: Source) -> None:
    count = source.integer("num_args", len(source.inputs) // 3)
    source.expect(3 * count)
    axis = source.integer("dim", 1)
    if not count or axis < 0:
        raise source.unsupported(
            "BT-MXNET-ATTRIBUTE", f"{count} tensors along axis {axis}: the runtime takes axes from the front alone"
        )
    types = [source.type(position, "s8") for position in range(count)]
    ends = source.ranges(*range(count, 3 * count))
    dtype = "s8" if "s8" in types else types[0]
    attributes: dict[str, Attribute] = {"axis": axis, "given": "ranges"}
    (output,) = source.emit("concatenation", source.inputs, [dtype], [_OUTPUT], attributes)
    source.give(output, *range_of("union", source, ends, _ENDS))


def _operands(source: Source) -> list[str]:
    """Types of a and b; a, b, and the ends of both ranges are operands."""
    source.expect(6)
    source.ranges(2, 3, 4, 5)
    return [source.type(position, "s8") for position in (0, 1)]


def _with_ranges(source: Source) -> tuple[int | None, ...]:
    """Ranges stand behind the places of scales and zero points."""
    return (*source.inputs[:2], *(None,) * 6, *source.inputs[2:])


def _add(source: Source) -> None:
    types, ends = _operands(source), _given_ends(source)
    dtype = "s32" if not ends["calibrated"] else types[0] if types[0] == types[1] else "s8"
    (output,) = source.emit("add", _with_ranges(source), [dtype], [_OUTPUT], ends)
    source.keeps_shape(output, 0)
    if ends["calibrated"]:
        source.give(output, *_constants(source, ends))
    else:
        source.give(output, *range_of("sum", source, source.inputs[2:], _ENDS))


def _multiply(source: Source) -> None:
    _operands(source)
    ends = _given_ends(source)
    if source.flag("enable_float_output"):
        ends = {"calibrated": False, "minimum": 0.0, "maximum": 0.0}
        (output,) = source.emit("mul", _with_ranges(source), ["f32"], [_OUTPUT], ends)
        source.keeps_shape(output, 0)
        source.give(output)
        return
    dtype = "s8" if ends["calibrated"] else "s32"
    (output,) = source.emit("mul", _with_ranges(source), [dtype], [_OUTPUT], ends)
    source.keeps_shape(output, 0)
    if ends["calibrated"]:
        source.give(output, *_constants(source, ends))
    else:
        source.give(output, *product_range(source, source.inputs[2:], (127, 127), _ENDS))


def _batch_norm(source: Source) -> None:
    """fix_gamma has no effect, nor has the axis: channels are axis 1, and another one is refused."""
    source.expect(7)
    source.ranges(5, 6)
    source.ignore("cudnn_off", "fix_gamma", "momentum", "use_global_stats")
    if source.integer("axis", 1) != 1 or source.flag("output_mean_var"):
        raise source.unsupported("BT-MXNET-ATTRIBUTE", "channels must be axis 1, and the only result the tensor")
    ends = _given_ends(source)
    if not ends["calibrated"]:
        raise source.invalid("BT-MXNET-ATTRIBUTE", "needs min_calib_range and max_calib_range", "calibrate the model")
    for position in range(1, 5):
        source.type(position)
    source.type(0, "s8")
    known = source.known(1)
    if known is not None and len(known) == 1:
        source.expects(0, (-1, known[0], -1, -1))
    attributes = {**ends, "epsilon": source.wide("eps", 1e-3)}
    (output,) = source.emit("batch_normalization", source.inputs, ["s8"], [_OUTPUT], attributes)
    source.keeps_shape(output, 0)
    source.give(output, *_constants(source, ends))


MAPPERS: Mappers = {
    "_contrib_quantized_act": _act,
    "_contrib_quantized_batch_norm": _batch_norm,
    "_contrib_quantized_concat": _concat,
    "_contrib_quantized_elemwise_add": _add,
    "_contrib_quantized_elemwise_mul": _multiply,
    "_contrib_quantized_embedding": _embedding,
    "_contrib_quantized_flatten": _flatten,
    "_contrib_quantized_pooling": _pooling,
}
