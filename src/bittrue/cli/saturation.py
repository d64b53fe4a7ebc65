"""`bittrue inspect --saturation`: layers whose results depend on how a processor adds up u8 by s8 products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import RenderableType

from .. import api
from ..check.saturation import S16_MAX, S16_MIN, MixedLayer, find_saturation
from .common import console
from .plain import say_json
from .tables import Column, table


def show_saturation(loaded: api.Model, shapes: Mapping[str, Sequence[int] | int], as_json: bool) -> None:
    """Plans the model as the runtime of its format does, and prints what `find_saturation` finds."""
    plan = loaded.prepare(executor="reference", shapes=shapes).plan
    layers = find_saturation(plan)
    notes = [f"what follows tensor '{plan.tensors[i].name}' is planned while running" for i in plan.outputs[:1]]
    notes = notes if plan.later else []
    if as_json:
        listed = [{**asdict(layer), "can_saturate": layer.can_saturate} for layer in layers]
        say_json({"numerics": plan.numerics, "layers": listed, "notes": notes})
        return
    out = console()
    unsafe = [layer for layer in layers if layer.can_saturate]
    out.print(f"{len(layers)} layers of u8 by s8 products, {len(unsafe)} of them can saturate")
    for note in notes:
        out.print(f"note: {note}")
    if not unsafe:
        return
    out.print(_table(unsafe, out.width))
    out.print(
        f"Processors with AVX2 and without VNNI clamp sums of two products to [{S16_MIN}, {S16_MAX}]; numerics"
        " 'onnxruntime-avx2' shows what that gives. Weights within [-64, 63] never saturate (reduce_range).",
    )


def _table(layers: Sequence[MixedLayer], width: int) -> RenderableType:
    columns = [Column("node", "text"), Column("output", "name"), Column("input", least=3), Column("weights", least=4)]
    columns += [Column("pairs", least=2), Column("channels", least=1), Column("worst pair", "text")]
    columns += [Column("sum", right=True), Column("loss", right=True)]
    rows = []
    for layer in layers:
        start = (f"{layer.node} {layer.source}", layer.output, f"{layer.low} to {layer.high}")
        pair = layer.worst
        if pair is None:
            rows.append((*start, "", "", "", "known while running", "", ""))
            continue
        where = f"channel {pair.channel}, products {pair.places[0]} and {pair.places[1]}"
        rows.append(
            (
                *start,
                f"{layer.smallest} to {layer.largest}",
                f"{layer.saturable_pairs:,} of {layer.pairs:,}",
                f"{layer.saturable_channels:,} of {layer.channels:,}",
                f"{where}: {pair.quantized[0]}, {pair.quantized[1]}",
                str(pair.total),
                f"up to {layer.loss:,}",
            )
        )
    return table(columns, rows, width, "layers that can saturate")
