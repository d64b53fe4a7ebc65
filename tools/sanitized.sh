# Sourced by tools/sanitize.sh and tools/fuzz.sh: the native module under AddressSanitizer and
# UndefinedBehaviorSanitizer, in a copy of the package.

# build_sanitized FOLDER [TARGET]: all targets or one in FOLDER/address.
build_sanitized() {
  local undefined="-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer -g1"
  cmake -S . -B "$1/address" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITTRUE_TESTS=ON \
    -DCMAKE_CXX_FLAGS="$undefined" -DCMAKE_CXX_FLAGS_RELEASE="-O1" \
    -Dnanobind_DIR="$($python -m nanobind --cmake_dir)" -DPython_EXECUTABLE="$(command -v "$python")" >/dev/null
  cmake --build "$1/address" -j "${JOBS:-2}" ${2:+--target "$2"}
}

# sanitized_environment FOLDER: what the interpreter needs to import that module. The interpreter itself is not
# instrumented: it leaks on purpose, and its library must come after the sanitizer's. libstdc++ must be there as well when
# the sanitizer looks for the function that throws exceptions. No detect_stack_use_after_return: GCC 12 then misaligns
# 64-byte vectors on its fake stack (GCC bug 110027).
sanitized_environment() {
  rm -rf "$1/package"
  mkdir -p "$1/package"
  cp -r src/bittrue "$1/package/"
  rm -f "$1"/package/bittrue/_native*.so
  cp "$1"/address/_native*.so "$1/package/bittrue/"
  local compiler
  compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$1/address/CMakeCache.txt")
  export UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
  # Fresh memory is filled, so that bytes which nobody wrote show.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_malloc_fill_size=1073741824
  export PYTHONPATH="$1/package"
  sanitizer_libraries="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libstdc++.so.6)"
}
