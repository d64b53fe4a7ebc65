"""Element types under the names used everywhere in bittrue (``s8``, ``u8``, ``s32``, ``f32``, ...)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..records import dataclass


@dataclass(frozen=True)
class DataType:
    """One element type.

    Attributes:
        name: short name, for example ``"s8"``.
        bits: storage bits of one element inside a model file (0: no fixed size).
        array: what NumPy calls it; the name of an `ml_dtypes` type as text. Sub-byte integers are widened to one byte
            per element, floats narrower than a byte are so in files, too (importers unpack them).
        title: the everyday name, for example ``"int8"``.
    """

    name: str
    bits: int
    array: Any
    title: str

    @cached_property
    def numpy(self) -> np.dtype:
        """dtype of arrays at run time."""
        if not isinstance(self.array, str):
            return np.dtype(self.array)
        # Few models need these types, and importing them takes milliseconds and megabytes.
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.array))

    @property
    def is_integer(self) -> bool:
        return self.name[0] in "su" and self.name[1:].isdigit()

    @property
    def is_float(self) -> bool:
        return self.name[0] == "f" or self.name == "bf16"

    @property
    def is_packed(self) -> bool:
        """Several elements share one byte in the file."""
        return 0 < self.bits < 8

    @property
    def minimum(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.name[0] == "s" else 0

    @property
    def maximum(self) -> int:
        """Largest value of an integer type."""
        return (1 << (self.bits - 1)) - 1 if self.name[0] == "s" else (1 << self.bits) - 1


def _table(*rows: tuple[str, int, Any, str]) -> dict[str, DataType]:
    return {name: DataType(name, bits, array, title) for name, bits, array, title in rows}


DATA_TYPES: dict[str, DataType] = _table(
    ("s2", 2, np.int8, "int2"),
    ("s4", 4, np.int8, "int4"),
    ("s8", 8, np.int8, "int8"),
    ("s16", 16, np.int16, "int16"),
    ("s32", 32, np.int32, "int32"),
    ("s64", 64, np.int64, "int64"),
    ("u2", 2, np.uint8, "uint2"),
    ("u4", 4, np.uint8, "uint4"),
    ("u8", 8, np.uint8, "uint8"),
    ("u16", 16, np.uint16, "uint16"),
    ("u32", 32, np.uint32, "uint32"),
    ("u64", 64, np.uint64, "uint64"),
    ("f16", 16, np.float16, "float16"),
    ("bf16", 16, "bfloat16", "bfloat16"),
    ("f32", 32, np.float32, "float32"),
    ("f64", 64, np.float64, "float64"),
    ("f8e4m3fn", 8, "float8_e4m3fn", "float8_e4m3fn"),
    ("f8e4m3fnuz", 8, "float8_e4m3fnuz", "float8_e4m3fnuz"),
    ("f8e5m2", 8, "float8_e5m2", "float8_e5m2"),
    ("f8e5m2fnuz", 8, "float8_e5m2fnuz", "float8_e5m2fnuz"),
    # A power of two (or NaN): scales only.
    ("f8e8m0", 8, "float8_e8m0fnu", "float8_e8m0"),
    ("f6e2m3", 8, "float6_e2m3fn", "float6_e2m3"),
    ("f6e3m2", 8, "float6_e3m2fn", "float6_e3m2"),
    ("f4e2m1", 8, "float4_e2m1fn", "float4_e2m1"),
    ("c64", 64, np.complex64, "complex64"),
    ("c128", 128, np.complex128, "complex128"),
    ("bool", 8, np.bool_, "bool"),
    ("string", 0, np.object_, "string"),
    # The number of a resource; see `Source.resources` of the plan.
    ("resource", 0, np.int32, "resource"),
    ("variant", 0, np.object_, "variant"),
)


def data_type(name: str) -> DataType:
    """The type called `name` (short or everyday name, or that of its array). Raises KeyError for an unknown name."""
    found = DATA_TYPES.get(name) or next((t for t in DATA_TYPES.values() if name in (t.title, t.array)), None)
    if found is None:
        raise KeyError(name)
    return found
