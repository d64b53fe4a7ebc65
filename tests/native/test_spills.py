"""The sums of a tile stay in registers: no hot loop of a matrix product or a depthwise convolution uses the stack.

The loops are those of the cores' test program, which has the cores of the module and, other than it, names.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).parent))
from test_cores import native, program

import check_spills

# Constructors, and cores that only add up or measure.
NOT_HOT = re.compile(r"(\w+)::\1\(|row_terms|peak_multiply_adds")
# Stack accesses that are there and cost what has been measured with them: function -> how many in one loop.
KNOWN = {
    # One register too few for some forms of requantization, once per two pixels.
    "avx512vnni::(anonymous namespace)::run_group<": 3,
    # The limits of bytes, operands of two of the loop's instructions.
    "avx2::(anonymous namespace)::VectorDepthwise::shared_row<": 2,
    # A mask that one register too few leaves in memory: operands of two of the loop's instructions.
    "avx2::ByteTiles<bittrue::avx2::(anonymous namespace)::Bytes>::tile<2, 3>": 2,
}

X86 = """
0000000000001000 <multiply>:
    1000:\tvpmaddwd %ymm0,%ymm1,%ymm2
    1004:\tvpaddd %ymm2,%ymm3,%ymm3
    1008:\t{SPILL}
    1010:\tjne    1000 <multiply>
    1012:\tvmovdqa %ymm3,0x20(%rsp)
    1018:\tret
"""
ARM = """
0000000000001000 <multiply>:
    1000:\tsdot\tv4.4s, v20.16b, v0.4b[0]
    1004:\t{SPILL}
    1008:\tb.ne\t1000 <multiply>  // b.any
    100c:\tret
"""


@pytest.mark.parametrize(
    ("text", "inside", "spills"),
    [
        (X86, "vmovdqa %ymm3,0x20(%rsp)", 1),
        (X86, "vpaddd -0x40(%rbp),%ymm4,%ymm4", 1),
        (X86, "vpaddd 0x40(%rax),%ymm4,%ymm4", 0),
        (X86, "mov    0x20(%rsp),%rax", 0),
        (ARM, "ldp\tq9, q8, [sp, #208]", 1),
        (ARM, "ldr\tq1, [x1], #16", 0),
        (ARM, "ldr\tx1, [sp, #8]", 0),
    ],
)
def test_spills_are_seen(text: str, inside: str, spills: int) -> None:
    (function,) = check_spills.functions(text.replace("{SPILL}", inside).splitlines())
    (loop,) = check_spills.hot_loops(*function)
    assert (loop.multiplies, len(loop.spills)) == (1, spills)


def test_hot_loops_do_not_touch_the_stack() -> None:
    if shutil.which("objdump") is None:
        pytest.skip("objdump (binutils) is not installed")
    if set(native.compiled_isas()) <= {"portable"}:
        pytest.skip("this build has the portable set only, which has no intrinsics")
    loops = [loop for loop in check_spills.check(str(program())) if not NOT_HOT.search(loop.function)]
    assert loops, "no hot loop was found: the instructions that make one must have changed"
    allowed = {loop.first: sum(n for name, n in KNOWN.items() if name in loop.function) for loop in loops}
    bad = [loop for loop in loops if len(loop.spills) > allowed[loop.first]]
    assert not bad, "\n".join(f"{loop.first:x} {loop.function}: {loop.spills[:3]}" for loop in bad)
