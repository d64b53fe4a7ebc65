#!/bin/sh
# Simulates DESIGN.v on every exported case: ./run.sh [DESIGN [VECTORS]]
# VECTORS is a folder that `bittrue vectors --format hex --accumulators` wrote; without it, bittrue writes the cases of
# CONV_2D that are aimed at ties. Needs Icarus Verilog (Debian: iverilog).
# Exit status: 0 all codes are equal, 1 some differ, 3 it could not run.
here=$(cd "$(dirname "$0")" && pwd)
design=${1:-requantize}
vectors=${2:-}
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
command -v iverilog >/dev/null || { echo "iverilog is not installed" >&2; exit 3; }
if [ -z "$vectors" ]; then
    vectors=$work/vectors
    ${PYTHON:-python3} -m bittrue vectors CONV_2D --aim ties --format hex --accumulators -o "$vectors" >/dev/null || exit 3
fi
[ -f "$here/$design.v" ] || { echo "there is no $design.v" >&2; exit 3; }
simulated=0 failed=0
# A folder per operator and types; those whose layers have accumulators and integer multipliers are for this unit.
find "$vectors/hex" -name accumulator-0.hex 2>/dev/null | sort >"$work/found"
while read -r file; do
    folder=$(dirname "$file")
    [ -f "$folder/multiplier.hex" ] || continue
    iverilog -g2005 -I "$folder" -o "$work/simulation" "$here/testbench.v" "$here/$design.v" || exit 3
    vvp -n "$work/simulation" "+vectors=$folder" >"$work/log" || exit 3
    echo "${folder#"$vectors"/hex/}"
    sed 's/^/  /' "$work/log"
    simulated=$((simulated + 1))
    grep -q ' cases passed, 0 failed$' "$work/log" || failed=1
done <"$work/found"
if [ "$simulated" -eq 0 ]; then
    echo "no folder below $vectors/hex has accumulator-0.hex and multiplier.hex" >&2
    exit 3
fi
[ "$failed" -eq 0 ] && echo "$design: PASS" || { echo "$design: FAIL"; exit 1; }
