#!/usr/bin/env bash
# Python for aarch64 with this tree's package, under emulation:
#   tools/python_aarch64.sh -m bittrue evaluate model.tflite --data samples.npz
#   tools/python_aarch64.sh -m pytest -n 0 tests/evaluation
# The first call takes minutes: Debian's arm64 packages, wheels for aarch64, a cross-built module; all of it stays in
# build/python-aarch64. Proves bytes, not speed (some 40 times slower). Needs (Debian names): cmake ninja-build
# g++-aarch64-linux-gnu qemu-user, nanobind, and a `python` ($PYTHON) of the same version as Debian's.
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
folder=$tree/build/python-aarch64
python=${PYTHON:-python}
version=$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# Debian's packages without installing them: apt with a state of its own, in which nothing is there yet.
debian() {
  local state=$folder/apt options
  mkdir -p "$state"/{state/lists/partial,cache/archives/partial}
  touch "$state/status"
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state/state" -o Dir::Cache="$state/cache"
    -o Dir::State::status="$state/status" -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --download-only --no-install-recommends "libpython$version-dev" "python$version" libstdc++6
  mkdir -p "$folder/root.new"
  for package in "$state"/cache/archives/*.deb; do
    dpkg -x "$package" "$folder/root.new"
  done
  # Runtimes look there for the kind of processor; emulated ones would find the host's and give up.
  mkdir -p "$folder/root.new/proc"
  for processor in 0 1; do
    printf '%s\n' "processor : $processor" "Features : fp asimd crc32 atomics fphp asimdhp cpuid asimdrdm asimddp" \
      "CPU implementer : 0x41" "CPU architecture: 8" "CPU variant : 0x4" "CPU part : 0xd0b" "CPU revision : 1" ""
  done > "$folder/root.new/proc/cpuinfo"
  mv "$folder/root.new" "$folder/root"
}

# What the package and its tests need, but for tools that check the source.
wheels() {
  local platforms=() names minor
  for minor in 17 24 26 27 28 31 34; do
    platforms+=(--platform "manylinux_2_${minor}_aarch64")
  done
  mapfile -t names < <(
    $python - "$tree/pyproject.toml" <<'PY'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
left_out = ("ruff", "mypy", "clang", "nanobind", "tomli")
print(*(n for n in project["dependencies"] + project["optional-dependencies"]["test"] if not n.startswith(left_out)), sep="\n")
PY
  )
  $python -m pip install --quiet --disable-pip-version-check --no-compile --target "$folder/site.new" --only-binary=:all: \
    --implementation cp --python-version "$version" --platform manylinux2014_aarch64 "${platforms[@]}" "${names[@]}"
  mv "$folder/site.new" "$folder/site"
}

module() {
  local include=$folder/root/usr/include
  # Python's header asks for its other half by the name of the architecture.
  mkdir -p "$folder/include"
  ln -sfn "$include/aarch64-linux-gnu" "$folder/include/aarch64-linux-gnu"
  cmake -S "$tree" -B "$folder/native" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_FLAGS="-I$folder/include" \
    -DCMAKE_CXX_COMPILER="${AARCH64_CXX:-aarch64-linux-gnu-g++}" \
    -Dnanobind_DIR="$($python -m nanobind --cmake_dir)" -DPython_EXECUTABLE="$(command -v "$python")" \
    -DPython_INCLUDE_DIR="$include/python$version" >/dev/null
  cmake --build "$folder/native" -j "${JOBS:-2}" >&2
  mkdir -p "$folder/package"
  # As old as it is: what has been compiled stays.
  cp -rp "$tree/src/bittrue" "$folder/package/"
  rm -f "$folder"/package/bittrue/_native*.so
  cp "$folder"/native/_native*.so "$folder/package/bittrue/_native.cpython-${version/./}-aarch64-linux-gnu.so"
}

# sys.executable is this script: a process that Python starts is emulated, too, where the kernel knows no such binary.
starter() {
  # What it starts may add to the path; what the host has there is none of ours.
  printf '%s\n' '#!/usr/bin/env bash' \
    '[[ -n ${BITTRUE_EMULATED:-} ]] || PYTHONPATH=' \
    "export BITTRUE_EMULATED=1 PYTHONPATH=\${PYTHONPATH:+\$PYTHONPATH:}$folder/package:$folder/site" \
    '# Compiling is slow there, and lies apart from the sources.' \
    'unset PYTHONDONTWRITEBYTECODE' \
    "export PYTHONPYCACHEPREFIX=$folder/compiled OPENBLAS_NUM_THREADS=1" \
    "exec qemu-aarch64 -L $folder/root -0 $folder/root/usr/bin/python $folder/root/usr/bin/python$version \"\$@\"" \
    > "$folder/root/usr/bin/python"
  chmod +x "$folder/root/usr/bin/python"
}

[[ -d $folder/root ]] || debian
[[ -d $folder/site ]] || wheels
module
starter
exec "$folder/root/usr/bin/python" "$@"
