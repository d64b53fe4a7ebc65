#!/usr/bin/env bash
# Cross-compiles the core for aarch64 and runs the test of all cores under emulation:
#   tools/test_aarch64.sh [build folder] [options of bittrue_cores_test...]
# Needs (Debian names): cmake ninja-build g++-aarch64-linux-gnu qemu-user. Proves bytes, not speed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/aarch64}
shift || true
root=${AARCH64_ROOT:-/usr/aarch64-linux-gnu}
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITTRUE_TESTS=ON -DBITTRUE_PYTHON=OFF \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER="${AARCH64_CXX:-aarch64-linux-gnu-g++}" >/dev/null
cmake --build "$folder" -j "${JOBS:-2}" --target bittrue_cores_test

# $1: processor; $2: the sets that it must find.
run() {
  local cpu=$1 expected=$2 first
  shift 2
  echo "== qemu-aarch64 -cpu $cpu"
  qemu-aarch64 -L "$root" -cpu "$cpu" "$folder/bittrue_cores_test" "$@" | tee "$folder/$cpu.log"
  first=$(head -1 "$folder/$cpu.log")
  if [[ $first != *"this processor runs: $expected" ]]; then
    echo "FAIL expected the sets '$expected' on $cpu, found: $first"
    return 1
  fi
}
run max "neon-dotprod portable" "$@"
# Armv8.0: no dot product, so the portable set must be chosen, and no later instruction may be executed.
run cortex-a53 "portable" "$@"
