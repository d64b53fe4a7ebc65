#!/usr/bin/env bash
# Runs the C++ part under the compilers' sanitizers:
#   tools/sanitize.sh [build folder] [pytest arguments...]
# 1. AddressSanitizer and UndefinedBehaviorSanitizer: the test of all cores, then the Python module with the given tests
#    (by default everything native, the systems that are gone, the mutated files and a few operators), the sanitizer's
#    run-time library preloaded.
# 2. ThreadSanitizer: the test of all cores on two threads at once, and the thread pool.
# The mutated files take by far the longest: about half an hour in all, seven minutes without them.
# Needs cmake, ninja, nanobind, pytest and a compiler with sanitizers; $PYTHON chooses the interpreter. The module that is
# built here is put into a copy of the package, not into src/.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}
folder=$(realpath -m "${1:-build/sanitize}")
shift || true
tests=("$@")
if [[ ${#tests[@]} -eq 0 ]]; then
  tests=(tests/native tests/systems tests/fuzz)
  for name in reshape slice conv2d fully_connected pooling add softmax; do tests+=("tests/operators/test_$name.py"); done
fi
source tools/sanitized.sh

echo "== AddressSanitizer, UndefinedBehaviorSanitizer: cores"
build_sanitized "$folder"
(
  sanitized_environment "$folder"
  "$folder/address/bittrue_cores_test"

  echo "== AddressSanitizer, UndefinedBehaviorSanitizer: ${tests[*]}"
  LD_PRELOAD=$sanitizer_libraries HYPOTHESIS_STORAGE_DIRECTORY="$folder/hypothesis" \
    BITTRUE_CORES_TEST="$folder/address/bittrue_cores_test" \
    "$python" -m pytest -q -p no:cacheprovider --deselect tests/native/test_spills.py "${tests[@]}"
)

echo "== ThreadSanitizer: cores and pool"
cmake -S . -B "$folder/thread" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITTRUE_TESTS=ON -DBITTRUE_PYTHON=OFF \
  -DCMAKE_CXX_FLAGS="-fsanitize=thread -g1" -DCMAKE_CXX_FLAGS_RELEASE="-O1" >/dev/null
cmake --build "$folder/thread" -j "${JOBS:-2}" --target bittrue_cores_test
TSAN_OPTIONS=halt_on_error=1 "$folder/thread/bittrue_cores_test" --threads 2 --scale 25
echo "ok   no sanitizer has complained"
