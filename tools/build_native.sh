#!/usr/bin/env bash
# Builds the C++ core into src/bittrue, for development from the sources:
#   tools/build_native.sh [build folder] [cmake options...]
# Needs cmake, ninja, nanobind and a compiler in the environment of `python` ($PYTHON to choose another one).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}
folder=${1:-build/native}
shift || true
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -Dnanobind_DIR="$($python -m nanobind --cmake_dir)" \
  -DPython_EXECUTABLE="$(command -v "$python")" "$@" >/dev/null
cmake --build "$folder" -j "${JOBS:-2}"
# Not in place: processes may run what is there.
for module in "$folder"/_native*.so; do
  cp "$module" "src/bittrue/.${module##*/}"
  mv "src/bittrue/.${module##*/}" "src/bittrue/${module##*/}"
done
