#!/usr/bin/env bash
# Runs the test of all cores on the x86 processors that this machine is not, under emulation:
#   tools/test_x86_isas.sh [build folder] [options of bittrue_cores_test...]
# Needs (Debian names): cmake ninja-build qemu-user.
#
# What qemu's emulation (TCG) can do depends on its version: AVX2 and FMA need 7.2 or newer. No version has AVX-512 or
# AVX-VNNI: those sets run only on machines that have them, where they are tested natively, first thing below. What the
# emulated runs add is that dispatch finds the right sets, and that the portable set needs nothing but SSE2.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/x86_isas}
shift || true
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITTRUE_TESTS=ON -DBITTRUE_PYTHON=OFF >/dev/null
cmake --build "$folder" -j "${JOBS:-2}" --target bittrue_cores_test

echo "== this machine"
"$folder/bittrue_cores_test" "$@"

# $1: processor; $2: the sets that it must find.
run() {
  local cpu=$1 expected=$2 log first
  shift 2
  log="$folder/${cpu//[^a-zA-Z0-9]/_}.log"
  echo "== qemu-x86_64 -cpu $cpu"
  qemu-x86_64 -cpu "$cpu" "$folder/bittrue_cores_test" "$@" | tee "$log"
  first=$(head -1 "$log")
  if [[ $first != *"this processor runs: $expected" ]]; then
    echo "FAIL expected the sets '$expected' on $cpu, found: $first"
    return 1
  fi
}
# The oldest x86-64: whatever lies in the portable part, nothing newer than SSE2 may be executed.
run qemu64,-sse3,-ssse3,-sse4.1,-sse4.2,-avx,-avx2,-fma "portable" "$@"
run Nehalem "portable" "$@"
if qemu-x86_64 -cpu Haswell "$folder/bittrue_cores_test" --isa avx2 --scale 1 >/dev/null 2>&1; then
  run Haswell "avx2 portable" "$@"
else
  echo "this qemu has no AVX2 ($(qemu-x86_64 --version | head -1)): the avx2 set was only tested on this machine, if at all"
fi
