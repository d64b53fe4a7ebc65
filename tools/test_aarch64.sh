#!/usr/bin/env bash
# Cross-compiles the core for aarch64 and runs the test of all cores under emulation:
#   tools/test_aarch64.sh [build folder] [options of bittrue_cores_test...]
# Needs (Debian names): cmake ninja-build g++-aarch64-linux-gnu qemu-user. Proves bytes, not speed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/aarch64}
shift || true
root=${AARCH64_ROOT:-/usr/aarch64-linux-gnu}

# $1: folder; then options of cmake.
build() {
  local into=$1
  shift
  cmake -S . -B "$into" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITTRUE_TESTS=ON -DBITTRUE_PYTHON=OFF \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER="${AARCH64_CXX:-aarch64-linux-gnu-g++}" "$@" >/dev/null
  cmake --build "$into" -j "${JOBS:-2}" --target bittrue_cores_test
}

# $1: folder; $2: processor; $3: the sets that it must find.
run() {
  local from=$1 cpu=$2 expected=$3 first
  shift 3
  echo "== qemu-aarch64 -cpu $cpu, $(basename "$from")"
  qemu-aarch64 -L "$root" -cpu "$cpu" "$from/bittrue_cores_test" "$@" | tee "$from/$cpu.log"
  first=$(head -1 "$from/$cpu.log")
  if [[ $first != *"this processor runs: $expected" ]]; then
    echo "FAIL expected the sets '$expected' on $cpu, found: $first"
    return 1
  fi
}
build "$folder/plain"
run "$folder/plain" max "neon-dotprod portable" "$@"
# Armv8.0: no dot product, so the portable set must be chosen, and no later instruction may be executed.
run "$folder/plain" cortex-a53 "portable" "$@"

# No access outside of the rows given. The sanitizer's leak check needs ptrace, which emulation lacks.
build "$folder/address" -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -static-libasan -g1" \
  -DCMAKE_CXX_FLAGS_RELEASE="-O1"
ASAN_OPTIONS=detect_leaks=0 run "$folder/address" max "neon-dotprod portable" --scale 25 "$@"
