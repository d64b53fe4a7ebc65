#!/usr/bin/env bash
# clang-tidy over native/, with Clang's own warnings; .clang-tidy says what it looks for.
#   tools/tidy.sh [build folder]
# The build folder (build/native, which tools/build_native.sh makes) says how each file is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/native}
python=${PYTHON:-python}
# The build's own nanobind lay in an environment that pip has removed. Python's headers are not ours to mend either.
headers=(--extra-arg=-isystem"$($python -m nanobind --include_dir)"
         --extra-arg=-isystem"$($python -c 'import sysconfig; print(sysconfig.get_path("include"))')"
         --extra-arg=-Wno-ignored-gch)  # precompiled headers are another compiler's
# Cores of other processors are in no command. Most files are parts of units, which lie in the build folder.
$python -c 'import json, sys; print(*sorted({c["file"] for c in json.load(open(sys.argv[1]))}), sep="\n")' \
  "$folder/compile_commands.json" | grep -E "^$PWD/native/|/native/CMakeFiles/.*/Unity/" |
  xargs -r -P "$(nproc)" -n 1 clang-tidy -p "$folder" --quiet "${headers[@]}" 2>&1 |
  sed '/^\[[0-9/]*\] .*Processing file /d'
