#!/usr/bin/env bash
# Every long campaign in full, one after the other; days in all. A table of seconds at the end; exit code 1 when one failed:
#   tools/test_deep.sh [CAMPAIGN...]      all, or those named
#   tools/test_deep.sh --list             names and commands
# MINUTES (10) is for every fuzz target, JOBS (as many as cores) are processes of builds and fuzzers. What campaigns print
# lies in build/deep.
set -uo pipefail
cd "$(dirname "$0")/.."
export JOBS=${JOBS:-$(nproc)}
fuzz="tools/fuzz.sh ${MINUTES:-10} --jobs $JOBS"
names=() commands=()
campaign() { names+=("$1") commands+=("$2"); }
campaign x86_isas tools/test_x86_isas.sh
campaign aarch64 tools/test_aarch64.sh
campaign evaluate_aarch64 "tools/python_aarch64.sh -m pytest -n 0 tests/evaluation/test_evaluate.py"
campaign sanitizers tools/sanitize.sh
campaign tolerances "python tools/derive_tolerances.py --check"
# These two write their page again: it must be the one that is there.
campaign mutants "python tools/make_mutation_page.py && git diff --exit-code docs/mutation_score.md"
campaign faults "python tools/make_faults_page.py && git diff --exit-code docs/faults.md"
campaign fuzz "$fuzz"
campaign fuzz_address "$fuzz --sanitize address"
campaign fuzz_valgrind "$fuzz --sanitize valgrind"
campaign power "python tools/test_mutants.py"
campaign ray tools/test_ray.sh
campaign tests "pytest --deep"

if [[ ${1:-} == --list ]]; then
  for i in "${!names[@]}"; do printf '%-16s %s\n' "${names[i]}" "${commands[i]}"; done
  exit
fi
for name in "$@"; do
  [[ " ${names[*]} " == *" $name "* ]] || { echo "no campaign '$name'; there are: ${names[*]}" >&2; exit 2; }
done
mkdir -p build/deep
table= failed=0
for i in "${!names[@]}"; do
  name=${names[i]}
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  echo "== $name: ${commands[i]}"
  SECONDS=0
  bash -c "${commands[i]}" 2>&1 | tee "build/deep/$name.log"
  code=${PIPESTATUS[0]} outcome=passed
  [[ $code -eq 0 ]] || { outcome="FAILED ($code)"; failed=1; }
  table+=$(printf '%-16s %8d s  %s' "$name" "$SECONDS" "$outcome")$'\n'
done
printf '\n%s' "$table"
exit $failed
