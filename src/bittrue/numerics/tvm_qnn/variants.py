"""How requantizations round and compute, and rows for every way that a node may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...records import dataclass, replace
from ..table import Row

ROUNDING = ("UPWARD", "TONEAREST")
COMPUTE = ("int64", "float32", "float64")
# What nodes say that leave the choice to the configuration: nothing.
_OPEN = (None,)

READ = "read: TVM v0.18.0"
RUN = "run: TVM v0.18.0 (LLVM 14, x86-64)"
UNDEFINED = (
    "real numbers beyond 32 bits are cast as x86 with SSE 4.1 does, which the system leaves undefined (without "
    "it, 8 bits may get 127 for -128); where processors fuse multiplications and additions, its compiler may round "
    "product and zero point once"
)
BEYOND_32_BITS = (
    "products that 32 bits do not hold wrap here; the system leaves them undefined, and its compiler takes a square "
    "for positive (run)"
)


@dataclass(frozen=True)
class Variant:
    """One configuration, for processors with SSE 4.2 or without SSE 4.1."""

    rounding: str
    compute_dtype: str
    sse: bool

    @property
    def real(self) -> bool:
        return self.compute_dtype != "int64"

    def rescaling(self, per_channel: bool = False) -> Mapping[str, str]:
        """Rules of the slots `rescale` and `store`."""
        if self.real:
            # Without SSE 4.1, TONEAREST adds 1/2 and cuts off: 0.49999997 gives 1.
            nearest = "zero_point_away_then_clamp" if self.sse else "zero_point_half_away_then_clamp"
            # With it, UPWARD adds the zero point and 1/2 to each other first.
            upward = "zero_point_plus_half_up_then_clamp" if self.sse else "zero_point_half_up_then_clamp"
            finish = upward if self.rounding == "UPWARD" else nearest
            return {"rescale": f"binary{self.compute_dtype[5:]}_multiply", "store": finish}
        upward = "q31_one_step_up_wrap" if per_channel else "q31_shift_or_one_step_up"
        return {
            "rescale": upward if self.rounding == "UPWARD" else "q31_one_step_away",
            "store": "zero_point_then_clamp",
        }

    def storing_apart(self) -> Mapping[str, str]:
        """The rule of the slot `store` for zero points that runs compute, where it is another one."""
        return {"store": "zero_point_half_up_then_clamp"} if self.real and self.rounding == "UPWARD" else {}

    def centering(self) -> Mapping[str, str]:
        """The rule of the slot `center`."""
        return {"center": f"binary{self.compute_dtype[5:]}" if self.real else "s32_wrap"}


def variants(own: Variant, make: Callable[[Variant], Row]) -> Iterator[Row]:
    """`make`'s row for every configuration that a node may name by `rounding` and `compute_dtype`; the table's own is
    the last one, and holds for all nodes that are left.
    """
    every = [replace(own, rounding=rounding, compute_dtype=compute) for rounding in ROUNDING for compute in COMPUTE]
    for variant in sorted(every, key=lambda v: v == own):
        row = make(variant)
        limit = row.limit or (UNDEFINED if variant.real else "")
        if variant == own:
            yield replace(row, limit=limit)
            continue
        asked = (
            ("attribute_is", "rounding", variant.rounding, *(_OPEN if variant.rounding == own.rounding else ())),
            (
                "attribute_is",
                "compute_dtype",
                variant.compute_dtype,
                *(_OPEN if variant.compute_dtype == own.compute_dtype else ()),
            ),
        )
        yield replace(row, limit=limit, when=(*row.when, *asked), on_request=True)
