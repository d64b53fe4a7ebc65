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
passed=0 failed=0
find "$vectors/hex" -name accumulator-0.hex | sort >"$work/cases"
while read -r file; do
    folder=$(dirname "$file")
    [ -f "$folder/multiplier-0.hex" ] || continue
    iverilog -g2005 -I "$folder" -o "$work/simulation" "$here/testbench.v" "$here/$design.v" || exit 3
    vvp -n "$work/simulation" "+case=$folder" >"$work/log" || exit 3
    echo "${folder#"$vectors"/hex/}: $(grep -E '^(PASS|FAIL)' "$work/log" || echo "FAIL without a result")"
    grep '^  ' "$work/log"
    if grep -q '^PASS' "$work/log"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <"$work/cases"
echo "$design: $passed cases passed, $failed failed"
[ $((passed + failed)) -gt 0 ] || exit 3
[ "$failed" -eq 0 ]
