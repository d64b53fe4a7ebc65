#!/usr/bin/env bash
# Fuzzes every target (tests/fuzz/targets) MINUTES of processor time each, or those named:
#   tools/fuzz.sh MINUTES [TARGET...] [--sanitize address|valgrind] [--jobs N] [--total] [--seed N] [--engine ...]
#   tools/fuzz.sh [--sanitize ...] --replay TARGET FILE     one input again, with the traceback
# By the clock that is MINUTES x targets / jobs where every job has a core. A table at the end; exit code 1 on any finding,
# each with its file and the command that replays it. What grows stays in build/fuzz; `python tests/fuzz/corpus.py keep`
# takes the best of it.
#   --engine atheris (coverage of the Python code; the default where it is installed), plain (seeded, without coverage),
#            corpus (only what is there already)
#   --sanitize address: the native module under AddressSanitizer and UndefinedBehaviorSanitizer
#   --sanitize valgrind: everything under Valgrind's memcheck (no AVX-512 there), on the corpus unless --engine says else
# $PYTHON chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}
sanitize= replay=() arguments=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --sanitize) sanitize=$2; shift 2 ;;
    --replay) replay=("$2" "$3"); shift 3 ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit ;;
    *) arguments+=("$1"); shift ;;
  esac
done

export OPENBLAS_NUM_THREADS=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Copies, so that work on the sources meanwhile changes nothing; what Python compiled comes and goes. Where nothing is
# built in src/, what is installed is fuzzed.
copy() { tar -c -C "$1" --exclude __pycache__ "$2" | tar -x -C "$scratch"; }
copy . tests
if compgen -G "src/bittrue/_native*.so" >/dev/null; then
  copy src bittrue
  export PYTHONPATH=$scratch
fi
case $sanitize in
  "") ;;
  address)
    source tools/sanitized.sh
    build_sanitized build/sanitize _native
    sanitized_environment "$PWD/build/sanitize"
    export BITTRUE_FUZZ_UNDER="env LD_PRELOAD=$sanitizer_libraries"
    ;;
  valgrind)
    export BITTRUE_ISA=avx2 PYTHONMALLOC=malloc
    export BITTRUE_DEBUG_FILL=none  # or new memory would be zero
    export BITTRUE_FUZZ_SECONDS=200  # of runs, which are that much slower
    export BITTRUE_FUZZ_UNDER="valgrind -q --error-exitcode=99 --exit-on-first-error=yes --num-callers=30 \
--suppressions=$PWD/tests/fuzz/valgrind.supp"
    arguments=(--engine corpus --limit 600 "${arguments[@]}")
    ;;
  *) echo "--sanitize address or valgrind" >&2; exit 2 ;;
esac
if [[ ${#replay[@]} -gt 0 ]]; then
  ${BITTRUE_FUZZ_UNDER:-} "$python" "$scratch/tests/fuzz/worker.py" "${replay[@]}"
  exit
fi
"$python" "$scratch/tests/fuzz/campaign.py" ${sanitize:+--sanitize "$sanitize"} "${arguments[@]}"
