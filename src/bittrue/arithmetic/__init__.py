"""Numbers in, numbers out: the integer and single-operation float arithmetic that everything above is built from.

Import from the submodules: ``fixed_point`` (wrapping, saturating, Q31 products, division by powers of two per tie
rule), ``multiplier`` (real multiplier to integer pair), ``transcendental`` (exponential, reciprocal, logarithm in fixed
point), ``floats`` (rounding and conversion of floats), ``tables`` (look-up tables built in float), ``matmul`` (exact
integer products through a float library) and ``exact``, a slow oracle that shares no code with the others.
"""

from typing import TYPE_CHECKING

from ..deferred import deferred

if not TYPE_CHECKING:
    # Functions of real numbers and what is made of them, which rules name beside those of integers.
    __getattr__ = deferred(__name__, ("elementary", "steps", "tables", "transcendental"))
