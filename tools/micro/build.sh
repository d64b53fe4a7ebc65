#!/usr/bin/env bash
# Builds the program that answers for the microcontroller numerics (tests/support/micro.py).
#
# tools/micro/build.sh TFLITE_MICRO FLATBUFFERS GEMMLOWP RUY OUTPUT [flags...]
#
# The first four are checkouts: tensorflow/tflite-micro 90b983c, google/flatbuffers v25.9.23, google/gemmlowp and
# google/ruy of August 2026. `-DTFLITE_SINGLE_ROUNDING=1` as a flag builds what `single-rounding` reproduces. Then:
#   BITTRUE_SINGLE_ROUNDING=OUTPUT/harness pytest tests/operators --numerics single-rounding
# and with BITTRUE_RECORD=tests/data/recorded the answers are written down.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
micro=$(cd "$1" && pwd) flatbuffers=$(cd "$2" && pwd) gemmlowp=$(cd "$3" && pwd) ruy=$(cd "$4" && pwd)
mkdir -p "$5"
out=$(cd "$5" && pwd)
shift 5
cd "$micro"

# Every built-in operator; the signal-processing library and operators that need a device's library stay out.
python3 - > "$out/resolver.inc" <<'PYTHON'
import re

text = open("tensorflow/lite/micro/micro_mutable_op_resolver.h").read()
parts = re.split(r"TfLiteStatus (Add\w+)\(", text)
for name, body in zip(parts[1::2], parts[2::2]):
    arguments = body[: body.index("{")].rsplit(")", 1)[0].strip()
    foreign = name in ("AddBuiltin", "AddCustom") or "thos" in name or "tflm_signal" in body[:400]
    if not foreign and (not arguments or "=" in arguments):
        print(f"  resolver.{name}();")
PYTHON

lite=tensorflow/lite
sources=$(ls $lite/micro/kernels/*.cc $lite/kernels/kernel_util.cc $lite/kernels/internal/*.cc \
  $lite/kernels/internal/reference/*.cc $lite/core/api/*.cc $lite/core/c/*.cc $lite/micro/arena_allocator/*.cc \
  $lite/micro/memory_planner/*.cc $lite/micro/tflite_bridge/*.cc $lite/micro/*.cc \
  tensorflow/compiler/mlir/lite/core/api/*.cc tensorflow/compiler/mlir/lite/schema/*.cc |
  grep -v -e _test -e test_helper -e kernel_runner -e ethos -e /fake_ -e /mock_)
objects=()
for source in $sources "$here/harness.cc"; do
  object="$out/$(echo "$source" | tr / _).o"
  objects+=("$object")
  [ -f "$object" ] || g++ -std=c++17 -O1 -w -fno-exceptions -ffp-contract=off -DTF_LITE_STATIC_MEMORY \
    -DTF_LITE_DISABLE_X86_NEON -DFLATBUFFERS_LOCALE_INDEPENDENT=0 "$@" -I. -I"$out" -I"$flatbuffers/include" -I"$gemmlowp" -I"$ruy" -c "$source" -o "$object"
done
g++ "${objects[@]}" -o "$out/harness"
